"""Points at equal distances: from a given instant as integers, from a found one as sums of doubles."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fmimaster.instants.instant import NEVER, Instant, TimeBase
from fmimaster.steps.ramp import EvenSteps

BASE = TimeBase(10)
POINTS = EvenSteps(BASE, 3)
GIVEN, FOUND = BASE.instant(0), Instant(0.1)
AFTER_GIVEN = [0.3, 0.6, 0.9, 1.2]
AFTER_FOUND = [0.1 + 0.3, 0.1 + 0.3 + 0.3, 0.1 + 0.3 + 0.3 + 0.3]


@pytest.mark.parametrize(("last", "number"), [(12, 3), (13, 4), (15, 4)])
def test_after_a_given_instant_they_are_those_of_a_grid(last: int, number: int) -> None:
    found = POINTS.seconds_between(GIVEN, BASE.instant(last), 100)
    assert found.tolist() == AFTER_GIVEN[:number]


def test_after_a_found_instant_they_are_sums() -> None:
    assert POINTS.seconds_between(FOUND, BASE.instant(11), 100).tolist() == AFTER_FOUND


@pytest.mark.parametrize(("first", "expected"), [(GIVEN, AFTER_GIVEN), (FOUND, AFTER_FOUND)])
def test_each_is_found_by_its_number(first: Instant, expected: list[float]) -> None:
    found = [POINTS.point_after(first, n) for n in range(len(expected))]
    assert [point.seconds for point in found] == expected
    ticks = [3, 6, 9, 12] if first is GIVEN else [-float("inf")] * 3
    assert [point.ticks for point in found] == ticks


@pytest.mark.parametrize(("first", "expected"), [(GIVEN, AFTER_GIVEN), (FOUND, AFTER_FOUND)])
def test_there_are_no_more_than_asked_for(first: Instant, expected: list[float]) -> None:
    assert POINTS.seconds_between(first, NEVER, 2).tolist() == expected[:2]


def test_they_end_before_a_step_that_rounding_has_made_too_short() -> None:
    """0.4 - 0.1 is above 0.3, and 0.7 - 0.4 is below it."""
    found = EvenSteps(BASE, 3, least=0.3).seconds_between(FOUND, NEVER, 3)
    assert found.tolist() == [0.4]


@pytest.mark.parametrize("first", [GIVEN, FOUND])
def test_there_are_none_if_none_are_asked_for(first: Instant) -> None:
    assert POINTS.seconds_between(first, BASE.instant(11), 0).tolist() == []


def test_there_are_none_where_a_step_does_not_change_the_time() -> None:
    assert POINTS.seconds_between(Instant(1e17), NEVER, 3).tolist() == []


def test_times_that_are_no_doubles_as_ticks_do_no_harm() -> None:
    """A start time of 6e-314 s, which a tool wrote into an FMU, gives a base of more ticks than a double holds."""
    start = Fraction(6.36599e-314)
    base = TimeBase(start.denominator * 10)
    first, last = (base.instant(int((start + k) * base.resolution)) for k in (0, 1))
    points = EvenSteps(base, base.resolution // 10)
    assert points.seconds_between(first, last, 100).tolist() == [k / 10 for k in range(1, 10)]
    assert points.seconds_between(last, NEVER, 2).tolist() == [1.1, 1.2]
    assert points.point_after(last, 2).seconds == 1.3
