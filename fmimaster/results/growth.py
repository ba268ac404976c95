"""Detects outputs that grow without bound or change too much within steps, from the rows of a run block by block."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import field
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.kernel import kernel

MOST_WINDOWS = 32
"""The run is divided into so many windows at most; when there are more, two become one."""

PARTS = 8
"""The windows are put together to so many parts of the run, which are compared."""

LEAST_WINDOWS = 2 * PARTS
"""Fewest rows for the detection."""

GROWTH = 1.25
"""An output that diverges has a range that grows by this factor or more from each part to the next one, in the last half
of the run."""

KEPT = 0.9
"""Its growth exponent does not fall below this part of its value within that half. That of a power of time falls to
0.71: its parts grow by less and less."""

WHOLE_GROWTH = 5.0
"""And its range in the last part is so many times that in the first one."""

BEYOND = 10.0
"""And its values are so many times larger than all values that are usual for it."""


LEAP = 0.15
"""A connected output changes by more than this part of its range in a step (root mean square of all steps). Of 698 right
runs of 62 systems none does so, with held inputs or with lines; of 90 wrong ones that do not grow, 30 do."""

LEAST_STEPS = 12
"""Fewest steps for that."""

ROUNDING = 1e-9
"""Range of an output, relative to its largest or usual magnitude, that may be due to rounding."""

Array = NDArray[np.float64]


class Watched(NamedTuple):
    """A column that is observed."""

    name: str
    type: Hashable
    column: slice
    """Its elements in the block of its type."""
    usual: float
    """The magnitude that is usual for it, by what its FMU declares."""
    unit: str
    is_coupled: bool = False
    """Whether it feeds another component."""


@dataclass(frozen=True, slots=True)
class Diverging:
    """An output that has grown without bound."""

    name: str
    unit: str
    time: float
    """Start of the growth in s."""
    factor: float
    """Factor by which its range has grown in each such period:"""
    period: float
    """In s."""
    usual: float
    """Its usual magnitude."""
    largest: float
    """Its largest magnitude."""

    def text(self, others: int = 0) -> str:
        """A warning.

        Parameters
        ----------
        others : int
            How many outputs diverge besides.
        """
        unit = f" {self.unit}" if self.unit else ""
        more = {0: "", 1: "; 1 other output does likewise"}.get(
            others, f"; {others} other outputs do likewise"
        )
        return (
            f"the output '{self.name}' grows from t = {self.time:.6g} s to the end of the run, by a factor of about "
            f"{self.factor:.3g} in each {self.period:.3g} s, and reaches {self.largest:.3g}{unit}; by its nominal value, "
            f"limits and start value {self.usual:.3g}{unit} is usual{more}. Either the model itself is unstable, or the "
            "coupling is with these steps: then smaller steps (--check-step halves them) end the growth. "
            "`fmimaster stability` computes the largest stable step size"
        )


class Leaping(NamedTuple):
    """A connected output that changes too much within steps: its coupling cannot be accurate."""

    name: str
    change: float
    """Root mean square of its changes, as a fraction of its range."""

    def text(self, others: int = 0) -> str:
        """A warning; ``others``: how many outputs do likewise."""
        more = (
            "" if not others else f", and {others} more likewise" if others > 1 else ", and 1 more"
        )
        share = f"{100 * self.change:.0f} %"
        return (
            f"the output '{self.name}', which feeds another component, changes by {share} of its range in "
            f"each communication step (root mean square){more}. Such steps are too long for it, or the coupling is at the "
            "limit of its stability: results may be wrong. Take smaller steps: step_size (--step-size); --check-step "
            "measures the error"
        )


@dataclass(slots=True)
class _Windows:
    """The columns of one type."""

    columns: tuple[Watched, ...]
    elements: NDArray[np.intp]
    """Of the block, shape (n,)."""
    owner: NDArray[np.intp]
    """Of each element the index of its column."""
    coupled: NDArray[np.intp]
    """The elements, by their numbers here, that feed other components."""
    are_first: bool
    """Whether the elements are the first ones of the block, in their order."""
    rows: int = 1
    """Of a window."""
    filled: int = 0
    """Rows of the last window."""
    times: Array = field(default_factory=lambda: np.empty(0))
    """Start of each window in s."""
    high: Array = field(default_factory=lambda: np.empty((0, 0)))
    low: Array = field(default_factory=lambda: np.empty((0, 0)))
    """Shape (windows, n). The last row of the window before counts, too."""
    first: Array | None = None
    """Magnitudes in the first row."""
    last: Array | None = None
    """The last row."""
    time: float = np.nan
    """Its time in s."""
    steps: int = 0
    """Number of rows that have a later time than the row before."""
    squares: Array = field(default_factory=lambda: np.zeros(0))
    """Sums over these of the squares of changes, per element."""

    def look(self, times: Array, block: NDArray[Any], looked: Any) -> bool:
        """Take up rows; whether certainly no value of the block is NaN or infinite."""
        is_whole = self.are_first and len(self.elements) == block.shape[1]
        values = np.ascontiguousarray(block if is_whole else block[:, self.elements], float)
        before = values[0] if self.last is None else self.last
        if self.first is None:
            self.first = np.abs(values[0])
            self.high = self.low = np.empty((0, values.shape[1]))
            self.filled = self.rows  # the first row opens a window
        self._make_room(len(times))
        # the first rows may belong to the window that is open
        opened = np.arange(self.rows - self.filled, len(times), self.rows)
        starts = opened if self.filled == self.rows else np.concatenate([[0], opened])
        high, low, squares, later = _ranges(
            times, values, starts, self.time, before, looked if values is block else None
        )
        self.squares = self.squares + squares if len(self.squares) else squares
        self.steps += later
        self.last, self.time = values[-1].copy(), float(times[-1])
        if self.filled < self.rows:
            high[0] = np.fmax(self.high[-1], high[0])
            low[0] = np.fmin(self.low[-1], low[0])
            self.high, self.low = self.high[:-1], self.low[:-1]
        self.high, self.low = np.concatenate([self.high, high]), np.concatenate([self.low, low])
        self.times = np.concatenate([self.times, times[opened]])
        self.filled = (self.filled + len(times) - 1) % self.rows + 1
        return is_whole and bool(np.isfinite(squares).all())

    def leaping(self) -> list[Leaping]:
        """Each column that changes too much within steps."""
        if self.steps < LEAST_STEPS or not len(self.coupled):
            return []
        high = self.high[:, self.coupled].max(axis=0)
        low = self.low[:, self.coupled].min(axis=0)
        with np.errstate(all="ignore"):  # the range may be 0
            change = np.sqrt(self.squares[self.coupled] / self.steps) / (high - low)
            is_found = change > LEAP
            if not is_found.any():  # as in most runs
                return []
            owners = [self.columns[k] for k in self.owner[self.coupled]]
            size = np.maximum(np.abs(high), np.abs(low))
            usual = [column.usual for column in owners]
            is_found &= high - low > ROUNDING * np.maximum(size, usual)
        return [Leaping(owners[k].name, float(change[k])) for k in np.flatnonzero(is_found)]

    def _make_room(self, rows: int) -> None:
        """Put windows together until these rows fit, too."""
        while len(self.high) + (rows + self.filled - 1) // self.rows > MOST_WINDOWS:
            n = len(self.high)
            if n:
                starts = np.arange(0, n, 2)
                self.high = np.fmax.reduceat(self.high, starts, axis=0)
                self.low = np.fmin.reduceat(self.low, starts, axis=0)
                self.times = self.times[starts]
                self.filled += self.rows if n % 2 == 0 else 0
            else:
                self.filled = 2 * self.rows
            self.rows *= 2

    def remembered(self) -> dict[str, Any]:
        """What it has found so far; arrays that are not changed any more."""
        return {name: getattr(self, name) for name in _REMEMBERED}

    def diverging(self) -> list[tuple[float, Diverging]]:
        """Each column that diverges, with its growth: over the run, or over its last half."""
        n = len(self.high) - (self.filled < self.rows)  # the last one may hold few rows
        if n < LEAST_WINDOWS:
            return []
        assert self.first is not None
        usual = np.array([column.usual for column in self.columns])
        np.maximum.at(usual, self.owner, self.first)
        usual = usual[self.owner]
        largest = np.maximum(np.abs(self.high), np.abs(self.low)).max(axis=0)
        found = self._diverging(n // 2, n, usual, largest)
        return [*(found | self._diverging(0, n, usual, largest)).values()]

    def _diverging(
        self, begin: int, end: int, usual: Array, largest: Array
    ) -> dict[int, tuple[float, Diverging]]:
        """Index of each column that diverges over these windows."""
        # of the same length, but for the first: into a longer one a power of time grows more
        length = min(-((begin - end) // PARTS), end // PARTS)
        starts = end - length * np.arange(PARTS, 0, -1)
        starts[0] = min(starts[0], begin)
        high = np.fmax.reduceat(self.high[:end], starts, axis=0)
        low = np.fmin.reduceat(self.low[:end], starts, axis=0)
        half, least = PARTS // 2, log(GROWTH)
        with np.errstate(all="ignore"):  # ranges may be 0, and may overflow
            width = high - low
            grows = (width[-1] >= WHOLE_GROWTH * width[0]) & (largest > BEYOND * usual)
            if not grows.any():  # as in most runs
                return {}
            exponents = np.log(width[1:] / width[:-1])
            late = exponents[-half:]
            grows &= (late >= least).all(axis=0)
            grows &= late[half // 2 :].sum(axis=0) >= KEPT * late[: half // 2].sum(axis=0)
        period = float(self.times[starts[-1]] - self.times[starts[1]]) / (PARTS - 2)
        found: dict[int, tuple[float, Diverging]] = {}
        for e in np.flatnonzero(grows).tolist():
            column, k = self.columns[self.owner[e]], int(self.owner[e])
            slow = np.flatnonzero(~(exponents[:, e] >= least))
            since = (
                int(slow[-1]) + 2 if len(slow) else 0
            )  # it began in that part or in the one before
            growth = float(largest[e] / usual[e])
            if k not in found or growth > found[k][0]:
                found[k] = (
                    growth,
                    Diverging(
                        column.name,
                        column.unit,
                        float(self.times[starts[since]]),
                        float(np.exp(late[:, e].mean())),
                        period,
                        float(usual[e]),
                        float(largest[e]),
                    ),
                )
        return found


def _ranges(
    times: Array,
    values: Array,
    starts: NDArray[np.intp],
    time_before: float,
    before: Array,
    looked: Any = None,
) -> tuple[Array, Array, Array, int]:
    """Of parts of rows, each with the row before it: the highest and the lowest values, shape (parts, n).

    And the sums of the squares of changes from a row to a later one, NaN or infinite if a value of the rows is; and how
    many rows are later than the one before. In ranges, NaN does not count. By the kernel in a tenth of the time.
    """
    if kernel() is None:
        return _ranges_by_numpy(times, values, starts, time_before, before)
    ffi, lib = kernel().ffi, kernel().lib
    n, width = values.shape
    high, low = np.empty((2, len(starts), width))
    squares = np.zeros(width)
    arrays = [ffi.from_buffer("double[]", a) for a in (before, low, high, squares, times, values)]
    found = ffi.new(
        "fm_ranges *", (width, arrays[0], time_before, *arrays[1:4], looked or ffi.NULL)
    )
    parts = ffi.from_buffer("int64_t[]", starts.astype(np.int64, copy=False))
    later = lib.fm_look_at_rows(found[0], *arrays[4:], n, parts, len(starts))
    return high, low, squares, later


def _ranges_by_numpy(
    times: Array, values: Array, starts: NDArray[np.intp], time_before: float, before: Array
) -> tuple[Array, Array, Array, int]:
    is_later = np.diff(times, prepend=time_before) > 0.0  # not at an event
    with np.errstate(all="ignore"):  # they may overflow
        changes = np.diff(values, axis=0, prepend=before[None])[is_later]
        squares = np.einsum("ij,ij->j", changes, changes) + (values[~is_later] * 0.0).sum(axis=0)
    rows_before = np.where((starts > 0)[:, None], values[starts - 1], before)
    high = np.fmax(np.fmax.reduceat(values, starts, axis=0), np.fmax(rows_before, -np.inf))
    low = np.fmin(np.fmin.reduceat(values, starts, axis=0), np.fmin(rows_before, np.inf))
    return high, low, squares, len(changes)


_REMEMBERED = (
    *("rows", "filled", "times", "high", "low", "first", "last"),
    *("time", "steps", "squares"),
)
"""Fields of windows that change with the rows."""


class Growth:
    """Examines each block of rows, and finds the outputs that have grown without bound.

    An output diverges if its range grows from each eighth of the run to the next one in the last half of the run, as an
    exponential function does (a power of time grows by less and less), and if it exceeds 10 times the largest of its
    nominal value, its minimum, its maximum and its value at the start. The same over the last half of the run counts, too.
    Magnitudes alone decide nothing, because few FMUs declare nominal values. Blocks of rows are examined, not steps, so
    that it costs nothing in the loop.

    Parameters
    ----------
    columns : sequence of Watched

    Source: fmimaster (docs/multi-rate.md).
    """

    def __init__(self, columns: Sequence[Watched]) -> None:
        self._windows: dict[Hashable, _Windows] = {}
        self._diverging: tuple[Diverging, ...] | None = None
        self._leaping: tuple[str, ...] | None = None
        """Those among the rows so far; None if they are not known."""
        for kind in dict.fromkeys(column.type for column in columns):
            chosen = tuple(column for column in columns if column.type == kind)
            elements = [np.arange(c.column.start, c.column.stop) for c in chosen]
            owner = np.repeat(np.arange(len(chosen)), [len(e) for e in elements])
            coupled = np.flatnonzero([chosen[k].is_coupled for k in owner])
            all_of_kind = np.concatenate(elements)
            are_first = np.array_equal(all_of_kind, np.arange(len(all_of_kind)))
            self._windows[kind] = _Windows(chosen, all_of_kind, owner, coupled, are_first)

    def look(
        self, times: Array, block: Mapping[Any, NDArray[Any]], looked: Any = None
    ) -> Set[Hashable]:
        """Take up rows; the types of which certainly no value is NaN or infinite. See :meth:`Recorder.take`."""
        if not len(times):
            return set()
        self._diverging = self._leaping = None
        return {k for k, windows in self._windows.items() if windows.look(times, block[k], looked)}

    def remembered(self) -> list[dict[str, Any]]:
        """What it has found in the rows so far."""
        return [windows.remembered() for windows in self._windows.values()]

    def remember(self, found: Sequence[Mapping[str, Any]]) -> None:
        """Continue with the result of :meth:`remembered`, of the same columns."""
        self._diverging = self._leaping = None
        for windows, values in zip(self._windows.values(), found, strict=True):
            for name in _REMEMBERED:
                setattr(windows, name, values[name])

    def diverging(self) -> tuple[Diverging, ...]:
        """Outputs that have grown without bound, the one with the largest growth first."""
        if self._diverging is None:
            found = [entry for windows in self._windows.values() for entry in windows.diverging()]
            found.sort(key=lambda entry: (-entry[0], entry[1].name))
            self._diverging = tuple(one for _, one in found)
        return self._diverging

    def hint(self) -> str:
        """A sentence for the error that a value is not finite, if outputs have grown until then."""
        found = self.diverging()
        return f" Until then '{found[0].name}' has grown exponentially." if found else ""

    def leaping(self) -> tuple[str, ...]:
        """A warning, if connected outputs change too much within steps, and none grows without bound."""
        if self._leaping is None:
            found = [one for windows in self._windows.values() for one in windows.leaping()]
            self._leaping = ()
            if found and not self.diverging():
                worst = max(found, key=lambda one: one.change)
                self._leaping = (worst.text(len({one.name for one in found}) - 1),)
        return self._leaping

    def warnings(self) -> tuple[str, ...]:
        """One, if there is an output that grows without bound, or changes too much within steps."""
        found = self.diverging()
        return (found[0].text(len(found) - 1),) if found else self.leaping()
