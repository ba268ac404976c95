"""The structure of a system at one time: what exists of it, if parts have a :class:`Lifetime`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from fmimaster.system.description import Connection, System, SystemDescription
from fmimaster.system.lifetime import ALWAYS, Lifetime, Structure
from fmimaster.system.notes import listed

Exists = Callable[[Lifetime], bool]


def lifetimes(system: System) -> Iterator[Lifetime]:
    """Of all components and connections, also in nested systems."""
    for component in system.components:
        yield component.lifetime
    for connection in system.connections:
        yield connection.lifetime
    for inner in system.systems:
        yield from lifetimes(inner)


def times_of_changes(description: SystemDescription) -> tuple[Fraction, ...]:
    """Times in s at which the structure changes, in their order."""
    return tuple(sorted({t for life in lifetimes(description.system) for t in life.times}))


def events_of_changes(description: SystemDescription) -> frozenset[str]:
    """Names of the events at which the structure changes."""
    return frozenset(e for life in lifetimes(description.system) for e in life.events)


def structure_note(description: SystemDescription) -> str:
    """What exists when, in one sentence."""
    parts = [(f"'{name}'", component.lifetime) for name, component in description.components()]
    parts += [
        (f"'{connection}'", connection.lifetime) for connection in _connections(description.system)
    ]
    named = [f"{name} {life}" for name, life in parts if life != ALWAYS]
    return f"the structure of the system changes during the run: {listed(named)}"


def _connections(system: System) -> Iterator[Connection]:
    yield from system.connections
    for inner in system.systems:
        yield from _connections(inner)


def is_dynamic(description: SystemDescription) -> bool:
    """Whether the structure ever changes."""
    return any(life is not ALWAYS and life != ALWAYS for life in lifetimes(description.system))


def structure_at(
    description: SystemDescription, time: Fraction, happened: frozenset[str] = frozenset()
) -> SystemDescription:
    """What exists at a time in s, after its changes and after the events that have happened: without lifetimes."""

    def exists(life: Lifetime) -> bool:
        return life.exists(time, happened)

    names = {name for name, c in description.components() if exists(c.lifetime)}
    return replace(
        description,
        system=_at(description.system, exists),
        sequence=tuple(name for name in description.sequence if name in names),
        structure=structure_of(description, time, happened),
    )


def structure_of(
    description: SystemDescription, time: Fraction, happened: frozenset[str]
) -> Structure:
    """Which parts exist at that time: equal for equal systems of :func:`structure_at`."""
    changing = [*_changing(description.system, "")]
    parts = [part for part, _ in changing]
    return Structure(
        frozenset(
            parts.index(part)
            for part, lives in changing
            if all(life.exists(time, happened) for life in lives)
        )
    )


def _changing(system: System, path: str) -> Iterator[tuple[object, list[Lifetime]]]:
    """The parts that do not always exist, without their lifetimes: with the lifetimes of each and of its ends."""
    of_components = {c.name: c.lifetime for c in system.components if c.lifetime != ALWAYS}
    for name, life in of_components.items():
        yield (path, name), [life]
    for c in system.connections:
        ends = {end.element for end in (c.start, c.end)} & of_components.keys()
        lives = [of_components[name] for name in ends]
        if lives or c.lifetime != ALWAYS:
            yield (path, replace(c, lifetime=ALWAYS)), [c.lifetime, *lives]
    for inner in system.systems:
        yield from _changing(inner, f"{path}{inner.name}.")


def _at(system: System, exists: Exists) -> System:
    kept = tuple(replace(c, lifetime=ALWAYS) for c in system.components if exists(c.lifetime))
    gone = {c.name for c in system.components} - {c.name for c in kept}

    def is_there(component: str) -> bool:
        return component not in gone

    return replace(
        system,
        components=kept,
        systems=tuple(_at(inner, exists) for inner in system.systems),
        connections=tuple(
            replace(c, lifetime=ALWAYS)
            for c in system.connections
            if exists(c.lifetime) and is_there(c.start.element) and is_there(c.end.element)
        ),
        parameters=tuple(p for p in system.parameters if is_there(p.name.partition(".")[0])),
        shared_events=tuple(
            e for e in system.shared_events if all(is_there(m[0]) for m in e.members)
        ),
        power_bonds=tuple(
            b for b in system.power_bonds if all(is_there(p.component) for p in b.ports)
        ),
    )
