"""Why a system cannot be exported: what needs Python in each step."""

from __future__ import annotations

from collections.abc import Iterator

from fmimaster.configure.settings import Settings
from fmimaster.fmu.library import identity, used_twice
from fmimaster.plan.layout import Group
from fmimaster.prepare.prepared import Prepared
from fmimaster.steps.multi_rate import MultiRate
from fmimaster.steps.step_rule import FixedStep
from fmimaster.system.declarations import Interface
from fmimaster.system.model import DataType

_ELSEWHERE = {
    "input": "signals come from a table of inputs",
    "initial_fmu_state": "the run begins with saved FMU states",
    "final_fmu_state": "FMU states are written at the end",
    "checkpoint": "checkpoints are written",
    "accuracy": "a requested accuracy needs several runs",
    "record_intermediate_values": "intermediate values are recorded",
    "real_time_factor": "who runs the FMU waits for the wall clock",
}
"""Setting → why it cannot be part of an exported system, if it is not the default."""

_INTERFACES = {
    Interface.MODEL_EXCHANGE: "it is used by Model Exchange",
    Interface.SCHEDULED_EXECUTION: "it is used by Scheduled Execution",
}


def why_not(prepared: Prepared, settings: Settings) -> list[str]:
    """Every reason why a prepared system cannot run without Python: one sentence each, without a full stop.

    Parameters
    ----------
    settings : Settings
        Those of the run, with those that were chosen.
    """
    return [
        *_of_settings(prepared, settings),
        *_of_components(prepared),
        *_of_connections(prepared),
    ]


def _of_settings(prepared: Prepared, settings: Settings) -> Iterator[str]:
    changed = settings.changed()
    yield from (f"{name}: {why}" for name, why in _ELSEWHERE.items() if name in changed)
    if prepared.plan.structure is not None:
        yield "the structure of the system changes during the run"
    clock, rule = settings.clock_used, prepared.schedule.rule
    if clock is not None:
        yield f"event_clock: {type(clock).__name__} finds events in Python"
    if not isinstance(rule, FixedStep | MultiRate):
        yield f"step_size: {type(rule).__name__} has steps that do not follow a fixed grid"
    if prepared.programs.chooses:
        yield "algorithm: it chooses between programs in each step"


def _of_components(prepared: Prepared) -> Iterator[str]:
    every = list(zip(prepared.components, prepared.plan.instances, strict=True))
    for _, planned in every:
        for why in _of_component(prepared, planned.name):
            yield f"component '{planned.name}': {why}"
    fmus = ((p.name, identity(c.source, p.model)) for c, p in every if c.is_file)
    for names in used_twice(fmus):
        text = ", ".join(f"'{name}'" for name in names)
        yield f"components {text}: one process may have one instance of their FMU only"


def _of_component(prepared: Prepared, name: str) -> Iterator[str]:
    number = prepared.plan.instances.numbers[name]
    component, planned = prepared.components[number], prepared.plan.instances[number]
    model = planned.model
    if component.python is not None:
        yield "it is written in Python"
    elif component.constraint is not None:
        yield "it is a constraint"
    elif component.adaptation is not None:
        yield "it is an element of semantic adaptation"
    elif component.is_table:
        yield "it is a table of inputs"
    elif model.interface in _INTERFACES:
        yield _INTERFACES[model.interface]
    if name in prepared.isolated:
        yield "it has a process of its own"
    if model.has_clocks:
        yield "it has clocks"
    elif planned.event_mode:
        yield "its Event Mode is used"


def _of_connections(prepared: Prepared) -> Iterator[str]:
    objects = (DataType.STRING, DataType.BINARY)
    names = [planned.name for planned in prepared.plan.instances]
    for (_, group), routes in prepared.plan.routes.items():
        for route in routes:
            link = route.link
            text = f"'{names[link.source]}.{link.output.name} -> {names[link.target]}.{link.input.name}'"
            if route.source_type in objects or route.target_type in objects:
                yield f"connection {text}: text and binaries are objects of Python"
            elif group is not Group.PARAMETERS and not route.is_lossless:
                yield f"connection {text}: a conversion that can lose values is done in Python"
