"""Log messages about a run: versions, files, choices, and its end."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from fmimaster.base.text import count, named
from fmimaster.configure.named import setting_text, steps_text
from fmimaster.configure.settings import Settings
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.statistics import Statistics
from fmimaster.run.choice import ExecutorType, native_executor
from fmimaster.system.description import Component
from fmimaster.system.model import Model

log = logging.getLogger("fmimaster")


def log_begin(
    prepared: Prepared, settings: Settings, metadata: Mapping[str, Any], executor: ExecutorType
) -> None:
    """Log the information known before the first instance is made.

    Parameters
    ----------
    metadata
        The result of :func:`fmimaster.prepare.prepared.run_metadata`.
    """
    if log.isEnabledFor(logging.INFO):
        for line in _lines(prepared, settings, metadata, executor):
            log.info("%s", line)


def log_end(time: float, statistics: Statistics) -> None:
    """Log the end of a run: its time in s, steps and events."""
    log.info(
        "ended at t = %.12g s after %s and %s in %.3g s",
        time,
        count(statistics.steps, "step"),
        count(statistics.events, "event"),
        statistics.seconds,
    )


def _lines(
    prepared: Prepared, settings: Settings, metadata: Mapping[str, Any], executor: ExecutorType
) -> Iterator[str]:
    plan, schedule = prepared.plan, prepared.schedule
    yield f"fmimaster {metadata['fmimaster']}, Python {metadata['python']} on {metadata['platform']}"
    links = sum(len(routes) for routes in plan.routes.values())
    yield f"system '{metadata['system']}': {count(len(plan.instances), 'component')}, {count(links, 'connection')}"
    made: dict[tuple[str, str], list[str]] = {}
    for planned, component in zip(plan.instances, prepared.components, strict=True):
        made.setdefault(_made_from(component, planned.model), []).append(f"'{planned.name}'")
    for (file, what), names in made.items():
        yield f"{named(names)}: {file}{what}"
    method = f"{setting_text(settings.algorithm_used)}, {steps_text(schedule.rule)}"
    yield f"{float(schedule.start):g} s to {float(schedule.stop):g} s by {method}"
    if settings.clock_used is not None:
        yield f"events by {setting_text(settings.clock_used)}"
    if not settings.algorithm_used.is_parallel:
        order = [f"'{plan.instances[i].name}'" for i in plan.trigger_sequence]
        yield f"the components step in the order {named(order)}"
    is_native = executor is native_executor()
    yield f"executed by {'the native kernel' if is_native else 'the interpreter in Python'}"
    for note in prepared.notes:
        yield f"note: {note}"


def _made_from(component: Component, model: Model) -> tuple[str, str]:
    """The file of a component, with its model name and version."""
    if not component.is_file:
        return "", f"{model.name} {component.source}"
    tool = f" by {model.generation_tool}" if model.generation_tool else ""
    return f"{component.source}, ", f"{model.name}, FMI {model.fmi_version}{tool}"
