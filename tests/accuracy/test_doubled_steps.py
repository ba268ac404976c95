"""Step doubling on the reference FMUs."""

from __future__ import annotations

from typing import Any

import pytest

from fmimaster import AccuracyWarning, Results, Simulation, reference_path, simulate
from fmimaster.algorithms import Algorithm, Aligned, Jacobi, Refreshed, Richardson, Waveform
from fmimaster.events import EarlyReturn, LookAhead, Predictive
from fmimaster.inputs import ADAPTIVE, LINEAR, Polynomial
from fmimaster.run.executor import Backend
from fmimaster.steps import PID, EnergyDoubling, PowerResidual, StepDoubling
from fmimaster.steps.estimator import Estimator
from fmimaster.studies.demos.quarter_car import LINEAR_CAR, measures

CORRECTOR = Waveform(Jacobi(LINEAR), sweeps=2, restart_sweeps=2)
"""A step with extrapolated inputs, and the same step again with inputs interpolated."""


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST], ids=lambda b: b.value)
def test_step_doubling_around_early_returns_finds_all_twelve_events(
    backend: Backend,
) -> None:
    e2 = Waveform(Aligned(Jacobi(Polynomial(2, 2))), sweeps=2)
    path = reference_path("systems/two-mass-b3-fmi3.ssp")

    def run(algorithm: Algorithm) -> Results:
        options: dict[str, Any] = {"step_size": 0.2, "stop_time": 20, "backend": backend}
        return Simulation(path, algorithm=algorithm, event_clock=EarlyReturn(), **options).run()

    once, twice = run(e2), run(Richardson(e2))
    assert len(once.events) == len(twice.events) == 12
    assert [e.name for e in twice.events] == [e.name for e in once.events]
    times = [[e.time for e in r.events] for r in (once, twice)]
    assert times[1] == pytest.approx(times[0], abs=1e-3)


def test_events_are_predicted_beside_steps_that_are_doubled_and_rejected() -> None:
    """The event clock and the rule both undo steps: the clock's events stay where they are."""
    path = reference_path("systems/two-mass-b1-fmi3.ssp")
    clock: dict[str, Any] = {"algorithm": Jacobi(ADAPTIVE), "event_clock": Predictive()}
    rule = PID(
        0.2, smallest=1e-3, first=0.2, estimators=(StepDoubling(1e-5, 1e-5),), reject_above=1.0
    )
    doubled = simulate(path, step_size=rule, stop_time=20, **clock)
    usual = simulate(path, stop_time=20, **clock)
    assert doubled.statistics is not None
    assert doubled.statistics.rejections > 0
    assert len(usual.events) == 12
    assert [e.name for e in doubled.events] == [e.name for e in usual.events]
    times = [[e.time for e in r.events] for r in (usual, doubled)]
    assert times[1] == pytest.approx(times[0], abs=1e-5)


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST], ids=lambda b: b.value)
def test_events_that_fmus_execute_in_the_first_half_of_a_step_are_observed(
    backend: Backend,
) -> None:
    """A step begins at a communication point; the one between its halves is none, also not for LookAhead."""
    path = reference_path("systems/two-mass-b1-fmi3.ssp")

    def events(algorithm: Algorithm) -> list[tuple[str, float]]:
        options: dict[str, Any] = {"step_size": 0.02, "stop_time": 2, "backend": backend}
        results = simulate(path, algorithm=algorithm, event_clock=LookAhead(), **options)
        return [(e.name, e.time) for e in results.events]

    with pytest.warns(AccuracyWarning, match="Steps are too long"):  # the first one
        usual = events(Jacobi(Polynomial(2, 1)))
    doubled = events(Richardson(Jacobi(Polynomial(2, 1))))
    assert [name for name, _ in doubled] == [name for name, _ in usual] == ["collision"] * 2
    assert [time for _, time in doubled] == pytest.approx([time for _, time in usual], abs=1e-4)


ROLLBACK = [
    # algorithm, estimator, tolerance, split, communication step and power error of the row
    (Jacobi(), EnergyDoubling(), 1.2e-6, "a", 3e-3, 0.677),
    (Refreshed(Jacobi(LINEAR)), EnergyDoubling(), 1.98e-8, "a", 3e-3, 0.132),
    (CORRECTOR, PowerResidual(), 1.59e-8, "a", 2e-3, 0.279),
    (CORRECTOR, PowerResidual(), 1.01e-7, "b", 2e-3, 0.453),
]


@pytest.mark.parametrize(
    ("algorithm", "estimator", "tolerance", "split", "step", "error"), ROLLBACK
)
def test_rows_with_rollback_are_those_of_the_source(
    algorithm: Algorithm,
    estimator: Estimator,
    tolerance: float,
    split: str,
    step: float,
    error: float,
) -> None:
    """energy.md 5, rows "Richardson" (two kept steps of 1.5 ms in each) and "one corrector", at equal numbers of doSteps.

    3 %: a mean step that is 1 % longer has an error that is 2 to 3 % larger, at orders 2 and 3.
    """
    results = simulate(
        reference_path(f"systems/quarter-car-{split}-fmi3.ssp"),
        algorithm=algorithm,
        step_size=PID(0.05, smallest=1e-4, estimators=(estimator,)),
        bond_tolerance=tolerance,
    )
    found = measures(results, LINEAR_CAR.power(split))
    assert found.mean_step == pytest.approx(step, rel=0.01)
    assert found.power_error == pytest.approx(error, rel=0.03)
