"""Attributes of a model description that fmpy does not read, from the XML itself.

fmpy declares most of them in its classes and leaves them at their defaults; tests/unit/test_xml_attributes.py has the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from fmimaster.errors import FileError
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.model import Capabilities, Interface
from fmimaster.system.xml import Element, child, children, local_name, location, value_of


@dataclass(frozen=True, slots=True)
class VariableAttributes:
    """What fmpy does not read of one variable."""

    intermediate_update: bool = False
    previous: int | None = None
    """Value reference of the variable that has its value before the present tick."""
    clock: ClockAttributes | None = None
    relative_quantity: bool | None = None
    """None where the variable leaves it to its type; fmpy looks for it among the children of the element."""


def read_capabilities(root: Element, interface: Interface) -> Capabilities:
    """Capabilities from the element of an interface; the defaults if there is no such element.

    FMI 2.0 spells two of them in another way than FMI 3.0. fmpy looks for that spelling of providesDirectionalDerivatives
    in both.
    """
    element = child(root, interface.value)
    if element is None:
        return Capabilities()
    is_fmi2 = (root.get("fmiVersion") or "").startswith("2.")
    state = "FMUstate" if is_fmi2 else "FMUState"

    def can(name: str) -> bool:
        return _is_true(element.get(name))

    return Capabilities(
        needs_execution_tool=can("needsExecutionTool"),
        can_be_instantiated_only_once_per_process=can("canBeInstantiatedOnlyOncePerProcess"),
        can_get_and_set_fmu_state=can(f"canGetAndSet{state}"),
        can_serialize_fmu_state=can(f"canSerialize{state}"),
        provides_directional_derivatives=can(
            "providesDirectionalDerivative" if is_fmi2 else "providesDirectionalDerivatives"
        ),
        can_handle_variable_communication_step_size=can("canHandleVariableCommunicationStepSize"),
        fixed_internal_step_size=value_of(element, "fixedInternalStepSize", float, None),
        max_output_derivative_order=value_of(element, "maxOutputDerivativeOrder", int, 0),
        max_input_derivative_order=1 if is_fmi2 and can("canInterpolateInputs") else 0,
        provides_intermediate_update=not is_fmi2 and can("providesIntermediateUpdate"),
        might_return_early_from_do_step=not is_fmi2 and can("mightReturnEarlyFromDoStep"),
        has_event_mode=not is_fmi2 and can("hasEventMode"),
    )


def read_variables(root: Element) -> dict[str, VariableAttributes]:
    """Name → attributes, of the variables that have any of them. Aliases are not in it.

    Raises
    ------
    FileError
        If a number cannot be read, or the variability of an interval is not known.
    """
    found = {}
    for variables in children(root, "ModelVariables"):
        for element in variables:
            is_clock = local_name(element) == "Clock"
            attributes = VariableAttributes(
                _is_true(element.get("intermediateUpdate")),
                value_of(element, "previous", int, None),
                _clock(element) if is_clock else None,
                _relative_quantity(element),
            )
            if attributes != VariableAttributes():
                found[element.get("name") or ""] = attributes
    return found


def _relative_quantity(element: Element) -> bool | None:
    own = child(element, "Real") if local_name(element) == "ScalarVariable" else element
    text = None if own is None else own.get("relativeQuantity")
    return None if text is None else _is_true(text)


def _clock(element: Element) -> ClockAttributes:
    known = [v.value for v in IntervalVariability]
    variability = element.get("intervalVariability") or IntervalVariability.TRIGGERED.value
    if variability not in known:
        raise FileError(
            f"{location(element)}: intervalVariability '{variability}' of a clock is not known. Expected one of "
            f"{', '.join(known)}."
        )
    resolution = value_of(element, "resolution", int, None)
    return ClockAttributes(
        interval_variability=IntervalVariability(variability),
        interval=_exact(element, "interval", resolution),
        shift=_exact(element, "shift", resolution) or Fraction(0),
        resolution=resolution,
        supports_fraction=_is_true(element.get("supportsFraction")),
        priority=value_of(element, "priority", int, None),
        can_be_deactivated=_is_true(element.get("canBeDeactivated")),
    )


def _exact(element: Element, what: str, resolution: int | None) -> Fraction | None:
    """A time from its counter if there is one, else from its decimal number; in s."""
    counter = value_of(element, f"{what}Counter", int, None)
    if counter is not None and resolution:
        return Fraction(counter, resolution)
    return value_of(element, f"{what}Decimal", Fraction, None)


def _is_true(text: str | None) -> bool:
    return text in ("true", "1")
