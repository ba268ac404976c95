"""The event units through FMI functions alone: traces of hybrid.md 2, 6 and 7 with exact times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pytest
from fmpy.fmi1 import FMICallException
from reference_instance import Instance, Instantiate, Interval, Known

F = Fraction
Unit = Callable[..., Instance]


@pytest.fixture
def unit(instantiate: Instantiate) -> Unit:
    """unit(model, **start values): an instance in the Event Mode of its initialization."""

    def make(model: str, **values: Any) -> Instance:
        fmu = instantiate(model, "fmi3", eventModeUsed=True, earlyReturnAllowed=True)
        return fmu.initialize(**{name.replace("__", "."): v for name, v in values.items()})

    return make


def step_to(fmu: Instance, time: Fraction | float) -> None:
    """From Event Mode to Event Mode at another time; at the same time it stays."""
    if float(time) == fmu.time:
        return
    fmu.fmu.enterStepMode()
    fmu.step(float(time) - fmu.time)
    fmu.fmu.enterEventMode()


def ticks(
    fmu: Instance,
    clock: str,
    triggers: Iterable[tuple[str, Fraction]] = (),
    until: int | Fraction = 9,
) -> list[tuple[Fraction, int]]:
    """Exact superdense times of a countdown or changing clock; (clock, time) are set before at equal times."""
    waiting = list(triggers)
    interval = fmu.interval(clock)
    due = interval.seconds
    found: list[tuple[Fraction, int]] = []
    t, n = F(0), -1
    while True:
        times = [time for _, time in waiting[:1]] + [d for d in [due] if d is not None]
        if not times or min(times) > until:
            return found
        n = n + 1 if min(times) == t else 0
        t = min(times)
        step_to(fmu, t)
        if due == t:
            fmu.activate(clock)
            found.append((t, n))
            due = None
        while waiting and waiting[0][1] == t:
            fmu.activate(waiting.pop(0)[0])
        fmu.update()
        interval = fmu.interval(clock)
        if interval.known is Known.CHANGED:
            assert interval.seconds is not None
            due = t + interval.seconds


# Sources ----------------------------------------------------------------------------------------------------------------


def test_an_event_source_emits_its_events_with_all_types(unit: Unit) -> None:
    fmu = unit(
        "EventSource", count=2, times=[1, 3, 0, 0, 0, 0, 0, 0], resolution=3, values=[7.0] * 8
    )
    assert fmu.interval("due") == Interval(Known.CHANGED, F(1, 3))
    for k, t in enumerate([F(1, 3), F(1)], start=1):
        step_to(fmu, t)
        assert not fmu.active("event")
        fmu.activate("due")
        assert fmu.active("event")
        assert (fmu["value"], fmu["text"]) == (7.0, f"event {k}: 7")
        assert fmu["data"] == bytes(range(1, k + 1))
        assert fmu["ramp"] == float(t)
        fmu.update()
        assert fmu["done"] == k
    assert fmu.interval("due").known is Known.NOT_YET


def test_events_at_equal_times_follow_each_other(unit: Unit) -> None:
    fmu = unit("EventSource", count=3, times=[1, 1, 2, 0, 0, 0, 0, 0])
    assert ticks(fmu, "due") == [(F(1), 0), (F(1), 1), (F(2), 0)]


def test_times_of_events_must_not_decrease(unit: Unit) -> None:
    with pytest.raises(FMICallException):
        unit("EventSource", count=2, times=[2, 1, 0, 0, 0, 0, 0, 0])


# Units without time -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("present", "total"),
    [({"e1": 1.0}, 1.0), ({"e2": 10.0}, 10.0), ({"e1": 1.0, "e2": 10.0}, 11.0)],
)
def test_sd6_an_adder_adds_what_is_present(
    unit: Unit, present: dict[str, float], total: float
) -> None:
    fmu = unit("EventAdder")
    fmu.update()
    for name, value in present.items():
        fmu.activate(f"{name}.tick")
        fmu[name] = value
    assert fmu.active("s.tick")
    assert fmu["s"] == total
    fmu.update()
    assert not fmu.active("s.tick")
    assert fmu["held"] == total


def test_sd2_a_delay_takes_an_event_iteration(unit: Unit) -> None:
    fmu = unit("EventDelay")
    assert not fmu.update().again
    fmu.activate("in.tick")
    fmu["in"] = 7.0
    assert not fmu.active("out.tick")
    assert fmu.update().again
    assert fmu.active("out.tick")
    assert fmu["out"] == 7.0
    assert not fmu.update().again
    assert not fmu.active("out.tick")


def test_a_logger_keeps_text_and_bytes(unit: Unit) -> None:
    fmu = unit("Logger")
    step_to(fmu, 0.5)
    fmu["u"] = 2.5
    fmu.activate("write")
    fmu["text"] = "started"
    fmu["data"] = b"\x00\xff"
    fmu.update()
    assert fmu["line"] == "1 at 0.5 s: u = 2.5, started"
    assert fmu["bytes"] == b"\x00\xff"


def test_a_shared_variable_is_written_in_the_order_of_its_inputs(unit: Unit) -> None:
    fmu = unit("SharedVariable")
    for name, value in (("b", 3.0), ("a", 2.0)):
        fmu.activate(f"{name}.tick")
        fmu[name] = value
    fmu.update()
    assert (fmu["x"], fmu["count"]) == (3.0, 2)


# Countdowns -------------------------------------------------------------------------------------------------------------

TRIGGERS = [("start", F(1)), ("start", F(11, 10))]
QUARTER = {"interval__counter": 5, "interval__resolution": 20}


def test_sd9_a_trigger_restarts_a_countdown(unit: Unit) -> None:
    fmu = unit("Countdown", policy=1, **QUARTER)
    assert ticks(fmu, "due", TRIGGERS) == [(F(27, 20), 0)]


def test_sd9_triggers_are_queued(unit: Unit) -> None:
    fmu = unit("Countdown", policy=2, **QUARTER)
    assert ticks(fmu, "due", TRIGGERS) == [(F(5, 4), 0), (F(27, 20), 0)]


def test_a_queued_trigger_leaves_the_interval_unchanged(unit: Unit) -> None:
    fmu = unit("Countdown", policy=2, **QUARTER)
    assert fmu.interval("due").known is Known.NOT_YET
    for t, known in ((1.0, Known.CHANGED), (1.1, Known.UNCHANGED)):
        step_to(fmu, t)
        fmu.activate("start")
        fmu.update()
        assert fmu.interval("due") == Interval(known, F(1, 4))


def test_sd10_a_countdown_of_zero_fires_at_the_same_time(unit: Unit) -> None:
    fmu = unit("Countdown", interval__counter=0)
    assert ticks(fmu, "due", [("start", F(1))]) == [(F(1), 1)]


def test_five_transitions_in_zero_time_are_legitimate(unit: Unit) -> None:
    fmu = unit("Countdown", interval__counter=0, times=5, startsItself=True)
    assert ticks(fmu, "due") == [(F(0), n) for n in range(5)]


def test_too_many_triggers_are_refused(unit: Unit) -> None:
    fmu = unit("Countdown", policy=2, times=16)
    fmu.activate("start")
    fmu.update()
    fmu.activate("start")
    with pytest.raises(FMICallException):
        fmu.update()
    assert fmu.log[-1] == "A trigger at t = 0 s: more than 16 firings wait."


def test_a_countdown_ticks_only_when_it_was_announced(unit: Unit) -> None:
    fmu = unit("Countdown")
    with pytest.raises(FMICallException):
        fmu.activate("due")
    assert "because its interval is not yet known." in fmu.log[-1]


# Traffic light and police officer: hybrid.md 2.1 ------------------------------------------------------------------------

OFF, RED, YELLOW, GREEN = range(4)


def test_a_light_follows_its_time_advance(unit: Unit) -> None:
    light = unit("TrafficLight")
    expected = [F(60), F(110), F(120), F(180), F(230), F(240)]
    assert ticks(light, "due", until=240) == [(t, 0) for t in expected]
    assert light["colour"] == RED
    assert light["elapsed"] == 10.0


def test_a_light_outputs_its_next_colour_before_the_transition(unit: Unit) -> None:
    light = unit("TrafficLight")
    light.interval("due")
    step_to(light, 60)
    light.activate("due")
    assert light.active("change")
    assert (light["next"], light["colour"]) == (GREEN, RED)
    light.update()
    assert light["colour"] == GREEN


def test_a_light_is_switched_off_and_on(unit: Unit) -> None:
    light = unit("TrafficLight")
    triggers = [("toOff", F(100)), ("toAuto", F(300)), ("toOff", F(400))]
    assert ticks(light, "due", triggers, until=1000) == [(F(60), 0), (F(360), 0)]
    assert (light["colour"], light["elapsed"]) == (OFF, 40.0)


def test_what_delta_ext_has_no_case_for_keeps_the_elapsed_time(unit: Unit) -> None:
    light = unit("TrafficLight")
    light.interval("due")
    step_to(light, 20)
    light.activate("toAuto")
    light.update()
    assert light.interval("due") == Interval(Known.UNCHANGED, F(60))
    step_to(light, 60)
    light.activate("due")
    light.update()
    assert (light["colour"], light["elapsed"]) == (GREEN, 60.0)


def test_a_police_officer_announces_both_messages(unit: Unit) -> None:
    police = unit("PoliceOfficer")
    police.interval("due")
    for t, clock in ((100, "toWork"), (300, "toIdle"), (400, "toWork")):
        step_to(police, t)
        police.activate("due")
        assert [name for name in ("toWork", "toIdle") if police.active(name)] == [clock]
        assert police["message"] == (clock == "toWork")
        police.update()
        assert police.interval("due").known is Known.CHANGED


# Clocks of each kind ----------------------------------------------------------------------------------------------------


def test_c7_a_tunable_interval_counts_from_the_event(unit: Unit) -> None:
    fmu = unit("ClockKinds")
    assert fmu.interval("tunable") == Interval(Known.CHANGED, F(1, 10))
    for k in range(4):
        step_to(fmu, F(k, 10))
        fmu.activate("tunable")
        assert fmu["tunable.tick"] == k + 1
        fmu.update()
        assert fmu.interval("tunable") == Interval(Known.UNCHANGED, F(1, 10))
    step_to(fmu, F(7, 20))
    fmu.activate("retune")
    fmu.update()
    assert fmu.interval("tunable") == Interval(Known.CHANGED, F(1, 4))
    for t in (F(3, 5), F(17, 20), F(11, 10)):
        step_to(fmu, t)
        fmu.activate("tunable")
        fmu.update()
    assert fmu["tunable.count"] == 7


def test_a_changing_clock_has_a_new_interval_after_each_tick(unit: Unit) -> None:
    fmu = unit("ClockKinds")
    expected = [F(3, 20), F(9, 20), F(18, 20), F(30, 20)]
    assert ticks(fmu, "changing", until=F(3, 2)) == [(t, 0) for t in expected]


def test_the_importer_sets_a_fixed_interval_that_is_declared(instantiate: Instantiate) -> None:
    fmu = instantiate("ClockKinds", "fmi3", eventModeUsed=True)
    fmu.enter_initialization_mode()
    assert fmu.interval("fixed") == Interval(Known.UNCHANGED, F(1, 4))
    assert fmu.shift("fixed") == F(1, 20)
    fmu.set_interval("fixed", F(1, 3))
    fmu.fmu.exitInitializationMode()
    assert fmu.interval("fixed") == Interval(Known.UNCHANGED, F(1, 3))
    with pytest.raises(FMICallException):
        fmu.set_interval("fixed", F(1, 2))
    step_to(fmu, F(1, 20))
    fmu.activate("fixed")
    fmu.update()
    step_to(fmu, F(1, 20) + F(1, 3))
    fmu.activate("fixed")
    fmu.update()
    assert fmu["fixed.count"] == 2


def test_fractions_of_a_decimal_clock_are_refused(unit: Unit) -> None:
    fmu = unit("ClockKinds")
    with pytest.raises(FMICallException):
        fmu.interval("constant")
    assert "supportsFraction of the clock 'constant' is false." in fmu.log[-1]
