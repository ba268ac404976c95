"""The output of ``info`` as plain data: the keys are part of the interface, and tests/cli/test_info.py tests them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fmimaster.base.errors import DescriptionError, InputError
from fmimaster.fmu.description.terminals import read_terminals
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.load import Loader
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.fmu.shared_library import find_library
from fmimaster.pages.clocks_and_bonds import clocks_of_model
from fmimaster.system.archive import open_archive
from fmimaster.system.conversions import parse_value
from fmimaster.system.declarations import Capabilities, to_json
from fmimaster.system.description import (
    Parameter,
    PowerBond,
    SharedEvent,
    System,
    SystemDescription,
)
from fmimaster.system.model import Causality, Model, Variable
from fmimaster.system.start_values import described, received


def fmu_facts(fmu: FmuFile, most: int | None = None) -> dict[str, Any]:
    """The properties of one FMU; the names of values are those of the FMI 3.0 attributes.

    Parameters
    ----------
    most
        How many variables of each causality are included; None for all.
    """
    model = fmu.model
    variables = (
        [v for c in Causality for v in model.with_causality(c)[:most]]
        if most is not None
        else model.variables
    )
    terminals, _ = read_terminals(UnpackedFmu(fmu.folder, str(fmu.source)), model)
    return {
        "file": str(fmu.source),
        "modelName": model.name,
        "description": model.description,
        "fmiVersion": model.fmi_version,
        "interfaces": to_json(model.interfaces),
        "generationTool": model.generation_tool,
        "modelIdentifier": model.model_identifier,
        "instantiationToken": model.instantiation_token,
        "platforms": _platforms(fmu),
        "platformHere": _platform_here(fmu),
        "defaultExperiment": to_json(model.default_experiment),
        "interface": model.interface.value,
        "capabilities": _declared(model.capabilities),
        "logCategories": list(model.log_categories),
        "variables": [_variable(v) for v in variables],
        "clocks": clocks_of_model(model),
        "dependencies": _dependencies(model, variables),
        "eventIndicators": list(model.event_indicators),
        "numberOfEventIndicators": model.n_event_indicators,
        "stateDerivatives": list(model.state_derivatives),
        "events": to_json(model.events),
        "eventPolicy": to_json(model.event_policy),
        "eventRow": _event_row(model),
        "lookAhead": model.look_ahead,
        "inputPolynomials": to_json(model.input_polynomials),
        "layeredStandards": to_json(model.layered_standards),
        "terminals": to_json(terminals),
        "powerPorts": to_json(model.power_ports),
    }


def _event_row(model: Model) -> dict[str, str] | None:
    """What a run does with its events where they affect others; None if it shows none."""
    outputs = model.with_causality(Causality.OUTPUT)
    has_any = model.events or model.capabilities.has_event_mode
    if not has_any and all(v.is_continuous for v in outputs):
        return None
    from fmimaster.plan.policy import TableRow, row_of  # few FMUs need it

    row, because = row_of(model)
    if row is TableRow.NONE and not model.events:
        return None
    return {"method": row.value, "because": because}


def system_facts(description: SystemDescription, loader: Loader) -> dict[str, Any]:
    """The parts of a system description; an FMU that cannot be used is listed with its error."""
    models: dict[str, Model] = {}
    return {
        "file": str(description.source),
        "name": description.system.name,
        "experiment": to_json(description.experiment),
        "components": list(_components(description, loader, models)),
        "connections": list(_connections(description.system, "")),
        "parameters": [_parameter(p, models) for p in described(description.system)],
        "sharedEvents": [_shared_event(e) for e in description.shared_events()],
        "powerBonds": [_power_bond(bond) for bond in description.power_bonds()],
        "sequence": list(description.sequence),
        "warnings": list(description.warnings),
        "notes": list(description.notes),
    }


def _shared_event(shared: SharedEvent) -> dict[str, Any]:
    members = [{"component": component, "event": event} for component, event in shared.members]
    return {"name": shared.name, "members": members}


def _power_bond(bond: PowerBond) -> dict[str, Any]:
    return {key: value for key, value in to_json(bond).items() if key != "where"}


def _platforms(fmu: FmuFile) -> list[str]:
    with open_archive(fmu.source) as archive:
        parts = [name.split("/") for name in archive.names()]
    return sorted({p[1] for p in parts if p[0] == "binaries" and len(p) > 2})


def _platform_here(fmu: FmuFile) -> str | None:
    """The platform whose binary runs on this machine."""
    try:
        return find_library(fmu.folder, fmu.model, fmu.source).parent.name
    except InputError:
        return None


def _variable(v: Variable) -> dict[str, Any]:
    return {
        "name": v.name,
        "valueReference": v.value_reference,
        "type": v.type.value,
        "causality": v.causality.value,
        "variability": v.variability.value,
        "initial": v.initial.value if v.initial else None,
        "shape": list(v.shape),
        "unit": v.unit.name if v.unit else None,
        "start": _start(v),
        "min": v.min,
        "max": v.max,
        "nominal": v.nominal,
        "derivativeOf": v.derivative_of,
        "enumeration": dict(v.enumeration) if v.enumeration else None,
        "clocks": list(v.clocks),
        "description": v.description,
    }


def _start(v: Variable) -> list[Any] | None:
    """Start values as JSON values: numbers as numbers, binaries as hexadecimal text."""
    if v.start is None:
        return None
    try:
        values = parse_value(v, v.start[0] if len(v.start) == 1 else v.start, "")
    except InputError:  # 'validate' reports it
        return list(map(str, v.start))
    return [value.hex() if isinstance(value, bytes) else value for value in values.tolist()]


def _dependencies(model: Model, variables: Iterable[Variable]) -> dict[str, Any]:
    """Output → inputs, in the order of the model description."""
    outputs = [v.name for v in variables if v.name in model.dependencies]
    order = {v.name: k for k, v in enumerate(model.variables)}
    return {
        output: {
            "inputs": sorted(model.dependencies[output], key=order.__getitem__),
            "declared": output not in model.assumed_dependencies,
        }
        for output in outputs
    }


def _components(
    description: SystemDescription, loader: Loader, models: dict[str, Model]
) -> Iterator[dict[str, Any]]:
    """The components; the models of those that can be used are added to ``models``."""
    for name, component in description.components():
        source = component.source.member or str(component.source)
        facts: dict[str, Any] = {"name": name, "source": source, "priority": component.priority}
        try:
            model = models[name] = loader.model(component)
            facts |= {"modelName": model.name, "fmiVersion": model.fmi_version, "error": None}
        except InputError as error:
            facts |= {"modelName": None, "fmiVersion": None, "error": str(error)}
        yield facts


def _connections(system: System, prefix: str) -> Iterator[dict[str, Any]]:
    for c in system.connections:
        yield {
            "start": f"{prefix}{c.start}",
            "end": f"{prefix}{c.end}",
            "factor": c.transformation.factor,
            "offset": c.transformation.offset,
            "suppressUnitConversion": c.suppress_unit_conversion,
        }
    for nested in system.systems:
        yield from _connections(nested, f"{prefix}{nested.name}.")


def _parameter(parameter: Parameter, models: Mapping[str, Model]) -> dict[str, Any]:
    """A parameter as it is given; and, if a mapping transforms it, as its variable gets it."""
    value = (
        parameter.value if isinstance(parameter.value, bool | int | float) else str(parameter.value)
    )
    unit = parameter.unit.name if parameter.unit else None
    facts: dict[str, Any] = {"name": parameter.name, "value": value, "unit": unit}
    if parameter.transformation.is_identity:
        return facts
    with suppress(DescriptionError):  # told by the page's notes and by validate
        if (found := received(parameter, models)) is not None:
            facts["received"] = {"values": found[0].ravel().tolist(), "unit": found[1] or None}
    return facts


def _declared(capabilities: Capabilities) -> dict[str, Any]:
    """Capabilities of the FMU; copies of states are made by fmimaster."""
    facts: dict[str, Any] = to_json(capabilities)
    if facts.pop("copiesStates"):
        facts["canGetAndSetFMUState"] = False
    return facts
