"""The links of a system by their ends, and notes about components and the links between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from fmimaster.plan.graph import Node
from fmimaster.system.notes import listed
from fmimaster.system.resolved import Link, ResolvedSystem

K = TypeVar("K")


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
        return _collected((k.target, k) for k in self)

    @cached_property
    def out_of(self) -> Mapping[Node, tuple[Link, ...]]:
        """(Instance, name of an output) → the links from it; unconnected outputs are missing."""
        return _collected(((k.source, k.output.name), k) for k in self)

    @cached_property
    def out_of_instance(self) -> Mapping[int, tuple[Link, ...]]:
        """Instance → the links from its outputs; instances without connected outputs are missing."""
        return _collected((k.source, k) for k in self)

    @cached_property
    def sources(self) -> Mapping[int, frozenset[int]]:
        """Instance → the instances that feed it."""
        into = self.into_instance.items()
        return _Sources((i, frozenset(k.source for k in found)) for i, found in into)


class _Sources(dict[int, frozenset[int]]):
    """An instance without connected inputs has no sources."""

    def __missing__(self, instance: int) -> frozenset[int]:
        return frozenset()


def _collected(pairs: Iterable[tuple[K, Link]]) -> Mapping[K, tuple[Link, ...]]:
    found: dict[K, list[Link]] = {}
    for key, link in pairs:
        found.setdefault(key, []).append(link)
    return {key: tuple(links) for key, links in found.items()}


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
