"""The one-step integrators, on equations in plain Python with known solutions, and the location of events."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, pi, sin, sqrt

import numpy as np
import pytest

from fmimaster.base.errors import OptionError
from fmimaster.fmu.model_exchange.equations import locate
from fmimaster.fmu.model_exchange.integrator import Integration, StuckError, Vector
from fmimaster.fmu.model_exchange.one_step import DormandPrince, Euler

Derivatives = Callable[[float, Vector], list[float]]


class Equations:
    """Equations that count how often they are computed."""

    has_jacobian = has_inputs = False

    def __init__(self, derivatives: Derivatives, n: int) -> None:
        self.n, self.nominals, self.f = n, np.ones(n), derivatives
        self.evaluations = 0
        self.time, self.states = 0.0, np.zeros(n)

    def move(self, time: float, states: Vector) -> bool:
        """Keep time and states."""
        self.time, self.states = time, states.copy()
        return True

    def derive(self, derivatives: Vector) -> bool:
        """Compute the derivatives; where one is not a number, the equations are not defined."""
        self.evaluations += 1
        derivatives[:] = self.f(self.time, self.states)
        return not np.isnan(derivatives).any()

    def multiply_jacobian(self, seed: Vector, product: Vector) -> bool:
        """There is none."""
        raise NotImplementedError


def oscillator() -> Equations:
    return Equations(lambda _, x: [x[1], -x[0]], 2)


def started(integration: Integration, equations: Equations, states: list[float]) -> Integration:
    equations.move(0.0, np.array(states))
    integration.restart(0.0, np.array(states))
    return integration


def integrated(integration: Integration, stop: float) -> Vector:
    while integration.advance(stop) < stop:
        pass
    return integration.states


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8, 1e-10])
def test_the_error_of_dormand_prince_follows_its_tolerance(tolerance: float) -> None:
    """Over a period of an oscillator the global error is a small multiple of the local tolerance."""
    equations = oscillator()
    steps = started(DormandPrince().start(equations, tolerance), equations, [1.0, 0.0])
    error = np.abs(integrated(steps, 2.0 * pi) - [1.0, 0.0]).max()
    assert 0.01 * tolerance < error < 10.0 * tolerance


def test_dormand_prince_is_of_order_5() -> None:
    """With half the steps, the error of one step is 2^6 times smaller."""
    errors = []
    for size in (0.2, 0.1):
        equations = oscillator()
        steps = started(DormandPrince().start(equations, 1.0), equations, [1.0, 0.0])
        steps.size = size
        assert steps.advance(size) == size
        errors.append(np.abs(steps.states - [cos(size), -sin(size)]).max())
    assert errors[0] / errors[1] == pytest.approx(64.0, rel=0.1)


def test_states_between_the_ends_of_a_step_are_of_order_4() -> None:
    """Dense output: the error of one step is 2^5 times smaller with half the step."""
    errors, states = [], np.zeros(2)
    for size in (0.2, 0.1):
        equations = oscillator()
        steps = started(DormandPrince().start(equations, 1.0), equations, [1.0, 0.0])
        steps.size = size
        steps.advance(size)
        steps.between(0.4 * size, states)
        errors.append(np.abs(states - [cos(0.4 * size), -sin(0.4 * size)]).max())
    assert errors[0] / errors[1] == pytest.approx(32.0, rel=0.15)


def test_a_step_ends_exactly_at_the_end() -> None:
    equations = oscillator()
    steps = started(DormandPrince().start(equations, 1e-6), equations, [1.0, 0.0])
    ends = [steps.advance(0.7)]
    while ends[-1] < 0.7:
        ends.append(steps.advance(0.7))
    assert ends[-1] == equations.time == 0.7
    assert len(ends) > 2
    assert np.array_equal(equations.states, steps.states)


def test_only_the_size_of_the_next_step_is_remembered() -> None:
    """Started anew at each point with that size, the states are the same in every bit."""
    through, anew = oscillator(), oscillator()
    first = started(DormandPrince().start(through, 1e-6), through, [1.0, 0.0])
    second = started(DormandPrince().start(anew, 1e-6), anew, [1.0, 0.0])
    for k in range(1, 20):
        integrated(first, 0.1 * k)
        integrated(second, 0.1 * k)
        size, states = second.size, second.states.copy()
        second = DormandPrince().start(anew, 1e-6)
        second.size = size
        second.restart(0.1 * k, states)
        assert np.array_equal(first.states, second.states)


def test_a_step_into_an_area_without_derivatives_is_shortened() -> None:
    """x' = -1 / sqrt(x) is not defined for x < 0, which a long step would reach."""

    def derivatives(_: float, x: Vector) -> list[float]:
        return [-1.0 / sqrt(x[0]) if x[0] > 0.0 else float("nan")]

    equations = Equations(derivatives, 1)
    steps = started(DormandPrince().start(equations, 1e-6), equations, [1.0])
    steps.size = 10.0
    integrated(steps, 0.6)
    assert steps.states[0] == pytest.approx((1.0 - 1.5 * 0.6) ** (2.0 / 3.0), rel=1e-5)


def test_an_infinite_solution_ends_the_integration() -> None:
    """x' = x^2 from 1 is 1 / (1 - t)."""
    equations = Equations(lambda _, x: [x[0] ** 2], 1)
    steps = started(DormandPrince().start(equations, 1e-6), equations, [1.0])
    with np.errstate(all="ignore"), pytest.raises(StuckError, match="too short") as raised:
        integrated(steps, 2.0)
    assert raised.value.time == pytest.approx(1.0, abs=1e-6)  # the tolerance


def test_nominal_values_scale_the_absolute_tolerance() -> None:
    """A state near 0 with a large nominal value is allowed a large error, and takes fewer evaluations."""
    counts = []
    for nominal in (1.0, 1e6):
        equations = oscillator()
        equations.nominals[:] = nominal
        steps = started(DormandPrince().start(equations, 1e-8), equations, [1.0, 0.0])
        integrated(steps, 6.0)
        counts.append(equations.evaluations)
    assert counts[1] < 0.5 * counts[0]


def test_without_states_a_step_goes_to_the_end() -> None:
    equations = Equations(lambda _, __: [], 0)
    steps = started(DormandPrince().start(equations, 1e-6), equations, [])
    assert steps.advance(3.0) == equations.time == 3.0


def test_euler_divides_a_step_into_equal_parts() -> None:
    """x' = x: each step multiplies by 1 + h, and 0.25 s are three steps of at most 0.1 s."""
    equations = Equations(lambda _, x: [x[0]], 1)
    steps = started(Euler(0.1).start(equations, 1e-6), equations, [1.0])
    integrated(steps, 0.25)
    assert equations.evaluations == 3
    assert steps.states[0] == pytest.approx((1.0 + 0.25 / 3.0) ** 3, rel=1e-14)
    assert Euler().step == float("inf")


@pytest.mark.parametrize("make", [lambda: Euler(0.0), lambda: DormandPrince(relative=-1.0)])
def test_settings_that_cannot_work_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(OptionError, match="Expected a number above 0"):
        make()


# Location of events


@pytest.mark.parametrize(
    ("indicator", "at"),
    [
        (lambda t: 1.0 - t * t, 1.0),
        (lambda t: exp(-30.0 * t) - 1e-9, -np.log(1e-9) / 30.0),
        (lambda t: 1.0 if t < 0.3 else -1.0, 0.3),
        (lambda t: t - 1e-5, 1e-5),
        (lambda t: (0.7 - t) ** 3, 0.7),
    ],
)
def test_a_change_of_domain_is_located_to_rounding(
    indicator: Callable[[float], float], at: float
) -> None:
    """To 1e-5 for the root of third order, whose indicator is below 1e-15 there; else to a few rounding errors."""
    trials = []

    def indicators(time: float) -> Vector:
        trials.append(time)
        return np.array([indicator(time)])

    ends = (indicators(0.0), indicators(2.0))
    time = locate(0.0, 2.0, *ends, indicators)
    assert time == pytest.approx(at, abs=1e-5 if indicator(0.7) == 0.0 else 4e-15)
    assert (indicator(time) > 0.0) != (indicator(0.0) > 0.0)
    assert len(trials) < 4 * 53  # one of four halves the bracket


def test_the_first_of_several_changes_is_located() -> None:
    times = (1.3, 0.4, 0.9)

    def indicators(time: float) -> Vector:
        return np.array([t - time for t in times])

    assert locate(0.0, 2.0, indicators(0.0), indicators(2.0), indicators) == pytest.approx(
        0.4, abs=1e-15
    )
