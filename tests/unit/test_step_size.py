"""The grid of a fixed step: points from integers, never from a sum."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fmimaster.control.instant import Instant, TimeBase, exact
from fmimaster.control.step_size import FixedStep, Grid, Ramp, Ramped, free_step
from fmimaster.errors import OptionError

STEPS = 100_000
NEVER = Instant(float("inf"))


def grid(step: float | str | Fraction, start: float | str | Fraction = 0) -> Grid:
    size, begin = exact(step), exact(start)
    base = TimeBase.of([size, begin])
    return Grid(base, base.ticks(begin), base.ticks(size))


def points(g: Grid, count: int) -> list[Instant]:
    """The start and that many grid points."""
    return [g.point(k) for k in range(count + 1)]


@pytest.mark.parametrize("size", [0.0, -0.1, "-1/60"])
def test_a_step_size_must_be_positive(size: float | str) -> None:
    with pytest.raises(OptionError, match=r"Step size .* expected a positive number"):
        FixedStep(size)


def test_a_step_size_may_be_a_fraction() -> None:
    assert FixedStep("1/60").exact_size == Fraction(1, 60)


@pytest.mark.parametrize("start", [0, 0.3])
@pytest.mark.parametrize("step", [0.1, "1/60", 1e-3, 0.1 + 0.2])
def test_each_point_plus_its_step_is_the_next_point_bit_by_bit(
    step: float | str, start: float
) -> None:
    t = [point.seconds for point in points(grid(step, start), STEPS)]
    h = [after - before for before, after in itertools.pairwise(t)]
    assert len(t) == STEPS + 1
    assert [a + b for a, b in zip(t, h, strict=False)] == t[1:]


@pytest.mark.parametrize("step", [0.1, "1/60", 1e-3, 0.1 + 0.2])
def test_no_error_adds_up_on_the_grid(step: float | str) -> None:
    t = [point.seconds for point in points(grid(step), STEPS)]
    assert t == [float(k * exact(step)) for k in range(STEPS + 1)]


decimal = st.decimals(0, 1000, places=4).map(Fraction)
size = st.decimals("0.0001", 10, places=4).map(Fraction)


@given(decimal, size)
def test_on_any_decimal_grid_a_point_plus_its_step_is_the_next_point(
    start: Fraction, step: Fraction
) -> None:
    t = [point.seconds for point in points(grid(step, start), 200)]
    assert [a + (b - a) for a, b in itertools.pairwise(t)] == t[1:]


@given(decimal, size, st.integers(0, 1000))
def test_the_point_after_a_grid_point_is_the_next_one(
    start: Fraction, step: Fraction, k: int
) -> None:
    g = grid(step, start)
    here = g.base.instant(g.start + k * g.step)
    assert g.propose(here).end == g.base.instant(g.start + (k + 1) * g.step)


@given(decimal, size, decimal)
def test_after_an_interruption_the_next_goal_is_the_next_grid_point(
    start: Fraction, step: Fraction, after: Fraction
) -> None:
    base = TimeBase.of([start, step, after])
    g = Grid(base, base.ticks(start), base.ticks(step))
    here = base.instant(base.ticks(start + after))
    end = Fraction(g.propose(here).end.ticks, base.resolution)
    assert (end - start) % step == 0
    assert start + after < end <= start + after + step


@given(st.floats(0, 1000), size)
def test_after_a_time_that_was_found_the_next_goal_is_the_next_grid_point(
    found: float, step: Fraction
) -> None:
    end = Fraction(grid(step).propose(Instant(found)).end.ticks, grid(step).base.resolution)
    assert end % step == 0
    assert Fraction(found) < end <= Fraction(found) + step


def test_a_time_found_just_below_a_grid_point_goes_to_that_point() -> None:
    # the double 0.3 is below 3/10: the grid point has the same double, and no step is done to it
    assert grid(0.1).propose(Instant(0.3)).end == Instant(0.3, 3)


# Many points at once --------------------------------------------------------------------------------------------------


def test_grid_points_are_listed_up_to_before_the_last() -> None:
    g = grid(0.1)
    assert g.seconds_between(g.base.instant(2), g.base.instant(5), 10).tolist() == [0.3, 0.4]


def test_a_last_point_between_two_grid_points_counts_too() -> None:
    base = TimeBase(100)
    g = Grid(base, 0, 10)
    assert g.seconds_between(base.instant(20), base.instant(45), 10).tolist() == [0.3, 0.4]
    assert g.seconds_between(base.instant(25), base.instant(45), 10).tolist() == [0.3, 0.4]


@pytest.mark.parametrize(
    ("last", "listed"), [(0.45, [0.3, 0.4]), (0.375, [0.3]), (0.25, []), (0.5, [0.3, 0.4])]
)
def test_a_last_point_that_was_found_counts_as_one_that_was_given(
    last: float, listed: list[float]
) -> None:
    g = grid(0.1)
    assert g.seconds_between(g.base.instant(2), Instant(last), 10).tolist() == listed


def test_if_the_last_point_is_near_none_is_listed() -> None:
    g = grid(0.1)
    assert g.seconds_between(g.base.instant(2), g.base.instant(3), 10).tolist() == []


def test_at_most_so_many_grid_points_are_listed() -> None:
    g = grid(0.1)
    assert len(g.seconds_between(g.base.instant(0), NEVER, 7)) == 7


def test_no_two_listed_grid_points_have_the_same_double() -> None:
    # at 2**53 s doubles are 2 s apart
    g = grid(1, 2**53)
    assert g.seconds_between(g.base.instant(2**53), NEVER, 5).tolist() == []


@given(
    st.fractions(-(10**9), 10**9, max_denominator=10**6),
    st.fractions("1/1000", 1000, max_denominator=10**6),
    st.integers(0, 10**9),
    st.integers(1, 20),
)
def test_points_listed_at_once_have_the_bits_of_points_one_by_one(
    start: Fraction, step: Fraction, k: int, most: int
) -> None:
    g = grid(step, start)
    listed = g.seconds_between(g.point(k), NEVER, most).tolist()
    assert listed == [g.point_after(g.point(k), n).seconds for n in range(most)]
    assert listed == [float(start + (k + 1 + n) * step) for n in range(most)]


@given(st.fractions(0, 100), st.fractions("1/1000", 1))
def test_any_rational_grid_is_met_without_rounding_errors(start: Fraction, step: Fraction) -> None:
    assume(step > 0)
    t = [point.seconds for point in points(grid(step, start), 50)]
    assert t == [float(start + k * step) for k in range(51)]


# Ramp -----------------------------------------------------------------------------------------------------------------


def ramped(rule: Ramp) -> Ramped:
    base = TimeBase.of([rule.exact_size])
    return Ramped(base, base.ticks(rule.exact_size), rule)


def lengths(rule: Ramp, count: int, begin: float = 0.0) -> list[float]:
    """Lengths of the first steps."""
    run, now, previous, found = ramped(rule), Instant(begin), 0.0, []
    for _ in range(count):
        end = run.propose(now, previous).end
        previous = end.seconds - now.seconds
        found.append(previous)
        now = end
    return found


def test_a_ramp_begins_with_short_steps_that_grow_to_the_size() -> None:
    expected = [0.0125, 0.025, 0.05, 0.1, 0.1, 0.1]
    assert lengths(Ramp(0.1), 6) == pytest.approx(expected, abs=1e-15)


def test_first_step_and_growth_can_be_chosen() -> None:
    expected = [0.05, 0.15, 0.2, 0.2]
    assert lengths(Ramp("1/5", first=0.25, growth=3.0), 4) == pytest.approx(expected, abs=1e-15)


def test_a_ramp_says_why_a_step_is_short() -> None:
    run = ramped(Ramp(0.1))
    assert run.propose(Instant(0.0, 0), 0.0).reason == "ramp"
    assert run.propose(Instant(0.3), 0.04).reason == "ramp"
    assert run.propose(Instant(0.3), 0.06).reason == "step size"


def test_free_steps_have_one_size_from_wherever_the_last_one_ended() -> None:
    assert lengths(free_step(0.08), 3, begin=0.01234) == pytest.approx([0.08] * 3, abs=1e-15)


def test_free_steps_from_a_given_time_add_up_without_error() -> None:
    run, now = ramped(free_step(0.1)), Instant(0.0, 0)
    for k in range(1, 1001):
        now = run.propose(now, 0.1).end
        assert now.seconds == k / 10


def test_free_steps_are_on_no_grid() -> None:
    run = ramped(free_step(0.1))
    assert run.propose(Instant(0.25), 0.1).end.seconds == pytest.approx(0.35, abs=1e-15)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0.0}, "expected a positive number"),
        ({"size": "-1/60"}, "expected a positive number"),
        ({"size": 0.1, "first": 0.0}, "expected 0 < first <= 1 and growth > 1"),
        ({"size": 0.1, "first": 1.5}, "expected 0 < first <= 1 and growth > 1"),
        ({"size": 0.1, "growth": 1.0}, "expected 0 < first <= 1 and growth > 1"),
        ({"size": 0.1, "growth": float("nan")}, "expected 0 < first <= 1 and growth > 1"),
    ],
)
def test_a_ramp_that_is_none_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Ramp(**settings)
