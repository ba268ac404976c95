"""The difference between a step and its halves as an error, by which the step size is controlled."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin, sqrt
from typing import Any

import numpy as np
import pytest
from pytest import approx
from python_fmu import PythonFmu
from quarter_car_units import SPLIT_A, SUSPENSION, split_a

from fmimaster.algorithms import Jacobi, Richardson
from fmimaster.base.errors import OptionError, ProgramError
from fmimaster.results.results import Results
from fmimaster.run.executor import Backend
from fmimaster.steps import EnergyDoubling, StepDoubling
from fmimaster.steps.pid import PID
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]


def integrator(**options: Any) -> PythonFmu:
    """x' = u; y = x."""

    def step(v: Any, h: float) -> None:
        v.x += h * v.u

    return PythonFmu(
        inputs={"u": 0.0}, states={"x": 1.0}, outputs={"y": lambda v: v.x}, step=step, **options
    )


def ring(**options: Any) -> dict[str, PythonFmu]:
    return {"a": integrator(**options), "b": integrator()}


RING = ["a.y -> b.u", ("b.y -> a.u", {"factor": -1.0})]


def controlled(*estimators: Any, size: float, **numbers: Any) -> PID:
    return PID(size, estimators=estimators, **numbers)


def test_the_error_is_the_weighted_difference(simulate: Simulate) -> None:
    rule = controlled(StepDoubling(1e-2, 1e-3), size=0.25, smallest=0.25)
    results = simulate(ring(), RING, step_size=rule, stop_time=0.25)
    whole = np.array([1 - 0.25, 1 + 0.25])
    halves = np.array([1 - 0.125 - 0.125 * 1.125, 1 + 0.125 + 0.125 * 0.875])
    assert [results["a.y"][1], results["b.y"][1]] == halves.tolist()
    parts = (halves - whole) / (1e-2 + 1e-3 * abs(halves))
    assert results["doubling_error"][1] == approx(sqrt(np.mean(parts**2)), rel=1e-14)


def test_the_error_estimate_is_that_of_the_halves(simulate: Simulate) -> None:
    """a = cos t - sin t and b = cos t + sin t; errors of one step, relative to 1."""
    rule = controlled(StepDoubling(1.0, 0.0), size=0.01, smallest=0.01)
    results = simulate(ring(), RING, step_size=rule, stop_time=0.01)
    exact = np.array([cos(0.01) - sin(0.01), cos(0.01) + sin(0.01)])
    error = np.array([results["a.y"][1], results["b.y"][1]]) - exact
    assert results["doubling_error"][1] == approx(sqrt(np.mean(error**2)), rel=0.01)


def test_steps_are_rejected_and_each_accepted_error_is_at_most_1(simulate: Simulate) -> None:
    rule = controlled(StepDoubling(1e-4, 0.0), size=0.5, first=0.5, smallest=1e-3, reject_above=1.0)
    units = ring()
    results = simulate(units, RING, step_size=rule, stop_time=2)
    assert results.statistics is not None
    assert results.statistics.rejections > 0
    assert results["doubling_error"][1:].max() <= 1.0
    # the exact solution turns an error in (a, b), and does not change its size: errors of steps add up at most
    exact = np.cos(results.time) - np.sin(results.time)
    bound = sqrt(2) * 1e-4 * results["doubling_error"].cumsum()
    assert (abs(results["a.y"] - exact) <= 1.05 * bound).all()
    assert len(units["a"].instances[0].called(FmiCall.DO_STEP)) == 3 * results.statistics.attempts


def test_the_energy_error_is_the_difference_of_transmitted_energies(simulate: Simulate) -> None:
    rule = controlled(EnergyDoubling(), size=0.01, smallest=0.01)
    results = simulate(split_a(), SPLIT_A, step_size=rule, stop_time=0.01, power_bonds=[SUSPENSION])
    power = results["suspension.power"][1]
    # in the whole step the chassis feels no force and stands still: no power
    assert power != 0.0
    energy = abs(power) * 0.01
    expected = energy / (2.8e-6 * (750.0 + energy))
    assert results["energy_doubling_error"][1] == approx(expected, rel=1e-12)


def test_the_algorithm_may_double_already(simulate: Simulate) -> None:
    rule = controlled(StepDoubling(), size=0.25, smallest=0.25)
    units = ring()
    simulate(units, RING, algorithm=Richardson(Jacobi()), step_size=rule, stop_time=0.25)
    assert len(units["a"].instances[0].called(FmiCall.DO_STEP)) == 3


def test_an_fmu_that_cannot_go_back_is_named_with_what_to_use_instead(simulate: Simulate) -> None:
    rule = controlled(StepDoubling(), size=0.25)
    units = ring(can_get_and_set_fmu_state=False)
    with pytest.raises(ProgramError, match=r"'a' may have to go back .*PredictorCorrector"):
        simulate(units, RING, step_size=rule, stop_time=1)


def test_without_bonds_the_energy_cannot_be_compared(simulate: Simulate) -> None:
    with pytest.raises(OptionError, match="the system has none"):
        simulate(ring(), RING, step_size=controlled(EnergyDoubling(), size=0.25), stop_time=1)


@pytest.mark.parametrize("numbers", [(0.0, 1e-3), (1e-3, -1.0)])
def test_tolerances_must_be_positive(numbers: tuple[float, float]) -> None:
    with pytest.raises(OptionError, match="expected absolute > 0 and relative >= 0"):
        StepDoubling(*numbers)


def test_the_cause_of_a_step_names_the_estimator_and_the_output(simulate: Simulate) -> None:
    rule = controlled(StepDoubling(1e-4, 0.0), size=0.5, smallest=1e-3)
    results = simulate(ring(), RING, step_size=rule, stop_time=2)
    assert ("doubling_error of a.y",) in {step.cause.who for step in results.steps}


def test_both_executors_give_the_same_bits(simulate: Simulate) -> None:
    estimators = StepDoubling(1.0, 1e-3), EnergyDoubling()
    native, reference = (
        simulate(
            split_a(),
            SPLIT_A,
            step_size=controlled(*estimators, size=0.01, reject_above=1.0),
            stop_time=0.2,
            power_bonds=[SUSPENSION],
            backend=backend,
        )
        for backend in (Backend.FASTEST, Backend.REFERENCE)
    )
    assert native.names == reference.names
    for name in native.names:
        assert np.array_equal(native[name], reference[name]), name
