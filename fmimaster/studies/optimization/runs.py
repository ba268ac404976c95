"""Trials by simulations of a system, which can be kept in a folder to continue a search that was cancelled."""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import count
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.base.errors import (
    AccuracyWarning,
    FileError,
    FmimasterError,
    Interrupted,
    OptionError,
    SimulationError,
)
from fmimaster.base.files import put_in_place, read_json, reason_of
from fmimaster.front.simulation import Simulation
from fmimaster.instants.instant import exact
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.results import Results
from fmimaster.results.table import Table
from fmimaster.steps.step_rule import FixedStep
from fmimaster.studies.optimization.trial import Groups, SimulationTrial, is_compared

log = logging.getLogger("fmimaster")

Told = Callable[[str], None]
"""A function that is called with a text before each simulation."""

_LARGEST = 1e100
"""Squares of larger values, and sums of them, may be infinite."""


class Runs:
    """Simulations of one system that differ by the trigger sequence, each done once.

    Parameters
    ----------
    simulation : Simulation
        With the algorithm GaussSeidel and a fixed step. All recorded floating-point columns are compared.
    prepared : Prepared
        Of this simulation.
    groups : Groups
    kept : KeptRuns, optional
    tell
        Called with a text before each simulation.

    Attributes
    ----------
    failures : trial → error
        Those that failed.
    seconds : name of the component → s
        Wall time of one communication step, including all sweeps, in the first simulation; empty before it.
    algorithm : GaussSeidel
    closed : bool
        Whether no more simulations are made. New trials then have no rows.
    """

    def __init__(
        self,
        simulation: Simulation,
        prepared: Prepared,
        groups: Groups,
        *,
        kept: KeptRuns | None = None,
        tell: Told = log.info,
    ) -> None:
        algorithm, rule = simulation.algorithm_used, prepared.schedule.rule
        if not isinstance(algorithm, GaussSeidel):
            raise OptionError(
                "A sequence is optimized for the algorithm GaussSeidel (gauss-seidel), not for "
                f"{type(algorithm).__name__}, whose results depend on it in another way. Leave the algorithm out, "
                "and sweeps (--sweeps)."
            )
        if algorithm.most_levels is not None:
            raise OptionError(
                "A sequence can be optimized only if the components step in its order, but with most_levels "
                "(--most-levels) the levels are independent of it. Leave most_levels out."
            )
        if not rule.is_fixed:
            raise OptionError(
                f"Runs with different sequences are compared at the points of a fixed step, but the step rule is "
                f"{type(rule).__name__}. Leave the step rule out (--step-rule), and the event clock (--event-clock)."
            )
        self._simulation, self.algorithm, self._size = simulation, algorithm, rule.exact_size
        self._system = prepared.description
        start, stop = prepared.schedule.start, prepared.schedule.stop
        self._times = grid(start, stop, self._size, simulation.output_interval)
        self._groups, self._kept, self._tell = groups, kept, tell
        self._rows: dict[SimulationTrial, NDArray[np.float64]] = {}
        self.failures: dict[SimulationTrial, FmimasterError] = {}
        self.seconds: dict[str, float] = {}
        self.closed = False

    @property
    def order(self) -> int:
        """Of the error of the algorithm."""
        return self.algorithm.order

    def __call__(self, trial: SimulationTrial) -> NDArray[np.float64] | None:
        """Rows at the grid points of the usual step size, shape (points, outputs); None if the run failed."""
        if trial not in self._rows and trial not in self.failures and not self.closed:
            try:
                rows = self._compared(self._results(trial))
            except Interrupted:
                raise
            except FmimasterError as error:
                log.warning("The run with %s failed: %s", described(trial), error)
                self.failures[trial] = error
            else:
                self._rows[trial] = rows
        return self._rows.get(trial)

    def done(self) -> Iterable[SimulationTrial]:
        """Trials that have rows, in the order in which they were made."""
        return tuple(self._rows)

    def _results(self, trial: SimulationTrial) -> Results:
        results = None if self._kept is None else self._kept.get(trial)
        if results is not None:
            return results
        self._tell(described(trial))
        simulation = replace(
            self._simulation,
            system=self._system,
            sequence=self._groups.components(trial.sequence),
            algorithm=replace(self.algorithm, stale=self._groups.pairs(trial.stale)),
            step_size=FixedStep(self._size / 2 if trial.halved else self._size),
            output_interval=None,
            error_estimate=False,
        )
        with warnings.catch_warnings():
            if self._rows:  # all runs would give the same error
                warnings.simplefilter("ignore", AccuracyWarning)
            results = simulation.run()
        if not self.seconds:
            steps = max(1, results.statistics.steps)
            self.seconds = {one.name: one.seconds / steps for one in results.statistics.instances}
        if self._kept is not None:
            self._kept.put(trial, results)
        return results

    def at_grid(self, results: Table) -> Results:
        """The rows at the grid points of the usual step size, of rows at one time the last one."""
        table = results.expand()
        if table.time[-1] < self._times[-1]:
            raise SimulationError(f"It ended at t = {table.time[-1]:g} s.", time=table.time[-1])
        rows = np.searchsorted(table.time, self._times, "right") - 1
        return Results(
            time=self._times, columns={name: table[name][rows] for name in sorted(table.names)}
        )

    def _compared(self, results: Table) -> NDArray[np.float64]:
        """The numbers that are compared, shape (points, outputs)."""
        table = self.at_grid(results)
        columns = {n: table[n].astype(float) for n in table.names if is_compared(table[n])}
        if not columns:
            raise OptionError(
                "No floating-point output is recorded, so results cannot be compared. Record some (--output-variable)."
            )
        for name, values in columns.items():
            wrong = ~(np.abs(values) < _LARGEST)
            if np.any(wrong):
                k = int(np.argmax(wrong))
                raise SimulationError(
                    f"Output '{name}' is {values[k]:g} at t = {self._times[k]:g} s, so the run cannot be compared "
                    "with others. Use a smaller step size.",
                    time=float(self._times[k]),
                )
        return np.stack(list(columns.values()), axis=1)


def grid(
    start: Fraction, stop: Fraction, size: Fraction, interval: float | None = None
) -> NDArray[np.float64]:
    """The points of a fixed step and the stop time, in s; with an interval only the first one at or after each multiple of
    it."""
    count = floor((stop - start) / size)
    every = max(Fraction(1), exact(interval or 0) / size)
    steps = sorted({ceil(k * every) for k in range(floor(count / every) + 1)})
    times = [start + k * size for k in steps]
    if times[-1] != stop:
        times.append(stop)
    return np.array([float(t) for t in times])


def described(trial: SimulationTrial) -> str:
    """A trial in words."""
    words = ", ".join(trial.sequence)
    words += "".join(f"; {a} -> {b} stale" for a, b in sorted(trial.stale))
    return words + "; half the step size" * trial.halved


_INDEX = "runs.json"
_FORM = 1
_CHUNK = 2**20


class KeptRuns:
    """A folder with a CSV file for each run, and an index with the trial of each file.

    Parameters
    ----------
    folder
        Created if it does not exist.
    facts
        Properties that all runs have in common; a folder of other runs is refused.

    Raises
    ------
    FileError
        If the folder belongs to other runs, or cannot be read or written.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self._folder = folder
        self._facts = json.loads(json.dumps(facts))
        self._files: dict[SimulationTrial, str] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self._index.exists():
                self._read()
            elif any(folder.iterdir()):
                raise FileError(
                    f"The folder '{folder}' contains other files. Choose a new or empty one."
                )
        except OSError as error:
            raise self._told(error) from error

    @property
    def _index(self) -> Path:
        return self._folder / _INDEX

    def _read(self) -> None:
        try:
            content = read_json(self._index)
            known, runs = content["facts"], content["runs"]
            trials = {
                run["file"]: SimulationTrial(
                    tuple(run["sequence"]),
                    frozenset((a, b) for a, b in run["stale"]),
                    bool(run["halved"]),
                )
                for run in runs
            }
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"'{self._index}' is not an index of kept runs: {error}. Choose another folder."
            ) from error
        if content.get("form") != _FORM or known != self._facts:
            other = [k for k in self._facts if known.get(k) != self._facts[k]]
            raise FileError(
                f"The runs in '{self._folder}' are those of another system, or have other settings "
                f"({', '.join(other) or 'form'}). Choose a new folder."
            )
        self._files = {
            trial: file for file, trial in trials.items() if (self._folder / file).is_file()
        }

    def get(self, trial: SimulationTrial) -> Results | None:
        """The rows of a trial, None if it is not kept."""
        file = self._files.get(trial)
        return None if file is None else Results.read(self._folder / file)

    def put(self, trial: SimulationTrial, results: Results) -> None:
        """Store the rows of a trial: first the rows, then the index, so an interruption leaves no wrong entry."""
        taken = set(self._files.values())  # a file may have been deleted
        file = next(f for k in count(1) if (f := f"run-{k:04}.csv") not in taken)
        results.write(self._folder / file)
        self._files[trial] = file
        content = {
            "form": _FORM,
            "facts": self._facts,
            "runs": [
                {
                    "file": name,
                    "sequence": t.sequence,
                    "stale": sorted(t.stale),
                    "halved": t.halved,
                }
                for t, name in self._files.items()
            ],
        }
        part = self._index.with_name(f"{_INDEX}.part")
        try:
            part.write_text(json.dumps(content, indent=1), encoding="utf-8", newline="\n")
            put_in_place(part, self._index)
        except OSError as error:
            raise self._told(error) from error

    def _told(self, error: OSError) -> FileError:
        return FileError(
            f"Runs cannot be kept in '{self._folder}': {reason_of(error)}. Choose another folder."
        )


def digest(files: Iterable[Path]) -> str:
    """A number for the content of some files, and of all files in folders."""
    found = hashlib.sha256()
    for path in files:
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in inside:
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    found.update(chunk)
    return found.hexdigest()
