"""The links of a system by their ends, the order in which clocked values pass over them, and notes about both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from fmimaster.base.data import dataclass
from fmimaster.base.text import listed
from fmimaster.plan.graph import Node, collected, components, dependency_arcs
from fmimaster.sequences.structure import strong_components
from fmimaster.system.model import DataType, Model
from fmimaster.system.resolved import Link, ResolvedSystem


class Links(tuple[Link, ...]):
    """A tuple of links; searches keep its order. Plans for parts of a system share it.

    Planning must be linear. tests/unit/test_large_systems.py counts lines: there, a search through all other instances is
    visible with twenty of them; times did not show it below a thousand.
    """

    @cached_property
    def into(self) -> Mapping[Node, Link]:
        """(Instance, name of an input) → the link that feeds it."""
        return {(k.target, k.input.name): k for k in self}

    @cached_property
    def into_instance(self) -> Mapping[int, tuple[Link, ...]]:
        """Instance → the links to its inputs; instances without connected inputs are missing."""
        return collected((k.target, k) for k in self)

    @cached_property
    def out_of(self) -> Mapping[Node, tuple[Link, ...]]:
        """(Instance, name of an output) → the links from it; unconnected outputs are missing."""
        return collected(((k.source, k.output.name), k) for k in self)

    @cached_property
    def out_of_instance(self) -> Mapping[int, tuple[Link, ...]]:
        """Instance → the links from its outputs; instances without connected outputs are missing."""
        return collected((k.source, k) for k in self)

    @cached_property
    def sources(self) -> Mapping[int, frozenset[int]]:
        """Instance → the instances that feed it."""
        into = self.into_instance.items()
        return _Sources((i, frozenset(k.source for k in found)) for i, found in into)


class _Sources(dict[int, frozenset[int]]):
    """An instance without connected inputs has no sources."""

    def __missing__(self, instance: int) -> frozenset[int]:
        return frozenset()


def other_programs(system: ResolvedSystem) -> Iterator[str]:
    """Notes about FMUs that need another program."""
    names = [f"'{c.name}'" for c in system.components if c.model.capabilities.needs_execution_tool]
    if names:
        need = "needs" if len(names) == 1 else "need"
        yield (
            f"{listed(names)} {need} another program to run (needsExecutionTool): it must be installed, with its licence"
        )


def unread_outputs(system: ResolvedSystem) -> Iterator[str]:
    """Notes about outputs that cannot be read before the first step, and their connected inputs."""
    for link in system.links:
        if not link.output.get_in_initialization:
            source, target = (system.components[i].name for i in (link.source, link.target))
            yield (
                f"'{source}.{link.output.name}' cannot be read in Initialization Mode: until the first step "
                f"'{target}.{link.input.name}' gets its start value"
            )


def connected_parameters(system: ResolvedSystem) -> Iterator[str]:
    """Notes about parameters that get their values from other parameters."""
    for link in system.parameter_links:
        source, target = (system.components[i].name for i in (link.source, link.target))
        yield (
            f"parameter '{target}.{link.input.name}' gets its value from '{source}.{link.output.name}', once, at the start"
        )


@dataclass(frozen=True, slots=True)
class ClockedVisit:
    """One place in the order in which clocked values pass: an instance, or several that feed each other."""

    instances: tuple[int, ...]
    cut: tuple[Node, ...] = ()
    """Of several: the clocks and clocked outputs through which they feed each other, by name."""


def is_clocked(link: Link) -> bool:
    """Whether a link has an effect only while a clock is active."""
    return link.input.type is DataType.CLOCK or bool(link.input.clocks or link.output.clocks)


def is_held(link: Link) -> bool:
    """Whether an input that always needs a value holds that of the last tick."""
    return bool(link.output.clocks) and not (link.input.type is DataType.CLOCK or link.input.clocks)


def held_inputs(links: Iterable[Link], names: Sequence[str]) -> Iterator[str]:
    """Notes about inputs that hold the value of the last tick: one sentence each."""
    for link in links:
        if is_held(link):
            yield (
                f"'{names[link.target]}.{link.input.name}' holds the last value of "
                f"'{names[link.source]}.{link.output.name}', which has one only while its clock ticks "
                f"({', '.join(link.output.clocks)})"
            )


def clocked_visits(links: Iterable[Link], names: tuple[str, ...]) -> tuple[ClockedVisit, ...]:
    """The instances that clocks or clocked outputs of others reach, each after those that feed it.

    Of instances whose order is free, the lower name comes first (byte order): the order of the description is without
    effect.

    Parameters
    ----------
    names
        Of all instances.
    """
    arcs = [k for k in links if k.input.type is DataType.CLOCK or k.output.clocks]
    successors: dict[int, set[int]] = {}
    for link in arcs:
        successors.setdefault(link.source, set()).add(link.target)
        successors.setdefault(link.target, set())
    in_order = {
        i: sorted(successors[i], key=_by(names), reverse=True)
        for i in sorted(successors, key=_by(names), reverse=True)
    }
    fed = {k.target for k in arcs}
    return tuple(_visits(reversed(strong_components(in_order)), arcs, fed, names))


def loops_without_delay(
    links: Iterable[Link], names: Sequence[str], models: Sequence[Model]
) -> Iterator[str]:
    """Warnings: loops in which an event depends on itself within one event iteration, as the FMUs declare it.

    Whether such a loop has a fixed point is known only when an event enters it.
    """
    clocked = [k for k in links if is_clocked(k)]
    if not clocked:
        return
    loops: dict[frozenset[int], list[str]] = {}
    for part in components(dependency_arcs(models, clocked, initial=False, assumed=False)):
        if len(part) > 1:
            loop = loops.setdefault(frozenset(i for i, _ in part), [])
            loop += [f"{names[i]}.{name}" for i, name in part]
    for loop in loops.values():
        yield (
            f"events pass through {listed(sorted(loop))} in a loop without delay: the run ends with an error at an event "
            "that has no fixed point there"
        )


def _visits(
    parts: Iterable[list[int]], arcs: list[Link], fed: set[int], names: tuple[str, ...]
) -> Iterator[ClockedVisit]:
    for part in parts:
        inside = {(k.source, k.output.name) for k in arcs if k.source in part and k.target in part}
        if inside:
            members = tuple(sorted(part, key=_by(names)))
            yield ClockedVisit(members, tuple(sorted(inside, key=lambda n: (names[n[0]], n[1]))))
        elif part[0] in fed:
            yield ClockedVisit((part[0],))


def _by(names: tuple[str, ...]) -> Callable[[int], bytes]:
    return lambda i: names[i].encode()
