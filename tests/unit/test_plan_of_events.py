"""Events and triggers of a plan: whom they concern, what they bring along, who may stop early."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from python_fmu import PythonFmu, plan_of

from fmimaster.algorithms import Jacobi
from fmimaster.algorithms.assemble import assemble
from fmimaster.base.errors import AccuracyWarning, DescriptionError, OptionError
from fmimaster.configure.requirements import refuse_plan
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.plan.events import concerned, reached_by_events
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import EventUse, Policy, stops_inside
from fmimaster.program.instructions.inputs import Set
from fmimaster.steps.locate import Locate
from fmimaster.steps.step_rule import FixedStep
from fmimaster.system.declarations import EventDeclaration, EventPolicy, Indicator, Payload, Scope
from fmimaster.system.model import DataType, Variability

CLOCK = {"type": DataType.CLOCK}
INTEGER = {"type": DataType.INT32}
WATCHED = EventUse(watched=True)
FIRED = EventUse(watched=True, fires=True)
POLICY = EventPolicy("policy", execute=0, announce=1, ignore=2)


def member(
    scope: Scope = Scope.SHARED,
    *,
    counter: bool = False,
    right_limits_without_step: bool = True,
    **more: Any,
) -> PythonFmu:
    """An event "hit" with an output that announces it, a trigger, and a payload from y to w."""
    kind = INTEGER if counter else CLOCK
    payload = (Payload("y", "w"),) if scope is Scope.SHARED else ()
    event = EventDeclaration(
        *("hit", scope, (Indicator("z", "dz"),), "out", "go", payload),
        right_limits_without_step=right_limits_without_step,
    )
    w = {"variability": Variability.DISCRETE} | ({} if counter else {"clocks": ("go",)})
    return PythonFmu(
        parameters={"policy": 0},
        inputs={"go": 0, "w": 0.0, "u": 0.0},
        outputs={
            "y": lambda v: 1.0,
            "z": lambda v: 1.0,
            "dz": lambda v: -1.0,
            "out": lambda v: 0,
        },
        attributes={
            "go": kind,
            "out": kind,
            "w": w,
            "policy": INTEGER,
            "dz": {"derivative_of": "z"},
        },
        events=[event],
        event_policy=POLICY,
        has_event_mode=not counter,
        **more,
    )


def crash(**options: Any) -> Plan:
    """A clock and a counter as triggers of one event."""
    return plan_of(
        {"a": member(), "b": member(counter=True)},
        shared_events={"crash": ["a.hit", "b.hit"]},
        use=options.pop("use", WATCHED),
        **options,
    )


def test_a_shared_event_is_one_with_a_trigger_in_each_member() -> None:
    plan = crash()
    assert [(e.name, e.scope, e.instances) for e in plan.events] == [
        ("crash", Scope.SHARED, frozenset({0, 1}))
    ]
    assert [m.trigger for m in plan.events[0].members] == [0, 1]
    assert [(t.instance, t.name) for t in plan.triggers] == [(0, "go"), (1, "go")]


def test_payload_comes_from_the_other_member() -> None:
    plan = crash()
    for trigger, source in ((0, 1), (1, 0)):
        routes = plan.triggers[trigger].payload
        assert [(w.link.source, w.link.output.name) for w in routes] == [(source, "y")]


def test_only_the_importer_makes_the_triggers_of_events_active() -> None:
    """A clock by which an FMU announces the event does not: a ball that is hit from both sides announces both hits at once,
    and they happen one after the other."""
    plan = crash()
    assert [t.clocks for t in plan.triggers] == [(), ()]
    assert [t.sources for t in plan.triggers] == [(), ()]


def test_a_clock_is_set_before_what_it_clocks_and_a_counter_after_what_it_brings_along() -> None:
    clock, counter = crash().triggers
    assert [s.variables[0].name for s in clock.segments] == ["go", "w"]
    assert [s.variables[0].name for s in counter.segments] == ["w", "go"]
    assert clock.counter is None
    assert counter.counter is not None


def test_indicators_and_their_derivatives_are_read_though_nobody_records_them() -> None:
    plan = crash(outputs=["a.u"])
    read = {name for i, group, name in plan.layout.slots if group is Group.OUTPUTS and i == 0}
    assert {"z", "dz", "y"} <= read


def test_without_an_event_clock_nothing_is_watched() -> None:
    plan = crash(use=None)
    assert plan.events == ()
    assert plan.triggers == ()


def test_a_private_event_has_the_name_of_its_component_in_front() -> None:
    plan = plan_of({"a": member(Scope.PRIVATE)}, use=WATCHED)
    assert [e.name for e in plan.events] == ["a.hit"]
    assert plan.triggers[0].clocks == ()  # nobody but the importer


def test_a_connected_input_cannot_trigger_an_event_too() -> None:
    source = PythonFmu(
        outputs={"tick": lambda v: False}, attributes={"tick": CLOCK}, has_event_mode=True
    )
    with pytest.raises(DescriptionError) as caught:
        plan_of({"s": source, "a": member()}, ["s.tick -> a.go"], use=WATCHED)
    assert "'a.go' is connected and triggers the event 'hit'" in str(caught.value)


def test_what_cannot_be_fired_is_refused_by_name() -> None:
    refuse_plan(crash(), FixedStep(0.1), Predictive())
    alone = plan_of({"a": member()}, use=WATCHED)
    with pytest.raises(DescriptionError, match=r"'a\.hit' is shared, but .* builder\.share_event"):
        refuse_plan(alone, FixedStep(0.1), Predictive())


def test_a_counter_is_not_fired_if_right_limits_can_be_read_after_a_step_only() -> None:
    hiding = plan_of(
        {"a": member(), "b": member(counter=True, right_limits_without_step=False)},
        shared_events={"crash": ["a.hit", "b.hit"]},
        use=WATCHED,
    )
    with pytest.raises(DescriptionError, match=r"'hit' of 'b' cannot .* rightLimitsWithoutStep="):
        refuse_plan(hiding, FixedStep(0.1), Predictive())


def plain(**more: Any) -> PythonFmu:
    """An FMU that publishes no event."""
    return PythonFmu(
        inputs={"n": 0},
        outputs={"m": lambda v: 0},
        attributes={
            "n": INTEGER | {"variability": Variability.DISCRETE},
            "m": INTEGER | {"variability": Variability.DISCRETE},
        },
        **more,
    )


OWN = EventDeclaration("own", Scope.PRIVATE, (Indicator("z"),))

ALONE = plan_of({"a": plain(can_get_and_set_fmu_state=False)})


@pytest.mark.parametrize("clock", [Predictive(), LookAhead(), EarlyReturn(), Check()], ids=repr)
@pytest.mark.parametrize(
    ("plan", "fits"),
    [
        (ALONE, "Leave it out and use short steps."),
        (plan_of({"a": plain(has_event_mode=True)}), "event_mode=True (--event-mode)"),
        (plan_of({"a": plain(), "b": plain()}, ["a.m -> b.n"]), "step_size=Locate(H)"),
    ],
    ids=["nothing", "Event Mode", "discrete outputs"],
)
def test_who_cannot_have_an_event_clock_is_told_what_fits(
    clock: EventClock, plan: Plan, fits: str
) -> None:
    """No advice that would be refused in its turn."""
    with pytest.raises(OptionError) as caught:
        refuse_plan(plan, FixedStep(0.1), clock)
    message = str(caught.value)
    assert fits in message
    assert message.endswith('docs/events.md, "My FMU has …".')
    assert not any(name in message for name in ("Predictive(", "LookAhead(", "manifest to"))


def test_indicators_that_no_fmu_stops_at_can_be_predicted() -> None:
    unit = PythonFmu(outputs={"z": lambda v: 1.0}, events=[OWN])
    with pytest.raises(
        OptionError,
        match=r"clocks Predictive\(\) and LookAhead\(\) can be used \(--event-clock predictive",
    ):
        refuse_plan(plan_of({"a": unit}, use=WATCHED), FixedStep(0.1), EarlyReturn())


def test_locate_without_discrete_connections_is_told_what_fits() -> None:
    with pytest.raises(
        OptionError,
        match=r"connected discrete outputs, and there are no such outputs\. Leave .*events\.md",
    ):
        refuse_plan(ALONE, Locate(0.1), None)


def test_many_events_without_trigger_are_one_note() -> None:
    def note(count: int) -> str:
        events = [replace(OWN, name=f"e{k}") for k in range(count)]
        plan = plan_of({"a": PythonFmu(outputs={"z": lambda v: 1.0}, events=events)}, use=FIRED)
        (note,) = (n for n in plan.notes if "itself" in n)
        return note

    assert note(1) == "'a' executes its event 'e0' itself: it has no trigger"
    assert note(32).startswith("'a' executes its 32 events without a trigger itself")


# Clock connections ----------------------------------------------------------------------------------------------------


def clocked() -> Plan:
    source = PythonFmu(
        outputs={"tick": lambda v: False, "tock": lambda v: False, "y": lambda v: 1.0},
        attributes={"tick": CLOCK, "tock": CLOCK},
        has_event_mode=True,
    )
    target = PythonFmu(
        inputs={"tick": False, "w": 0.0, "u": 0.0},
        outputs={"y": lambda v: 1.0},
        attributes={
            "tick": CLOCK,
            "w": {"variability": Variability.DISCRETE, "clocks": ("tick",)},
        },
        has_event_mode=True,
    )
    reader = PythonFmu(inputs={"u": 0.0}, has_event_mode=True)
    bystander = PythonFmu(inputs={"u": 0.0})
    return plan_of(
        {"s": source, "t": target, "r": reader, "b": bystander},
        ["s.tick -> t.tick", "s.y -> t.w", "s.y -> t.u", "t.y -> r.u", "t.y -> b.u"],
    )


def test_a_connected_clock_is_a_trigger_with_the_inputs_that_it_clocks() -> None:
    (trigger,) = clocked().triggers
    assert (trigger.instance, trigger.name, trigger.clocks) == (1, "tick", ((0, "tick"),))
    assert [link.input.name for link in trigger.links] == ["w"]


def test_clocks_are_read_only_if_somebody_uses_them() -> None:
    plan = clocked()
    assert [n for _, group, n in plan.layout.slots if group is Group.CLOCKS] == ["tick"]


def test_event_mode_is_used_where_clocks_are_connected() -> None:
    assert [i.event_mode for i in clocked().instances] == [True, True, False, False]


def test_an_event_concerns_who_is_downstream() -> None:
    plan = clocked()

    def reach(first: int, modes: list[bool]) -> tuple[int, ...]:
        return concerned(frozenset({first}), reached_by_events(plan.triggers, plan.links, modes))

    assert reach(0, [True, True, True, False]) == (0, 1, 2)
    assert reach(1, [True, True, True, False]) == (1, 2)
    assert reach(0, [True, False, True, False]) == (0, 1, 2)  # by its clock
    assert reach(3, [True, True, True, False]) == (3,)


# Who stops early ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "early", "expected"),
    [
        (Policy.ANNOUNCE, True, True),
        (Policy.IGNORE, True, False),
        (Policy.EXECUTE, True, False),
        (Policy.ANNOUNCE, False, False),
    ],
)
def test_without_event_mode_an_fmu_stops_if_it_is_told_to_announce(
    policy: Policy, early: bool, expected: bool
) -> None:
    use = EventUse(watched=True, policy=policy, early_return=early)
    plan = plan_of({"a": member(Scope.PRIVATE, counter=True)}, use=use)
    assert plan.instances[0].may_return_early is expected


@pytest.mark.parametrize(
    ("capable", "policy", "early", "expected"),
    [
        (True, Policy.ANNOUNCE, True, True),
        (True, Policy.EXECUTE, True, True),
        (True, Policy.IGNORE, True, False),
        (False, Policy.ANNOUNCE, True, False),
        (True, Policy.ANNOUNCE, False, False),
    ],
)
def test_with_event_mode_an_fmu_stops_if_it_can_and_is_allowed_to(
    capable: bool, policy: Policy, early: bool, expected: bool
) -> None:
    use = EventUse(watched=True, policy=policy, early_return=early, event_mode=True)
    unit = member(Scope.PRIVATE, might_return_early_from_do_step=capable)
    assert plan_of({"a": unit}, use=use).instances[0].may_return_early is expected


@pytest.mark.parametrize("readable", [("z", "dz"), ("z",), ("dz",), ()])
def test_a_step_can_be_ended_from_inside_only_if_all_indicators_can_be_read_there(
    readable: tuple[str, ...],
) -> None:
    unit = PythonFmu(
        outputs={"z": lambda v: 1.0, "dz": lambda v: -1.0},
        attributes={name: {"intermediate_update": True} for name in readable},
        has_event_mode=True,
        provides_intermediate_update=True,
        can_return_early_after_intermediate_update=True,
    )
    event = EventDeclaration("hit", Scope.PRIVATE, (Indicator("z", "dz"),))
    assert stops_inside(unit.model, event) == (readable == ("z", "dz"))


def test_the_policy_is_set_and_noted_unless_the_user_gives_the_same() -> None:
    use = EventUse(watched=True, policies=({0: Policy.ANNOUNCE, 1: Policy.IGNORE},))
    units = {"a": member(), "b": member(), "c": member()}
    plan = plan_of(units, (), {"b.policy": 2}, use=use)
    programs = assemble(plan, Jacobi())
    told = [Set(i, Group.SETTINGS) in programs.initialize.instructions for i in range(3)]
    assert told == [True, False, False]
    assert programs.notes == (
        "'a.policy' is set to 1: the FMU stops at its events, and the importer fires them",
    )


def test_another_policy_than_the_event_clock_needs_is_refused() -> None:
    use = EventUse(watched=True, policy=Policy.IGNORE)
    with pytest.raises(OptionError, match=r"start value 0 of 'b\.policy' .* needs 2\. Leave"):
        assemble(plan_of({"b": member()}, (), {"b.policy": 0}, use=use), Jacobi())


def test_a_shared_event_whose_inputs_nothing_feeds_concerns_nothing() -> None:
    """The end of a row: its neighbour on one side is not there."""
    end = {"end": member(depends={"z": ["u"]})}
    plan = plan_of(end, use=WATCHED)
    assert plan.events == ()
    said = "'end' shares its event 'hit' with no component: no input of its indicators is connected"
    assert said in plan.notes


def test_a_shared_event_that_is_not_declared_is_kept_where_something_feeds_it() -> None:
    fed = {"end": member(depends={"z": ["u"]}), "other": member(Scope.PRIVATE)}
    plan = plan_of(fed, ["other.y -> end.u"], use=WATCHED)
    assert "end.hit" in {e.name for e in plan.events}


# Without an event clock -----------------------------------------------------------------------------------------------

BY_ITSELF = "each FMU executes its shared events alone, by its own inputs and at its own time: 'a.hit', 'b.hit'. Use event_"
HELD = "events that depend on them may be a step early or late, or missing: 'a.hit'. Use event_clock=Predictive()"


def told_without_a_clock(simulation: Callable[..., Simulation], *system: Any) -> Sequence[str]:
    made = simulation(*system, step_size=0.1, stop_time=0.1, event_clock="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        return made.run().statistics.warnings


def test_a_run_without_an_event_clock_says_which_shared_events_happen_in_each_member_alone(
    simulation: Callable[..., Simulation],
) -> None:
    (text,) = told_without_a_clock(
        simulation,
        {"a": member(), "b": member()},
        ["a.y -> b.u", "b.y -> a.u"],
        None,
        {"crash": ["a.hit", "b.hit"]},
    )
    assert BY_ITSELF in text


def test_a_run_without_an_event_clock_says_which_events_are_found_by_held_inputs(
    simulation: Callable[..., Simulation],
) -> None:
    units = {n: member(Scope.COUPLED, depends={"z": ["u"]}) for n in "ab"}
    (text,) = told_without_a_clock(simulation, units, ["b.y -> a.u"])  # nothing feeds b
    assert HELD in text


def test_a_private_event_that_its_fmu_finds_alone_needs_no_event_clock(
    simulation: Callable[..., Simulation],
) -> None:
    units = {n: member(Scope.PRIVATE, depends={"z": ["u"]}) for n in "ab"}
    assert told_without_a_clock(simulation, units, ["b.y -> a.u"]) == ()
