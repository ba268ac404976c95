"""Attributes of a model description that fmpy does not read, from the XML itself.

fmpy declares most of them in its classes and leaves them at their defaults; tests/unit/test_xml_attributes.py has the list.
"""

from __future__ import annotations

from fmimaster.system.model import Capabilities, Interface
from fmimaster.system.xml import Element, child, value_of


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


def _is_true(text: str | None) -> bool:
    return text in ("true", "1")
