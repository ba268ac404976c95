"""Shared events of a description → the events of the FMUs, and the payloads that the members exchange; what FMUs do not
declare of their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.base.text import listed
from fmimaster.system.conversions import between, checked_link
from fmimaster.system.declarations import EventDeclaration, Payload, Scope
from fmimaster.system.description import SharedEvent
from fmimaster.system.model import DataType, Model, Variable
from fmimaster.system.resolved import EventMember, Link, ResolvedSharedEvent


def resolve_shared_events(
    shared_events: Iterable[SharedEvent], models: Mapping[str, Model], allow_lossy: bool
) -> tuple[ResolvedSharedEvent, ...]:
    """The events of the members, and the links by which these exchange their payloads.

    Parameters
    ----------
    models
        Full component name → model; their order gives the indices.
    allow_lossy
        Whether types may be converted even if a value can be lost.

    Raises
    ------
    DescriptionError
        For names that do not exist, events that are private or belong to two shared events, fewer than two members, and
        payloads that do not fit together.
    """
    described = tuple(shared_events)
    check_each_once(described)
    found = []
    for shared in described:
        members = _members(shared, models)
        payload = _payload(shared, members, models, allow_lossy)
        found.append(ResolvedSharedEvent(shared.name, members, tuple(payload)))
    return tuple(found)


def check_each_once(shared_events: Sequence[SharedEvent]) -> None:
    """Refuse two shared events with one name, a component that is a member twice, and an event that belongs to two
    shared events.

    Raises
    ------
    DescriptionError
        The message names both.
    """
    names: set[str] = set()
    owners: dict[tuple[str, str], str] = {}
    for shared in shared_events:
        if shared.name in names:
            raise DescriptionError(
                f"There are several shared events '{shared.name}'. Give each its own name."
            )
        names.add(shared.name)
        components = [component for component, _ in shared.members]
        if twice := next((c for c in components if components.count(c) > 1), None):
            raise DescriptionError(
                f"Shared event '{shared.name}': '{twice}' is a member twice. Name each component once, with one event."
            )
        for component, event in shared.members:
            if (component, event) in owners:
                raise DescriptionError(
                    f"Shared event '{shared.name}': event '{event}' of '{component}' belongs to the shared event "
                    f"'{owners[component, event]}' already. An event can be shared only once; join the two."
                )
            owners[component, event] = shared.name


def _members(shared: SharedEvent, models: Mapping[str, Model]) -> tuple[EventMember, ...]:
    where = f"Shared event '{shared.name}'"
    if len(shared.members) < 2:
        raise DescriptionError(
            f"{where} has {len(shared.members) or 'no'} member{'s' * (not shared.members)}, expected at least two. Name "
            "the components in which it occurs."
        )
    index = {name: k for k, name in enumerate(models)}
    found: list[EventMember] = []
    for component, event in shared.members:
        if component not in models:
            raise DescriptionError(
                f"{where}: there is no component '{component}'.{did_you_mean(component, models)}"
            )
        declaration = _event(event, component, models[component], where)
        found.append(EventMember(index[component], declaration))
    return tuple(found)


def _event(name: str, component: str, model: Model, where: str) -> EventDeclaration:
    events = {e.name: e for e in model.events}
    if name not in events:
        near = did_you_mean(name, events)
        there = f" It has {', '.join(events)}." if events and not near else ""
        none = (
            " Its FMU declares no events; add a manifest of fmi-ls-events to it."
            if not events and not model.broken_manifests
            else ""
        )
        raise DescriptionError(
            f"{where}: '{component}' has no event '{name}'.{near}{there}{none}{model.broken_manifests}"
        )
    scope = events[name].scope
    if scope is not Scope.SHARED:
        raise DescriptionError(
            f"{where}: event '{name}' of '{component}' is {scope.value}, so it does not affect other components. Leave it "
            "out, or "
            "declare it as shared in the manifest of the FMU."
        )
    return events[name]


def _payload(
    shared: SharedEvent,
    members: Sequence[EventMember],
    models: Mapping[str, Model],
    allow_lossy: bool,
) -> Iterator[Link]:
    """Links between the members: the left limit of the k-th payload of one member for another is assigned to the k-th
    payload of the other for the first."""
    where = f"Shared event '{shared.name}'"
    names = [name for name, _ in shared.members]
    payloads = [
        _by_partner(shared, name, m.event.payload) for name, m in zip(names, members, strict=True)
    ]
    for a, b in permutations(range(len(members)), 2):
        given, taken = payloads[a][names[b]], payloads[b][names[a]]
        if len(given) != len(taken):
            raise DescriptionError(
                f"{where}: '{names[a]}' has {len(given)} Payload for '{names[b]}', which has {len(taken)} for "
                f"'{names[a]}'. Expected the same number, in the same order; correct the manifest of one of the FMUs."
            )
        for one, other in zip(given, taken, strict=True):
            text = f"{where}: payload '{names[a]}.{one.output} -> {names[b]}.{other.input}'"
            output = _variable(one.output, names[a], models, text)
            target = _variable(other.input, names[b], models, text)
            ends = members[a].component, output, members[b].component, target
            yield checked_link(Link(*ends, *between(output, target, text)), text, allow_lossy)


def _by_partner(
    shared: SharedEvent, name: str, payload: Sequence[Payload]
) -> dict[str, list[Payload]]:
    """Payloads of a member by their partner; without a role it is the only other member."""
    where = f"Shared event '{shared.name}'"
    partners = [n for n, _ in shared.members if n != name]
    bound = {role: other for owner, role, other in shared.partners if owner == name}
    _check_partners(shared, name, payload)
    found: dict[str, list[Payload]] = {partner: [] for partner in partners}
    for p in payload:
        if p.member is None:
            if len(partners) > 1:
                raise DescriptionError(
                    f"{where}: the Payload '{p.input}' of '{name}' does not name its source, and there are "
                    f"{len(partners)} other members. Give it the attribute member, one input for each of "
                    f"{', '.join(partners)}."
                )
            partner = partners[0]
        else:
            partner = bound.get(p.member) or next(
                (n for n in partners if _is_named(n, p.member)), ""
            )
        if partner not in found:
            raise DescriptionError(
                f"{where}: the Payload '{p.input}' of '{name}' is from '{p.member}', which is not another "
                f"member.{did_you_mean(p.member or '', partners)} Expected one of {', '.join(partners)}, or a Partner of "
                f"'{name}' that binds the role '{p.member}' to one of them."
            )
        found[partner].append(p)
    return found


def _is_named(component: str, role: str) -> bool:
    """A role that is not bound is the name of a partner without the names of the enclosing systems."""
    return component == role or component.endswith("." + role)


def _check_partners(shared: SharedEvent, name: str, payload: Sequence[Payload]) -> None:
    """Refuse bound roles that the manifest of a member does not name, and partners that are not another member."""
    where = f"Shared event '{shared.name}'"
    roles = [p.member for p in payload if p.member is not None]
    others = [n for n, _ in shared.members if n != name]
    for owner, role, other in shared.partners:
        if owner not in (name, *others):
            raise DescriptionError(
                f"{where}: a Partner of '{owner}' is given, which is not a member.{did_you_mean(owner, (name, *others))}"
            )
        if owner == name and role not in roles:
            raise DescriptionError(
                f"{where}: a Partner of '{name}' has the role '{role}', but no Payload of its event names that "
                f"role.{did_you_mean(role, roles)} Expected one of {', '.join(roles) or 'none'}."
            )
        if owner == name and other not in others:
            raise DescriptionError(
                f"{where}: the Partner '{role}' of '{name}' is '{other}', which is not another "
                f"member.{did_you_mean(other, others)} Expected one of {', '.join(others)}."
            )


def _variable(name: str, component: str, models: Mapping[str, Model], text: str) -> Variable:
    model = models[component]
    variable = model.variable(name)
    if variable is None:
        near = did_you_mean(name, (v.name for v in model.variables))
        raise DescriptionError(f"{text}: '{component}' has no variable '{name}'.{near}")
    return variable


def missing_dependencies(model: Model) -> Iterator[str]:
    """Outputs that must depend on the trigger of an event, and do not list it (requirement M10 of fmi-ls-events).

    A payload acts together with its trigger only. If right limits can be read without a step, the trigger acts on an
    indicator: after the event, at least one must be above 0.
    """
    needs = model.dependencies
    for event in (e for e in model.events if e.trigger is not None):
        payload = {p.input for p in event.payload}
        for output in sorted(needs):
            given = sorted(needs[output] & payload)
            if given and event.trigger not in needs[output]:
                yield (
                    f"Event '{event.name}': the output '{output}' depends on the payload {listed(map(repr, given))}, and "
                    f"not on the trigger '{event.trigger}' with which it acts."
                )
        found = [i.name for i in event.indicators if i.name in needs]
        shows_all = event.right_limits_without_step and len(found) == len(event.indicators)
        trigger = model.variable(event.trigger or "")
        is_counter = trigger is not None and trigger.type is not DataType.CLOCK
        if shows_all and is_counter and not any(event.trigger in needs[name] for name in found):
            yield (
                f"Event '{event.name}' has right limits without a step, and none of its indicators "
                f"({listed(found)}) depends on the trigger '{event.trigger}'."
            )
