"""Notes about the components of a plan and the links between them."""

from __future__ import annotations

from collections.abc import Iterator

from fmimaster.system.notes import listed
from fmimaster.system.resolve import ResolvedSystem


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
