"""Interfaces of an FMU, their capabilities, and the default experiment."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from fmimaster.base.errors import ModelError
from fmimaster.fmu.description.findings import Findings, labelled, problem
from fmimaster.system.declarations import Capabilities, DefaultExperiment, Interface
from fmimaster.system.model import MOST_ELEMENTS
from fmimaster.system.xml import Element, child, shown

_HIGHEST_DERIVATIVE = 100
"""Largest order of an output derivative; limits the size of buffers."""


def offered_interfaces(root: Element) -> tuple[Interface, ...]:
    """All interfaces of an FMU."""
    return tuple(i for i in Interface if child(root, i.value) is not None)


def default_interface(root: Element) -> Interface:
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


def read_model_identifier(element: Element) -> str:
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
        max_output_derivative_order=read_count(
            element, "maxOutputDerivativeOrder", findings, _HIGHEST_DERIVATIVE
        ),
        max_input_derivative_order=1 if is_fmi2 and can("canInterpolateInputs") else 0,
        provides_intermediate_update=not is_fmi2 and can("providesIntermediateUpdate"),
        might_return_early_from_do_step=not is_fmi2 and can("mightReturnEarlyFromDoStep"),
        can_return_early_after_intermediate_update=not is_fmi2
        and can("canReturnEarlyAfterIntermediateUpdate"),
        has_event_mode=not is_fmi2 and can("hasEventMode"),
    )
    match interface:
        case Interface.MODEL_EXCHANGE:
            told = _needs_completed_steps(element, is_fmi2, findings)
            return replace(_integrated(found), needs_completed_integrator_step=told)
        case Interface.SCHEDULED_EXECUTION:
            return _scheduled(found)
        case _:
            return found


def _needs_completed_steps(element: Element, is_fmi2: bool, findings: Findings) -> bool:
    """The default differs between both versions."""
    if is_fmi2:
        return not findings.truth(element, "completedIntegratorStepNotNeeded")
    return findings.truth(element, "needsCompletedIntegratorStep")


def _scheduled(of_fmu: Capabilities) -> Capabilities:
    """Capabilities of a Scheduled Execution FMU: its steps change nothing, so they can always be undone."""
    return replace(
        of_fmu,
        can_get_and_set_fmu_state=True,
        copies_states=not of_fmu.can_get_and_set_fmu_state,
        can_handle_variable_communication_step_size=True,
        has_event_mode=True,
    )


def _integrated(of_fmu: Capabilities) -> Capabilities:
    """Capabilities of a Model Exchange FMU with an integrator."""
    return replace(
        of_fmu,
        can_get_and_set_fmu_state=True,
        copies_states=not of_fmu.can_get_and_set_fmu_state,
        can_handle_variable_communication_step_size=True,
        provides_intermediate_update=True,
        might_return_early_from_do_step=True,
        has_event_mode=True,
    )


def read_experiment(root: Element, findings: Findings) -> DefaultExperiment:
    """The experiment that the FMU suggests, without invalid values."""
    element = child(root, "DefaultExperiment")
    if element is None:
        return DefaultExperiment()
    start = findings.number(element, "startTime")
    stop = findings.number(element, "stopTime")
    if stop is not None and stop < (start or 0.0):
        findings.note(element, "stopTime is before startTime and is ignored", f"{stop:g}")
        stop = None
    return DefaultExperiment(
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


def read_count(element: Element, name: str, findings: Findings, most: int = MOST_ELEMENTS) -> int:
    """A whole number of an element, 0 if there is none."""
    number = findings.number(
        element,
        name,
        valid=lambda number: number.is_integer() and 0 <= number <= most,
        expected=f"a whole number from 0 to {most}",
    )
    return int(number or 0)
