"""Outputs that are outdated after an event: in FMI, instances without Event Mode use new inputs only in their next
step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fmimaster.plan.plan import Plan
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.system.resolve import Link


def outdated_instances(
    plan: Plan, changed: Collection[int], first: Collection[int], triggers: Collection[int]
) -> frozenset[int]:
    """Instances of which outputs that are used depend directly on instances that an event has changed, and do not show it.

    Parameters
    ----------
    changed
        Instances that the event changes.
    first
        Those of them in which it happens. Of the others, which only take new inputs in Event Mode, outputs change that
        depend directly on these.
    triggers
        Those that it makes active, by number. An output that depends on the payload of a trigger shows the right limit of
        the member from which the payload is.
    """
    return frozenset(
        link.target
        for link in _links_from(plan, changed, first)
        if _depends(plan, link.target, [link], _used_outputs(plan, link.target))
        and not _is_told(plan, link, triggers, _used_outputs(plan, link.target))
    )


def unseen_sets(
    plan: Plan,
    sets: Sequence[IndicatorSet],
    changed: Collection[int],
    first: Collection[int],
    triggers: Collection[int],
) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
    """Sets of indicators, by number, each with an instance that an event has changed and on which it depends.

    Returns
    -------
    Those that do not show the change, and those that do: see :func:`outdated_instances`.
    """
    unseen, seen = set[tuple[int, int]](), set[tuple[int, int]]()
    for link in _links_from(plan, changed, first):
        for s in sets:
            names = _indicators(plan, s)
            if s.instance == link.target and _depends(plan, link.target, [link], names):
                told = _is_told(plan, link, triggers, names)
                (seen if told else unseen).add((s.number, link.source))
    return frozenset(unseen), frozenset(seen)


def _links_from(plan: Plan, changed: Collection[int], first: Collection[int]) -> Iterable[Link]:
    """Connections through which instances without Event Mode depend on changed outputs."""
    return (
        link
        for i in sorted(changed)
        for link in plan.links.out_of_instance.get(i, ())
        if link.source != link.target
        and link.input.is_continuous
        and not plan.instances[link.target].event_mode
        and (link.source in first or _passes_on(plan, link, changed))
    )


def _passes_on(plan: Plan, link: Link, changed: Collection[int]) -> bool:
    """Whether the output of a connection depends directly on an instance that has changed."""
    into = [k for k in plan.links.into_instance.get(link.source, ()) if k.source in changed]
    return _depends(plan, link.source, into, [link.output.name])


def _is_told(plan: Plan, link: Link, triggers: Collection[int], names: Collection[str]) -> bool:
    """Whether these variables depend on a payload from the source of a connection to its target."""
    payload = [
        k
        for trigger in (plan.triggers[number] for number in triggers)
        for k in trigger.links
        if (k.source, k.target) == (link.source, link.target)
    ]
    return _depends(plan, link.target, payload, names)


def _depends(plan: Plan, i: int, links: Iterable[Link], names: Collection[str]) -> bool:
    """Whether one of these variables of an instance depends directly on an input of these connections."""
    dependencies = plan.instances[i].model.dependencies
    return any(k.input.name in dependencies.get(name, ()) for k in links for name in names)


def _indicators(plan: Plan, s: IndicatorSet) -> list[str]:
    members = (m for m in plan.events[s.event].members if m.instance == s.instance)
    return [indicator.name for m in members for indicator in m.declaration.indicators]


def _used_outputs(plan: Plan, i: int) -> set[str]:
    """Names of the outputs of an instance that feed others or indicate events."""
    fed = {k.output.name for k in plan.links.out_of_instance.get(i, ())}
    slopes = {v.name for v in plan.instances[i].model.variables if v.derivative_of in fed}
    indicators = {
        k.name
        for event in plan.events
        for m in event.members
        if m.instance == i
        for k in m.declaration.indicators
    }
    return fed | slopes | indicators
