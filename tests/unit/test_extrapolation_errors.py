"""How far inputs were from the signals that they stand for is recorded with every algorithm."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
from pytest import approx
from python_fmu import PythonFmu

from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Refreshed, Richardson
from fmimaster.inputs.polynomial import HOLD, LINEAR, MIDPOINT
from fmimaster.results.results import Results
from fmimaster.system.model import DataType, Unit, Variability

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

H = 0.25
RAD, DEGREE = Unit("rad", (0,) * 7 + (1,)), Unit("deg", (0,) * 7 + (1,), factor=np.pi / 180)


def clock(**attributes: Any) -> PythonFmu:
    """y = t**2."""
    return PythonFmu(outputs={"y": lambda v: v.t**2}, attributes={"y": attributes})


def target(**options: Any) -> PythonFmu:
    options = {"provides_intermediate_update": True} | options
    return PythonFmu(inputs={"u": 0.0}, **options)


def errors(simulate: Simulate, algorithm: Algorithm, **options: Any) -> list[float]:
    results = simulate(
        {"a": clock(), "b": target(**options)},
        ["a.y -> b.u"],
        algorithm=algorithm,
        stop_time=1,
        step_size=H,
        extrapolation_errors=True,
    )
    found: list[float] = results["b.u.extrapolation_error"].tolist()
    return found


def slope(k: int) -> float:
    """Of y from point k to the next one, per step."""
    return ((k + 1) * H) ** 2 - (k * H) ** 2


def test_the_error_of_a_held_input_is_its_change(simulate: Simulate) -> None:
    expected = [0.0, *(slope(k) / sqrt(3) for k in range(4))]
    assert errors(simulate, Jacobi(HOLD)) == approx(expected, rel=1e-14)


def test_the_error_of_a_line_is_the_change_of_its_slope(simulate: Simulate) -> None:
    """In the first step the value is held."""
    expected = [0.0, slope(0) / sqrt(3), *((slope(k) - slope(k - 1)) / sqrt(3) for k in (1, 2, 3))]
    assert errors(simulate, Jacobi(LINEAR)) == approx(expected, rel=1e-13)


def test_a_value_held_in_the_middle_is_wrong_at_both_ends(simulate: Simulate) -> None:
    """By half of the last slope at the start, and by what is left at the end."""
    expected = []
    for k in (1, 2, 3):
        e0, e1 = slope(k - 1) / 2, slope(k - 1) / 2 - slope(k)
        expected.append(sqrt((e0**2 + e0 * e1 + e1**2) / 3))
    assert errors(simulate, Jacobi(MIDPOINT))[2:] == approx(expected, rel=1e-13)


def test_gauss_seidel_holds_the_value_of_the_end(simulate: Simulate) -> None:
    """So that the error is as large, and at the start of the step."""
    assert errors(simulate, GaussSeidel()) == approx(errors(simulate, Jacobi()), rel=1e-14)


def test_an_fmu_that_takes_first_derivatives_only_is_on_the_tangent(simulate: Simulate) -> None:
    one = {"provides_intermediate_update": False, "max_input_derivative_order": 1}
    assert errors(simulate, Jacobi(LINEAR), **one) == errors(simulate, Jacobi(LINEAR))


@pytest.mark.parametrize("algorithm", [Refreshed(Jacobi()), Richardson(Jacobi())], ids=str)
def test_wrappers_leave_the_errors_of_the_last_part_of_the_step(
    simulate: Simulate, algorithm: Algorithm
) -> None:
    found = errors(simulate, algorithm)
    half = isinstance(algorithm, Richardson)
    times = [(k * H - (H / 2 if half else H), k * H) for k in range(1, 5)]
    expected = [(end**2 - begin**2) / sqrt(3) for begin, end in times]
    assert found[1:] == approx(expected, rel=1e-13)


def test_the_error_is_in_the_unit_of_the_input(simulate: Simulate) -> None:
    units = {
        "a": clock(unit=RAD),
        "b": PythonFmu(inputs={"u": 0.0}, attributes={"u": {"unit": DEGREE}}),
    }
    results = simulate(
        units,
        ["a.y -> b.u"],
        algorithm=Jacobi(),
        stop_time=1,
        step_size=H,
        extrapolation_errors=True,
    )
    name = "b.u.extrapolation_error"
    assert results.units[name] == "deg"
    assert results[name][1] == approx(np.degrees(slope(0)) / sqrt(3))


def test_an_input_that_is_declared_discrete_is_held(simulate: Simulate) -> None:
    """Some FMUs declare all variables so."""
    discrete = {"u": {"variability": Variability.DISCRETE}}
    found = errors(simulate, Jacobi(LINEAR), attributes=discrete)
    assert found == errors(simulate, Jacobi(HOLD))


def test_integers_are_left_out(simulate: Simulate) -> None:
    integer = {"type": DataType.INT32}
    units = {
        "a": PythonFmu(outputs={"n": lambda v: 1}, attributes={"n": integer}),
        "b": PythonFmu(inputs={"n": 0}, attributes={"n": integer}),
    }
    results = simulate(units, ["a.n -> b.n"], stop_time=1, step_size=H, extrapolation_errors=True)
    assert list(results.names) == ["a.n"]


def test_nothing_is_recorded_unless_it_is_asked_for(simulate: Simulate) -> None:
    results = simulate({"a": clock(), "b": target()}, ["a.y -> b.u"], stop_time=1, step_size=H)
    assert list(results.names) == ["a.y"]
