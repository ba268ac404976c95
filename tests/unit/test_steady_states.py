"""A run that starts in a steady state: start values for which derivatives are 0 (loops.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pytest import approx
from python_fmu import PythonFmu

from fmimaster.base.errors import AccuracyWarning, LoopError, OptionError
from fmimaster.results.results import Results
from fmimaster.system.model import Initial

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]


def lag(derivative: Callable[[Any], float], **attributes: Any) -> PythonFmu:
    """A state x with that derivative; y = x."""

    def step(v: Any, h: float) -> None:
        v.x += h * derivative(v)

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 0.0},
        outputs={"y": lambda v: v.x, "dx": derivative},
        attributes={"dx": {"derivative_of": "x"}, "x": attributes},
        depends={"dx": ["u"]},
        step=step,
    )


def gain() -> PythonFmu:
    return PythonFmu(
        inputs={"u": 0.0}, outputs={"y": lambda v: 0.5 * v.u + 3}, depends={"y": ["u"]}
    )


RING = ["a.y -> b.u", "b.y -> a.u"]


def test_a_state_starts_where_its_derivative_is_zero(simulate: Simulate) -> None:
    """loops.md 7.2, steady-state start: x' = -2 x + u, u = 0.5 x + 3: x = 2, u = 4; and there it stays."""
    units = {"a": lag(lambda v: -2 * v.x + v.u), "b": gain()}
    results = simulate(units, RING, stop_time=1, step_size=0.1, steady_states=["a.x"])
    assert results["a.y"] == approx([2.0] * 11, rel=1e-8)
    assert results["b.y"] == approx([4.0] * 11, rel=1e-8)
    (loop,) = results.statistics.loops
    assert loop.variables == ("a.x",)
    assert loop.sweeps <= 4
    assert any("'a.x' starts in a steady state" in note for note in results.statistics.notes)


def test_a_state_that_is_steady_wherever_it_starts_keeps_its_start_value(
    simulate: Simulate,
) -> None:
    units = {"a": lag(lambda v: v.u)}
    with pytest.warns(AccuracyWarning, match="Steady state of a.x: solution not unique"):
        results = simulate(units, start_values={"a.x": 3.0}, stop_time=1, steady_states=["a.x"])
    assert results["a.y"].tolist() == [3.0] * results.rows


def test_a_nonlinear_steady_state_is_found_from_the_start_value(simulate: Simulate) -> None:
    units = {"a": lag(lambda v: 4.0 - v.x**2)}
    for start, expected in ((1.0, 2.0), (-1.0, -2.0)):
        results = simulate(
            units, (), {"a.x": start}, stop_time=1, step_size=1, steady_states=["a.x"]
        )
        assert results["a.y"][0] == approx(expected, rel=1e-8)


def test_algebraic_loops_are_solved_in_each_sweep(simulate: Simulate) -> None:
    """c and d are a loop: c = -2 (1.5 c + 1) + 3 + x, so that c = (1 + x) / 4; x' = c - 1 is 0 for x = 3."""
    a = lag(lambda v: v.u - 1.0)
    c = PythonFmu(
        inputs={"u": 0.0, "x": 0.0},
        outputs={"y": lambda v: -2 * v.u + 3 + v.x},
        depends={"y": ["u", "x"]},
    )
    d = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 1.5 * v.u + 1}, depends={"y": ["u"]})
    connections = ["a.y -> c.x", "c.y -> d.u", "d.y -> c.u", "c.y -> a.u"]
    units = {"a": a, "c": c, "d": d}
    results = simulate(units, connections, stop_time=1, step_size=1, steady_states=["a.x"])
    assert results["a.y"][0] == approx(3.0, rel=1e-7)
    assert results["c.y"][0] == approx(1.0, rel=1e-7)


def test_two_steady_states_are_found_together(simulate: Simulate) -> None:
    units = {"a": lag(lambda v: -v.x + v.u + 1), "b": lag(lambda v: -2 * v.x - v.u)}
    results = simulate(units, RING, stop_time=1, step_size=1, steady_states=["b.x", "a.x"])
    assert [results["a.y"][0], results["b.y"][0]] == approx([2 / 3, -1 / 3], rel=1e-8)


def test_a_state_that_has_no_steady_value_is_an_error(simulate: Simulate) -> None:
    with pytest.raises(LoopError, match=r"steady state of a\.x was not solved") as caught:
        simulate({"a": lag(lambda v: 1.0)}, stop_time=1, step_size=1, steady_states=["a.x"])
    assert caught.value.reason.startswith("singular")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.y"], "'a.y' is not a state with a time derivative"),
        (["a.z"], "'a.z' is not a state with a time derivative"),
        (3, "expected a sequence of names of states"),
    ],
)
def test_names_that_are_no_states_are_refused(simulate: Simulate, names: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        simulate({"a": lag(lambda v: -v.x)}, stop_time=1, step_size=1, steady_states=names)


def test_a_start_value_that_the_fmu_calculates_is_refused(simulate: Simulate) -> None:
    units = {"a": lag(lambda v: -v.x, initial=Initial.CALCULATED)}
    with pytest.raises(OptionError, match="cannot be set, because its FMU calculates it"):
        simulate(units, stop_time=1, step_size=1, steady_states=["a.x"])
