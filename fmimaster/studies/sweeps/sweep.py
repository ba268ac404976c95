"""A sweep: many runs of a simulation with other start values, in a folder that grows and can be continued."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from inspect import getsource
from math import inf
from time import monotonic
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, Interrupted, OptionError
from fmimaster.base.files import given_path
from fmimaster.base.installation import optional
from fmimaster.base.text import count
from fmimaster.configure.setting_rows import ROWS
from fmimaster.front.simulation import Simulation
from fmimaster.session.origin import fingerprint
from fmimaster.studies.sweeps.checked import DesignRuns, prepared_for, runs_of
from fmimaster.studies.sweeps.data_set import OWN_COLUMNS, DataSet, Description, taken
from fmimaster.studies.sweeps.design import Design
from fmimaster.studies.sweeps.design_table import DesignTable
from fmimaster.studies.sweeps.executors import Processes, SweepExecutor, Team
from fmimaster.studies.sweeps.scalars import (
    USUAL,
    NamedScalars,
    Scalars,
    named_scalars,
    refuse_taken,
)
from fmimaster.studies.sweeps.swept import SweptRuns
from fmimaster.studies.sweeps.work import Chunk, ChunkResult, SweepWork

log = logging.getLogger("fmimaster")

_LEAST_SECONDS = 0.5
"""Of the runs of a chunk: much more than its way to a worker takes, and little enough to be lost."""
_MOST_BYTES = 64 * 2**20
"""Of the rows of a chunk."""
_FILES = 1000
"""So many chunks are enough: with more runs, chunks are longer."""
_FASTEST = 1e-4
"""[s] A run takes more."""
_LOOK = 0.1
"""[s] Wall time between two calls of the progress function."""
_MOST_MESSAGES = 20
"""Warnings of different texts that are shown."""


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is.

    Attributes
    ----------
    done, total : int
        Runs that are complete, and all.
    failed : int
        Those of them that have an error.
    kept : int
        Those of them that were complete before.
    remaining : float or None
        Wall time in s that is left, estimated; None at first.
    """

    done: int
    total: int
    failed: int
    kept: int
    remaining: float | None


Callback = Callable[[SweepProgress], object]


def sweep(
    simulation: Simulation,
    design: Design | Any,
    folder: str | os.PathLike[str],
    *,
    scalars: str | Sequence[str] | Scalars = USUAL,
    rows: bool = False,
    executor: SweepExecutor | None = None,
    progress: Callback | None = None,
) -> SweptRuns:
    """Run a simulation many times with other start values, on all cores or on a cluster.

    Each run has the results of :meth:`fmimaster.Simulation.run` with these start values, as :meth:`Simulation.repeated`
    makes them. They are in a Parquet data set, which other programs can read, also while it grows. If the folder has a part
    of this sweep already, only the other runs are made: the same call continues a sweep that was ended.

    Parameters
    ----------
    simulation
        The system and how to simulate it; what varies are its start values.
    design
        ``Sobol``, ``LatinHypercube`` or ``FullGrid`` of :mod:`fmimaster.studies.sweeps`, or a table with a column for each
        parameter: a mapping, a structured array or a ``pandas.DataFrame``. Names are those of ``start_values``.
    folder : path
        For the data set: a new or empty folder, or that of the same sweep.
    scalars
        What is kept of each run: texts such as ``"max(wheel.force)"``, with the reductions first, last, min, max, peak (the
        largest absolute value), mean, rms and integral, and globs of columns; or a function of the results that returns a
        mapping of names to numbers. Default: last, min and max of all columns.
    rows : bool
        Whether the rows of all runs are kept, too; with ``output_interval`` of the simulation they are few.
    executor
        ``ThisProcess()``, ``Processes(workers)`` or ``Dask(...)``. Default: a process for each core.
    progress
        Called with a :class:`SweepProgress` about ten times per second.

    Returns
    -------
    SweptRuns
        The data set. Runs that failed have their errors in it.

    Raises
    ------
    InputError, ProgramError
        If the system cannot be simulated, a parameter cannot vary or have its values, or the folder has something else.
    FileError
        If the folder cannot be written; what was complete stays.
    Interrupted
        If Ctrl-C was pressed; what was complete stays.

    Examples
    --------
    >>> from fmimaster import Simulation, reference_path, sweep
    >>> from fmimaster.studies.sweeps import Sobol
    >>> car = Simulation(reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=1)
    >>> design = Sobol({"wheel.dc": (500, 2000)}, n=64)
    >>> found = sweep(car, design, "car-sweep", scalars="max(chassis.velocity)")  # doctest: +SKIP
    """
    optional("pyarrow", "parquet", "A sweep")
    if not isinstance(design, Design):
        design = DesignTable(design)
    place = given_path(folder).absolute()
    simulation = _anywhere(simulation)
    prepared = prepared_for(simulation, design.names)
    runs = runs_of(design, prepared)
    refuse_taken([*runs.columns], OWN_COLUMNS)
    if not callable(scalars):
        given = [scalars] if isinstance(scalars, str) else scalars
        scalars = named_scalars(given, prepared.plan.recorded)
        refuse_taken([f"{how}({name})" for how, name in scalars.chosen], [*runs.columns])
    identity = fingerprint(simulation, [prepared])
    work = SweepWork(simulation, (*runs.columns,), scalars, rows, identity)
    description = Description.of(
        {
            "system": prepared.description.system.name,
            "runs": runs.number,
            "design": {**design.facts(), "hash": runs.digest},
            "scalars": _scalar_facts(scalars),
            "rows": rows,
            "simulation": identity,
            "settings": {name: str(value) for name, value in simulation.changed().items()},
        }
    )
    with taken(place, description):
        data_set = DataSet(place, runs)
        data_set.take_up()
        if not data_set.done.all():
            _make(work, runs, data_set, executor or Processes(), progress or (lambda _: None))
    found = SweptRuns.read(place)
    if found.failed:
        log.warning("%s", found.failures_in_words())
    return found


def _make(
    work: SweepWork,
    runs: DesignRuns,
    data_set: DataSet,
    executor: SweepExecutor,
    progress: Callback,
) -> None:
    """Make the runs that are missing."""
    with _what_stays(data_set), executor.team(work) as team:
        Shared(runs, data_set, progress).make(team)


@contextmanager
def _what_stays(data_set: DataSet) -> Iterator[None]:
    """Say in errors which runs are complete."""

    def words() -> str:
        return f"{int(data_set.done.sum())} of {count(len(data_set.done), 'run')} are complete"

    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {words()}; the same call makes the others.") from None
    except FileError as error:
        raise FileError(
            f"{error} {words()}. Make room, or mend the folder; then the same call makes the others."
        ) from error
    except OptionError as error:
        if not data_set.done.any():
            raise
        raise OptionError(f"{error} {words()}.") from error


class Shared:
    """The runs that are missing, given to workers in chunks of a good size."""

    def __init__(self, runs: DesignRuns, data_set: DataSet, progress: Callback) -> None:
        self._runs, self._data_set, self._progress = runs, data_set, progress
        self._kept = int(data_set.done.sum())
        self._left = data_set.gaps()[::-1]
        self._pace = (0.0, 0.0)
        """Of a run of the last chunk: wall time in s, and bytes of its rows."""
        self._begun = monotonic()
        self._messages: dict[str, None] = {}

    def make(self, team: Team) -> None:
        """Make all of them."""
        self._tell()
        while self._left or team.pending:
            while self._left and team.pending < team.places:
                team.give(self._next(team.places))
            for found in team.results(_LOOK):
                self._take(found)
            self._tell()
        self._data_set.end()

    def _next(self, places: int) -> Chunk:
        first, end = self._left.pop()
        middle = min(end, first + self._size(places))
        if middle < end:
            self._left.append((middle, end))
        return Chunk(first, self._runs.values(first, middle))

    def _size(self, places: int) -> int:
        """How many runs the next chunk has."""
        seconds, size = self._pace
        if not seconds:
            return 1
        left = sum(end - first for first, end in self._left)
        wanted = min(self._runs.number / _FILES, left / places)
        fitting = _MOST_BYTES / size if size else inf
        return max(1, int(min(max(_LEAST_SECONDS / seconds, wanted), fitting)))

    def _take(self, found: ChunkResult) -> None:
        self._data_set.add(found)
        runs = len(found.errors)
        self._pace = max(found.seconds / runs, _FASTEST), sum(map(len, found.rows)) / runs
        for text in found.messages:
            if text not in self._messages and len(self._messages) < _MOST_MESSAGES:
                self._messages[text] = None
                log.warning("%s", text)

    def _tell(self) -> None:
        done, total = int(self._data_set.done.sum()), self._runs.number
        new = done - self._kept
        remaining = (monotonic() - self._begun) / new * (total - done) if new else None
        self._progress(SweepProgress(done, total, self._data_set.failed, self._kept, remaining))


def _anywhere(simulation: Simulation) -> Simulation:
    """The simulation with absolute paths: workers may have other working directories."""
    paths = {
        name: given_path(value).absolute()
        for name in ("system", *(row.name for row in ROWS.values() if row.is_file))
        if isinstance(value := getattr(simulation, name), str | os.PathLike)
    }
    written = [row for row in ROWS.values() if row.writes and getattr(simulation, row.name)]
    if written:
        raise OptionError(
            f"{written[0].name} ({written[0].spelled}) is for a single run. Leave it out of a sweep."
        )
    return replace(simulation, **paths)  # type: ignore[arg-type]


def _scalar_facts(scalars: Scalars) -> Any:
    """The names of scalars, or what identifies a function."""
    if isinstance(scalars, NamedScalars):
        return [f"{how}({name})" for how, name in scalars.chosen]
    name = getattr(scalars, "__qualname__", type(scalars).__qualname__)
    try:
        text = getsource(scalars)
    except (OSError, TypeError):
        text = ""
    return {"function": name, "text": sha256(text.encode()).hexdigest()}
