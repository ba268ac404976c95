"""A system as an FMU that runs without Python: it is prepared, its image is made, and the archive is written."""

from __future__ import annotations

import logging
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from fmimaster.base.data import dataclass
from fmimaster.base.errors import AccuracyError, OptionError
from fmimaster.base.files import check_file_to_write, given_path
from fmimaster.base.text import count, listed
from fmimaster.configure.settings import Settings
from fmimaster.export.archive import (
    Content,
    MemberFile,
    common_platforms,
    token_of,
    write_archive,
)
from fmimaster.export.description import SystemFacts, model_description
from fmimaster.export.exposed import ExposedVariables, interface_of
from fmimaster.export.reasons import why_not
from fmimaster.export.terminals import terminals_of
from fmimaster.fmu.load import Loader
from fmimaster.fmu.process_state import fmu_output_to_log
from fmimaster.prepare.preparation import prepare
from fmimaster.prepare.prepared import Prepared
from fmimaster.session.attendance import Attendance
from fmimaster.session.launch import attended_run, files_read
from fmimaster.session.session import Session
from fmimaster.session.work_thread import Signals, silent
from fmimaster.system.declarations import Experiment
from fmimaster.system.model import Causality, Source

log = logging.getLogger("fmimaster")

VERSIONS = (2, 3)
"""Of FMI, that an exported system can have."""


@dataclass(frozen=True)
class ExportedSystem:
    """What :meth:`fmimaster.Simulation.export` has written.

    Attributes
    ----------
    path : pathlib.Path
    fmi_version : int
        2 or 3.
    platforms : tuple of str
        Those that it runs on, as FMI 3.0 names them.
    step_size : float
        [s] Of its internal steps: communication steps are multiples of it.
    inputs, outputs, parameters : int
        How many it has; of parameters also other start values that can be set.
    left_out : tuple of str
        Variables whose type it cannot have.
    bytes : int
        Of the file.
    """

    path: Path
    fmi_version: int
    platforms: tuple[str, ...]
    step_size: float
    inputs: int
    outputs: int
    parameters: int
    left_out: tuple[str, ...]
    bytes: int

    def __str__(self) -> str:
        has = ", ".join(
            count(n, what)
            for n, what in (
                (self.inputs, "input"),
                (self.outputs, "output"),
                (self.parameters, "start value"),
            )
        )
        lines = [
            f"{self.path}: FMI {self.fmi_version}.0 Co-Simulation, {self.bytes / 1000:.0f} kB",
            f"  runs on {', '.join(self.platforms)}, without Python",
            f"  internal step {self.step_size:.6g} s; communication steps must be multiples of it",
            f"  {has}",
        ]
        if self.left_out:
            names = listed(self.left_out, 5)
            lines.append(f"  left out, since FMI {self.fmi_version}.0 has no type for it: {names}")
        return "\n".join(lines)


def export(
    settings: Settings, path: str | os.PathLike[str], fmi_version: int = 3
) -> ExportedSystem:
    """Write a system as an FMU; see :meth:`fmimaster.Simulation.export`."""
    if fmi_version not in VERSIONS:
        raise OptionError(f"fmi_version (--fmi-version) is {fmi_version!r}. Expected 2 or 3.")
    target = given_path(path).absolute()
    settings = replace(settings, error_estimate=False)
    with fmu_output_to_log(), Loader() as loader:
        prepared = settled(settings, loader)
        completed = prepared.completed(settings)
        if reasons := why_not(prepared, completed):
            raise cannot(reasons)
        if settings.strict and prepared.accuracy_warnings:
            raise AccuracyError(prepared.accuracy_warnings)
        for text in prepared.warnings:
            log.warning("%s", text)
        check_file_to_write(target, "the FMU", files_read(settings, prepared), is_exported)
        interface = interface_of(prepared, fmi_version)
        if not interface.every:
            raise OptionError(
                f"The system has no variable of a type that FMI {fmi_version}.0 has. Choose the other version of FMI."
            )
        content = _content(prepared, completed, interface, loader, fmi_version)
    facts = _facts(prepared, completed, content)
    token = token_of(content, model_description(interface, facts, fmi_version))
    description = model_description(interface, replace(facts, token=token), fmi_version)
    write_archive(target, content, description, token)
    settable = [e for e in interface.every if e.settable != "-"]
    inputs = len(interface.of(Causality.INPUT))
    return ExportedSystem(
        given_path(path),
        fmi_version,
        tuple(content.platforms),
        float(prepared.schedule.rule.exact_size),
        inputs,
        len(interface.of(Causality.OUTPUT)),
        len(settable) - inputs,
        interface.left_out,
        target.stat().st_size,
    )


def cannot(reasons: list[str]) -> OptionError:
    """The error that gives every reason."""
    every = "".join(f"\n  - {reason}" for reason in reasons)
    return OptionError(f"The system cannot be exported, because it needs Python:{every}")


def is_exported(path: Path) -> bool:
    """Whether a file is an exported system, which may be written again."""
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        return "resources/system.image" in archive.namelist()
    return False


def settled(settings: Settings, loader: Loader, varied: Sequence[str] = ()) -> Prepared:
    """The system as a run prepares it at last: what the start of a run measures is known.

    Parameters
    ----------
    varied
        Names of start values that change from run to run.
    """
    prepared = prepare(settings, loader, needs_stop_time=False, varied=varied)
    programs, measured = prepared.programs, prepared.measured
    measures = programs.reactions or programs.replay.twice
    if measured is None or not measures or why_not(prepared, prepared.completed(settings)):
        return prepared
    stop = settings.stop_time
    known = replace(settings, stop_time=prepared.schedule.stop if stop is None else stop)
    with ExitStack() as files, Signals() as signals:
        attendance = attended_run(
            known, signals, silent, None, files, kind=Attendance, varied=varied
        )
        attendance.start()
        attendance.end()
    found = attendance.prepared.measured
    assert found is not None
    complete = replace(found, is_complete=True)
    known = replace(settings, loops=complete)
    return prepare(known, loader, needs_stop_time=False, varied=varied)


def _content(
    prepared: Prepared,
    settings: Settings,
    interface: ExposedVariables,
    loader: Loader,
    fmi_version: int,
) -> Content:
    from fmimaster.export.parts import image_of, variable_of  # need the kernel

    members, folders = _members(prepared)
    platforms, found = common_platforms(members)
    if not platforms:
        raise OptionError("".join(_without_platform(found)))
    session = Session(prepared, loader, settings)
    variables = [variable_of(prepared.plan, *exposed.key) for exposed in interface.every]
    image = image_of(session, [f"members/{number}" for number in folders], variables)
    return Content(
        fmi_version,
        _identifier(prepared.description.system.name),
        image,
        "".join(exposed.settable for exposed in interface.every),
        members,
        platforms,
        terminals_of(interface, loader, fmi_version),
    )


def _without_platform(found: Mapping[str, set[str]]) -> Iterator[str]:
    from fmimaster.kernel import system_libraries

    known = ", ".join(system_libraries())
    if not known:
        yield (
            "There is no library of exported systems: the C compiler was missing at installation, or failed. Install a C "
            "compiler that works, and install fmimaster again."
        )
        return
    yield f"No platform has libraries of all components. Of {known},"
    yield ",".join(
        f" '{name}' has {', '.join(sorted(platforms)) or 'none'}"
        for name, platforms in found.items()
    )
    yield ". Export the FMUs for one of them."


def _members(prepared: Prepared) -> tuple[list[MemberFile], list[int]]:
    """The FMUs of the components, each once; and the number of that of each component."""
    by_source: dict[Source, list[int]] = {}
    for i, component in enumerate(prepared.components):
        by_source.setdefault(component.source, []).append(i)
    instances = prepared.plan.instances
    members, folders = [], [0] * len(instances)
    for number, (source, users) in enumerate(by_source.items()):
        names = tuple(instances[i].name for i in users)
        members.append(MemberFile(source, instances[users[0]].model, names))
        for i in users:
            folders[i] = number
    return members, folders


def _facts(prepared: Prepared, settings: Settings, content: Content) -> SystemFacts:
    schedule, system = prepared.schedule, prepared.description
    capabilities = [planned.model.capabilities for planned in prepared.plan.instances]
    given = settings.tolerance if isinstance(settings.tolerance, float) else None
    return SystemFacts(
        system.system.name,
        "",
        content.identifier,
        "",
        Experiment(
            float(schedule.start),
            float(schedule.stop),
            given or system.experiment.tolerance,
            float(schedule.rule.exact_size),
        ),
        all(c.can_get_and_set_fmu_state for c in capabilities),
        all(c.can_get_and_set_fmu_state and c.can_serialize_fmu_state for c in capabilities),
        any(c.can_be_instantiated_only_once_per_process for c in capabilities),
        any(c.needs_execution_tool for c in capabilities),
    )


def _identifier(name: str) -> str:
    """The name as C allows it."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    return found if re.match("[A-Za-z]", found) else f"system_{found}"
