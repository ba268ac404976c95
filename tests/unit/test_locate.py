"""Decisions of the rule that locates changes of discrete outputs, one by one."""

from __future__ import annotations

from math import inf, ulp

import pytest

from fmimaster.base.errors import OptionError
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Instant, TimeBase
from fmimaster.steps import Locate
from fmimaster.steps.estimator import Measured
from fmimaster.steps.locate import Bracket

RULE = Locate("0.1", tolerance=1e-3)
GRID = Grid(TimeBase(10), 0, 1)
BEGIN = Bracket(GRID)


def decide(
    memory: Bracket, length: float, error: float, now: float = 1.0, rule: Locate = RULE
) -> tuple[tuple[float, float], float | None]:
    """The ends of the next bracket, and the length of the next step; None for one on the grid."""
    bracket, size = rule.decide(memory, Instant(now), length, [Measured(error)])
    return (bracket.without, bracket.with_it), size


def test_a_step_without_a_change_is_kept() -> None:
    assert decide(BEGIN, 0.1, 0.0) == ((0.0, 0.0), None)


def test_a_step_with_a_change_is_repeated_with_half_its_length() -> None:
    assert decide(BEGIN, 0.1, 2.0) == ((0.0, 0.1), 0.05)


@pytest.mark.parametrize(
    ("error", "expected"), [(2.0, ((0.0, 0.05), 0.025)), (0.0, ((0.05, 0.1), (0.05 + 0.1) / 2))]
)
def test_the_half_with_the_change_is_halved(
    error: float, expected: tuple[tuple[float, float], float]
) -> None:
    assert decide(Bracket(GRID, 0.0, 0.1), 0.05, error) == expected


def test_all_instances_step_to_the_end_of_a_bracket_as_short_as_the_tolerance() -> None:
    bracket = Bracket(GRID, 0.05, 0.0515)
    assert decide(bracket, 0.051, 0.0) == ((0.051, 0.0515), 0.0515)
    assert decide(bracket, 0.0505, 2.0) == ((0.0, 0.0), None)


@pytest.mark.parametrize("now", [1.0, 8.0])
def test_a_bracket_of_four_roundings_of_the_time_is_not_halved(now: float) -> None:
    """Times that are passed to FMUs are rounded: a shorter bracket has hardly any between its ends."""
    rule, unit = Locate("0.1", tolerance=1e-300), ulp(now)
    assert decide(BEGIN, 4 * unit, 2.0, now, rule) == ((0.0, 0.0), None)
    assert decide(BEGIN, 5 * unit, 2.0, now, rule) == ((0.0, 5 * unit), 2.5 * unit)


def test_a_change_that_does_not_occur_again_is_not_located() -> None:
    assert decide(Bracket(GRID, 0.05, 0.0505), 0.0505, 0.0) == ((0.0, 0.0), None)


def test_a_step_that_failed_is_not_located() -> None:
    assert decide(Bracket(GRID, 0.0, 0.1), 0.05, inf) == ((0.0, 0.0), None)


@pytest.mark.parametrize("tolerance", [0.0, -1e-3, float("nan")])
def test_the_tolerance_must_be_positive(tolerance: float) -> None:
    with pytest.raises(OptionError, match="expected a positive tolerance in s"):
        Locate("0.1", tolerance=tolerance)


def test_the_size_is_that_of_a_step() -> None:
    with pytest.raises(OptionError, match=r"Step size 0\.0 s: expected a positive number"):
        Locate(0.0)
