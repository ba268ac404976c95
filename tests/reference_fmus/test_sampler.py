"""Sampler: a periodic clock, whose interval and shift are parameters."""

from __future__ import annotations

from fractions import Fraction

import pytest
from fmpy.fmi1 import FMICallException
from reference_instance import Instance, Instantiate, Interval, Known

EVENTS = {"eventModeUsed": True, "earlyReturnAllowed": True}


@pytest.fixture
def sampler(instantiate: Instantiate) -> Instance:
    """In the Event Mode of the initialization, with a tick every 1/4 s from 1/2 s on."""
    fmu = instantiate("Sampler", "fmi3", **EVENTS)
    values = {"interval.counter": 1, "shift.counter": 2, "interval.resolution": 4, "offset": 3.0}
    return fmu.initialize(**values)


def step_to(fmu: Instance, time: float) -> None:
    """From Event Mode to the Event Mode at another time."""
    fmu.update()
    fmu.fmu.enterStepMode()
    fmu.step(time - fmu.time)
    fmu.fmu.enterEventMode()


def test_interval_and_shift_follow_from_parameters(sampler: Instance) -> None:
    assert sampler.interval("tick") == Interval(Known.CHANGED, Fraction(1, 4))
    assert sampler.interval("tick") == Interval(Known.UNCHANGED, Fraction(1, 4))
    assert sampler.shift("tick") == Fraction(1, 2)


def test_a_tick_takes_a_sample(sampler: Instance) -> None:
    for k in range(5):
        step_to(sampler, 0.5 + 0.25 * k)
        sampler["u"] = 2.0 * k
        assert not sampler.active("sampled")
        sampler.activate("tick")
        assert sampler.active("sampled")
        assert sampler["y"] == 3.0 + 2.0 * k
        assert sampler["count"] == k
        sampler.update()
        assert not sampler.active("sampled")
        assert (sampler["held"], sampler["count"]) == (3.0 + 2.0 * k, k + 1)


def test_sd8_an_event_in_the_same_iteration_is_sampled(sampler: Instance) -> None:
    step_to(sampler, 0.5)
    sampler.activate("tick")
    assert sampler["y"] == 3.0
    sampler.activate("e.tick")
    sampler["e"] = 1.0
    assert sampler["y"] == 4.0
    step_to(sampler, 0.75)
    sampler.activate("tick")
    assert sampler["y"] == 4.0


def test_a_sample_is_absent_between_ticks(sampler: Instance) -> None:
    step_to(sampler, 0.5)
    for is_active in (False, True):
        if is_active:
            sampler.activate("tick")
            assert sampler["y"] == 3.0
            sampler.update()
        with pytest.raises(FMICallException):
            sampler["y"]
        assert sampler.log[-1].endswith("is absent, because its clock is not active.")


def test_a_tick_at_another_time_is_refused(sampler: Instance) -> None:
    step_to(sampler, 0.4)
    with pytest.raises(FMICallException):
        sampler.activate("tick")
    assert "the clock 'tick' is to tick at t = 0.5 s, and not at 0.4" in sampler.log[-1]


def test_a_periodic_clock_ticks_once_in_an_event_mode(sampler: Instance) -> None:
    step_to(sampler, 0.5)
    sampler.activate("tick")
    sampler.update()
    with pytest.raises(FMICallException):
        sampler.activate("tick")
    assert "the periodic clock 'tick' has ticked in this Event Mode" in sampler.log[-1]


def test_an_active_clock_can_be_activated_again_in_its_iteration(sampler: Instance) -> None:
    """As an importer does that sets clocks in each sweep of a loop."""
    step_to(sampler, 0.5)
    for _ in range(2):
        sampler.activate("tick")
    sampler.update()
    assert sampler["count"] == 1


def test_an_active_clock_cannot_be_deactivated(sampler: Instance) -> None:
    step_to(sampler, 0.5)
    sampler.activate("tick", False)
    sampler.activate("tick")
    with pytest.raises(FMICallException):
        sampler.activate("tick", False)
    assert "the clock 'tick' cannot be deactivated." in sampler.log[-1]


def test_functions_of_clocks_are_refused_in_step_mode(sampler: Instance) -> None:
    sampler.update()
    sampler.fmu.enterStepMode()
    for call in (
        lambda: sampler.interval("tick"),
        lambda: sampler.shift("tick"),
        lambda: sampler.activate("tick"),
        lambda: sampler.active("sampled"),
    ):
        with pytest.raises(FMICallException):
            call()
        assert "is not allowed in Step Mode." in sampler.log[-1]


def test_the_importer_cannot_set_an_interval_that_follows_from_parameters(
    instantiate: Instantiate,
) -> None:
    fmu = instantiate("Sampler", "fmi3", **EVENTS)
    fmu.enter_initialization_mode()
    with pytest.raises(FMICallException):
        fmu.set_interval("tick", Fraction(1, 3))
    assert "the importer cannot set this of the clock 'tick'." in fmu.log[-1]


def test_a_triggered_clock_has_no_interval(sampler: Instance) -> None:
    with pytest.raises(FMICallException):
        sampler.interval("sampled")
    assert "the clock 'sampled' is triggered, and has no interval." in sampler.log[-1]


def test_an_interval_of_zero_is_refused(instantiate: Instantiate) -> None:
    fmu = instantiate("Sampler", "fmi3", **EVENTS)
    with pytest.raises(FMICallException):
        fmu.initialize(**{"interval.counter": 0})
    assert fmu.log[-1] == "interval is 0/10 s. It must be above 0 s."


def test_without_event_mode_it_is_refused(instantiate: Instantiate) -> None:
    fmu = instantiate("Sampler", "fmi3")
    with pytest.raises(FMICallException):
        fmu.initialize()
    assert fmu.log[-1] == "Sampler acts at events only. It must be instantiated with Event Mode."
