"""CVODE as an integrator, on equations in plain Python with known solutions."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, sin

import numpy as np
import pytest

from fmimaster.base.errors import OptionError
from fmimaster.fmu.model_exchange.cvode import Cvode, Jacobian
from fmimaster.fmu.model_exchange.integrator import Integration, StuckError, Vector

RATE = 1000.0
"""[1/s] Of the decay to the slow solution: an explicit method needs steps of 2.7 ms and less, BDF does not."""


class Equations:
    """Equations that count how often they are computed."""

    def __init__(
        self,
        derivatives: Callable[[float, Vector], list[float]],
        n: int,
        jacobian: list[list[float]] | None = None,
    ) -> None:
        self.n = n
        self.nominals = np.ones(n)
        self.f, self.jacobian = derivatives, jacobian
        self.evaluations = self.products = 0
        self.time, self.states = 0.0, np.zeros(n)
        self.has_inputs = False

    def move(self, time: float, states: Vector) -> bool:
        """Keep time and states."""
        self.time, self.states = time, states.copy()
        return True

    def derive(self, derivatives: Vector) -> bool:
        """Compute the derivatives; None of them for an area where there are none."""
        self.evaluations += 1
        derivatives[:] = self.f(self.time, self.states)
        return not np.isnan(derivatives).any()

    def multiply_jacobian(self, seed: Vector, product: Vector) -> bool:
        """A matrix that is constant."""
        self.products += 1
        product[:] = np.array(self.jacobian) @ seed
        return True

    @property
    def has_jacobian(self) -> bool:
        """Whether there is such a matrix."""
        return self.jacobian is not None


def stiff() -> Equations:
    """x' = -RATE (x - cos t) - sin t; x = cos t, if it starts there."""
    return Equations(lambda t, x: [-RATE * (x[0] - cos(t)) - sin(t)], 1)


def oscillator(jacobian: bool = False) -> Equations:
    """x'' = -x, from (1, 0): x = cos t."""
    matrix = [[0.0, 1.0], [-1.0, 0.0]] if jacobian else None
    return Equations(lambda _, x: [x[1], -x[0]], 2, matrix)


def integrate(equations: Equations, *ends: float, relative: float = 1e-6) -> Integration:
    """An integration from (1, 0, ...) at 0 to the last of these times, with a communication point at each."""
    integration = Cvode(relative=relative).start(equations, 1.0)
    states = np.eye(equations.n)[0]
    integration.restart(0.0, states)
    time = 0.0
    for end in ends:
        while time < end:
            time = integration.advance(end)
        assert time == end
    return integration


def test_a_stiff_equation_costs_as_little_as_its_slow_solution() -> None:
    equations = stiff()
    integration = integrate(equations, 10.0)
    # the error of all steps together: each is within the tolerance, and 1000 forgets them
    assert integration.states[0] == pytest.approx(cos(10.0), abs=1e-5)
    assert equations.evaluations < 300  # an explicit method makes 3700 steps


def test_communication_points_do_not_restart_it() -> None:
    once, often, restarted = oscillator(), oscillator(), oscillator()
    points = np.linspace(0.0, 10.0, 201)[1:]
    integrate(once, 10.0)
    integrate(often, *points)
    integration = Cvode(relative=1e-6).start(restarted, 1.0)
    integration.restart(0.0, np.array([1.0, 0.0]))
    time = 0.0
    for end in points:
        while time < end:
            time = integration.advance(end)
        integration.restart(end, integration.states + 1e-12)  # other states: it must restart
    assert often.evaluations < 2 * once.evaluations
    assert restarted.evaluations > 8 * often.evaluations


def test_a_restart_without_a_jump_goes_on() -> None:
    plain, asked = oscillator(), oscillator()
    asked.has_inputs = True
    points = np.linspace(0.0, 10.0, 201)[1:]
    first = integrate(plain, *points)
    second = Cvode(relative=1e-6).start(asked, 1.0)
    second.restart(0.0, np.array([1.0, 0.0]))
    time = 0.0
    for end in points:
        while time < end:
            time = second.advance(end)
        second.restart(time, second.states)
    assert first.states.tolist() == second.states.tolist()
    # before and after each point, to see that there is no jump
    assert asked.evaluations == plain.evaluations + 2 * len(points)


def test_a_jump_of_an_input_restarts_it() -> None:
    pushed = [0.0]
    equations = Equations(lambda _, x: [-x[0] + pushed[0]], 1)
    equations.has_inputs = True
    integration = integrate(equations, 1.0, relative=1e-8)
    pushed[0] = 5.0
    integration.restart(1.0, integration.states)
    time = 1.0
    while time < 2.0:
        time = integration.advance(2.0)
    exact = exp(-1.0) * exp(-1.0) + 5.0 * (1.0 - exp(-1.0))
    assert integration.states[0] == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("change", ["nothing", "derivatives", "nominals"])
def test_an_event_restarts_it_if_it_changes_something(change: str) -> None:
    rate = [1.0]
    equations = Equations(lambda _, x: [-rate[0] * x[0]], 1)
    integration = integrate(equations, 1.0)
    integration.mark_event()
    if change == "derivatives":
        rate[0] = 2.0
    elif change == "nominals":
        equations.nominals[0] = 0.5
    integration.events += 1
    length = integration.size
    integration.restart(1.0, integration.states)
    assert integration.size == (length if change == "nothing" else 0.0)


@pytest.mark.parametrize("jacobian", [None, *Jacobian])
def test_directional_derivatives_are_used_unless_differences_are_chosen(
    jacobian: Jacobian | None,
) -> None:
    equations = oscillator(jacobian=True)
    integration = Cvode(jacobian=jacobian).start(equations, 1e-6)
    integration.restart(0.0, np.array([1.0, 0.0]))
    integration.advance(1.0)
    assert (equations.products == 0) == (jacobian is Jacobian.DIFFERENCES)


def test_states_between_two_steps_have_the_accuracy_of_the_steps() -> None:
    integration = integrate(oscillator(), 3.0, relative=1e-8)
    after = integration.advance(4.0)
    states = np.zeros(2)
    for share in (0.1, 0.5, 0.9):
        time = 3.0 + share * (after - 3.0)
        integration.between(time, states)
        assert states == pytest.approx([cos(time), -sin(time)], abs=1e-6)


def test_the_jacobian_of_the_fmu_replaces_difference_quotients() -> None:
    differences, given = oscillator(), oscillator(jacobian=True)
    first, second = integrate(differences, 10.0), integrate(given, 10.0)
    assert given.products > 0
    assert given.evaluations < differences.evaluations
    assert second.states == pytest.approx(first.states, abs=1e-4)


def test_the_fmu_stands_at_the_end_of_the_step() -> None:
    equations = oscillator()
    integration = integrate(equations, 3.0)
    assert equations.time == 3.0
    assert equations.states.tolist() == integration.states.tolist()


def test_a_step_that_the_fmu_discards_is_shortened() -> None:
    # the root of a negative number: the predictor gets there, the solution does not
    equations = Equations(lambda _, x: [-np.sqrt(x[0]) if x[0] >= 0.0 else np.nan], 1)
    integration = integrate(equations, 1.9, relative=1e-4)
    assert integration.states[0] == pytest.approx((1.0 - 1.9 / 2) ** 2, abs=1e-3)


def test_exceptions_in_the_fmu_come_through() -> None:
    def fail(time: float, _: Vector) -> list[float]:
        raise KeyboardInterrupt(f"at {time:g}")

    with pytest.raises(KeyboardInterrupt, match="at 0"):
        integrate(Equations(fail, 1), 1.0)


def test_it_says_where_it_is_stuck_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    # x = 1 / (1 - t)
    with np.errstate(over="ignore"), pytest.raises(StuckError, match="too short") as caught:
        integrate(Equations(lambda _, x: [x[0] ** 2], 1), 2.0)
    assert caught.value.time == pytest.approx(1.0, abs=1e-3)
    assert capfd.readouterr() == ("", "")


def test_freed_twice_is_freed_once() -> None:
    integration = integrate(oscillator(), 1.0)
    integration.free()
    integration.free()


@pytest.mark.parametrize("value", [0.0, -1e-3, float("inf"), float("nan")])
def test_tolerances_are_above_0(value: float) -> None:
    with pytest.raises(OptionError, match=r"relative of Cvode.*above 0"):
        Cvode(relative=value)
    with pytest.raises(OptionError, match=r"absolute of Cvode.*above 0"):
        Cvode(absolute=value)


def test_it_names_its_settings() -> None:
    assert Cvode().words == "CVODE"
    assert Cvode(relative=1e-8).words == "CVODE, relative tolerance 1e-08"
