"""The error budget: which connection costs accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from fmimaster import Simulation, reference_path, simulate
from fmimaster.algorithms import Jacobi
from fmimaster.inputs.polynomial import HOLD, LINEAR
from fmimaster.steps import Ramp
from fmimaster.studies.optimization.error_budget import error_budget


def test_effects_in_the_four_units_are_the_propagated_weights() -> None:
    """sequence.md 4.3: normalised weights 1, 0.333, 0.216, 0.171, 0.020 and 0.014, there by another base sequence."""
    system = reference_path("systems/four-units-fmi3.ssp")
    budget = error_budget(Simulation(system, step_size=1e-3, algorithm=Jacobi()))
    run = simulate(system, step_size=1e-3, algorithm=Jacobi())
    weights = {}
    for c in budget.connections:
        assert c.effect is not None
        weights[c.target] = c.effect.rms / float(np.sqrt(np.mean(run[c.effect.output] ** 2)))
    expected = {
        "S1.u11": 1.0,
        "S4.u42": 0.333,
        "S2.u21": 0.216,
        "S3.u31": 0.171,
        "S3.u32": 0.020,
        "S4.u41": 0.014,
    }
    assert budget.connections[0].target == "S1.u11"
    largest = max(weights.values())
    found = {name: weight / largest for name, weight in weights.items()}
    assert found == approx(expected, rel=0.15)


def test_the_error_of_a_quarter_car_is_in_the_force_and_falls_with_lines() -> None:
    system = reference_path("systems/quarter-car-a-fmi3.ssp")
    held, linear = (
        error_budget(Simulation(system, step_size=1e-3, stop_time=1, algorithm=Jacobi(inputs)))
        for inputs in (HOLD, LINEAR)
    )
    force = held.connections[0]
    assert (force.source, force.target, force.unit) == ("wheel.force", "chassis.force", "N")
    assert force.effect is not None
    assert (force.effect.output, force.effect.unit) == ("chassis.velocity", "m/s")
    for before, after in zip(
        sorted(held.connections, key=lambda c: c.target),
        sorted(linear.connections, key=lambda c: c.target),
        strict=True,
    ):
        assert after.rms < before.rms / 4
        assert before.effect is not None
        assert after.effect is not None
        assert after.effect.rms < before.effect.rms / 4


def test_with_steps_of_other_sizes_errors_are_measured_and_a_note_says_why_effects_are_not() -> (
    None
):
    system = reference_path("systems/quarter-car-a-fmi3.ssp")
    budget = error_budget(Simulation(system, step_size=Ramp(1e-3), stop_time=0.1))
    assert [c.effect for c in budget.connections] == [None, None]
    assert budget.connections[0].rms > 0.0
    assert budget.notes == (
        "Effects on outputs are measured with a fixed step only (--step-rule grid).",
    )


@pytest.mark.parametrize("unit", ["N", "m/s"])
def test_the_share_is_that_of_the_largest_value_where_no_nominal_value_is_declared(
    unit: str,
) -> None:
    system = reference_path("systems/quarter-car-a-fmi3.ssp")
    (c,) = (
        c
        for c in error_budget(Simulation(system, step_size=1e-3, stop_time=0.1)).connections
        if c.unit == unit
    )
    values = simulate(system, step_size=1e-3, stop_time=0.1)[c.source]
    assert c.share == approx(c.rms / abs(values).max())
