"""Event indicators: when one is at zero, and which events are on, the same in any unit."""

from __future__ import annotations

import pytest
from event_store import NOTHING, STEP, Seen, plan

from fmimaster.events.predictive import Predictive
from fmimaster.program.indicators import LATE
from fmimaster.record.causes import GRID
from fmimaster.system.model import DataType

UNITS = pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6], ids=["SI", "1e-6", "1e6"])
"""What one of the unit of the indicators is in another unit."""

CONTACT = {"contact": ["gap", "speed"]}


def ball(gap: float, speed: float, acceleration: float = 0.0, unit: float = 1.0) -> Seen:
    """A distance and its derivative, which once were 1 and -1 per second."""
    seen = Seen(plan(CONTACT))
    for a, b, c in ((1.0, -1.0, -1.0), (gap, speed, acceleration)):
        seen.put({"gap": a * unit, "dgap": b * unit, "speed": b * unit, "dspeed": c * unit}, 0.5)
        seen.indicators.present()
    return seen


@UNITS
@pytest.mark.parametrize(
    ("gap", "speed", "is_on"),
    [
        (1e-13, -1.0, True),
        (0.9e-10, -1.0, True),  # 1e-9 of a step before it
        (1.1e-10, -1.0, False),
        (0.9e-12, -1e-3, True),
        (0.0, -1e-7, True),
        (-1e-8, -1e-8, True),
        (1e-8, -1.0, False),
        (-1e-3, -1.0, True),
        (-1e-3, 0.5, False),
        (0.0, 1e-6, False),
    ],
)
def test_an_indicator_is_at_zero_if_its_time_cannot_be_told_from_now(
    gap: float, speed: float, is_on: bool, unit: float
) -> None:
    assert ball(gap, speed, unit=unit).indicators.at() == ({0} if is_on else NOTHING)


@UNITS
@pytest.mark.parametrize("gap", [0.0, 1e-13, -1e-10])
@pytest.mark.parametrize("speed", [0.0, 1e-13, -1e-10])
def test_a_body_that_lies_on_another_one_is_at_rest(gap: float, speed: float, unit: float) -> None:
    assert ball(gap, speed, unit=unit).indicators.at() == NOTHING
    assert not ball(gap, speed, unit=unit).indicators.still_on(0)


@UNITS
def test_a_body_that_is_pressed_onto_another_one_is_not(unit: float) -> None:
    assert ball(0.0, 0.0, -9.81, unit=unit).indicators.at() == {0}


def course(values: list[float], *, triggered: bool = True) -> Seen:
    """One indicator without derivative, at these values a tenth of a second apart."""
    seen = Seen(plan({"event": ["z"]}, slopes=False, triggered=triggered))
    for k, z in enumerate(values):
        seen.put({"z": z}, k / 10)
        seen.indicators.present()
        seen.remember()
    return seen


@UNITS
def test_without_a_derivative_the_slope_is_the_difference_to_the_point_before(unit: float) -> None:
    assert course([unit, 0.9e-10 * unit]).indicators.at() == {0}
    assert course([unit, 1.1e-9 * unit]).indicators.at() == NOTHING
    assert course([unit, 0.0, 0.0]).indicators.at() == NOTHING  # at rest
    assert course([unit, 0.0, -1e-8 * unit]).indicators.at() == {0}


def test_without_a_point_before_what_is_at_zero_has_not_fallen_to_it() -> None:
    seen = course([1.0])
    seen.store.forget()
    seen.put({"z": 0.0}, 0.1)
    assert seen.indicators.at() == NOTHING
    assert seen.indicators.stopped_at(frozenset({0})) == {0}  # but the FMU has stopped there
    seen.put({"z": -1e-8}, 0.1)
    assert seen.indicators.at() == {0}


@pytest.mark.parametrize("z", [0.0, 1e-13])
def test_an_event_that_the_fmu_lets_happen_must_be_on_for_the_fmu(z: float) -> None:
    seen = course([1.0, z], triggered=False)
    assert seen.indicators.at() == ({0} if z == 0.0 else NOTHING)
    assert seen.indicators.stopped_at(frozenset({0})) == {0}


def test_an_fmu_has_stopped_at_what_is_not_at_rest() -> None:
    seen = Seen(plan({"floor": ["gap"], "ball": ["z"]}))
    seen.put({"gap": 0.0, "dgap": 0.0, "z": 5e-10, "dz": -1.0})
    assert seen.indicators.stopped_at(frozenset({0})) == {1}
    seen.put({"z": 1.0})
    assert seen.indicators.stopped_at(frozenset({0})) == NOTHING


@UNITS
def test_an_event_is_late_by_its_part_of_a_usual_step(unit: float) -> None:
    assert not ball(-0.5 * LATE, -1.0, unit=unit).indicators.is_late(0)
    assert ball(-2 * LATE, -1.0, unit=unit).indicators.is_late(0)
    fast = -1.0 / STEP * 100
    assert not ball(-2 * LATE, fast, unit=unit).indicators.is_late(0)


@pytest.mark.parametrize(("z", "is_on"), [(0.9e-3, True), (1.1e-3, False)])
def test_an_fmu_may_declare_how_near_to_zero_an_indicator_is_at_zero(z: float, is_on: bool) -> None:
    """Relative to its nominal value, which is 1."""
    seen = Seen(plan({"hit": ["gap"]}, tolerance=1e-3))
    seen.put({"gap": z, "dgap": -1.0})
    assert bool(seen.indicators.at()) == is_on


def test_an_indicator_without_bound_is_never_at_zero() -> None:
    seen = Seen(plan({"event": ["z"]}))
    for z, dz in ((float("inf"), -1.0), (float("inf"), float("nan")), (1.0, -float("inf"))):
        seen.put({"z": z, "dz": dz})
        assert seen.indicators.at() == NOTHING
    seen.put({"z": 0.0, "dz": -1.0})
    assert seen.indicators.at() == {0}


def test_events_are_judged_by_chosen_members() -> None:
    seen = Seen(plan({"event": ["z"]}, members=("a", "b")))
    seen.put({"a.z": 1.0, "b.z": -1.0, "b.dz": -1.0})
    assert seen.indicators.at() == {1}
    assert [seen.indicators.stopped_at(frozenset({i})) for i in (0, 1)] == [NOTHING, {1}]
    assert [seen.indicators.still_on(e) for e in (0, 1)] == [False, True]


def test_the_point_before_is_the_newest_one_that_is_far_enough() -> None:
    seen = Seen(plan({"event": ["z"]}))
    for t in (0.0, 0.19, 0.2):
        seen.put({"z": 1.0 - t}, t)
        seen.remember()
    for nearest, time in ((0.005, 0.19), (0.02, 0.0)):
        found = seen.indicators.previous(0.2, nearest)
        assert found is not None
        assert found[1] == time
    assert seen.indicators.previous(0.2, 0.5) is None


@UNITS
@pytest.mark.parametrize(("acceleration", "is_on"), [(-4e-8, False), (-1e-5, True)])
def test_noise_of_an_acceleration_is_no_event_if_the_gap_stays_nothing_over_a_step(
    acceleration: float, is_on: bool, unit: float
) -> None:
    """Extrapolated inputs have more noise in the second derivative. Here it is 1e-9 of a gap of 1 in a step of 0.1 s."""
    seen = Seen(plan({"event": ["z", "w"]}))
    for z, w, a in ((1.0, -2.0, -5.0), (-1e-12, -1e-10, acceleration)):
        seen.put({"z": z * unit, "dz": w * unit, "w": w * unit, "dw": a * unit}, 0.5)
        seen.indicators.present()
    assert bool(seen.indicators.at()) == is_on


@pytest.mark.parametrize(("gap", "speed"), [(1e-12, -1e-12), (-1e-12, -1e-12)])
def test_noise_between_bodies_that_touch_and_do_not_move_is_no_event(
    gap: float, speed: float
) -> None:
    seen = Seen(plan({"event": ["z", "w"]}))
    seen.put({"z": 0.0, "dz": -2.0, "w": -2.0, "dw": -5.0})
    assert seen.indicators.at() == {0}
    seen.put({"z": gap, "dz": speed, "w": speed, "dw": -1e-12}, 0.5)
    assert seen.indicators.at() == NOTHING
    assert seen.clip(Predictive(), 0.5, 0.6).cause is GRID
    seen.put({"z": 0.0, "dz": -1e-6, "w": -1e-6, "dw": 0.0}, 0.5)
    assert seen.indicators.at() == {0}


def test_values_of_a_step_that_may_be_undone_do_not_count() -> None:
    seen = ball(gap=1.0, speed=-1.0)
    seen.indicators.present()
    before = seen.store.largest.copy()
    seen.store.outputs[DataType.FLOAT64][:] = 1e20
    seen.indicators.renew(is_tried=True)
    assert seen.indicators.present()[0] == 1e20
    assert seen.store.largest.tolist() == before.tolist()
