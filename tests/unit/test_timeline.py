"""The calendar of imposed points."""

from __future__ import annotations

from fmimaster.instants.instant import NEVER, Instant
from fmimaster.run.loop import Timeline


def test_points_come_in_the_order_of_time_each_once() -> None:
    timeline = Timeline.of([Instant(0.5, 5), Instant(0.1, 1), Instant(0.5, 5)])
    assert timeline.points == [Instant(0.1, 1), Instant(0.5, 5)]


def test_the_next_point_is_strictly_later() -> None:
    timeline = Timeline.of([Instant(0.1, 1), Instant(0.5, 5)])
    assert timeline.after(Instant(0.0, 0)) == Instant(0.1, 1)
    assert timeline.after(Instant(0.1, 1)) == Instant(0.5, 5)


def test_points_with_the_same_double_are_told_apart() -> None:
    timeline = Timeline.of([Instant(0.5, 50), Instant(0.5, 51)])
    assert timeline.after(Instant(0.5, 50)) == Instant(0.5, 51)


def test_after_the_last_point_there_is_never_another() -> None:
    timeline = Timeline.of([Instant(0.5, 5)])
    assert timeline.after(Instant(0.5, 5)) == NEVER
    assert Instant(1e300, 10**300) < NEVER
