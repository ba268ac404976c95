"""The log of activations of clocks: stretches of equal distances, in exact time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from fmimaster.record.causes import Activations
from fmimaster.run.log import MOST_STRETCHES, ActivationLog


def logged(*times: Fraction | int, resolution: int = 1) -> list[tuple[Any, ...]]:
    """First, last, number and distance of each stretch."""
    log = ActivationLog()
    for time in times:
        log.add("a.tick", time)
    found = log.entries(resolution)
    assert {a.clock for a in found} <= {"a.tick"}
    return [(a.first, a.last, a.count, a.interval) for a in found]


def test_a_periodic_clock_is_one_stretch() -> None:
    tenth = Fraction(1, 10)
    assert logged(*range(21), resolution=10) == [(0, 2, 21, tenth)]
    log = ActivationLog()
    for block in range(1000):
        log.add_many("a.tick", 1000 * block, 1, 1000)
    (entry,) = log.entries(10)
    assert (entry.count, entry.last, entry.interval) == (10**6, Fraction(999_999, 10), tenth)


def test_c7_a_new_interval_begins_a_new_stretch() -> None:
    """Ticks of hybrid.md 7 C7: 1/10, from t = 7/20 on 1/4."""
    ticks = [0, 2, 4, 6, 12, 17, 22]
    assert logged(*ticks, resolution=20) == [
        (0, Fraction(3, 10), 4, Fraction(1, 10)),
        (Fraction(3, 5), Fraction(11, 10), 3, Fraction(1, 4)),
    ]


def test_ticks_of_one_instant_have_no_distance() -> None:
    assert logged(3, 3, 3) == [(3, 3, 3, 0)]


def test_a_time_that_was_found_is_exact() -> None:
    found = Fraction(0.37)
    assert logged(Fraction(1), found * 10 + 1) == [(1, found * 10 + 1, 2, found * 10)]


def test_times_are_products_and_not_sums() -> None:
    (entry,) = (Activations("a", Fraction(0), Fraction(1000), 10_001, Fraction(1, 10)),)
    assert entry.times[-1] == 1000.0
    assert entry.times[3] == 0.3
    assert Activations("a", Fraction(0), Fraction(9), 5, None).times == ()


@pytest.mark.parametrize("number", [5 * MOST_STRETCHES, 50 * MOST_STRETCHES])
def test_the_log_of_an_irregular_clock_has_a_limit(number: int) -> None:
    times = [k * k for k in range(number)]
    found = logged(*times)
    assert len(found) == MOST_STRETCHES
    assert sum(count for _, _, count, _ in found) == number
    assert found[-1][1:] == (times[-1], found[-1][2], None)


def test_how_activations_come_in_blocks_does_not_matter() -> None:
    one, many = ActivationLog(), ActivationLog()
    for k in range(10):
        one.add("a", 5 + 2 * k)
    for first, count in ((5, 1), (7, 4), (15, 0), (15, 1), (17, 4)):
        many.add_many("a", first, 2, count)
    assert one.entries(1) == many.entries(1)
