"""The interface of a component is chosen before its model description is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from command_line import changed, reference, system

from fmimaster.base.errors import ModelError
from fmimaster.fmu.description.model_description import read_model
from fmimaster.fmu.load import Loader
from fmimaster.system.declarations import Capabilities, Interface
from fmimaster.system.description import Component
from fmimaster.system.model import Model, Source
from fmimaster.system.read import read_system

ELEMENTS = {
    Interface.CO_SIMULATION: """<CoSimulation modelIdentifier="cs" canHandleVariableCommunicationStepSize="true"
        hasEventMode="1" fixedInternalStepSize="0.25" maxOutputDerivativeOrder="2"/>""",
    Interface.MODEL_EXCHANGE: """<ModelExchange modelIdentifier="me" canGetAndSetFMUState="true"
        providesDirectionalDerivatives="true"/>""",
    Interface.SCHEDULED_EXECUTION: '<ScheduledExecution modelIdentifier="se" needsExecutionTool="true"/>',
}
TEXT = """<fmiModelDescription fmiVersion="3.0" modelName="m" instantiationToken="x">
{}<ModelVariables>
  <Clock name="k" valueReference="1" causality="input" intervalVariability="triggered" priority="0"/>
</ModelVariables><ModelStructure/></fmiModelDescription>"""


def model(folder: Path, interface: Interface, offered: Iterable[Interface] = Interface) -> Model:
    elements = "".join(ELEMENTS[i] for i in offered)
    (folder / "modelDescription.xml").write_text(TEXT.format(elements), encoding="utf-8")
    return read_model(folder, "m.fmu", interface)


@pytest.mark.parametrize(
    ("interface", "identifier", "capabilities"),
    [
        (
            Interface.CO_SIMULATION,
            "cs",
            Capabilities(
                can_handle_variable_communication_step_size=True,
                has_event_mode=True,
                fixed_internal_step_size=0.25,
                max_output_derivative_order=2,
            ),
        ),
        (
            Interface.MODEL_EXCHANGE,
            "me",
            Capabilities(
                can_get_and_set_fmu_state=True,
                provides_directional_derivatives=True,
                can_handle_variable_communication_step_size=True,
                provides_intermediate_update=True,
                might_return_early_from_do_step=True,
                has_event_mode=True,
            ),
        ),
        (
            Interface.SCHEDULED_EXECUTION,
            "se",
            Capabilities(
                needs_execution_tool=True,
                can_get_and_set_fmu_state=True,
                copies_states=True,
                can_handle_variable_communication_step_size=True,
                has_event_mode=True,
            ),
        ),
    ],
)
def test_capabilities_come_from_the_element_of_the_interface(
    tmp_path: Path, interface: Interface, identifier: str, capabilities: Capabilities
) -> None:
    found = model(tmp_path, interface)
    assert found.interface is interface
    assert found.interfaces == tuple(Interface)
    assert (found.model_identifier, found.capabilities) == (identifier, capabilities)


@pytest.mark.parametrize("interface", Interface)
def test_an_interface_that_is_not_offered_is_refused(tmp_path: Path, interface: Interface) -> None:
    others = [i for i in Interface if i is not interface]
    offered = " and ".join(i.value for i in others)
    words = (
        f"has no {interface.words} interface, it offers {offered}. Export it for {interface.words}."
    )
    with pytest.raises(ModelError, match=words):
        model(tmp_path, interface, others)


def test_two_components_can_use_one_file_by_two_interfaces(tmp_path: Path) -> None:
    both = '<ScheduledExecution modelIdentifier="Dahlquist"/><CoSimulation'
    path = changed(
        reference("fmi3/Dahlquist.fmu"),
        tmp_path / "a.fmu",
        description=lambda t: t.replace("<CoSimulation", both),
    )
    source = Source(path)
    with Loader() as loader:
        first = loader.model(Component("a", source))
        assert loader.model(Component("b", source)) is first
        with pytest.raises(ModelError, match=r"offers Scheduled Execution, but has no input clock"):
            loader.model(Component("c", source, interface=Interface.SCHEDULED_EXECUTION))
        assert loader.model(Component("b", source)) is first


def test_a_model_exchange_fmu_that_cannot_save_its_state_is_known(tmp_path: Path) -> None:
    """Copies of its continuous states stand in."""
    element = ELEMENTS[Interface.MODEL_EXCHANGE].replace("canGetAndSetFMUState", "other")
    (tmp_path / "modelDescription.xml").write_text(TEXT.format(element), encoding="utf-8")
    capabilities = read_model(tmp_path, "m.fmu").capabilities
    assert capabilities.can_get_and_set_fmu_state
    assert capabilities.copies_states


def test_co_simulation_is_used_if_an_fmu_has_it_and_no_interface_is_chosen(tmp_path: Path) -> None:
    assert _default(tmp_path, [*Interface]) is Interface.CO_SIMULATION
    others = [Interface.MODEL_EXCHANGE, Interface.SCHEDULED_EXECUTION]
    assert _default(tmp_path, others) is Interface.MODEL_EXCHANGE
    assert _default(tmp_path, others[1:]) is Interface.SCHEDULED_EXECUTION


def _default(folder: Path, offered: Iterable[Interface]) -> Interface:
    elements = "".join(ELEMENTS[i] for i in offered)
    (folder / "modelDescription.xml").write_text(TEXT.format(elements), encoding="utf-8")
    return read_model(folder, "m.fmu").interface


def test_the_implementation_of_a_component_of_ssp_is_its_interface(tmp_path: Path) -> None:
    path = system(tmp_path, {"a": reference("fmi3/Dahlquist.fmu")})
    text = path.read_text(encoding="utf-8")
    for value in ("CoSimulation", "ModelExchange", "ScheduledExecution", "any"):
        path.write_text(
            text.replace(' name="a"', f' name="a" implementation="{value}"', 1), encoding="utf-8"
        )
        [(_, component)] = read_system(path).components()
        assert component.interface is (None if value == "any" else Interface(value))


@pytest.mark.parametrize(
    ("version", "attribute", "told"),
    [
        ("3.0", "", False),
        ("3.0", 'needsCompletedIntegratorStep="true"', True),
        ("2.0", "", True),
        ("2.0", 'completedIntegratorStepNotNeeded="true"', False),
    ],
)
def test_completed_integrator_steps_are_told_by_the_default_of_each_version(
    tmp_path: Path, version: str, attribute: str, told: bool
) -> None:
    text = TEXT.replace('"3.0"', f'"{version}"').format(
        f'<ModelExchange modelIdentifier="me" {attribute}/>'
    )
    (tmp_path / "modelDescription.xml").write_text(
        text.replace("<Clock", "<!--").replace('"0"/>', "-->"), encoding="utf-8"
    )
    found = read_model(tmp_path, "m.fmu").capabilities
    assert found.needs_completed_integrator_step is told
