"""The runs of a sweep, chunk by chunk: the same code in this process, in processes of their own, and on Dask."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from time import perf_counter
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import (
    AccuracyError,
    AccuracyWarning,
    FmimasterError,
    Interrupted,
    OptionError,
    SimulationError,
)
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.session.repeated import RepeatedRuns
from fmimaster.studies.sweeps.scalars import Scalars, checked_scalars
from fmimaster.system.start_values import OUTSIDE

log = logging.getLogger("fmimaster")

_MOST_MESSAGES = 20
"""Different messages of a chunk that are passed on."""
_IN_A_SCRIPT = b"__main__"


@dataclass(frozen=True)
class Chunk:
    """Consecutive runs.

    Parameters
    ----------
    first : int
        Number of the first one.
    values
        For each run the values of the parameters.
    """

    first: int
    values: Sequence[tuple[Any, ...]]

    @property
    def end(self) -> int:
        """Number of the run behind the last one."""
        return self.first + len(self.values)

    def part(self, begin: int, end: int) -> Chunk:
        """The runs from one number up to another one."""
        return Chunk(begin, self.values[begin - self.first : end - self.first])


@dataclass(frozen=True)
class ChunkResult:
    """What the runs of a chunk gave.

    Parameters
    ----------
    first : int
        Number of the first run.
    errors, warnings
        A text for each run; empty if there is none.
    names
        Of the scalars; empty if no run was complete.
    scalars : shape (runs, names)
        NaN for runs with an error.
    rows : tuple of bytes
        Parquet files with all rows of the runs.
    messages
        What was logged, each text once.
    seconds : float
        Wall time of the runs in s.
    """

    first: int
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    names: tuple[str, ...]
    scalars: NDArray[np.float64]
    rows: tuple[bytes, ...] = ()
    messages: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def end(self) -> int:
        """Number of the run behind the last one."""
        return self.first + len(self.errors)

    @staticmethod
    def lost(run: int, error: str) -> ChunkResult:
        """Of a run that has ended its process."""
        return ChunkResult(run, (error,), ("",), (), np.empty((1, 0)))

    @staticmethod
    def joined(parts: Sequence[ChunkResult]) -> ChunkResult:
        """One for consecutive chunks."""
        names = one_set_of_names([part.names for part in parts])
        empty = np.full((1, len(names)), np.nan)
        scalars = [p.scalars if p.names else empty.repeat(len(p.errors), 0) for p in parts]
        return ChunkResult(
            parts[0].first,
            tuple(text for part in parts for text in part.errors),
            tuple(text for part in parts for text in part.warnings),
            names,
            np.concatenate(scalars),
            tuple(content for part in parts for content in part.rows),
            tuple(dict.fromkeys(text for part in parts for text in part.messages)),
            sum(part.seconds for part in parts),
        )


def one_set_of_names(found: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The names that all scalars have; those that have none do not count.

    Raises
    ------
    OptionError
        If the function for the scalars does not always return the same names.
    """
    different = [*dict.fromkeys(filter(None, found))]
    if len(different) > 1:
        raise OptionError(
            f"The function for the scalars returned {different[0]} for one run and {different[1]} for another. Return the "
            "same names in the same order for each run; a number that a run does not have is NaN."
        )
    return different[0] if different else ()


@dataclass(frozen=True)
class SweepWork:
    """What a worker needs to make any run of a sweep.

    Parameters
    ----------
    names
        Of the parameters.
    keeps_rows : bool
        Whether all rows are kept, and not only scalars.
    fingerprint
        What the simulation is where the sweep was started: what → hash or version.
    """

    simulation: Simulation
    names: tuple[str, ...]
    scalars: Scalars
    keeps_rows: bool
    fingerprint: Mapping[str, str]

    def pickled(self) -> bytes:
        """As bytes, for other processes.

        Raises
        ------
        OptionError
            If it has a function or an object that other processes do not find.
        """
        try:
            content = pickle.dumps(self)
            if _IN_A_SCRIPT not in content:
                return content
            why = "is defined in the script that is run or in a notebook"
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            why = f"cannot be sent to another process ({error})"
        try:
            # Dask brings it; it can send functions of scripts
            import cloudpickle

            return cloudpickle.dumps(self)  # type: ignore[no-any-return]
        except ImportError:
            remedy = "or install cloudpickle, which can send it"
        except Exception as error:
            remedy, why = "", f"cannot be sent to another process ({error})"
        raise OptionError(
            f"The function for the scalars, or an object of the simulation, {why}. Define it in a module of its own, and "
            f"import it, or sweep in this process: executor=ThisProcess(){f', {remedy}' if remedy else ''}."
        )


class Worker:
    """Makes runs of a sweep, one after the other, by instances that it keeps. A context manager, which frees them."""

    def __init__(self, work: SweepWork) -> None:
        self._work = work
        self._runs: RepeatedRuns | None = None

    def run(self, chunk: Chunk, begin: Callable[[int], None] = lambda run: None) -> ChunkResult:
        """Make the runs of a chunk; those that fail have their errors in the result.

        Parameters
        ----------
        begin
            Called with the number of each run before it begins.

        Raises
        ------
        InputError, ProgramError
            If the system cannot be simulated.
        Interrupted
        """
        with _heard() as messages, catch_warnings():
            simplefilter("ignore", AccuracyWarning)  # the statistics of the run have them
            self._open()
            begun = perf_counter()
            kept = _Kept(self._work, chunk.first)
            for run, values in enumerate(chunk.values, chunk.first):
                begin(run)
                kept.take(run, *self._one(dict(zip(self._work.names, values, strict=True))))
            return replace(
                kept.result(),
                messages=tuple(messages),
                seconds=perf_counter() - begun,
            )

    def _one(self, values: Mapping[str, Any]) -> tuple[Results | None, str]:
        """The results of a run, and its error."""
        try:
            return self._open()(values), ""
        except Interrupted:
            raise
        except (SimulationError, AccuracyError) as error:
            return error.results, str(error)
        except FmimasterError as error:
            return None, str(error)

    def _open(self) -> RepeatedRuns:
        """What makes runs; a new one after an error that allows no further run."""
        if self._runs is None or not self._runs.is_open:
            self.close()
            self._runs = self._work.simulation.repeated(self._work.names)
        return self._runs

    def close(self) -> None:
        """Free the instances."""
        if self._runs is not None:
            self._runs.close()
            self._runs = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Kept:
    """What is kept of the runs of a chunk."""

    def __init__(self, work: SweepWork, first: int) -> None:
        self._work, self._first = work, first
        self._errors, self._warnings = list[str](), list[str]()
        self._found: list[dict[str, float] | None] = []
        self._batches: list[Any] = []

    def take(self, run: int, results: Results | None, error: str) -> None:
        """Keep a run: its scalars if it is complete, its rows anyway."""
        found = None
        if results is not None and not error:
            try:
                found = checked_scalars(self._work.scalars(results))
            except Exception as failed:  # of a function of the user
                error = f"The scalars: {type(failed).__name__}: {failed}"
        if results is not None and self._work.keeps_rows:
            # only those that keep rows need pyarrow
            from fmimaster.results.parquet import batch_of

            table = results.expand()
            columns = {"run": np.full(table.rows, run), **table}
            self._batches.append(batch_of(columns, {"time": "s", **table.units}))
        self._errors.append(error)
        self._warnings.append("\n".join(results.statistics.warnings) if results is not None else "")
        self._found.append(found)

    def result(self) -> ChunkResult:
        """All of it."""
        names = one_set_of_names([() if f is None else tuple(f) for f in self._found])
        nothing = dict.fromkeys(names, np.nan)
        numbers = [[*(nothing if f is None else f).values()] for f in self._found]
        rows: tuple[bytes, ...] = ()
        if self._batches:
            from fmimaster.results.parquet import write_batches

            stream = BytesIO()
            write_batches(stream, self._batches)
            rows = (stream.getvalue(),)
        return ChunkResult(
            self._first,
            tuple(self._errors),
            tuple(self._warnings),
            names,
            np.array(numbers, float).reshape(len(numbers), len(names)),
            rows,
        )


@contextmanager
def _heard() -> Iterator[dict[str, None]]:
    """Collect warnings of the log instead of showing them: they are those of many runs, and of each worker."""
    messages: dict[str, None] = {}

    def hear(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.levelno < logging.WARNING:
            return True
        # of the values of all runs, the design has been warned of
        if not text.startswith(OUTSIDE) and len(messages) < _MOST_MESSAGES:
            messages[text] = None
        return False

    log.addFilter(hear)
    try:
        yield messages
    finally:
        log.removeFilter(hear)
