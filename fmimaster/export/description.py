"""The model description of an exported system, for FMI 2.0 and FMI 3.0."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.installation import installed_version
from fmimaster.export.exposed import Exposed, ExposedVariables
from fmimaster.system.declarations import Experiment
from fmimaster.system.model import (
    BASE_UNITS,
    Causality,
    DataType,
    Unit,
    Variable,
)

_CATEGORIES = (
    "logStatusWarning",
    "logStatusDiscard",
    "logStatusError",
    "logStatusFatal",
    "logEvents",
)
"""Log categories that an exported system has besides those of its components."""

_NAMES_OF_FMI2 = {DataType.BOOLEAN: "Boolean", DataType.STRING: "String"}

_LARGEST = 2**53
"""Integers below it are what a double says."""


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """What a model description says beside variables."""

    name: str
    description: str
    identifier: str
    token: str
    experiment: Experiment
    """With the internal step size."""
    can_save: bool
    """Whether all components can get and set their states."""
    can_serialize: bool
    once_per_process: bool
    needs_tool: bool


def model_description(interface: ExposedVariables, facts: SystemFacts, fmi_version: int) -> bytes:
    """modelDescription.xml."""
    write = _Fmi2(interface, facts) if fmi_version == 2 else _Fmi3(interface, facts)
    root = write.root()
    ET.indent(root)
    return b"%s\n" % ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _attributes(**values: Any) -> dict[str, str]:
    """As XML has them; what is None is left out."""
    return {name: text(value) for name, value in values.items() if value is not None}


def text(value: Any) -> str:
    """A value as XML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "INF" if value > 0 else "-INF"
    return repr(value) if isinstance(value, float) else str(value)


class _Description:
    """What both versions share."""

    version = ""
    token = ""
    """Name of the attribute that has the token."""

    def __init__(self, interface: ExposedVariables, facts: SystemFacts) -> None:
        self.interface, self.facts = interface, facts
        self.units = _named(e.variable.unit for e in interface.every if e.variable.unit)
        self.types = _enumerations(interface.every)

    def root(self) -> ET.Element:
        """The whole document."""
        facts, experiment = self.facts, self.facts.experiment
        root = ET.Element(
            "fmiModelDescription",
            _attributes(
                fmiVersion=self.version,
                modelName=facts.name,
                description=facts.description or None,
                generationTool=f"fmimaster {installed_version()}",
            ),
        )
        self.add_interface(root)
        if self.units:
            units = ET.SubElement(root, "UnitDefinitions")
            for unit, name in self.units.items():
                self._add_unit(units, name, unit)
        if self.types:
            self.add_types(ET.SubElement(root, "TypeDefinitions"))
        categories = ET.SubElement(root, "LogCategories")
        models = (planned.model for planned in self.interface.prepared.plan.instances)
        own = sorted({name for model in models for name in model.log_categories})
        for name in dict.fromkeys((*_CATEGORIES, *own)):
            ET.SubElement(categories, "Category", name=name)
        ET.SubElement(
            root,
            "DefaultExperiment",
            _attributes(
                startTime=experiment.start_time,
                stopTime=experiment.stop_time,
                tolerance=experiment.tolerance,
                stepSize=experiment.step_size,
            ),
        )
        variables = ET.SubElement(root, "ModelVariables")
        for k, exposed in enumerate(self.interface.every):
            self.add_variable(variables, k, exposed)
        self.add_structure(root, variables)
        return root

    def add_interface(self, root: ET.Element) -> None:
        """The element of Co-Simulation."""
        facts = self.facts
        root.set(self.token, facts.token)
        root.set("variableNamingConvention", "flat")
        shared = _attributes(
            modelIdentifier=facts.identifier,
            needsExecutionTool=facts.needs_tool,
            canHandleVariableCommunicationStepSize=False,
            canBeInstantiatedOnlyOncePerProcess=facts.once_per_process,
            **self.capabilities(),
        )
        ET.SubElement(root, "CoSimulation", shared)

    def capabilities(self) -> dict[str, Any]:
        """Attributes of this element that the versions name differently."""
        raise NotImplementedError

    @staticmethod
    def of_variable(k: int, v: Variable) -> dict[str, Any]:
        """Attributes of the element of a variable that both versions have."""
        is_input = v.causality is Causality.INPUT
        return {
            "name": v.name,
            "valueReference": k,
            "description": v.description or None,
            "causality": v.causality.value,
            "variability": v.variability.value,
            "initial": None if is_input or v.initial is None else v.initial.value,
        }

    def add_types(self, holder: ET.Element) -> None:
        """The types of enumerations."""
        raise NotImplementedError

    def add_variable(self, holder: ET.Element, k: int, exposed: Exposed) -> None:
        """The variable with this value reference."""
        raise NotImplementedError

    def add_structure(self, root: ET.Element, variables: ET.Element) -> None:
        """ModelStructure."""
        raise NotImplementedError

    def _add_unit(self, holder: ET.Element, name: str, unit: Unit) -> None:
        element = ET.SubElement(holder, "Unit", name=name)
        if unit.exponents is not None:
            powers = zip(BASE_UNITS, unit.exponents, strict=True)
            base = _attributes(
                **{name: power for name, power in powers if power},
                factor=None if unit.factor == 1.0 else unit.factor,
                offset=None if unit.offset == 0.0 else unit.offset,
            )
            ET.SubElement(element, "BaseUnit", base)

    def derivative_of(self, exposed: Exposed) -> int | None:
        """The value reference of the variable whose derivative it is; None if there is none."""
        name = exposed.variable.derivative_of
        return self.interface.by_key.get((exposed.component, name)) if name else None

    def of_type(self, exposed: Exposed) -> dict[str, Any]:
        """What the type of a variable has: its unit, its limits, its enumeration."""
        v = exposed.variable
        found: dict[str, Any] = {}
        if (of := self.types.get(_items(v))) is not None:
            return {"declaredType": of}
        if v.type.is_float:
            found["unit"] = None if v.unit is None else self.units[v.unit]
            found["relativeQuantity"] = v.relative_quantity or None
            found["nominal"] = v.nominal if v.has_nominal else None
        if v.type.is_float or v.type.is_integer:
            found["min"], found["max"] = _limit(v, v.min), _limit(v, v.max)
        return found


def _limit(variable: Variable, limit: float | None) -> float | int | None:
    if limit is None or not isfinite(limit):
        return None
    if variable.type.is_float:
        return float(limit)
    return int(limit) if abs(limit) < _LARGEST else None


def _named(units: Iterable[Unit]) -> Mapping[Unit, str]:
    """Unit → its name; one that has the name of another unit gets a number."""
    found: dict[Unit, str] = {}
    for unit in units:
        if unit not in found:
            name, k = unit.name, 1
            while name in found.values():
                k += 1
                name = f"{unit.name} ({k})"
            found[unit] = name
    return found


_Items = tuple[tuple[str, int], ...]


def _items(variable: Variable) -> _Items:
    return () if variable.enumeration is None else tuple(variable.enumeration.items())


def _enumerations(every: Sequence[Exposed]) -> Mapping[_Items, str]:
    """Items → the name of the type."""
    taken = {e.variable.name for e in every}
    found: dict[_Items, str] = {}
    for items in dict.fromkeys(_items(e.variable) for e in every):
        if items:
            name = f"Enumeration{len(found) + 1}"
            while name in taken:
                name += "_"
            found[items] = name
    return found


class _Fmi2(_Description):
    version = "2.0"

    token = "guid"

    def capabilities(self) -> dict[str, Any]:
        return {
            "canNotUseMemoryManagementFunctions": True,
            "canGetAndSetFMUstate": self.facts.can_save,
            "canSerializeFMUstate": self.facts.can_serialize,
        }

    def add_types(self, holder: ET.Element) -> None:
        for items, name in self.types.items():
            kind = ET.SubElement(ET.SubElement(holder, "SimpleType", name=name), "Enumeration")
            for item, value in items:
                ET.SubElement(kind, "Item", name=item, value=str(value))

    def add_variable(self, holder: ET.Element, k: int, exposed: Exposed) -> None:
        v = exposed.variable
        variable = ET.SubElement(
            holder,
            "ScalarVariable",
            _attributes(
                **self.of_variable(k, v),
            ),
        )
        is_enumeration = _items(v) in self.types
        kind = "Real" if v.type.is_float else "Enumeration" if is_enumeration else "Integer"
        of = self.derivative_of(exposed)
        has_derivative = of is not None and v.type.is_float
        ET.SubElement(
            variable,
            _NAMES_OF_FMI2.get(v.type, kind),
            _attributes(
                **self.of_type(exposed),
                derivative=of + 1 if has_derivative and of is not None else None,
                start=None if exposed.start is None else exposed.start[0],
            ),
        )

    def add_structure(self, root: ET.Element, variables: ET.Element) -> None:
        structure = ET.SubElement(root, "ModelStructure")
        for name, unknowns in (
            ("Outputs", self.interface.feedthrough),
            ("InitialUnknowns", self.interface.initial),
        ):
            if unknowns:
                holder = ET.SubElement(structure, name)
                for k, knowns in sorted(unknowns.items()):
                    known = " ".join(str(n + 1) for n in knowns)
                    ET.SubElement(holder, "Unknown", index=str(k + 1), dependencies=known)


class _Fmi3(_Description):
    version = "3.0"

    token = "instantiationToken"

    def capabilities(self) -> dict[str, Any]:
        return {
            "canGetAndSetFMUState": self.facts.can_save,
            "canSerializeFMUState": self.facts.can_serialize,
            "fixedInternalStepSize": self.facts.experiment.step_size,
        }

    def add_types(self, holder: ET.Element) -> None:
        for items, name in self.types.items():
            kind = ET.SubElement(holder, "EnumerationType", name=name)
            for item, value in items:
                ET.SubElement(kind, "Item", name=item, value=str(value))

    def add_variable(self, holder: ET.Element, k: int, exposed: Exposed) -> None:
        v, start = exposed.variable, exposed.start
        is_enumeration = _items(v) in self.types
        is_text = v.type is DataType.STRING
        variable = ET.SubElement(
            holder,
            "Enumeration" if is_enumeration else v.type.value,
            _attributes(
                **self.of_variable(k, v),
                **self.of_type(exposed),
                derivative=self.derivative_of(exposed) if v.type.is_float else None,
                start=None if start is None or is_text else " ".join(map(text, start)),
            ),
        )
        for size in v.shape:
            ET.SubElement(variable, "Dimension", start=str(size))
        if is_text and start is not None:
            for value in start:
                ET.SubElement(variable, "Start", value=text(value))

    def add_structure(self, root: ET.Element, variables: ET.Element) -> None:
        names = {e.variable.name for e in self.interface.every}
        time = "time"
        while time in names:
            time += "_"
        number = str(len(self.interface.every))
        independent = _attributes(
            name=time, valueReference=number, causality="independent", variability="continuous"
        )
        ET.SubElement(variables, "Float64", independent)
        structure = ET.SubElement(root, "ModelStructure")
        for name, unknowns in (
            ("Output", self.interface.feedthrough),
            ("InitialUnknown", self.interface.initial),
        ):
            for k, knowns in sorted(unknowns.items()):
                known = " ".join(map(str, knowns))
                ET.SubElement(structure, name, valueReference=str(k), dependencies=known)
