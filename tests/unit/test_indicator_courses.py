"""Cubics through the indicators of events, by points of polynomials that are known."""

from __future__ import annotations

import numpy as np
import pytest

from fmimaster.events.indicator_courses import course, expected_at_end, through_ends, through_points
from fmimaster.events.intermediate import InsideWatch
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope


def test_the_slope_of_an_indicator_may_be_the_first_output() -> None:
    """z = 1 - t^2 by values and slopes at -1 s and 0 s; the slope is in slot 0."""
    assert through_points([(1, 0)], [0.0, 1.0], [([2.0, 0.0], 1.0)], 2.0) == [[1.0, 0.0, -1.0, 0.0]]


def test_an_indicator_without_slope_is_a_parabola_through_three_values() -> None:
    """z = 1 - t^2 at 0 s, -1 s and -3 s."""
    points = [([0.0], 1.0), ([-8.0], 3.0)]
    assert through_points([(0, -1)], [1.0], points, 2.0) == [[1.0, 0.0, -1.0, 0.0]]


def test_an_indicator_without_slope_is_a_line_through_two_values() -> None:
    assert through_points([(0, -1)], [1.0], [([3.0], 1.0)], 2.0) == [[1.0, -2.0, 0.0, 0.0]]


def test_an_event_of_which_an_indicator_stays_above_0_has_no_cubics() -> None:
    """The second one is 1 at all times."""
    pairs, now, before = [(0, 1), (2, 3)], [-1.0, 0.0, 1.0, 0.0], [-1.0, 0.0, 1.0, 0.0]
    assert through_points(pairs, now, [(before, 1.0)], 2.0) == []
    assert through_ends(pairs, before, now, 1.0, []) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1.0, 0.0), (1.0, 1.5), (1.0, 0.0, -0.25, 1.5 / 36)),
        ((1.0, -1.5), (1.0, 0.0), (1.0, -1.5, 0.5, -1.5 / 36)),
    ],
    ids=["by the slope at the end", "by the slope at the start"],
)
def test_a_step_in_which_an_indicator_may_fall_to_0_has_cubics(
    before: tuple[float, float], after: tuple[float, float], expected: tuple[float, ...]
) -> None:
    """Its value is 1 at both ends of 6 s, and a slope points to below 0."""
    [found] = through_ends([(0, 1)], before, after, 6.0, [])
    assert found == pytest.approx(expected, rel=1e-14)


def test_between_both_ends_an_indicator_without_slope_is_a_parabola_through_an_older_value() -> (
    None
):
    """z = t^2 - 1 at 0 s and 2 s, and at -1 s."""
    assert through_ends([(0, -1)], [-1.0], [3.0], 2.0, [([0.0], 1.0)]) == [[-1.0, 0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("curvature", "earlier", "doubt"), [(1.0, (0.0, 1.0), 3.0), (3.0, (2.0, -3.0), 2.0)]
)
def test_the_course_of_an_indicator_is_in_doubt_where_its_cubic_term_grows(
    curvature: float, earlier: tuple[float, float], doubt: float
) -> None:
    """z = t^3 + c t^2 by values and slopes at -1 s and 0 s, at 1 s. The error is that of the cubic term, 2; if that
    is larger there than the curvature, the line through the start may be right, too."""
    found = expected_at_end([0.0, 0.0], [0.0, 0.0], 1.0, [(earlier, -1.0)], 0, 1)
    assert (found.value, found.slope, found.error) == (1 + curvature, 3 + 2 * curvature, 2.0)
    assert found.doubt == doubt


@pytest.mark.parametrize(("slope", "is_executed"), [(1.0, False), (-1.0, True)])
def test_an_indicator_below_0_has_jumped_only_if_its_slopes_cannot_have_raised_it(
    slope: float, is_executed: bool
) -> None:
    """It is -1 at the start and falls with the slope -1; after 1 s it is above the line by 1.5."""
    declared = EventDeclaration("hit", Scope.PRIVATE, (Indicator("z", "dz"),))
    watched = IndicatorSet(0, 0, 0, (0,), ((0, 1),), (0.0,), True, 0.0, False, False, declared)
    found = course(watched, [-1.0, -1.0], [-0.5, slope], 1.0, [], 0.0)
    assert (found.jump > 0.0) == is_executed


@pytest.mark.parametrize(
    ("slope", "expected"), [(-1.0, 1.0 + 0.95 * 1.1), (-0.5, None), (0.0, None), (0.5, None)]
)
def test_an_fmu_returns_early_only_before_an_indicator_that_falls(
    slope: float, expected: float | None
) -> None:
    """It is 1.1 after a step inside of 1 s; the next one passes 0 only if it falls fast enough."""
    found = InsideWatch([[(0, 1)]])(0.0, 1.0, np.array([1.1, slope]))
    assert found == expected if expected is not None else np.isnan(found)
