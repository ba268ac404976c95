"""Many runs of one simulation with different start values, in C: its image is run again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, OptionError, did_you_mean
from fmimaster.base.own_folder import OwnFolder
from fmimaster.base.text import listed
from fmimaster.configure.settings import Settings
from fmimaster.export.export import settled
from fmimaster.export.reasons import why_not
from fmimaster.fmu.load import Loader
from fmimaster.fmu.process_state import fmu_output_to_log
from fmimaster.instants.grid import Grid
from fmimaster.plan.variables import Recorded
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.results import Results
from fmimaster.run.choice import native_executor
from fmimaster.session.repeated import places
from fmimaster.session.session import Session
from fmimaster.system.clocks import exact
from fmimaster.system.model import DataType
from fmimaster.system.resolved import Varied
from fmimaster.system.varied import values_in_a_run

if TYPE_CHECKING:
    from fmimaster.export.loaded import LoadedSystem

AT_ONCE = 0.2
"""Wall time in s of the runs that are made before Ctrl-C is looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class ManyRuns(Mapping[str, NDArray[np.float64]]):
    """The results of many runs: a mapping from the name of a column to its values, shape (runs, rows).

    Parameters
    ----------
    time : shape (rows,), in s
    columns : name → shape (runs, rows)
        NaN where a run has failed.
    errors : sequence of str
        What has ended each run; empty if it is complete.
    """

    time: NDArray[np.float64]
    columns: Mapping[str, NDArray[np.float64]]
    errors: Sequence[str]

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.columns[name]

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


class CompiledRuns:
    """Runs of one simulation in C, without Python; made by :meth:`fmimaster.Simulation.compiled`.

    Attributes
    ----------
    time : shape (rows,), in s
        Of the rows of each run.
    """

    def __init__(
        self,
        settings: Settings,
        names: Sequence[str],
        record: Sequence[str] | None,
        output_interval: float | None,
        first: Results,
    ) -> None:
        if native_executor() is None:
            raise OptionError(
                "Runs in C need the kernel, which was not built when fmimaster was installed. Use repeated()."
            )
        self._loader, self._folder = Loader(), OwnFolder()
        self._system: LoadedSystem | None = None
        try:
            self._prepared = prepared = settled(settings, self._loader, names)
            completed = prepared.completed(settings)
            if reasons := why_not(prepared, completed):
                every = "".join(f"\n  - {reason}" for reason in reasons)
                raise OptionError(f"The runs cannot be made in C. Use repeated().{every}")
            places(prepared)  # refuses what cannot vary
            self._varied = [one for varied in prepared.varied.values() for one in varied]
            self._columns = _columns(prepared, record)
            self.time, self._every = _rows(prepared, output_interval)
            self._system = self._load(completed)
            self._check(first)
        except BaseException:
            self.close()
            raise

    def _load(self, settings: Settings) -> LoadedSystem:
        from fmimaster.export.loaded import LoadedSystem  # needs the kernel

        prepared, loader = self._prepared, self._loader
        for one in self._varied:
            v = one.variable
            if v.size != 1 or v.type in (DataType.STRING, DataType.BINARY):
                raise DescriptionError(
                    f"'{one.component}.{v.name}' is an array or text. In C, single numbers can vary. Use repeated()."
                )
        with fmu_output_to_log():
            session = Session(prepared, loader, settings)
            folders = [str(loader.file(c.source, c.interface).folder) for c in prepared.components]
            names = [(one.component, one.variable.name) for one in self._varied]
            shape = len(self.time), self._every
            system = LoadedSystem(session, folders, self._folder.path, names, self._columns, shape)
            loader.free_instances()
        return system

    def _check(self, first: Results) -> None:
        """Compare a run with the usual start values, and its repetition, with those of Python."""
        usual = np.array([[float(one.usual[0]) for one in self._varied]] * 2).reshape(2, -1)
        runs = self._runs(usual)
        if runs.errors[0]:
            raise OptionError(f"The run in C has failed: {runs.errors[0]}. Use repeated().")
        rows = np.flatnonzero(np.isin(first.time, self.time))
        chosen = np.searchsorted(self.time, first.time[rows])
        other = [n for n, v in runs.items() if not _are_equal(v[0, chosen], first[n][rows])]
        if other:
            raise OptionError(
                f"In C, {listed([repr(n) for n in other], 3)} differ from those of run(). Use repeated()."
            )
        if not all(_are_equal(v[0], v[1]) for v in runs.values()):
            raise OptionError(
                "After Reset, values differ from those of new instances: an FMU does not reset all that it remembers. Use "
                "repeated(), which makes new ones."
            )

    def __call__(self, values: Mapping[str, ArrayLike] = MappingProxyType({})) -> ManyRuns:
        """Many runs.

        Parameters
        ----------
        values
            Name → start values, one for each run; those that are left out are those of the simulation.

        Raises
        ------
        OptionError, DescriptionError
            If a name does not vary, or its variable cannot have a value; if the numbers of values differ.
        """
        if self._system is None:
            raise OptionError("The compiled runs are closed. Call them inside of their 'with'.")
        known = self._prepared.varied
        if unknown := next((name for name in values if name not in known), None):
            raise OptionError(
                f"'{unknown}' does not vary in these runs.{did_you_mean(unknown, known)} Name it in compiled()."
            )
        arrays = {name: np.atleast_1d(np.asarray(v)) for name, v in values.items()}
        lengths = {len(array) for array in arrays.values()} or {1}
        if len(lengths) > 1 or any(a.ndim != 1 for a in arrays.values()):
            raise OptionError(
                f"Start values of runs: {listed([f'{n}: {len(a)}' for n, a in arrays.items()], 5)}. Expected one value of "
                "each name for each run."
            )
        n, columns = lengths.pop(), []
        for name, varied in known.items():
            for one in varied:
                given = arrays.get(name)
                columns.append(
                    np.full(n, float(one.usual[0])) if given is None else _values(one, given)
                )
        return self._runs(np.stack(columns, axis=1) if columns else np.empty((n, 0)))

    def _runs(self, values: NDArray[np.float64]) -> ManyRuns:
        assert self._system is not None
        n, at, size, rows = len(values), 0, 1, list[NDArray[np.float64]]()
        errors = [""] * n
        while at < n:
            begun, end = perf_counter(), min(at + size, n)
            found, has_failed = self._system.runs(values[at:end])
            rows.append(found)
            if perf_counter() - begun < AT_ONCE / 2:
                size *= 2
            for k in np.flatnonzero(has_failed).tolist():  # again, to hear why
                self._system.runs(values[at + k : at + k + 1])
                errors[at + k] = "; ".join(self._system.said) or "the run has failed"
            at = end
        every = np.concatenate(rows) if rows else np.empty((0, len(self.time), len(self._columns)))
        columns = {c.name: c.converted(every[:, :, j]) for j, c in enumerate(self._columns)}
        return ManyRuns(self.time, columns, errors)

    def close(self) -> None:
        """Free the FMUs."""
        if self._system is not None:
            self._system.free()
            self._system = None
        self._loader.close()
        self._folder.remove()

    def __enter__(self) -> CompiledRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _are_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.tobytes() == np.ascontiguousarray(other).tobytes()


def _values(varied: Varied, given: NDArray[Any]) -> NDArray[np.float64]:
    """What a variable gets in each run."""
    parameter, is_float = varied.parameter, varied.variable.type is DataType.FLOAT64
    is_plain = parameter.transformation.is_identity and parameter.unit is None
    if is_float and is_plain and given.dtype.kind in "fi":
        return given.astype(float)
    found = [values_in_a_run(varied, value)[0] for value in given.tolist()]
    return np.array(found, dtype=float)


def _columns(prepared: Prepared, record: Sequence[str] | None) -> list[Recorded]:
    """Those of the results of each run."""
    known = {c.name: c for c in prepared.plan.recorded}
    chosen = known if record is None else record
    found = list[Recorded]()
    for name in chosen:
        column = known.get(name)
        if column is None:
            raise OptionError(
                f"record: there is no recorded '{name}'.{did_you_mean(name, known)} The simulation must record it."
            )
        is_number = column.type is DataType.FLOAT64 and not column.shape and column.present is None
        if is_number:
            found.append(column)
        elif record is not None:
            raise OptionError(
                f"record: '{name}' is no single Float64 number. In C only those are recorded. Use repeated()."
            )
    return found


def _rows(prepared: Prepared, output_interval: float | None) -> tuple[NDArray[np.float64], int]:
    """Times of the rows in s, and the number of steps from one to the next."""
    schedule = prepared.schedule
    step, span = schedule.rule.exact_size, schedule.stop - schedule.start
    interval = step if output_interval is None else exact(output_interval)
    for what, value in (("output_interval", interval), ("The time of the run", span)):
        if (value / step).denominator != 1 or value <= 0:
            raise OptionError(
                f"{what} of {float(value):.12g} s is no multiple of the step size, {float(step):.12g} s, as runs in C need "
                "it. Choose another step size, or use repeated()."
            )
    points = schedule.rule.ahead(
        schedule.rule.begin(schedule.base, schedule.base.ticks(schedule.start))
    )
    assert isinstance(points, Grid)  # others are refused
    every = int(interval / step) * len(points.offsets)
    times = [float(schedule.start + k * interval) for k in range(int(span / interval) + 1)]
    return np.array(times), every
