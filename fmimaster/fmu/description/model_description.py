"""modelDescription.xml → Model, in the terms of FMI 3.0.

Input is checked here: a model is valid, or refused with file and line. Other modules rely on this. fmpy's reader is not
used: it has no line numbers, accepts numbers that are not valid, and raises general exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path

from fmimaster.base.collector import left_for_later
from fmimaster.base.errors import ModelError
from fmimaster.base.files import read_whole
from fmimaster.fmu.description.entries import (
    FMI2,
    FMI3,
    Dialect,
    References,
    read_entries,
    read_types,
    with_aliases,
)
from fmimaster.fmu.description.findings import Findings, labelled, problem
from fmimaster.fmu.description.model_structure import read_dependencies
from fmimaster.fmu.description.terminals import read_power_ports
from fmimaster.fmu.description.variables import (
    VariableReader,
    readable_in_initialization,
)
from fmimaster.system.declarations import Capabilities, Experiment, Interface, Version
from fmimaster.system.model import MOST_ELEMENTS, Causality, Model, Variable
from fmimaster.system.units import read_units
from fmimaster.system.xml import Element, child, children, parse_xml, shown

_RELEASED = re.compile(r"2\.0(\.\d+)?|3\.\d+(\.\d+)?", re.ASCII)
"""Versions of FMI without those before a release. Later versions 3.x are compatible."""


def parse_description(folder: Path, where: str) -> Element:
    """The model description of an unpacked FMU as elements.

    Raises
    ------
    FileError
        If it is not XML that can be read safely.
    """
    return parse_xml(read_whole(folder / "modelDescription.xml"), f"{where}/modelDescription.xml")


def read_model(
    folder: Path,
    where: str,
    interface: Interface | None = None,
    *,
    root: Element | None = None,
) -> Model:
    """Read the model description of an unpacked FMU for this interface, or for the default one.

    Violations of FMI that do not prevent a run are ignored, with notes in the model.

    Parameters
    ----------
    root
        The model description, if it has been parsed.

    Raises
    ------
    FileError
        If it is not XML that can be read safely.
    ModelError
        If it has another FMI version, does not offer the interface, or cannot be run correctly: each problem with its
        line.
    """
    root = parse_description(folder, where) if root is None else root
    version = root.get("fmiVersion") or "of unknown version"
    if not version.startswith(("2.", "3.")):
        raise ModelError(
            f"'{where}' is an FMI {version} FMU. Expected FMI 2.0 or 3.0; export it again with one of these."
        )
    interface = interface or _default_interface(root)
    used = interface_element(root, interface, where)
    with left_for_later():
        return _model(root, Version(version), interface, used)


def _settable_between_points(variable: Variable) -> Variable:
    """An input that an integrator sets at each evaluation takes part in intermediate updates, in the words of FMI 3.0."""
    if variable.causality is not Causality.INPUT or not variable.is_continuous:
        return variable
    return replace(variable, intermediate_update=True)


def _check_partitions(root: Element, variables: Iterable[Variable], findings: Findings) -> None:
    """Check the clocks that activate the model partitions of a Scheduled Execution FMU (FMI 3.0, 5.1)."""
    clocks = [v for v in variables if v.clock is not None and v.causality is Causality.INPUT]
    if not clocks:
        raise ModelError(
            f"{root.base}: the FMU offers Scheduled Execution, but has no input clock, so none of its model partitions can "
            "be activated. Expected at least one variable of type Clock with causality input; ask the FMU's vendor."
        )
    for clock in clocks:
        if clock.clock is not None and clock.clock.priority is None:
            what = "a clock of Scheduled Execution has no priority; its partition is activated after all others"
            findings.note(root, what, repr(clock.name))


def _model(root: Element, version: Version, interface: Interface, used: Element) -> Model:
    is_fmi2 = version.startswith("2.")
    dialect = FMI2 if is_fmi2 else FMI3
    findings = Findings()
    if _RELEASED.fullmatch(version) is None:
        what = f"fmiVersion is that of no release, so it is read like FMI {'2.0' if is_fmi2 else '3.0'}"
        findings.note(root, what, shown(version))
    identifier = _model_identifier(used)
    variables, names, references = _variables(root, dialect, interface, findings)
    dependencies = read_dependencies(root, dialect, references, variables, names, findings)
    return Model(
        name=root.get("modelName") or identifier,
        fmi_version=version,
        model_identifier=identifier,
        instantiation_token=root.get(dialect.token) or "",
        variables=variables,
        **vars(dependencies),
        n_event_indicators=(
            _count(root, "numberOfEventIndicators", findings)
            if is_fmi2
            else len(dependencies.event_indicators)
        ),
        n_states=sum(1 for _ in children(root, "ModelStructure", *dialect.state_derivatives)),
        capabilities=read_capabilities(used, interface, is_fmi2=is_fmi2, findings=findings),
        power_ports=read_power_ports(root, {v.name: v for v in variables}, findings),
        default_experiment=read_experiment(root, findings),
        log_categories=tuple(
            c.get("name") or "" for c in children(root, "LogCategories", "Category")
        ),
        interface=interface,
        interfaces=offered_interfaces(root),
        generation_tool=root.get("generationTool") or "",
        description=root.get("description") or "",
        notes=findings.notes,
    )


def _variables(
    root: Element, dialect: Dialect, interface: Interface, findings: Findings
) -> tuple[tuple[Variable, ...], Mapping[str, set[str]], References]:
    """All variables with their aliases, all names of each that has aliases, and what attributes refer to.

    Raises
    ------
    ModelError
        If they contradict the standard so that the FMU cannot be used, or have too many elements.
    """
    entries = read_entries(root, dialect, findings)
    references = References(entries, dialect, findings)
    reader = VariableReader(
        dialect,
        references,
        read_units(children(root, "UnitDefinitions", "Unit"), findings.note),
        read_types(root, dialect, findings),
        readable_in_initialization(entries, references)
        if dialect.restricts_initialization
        else None,
        findings,
    )
    found = findings.of_each(reader.read, entries)
    if interface is Interface.MODEL_EXCHANGE:
        found = [_settable_between_points(v) for v in found]
    variables, names = with_aliases(found, entries, findings)
    findings.refuse()
    if len(variables) + sum(v.size - 1 for v in variables if v.shape) > MOST_ELEMENTS:
        raise ModelError(
            f"{root.base}: all variables together have more than {MOST_ELEMENTS} elements. Expected fewer; make the arrays "
            "smaller."
        )
    if interface is Interface.SCHEDULED_EXECUTION:
        _check_partitions(root, variables, findings)
    return variables, names, references


# Interfaces, their capabilities, and the default experiment

_HIGHEST_DERIVATIVE = 100
"""Largest order of an output derivative; limits the size of buffers."""


def offered_interfaces(root: Element) -> tuple[Interface, ...]:
    """All interfaces of an FMU."""
    return tuple(i for i in Interface if child(root, i.value) is not None)


def _default_interface(root: Element) -> Interface:
    """The interface that is used if none is chosen: the first of Co-Simulation, Model Exchange, Scheduled Execution."""
    return next(iter(offered_interfaces(root)), Interface.CO_SIMULATION)


def interface_element(root: Element, interface: Interface, where: str) -> Element:
    """The element of an interface.

    Raises
    ------
    ModelError
        If the FMU does not offer it.
    """
    used = child(root, interface.value)
    if used is None:
        offered = " and ".join(i.value for i in offered_interfaces(root)) or "no interface"
        raise ModelError(
            f"'{where}' has no {interface.words} interface, it offers {offered}. Export it for {interface.words}."
        )
    return used


def _model_identifier(element: Element) -> str:
    """Name of the library of an interface, without folder and suffix; empty if the FMU gives none.

    Raises
    ------
    ModelError
        If it is not a bare name: it could name a library outside of the FMU.
    """
    name = element.get("modelIdentifier") or ""
    if name in (".", "..") or any(letter in name for letter in "/\\:\0\n"):
        raise problem(
            element,
            f"modelIdentifier of {labelled(element)} is {shown(name)}, expected the name of a library without any folder.",
        )
    return name


def read_capabilities(
    element: Element, interface: Interface, *, is_fmi2: bool, findings: Findings
) -> Capabilities:
    """Capabilities from the element of an interface; FMI 2.0 spells two of them in another way than FMI 3.0.

    Those of a Model Exchange FMU are the ones that it has together with an integrator; those of a Scheduled Execution FMU,
    the ones that it has as an instance with Event Mode.
    """
    state = "FMUstate" if is_fmi2 else "FMUState"

    def can(name: str) -> bool:
        return findings.truth(element, name)

    found = Capabilities(
        needs_execution_tool=can("needsExecutionTool"),
        can_be_instantiated_only_once_per_process=can("canBeInstantiatedOnlyOncePerProcess"),
        can_get_and_set_fmu_state=can(f"canGetAndSet{state}"),
        can_serialize_fmu_state=can(f"canSerialize{state}"),
        provides_directional_derivatives=can(
            "providesDirectionalDerivative" if is_fmi2 else "providesDirectionalDerivatives"
        ),
        can_handle_variable_communication_step_size=can("canHandleVariableCommunicationStepSize"),
        fixed_internal_step_size=_positive(element, "fixedInternalStepSize", findings),
        max_output_derivative_order=_count(
            element, "maxOutputDerivativeOrder", findings, _HIGHEST_DERIVATIVE
        ),
        max_input_derivative_order=1 if is_fmi2 and can("canInterpolateInputs") else 0,
        provides_intermediate_update=not is_fmi2 and can("providesIntermediateUpdate"),
        might_return_early_from_do_step=not is_fmi2 and can("mightReturnEarlyFromDoStep"),
        can_return_early_after_intermediate_update=not is_fmi2
        and can("canReturnEarlyAfterIntermediateUpdate"),
        has_event_mode=not is_fmi2 and can("hasEventMode"),
    )
    if interface is Interface.CO_SIMULATION:
        return found
    found = replace(
        found,
        can_get_and_set_fmu_state=True,  # steps of Scheduled Execution change nothing, so they can always be undone
        copies_states=not found.can_get_and_set_fmu_state,
        can_handle_variable_communication_step_size=True,
        has_event_mode=True,
    )
    if interface is Interface.SCHEDULED_EXECUTION:
        return found
    return replace(
        found,
        provides_intermediate_update=True,
        might_return_early_from_do_step=True,
        needs_completed_integrator_step=_needs_completed_steps(element, is_fmi2, findings),
    )


def _needs_completed_steps(element: Element, is_fmi2: bool, findings: Findings) -> bool:
    """The default differs between both versions."""
    if is_fmi2:
        return not findings.truth(element, "completedIntegratorStepNotNeeded")
    return findings.truth(element, "needsCompletedIntegratorStep")


def read_experiment(root: Element, findings: Findings) -> Experiment:
    """The experiment that the FMU suggests, without invalid values."""
    element = child(root, "DefaultExperiment")
    if element is None:
        return Experiment()
    start = findings.number(element, "startTime")
    stop = findings.number(element, "stopTime")
    if stop is not None and stop < (start or 0.0):
        findings.note(element, "stopTime is before startTime and is ignored", f"{stop:g}")
        stop = None
    return Experiment(
        start,
        stop,
        _positive(element, "tolerance", findings),
        _positive(element, "stepSize", findings),
    )


def _positive(element: Element, name: str, findings: Findings) -> float | None:
    return findings.number(
        element,
        name,
        valid=lambda number: isfinite(number) and number > 0,
        expected="a finite number above 0",
    )


def _count(element: Element, name: str, findings: Findings, most: int = MOST_ELEMENTS) -> int:
    """A whole number of an element, 0 if there is none."""
    number = findings.number(
        element,
        name,
        valid=lambda number: number.is_integer() and 0 <= number <= most,
        expected=f"a whole number from 0 to {most}",
    )
    return int(number or 0)
