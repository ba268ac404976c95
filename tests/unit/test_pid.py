"""The PID formula and its limits: pure decisions, without FMUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

import pytest

from fmimaster import OptionError
from fmimaster.instants.instant import Instant, TimeBase
from fmimaster.record.causes import RAMP, STEP_SIZE, Cause, Kind
from fmimaster.steps import PID, EmbeddedOrders, PowerResidual, PredictorCorrector
from fmimaster.steps.estimator import Estimator, Measured
from fmimaster.steps.pid_memory import MANY, Controlled

BASE = TimeBase(10_000)
START = Instant(0.0, 0)
ECCO = PID.ecco(0.01, 0.0001)


@dataclass(frozen=True)
class Linear(Estimator):
    """An estimator whose error grows with the step size itself."""

    name: ClassVar[str] = "linear"

    def order(self, degree: int) -> int:
        return 1


def close(expected: Any) -> Any:
    """A few roundings away."""
    return pytest.approx(expected, rel=1e-14, abs=0.0)


def begun(rule: PID, size: float) -> Controlled:
    """What a controller remembers that has proposed this size for some time."""
    return rule.begin(BASE, 0)._replace(size=size, before=size, long_before=size)


def after(rule: PID, memory: Controlled, *errors: float, length: float | None = None) -> Controlled:
    """What it remembers after a step of that length, or of the one that it proposed, which is accepted."""
    measured = [Measured(e, f"error {k}") for k, e in enumerate(errors)]
    memory, again = rule.decide(memory, START, length or memory.size, measured)
    assert again is None
    return memory


def sizes(rule: PID, errors: Sequence[float]) -> list[float]:
    """Proposals from the start on, after these errors of an only estimator."""
    memory = rule.begin(BASE, 0)
    found = [memory.size]
    for error in errors:
        memory = after(rule, memory, error)
        found.append(memory.size)
    return found


def test_the_step_follows_the_formula_of_ecco() -> None:
    """energy.md 2.1: alpha eps(i+1)^(-kI-kP) eps(i)^kP, with kI = 0.3 / 2 and kP = 0.4 / 2."""
    memory = after(ECCO, begun(ECCO, 1e-3), 0.5)
    first = 1e-3 * 0.8 * 0.5**-0.35
    assert memory.size == close(first)
    assert after(ECCO, memory, 0.2).size == close(
        first * 0.8 * 0.2**-0.35 * 0.5**0.2,
    )


def test_exponents_are_divided_by_the_order_of_the_extrapolated_inputs() -> None:
    """energy.md 2.1: 0.3 / (m + 2) and 0.4 / (m + 2) with inputs of degree m."""
    rule = ECCO.with_inputs(1)
    found = after(rule, begun(rule, 1e-3), 0.5)
    assert found.size == close(1e-3 * 0.8 * 0.5 ** (-0.7 / 3))


def test_errors_and_sizes_of_three_steps_have_exponents() -> None:
    """energy.md 2.1, as numbers of one PID formula."""
    rule = PID(1.0, (Linear(),), smallest=1e-9, first=1e-3, safety=0.9, k1=0.3, k2=0.2, k3=0.1)
    rule = replace(rule, a1=-0.25, a2=0.5, least=1e-3, most=1e3)
    memory = begun(rule, 1e-3)
    for error in (0.2, 0.3):
        memory = after(rule, memory, error)
    h, h1, h2 = memory.size, memory.before, memory.long_before
    expected = h * 0.9 * 0.4**-0.3 * 0.3**-0.2 * 0.2**-0.1 * (h / h1) ** -0.25 * (h1 / h2) ** 0.5
    assert after(rule, memory, 0.4).size == close(expected)


def test_a_system_at_rest_runs_with_the_largest_step() -> None:
    """energy.md 9.6: eps = 0 multiplies the step by 1.5, and nothing is divided by zero."""
    found = sizes(ECCO, [0.0] * 20)
    growing = [1e-4 * 1.5**k for k in range(12)]
    assert found[:12] == close(growing)
    assert set(found[12:]) == {0.01}


def test_an_earlier_error_of_zero_counts_as_one() -> None:
    """energy.md 2.1: if the previous eps is 0, the last factor is 1."""
    memory = after(ECCO, begun(ECCO, 1e-3), 0.0)
    assert after(ECCO, memory, 0.5).size == close(1.5e-3 * 0.8 * 0.5**-0.35)


@pytest.mark.parametrize(("error", "factor"), [(1e-9, 1.5), (1e9, 0.2)])
def test_a_step_changes_by_no_more_than_the_limits(error: float, factor: float) -> None:
    assert after(ECCO, begun(ECCO, 1e-3), error).size == close(factor * 1e-3)


def test_first_the_factor_is_limited_then_the_step() -> None:
    """energy.md 2.1."""
    assert after(ECCO, begun(ECCO, 0.008), 1e-9).size == 0.01
    assert after(ECCO, begun(ECCO, 2e-4), 1e9).size == 1e-4


@pytest.mark.parametrize(
    ("length", "error", "expected"),
    [
        (1e-4, 0.1, 1e-3),  # good, and far from the proposal
        (9e-4, 0.01, 9e-4 * 1.5),  # good enough for a longer one
        (9e-4, 10.0, 9e-4 * 0.8 * 10**-0.35),  # too large although it was shorter
    ],
)
def test_after_a_step_that_an_event_has_shortened_the_proposal_stays_unless_the_error_was_large(
    length: float, error: float, expected: float
) -> None:
    found = after(ECCO, begun(ECCO, 1e-3), error, length=length)
    assert found.size == close(expected)


def test_of_several_estimators_the_smallest_proposal_counts_each_with_its_order() -> None:
    rule = PID(0.01, (PowerResidual(), Linear()), smallest=0.0001)
    by_energy = 0.8 * 3.0**-0.35
    found = after(rule, begun(rule, 1e-3), 3.0, 0.9)
    assert found.size == close(1e-3 * by_energy)
    assert found.cause == Cause(Kind.CONTROLLED, ("error 0",))
    found = after(rule, begun(rule, 1e-3), 3.0, 2.0)  # 2 ** -0.7 is less than 3 ** -0.35
    assert found.size == close(1e-3 * 0.8 * 2.0**-0.7)
    assert found.cause == Cause(Kind.CONTROLLED, ("error 1",))


def test_the_cause_is_the_ramp_then_the_error_then_the_largest_step() -> None:
    memory = ECCO.begin(BASE, 0)
    assert memory.cause is RAMP
    memory = after(ECCO, memory, 0.1)
    assert str(memory.cause) == "error 0"
    assert after(ECCO, begun(ECCO, 0.009), 1e-9).cause is STEP_SIZE


def test_after_an_event_it_begins_again() -> None:
    """energy.md 7: e_old = 1."""
    memory = after(ECCO, begun(ECCO, 5e-3), 0.3)
    assert ECCO.restart(memory) == ECCO.begin(BASE, 0)
    rule = replace(ECCO, first=1e-3)
    assert rule.restart(memory).size == 1e-4  # the numbers belong to the run
    assert rule.begin(BASE, 0).size == 1e-3


# Rejection ------------------------------------------------------------------------------------------------------------

REJECTING = replace(ECCO, reject_above=1.0)


def test_a_step_whose_error_is_too_large_is_tried_again_with_a_smaller_one() -> None:
    memory, again = REJECTING.decide(begun(REJECTING, 1e-3), START, 1e-3, [Measured(2.0)])
    assert again is not None
    assert again == close(1e-3 * 0.8 * 2.0**-0.35)
    _, again = REJECTING.decide(memory, START, again, [Measured(1.01)])
    assert again is not None
    assert again < 0.9 * 1e-3 * 0.8 * 2.0**-0.35 * (1 + 1e-15)


def test_the_error_of_a_rejected_step_is_not_remembered_and_the_next_one_does_not_grow() -> None:
    memory, again = REJECTING.decide(begun(REJECTING, 1e-3), START, 1e-3, [Measured(2.0)])
    assert again is not None
    memory = after(REJECTING, memory, 1e-6, length=again)
    assert memory.errors == [(1e-6, 1.0)]
    assert memory.size == again
    assert after(REJECTING, memory, 1e-6).size > again


def test_a_step_that_failed_is_tried_again() -> None:
    _, again = REJECTING.decide(begun(REJECTING, 1e-3), START, 1e-3, [Measured(inf)])
    assert again == close(2e-4)


def test_the_smallest_step_is_accepted_whatever_its_error_is() -> None:
    length = (0.0002 + 1e-4) - 0.0002  # 1e-4 but for rounding
    assert length > 1e-4
    memory, again = REJECTING.decide(begun(REJECTING, 1e-4), START, length, [Measured(9.0)])
    assert again is None
    assert memory.size == 1e-4


# Warnings and refusals ------------------------------------------------------------------------------------------------


def test_many_smallest_steps_that_are_too_large_are_a_warning_with_the_reason() -> None:
    """Issue 11, bad input: a controller that sits at h_min for 100 steps."""
    memory = begun(ECCO, 1e-4)
    for k in range(MANY):
        assert ECCO.warnings(memory) == ()
        measured = [Measured(40.0, "energy_error of suspension")]
        memory, _ = ECCO.decide(memory, Instant(k * 1e-4), 1e-4, measured)
    (text,) = ECCO.warnings(memory)
    assert "100 steps or more had the smallest step size, 0.0001 s" in text
    assert "from t = 0 s on, by energy_error of suspension, which was 40" in text
    memory = after(ECCO, memory, 1e-6)
    assert ECCO.warnings(ECCO.restart(memory)) == (text,)


def test_smallest_steps_within_the_tolerance_are_no_warning() -> None:
    memory = begun(ECCO, 1e-4)
    for _ in range(2 * MANY):
        memory = after(ECCO, memory, 0.9)
        assert memory.size == 1e-4
    assert ECCO.warnings(memory) == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0.01, "smallest": 0.02}, "Smallest step size 0.02 s, largest step size 0.01 s"),
        ({"size": 0.01, "smallest": 0}, "expected 0 < smallest <= largest"),
        ({"size": 0.01, "smallest": -1e-3}, "expected 0 < smallest <= largest"),
        ({"size": 0.01, "first": 0.02}, "First step size 0.02 s: expected one between"),
        ({"size": -1}, "expected a positive number"),
        ({"estimators": ()}, "PID without estimators"),
        ({"estimators": (Linear(), Linear())}, "expected each at most once"),
        ({"safety": 0.0}, "safety greater than 0"),
        ({"k1": inf}, "expected finite exponents"),
        ({"least": 0.0}, "expected 0 < least <= 1 <= most"),
        ({"most": 0.9}, "expected 0 < least <= 1 <= most"),
        ({"reject_above": 0.0}, "expected reject_above > 0"),
    ],
)
def test_a_controller_with_numbers_that_contradict_each_other_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    """Issue 11, bad input: h_min > h_max."""
    with pytest.raises(OptionError, match=message):
        PID(**{"size": 0.01, "estimators": (Linear(),), **settings})


@pytest.mark.parametrize("estimator", [PredictorCorrector, EmbeddedOrders])
@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan")])
def test_a_tolerance_that_is_not_positive_is_refused(estimator: Any, tolerance: float) -> None:
    """Issue 11, bad input: tolerance <= 0."""
    with pytest.raises(OptionError, match="expected tolerance > 0"):
        estimator(tolerance=tolerance)
