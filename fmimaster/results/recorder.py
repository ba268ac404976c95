"""Collects rows from the executor in blocks and makes results from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import NotANumberError
from fmimaster.record.causes import Activations, Event, Steps
from fmimaster.results.growth import Growth
from fmimaster.results.kept_rows import Block, KeptRows
from fmimaster.results.results import Results
from fmimaster.results.row_writer import RowWriter
from fmimaster.results.statistics import NO_RUN, Statistics
from fmimaster.results.table import Table

if TYPE_CHECKING:
    from fmimaster.results.passed_events import PassedEvents  # few runs pass events


class Column(Protocol):
    """A column of the results, and where it lies in a block."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> Hashable: ...
    @property
    def column(self) -> slice:
        """Its elements in the block of its type."""
        ...

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def unit(self) -> str: ...
    @property
    def is_signal(self) -> bool:
        """Whether it is computed by the run, not an output of an FMU."""
        ...

    @property
    def present(self) -> tuple[Hashable, tuple[int, ...]] | None:
        """Type and elements of the flags of which one must be true, or there is no value; None if there is always one."""
        ...

    def converted(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values in the block as the column shows them."""
        ...


class Recorder:
    """Collects blocks of rows: one growing table per type, of which the columns of the results are views.

    Parameters
    ----------
    columns : sequence of Column
    expected_rows : int
        How many rows are likely to come.
    writer : RowWriter or None
        Writes each block as it comes; then no rows are kept but the last block.
    start, interval : float or None
        Keep only the first row at or after each of the times ``start + k * interval`` in s, the ticks at the same instants,
        and the last row; None keeps all rows.
    growth : Growth or None
        Looks at all rows.
    passed : PassedEvents or None
        Counts events in them.
    allow_nan : bool
        Whether an output may be NaN or infinite; else the first one is an error, and the rows before it stay.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        expected_rows: int = 0,
        writer: RowWriter | None = None,
        start: float = 0.0,
        interval: float | None = None,
        growth: Growth | None = None,
        passed: PassedEvents | None = None,
        allow_nan: bool = False,
    ) -> None:
        self._columns = columns
        self._start = start
        self._interval = interval
        self._allow_nan = allow_nan
        self.growth = growth or Growth(())
        self._no_growth = self.growth.remembered()
        self.passed = passed
        self._writer = writer
        self._expected = expected_rows, _row_bytes(columns)
        self.also: Callable[[NDArray[np.float64], Block], None] | None = None
        """Called with all rows that are kept."""
        self.spool: Callable[[NDArray[np.float64], Block], None] | None = None
        """Called with them before that: keeps them outside of this process."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Collect the rows of a run; those of the run before stay in its results."""
        self._last_index = -1
        self._last_kept = np.nan
        """Time in s of the last row that the interval has kept."""
        self._last_row: tuple[NDArray[np.float64], Block] | None = None
        """The last row, if the interval has left it out."""
        self._kept = KeptRows(*self._expected)
        self.rows = 0
        """Number of rows so far, kept or written."""
        self.writing_seconds = 0.0
        """Wall time in s in which rows were written."""
        self.growth.remember(self._no_growth)
        if self.passed is not None:
            self.passed.begin_anew()

    def take(self, times: NDArray[np.float64], block: Block, looked: Any = None) -> None:
        """Append a block of rows; what is kept is copied.

        Parameters
        ----------
        looked : fm_looked or None
            What the kernel has found in Float64 values of the block in which they lie.

        Raises
        ------
        NotANumberError
            If a value is NaN or infinite; the rows before that one are kept.
        """
        before = self.growth.remembered()
        finite = self.growth.look(times, block, looked)
        bad = None if self._allow_nan else self._first_not_finite(block, finite)
        if bad is not None:
            row, name, what, others = bad
            times_before, block_before = times[:row], {k: v[:row] for k, v in block.items()}
            self.growth.remember(before)
            self.growth.look(times_before, block_before)
            self._append(times_before, block_before)
            raise NotANumberError(
                f"Output '{name}' is {what} at t = {times[row]:.12g} s{others}.{self.growth.hint()} Check the parameters "
                "and inputs of its FMU, or try a smaller step size; allow_nan (--allow-nan) permits NaN and infinity.",
                time=float(times[row]),
            )
        self._append(times, block)

    def room_for(
        self, least: int, most: int, like: Block
    ) -> tuple[NDArray[np.float64], Block] | None:
        """Memory in which the next rows can be made, of these types and widths, since all are kept as they come; None if
        there is not enough."""
        keeps_all = self._writer is None and self._interval is None
        return self._kept.room_for(least, most, like) if keeps_all else None

    def results(
        self,
        statistics: Statistics = NO_RUN,
        events: Iterable[Event] = (),
        steps: Iterable[Steps] = (),
        activations: Iterable[Activations] = (),
        metadata: Mapping[str, Any] = MappingProxyType({}),
        intermediate: Mapping[str, Table] = MappingProxyType({}),
    ) -> Results:
        """All rows so far, with the facts of the run."""
        times, values = self._kept.joined()
        return self._table(
            times,
            values,
            statistics=statistics,
            events=events,
            steps=steps,
            activations=activations,
            metadata=metadata,
            intermediate=intermediate,
        )

    def _table(self, times: NDArray[np.float64], values: Block, **facts: Any) -> Results:
        columns = {
            c.name: _values(c, values, len(times)) if c.type in values else np.empty((0, *c.shape))
            for c in self._columns
        }
        units = {c.name: c.unit for c in self._columns if c.unit}
        return Results(time=times, columns=columns, units=units, **facts)

    def _append(self, times: NDArray[np.float64], block: Block) -> None:
        if self.passed is not None:
            self.passed.look(times, block)
        if self._interval is not None and len(times):
            self._last_row = _copied(times[-1:], {k: v[-1:] for k, v in block.items()})
            index = output_intervals(times, self._start, self._interval)
            before = np.concatenate([[self._last_index], index[:-1]])
            self._last_index = int(index[-1])
            chosen = index > before
            chosen |= self._ticks_at_kept(times, block, chosen)
            times, block = times[chosen], {k: v[chosen] for k, v in block.items()}
            self._last_row = None if chosen[-1] else self._last_row
        self._add(times, block)

    def _ticks_at_kept(
        self, times: NDArray[np.float64], block: Block, chosen: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Rows with a value of a clocked variable at the instants of chosen rows: these have the left limits, in which all
        such values are absent."""
        ticks = np.zeros(len(times), bool)
        for kind, places in {c.present for c in self._columns if c.present is not None}:
            ticks |= block[kind][:, list(places)].any(axis=1)
        kept = np.append(times[chosen], self._last_kept)
        if ticks.any():
            ticks &= np.isin(times, kept)
        self._last_kept = float(kept[-2]) if len(kept) > 1 else self._last_kept
        return ticks

    def committed(self) -> tuple[int, int]:
        """Bytes of the text file that is written, 0 without one; and how many rows were kept or written."""
        return 0 if self._writer is None else self._writer.size, self.rows

    def go_on_behind(self, rows: int, last: float) -> None:
        """Take further rows behind those of another process.

        Parameters
        ----------
        rows : int
            How many the other one has kept or written.
        last : float
            Time in s of the last row that it has looked at; NaN if there was none.
        """
        self.rows = rows
        if self._interval is not None and last == last:
            [self._last_index] = output_intervals(np.array([last]), self._start, self._interval)

    def remembered(self) -> dict[str, Any]:
        """What it needs besides its rows to take up further ones."""
        return {
            "last index": self._last_index,
            "last row": self._last_row,
            "last kept": self._last_kept,
            "growth": self.growth.remembered(),
            "passed": None if self.passed is None else self.passed.remembered(),
        }

    def remember(self, known: Mapping[str, Any]) -> None:
        """Continue with the result of :meth:`remembered`."""
        self._last_index, self._last_row = known["last index"], known["last row"]
        self._last_kept = known["last kept"]
        self.growth.remember(known["growth"])
        if self.passed is not None:
            self.passed.remember(known["passed"])

    def add_again(self, times: NDArray[np.float64], block: Block) -> None:
        """Add rows that another recorder of this run has kept."""
        self._add(times, block)

    def as_table(self, rows: tuple[NDArray[np.float64], Block] | None) -> Results:
        """Rows in the columns of the results; none for None."""
        return self._table(*(rows or (np.empty(0), {})))

    def finish(self) -> None:
        """Always keep the last row: it is the state at the end of the run."""
        if self._last_row is not None:
            self._add(*self._last_row)
            self._last_row = None
        self.flush()

    def flush(self) -> None:
        """Flush the written data to the system."""
        if self._writer is not None:
            begun = perf_counter()
            self._writer.flush()
            self.writing_seconds += perf_counter() - begun

    def _add(self, times: NDArray[np.float64], block: Block) -> None:
        if not len(times):
            return
        if self._writer is not None:  # then those before are in the file
            self._kept = KeptRows(len(times), _row_bytes(self._columns))
        self._kept.append(times, block)
        self.rows += len(times)
        if self._writer is not None:  # if it fails, at most these rows are not in the file
            begun = perf_counter()
            self._writer.write(self._table(times, block))
            self.writing_seconds += perf_counter() - begun
        if self.spool is not None:
            self.spool(times, block)
        if self.also is not None:
            self.also(times, block)

    def _first_not_finite(
        self, block: Block, certain: Set[Hashable]
    ) -> tuple[int, str, str, str] | None:
        """First row with a value that is not finite, the name of the first column that has it there, what it is, and the
        signals of the run that follow from it, in words; by types that are not certain to be finite."""
        found = []
        for kind, values in block.items():
            if values.dtype.kind != "f" or kind in certain:
                continue
            finite = np.isfinite(values)
            if finite.all():
                continue
            row = int(finite.all(axis=1).argmin())
            wrong = [
                column
                for column in self._columns
                if column.type == kind and not finite[row, column.column].all()
            ]
            is_nan = np.isnan(values[row, wrong[0].column]).any()
            what = "NaN" if is_nan else "infinite"
            found.append((row, wrong[0].name, what, _also(wrong[1:])))
        return min(found, default=None)


def output_intervals(
    times: NDArray[np.float64], start: float, interval: float
) -> NDArray[np.int64]:
    """How many multiples of the output interval are reached at each time; the first row with a new number is kept."""
    # 1e-9 of an interval: a point of the output grid counts as reached in spite of rounding
    reached: NDArray[np.int64] = np.floor((times - start) / interval + 1e-9).astype(np.int64)
    return reached


def _also(columns: Sequence[Column]) -> str:
    """Which signals of the run, such as the power of a bond, are not finite either."""
    names = [column.name for column in columns if column.is_signal]
    return f", and so is '{names[0]}'" if names else ""


def _row_bytes(columns: Sequence[Column]) -> int:
    """How many bytes a row takes at most: its time, and 8 for each element."""
    elements: int = sum(column.column.stop - column.column.start for column in columns)
    return 8 + 8 * elements


def _values(column: Column, block: Block, rows: int) -> NDArray[Any]:
    """The values of a column; masked where there is none."""
    values = column.converted(block[column.type][:, column.column]).reshape(rows, *column.shape)
    if column.present is None:
        return values
    kind, flags = column.present
    absent = ~block[kind][:, list(flags)].any(axis=1)
    mask = np.broadcast_to(absent.reshape(rows, *[1 for _ in column.shape]), values.shape)
    return np.ma.MaskedArray(values, mask)


def _copied(
    times: NDArray[np.float64], block: Block
) -> tuple[NDArray[np.float64], dict[Any, NDArray[Any]]]:
    return times.copy(), {kind: values.copy() for kind, values in block.items()}
