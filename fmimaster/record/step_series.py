"""Entries of steps without an object for each: as columns, and those that repeat as a few integers.

Those that repeat are found, so that a long run with periodic clocks does not keep each of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, cycle, islice
from math import lcm
from operator import eq
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.collector import left_for_later
from fmimaster.base.data import dataclass
from fmimaster.record.causes import Cause, Kind, Steps

LARGEST = 2**53
"""Below it, doubles hold all integers, so that a quotient of two is the nearest double."""

_AT_ONCE = 1000
"""So many entries become objects together when one after the other is read."""


@dataclass
class StepColumns:
    """Entries as columns: objects of their own would be looked through by the collector of garbage again and again, in half
    of the time of a run in which no two steps are alike.

    The arguments of :class:`Steps`, each in the order of the entries.
    """

    begins: array[float] = field(default_factory=lambda: array("d"))
    ends: array[float] = field(default_factory=lambda: array("d"))
    causes: list[Cause] = field(default_factory=list)
    counts: array[int] = field(default_factory=lambda: array("q"))
    """The last column that is filled: another thread may read as many entries as it has."""

    def columns(self) -> tuple[array[float], array[float], list[Cause], array[int]]:
        """All columns, in the order of the arguments of :class:`Steps`."""
        return self.begins, self.ends, self.causes, self.counts

    def __len__(self) -> int:
        return len(self.counts)

    def append(self, begin: float, end: float, cause: Cause, count: int) -> None:
        """One more."""
        self.begins.append(begin)
        self.ends.append(end)
        self.causes.append(cause)
        self.counts.append(count)

    def extend(
        self,
        begins: NDArray[np.float64],
        ends: NDArray[np.float64],
        causes: Sequence[Cause],
        counts: NDArray[np.int64],
    ) -> None:
        """Some more, by columns."""
        self.begins.frombytes(begins.tobytes())
        self.ends.frombytes(ends.tobytes())
        self.causes.extend(causes)
        self.counts.frombytes(counts.tobytes())

    def part(self, first: int, last: int | None = None) -> StepColumns:
        """Others, as those between two numbers are now."""
        span = slice(first, len(self) if last is None else last)
        begins, ends, causes, counts = self.columns()
        return StepColumns(begins[span], ends[span], causes[span], counts[span])

    def objects(self) -> list[Steps]:
        """All of them, as objects."""
        with left_for_later():
            return list(map(Steps, *self.columns()))

    def remove(self, n: int) -> None:
        """Without the first ones."""
        for column in self.columns():
            del column[:n]


@dataclass(frozen=True, slots=True)
class RepeatedSteps:
    """Entries that repeat, as periodic clocks cause them. Their times are computed exactly as the run has computed them.

    Entry k has the place ``k % P`` in a pattern of P entries. It ends at ``(ticks[place] + k // P * period) / resolution``
    s, or at a part of the way from its begin to the end of the next entry.
    """

    begin: float
    """[s] Of the first entry."""
    entries: int
    """How many there are, also some of the last repetition."""
    period: int
    resolution: int
    """[1/s]"""
    ticks: tuple[int, ...]
    """Shape (P,); anything where an entry ends at a part of the way."""
    shares: tuple[float, ...]
    """Shape (P,): the part of the way; 0 for an entry that ends at its tick. No two follow each other."""
    causes: tuple[Cause, ...]
    counts: tuple[int, ...]
    """Shape (P,): of steps."""

    def __len__(self) -> int:
        return self.entries

    @property
    def end(self) -> float:
        """[s] Of the last entry."""
        return self.ends(self.entries - 1, self.entries).item()

    def ends(self, first: int, last: int) -> NDArray[np.float64]:
        """Ends in s of the entries from ``first`` to ``last - 1``, also of those that could follow, or be before."""
        turns, places = np.divmod(np.arange(first - 1, last + 1), len(self.ticks))
        times = (np.array(self.ticks)[places] + turns * self.period) / self.resolution
        if first == 0:
            times[0] = self.begin
        shares = np.array(self.shares)[places[1:-1]]
        before, own, after = times[:-2], times[1:-1], times[2:]
        found: NDArray[np.float64] = np.where(shares > 0, before + shares * (after - before), own)
        return found

    def part(self, first: int, last: int) -> StepColumns:
        """Such entries as columns."""
        ends = self.ends(first, last)
        begin = self.begin if first == 0 else self.ends(first - 1, first).item()
        place, n = first % len(self.ticks), last - first
        columns = StepColumns()
        columns.extend(
            np.concatenate(([begin], ends[:-1])),
            ends,
            list(islice(cycle(self.causes), place, place + n)),
            np.fromiter(islice(cycle(self.counts), place, place + n), np.int64, n),
        )
        return columns

    def is_like(self, columns: StepColumns, first: int) -> NDArray[np.bool_]:
        """Whether each of some entries is that of the pattern, from number ``first`` on."""
        n = len(columns)
        mine = self.part(first, first + n)
        same = np.fromiter(map(eq, columns.causes, mine.causes), np.bool_, n)
        for name in ("begins", "ends", "counts"):
            same &= np.array(getattr(columns, name)) == np.array(getattr(mine, name))
        return same

    def continued(self, columns: StepColumns) -> int:
        """How many of the entries that come next repeat those before."""
        room = self.most - self.entries
        same = self.is_like(columns.part(0, min(len(columns), room)), self.entries)
        return len(same) if same.all() else int(same.argmin())

    @property
    def most(self) -> int:
        """So many entries have exact times."""
        return (LARGEST - max(map(abs, self.ticks))) // self.period * len(self.ticks)

    def with_more(self, n: int) -> RepeatedSteps:
        """With more entries behind them."""
        return replace(self, entries=self.entries + n)

    def begun_before(self, n: int, begin: float) -> RepeatedSteps:
        """With ``n`` more entries before them; the first begins at ``begin`` in s."""
        size = len(self.ticks)
        turns, places = zip(*(divmod(k - n, size) for k in range(size)), strict=True)
        return replace(
            self,
            begin=begin,
            entries=self.entries + n,
            ticks=tuple(
                self.ticks[k] + turn * self.period for turn, k in zip(turns, places, strict=True)
            ),
            shares=tuple(self.shares[k] for k in places),
            causes=tuple(self.causes[k] for k in places),
            counts=tuple(self.counts[k] for k in places),
        )


Part: TypeAlias = StepColumns | RepeatedSteps


class StepSeries(Sequence[Steps]):
    """Entries of steps in their order, as objects that are made when they are read."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._lasts = tuple(accumulate(map(len, self.parts)))

    def __len__(self) -> int:
        return self._lasts[-1] if self._lasts else 0

    @overload
    def __getitem__(self, index: int) -> Steps: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Steps, ...]: ...
    def __getitem__(self, index: int | slice) -> Steps | tuple[Steps, ...]:
        if isinstance(index, slice):
            return tuple(self[k] for k in range(*index.indices(len(self))))
        k = range(len(self))[index]
        which = bisect_right(self._lasts, k)
        part = self.parts[which]
        first = k - self._lasts[which] + len(part)
        return part.part(first, first + 1).objects()[0]

    def __iter__(self) -> Iterator[Steps]:
        for part in self.parts:
            for first in range(0, len(part), _AT_ONCE):
                yield from part.part(first, min(first + _AT_ONCE, len(part))).objects()

    def folded(self) -> Iterator[Steps | RepeatedSteps]:
        """The entries, with those that repeat as one."""
        for part in self.parts:
            if isinstance(part, RepeatedSteps):
                yield part
            else:
                yield from StepSeries([part])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepSeries | tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} entries of steps>"


MOST_PLACES = 1000
"""Most entries of a pattern that is found."""

NEAR = 1e-9
"""Relative difference up to which two step sizes may be equal but for rounding."""

FIRST = 32
"""So many entries are compared before all are."""

DENOMINATORS = tuple(10**k for k in range(10))
"""Bounds that are tried for the denominator of a time."""


def with_more(parts: tuple[Part, ...], columns: StepColumns, share: float) -> tuple[Part, ...]:
    """Parts of a series with more entries behind them, of which those that repeat become one part.

    Parameters
    ----------
    share
        Part of the way to the end of the next entry at which an entry for outdated outputs ends.
    """
    if parts and isinstance(last := parts[-1], RepeatedSteps):
        n = last.continued(columns)
        parts = (*parts[:-1], last.with_more(n))
        columns = columns.part(n)
    found = _repeated(columns, share)
    if found is not None:
        rest = columns.part(0, len(columns) - len(found))
        return (*parts, rest, found) if len(rest) else (*parts, found)
    return (*parts, columns) if len(columns) else parts


def _repeated(columns: StepColumns, share: float) -> RepeatedSteps | None:
    """The last entries, if they repeat at least since the middle."""
    n = len(columns)
    middle = n // 2
    before, behind = columns.part(0, middle), columns.part(middle)
    for size in _sizes(behind):
        found = _pattern(behind, size, share)
        if found is not None and found.continued(behind.part(size)) == n - middle - size:
            like = found.is_like(before, -middle)
            more = middle if like.all() else int(like[::-1].argmin())
            whole = found.with_more(n - middle - size)
            return whole.begun_before(more, columns.begins[middle - more])
    return None


def _sizes(columns: StepColumns) -> Iterator[int]:
    """Numbers of entries after which all seem to repeat, in increasing order."""
    numbers = {cause: k for k, cause in enumerate(dict.fromkeys(columns.causes))}
    codes = np.array([numbers[cause] for cause in columns.causes])
    counts, ends = np.array(columns.counts), np.array(columns.ends)
    sizes = (ends - np.array(columns.begins)) / counts
    rounding = NEAR * sizes + 4 * np.spacing(np.abs(ends))

    def are_alike(one: slice, other: slice) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (codes[one] == codes[other]) & (counts[one] == counts[other])
        found &= np.abs(sizes[one] - sizes[other]) <= rounding[one] + rounding[other]
        return found

    most = min(len(columns) // 2, MOST_PLACES)
    for size in np.flatnonzero(are_alike(slice(1, most + 1), slice(0, 1))) + 1:
        few, rest = slice(size, size + FIRST), slice(size, None)
        if (
            are_alike(few, slice(len(codes[few]))).all()
            and are_alike(rest, slice(len(codes[rest]))).all()
        ):
            yield int(size)


def _pattern(columns: StepColumns, size: int, share: float) -> RepeatedSteps | None:
    """The first entries as a pattern, if their times are short fractions."""
    is_way = [cause.kind is Kind.OUTDATED_OUTPUTS for cause in columns.causes[:size]]
    if any(one and other for one, other in zip(is_way, [*is_way[1:], is_way[0]], strict=True)):
        return None
    times, resolution = list[Fraction](), 1
    for k, way in enumerate(is_way):
        times.append(Fraction(0) if way else _short(columns.ends[k]))
        resolution = lcm(resolution, times[-1].denominator)
        if max(resolution, int(abs(times[-1]) * resolution)) >= LARGEST:
            return None  # it only grows with more times, which take long to shorten
    at = is_way.index(False)
    period = _short(columns.ends[at + size]) - times[at]
    resolution = lcm(resolution, period.denominator)
    ticks = tuple(int(time * resolution) for time in times)
    if max(resolution, *map(abs, ticks)) >= LARGEST:
        return None
    return RepeatedSteps(
        columns.begins[0],
        size,
        int(period * resolution),
        resolution,
        ticks,
        tuple(share if way else 0.0 for way in is_way),
        tuple(columns.causes[:size]),
        tuple(columns.counts[:size]),
    )


@lru_cache(4 * MOST_PLACES)
def _short(time: float) -> Fraction:
    """A fraction with a small denominator whose nearest double is a time; kept, because patterns of many sizes are tried on
    the same times."""
    exact = Fraction(time)
    tried = (exact.limit_denominator(most) for most in DENOMINATORS)
    return next((short for short in tried if float(short) == time), exact)
