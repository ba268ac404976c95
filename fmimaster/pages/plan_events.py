"""The events of a plan for `fmimaster plan`, as data and as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fmimaster.base.text import aligned, section
from fmimaster.plan.events import PlanEvent, PlanMember, Trigger, concerned, executes_itself
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.base import Program
from fmimaster.program.programs import Programs


def events(plan: Plan, importer_fires: bool) -> list[dict[str, Any]]:
    """Shared and private events, each with its members and the components that it concerns."""
    return [
        {
            "name": event.name,
            "scope": event.scope.value,
            "members": [_member(m, plan, importer_fires) for m in event.members],
            "concerns": _names(concerned(event.instances, plan.reached_by_events), plan),
        }
        for event in plan.events
    ]


def triggers(plan: Plan, importer_fires: bool) -> list[dict[str, Any]]:
    """Input clocks and counters, each with what makes it active: clock connections, and announcements of other members."""
    by_event = {
        m.trigger: event.name
        for event in plan.events
        for m in event.members
        if m.trigger is not None
    }
    return [_trigger(t, by_event.get(k), plan, importer_fires) for k, t in enumerate(plan.triggers)]


def event_programs(plan: Plan, programs: Programs, importer_fires: bool) -> dict[str, Program]:
    """Title → the program of each event that occurs alone: first declared events, then those that an instance requests
    in Event Mode. Equal programs share one title."""
    titles: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for title, first, fired in _causes(plan, importer_fires):
        key = concerned(first, plan.reached_by_events), fired
        titles.setdefault(key, []).append(title)
    return {", ".join(names): programs.event(*key) for key, names in titles.items()}


def _causes(
    plan: Plan, importer_fires: bool
) -> Iterator[tuple[str, frozenset[int], tuple[int, ...]]]:
    """Title, instances in which the event occurs, triggers that become active."""
    for event in plan.events if importer_fires else ():
        fired = tuple(m.trigger for m in event.members if m.trigger is not None)
        if fired or _has_event_mode(event, plan):
            yield f"event '{event.name}'", event.instances, fired
    for i, instance in enumerate(plan.instances):
        if instance.event_mode:
            yield f"event of '{instance.name}'", frozenset({i}), ()


def _has_event_mode(event: PlanEvent, plan: Plan) -> bool:
    return any(plan.instances[i].event_mode for i in event.instances)


def _member(m: PlanMember, plan: Plan, importer_fires: bool) -> dict[str, Any]:
    return {
        "component": plan.instances[m.instance].name,
        "indicators": [i.name for i in m.declaration.indicators],
        "announcedBy": m.declaration.announce,
        "trigger": m.declaration.trigger,
        "executedByFmu": executes_itself(m, importer_fires),
    }


def _trigger(t: Trigger, event: str | None, plan: Plan, importer_fires: bool) -> dict[str, Any]:
    names = [i.name for i in plan.instances]
    return {
        "target": f"{names[t.instance]}.{t.name}",
        "kind": "clock" if t.counter is None else "counter",
        "event": event,
        "fired": importer_fires and event is not None,
        "sources": [f"{names[i]}.{clock}" for i, clock in t.clocks],
        "isTimeBased": t.clock is not None,
        "payload": [
            {
                "target": f"{names[k.target]}.{k.input.name}",
                "source": f"{names[k.source]}.{k.output.name}",
            }
            for k in t.links
        ],
    }


def _names(instances: tuple[int, ...], plan: Plan) -> list[str]:
    return [plan.instances[i].name for i in instances]


# The page -------------------------------------------------------------------------------------------------------------


def page(facts: dict[str, Any]) -> list[str]:
    """The sections about events; empty if there are none."""
    members = [row for event in facts["events"] for row in _rows_of(event)]
    active = [_row_of(t) for t in facts["triggers"]]
    return [
        *section("Events, each when all its indicators are at or below 0", aligned(members)),
        *section("Triggers, and what makes them active", aligned(active)),
    ]


def _rows_of(event: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    who = [m["component"] for m in event["members"]]
    others = [c for c in event["concerns"] if c not in who]
    concerns = f", also concerns {' and '.join(others)}" if others else ""
    yield event["name"], f"{event['scope']}{concerns}"
    for m in event["members"]:
        announced = f"announced by {m['announcedBy']}" if m["announcedBy"] else "not announced"
        happens = "executed by the FMU itself" if m["executedByFmu"] else f"fired by {m['trigger']}"
        yield f"  in {m['component']}", ", ".join(m["indicators"]), f"{announced},", happens


def _row_of(trigger: dict[str, Any]) -> tuple[str, ...]:
    fired = [f"the event clock ({trigger['event']})"] if trigger["fired"] else []
    payload = "; ".join(f"{p['target']} <- {p['source']}" for p in trigger["payload"])
    ticks = ["its interval"] if trigger["isTimeBased"] else []
    active = " or ".join([*fired, *ticks, *trigger["sources"]]) or "nothing"
    return trigger["target"], "<-", active, f"with {payload}" if payload else ""
