"""Clocks that tick in a run, and clocks that do not: ignored variables are listed in warnings and never set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from fmimaster.base.errors import DescriptionError
from fmimaster.plan.events import Trigger
from fmimaster.plan.policy import EventUse
from fmimaster.system.model import DataType, Model
from fmimaster.system.notes import listed
from fmimaster.system.resolve import Link, ResolvedComponent, ResolvedSystem


def has_clocks(model: Model) -> bool:
    """Whether an FMU has clocks. Its Event Mode must then be used, if it has one (FMI 3.0.2, 2.3.1)."""
    return any(v.type is DataType.CLOCK for v in model.variables)


def without_clocked_links(system: ResolvedSystem, triggers: Iterable[Trigger]) -> ResolvedSystem:
    """The system without connections to inputs whose clocks are never activated: they may be set only with their
    clocks."""
    with_clock = {(t.instance, name) for t in triggers for name in t.names}
    kept = tuple(k for k in system.links if not _is_still(k, with_clock))
    return system if len(kept) == len(system.links) else replace(system, links=kept)


def _is_still(link: Link, with_clock: Collection[tuple[int, str]]) -> bool:
    return bool(link.input.clocks) and (link.target, link.input.name) not in with_clock


def refuse_without_event_mode(system: ResolvedSystem, triggers: Iterable[Trigger]) -> None:
    """Refuse connected clocks of FMUs that have no Event Mode: they cannot tick.

    Raises
    ------
    DescriptionError
    """
    for trigger in triggers:
        for i, name in ((trigger.instance, trigger.name), *trigger.clocks):
            component = system.components[i]
            variable = component.model.variable(name)
            is_clock = variable is not None and variable.type is DataType.CLOCK
            if is_clock and not component.model.capabilities.has_event_mode:
                raise DescriptionError(
                    f"The clock '{component.name}.{name}' is connected or belongs to an event, but the FMU has no Event "
                    "Mode (hasEventMode is false), and clocks tick in Event Mode only. Leave it out."
                )


def clock_warnings(system: ResolvedSystem, links: Sequence[Link]) -> Iterator[str]:
    """Warnings: clocks that do not tick, and connections without effect because of them.

    Parameters
    ----------
    system
        With all its connections.
    links
        Those of them that are computed.
    """
    for component in system.components:
        if has_clocks(component.model) and not component.model.capabilities.has_event_mode:
            yield f"'{component.name}' has clocks, but no Event Mode (hasEventMode is false): they do not tick"
    used = {(k.target, k.input.name) for k in links}
    dropped = [k for k in system.links if (k.target, k.input.name) not in used]
    for link in dropped:
        source, target = (system.components[i].name for i in (link.source, link.target))
        yield (
            f"the connection '{source}.{link.output.name} -> {target}.{link.input.name}' has no effect: the input is "
            f"set together with its clock only, and nothing activates {listed(repr(c) for c in link.input.clocks)}"
        )


def clock_notes(components: Sequence[ResolvedComponent], use: EventUse) -> Iterator[str]:
    """Notes: Event Mode that is used although it was switched off."""
    for component in components:
        model = component.model
        if use.event_mode is False and has_clocks(model) and model.capabilities.has_event_mode:
            yield (
                f"the Event Mode of '{component.name}' is used nevertheless, because it has clocks (FMI 3.0, 2.3.1)"
            )
