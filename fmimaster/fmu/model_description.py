"""modelDescription.xml → Model, in the words of FMI 3.0: read by fmpy, and by ``xml_attributes.py`` where fmpy does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from fmpy.model_description import ModelDescription, ModelVariable, Unknown, read_model_description

from fmimaster.errors import ModelError
from fmimaster.fmu.xml_attributes import VariableAttributes, read_capabilities, read_variables
from fmimaster.system.files import read_whole
from fmimaster.system.model import (
    Causality,
    DataType,
    DefaultExperiment,
    DependencyKind,
    Initial,
    Interface,
    Model,
    Unit,
    Variability,
    Variable,
    Version,
)
from fmimaster.system.xml import Element, child, parse_xml

_FMI2_TYPES = {
    "Real": DataType.FLOAT64,
    "Integer": DataType.INT32,
    "Enumeration": DataType.INT32,
    "Boolean": DataType.BOOLEAN,
    "String": DataType.STRING,
}
_FMI3_TYPES = {t.value: t for t in DataType} | {"Enumeration": DataType.INT64}


def read_model(folder: Path, where: str, interface: Interface = Interface.CO_SIMULATION) -> Model:
    """Read the model description of an unpacked FMU that is used by this interface.

    The XML is read safely first, so that fmpy never reads a document with entities.

    Raises
    ------
    ModelError
        If it is of another FMI version, does not offer the interface, or contradicts itself so that it cannot be read.
    """
    file = folder / "modelDescription.xml"
    root = parse_xml(read_whole(file), f"{where}/modelDescription.xml")
    version = root.get("fmiVersion") or "of unknown version"
    if not version.startswith(("2.", "3.")):
        raise ModelError(
            f"'{where}' is an FMI {version} FMU. Expected FMI 2.0 or 3.0; export it again with one of these."
        )
    try:
        description = read_model_description(folder, validate=False)
    except (
        Exception
    ) as error:  # fmpy raises bare exceptions, and lookup errors for broken references
        raise ModelError(
            f"modelDescription.xml of '{where}' cannot be read: {_words(error)}. "
            "'fmimaster validate' lists all findings; ask the FMU's vendor for a valid one."
        ) from error
    used = child(root, interface.value)
    if used is None:
        offered = " and ".join(i.value for i in _interfaces(root)) or "no interface"
        raise ModelError(
            f"'{where}' has no {interface.words} interface, it offers {offered}. Export it for {interface.words}."
        )
    return replace(
        _model(description, read_variables(root)),
        model_identifier=used.get("modelIdentifier") or "",
        capabilities=read_capabilities(root, interface),
        interface=interface,
        interfaces=_interfaces(root),
    )


def _words(error: Exception) -> str:
    if isinstance(error, KeyError | IndexError):
        return f"it refers to something that does not exist ({error})"
    return str(error).rstrip(".")


def _interfaces(root: Element) -> tuple[Interface, ...]:
    return tuple(i for i in Interface if child(root, i.value) is not None)


def _model(md: ModelDescription, unread: Mapping[str, VariableAttributes]) -> Model:
    is_fmi2 = str(md.fmiVersion).startswith("2.")
    units = {u.name: _unit(u) for u in md.unitDefinitions}
    types = _FMI2_TYPES if is_fmi2 else _FMI3_TYPES
    by_reference: dict[int | None, str] = {
        v.valueReference: v.name for v in md.modelVariables if v.alias is None
    }
    variables = tuple(
        _variable(v, types[v.type], units, unread, by_reference) for v in md.modelVariables
    )
    names: dict[str, set[str]] = {}  # of a variable and its aliases
    for v in md.modelVariables:
        names.setdefault((v.alias or v).name, set()).add(v.name)
    if is_fmi2:
        variables = _with_rules_of_fmi2(variables)
    dependencies, declared_for = _dependencies(md.outputs, variables, names)
    initial, initially_declared = _dependencies(md.initialUnknowns, variables, names)
    listed = {name for unknown in md.initialUnknowns for name in names[_name_of(unknown)]}
    for variable in variables:
        if variable.name in initial and variable.name not in listed:
            # an output with a start value is known; one that should be listed and is not depends as in Step Mode
            known = variable.initial is Initial.EXACT
            initial[variable.name] = frozenset() if known else dependencies[variable.name]
            initially_declared |= (
                {variable.name} if known or variable.name in declared_for else set()
            )
    return Model(
        name=str(md.modelName),
        fmi_version=Version(str(md.fmiVersion)),
        model_identifier="",
        instantiation_token=str(md.instantiationToken),
        variables=variables,
        dependencies=dependencies,
        initial_dependencies=initial,
        assumed_dependencies=frozenset(dependencies) - declared_for,
        assumed_initial_dependencies=frozenset(initial) - initially_declared,
        dependency_kinds=_dependency_kinds(md.outputs, dependencies, names),
        event_indicators=tuple(_name_of(u) for u in md.eventIndicators),
        default_experiment=_experiment(md),
        log_categories=tuple(str(c.name) for c in md.logCategories),
        generation_tool=md.generationTool or "",
        description=md.description or "",
    )


def _with_rules_of_fmi2(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """What FMI 2.0 allows in Initialization Mode only, or not there (2.0.4, section 4.2.4).

    Inputs have no ``initial``: they cannot be set before. Only outputs, continuous states and their derivatives can be
    read there; an alias of one is the same variable.
    """
    by_name = {v.name: v for v in variables}
    states = [v.derivative_of for v in variables if v.derivative_of is not None]
    readable = {
        (v.type, v.value_reference)
        for v in variables
        if v.causality is Causality.OUTPUT or v.derivative_of is not None
    } | {(by_name[n].type, by_name[n].value_reference) for n in states if n in by_name}
    return tuple(
        replace(
            v,
            initial=None if v.causality is Causality.INPUT else v.initial,
            get_in_initialization=(v.type, v.value_reference) in readable,
        )
        for v in variables
    )


def _name_of(unknown: Unknown) -> str:
    """Name of the variable that an entry of ModelStructure is about."""
    assert unknown.variable is not None  # fmpy has resolved the references
    return str(unknown.variable.name)


def _dependencies(
    unknowns: Iterable[Unknown], variables: Sequence[Variable], names: Mapping[str, set[str]]
) -> tuple[dict[str, frozenset[str]], set[str]]:
    """Dependencies of outputs on inputs, and the outputs for which they are declared; the others depend on all inputs."""
    inputs = frozenset(v.name for v in variables if v.causality is Causality.INPUT)
    found = {v.name: inputs for v in variables if v.causality is Causality.OUTPUT}
    declared_for: set[str] = set()
    for unknown in unknowns:
        if unknown.dependencies is not None:
            for name in found.keys() & names[_name_of(unknown)]:
                found[name] = frozenset(v.name for v in unknown.dependencies) & inputs
                declared_for.add(name)
    return found, declared_for


def _dependency_kinds(
    unknowns: Iterable[Unknown],
    dependencies: Mapping[str, frozenset[str]],
    names: Mapping[str, set[str]],
) -> dict[str, dict[str, DependencyKind]]:
    """Kinds of the dependencies of outputs on inputs; a kind that FMI does not know is left aside."""
    known = {kind.value: kind for kind in DependencyKind}
    found: dict[str, dict[str, DependencyKind]] = {}
    for unknown in unknowns:
        # the two lists are of different length in some FMUs
        pairs = zip(unknown.dependencies or (), unknown.dependenciesKind or (), strict=False)
        kinds = {v.name: known[kind] for v, kind in pairs if kind in known}
        for name in dependencies.keys() & names[_name_of(unknown)]:
            if of_inputs := {i: k for i, k in kinds.items() if i in dependencies[name]}:
                found[name] = of_inputs
    return found


def _experiment(md: ModelDescription) -> DefaultExperiment:
    e = md.defaultExperiment
    if e is None:
        return DefaultExperiment()
    return DefaultExperiment(
        _float(e.startTime), _float(e.stopTime), _float(e.tolerance), _float(e.stepSize)
    )


def _unit(unit: Any) -> Unit:
    base = unit.baseUnit
    if base is None:
        return Unit(unit.name)
    exponents = (base.kg, base.m, base.s, base.A, base.K, base.mol, base.cd, base.rad)
    return Unit(unit.name, exponents, base.factor, base.offset)


def _variable(
    v: ModelVariable,
    kind: DataType,
    units: Mapping[str | None, Unit],
    unread: Mapping[str, VariableAttributes],
    by_reference: Mapping[int | None, str],
) -> Variable:
    declared = v.declaredType
    attributes = unread.get((v.alias or v).name, VariableAttributes())

    def attribute(name: str) -> Any:
        own = getattr(v, name)
        return own if own is not None or declared is None else getattr(declared, name)

    unit_name = attribute("unit")
    relative = attributes.relative_quantity
    if relative is None:
        relative = declared is not None and declared.relativeQuantity
    nominal = _float(attribute("nominal"))
    clocks: list[ModelVariable] = cast(Any, v.clocks) or []  # by their annotation, integers
    items = declared.items if declared is not None else []
    dimensions = tuple(
        d.start if d.start is not None else str(d.variable.name) for d in v.dimensions
    )
    return Variable(
        name=v.name,
        value_reference=v.valueReference,
        type=kind,
        causality=Causality(v.causality),
        variability=Variability(v.variability),
        initial=Initial(v.initial) if v.initial else None,
        start=_start(v, kind),
        dimensions=dimensions,
        shape=tuple(v.shape or ()),
        unit=units.get(unit_name, Unit(unit_name)) if unit_name else None,
        relative_quantity=kind.is_float and relative,
        nominal=abs(nominal) if nominal else 1.0,
        min=_float(attribute("min")) if kind.is_float else None,
        max=_float(attribute("max")) if kind.is_float else None,
        derivative_of=v.derivative.name if isinstance(v.derivative, ModelVariable) else None,
        enumeration={str(i.name): int(i.value) for i in items if i.value} or None,
        clocks=tuple(c.name for c in clocks),
        clock=attributes.clock,
        previous=by_reference.get(attributes.previous),
        # of an alias as well, this would ask for one variable twice
        intermediate_update=attributes.intermediate_update and v.alias is None,
        description=v.description or "",
    )


def _start(v: ModelVariable, kind: DataType) -> tuple[Any, ...] | None:
    if v.start is None:
        return None
    if kind is DataType.STRING or not v.dimensions:
        return (v.start,)
    return tuple(v.start.split())


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
