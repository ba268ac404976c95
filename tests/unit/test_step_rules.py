"""Step-size rules: the grid of a fixed step, ramps, and going back to locate a change."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from in_turn import in_turn

from fmimaster.base.errors import OptionError
from fmimaster.instants.grid import Grid, GridTimes, rounding
from fmimaster.instants.instant import Instant, TimeBase, exact
from fmimaster.steps.estimator import Measured
from fmimaster.steps.locate import Locate
from fmimaster.steps.ramp import FreeStep, Ramp, Ramped
from fmimaster.steps.step_rule import FixedStep

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


@pytest.mark.parametrize(("start", "step"), in_turn([0, 0.3], [0.1, "1/60", 1e-3, 0.1 + 0.2]))
def test_no_error_adds_up_and_each_point_plus_its_step_is_the_next_point_bit_by_bit(
    step: float | str, start: float
) -> None:
    t = [point.seconds for point in points(grid(step, start), STEPS)]
    h = [after - before for before, after in itertools.pairwise(t)]
    assert [a + b for a, b in zip(t, h, strict=False)] == t[1:]
    (n, d), (m, e) = (exact(value).as_integer_ratio() for value in (step, start))
    # integers are divided without a rounding error before the last one, as fractions are, and faster
    assert t == [(k * n * e + m * d) / (d * e) for k in range(STEPS + 1)]


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
    assert g.after(here) == g.base.instant(g.start + (k + 1) * g.step)


@given(decimal, size, decimal)
def test_after_an_interruption_the_next_goal_is_the_next_grid_point(
    start: Fraction, step: Fraction, after: Fraction
) -> None:
    base = TimeBase.of([start, step, after])
    g = Grid(base, base.ticks(start), base.ticks(step))
    here = base.instant(base.ticks(start + after))
    end = Fraction(g.after(here).ticks) / base.resolution
    assert (end - start) % step == 0
    assert start + after < end <= start + after + step


@given(st.floats(0, 1000), size)
def test_after_a_time_that_was_found_the_next_goal_is_the_next_grid_point(
    found: float, step: Fraction
) -> None:
    end = Fraction(grid(step).after(Instant(found)).ticks) / grid(step).base.resolution
    assert end % step == 0
    near = Fraction(rounding(found, float(step)))
    assert Fraction(found) < end <= Fraction(found) + step + 2 * near


@pytest.mark.parametrize("found", [0.3 - 1e-11, 0.3, 3 * 0.1])
def test_from_a_found_time_that_is_a_grid_point_but_for_rounding_the_next_point_is_a_step_away(
    found: float,
) -> None:
    assert grid(0.1).after(Instant(found)) == Instant(0.4, 4)


@pytest.mark.parametrize("found", [0.3 - 1e-11, 0.3, 3 * 0.1, 0.3 + 1e-11])
def test_a_grid_point_that_is_a_found_time_but_for_rounding_is_not_listed_before_it(
    found: float,
) -> None:
    g = grid(0.1)
    assert g.seconds_between(g.base.instant(1), Instant(found), 10).tolist() == [0.2]


@pytest.mark.parametrize(("time", "step"), [(0.0, 0.1), (1e9, 1e-6), (1e9, 4e-7), (1e-300, 1e-3)])
def test_rounding_is_always_well_below_a_step(time: float, step: float) -> None:
    assert 0 < rounding(time, step) <= step / 4


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
    times = g.times(g.point(k), NEVER, most)
    assert [*times] == [g.point(k).seconds, *listed]


def test_many_grid_points_are_computed_when_they_are_asked_for() -> None:
    g = grid("1/10")
    times = g.times(Instant(0.05), g.base.instant(10**10), 10**12)
    assert isinstance(times, GridTimes)
    assert (len(times), times[0], times[3], times[len(times) - 1]) == (
        10**10,
        0.05,
        0.3,
        999999999.9,
    )
    with pytest.raises(IndexError):
        times[len(times)]


@given(st.fractions(0, 100), st.fractions("1/1000", 1))
def test_any_rational_grid_is_met_without_rounding_errors(start: Fraction, step: Fraction) -> None:
    assume(step > 0)
    t = [point.seconds for point in points(grid(step, start), 50)]
    assert t == [float(start + k * step) for k in range(51)]


# Ramp -----------------------------------------------------------------------------------------------------------------


def begun(rule: Ramp, previous: float = 0.0) -> Ramped:
    """What a ramp remembers after a step of that length."""
    memory = rule.begin(TimeBase.of([rule.exact_size]), 0)
    return rule.decide(memory, Instant(0.0), previous, ())[0]


def lengths(rule: Ramp, count: int, begin: float = 0.0) -> list[float]:
    """Lengths of the first steps."""
    memory, now, found = begun(rule), Instant(begin), []
    for _ in range(count):
        end = rule.propose(now, memory).end
        found.append(end.seconds - now.seconds)
        memory, again = rule.decide(memory, now, found[-1], ())
        assert again is None
        now = end
    return found


def test_a_ramp_begins_with_short_steps_that_grow_to_the_size() -> None:
    expected = [0.0125, 0.025, 0.05, 0.1, 0.1, 0.1]
    assert lengths(Ramp(0.1), 6) == pytest.approx(expected, abs=1e-15)


def test_first_step_and_growth_can_be_chosen() -> None:
    expected = [0.05, 0.15, 0.2, 0.2]
    assert lengths(Ramp("1/5", first=0.25, growth=3.0), 4) == pytest.approx(expected, abs=1e-15)


def test_a_ramp_says_why_a_step_is_short() -> None:
    rule = Ramp(0.1)
    assert str(rule.propose(Instant(0.0, 0), begun(rule)).cause) == "ramp"
    assert str(rule.propose(Instant(0.3), begun(rule, 0.04)).cause) == "ramp"
    assert str(rule.propose(Instant(0.3), begun(rule, 0.06)).cause) == "step size"


def test_after_an_event_a_ramp_begins_again() -> None:
    rule = Ramp(0.1)
    assert rule.restart(begun(rule, 0.1)) == begun(rule)


def test_free_steps_have_one_size_from_wherever_the_last_one_ended() -> None:
    assert lengths(FreeStep(0.08), 3, begin=0.01234) == pytest.approx([0.08] * 3, abs=1e-15)


def test_free_steps_from_a_given_time_add_up_without_error() -> None:
    rule, now = FreeStep(0.1), Instant(0.0, 0)
    for k in range(1, 1001):
        now = rule.propose(now, begun(rule, 0.1)).end
        assert now.seconds == k / 10


def test_free_steps_are_on_no_grid() -> None:
    rule = FreeStep(0.1)
    assert rule.propose(Instant(0.25), begun(rule, 0.1)).end.seconds == pytest.approx(
        0.35, abs=1e-15
    )


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


# Locate ---------------------------------------------------------------------------------------------------------------


def located(change: float, rule: Locate, now: Instant) -> list[float]:
    """Lengths of the steps that are tried until a change at that time is located; the last one is accepted."""
    memory = rule.begin(TimeBase.of([rule.exact_size]), 0)
    length = rule.propose(now, memory).end.seconds - now.seconds
    tried = []
    while True:
        tried.append(length)
        memory, again = rule.decide(
            memory, now, length, [Measured(2.0 if length >= change else 0.0)]
        )
        if again is None:
            return tried
        length = again


def test_a_change_is_located_between_two_lengths_that_differ_by_the_tolerance() -> None:
    tried = located(0.0321, Locate(0.1, tolerance=1e-6), Instant(0.0, 0))
    assert tried[:3] == [0.1, 0.05, 0.025]
    without = max(length for length in tried if length < 0.0321)
    assert without < 0.0321 <= tried[-1] <= without + 1e-6


def test_a_change_is_located_no_finer_than_doubles_can_tell_times_apart() -> None:
    tried = located(0.0321, Locate(0.1), Instant(1e8, 10**9))
    assert tried[-1] - max(length for length in tried if length < 0.0321) == pytest.approx(
        6e-8, rel=1.0
    )


def test_a_step_without_a_change_is_accepted() -> None:
    rule = Locate(0.1)
    memory = rule.begin(TimeBase(10), 0)
    assert rule.decide(memory, Instant(0.0, 0), 0.1, [Measured(0.0)]) == (memory, None)


def test_a_step_that_failed_is_not_tried_again() -> None:
    rule = Locate(0.1)
    memory = rule.begin(TimeBase(10), 0)
    assert rule.decide(memory, Instant(0.0, 0), 0.1, [Measured(float("inf"))]) == (memory, None)


def test_the_tolerance_must_be_positive() -> None:
    with pytest.raises(OptionError, match="expected a positive tolerance"):
        Locate(tolerance=0.0)
