"""What instructions mean at events, by small programs on FMUs written in Python: early returns, triggers, updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import chain, repeat
from math import inf, nan, ulp
from typing import Any

import numpy as np
import pytest
from python_fmu import Bench, PythonFmu

from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.plan.layout import Group
from fmimaster.plan.policy import EventUse, Policy
from fmimaster.program.hook import FunctionHook, Hook
from fmimaster.program.store import ValueStore
from fmimaster.run.executor import Halt, Outcome, Reason
from fmimaster.run.rows import Counted
from fmimaster.system.clocks import ClockAttributes, IntervalVariability, Qualifier
from fmimaster.system.declarations import EventDeclaration, EventPolicy, Indicator, Payload, Scope
from fmimaster.system.model import DataType, Variability
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

CLOCK = {"type": DataType.CLOCK}


# STEP with early returns ----------------------------------------------------------------------------------------------


def integrate(v: Any, h: float) -> None:
    """x grows by u per second."""
    v.x += h * v.u


def ramp(step: Callable[[Any, float], StepAnswer | None] = integrate, **more: Any) -> PythonFmu:
    return PythonFmu(
        inputs={"u": 1.0},
        states={"x": 0.0},
        outputs={"y": lambda v: v.x, "t": lambda v: v.t},
        step=step,
        **more,
    )


def early(at: float | Callable[[Any], float], *, event: bool = True) -> PythonFmu:
    """A ramp with Event Mode whose steps end early at this time."""

    def step(v: Any, h: float) -> StepAnswer | None:
        end = at(v) if callable(at) else at
        if v.t < end <= v.t + h:
            integrate(v, end - v.t)
            return StepAnswer(end, early=end < v.t + h, event=event)
        integrate(v, h)
        return None

    return ramp(step, has_event_mode=True, might_return_early_from_do_step=True)


POLICY = EventPolicy("policy", execute=0, announce=1, ignore=2)


def discarding(at: float) -> PythonFmu:
    """A ramp without Event Mode that discards a step over this time."""

    def step(v: Any, h: float) -> StepAnswer | None:
        inside = v.t < at < v.t + h
        integrate(v, h)
        return StepAnswer(at, discarded=True) if inside else None

    return ramp(
        step,
        parameters={"policy": 0},
        attributes={"policy": {"type": DataType.INT32}},
        event_policy=POLICY,
    )


USE = EventUse(policy=Policy.ANNOUNCE, early_return=True, event_mode=True)


def bench(connections: list[str] | None = None, **units: PythonFmu) -> Bench:
    made = Bench(units, connections or [], use=USE, n_buffers=3)
    made.initialize()
    return made


def steps(b: Bench, name: str) -> list[tuple[float, Any]]:
    """Start and approximate size of each step."""
    return [(t, pytest.approx(h)) for t, h in b.instances[name].called(FmiCall.DO_STEP)]


def test_after_an_early_return_the_others_step_no_farther() -> None:
    b = bench(a=early(0.4), b=ramp())
    outcome = b.run("STEP a 1.0\nSTEP b 1.0", 0.0, 1.0)
    assert outcome == Outcome(0.4, event_requests=(0,))
    assert steps(b, "b") == [(0.0, 0.4)]


def test_who_stands_at_the_limit_or_beyond_is_not_stepped() -> None:
    b = bench(a=early(0.5), b=ramp(), c=ramp())
    outcome = b.run("STEP b 0.5\nSTEP a 1.0\nSTEP b 1.0\nSTEP c 1.0\nSTEP a 1.0", 0.0, 1.0)
    assert outcome == Outcome(0.5, event_requests=(0,))
    assert [len(steps(b, name)) for name in "abc"] == [1, 1, 1]


def test_who_is_left_beyond_the_limit_ends_the_run() -> None:
    b = bench(a=early(0.5), b=ramp(), c=ramp())
    outcome = b.run("STEP c 0.75\nSTEP a 1.0\nSTEP c 1.0", 0.0, 1.0)
    assert outcome.stopped == Halt(Reason.EARLY, 2, -1, 0.5)
    assert len(steps(b, "c")) == 1


def test_of_several_early_returns_the_earliest_counts_and_no_later_one_asks_for_an_event() -> None:
    b = bench(a=early(0.6), b=early(0.3), c=early(0.9))
    outcome = b.run("SAVE a 0\nSTEP a 1.0\nSTEP b 1.0\nSTEP c 1.0\nALIGN a 0", 0.0, 1.0)
    assert outcome == Outcome(0.3, event_requests=(1,))
    assert steps(b, "c") == [(0.0, 0.3)]


def test_an_event_at_the_end_of_a_step_is_no_early_return() -> None:
    b = bench(a=early(1.0), b=ramp())
    assert b.run("STEP a 1.0\nSTEP b 1.0", 0.0, 1.0) == Outcome(1.0, event_requests=(0,))
    assert steps(b, "b") == [(0.0, 1.0)]


def test_an_early_return_without_an_event_sets_the_limit_too() -> None:
    b = bench(a=early(0.4, event=False), b=ramp())
    assert b.run("STEP a 1.0\nSTEP b 1.0", 0.0, 1.0) == Outcome(0.4)


def test_the_limit_does_not_outlast_the_program() -> None:
    b = bench(a=early(0.4, event=False))
    b.run("STEP a 1.0", 0.0, 1.0)
    assert b.run("STEP a 1.0", 0.4, 1.0) == Outcome(1.0)


@pytest.mark.parametrize("reached", [-0.5, -1e-5, 1.0 + 1e-5, 1.5, nan, inf])
def test_an_early_return_outside_of_the_step_stops_the_program(reached: float) -> None:
    unit = ramp(
        lambda v, h: StepAnswer(reached, early=True),
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )
    stop = bench(a=unit).run("STEP a 1.0", 0.0, 1.0).stopped
    assert stop is not None
    assert (stop.reason, stop.instance, stop.instruction) == (Reason.EARLY, 0, 0)
    assert stop.time == pytest.approx(reached, abs=0.0, nan_ok=True)


def naming(reached: float) -> PythonFmu:
    """Ends each step from 0.6 s on with an event, and names this time."""
    return ramp(
        lambda v, h: StepAnswer(reached, early=True, event=True) if v.t == 0.6 else None,
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )


@pytest.mark.parametrize("reached", [0.7 - ulp(0.7), 0.7, 0.7 + ulp(0.7), 0.7 + 1e-8])
def test_a_time_within_rounding_of_the_end_is_the_end(reached: float) -> None:
    """The last one is the time of an FMU that has added up many small steps."""
    b = bench(a=naming(reached), b=ramp())
    both = "STEP a 1.0\nSTEP b 1.0"
    b.run(both, 0.0, 0.6)
    assert b.run(both, 0.6, 0.7) == Outcome(0.7, event_requests=(0,))
    assert steps(b, "b")[1:] == [(0.6, 0.1)]


@pytest.mark.parametrize("reached", [0.6 - 1e-8, 0.6 - ulp(0.6), 0.6, 0.6 + ulp(0.6)])
def test_an_early_return_without_length_is_an_event_at_the_start(reached: float) -> None:
    b = bench(a=naming(reached), b=ramp(), c=ramp())
    body = "SAVE b 0\nSTEP b 1.0\nSTEP a 1.0\nSTEP c 1.0\nALIGN b 0"
    b.run(body, 0.0, 0.6)
    assert b.run(body, 0.6, 0.7) == Outcome(0.6, event_requests=(0,))
    assert [len(steps(b, name)) - 1 for name in "abc"] == [1, 1, 0]
    assert b.counted(Counted.RESTORES) == {"a": 0, "b": 1, "c": 0}


def test_five_units_in_the_last_place_before_the_end_is_an_early_return() -> None:
    reached = 0.7 - 5 * ulp(0.7)
    b = bench(a=naming(reached), b=ramp())
    b.run("STEP a 1.0\nSTEP b 1.0", 0.0, 0.6)
    assert b.run("STEP a 1.0\nSTEP b 1.0", 0.6, 0.7) == Outcome(reached, event_requests=(0,))


def test_who_stops_a_rounding_error_before_the_others_does_not_bring_them_back_again() -> None:
    """Both have the event at one time, but compute it in their own ways."""
    b = bench(a=early(0.4), b=early(0.4 - ulp(0.4)))
    assert b.run("STEP a 1.0\nSTEP b 1.0", 0.0, 1.0) == Outcome(0.4, event_requests=(0, 1))


def test_an_early_return_of_who_may_not_stops_the_program() -> None:
    unit = ramp(lambda v, h: StepAnswer(0.5, early=True))
    stop = bench(a=unit).run("STEP a 1.0", 0.0, 1.0).stopped
    assert stop is not None
    assert stop.reason is Reason.EARLY


def test_a_step_that_is_discarded_at_an_event_sets_the_limit() -> None:
    b = bench(a=discarding(0.4), b=ramp())
    outcome = b.run("SAVE a 0\nSTEP a 1.0\nALIGN a 0\nSTEP b 1.0", 0.0, 1.0)
    assert outcome == Outcome(0.4, event_requests=(0,))
    assert steps(b, "a") == [(0.0, 1.0), (0.0, 0.4)]
    assert steps(b, "b") == [(0.0, 0.4)]


@pytest.mark.parametrize("reached", [-0.1, 1.1, nan])
def test_a_step_that_is_discarded_elsewhere_stops_the_program(reached: float) -> None:
    unit = discarding(0.0)
    unit.step = lambda v, h: StepAnswer(reached, discarded=True)
    stop = bench(a=unit).run("STEP a 1.0", 0.0, 1.0).stopped
    assert stop is not None
    assert stop.reason is Reason.DISCARDED


def test_a_step_that_is_discarded_at_its_start_leaves_all_where_they_stood() -> None:
    unit = discarding(0.0)
    unit.step = lambda v, h: StepAnswer(v.t, discarded=True)
    b = bench(a=unit, b=ramp())
    outcome = b.run("SAVE a 0\nSTEP a 1.0\nALIGN a 0\nSTEP b 1.0", 0.0, 1.0)
    assert outcome == Outcome(0.0, event_requests=(0,))
    assert (len(steps(b, "a")), len(steps(b, "b"))) == (1, 0)
    assert b.counted(Counted.RESTORES) == {"a": 1, "b": 0}


def test_a_step_that_is_discarded_at_its_end_is_done_again_up_to_a_time_before() -> None:
    """After a discarded step an FMU of FMI 2.0 cannot go on, wherever it stands."""
    unit = ramp(
        lambda v, h: StepAnswer(1.0, discarded=True) if v.t + h >= 1.0 else None,
        parameters={"policy": 0},
        attributes={"policy": {"type": DataType.INT32}},
        event_policy=POLICY,
    )
    b = bench(a=unit, b=ramp())
    outcome = b.run("SAVE a 0\nSTEP a 1.0\nALIGN a 0\nSTEP b 1.0", 0.0, 1.0)
    end = 1.0 - 4 * ulp(1.0)
    assert outcome == Outcome(end, event_requests=(0,))
    assert b.instances["a"].called(FmiCall.DO_STEP) == [(0.0, 1.0), (0.0, end)]


def test_an_instance_in_event_mode_that_discards_a_step_has_no_event() -> None:
    """FMI 3.0: what it returns besides is undefined."""
    unit = early(2.0)
    unit.step = lambda v, h: StepAnswer(v.t, discarded=True)
    stop = bench(a=unit).run("STEP a 1.0", 0.0, 1.0).stopped
    assert stop is not None
    assert stop.reason is Reason.DISCARDED


def test_who_ends_the_run_within_a_step_is_no_early_return() -> None:
    b = bench(a=early(0.4), b=ramp())
    b.instances["a"].fmu.step = lambda v, h: StepAnswer(0.25, terminate=True)
    outcome = b.run("STEP a 1.0\nSTEP b 1.0", 0.0, 1.0)
    assert outcome == Outcome(0.25, terminate=True)
    assert steps(b, "b") == [(0.0, 1.0)]


def test_steps_are_counted() -> None:
    b = bench(a=early(0.4), b=ramp())
    b.run("STEP b 0.5\nSTEP a 1.0\nSTEP b 1.0", 0.0, 1.0)
    assert b.counted(Counted.STEPS) == {"a": 1, "b": 1}


# ALIGN ----------------------------------------------------------------------------------------------------------------


def test_align_brings_back_who_stands_beyond_the_limit_and_reads_it_there() -> None:
    b = bench(a=early(0.4), b=ramp())
    outcome = b.run("SAVE b 0\nSTEP b 1.0\nGET b outputs\nSTEP a 1.0\nALIGN b 0", 0.0, 1.0)
    assert outcome == Outcome(0.4, event_requests=(0,))
    assert steps(b, "b") == [(0.0, 1.0), (0.0, 0.4)]
    assert (b.value("b.y"), b.value("b.t"), b.read_at("b")) == (0.4, 0.4, 0.4)
    assert b.counted(Counted.RESTORES) == {"a": 0, "b": 1}


def test_align_leaves_alone_who_stands_at_the_limit() -> None:
    b = bench(a=early(0.4), b=ramp())
    b.run("SAVE b 0\nSTEP a 1.0\nSTEP b 1.0\nGET b outputs\nALIGN b 0", 0.0, 1.0)
    assert steps(b, "b") == [(0.0, 0.4)]
    assert b.counted(Counted.RESTORES) == {"a": 0, "b": 0}


def test_align_does_nothing_without_an_early_return() -> None:
    b = bench(a=early(2.0), b=ramp())
    assert b.run("SAVE b 0\nSTEP b 1.0\nSTEP a 1.0\nALIGN b 0", 0.0, 1.0) == Outcome(1.0)
    assert steps(b, "b") == [(0.0, 1.0)]


def test_align_sets_the_inputs_of_the_first_try_again() -> None:
    """The polynomial is that of the begin, though the outputs in the store are those of the end by now."""
    smooth = ramp(
        lambda v, h: setattr(v, "x", v.course("u", v.t + h)), provides_intermediate_update=True
    )
    b = bench(["a.t -> b.u"], a=early(0.4), b=smooth)
    fitted = "SAVE b 0\nFIT b 0.0 1 0 ()\nSET b continuous\nSTEP b 1.0\nSTEP a 1.0\nGET a outputs"
    b.run(f"{fitted}\nALIGN b 0", 0.0, 1.0)
    assert b.instances["b"].told == [0.0, 0.0]
    assert b.value("b.y") == 0.0
    assert b.value("a.t") == 0.4


def test_who_stops_before_the_same_event_again_is_brought_back_again() -> None:
    """Its search for the event depends on the step: 0.4 s in a step of 1 s, a little less in shorter ones."""
    b = bench(a=discarding(0.4))
    found = {1.0: 0.4, 0.4: 0.4 - 1e-12, 0.4 - 1e-12: 0.4 - 2e-12}
    b.instances["a"].fmu.step = lambda v, h: (
        StepAnswer(found[h], discarded=True) if h in found else None
    )
    outcome = b.run("SAVE a 0\nSTEP a 1.0\nALIGN a 0", 0.0, 1.0)
    assert outcome == Outcome(0.4 - 2e-12, event_requests=(0,))
    assert [h for _, h in b.instances["a"].called(FmiCall.DO_STEP)] == [*found, 0.4 - 2e-12]


def test_who_stops_before_the_same_event_again_and_again_stops_the_program() -> None:
    b = bench(a=discarding(0.4))
    b.instances["a"].fmu.step = lambda v, h: StepAnswer(h / 2, discarded=True)
    stop = b.run("SAVE a 0\nSTEP a 1.0\nALIGN a 0", 0.0, 1.0).stopped
    assert stop is not None
    assert (stop.reason, stop.instance, stop.instruction) == (Reason.EARLY, 0, 2)
    assert stop.time == 2.0**-21
    assert len(steps(b, "a")) == 21


def test_a_stop_after_an_align_has_the_number_of_its_instruction() -> None:
    b = bench(a=early(0.4), b=ramp(), c=ramp(lambda v, h: StepAnswer(v.t, discarded=True)))
    stop = b.run("SAVE b 0\nSTEP b 1.0\nSTEP a 1.0\nALIGN b 0\nSTEP c 1.0", 0.0, 1.0).stopped
    assert stop is not None
    assert (stop.reason, stop.instance, stop.instruction) == (Reason.DISCARDED, 2, 4)


# RESTORE of who has not moved -----------------------------------------------------------------------------------------


def test_who_has_not_moved_since_it_was_saved_is_not_restored() -> None:
    b = bench(a=ramp())
    b.run("SAVE a 0\nRESTORE a 0\nSTEP a 1.0\nRESTORE a 0\nRESTORE a 0", 0.0, 1.0)
    assert len(b.instances["a"].called(FmiCall.SET_FMU_STATE)) == 1
    assert b.counted(Counted.RESTORES) == {"a": 1}


def test_who_stands_elsewhere_on_the_same_number_of_steps_is_restored() -> None:
    b = bench(a=ramp())
    b.run("SAVE a 0\nSTEP a 0.5\nSAVE a 1\nRESTORE a 0\nSTEP a 0.25", 0.0, 1.0)
    b.run("RESTORE a 1", 0.25, 1.0)
    # one step each: both states are one step after the first; they are told apart all the same
    assert b.instances["a"].values.t == 0.5


# UNTIL with early returns ---------------------------------------------------------------------------------------------


def test_a_pass_in_which_the_limit_moves_is_not_the_last() -> None:
    ends = iter([0.5, 0.4, 0.4 + 5e-10, 0.3, 0.2])
    b = bench(a=early(lambda _: next(ends)))
    body = "SAVE a 0\nREPEAT 1 10\nRESTORE a 0\nSTEP a 1.0\nGET a outputs\nUNTIL inf"
    outcome = b.run(body, 0.0, 1.0)
    assert (outcome.end, outcome.event_requests) == (0.4 + 5e-10, (0,))
    assert len(steps(b, "a")) == 3


def test_each_pass_begins_with_the_limit_at_the_end() -> None:
    ends = iter([0.5, 2.0, 2.0])
    b = bench(a=early(lambda _: next(ends)), b=ramp())
    body = "SAVE a 0\nSAVE b 1\nREPEAT 1 9\nRESTORE a 0\nRESTORE b 1\nSTEP a 1.0\nSTEP b 1.0\nUNTIL inf"
    assert b.run(body, 0.0, 1.0) == Outcome(1.0)
    assert steps(b, "b") == [(0.0, 0.5), (0.0, 1.0), (0.0, 1.0)]


def test_events_of_two_within_the_tolerance_of_the_limit_are_one() -> None:
    """From pass to pass now the one, now both request the event, at times 6e-14 s apart: as it is with two masses."""
    ends = iter([0.4, 0.4 + 6e-14, 0.4 + 6e-14])
    b = bench(a=early(lambda _: next(ends)), b=early(0.4))
    one_pass = "RESTORE a 0\nRESTORE b 1\nSTEP a 1.0\nSTEP b 1.0\nALIGN a 0"
    outcome = b.run(f"SAVE a 0\nSAVE b 1\nREPEAT 2 10\n{one_pass}\nUNTIL inf", 0.0, 1.0)
    assert (outcome.end, outcome.event_requests) == (0.4, (1,))
    assert len(steps(b, "a")) == 3


def test_who_requests_an_event_is_known_from_the_last_pass_alone() -> None:
    asking = iter([True, False])
    b = bench(a=early(0.5))
    b.instances["a"].fmu.step = lambda v, h: StepAnswer(v.t + h, event=next(asking))
    body = "SAVE a 0\nREPEAT 2 10\nRESTORE a 0\nSTEP a 1.0\nUNTIL inf"
    assert b.run(body, 0.0, 1.0) == Outcome(1.0)
    assert len(steps(b, "a")) == 2


# UPDATE ---------------------------------------------------------------------------------------------------------------


def updating(answers: list[UpdateAnswer]) -> Bench:
    """A unit with Event Mode that gives these answers after its initialization, and stands in Event Mode."""
    rest: list[UpdateAnswer] = []
    unit = PythonFmu(
        outputs={"y": lambda v: 0.0},
        update=lambda v: rest.pop(0) if rest else None,
        has_event_mode=True,
    )
    b = bench(a=unit)
    rest[:] = answers
    b.run("MODE a event_mode")
    return b


ONCE_MORE = UpdateAnswer(wants_update=True)


def test_updates_are_repeated_until_nobody_wants_another_one() -> None:
    b = updating([ONCE_MORE, ONCE_MORE, UpdateAnswer()])
    before = len(b.instances["a"].called(FmiCall.UPDATE_DISCRETE_STATES))
    assert b.run("REPEAT 1 10\nUPDATE a\nUNTIL inf", 2.0) == Outcome(2.0)
    assert len(b.instances["a"].called(FmiCall.UPDATE_DISCRETE_STATES)) - before == 3


def test_updates_that_do_not_end_stop_the_program() -> None:
    stop = updating([ONCE_MORE] * 9).run("REPEAT 1 5\nUPDATE a\nUNTIL inf").stopped
    assert stop is not None
    assert stop.reason is Reason.NOT_CONVERGED


def test_an_update_names_the_time_of_the_next_event() -> None:
    b = updating([UpdateAnswer(next_event_time=3.5), UpdateAnswer()])
    b.run("UPDATE a", 2.0)
    assert b.executor.next_events.tolist() == [3.5]
    b.run("UPDATE a", 2.0)
    assert b.executor.next_events.tolist() == [np.inf]


def test_an_update_can_end_the_run() -> None:
    outcome = updating([UpdateAnswer(terminate=True)]).run("UPDATE a", 0.0)
    assert (outcome.end, outcome.terminate) == (0.0, True)


def test_event_modes_are_counted() -> None:
    b = updating([])
    b.run("MODE a step_mode\nMODE a event_mode")
    assert b.counted(Counted.EVENTS) == {"a": 3}  # one is that of the initialization


# Triggers: TICK, MOVE, SET; clocks: GET -------------------------------------------------------------------------------


def clocked() -> Bench:
    """s has a clock and a value y, t takes both, by its clock and by w; both are in Event Mode."""
    source = PythonFmu(
        parameters={"on": False},
        outputs={"tick": lambda v: v.on, "y": lambda v: 7.0},
        attributes={"tick": CLOCK, "on": {"type": DataType.BOOLEAN}},
        has_event_mode=True,
    )
    target = PythonFmu(
        inputs={"tick": False, "w": 0.0, "other": False},
        outputs={"z": lambda v: v.w},
        attributes={
            "tick": CLOCK,
            "other": CLOCK,
            "w": {"variability": Variability.DISCRETE, "clocks": ("tick",)},
        },
        has_event_mode=True,
    )
    links: list[str | tuple[str, Mapping[str, Any]]] = [
        "s.tick -> t.tick",
        "s.tick -> t.other",
        ("s.y -> t.w", {"factor": 2.0, "offset": 1.0}),
    ]
    b = Bench({"s": source, "t": target}, links)
    b.initialize()
    b.run("MODE s event_mode\nMODE t event_mode\nGET s outputs")
    return b


def sets(b: Bench, name: str, since: int) -> list[tuple[FmiCall, Any]]:
    """What an instance has been set to in the calls since."""
    calls = (FmiCall.SET_INPUT, FmiCall.SET_TRIGGER)
    return [(call, what) for call, what in b.instances[name].log[since:] if call in calls]


MOVE_AND_SET = "GET s clocks\nMOVE t triggers\nSET t triggers"
BOTH = [
    (FmiCall.SET_TRIGGER, {"tick": True}),
    (FmiCall.SET_INPUT, {"w": 15.0}),
    (FmiCall.SET_TRIGGER, {"other": True}),
]


def test_an_output_clock_makes_triggers_active_with_what_they_bring_along() -> None:
    b = clocked()
    b.instances["s"].values.on = True
    since = len(b.instances["t"].log)
    b.run(MOVE_AND_SET)
    assert sets(b, "t", since) == BOTH
    assert b.instances["s"].called(FmiCall.GET_CLOCK)[-1] == {"tick": True}


def test_a_clock_that_is_off_moves_and_sets_nothing() -> None:
    b = clocked()
    since = len(b.instances["t"].log)
    b.run(MOVE_AND_SET)
    assert sets(b, "t", since) == []


def test_clocks_change_in_the_store_only_when_they_are_read() -> None:
    b = clocked()
    b.instances["s"].values.on = True
    since = len(b.instances["t"].log)
    b.run("MOVE t triggers\nSET t triggers")
    assert sets(b, "t", since) == []


def test_triggers_are_off_after_they_were_set() -> None:
    b = clocked()
    b.instances["s"].values.on = True
    b.run(MOVE_AND_SET)
    since = len(b.instances["t"].log)
    b.run("SET t triggers")
    assert sets(b, "t", since) == []
    b.run("MOVE t triggers\nSET t triggers")  # the clock is still on in the store
    assert sets(b, "t", since) == BOTH


def test_a_tick_makes_one_trigger_active() -> None:
    b = clocked()
    names = [trigger.name for trigger in b.plan.triggers]
    since = len(b.instances["t"].log)
    b.run(f"TICK {names.index('other')}\nMOVE t triggers\nSET t triggers")
    assert sets(b, "t", since) == [BOTH[2]]


def test_what_comes_along_with_a_tick_is_moved_too() -> None:
    b = clocked()
    since = len(b.instances["t"].log)
    b.run("TICK 0\nMOVE t triggers\nSET t triggers")
    assert sets(b, "t", since) == BOTH[:2]


# Clocked outputs, intervals -------------------------------------------------------------------------------------------


def sampled() -> Bench:
    """s has a changing clock c, a countdown d and a fixed clock f, and announces on; y is clocked by c, z by c and on."""
    source = PythonFmu(
        parameters={"announces": False},
        inputs={"c": False, "d": False, "f": False},
        outputs={"on": lambda v: v.announces, "y": lambda v: v.t + 1.0, "z": lambda v: 7.0},
        attributes={
            "announces": {"type": DataType.BOOLEAN},
            "on": CLOCK,
            "c": time_based(IntervalVariability.CHANGING),
            "d": time_based(IntervalVariability.COUNTDOWN),
            "f": time_based(IntervalVariability.FIXED),
            "y": {"variability": Variability.DISCRETE, "clocks": ("c",)},
            "z": {"variability": Variability.DISCRETE, "clocks": ("c", "on")},
        },
        intervals={
            "c": lambda v: Fraction(1, 3),
            "d": lambda v: Fraction(1, 4) if v.announces else None,
            "f": lambda v: Fraction(1, 5),
        },
        has_event_mode=True,
    )
    b = Bench({"s": source})
    b.initialize()
    b.run("MODE s event_mode")
    return b


def time_based(kind: IntervalVariability) -> dict[str, Any]:
    return {**CLOCK, "clock": ClockAttributes(kind)}


def active_clocks(b: Bench) -> set[str]:
    """Clocks of s that are active in the store."""
    clocks = b.executor.store.values[DataType.CLOCK]
    return {name for name in ("on", "c", "d", "f") if clocks[place(b, name)[1].start]}


def place(b: Bench, name: str) -> tuple[DataType, slice]:
    """Of a variable of s in the store."""
    found = b.plan.layout.place(0, name)
    assert found is not None
    return found


def clocked_value(b: Bench, name: str) -> float:
    kind, slot = place(b, name)
    return float(b.executor.store.values[kind][slot][0])


def tick_of(b: Bench, name: str) -> str:
    return f"TICK {[trigger.name for trigger in b.plan.triggers].index(name)}"


def test_clocked_outputs_are_read_while_one_of_their_clocks_is_active() -> None:
    b = sampled()
    b.run("SET s triggers\nGET s clocked", 0.5)
    assert (clocked_value(b, "y"), clocked_value(b, "z")) == (0.0, 0.0)
    b.instances["s"].values.announces = True
    b.run("SET s triggers\nGET s clocked", 0.5)
    assert (clocked_value(b, "y"), clocked_value(b, "z")) == (0.0, 7.0)
    b.run(f"{tick_of(b, 'c')}\nSET s triggers\nGET s clocked", 0.5)
    assert (clocked_value(b, "y"), clocked_value(b, "z")) == (1.0, 7.0)


def test_the_store_shows_which_input_clocks_were_set_in_an_iteration() -> None:
    """A loop sets triggers several times; the next iteration begins with GET CLOCKS."""
    b = sampled()
    b.run(f"{tick_of(b, 'c')}\nSET s triggers")
    assert active_clocks(b) == {"c"}
    b.run(f"{tick_of(b, 'd')}\nSET s triggers")
    b.run("SET s triggers")
    assert active_clocks(b) == {"c", "d"}
    b.run("GET s clocks")
    assert active_clocks(b) == set()


def test_output_clocks_are_added_by_a_later_read_and_never_cleared() -> None:
    b = sampled()
    b.instances["s"].values.announces = True
    b.run("GET s clocked")
    b.instances["s"].values.announces = False
    b.run("GET s clocked")
    assert active_clocks(b) == {"on"}
    b.run("GET s clocks")  # of the next iteration
    assert active_clocks(b) == set()


def test_no_clock_is_active_in_step_mode() -> None:
    b = sampled()
    b.instances["s"].values.announces = True
    b.run(f"{tick_of(b, 'c')}\nSET s triggers\nGET s clocked")
    assert active_clocks(b) == {"on", "c"}
    b.run("MODE s step_mode")
    assert active_clocks(b) == set()


def asked(b: Bench, program: str) -> list[Any]:
    """Clocks whose intervals a program asks."""
    since = len(b.instances["s"].called(FmiCall.GET_INTERVAL))
    b.run(program)
    return b.instances["s"].called(FmiCall.GET_INTERVAL)[since:]


def test_a_changing_clock_is_asked_when_it_has_ticked_and_a_countdown_always() -> None:
    b = sampled()
    assert asked(b, "SET s triggers\nGET s intervals") == [("d",)]
    program = f"{tick_of(b, 'c')}\nSET s triggers\nGET s intervals"
    assert asked(b, program) == [("d",), ("c",)]


def test_only_changed_intervals_are_put_into_the_store() -> None:
    b = sampled()
    known = b.executor.store.intervals[0]
    known.qualifier[:] = Qualifier.UNCHANGED
    b.run(f"{tick_of(b, 'c')}\nSET s triggers\nGET s intervals")
    names = [v.name for v in b.plan.layout.segments(0, Group.INTERVALS)[0].variables]
    changed = {n for n, q in zip(names, known.qualifier, strict=True) if q == Qualifier.CHANGED}
    assert changed == {"c"}
    k = names.index("c")
    assert (known.counter[k], known.resolution[k]) == (1, 3)
    b.instances["s"].values.announces = True
    b.run("SET s triggers\nGET s intervals")
    assert known.qualifier[names.index("d")] == Qualifier.CHANGED
    assert known.qualifier[k] == Qualifier.CHANGED  # until somebody takes it


def counting() -> Bench:
    """Two members of a shared event without Event Mode: their triggers are counters."""

    def member() -> PythonFmu:
        return PythonFmu(
            inputs={"count": 0, "w": 0.0},
            states={"x": 3.0},
            outputs={"y": lambda v: v.x, "z": lambda v: 1.0},
            attributes={
                "count": {"type": DataType.INT32},
                "w": {"variability": Variability.DISCRETE},
            },
            events=[
                EventDeclaration(
                    "hit",
                    Scope.SHARED,
                    (Indicator("z"),),
                    trigger="count",
                    payload=(Payload("y", "w"),),
                )
            ],
        )

    shared = {"hit": ["a.hit", "b.hit"]}
    b = Bench({"a": member(), "b": member()}, shared_events=shared, use=EventUse(watched=True))
    b.initialize()
    return b


def test_a_counter_counts_up_after_what_it_brings_along_was_set() -> None:
    b = counting()
    for count in (1, 2):
        since = len(b.instances["b"].log)
        b.run("TICK 1\nMOVE b triggers\nSET b triggers")
        assert sets(b, "b", since) == [
            (FmiCall.SET_INPUT, {"w": 3.0}),
            (FmiCall.SET_INPUT, {"count": count}),
        ]
    assert "count" not in {
        name for what in b.instances["a"].called(FmiCall.SET_INPUT) for name in what
    }


def test_a_counter_that_is_not_triggered_does_not_count() -> None:
    b = counting()
    b.run("MOVE b triggers\nSET b triggers\nTICK 1\nSET b triggers")
    assert b.instances["b"].was_set("count") == [1]
    assert b.instances["b"].was_set("w") == [0.0]  # nothing comes along with a trigger that is off


# CALL -----------------------------------------------------------------------------------------------------------------


def hooked(*functions: Callable[[ValueStore], None]) -> Bench:
    b = Bench({"a": ramp()}, hooks=[FunctionHook("test", f) for f in functions])
    b.initialize()
    return b


def test_a_hook_works_on_the_value_store() -> None:
    def double(store: ValueStore) -> None:
        store.values[DataType.FLOAT64][:] *= 2.0

    b = hooked(lambda store: None, double)
    b.run("STEP a 1.0\nGET a outputs\nCALL 1\nCALL 0\nCALL 1", 0.0, 1.5)
    assert b.value("a.y") == 6.0


def test_what_a_hook_raises_ends_the_program() -> None:
    def fail(store: ValueStore) -> None:
        raise ArithmeticError("no such value")

    b = hooked(fail)
    with pytest.raises(ArithmeticError, match="no such value"):
        b.run("CALL 0\nSTEP a 1.0", 0.0, 1.0)
    assert steps(b, "a") == []


# FIT with near points -------------------------------------------------------------------------------------------------


def fitted(points: Mapping[int, float], fit: str, length: float = 1.0) -> Bench:
    """A polynomial through a cubic that was read at these times: buffer → time; it now stands at 0."""
    values = {
        "y": lambda v: 1 + 2 * v.t + 3 * v.t**2 + 4 * v.t**3,
        "dy": lambda v: 2 + 6 * v.t + 12 * v.t**2,
    }
    source = PythonFmu(outputs=values, attributes={"dy": {"derivative_of": "y"}})
    target = ramp(
        lambda v, h: setattr(v, "x", v.course("u", v.t + h)), provides_intermediate_update=True
    )
    b = bench(["s.y -> t.u"], s=source, t=target)
    for buffer, time in points.items():
        b.instances["s"].values.t = time
        b.run("GET s outputs")
        b.executor.store.read[0] = time
        b.run(f"KEEP {buffer}")
    b.instances["s"].values.t = 0.0
    b.run(f"GET s outputs\n{fit}\nSET t continuous\nSTEP t 1.0\nGET t outputs", 0.0, length)
    return b


def cubic(t: float) -> float:
    return 1 + 2 * t + 3 * t**2 + 4 * t**3


def test_two_points_with_derivatives_give_the_cubic() -> None:
    b = fitted({0: -0.5}, "FIT t 0.0 2 1 (0)")
    assert b.value("t.y") == pytest.approx(cubic(1.0), rel=1e-12)


@pytest.mark.parametrize("near", [-0.02, -1e-4])
def test_a_near_point_gives_one_derivative_more(near: float) -> None:
    slope = ((2 + 6 * near + 12 * near**2) - 2) / near  # of the derivative
    b = fitted({0: near}, "FIT t 0.0 2 1 (0)")
    assert b.value("t.y") == pytest.approx(1 + 2 * 1 - slope * -0.5, rel=1e-9)


def test_a_point_is_near_relative_to_the_interval() -> None:
    b = fitted({0: -0.02}, "FIT t 0.0 2 1 (0)", length=0.9)
    assert b.value("t.y") == pytest.approx(cubic(0.9), rel=1e-9)


def test_after_a_near_point_the_next_one_serves_as_well() -> None:
    b = fitted({0: -1e-3, 1: -0.5}, "FIT t 0.0 3 0 (0,1)")
    # value and slope at 0, by the difference over the near point, and the value at -0.5
    slope = (cubic(0) - cubic(-1e-3)) / 1e-3
    curvature = (cubic(-0.5) - 1 + 0.5 * slope) / 0.25
    assert b.value("t.y") == pytest.approx(1 + slope + curvature, rel=1e-9)


def test_a_point_that_is_near_to_an_older_one_gives_nothing() -> None:
    b = fitted({0: -0.5, 1: -0.501}, "FIT t 0.0 3 1 (0,1)")
    assert b.value("t.y") == pytest.approx(cubic(1.0), rel=1e-12)


def test_of_two_near_points_the_newer_one_counts() -> None:
    one = fitted({0: -0.01}, "FIT t 0.0 3 1 (0)")
    two = fitted({0: -0.01, 1: -0.015}, "FIT t 0.0 3 1 (0,1)")
    assert two.value("t.y") == one.value("t.y")


# REPEAT in a REPEAT, KEEP and RECALL with early returns --------------------------------------------------------------


def test_a_pass_begins_with_the_limit_and_the_requests_of_the_repeat() -> None:
    """b is not stepped over the early return of a, which came before the REPEAT."""
    b = bench(a=early(0.4), b=ramp())
    outcome = b.run(
        "STEP a 1.0\nSAVE b 0\nREPEAT 2 2\nRESTORE b 0\nSTEP b 1.0\nUNTIL inf", 0.0, 1.0
    )
    assert outcome == Outcome(0.4, event_requests=(0,))
    assert steps(b, "b") == [(0.0, 0.4)] * 2


def test_an_inner_repeat_leaves_the_early_return_of_the_outer_one() -> None:
    program = """
        SAVE a 0
        SAVE b 1
        REPEAT 2 2
        RESTORE a 0
        RESTORE b 1
        STEP a 1.0
        SAVE b 2
        REPEAT 3 3
        RESTORE b 2
        STEP b 1.0
        UNTIL inf
        UNTIL inf
    """
    b = bench(a=early(0.4), b=ramp())
    assert b.run(program, 0.0, 1.0) == Outcome(0.4, event_requests=(0,))
    assert len(steps(b, "a")) == 2
    assert steps(b, "b") == [(0.0, 0.4)] * 6


def test_an_early_return_in_an_inner_repeat_is_forgotten_by_the_next_outer_pass() -> None:
    """The second early return comes later: the first one must not hold the instance back."""
    times = chain([0.3], repeat(0.6))
    program = "SAVE a 0\nREPEAT 3 9\nREPEAT 1 9\nRESTORE a 0\nSTEP a 1.0\nUNTIL inf\nUNTIL inf"
    b = bench(a=early(lambda v: next(times)), b=ramp())
    outcome = b.run(program + "\nSTEP b 1.0", 0.0, 1.0)
    assert outcome == Outcome(0.6, event_requests=(0,))
    assert (
        len(steps(b, "a")) == 3 + 2 + 2
    )  # inner passes go on until the early return stays where it is
    assert steps(b, "b") == [(0.0, 0.6)]


def test_what_is_recalled_leaves_nothing_of_an_undone_try() -> None:
    b = bench(a=early(0.4), b=ramp())
    outcome = b.run("SAVE a 0\nKEEP 0\nSTEP a 1.0\nRESTORE a 0\nRECALL 0\nSTEP b 1.0", 0.0, 1.0)
    assert outcome == Outcome(1.0)
    assert steps(b, "b") == [(0.0, 1.0)]


def test_what_is_recalled_brings_an_early_return_back() -> None:
    b = bench(a=early(0.4), b=ramp())
    tried = "SAVE b 0\nSTEP a 1.0\nKEEP 1\nKEEP 0\nRECALL 1\nSTEP b 1.0"
    assert b.run(tried, 0.0, 1.0) == Outcome(0.4, event_requests=(0,))
    assert steps(b, "b") == [(0.0, 0.4)]


def test_a_limit_that_is_recalled_later_is_at_most_the_end() -> None:
    b = bench(a=ramp())
    b.run("SAVE a 0\nKEEP 0\nSTEP a 1.0", 0.0, 1.0)
    assert b.run("RESTORE a 0\nRECALL 0", 0.0) == Outcome(0.0)


class Asking(Hook):
    """Asks for so many further passes."""

    name = "asking"

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, store: ValueStore) -> bool:
        self.times -= 1
        return self.times >= 0


def test_a_repeat_goes_on_while_a_hook_asks_for_another_pass() -> None:
    b = Bench({"a": ramp()}, hooks=[Asking(4)])
    b.initialize()
    since = len(b.instances["a"].called(FmiCall.GET))
    b.run("REPEAT 1 9\nCALL 0\nGET a outputs\nUNTIL inf")
    assert len(b.instances["a"].called(FmiCall.GET)) - since == 5


def test_the_wish_of_a_hook_belongs_to_the_innermost_repeat() -> None:
    """The outer one does a second pass, since its own hook has asked for it; the inner one is over by then."""
    b = Bench({"a": ramp()}, hooks=[Asking(1), Asking(2)])
    b.initialize()
    since = len(b.instances["a"].called(FmiCall.GET))
    b.run("REPEAT 1 9\nCALL 0\nREPEAT 1 9\nCALL 1\nGET a outputs\nUNTIL inf\nUNTIL inf")
    assert len(b.instances["a"].called(FmiCall.GET)) - since == 3 + 1


def test_hooks_know_the_interval() -> None:
    seen = []
    b = hooked(lambda store: seen.append(store.interval))
    b.run("CALL 0", 0.25, 0.75)
    assert seen == [(0.25, 0.75)]
