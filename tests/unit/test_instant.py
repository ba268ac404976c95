"""Times are exact: what is given is a rational number, and the double that FMUs see is its correct rounding."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_tables import table

from fmimaster.base.errors import OptionError
from fmimaster.instants.instant import Instant, TimeBase, exact

# decimals as users write them; times of at most some 30 years in s
decimals = st.decimals(-(10**9), 10**9, places=6).map(Fraction)


def test_a_tenth_given_as_a_double_means_one_tenth() -> None:
    assert exact(0.1) == Fraction(1, 10)


def test_the_sum_of_a_tenth_and_two_tenths_means_its_shortest_decimal() -> None:
    assert exact(0.1 + 0.2) == Fraction("0.30000000000000004")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("1/60", Fraction(1, 60)),
        (" 0.01 ", Fraction(1, 100)),
        ("1e-3", Fraction(1, 1000)),
        (2, Fraction(2)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (-0.5, Fraction(-1, 2)),
    ],
)
def test_a_time_may_be_a_number_a_text_or_a_fraction(given: str, meant: Fraction) -> None:
    assert exact(given) == meant


NO_TIMES: list[object] = ["", " ", "ten", "1/0", "nan", "inf", "0x1", "1e", "1e1e1", "1\0"]
NO_TIMES += ["1e400", "-1e400", "1e999999999999", "1e-999999999999", "9" * 5000, 10**400]
NO_TIMES += [float("nan"), float("inf"), None, [], b"1", True, Decimal("1e400"), Decimal("nan")]


@pytest.mark.parametrize("value", NO_TIMES, ids=lambda value: repr(value)[:20])
def test_what_is_not_a_finite_number_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(
        OptionError, match=r"is not a time\. Expected a finite number in s, such as"
    ):
        exact(value)  # type: ignore[arg-type]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_comes_back_from_its_exact_meaning(value: float) -> None:
    assert float(exact(value)) == value


@given(st.lists(decimals, min_size=1))
def test_all_times_of_a_base_are_integers_in_it(times: list[Fraction]) -> None:
    base = TimeBase.of(times)
    assert [Fraction(base.ticks(t), base.resolution) for t in times] == times


@given(st.lists(decimals, min_size=1), st.integers(2, 10))
def test_no_coarser_base_has_all_times_as_integers(times: list[Fraction], factor: int) -> None:
    resolution = TimeBase.of(times).resolution
    is_divisor = resolution % factor == 0
    assert not (is_divisor and all((t * (resolution // factor)).denominator == 1 for t in times))


@given(decimals)
def test_an_instant_is_the_correct_rounding_of_its_time(time: Fraction) -> None:
    base = TimeBase.of([time])
    instant = base.instant(base.ticks(time))
    assert instant == Instant(float(time), base.ticks(time))


@given(decimals, decimals)
def test_instants_are_ordered_as_their_times(a: Fraction, b: Fraction) -> None:
    base = TimeBase.of([a, b])
    first, second = base.instant(base.ticks(a)), base.instant(base.ticks(b))
    assert (first < second, first == second) == (a < b, a == b)


def test_instants_with_the_same_double_are_told_apart_by_their_ticks() -> None:
    base = TimeBase(10**20)
    first, second = base.instant(10**20), base.instant(10**20 + 1)
    assert first.seconds == second.seconds == 1.0
    assert first < second


def test_a_found_time_comes_before_the_given_one_of_the_same_double() -> None:
    assert Instant(0.5) < TimeBase(10).instant(5) < Instant(0.6)


# Clocks: hybrid.md, section 7 -----------------------------------------------------------------------------------------


def ticks(base: TimeBase, interval: Fraction, until: int) -> set[Instant]:
    """Instants of a clock with shift 0 until a time in s, inclusive."""
    step = base.ticks(interval)
    return {base.instant(k) for k in range(0, until * base.resolution + 1, step)}


def counts(a: Fraction, b: Fraction, until: int) -> tuple[int, int, int, int]:
    """Ticks of both, simultaneous ones, distinct instants."""
    base = TimeBase.of([a, b])
    first, second = ticks(base, a, until), ticks(base, b, until)
    return len(first), len(second), len(first & second), len(first | second)


def test_clocks_of_a_tenth_and_a_third_meet_at_whole_seconds_only() -> None:  # C1
    assert counts(exact("1/10"), exact("1/3"), 1000) == (10001, 3001, 1001, 12001)


def test_clocks_of_three_tenths_and_a_half_meet_every_one_and_a_half_seconds() -> None:  # C2
    assert counts(exact(0.3), exact(0.5), 30) == (101, 61, 21, 141)


def test_clocks_of_one_and_the_root_of_two_never_meet_again() -> None:  # C3
    assert counts(Fraction(1), exact(2**0.5), 1000)[2:] == (1, 1708)


def test_a_third_as_a_decimal_is_no_third() -> None:  # C4
    assert counts(exact("1/10"), exact("0.3333333333333333"), 10)[2] == 1


def test_the_merged_ticks_are_those_of_the_reference_table() -> None:
    base = TimeBase.of([exact("1/10"), exact("1/3")])
    a, b = ticks(base, Fraction(1, 10), 2), ticks(base, Fraction(1, 3), 2)
    merged = [(t.seconds, t in a, t in b) for t in sorted(a | b)]
    assert merged == list(_reference_ticks())


def _reference_ticks() -> Iterable[tuple[float, bool, bool]]:
    for row in table("hybrid_clocks_rational.csv"):
        yield float(row["t_float"]), row["tick_a"] == "1", row["tick_b"] == "1"


def test_the_millionth_tick_of_a_tenth_is_a_hundred_thousand_seconds_exactly() -> None:  # C5
    base = TimeBase.of([exact(0.1)])
    assert base.instant(10**6 * base.ticks(Fraction(1, 10))).seconds == 100000.0
