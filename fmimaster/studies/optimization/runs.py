"""Trials by simulations of a system."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.base.errors import (
    AccuracyWarning,
    FmimasterError,
    Interrupted,
    OptionError,
    SimulationError,
)
from fmimaster.front.simulation import Simulation
from fmimaster.instants.instant import exact
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.results import Results
from fmimaster.results.table import Table
from fmimaster.steps.step_rule import FixedStep
from fmimaster.studies.optimization.groups import Groups
from fmimaster.studies.optimization.kept_runs import KeptRuns
from fmimaster.studies.optimization.trial import SimulationTrial, is_compared

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
        if not isinstance(rule, FixedStep):
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
