"""Fuzzy weights: the rules, and the features that step responses show."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError
from fmimaster.studies.optimization.weights import (
    Features,
    Fuzzy,
    StepResponse,
    jumps,
    mean_rate,
    memberships,
    weight,
)


@pytest.mark.parametrize(
    ("ft", "dyn", "r", "nu", "expected"),
    [
        (6.14, 2.14, 0.100, 0.0753, 0.675),
        (1.00, 1e-6, 0.0, 0.0693, 1.000),
        (0.0, 0.080, 0.0, 0.0673, 0.250),
        (0.0, 0.041, 0.0, 0.1001, 0.250),
        (0.0, 0.014, 0.0447, 0.0953, 0.348),
        (1.20, 0.123, 0.0447, 0.1425, 0.731),
    ],
)
def test_the_rules_give_the_weights_of_the_table(
    ft: float, dyn: float, r: float, nu: float, expected: float
) -> None:
    """sequence.md 4.2: features and weights, to the digits printed."""
    features = Features(False, ft > 0, ft, dyn, r, nu, parts=10.0)
    assert weight(features) == pytest.approx(expected, abs=6e-4)


def test_signals_that_jump_weigh_most_where_they_act_at_once() -> None:
    assert weight(Features(True, True, 1.0, 1.0, 0.0, 0.1, 10.0)) == 1.0
    assert weight(Features(True, False, 0.0, 1.0, 2.0, 0.1, 10.0)) == 1.0
    assert weight(Features(True, False, 0.0, 1.0, 0.05, 0.1, 10.0)) == pytest.approx(0.6)


def test_few_micro_steps_of_the_source_count_a_tenth() -> None:
    """sequence.md 4.2: times 0.9 + 0.1 min(1, log10 s)."""
    one = Features(False, True, 1.0, 0.0, 0.0, 0.1, parts=1.0)
    assert weight(one) == pytest.approx(0.9)
    many = Features(False, True, 1.0, 0.0, 0.0, 0.1, parts=1000.0)
    assert weight(many) == 1.0


def test_memberships_add_up_to_one() -> None:
    assert memberships(0.0) == memberships(0.001) == (1.0, 0.0, 0.0)
    assert memberships(0.1) == (0.0, 1.0, 0.0)
    assert memberships(50.0) == (0.0, 0.0, 1.0)
    assert memberships(10**-1.5) == pytest.approx((0.5, 0.5, 0.0))


def test_a_jump_is_an_isolated_increment() -> None:
    ramp = np.arange(50.0)
    assert not jumps(ramp)
    assert jumps(np.where(ramp > 20, ramp + 30, ramp))
    fast = np.cumsum(np.where((ramp > 20) & (ramp < 30), 30.0, 1.0))
    assert not jumps(fast)


def responses(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], points: int = 60
) -> list[StepResponse]:
    """Of ``x[k+1] = a x[k] + b u, y = c x + u``."""
    found = []
    for column in b.T:
        x, rows = np.zeros(len(a)), []
        for _ in range(points):
            rows.append(c @ x + 1.0)
            x = a @ x + column
        found.append(StepResponse(np.array(rows)))
    return found


def test_step_responses_show_the_eigenvalues() -> None:
    poles = np.array([0.9764, 0.652, 0.8])
    change = np.array([[1.0, 0.4, 0.1], [0.0, 1.0, -0.7], [0.3, 0.0, 1.0]])
    a = change @ np.diag(poles) @ np.linalg.inv(change)
    found = responses(
        a, np.ones((3, 2)) * [1.0, 50.0], np.array([[1.0, 0.0, 2.0], [0.0, 300.0, 1.0]])
    )
    expected = np.exp(np.mean(np.log(-np.log(poles))))
    # the singular values of three modes spread over some decades, which costs digits
    assert mean_rate(found) == pytest.approx(expected, rel=1e-5)
    assert found[0].at_once.tolist() == [1.0, 1.0]


def test_an_integrator_has_the_rate_0() -> None:
    [found] = responses(np.eye(1), np.ones((1, 1)), np.ones((1, 1)))
    assert mean_rate([found]) < 1e-9
    assert mean_rate([StepResponse(np.ones((40, 2)))]) == 0.0  # no states at all


def test_a_micro_step_is_a_positive_number() -> None:
    with pytest.raises(OptionError, match="Micro step of 'a'"):
        Fuzzy({"a": 0.0})
