"""Validation of an FMU or a system before a simulation: errors, warnings and notes."""

from __future__ import annotations

import itertools
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from fmimaster.algorithms.assemble import assemble
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.collector import left_for_later
from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, InputError, ModelError, OptionError
from fmimaster.base.files import given_path
from fmimaster.base.text import listed
from fmimaster.fmu.description.rules import broken_rules
from fmimaster.fmu.description.terminals import read_terminals
from fmimaster.fmu.library import FmuFile, identity, used_twice
from fmimaster.fmu.load import Loader
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.fmu.shared_library import find_library
from fmimaster.instants.instant import exact
from fmimaster.plan.make import PlanRequest, make_plan, step_order
from fmimaster.plan.plan import Plan
from fmimaster.plan.visits import AlgebraicLoop
from fmimaster.prepare.isolation import can_isolate
from fmimaster.prepare.structures import (
    is_dynamic,
    structure_at,
    structures_in,
    times_of_changes,
)
from fmimaster.steps.schedule import make_schedule
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.declarations import Interface, Scope
from fmimaster.system.description import SharedEvent, System, SystemDescription
from fmimaster.system.model import Causality, Model, Source
from fmimaster.system.read import read_system
from fmimaster.system.resolve import resolve
from fmimaster.system.resolved import ResolvedSystem
from fmimaster.system.shared_events import missing_dependencies
from fmimaster.system.ssp_events import write_shared_events


class Severity(Enum):
    """Severity of a finding."""

    ERROR = "error"
    """It cannot be simulated on this machine."""
    WARNING = "warning"
    """It can perhaps be simulated: a rule is broken."""
    NOTE = "note"
    """Nothing is wrong; the note explains how the system is simulated."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error, warning or note from :func:`validate`."""

    place: str
    """File, component or connection."""
    severity: Severity
    """Error, warning or note."""
    what: str
    """The finding, in one or two sentences."""
    advice: str = ""
    """The recommended action; empty if ``what`` contains it, or if no action is needed."""


@left_for_later()
def validate(
    path: str | os.PathLike[str] | SystemBuilder | SystemDescription,
    *,
    interface: Interface | str | None = None,
) -> tuple[Finding, ...]:
    """Validate an FMU or a system: find all errors without loading a library.

    A broken rule of FMI is only a warning, and only a note if many correct FMUs break it.

    Parameters
    ----------
    path
        An FMU, an SSP archive, an SSD file, an OspSystemStructure.xml, or a folder with one of them unpacked;
        or a system that was built in Python.
    interface : ``"CoSimulation"``, ``"ModelExchange"`` or ``"ScheduledExecution"``
        By which a single FMU is used. Default: the first of these that it has.

    Returns
    -------
    tuple of Finding
        In the order of the files and components; those of the system as a whole come last.

    Raises
    ------
    InputError
        If the interface has no meaning here.
    """
    try:
        description = _described(path)
    except InputError as error:
        return (Finding(str(path), Severity.ERROR, str(error)),)
    if interface is not None:
        description = description.with_interface(Interface.named(interface))
    place = _place(description)
    with Loader(whole=True) as loader:
        findings, models = _components(description, loader)
    findings = [*_schemas(description), *findings]
    if len(models) < len(list(description.components())):
        if description.is_single_fmu:
            return tuple(findings)
        what = "Connections and parameters were not checked, because an FMU cannot be read."
        return (*findings, Finding(place, Severity.NOTE, what))
    of_system = [f for each in _structures(description) for f in _system(each, models)]
    return (*findings, *_once_per_process(description, models), *dict.fromkeys(of_system))


def _described(
    given: str | os.PathLike[str] | SystemBuilder | SystemDescription,
) -> SystemDescription:
    if isinstance(given, SystemBuilder):
        return given.build()
    return given if isinstance(given, SystemDescription) else read_system(given_path(given))


def _place(description: SystemDescription) -> str:
    """The file of a system, or its name if it was built in Python."""
    return str(description.source or description.system.name)


def _schemas(description: SystemDescription) -> Iterator[Finding]:
    """Violations of the schemas of SSP in the files of the description."""
    advice = "Elements and attributes that are not in the schema are ignored. Correct the spelling or the order."
    for warning in description.warnings:
        yield Finding(_place(description), Severity.WARNING, warning, advice)


def _components(
    description: SystemDescription, loader: Loader
) -> tuple[list[Finding], dict[str, Model]]:
    """The findings of each file, and the models of the components that can be read."""
    findings: list[Finding] = []
    models: dict[str, Model] = {}
    seen: set[Source] = set()
    for name, component in description.components():
        source = component.source
        is_new = source not in seen
        seen.add(source)
        try:
            models[name] = loader.model(component)
        except InputError as error:
            problems = error.problems if isinstance(error, ModelError) else (str(error),)
            if is_new:
                findings += [Finding(_file(source), Severity.ERROR, p) for p in problems]
            continue
        if is_new and models[name].instantiation_token:  # else it is a table
            findings += _fmu(loader.file(source, component.interface), _file(source))
    return findings, models


def _file(source: Source) -> str:
    return source.member or source.path.name


def _fmu(fmu: FmuFile, place: str) -> Iterator[Finding]:
    yield from _rules(fmu, place)
    yield from _binary(fmu, place)
    yield from _facts(fmu.model, place)
    yield from _left_aside(fmu, place)


def _rules(fmu: FmuFile, place: str) -> Iterator[Finding]:
    for rule in broken_rules(UnpackedFmu(fmu.folder, place), fmu.description()):
        severity = Severity.NOTE if rule.is_common else Severity.WARNING
        advice = "" if rule.is_common else "The FMU may still run. Report it to the FMU's vendor."
        yield Finding(f"{place}/{rule.file}", severity, _sentence(rule.what), advice)


def _left_aside(fmu: FmuFile, place: str) -> Iterator[Finding]:
    """Parts of the FMU outside of the model description that are not used."""
    for standard in fmu.model.layered_standards:
        runs = f"The FMU runs without the layered standard '{standard.name}'"
        yield from _each(place, Severity.WARNING, standard.problems, f"{runs}.")
        if standard.why_not_used and not standard.problems:
            yield Finding(place, Severity.WARNING, f"{runs}: {standard.why_not_used}.")
    _, problems = read_terminals(UnpackedFmu(fmu.folder, place), fmu.model)
    advice = "A simulation does not need terminals."
    yield from _each(place, Severity.WARNING, problems, advice)


def _binary(fmu: FmuFile, place: str) -> Iterator[Finding]:
    try:
        find_library(fmu.folder, fmu.model, fmu.source)
    except ModelError as error:
        advice = "It cannot be simulated on this machine. Export it for this platform."
        yield Finding(place, Severity.ERROR, str(error), advice)


def _facts(model: Model, place: str) -> Iterator[Finding]:
    if model.assumed_dependencies and model.with_causality(Causality.INPUT):
        names = listed(v.name for v in model.variables if v.name in model.assumed_dependencies)
        what = (
            f"The FMU does not declare on which inputs these outputs depend: {names}. They are assumed to depend on "
            "all inputs."
        )
        advice = "Loops that follow from this assumption are marked as assumed. Export the FMU with dependencies."
        yield Finding(place, Severity.NOTE, what, advice)
    yield from _each(place, Severity.WARNING, model.notes)
    for event in model.events:
        if event.scope is Scope.SHARED and event.trigger is None:
            what = f"Event '{event.name}' is shared and has no trigger: the FMU executes it itself."
            advice = "Algorithms with an event clock refuse it. Export the FMU with a trigger."
            yield Finding(place, Severity.NOTE, what, advice)
    advice = (
        "Right limits may then be taken from before the event. Declare the dependency in ModelStructure (requirement M10 "
        "of fmi-ls-events)."
    )
    yield from _each(place, Severity.WARNING, missing_dependencies(model), advice)


def _once_per_process(
    description: SystemDescription, models: Mapping[str, Model]
) -> Iterator[Finding]:
    users = [(n, identity(c.source, models[n])) for n, c in description.components()]
    sources = {n: c.source for n, c in description.components()}
    for names in used_twice(users):
        what = (
            f"{listed(names)} are instances of one FMU that allows one instance per process only "
            "(canBeInstantiatedOnlyOncePerProcess)."
        )
        severity, advice = Severity.ERROR, "Use it for one component only."
        if can_isolate():
            severity, advice = Severity.NOTE, "They run in processes of their own."
        yield Finding(_file(sources[names[0]]), severity, what, advice)


# The system as a whole ------------------------------------------------------------------------------------------------


def _structures(description: SystemDescription) -> Iterator[SystemDescription]:
    """What exists at the same time: the system itself, if its structure never changes."""
    if not is_dynamic(description):
        yield description
        return
    start = exact(description.experiment.start_time or 0.0)
    later = (time for time in times_of_changes(description) if time > start)
    for time, happened in structures_in(description, (start, *later)):
        yield structure_at(description, time, happened)


def _system(description: SystemDescription, every: Mapping[str, Model]) -> Iterator[Finding]:
    models = {name: every[name] for name, _ in description.components()}
    path = description.source
    place = path.name if path and description.is_single_fmu else _place(description)
    try:
        resolved = resolve(description, models)
    except DescriptionError:
        errors = _each_error(description, models)
        yield from (Finding(place, Severity.ERROR, error) for error in errors)
        return
    try:
        order = step_order(resolved, described=description.sequence, matters=False)
        plan = make_plan(resolved, PlanRequest(order=order))
        assemble(plan, Jacobi())
    except InputError as error:
        yield Finding(place, Severity.ERROR, str(error))
        return
    of_fmus = {note for model in models.values() for note in model.notes}  # reported with each FMU
    yield from _each(place, Severity.WARNING, plan.warnings)
    yield from _each(place, Severity.NOTE, (note for note in plan.notes if note not in of_fmus))
    for link in plan.links:
        ends = f"{plan.instances[link.source].name}.{link.output.name} -> "
        ends += f"{plan.instances[link.target].name}.{link.input.name}"
        yield from _each(ends, Severity.NOTE, link.notes)
    yield from _loops(plan, place)
    if not description.is_single_fmu:
        yield from _unlinked_events(resolved)
    try:
        schedule = make_schedule(models, description.experiment)
    except OptionError as error:
        yield Finding(place, Severity.WARNING, str(error))
    else:
        yield from _each(place, Severity.NOTE, schedule.notes)


def _unlinked_events(system: ResolvedSystem) -> Iterator[Finding]:
    """Shared events of FMUs that the system does not declare; events with the same name are assumed to be one shared
    event."""
    linked = {(m.component, m.event.name) for e in system.shared_events for m in e.members}
    unlinked: dict[str, list[str]] = {}
    for k, component in enumerate(system.components):
        for event in component.model.events:
            if event.scope is Scope.SHARED and (k, event.name) not in linked:
                unlinked.setdefault(event.name, []).append(component.name)
    for name, components in unlinked.items():
        members = [(c, name) for c in components]
        members += [("other", "event")] if len(components) == 1 else []
        annotation = " ".join(write_shared_events([SharedEvent(name, tuple(members))]).split())
        calls = ", ".join(f'"{text}"' for text in (name, *map(".".join, members)))
        what = f"Event '{name}' is shared, but the system does not declare its members: it is not synchronised."
        advice = (
            f"Add to the Annotations of the System: {annotation.replace('> <', '><')} In Python: "
            f"system.share_event({calls})."
        )
        yield Finding(listed(f"{c}.{name}" for c in components), Severity.WARNING, what, advice)


def _loops(plan: Plan, place: str) -> Iterator[Finding]:
    """A loop in both modes is reported for each mode, because it is treated differently."""

    def note(where: str, loop: AlgebraicLoop, advice: str) -> Finding:
        why = ", assumed, because an FMU does not declare on what its outputs depend"
        members = listed(f"{plan.instances[i].name}.{name}" for i, name in loop.variables)
        what = f"Algebraic loop {where}{why if loop.assumed else ''}: {members}."
        return Finding(place, Severity.NOTE, what, f"{advice} See 'fmimaster plan'.")

    for loop in plan.initial_loops:
        yield note("at initialization", loop, "It is solved from the start values of its inputs.")
    for loop in plan.step_loops:
        if any(set(loop.instances) <= set(group) for group in plan.step_groups):
            advice = "It is solved in each step: its FMUs repeat the step until the values agree."
        elif not plan.exists_in_steps(loop):
            advice = "It is solved at events, in Event Mode."
        else:
            advice = "It is not solved; one of its connections is delayed by a step."
        yield note("in Step Mode", loop, advice)


def _each_error(description: SystemDescription, models: Mapping[str, Model]) -> list[str]:
    """One error for each connection, parameter and shared event that contradicts those before it."""
    asked, wrong = itertools.count(), dict[int, str]()
    _part(description.system, (True for _ in asked))
    size = next(asked)

    def error_of(count: int) -> str | None:
        """The error with the first ``count`` parts, without those known to be wrong."""
        system = _part(description.system, (k < count and k not in wrong for k in range(size)))
        try:
            resolve(replace(description, system=system), models)
        except DescriptionError as error:
            return str(error)
        return None

    if (error := error_of(0)) is not None:  # the error is about the components
        return [error]
    while (error := error_of(size)) is not None:
        # the first ``first`` parts have an error, and no fewer do
        first = bisect_left(range(size), True, key=lambda n: error_of(n) is not None)
        wrong[first - 1] = error_of(first) or error
    return [wrong[k] for k in sorted(wrong)]


def _part(system: System, chosen: Iterator[bool]) -> System:
    """The system with the chosen ones of its connections, parameters, shared events and power bonds, in turn."""

    def kept(every: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(item for item in every if next(chosen))

    return replace(
        system,
        components=tuple(replace(c, parameters=kept(c.parameters)) for c in system.components),
        parameters=kept(system.parameters),
        connections=kept(system.connections),
        systems=tuple(_part(s, chosen) for s in system.systems),
        shared_events=kept(system.shared_events),
        power_bonds=kept(system.power_bonds),
    )


def _each(
    place: str, severity: Severity, texts: Iterable[str], advice: str = ""
) -> Iterator[Finding]:
    """A finding for each text."""
    return (Finding(place, severity, _sentence(text), advice) for text in texts)


def _sentence(text: str) -> str:
    """A sentence with a full stop and single blanks; its first letter is kept, because it may belong to a unit."""
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
