"""What build.py derives from a model's FMI 3.0 modelDescription.xml: that of FMI 2.0, and facts for c_code.py.

The file of FMI 3.0 is the only one that is written by hand, with fmi-ls-manifest.xml for a model with events.

FMI 2.0 has neither arrays nor clocks. An array that is followed by as many value references that are not in use becomes
scalars; another one is left out. A Clock becomes an Integer that counts.
"""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

# FMI 2.0 has no other types, and no arrays.
FMI2_TYPES = {
    "Float64": "Real",
    "Int32": "Integer",
    "Boolean": "Boolean",
    "String": "String",
    "Enumeration": "Enumeration",
}

# FMI 2.0 attributes of a ScalarVariable; the other ones belong to the element of its type.
SCALAR_VARIABLE = ("name", "valueReference", "description", "causality", "variability", "initial")
TYPE_ATTRIBUTES = ("declaredType", "quantity", "unit", "displayUnit", "min", "max", "nominal")

RESET_ANNOTATION = "org.fmimaster.reset"
"""Type of the annotation of a state that events change: for build.py, and not in the FMU."""

DERIVATIVES_ANNOTATION = "org.fmimaster.inputDerivatives"
"""Type of the annotation of an input that can be a polynomial of a higher degree than 1: for build.py, likewise."""

INPUT_DERIVATIVES = 3
"""Derivatives that such an input takes in FMI 2.0."""

# Both attributes say that an input need not be constant over a step.
CAPABILITIES = {
    "canHandleVariableCommunicationStepSize": "canHandleVariableCommunicationStepSize",
    "canGetAndSetFMUState": "canGetAndSetFMUstate",
    "canSerializeFMUState": "canSerializeFMUstate",
    "providesDirectionalDerivatives": "providesDirectionalDerivative",
    "providesIntermediateUpdate": "canInterpolateInputs",
}


@dataclass(frozen=True)
class Variable:
    """One variable of a modelDescription.xml."""

    element: ET.Element

    @property
    def type(self) -> str:
        return self.element.tag

    @property
    def name(self) -> str:
        return self.element.attrib["name"]

    @property
    def reference(self) -> int:
        return int(self.element.attrib["valueReference"])

    @property
    def member(self) -> str:
        return c_name(self.name)

    @property
    def length(self) -> int:
        """Number of elements of a vector, 1 for a scalar."""
        dimension = self.element.find("Dimension")
        return 1 if dimension is None else int(dimension.attrib["start"])

    @property
    def start(self) -> str | None:
        element = self.element.find("Start")
        return self.element.get("start") if element is None else element.attrib["value"]

    @property
    def is_interpolated(self) -> bool:
        """An input that is set inside of steps."""
        return self.causality == "input" and self.is_intermediate

    @property
    def is_intermediate(self) -> bool:
        """It takes part in intermediate updates: an input is set there, an output is read."""
        return self.element.get("intermediateUpdate") == "true"

    @property
    def settable(self) -> list[str]:
        """The modes in which it may be set, if no Event Mode is used."""
        is_known = (
            self.causality in ("input", "parameter") or self.element.get("initial") == "exact"
        )
        modes = ["FM_INSTANTIATED", "FM_INITIALIZATION_MODE"] if is_known else []
        modes += ["FM_STEP_MODE"] if self.is_changing else []
        return modes + (["FM_INTERMEDIATE_UPDATE_MODE"] if self.is_interpolated else [])

    @property
    def causality(self) -> str:
        return self.element.get("causality", "local")

    @property
    def variability(self) -> str:
        return self.element.get("variability", "continuous")

    @property
    def is_changing(self) -> bool:
        """The importer may set it between steps."""
        return self.causality == "input" or self.variability == "tunable"

    @property
    def is_reset(self) -> bool:
        """It is a state that events change."""
        return self._has_annotation(RESET_ANNOTATION)

    @property
    def derivatives(self) -> int:
        """How many derivatives of it FMI 2.0 can set."""
        if not self.is_interpolated:
            return 0
        return INPUT_DERIVATIVES if self._has_annotation(DERIVATIVES_ANNOTATION) else 1

    def _has_annotation(self, type_: str) -> bool:
        annotations = self.element.iterfind("Annotations/Annotation")
        return any(a.get("type") == type_ for a in annotations)

    @property
    def clocks(self) -> tuple[int, ...]:
        """Value references of the clocks of a clocked variable."""
        return tuple(map(int, self.element.get("clocks", "").split()))

    @property
    def ticks(self) -> list[str]:
        """How a time-based clock ticks, see instance.h; empty for all others."""
        kind = self.element.get("intervalVariability", "triggered")
        if self.type != "Clock" or kind == "triggered":
            return []
        is_periodic = kind in ("constant", "fixed", "tunable")
        bits = ["FM_PERIODIC" if is_periodic else f"FM_{kind.upper()}"]
        if "intervalDecimal" in self.element.attrib:
            bits += ["FM_SET_AT_START"] if kind in ("fixed", "tunable") else []
            bits += ["FM_SET_AT_EVENTS"] if kind == "tunable" else []
        return bits + ["FM_BY_FRACTION"] * (self.element.get("supportsFraction") == "true")

    @property
    def interval(self) -> tuple[Fraction, Fraction] | None:
        """Interval and shift of a clock in s, if they are declared."""
        interval = self.element.get("intervalDecimal")
        if not interval:
            return None
        return Fraction(interval), Fraction(self.element.get("shiftDecimal", "0"))

    @property
    def role(self) -> str:
        """What setting it means, see instance.h."""
        if self.causality != "input":
            return "FM_OTHER"
        if self.type == "Clock":
            return "FM_TRIGGER"
        return "FM_SIGNAL" if self.variability == "continuous" else "FM_OTHER"


def variables(description: ET.Element) -> list[Variable]:
    """All variables, in the order of the file."""
    return [Variable(element) for element in description.iterfind("ModelVariables/*")]


@dataclass(frozen=True)
class Event:
    """One event of fmi-ls-manifest.xml; the variables as they are called in C, "" for none."""

    name: str
    is_shared: bool
    announce: str
    trigger: str
    payload: tuple[str, ...]


def events(manifest: ET.Element | None) -> list[Event]:
    """The events of a model, in the order of its manifest."""

    def member(name: str | None) -> str:
        return "" if name is None else c_name(name)

    found = []
    for event in () if manifest is None else manifest.iterfind("Event"):
        found.append(
            Event(
                event.attrib["name"],
                event.attrib["scope"] == "shared",
                member(event.get("announce")),
                member(event.get("trigger")),
                tuple(c_name(payload.attrib["input"]) for payload in event.iterfind("Payload")),
            )
        )
    return found


def c_name(name: str) -> str:
    """The name in C: collision.z[1] is collision_z_1."""
    return re.sub(r"\W+", "_", name).strip("_")


def xml_bytes(root: ET.Element) -> bytes:
    """The file of an element, indented."""
    root = copy.deepcopy(root)  # indent() changes its argument
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


# FMI 3.0


def fmi3_description(description: ET.Element) -> ET.Element:
    """FMI 3.0's modelDescription.xml as it is in the FMU: without what is written for build.py."""
    result = copy.deepcopy(description)
    for variable in result.iterfind("ModelVariables/*"):
        for hints in variable.findall("Annotations"):
            variable.remove(hints)
    return result


# FMI 2.0


def fmi2_description(
    description: ET.Element, source_files: Iterable[str], manifest_paths: Iterable[str] = ()
) -> ET.Element:
    """FMI 2.0's modelDescription.xml, without the variables that FMI 2.0 cannot express.

    `manifest_paths` are where in the FMU the manifests of its layered standards are.
    """
    kept = [v for v in fmi2_variables(description) if v.type in FMI2_TYPES and v.length == 1]
    index = {v.reference: str(number) for number, v in enumerate(kept, start=1)}
    root = ET.Element("fmiModelDescription", fmiVersion="2.0")
    for name in (
        *("modelName", "description", "version", "license", "generationTool"),
        "variableNamingConvention",
    ):
        root.set(name, description.attrib[name])
    root.set("guid", description.attrib["instantiationToken"])
    if has_model_exchange(description):
        count = len(description.findall("ModelStructure/EventIndicator"))
        root.set("numberOfEventIndicators", str(count))
    for element in description.iterfind("ModelExchange"):
        root.append(_interface(element, source_files))
    root.append(_interface(child(description, "CoSimulation"), source_files))
    root.append(child(description, "UnitDefinitions"))
    types = description.find("TypeDefinitions")
    if types is not None:
        root.append(_type_definitions(types))
    root.append(child(description, "LogCategories"))
    root.append(child(description, "DefaultExperiment"))
    paths = sorted(manifest_paths)
    annotations = ET.SubElement(root, "VendorAnnotations") if paths else root
    for path in paths:
        tool = ET.SubElement(annotations, "Tool", name=path.split("/")[1])
        ET.SubElement(tool, "Manifest", path=path)
    container = ET.SubElement(root, "ModelVariables")
    container.extend(_scalar_variable(v, index) for v in kept)
    root.append(_model_structure(description, kept, index))
    return root


def fmi2_variables(description: ET.Element) -> list[Variable]:
    """All variables with clocks as counters and arrays as scalars, where there are references for them."""
    taken = {v.reference for v in variables(description)}
    result = []
    for v in variables(description):
        if v.type == "Clock":
            result.append(_counter(v))
        elif v.length > 1 and taken.isdisjoint(range(v.reference + 1, v.reference + v.length)):
            result.extend(_elements(v))
        else:
            result.append(v)
    return result


def _counter(clock: Variable) -> Variable:
    """An Integer that counts, in place of a clock."""
    names = ("name", "valueReference", "description", "causality")
    attributes = {name: clock.element.attrib[name] for name in names}
    element = ET.Element("Int32", attributes, variability="discrete", start="0")
    if clock.causality == "output":
        element.set("initial", "exact")
    return Variable(element)


def _elements(array: Variable) -> list[Variable]:
    """One scalar for each element: name[0], name[1], ..."""
    starts = (array.start or "").split()
    scalars = []
    for i in range(array.length):
        element = copy.deepcopy(array.element)
        for child in list(element):
            element.remove(child)
        element.set("name", f"{array.name}[{i}]")
        element.set("valueReference", str(array.reference + i))
        element.set("description", f"{array.element.attrib['description']}: element {i}")
        if starts:
            element.set("start", starts[i])
        scalars.append(Variable(element))
    return scalars


def child(parent: ET.Element, name: str) -> ET.Element:
    child = parent.find(name)
    if child is None:
        raise SystemExit(f"modelDescription.xml has no element {name}, which build.py needs.")
    return child


def main_interface(description: ET.Element) -> ET.Element:
    """The element of the interface that each model has: Co-Simulation, or Scheduled Execution alone."""
    scheduled = description.find("ScheduledExecution")
    return child(description, "CoSimulation") if scheduled is None else scheduled


def has_model_exchange(description: ET.Element) -> bool:
    """Whether the FMU has this interface too."""
    return description.find("ModelExchange") is not None


def _interface(fmi3: ET.Element, source_files: Iterable[str]) -> ET.Element:
    fmi2 = ET.Element(fmi3.tag, modelIdentifier=fmi3.attrib["modelIdentifier"])
    for name3, name2 in CAPABILITIES.items():
        if name3 in fmi3.attrib:
            fmi2.set(name2, fmi3.attrib[name3])
    fmi2.set("canNotUseMemoryManagementFunctions", "true")
    files = ET.SubElement(fmi2, "SourceFiles")
    for name in source_files:
        ET.SubElement(files, "File", name=name)
    return fmi2


def _type_definitions(fmi3: ET.Element) -> ET.Element:
    fmi2 = ET.Element("TypeDefinitions")
    for enumeration in fmi3.iterfind("EnumerationType"):
        simple = ET.SubElement(fmi2, "SimpleType", name=enumeration.attrib["name"])
        ET.SubElement(simple, "Enumeration").extend(enumeration.iterfind("Item"))
    return fmi2


def _scalar_variable(variable: Variable, index: dict[int, str]) -> ET.Element:
    attributes = variable.element.attrib
    common = {name: attributes[name] for name in SCALAR_VARIABLE if name in attributes}
    scalar = ET.Element("ScalarVariable", common)
    special = {name: attributes[name] for name in TYPE_ATTRIBUTES if name in attributes}
    typed = ET.SubElement(scalar, FMI2_TYPES[variable.type], special)
    if variable.start is not None:
        typed.set("start", variable.start)
    if "derivative" in attributes:
        typed.set("derivative", index[int(attributes["derivative"])])
    return scalar


def _model_structure(
    description: ET.Element, kept: Sequence[Variable], index: dict[int, str]
) -> ET.Element:
    parameters = {v.reference for v in kept if v.causality == "parameter"}
    lengths = {v.reference: v.length for v in variables(description)}
    clocks = {
        v.reference for v in variables(description) if v.type == "Clock"
    }  # counters start at 0
    resets = _Resets.of(description)
    left_out: set[int] = set()
    lists = [
        ("Outputs", "Output", index.keys() - parameters),  # parameters are no knowns of these
        ("Derivatives", "ContinuousStateDerivative", index.keys() - parameters),
        ("InitialUnknowns", "InitialUnknown", index.keys()),
    ]
    if not (_provides_directional_derivatives(description) or has_model_exchange(description)):
        # states are knowns of directional derivatives only, and nothing else needs derivatives
        derivatives = state_derivatives(description)
        states = {int(v.element.attrib["derivative"]) for v in derivatives}
        lists[:2] = [("Outputs", "Output", index.keys() - parameters - states)]
        shown = {v.reference for v in kept if v.causality == "output"}
        left_out = (states | {v.reference for v in derivatives}) - shown
    structure = ET.Element("ModelStructure")
    for name2, name3, known in lists:
        unknowns = [
            _unknown(unknown, index, known, lengths, None if known == index.keys() else resets)
            for unknown in description.iterfind(f"ModelStructure/{name3}")
            if int(unknown.attrib["valueReference"]) in index
            and not (
                name2 == "InitialUnknowns"
                and int(unknown.attrib["valueReference"]) in clocks | left_out
            )
        ]
        for unknown in unknowns if name2 == "Outputs" else ():
            if unknown.attrib["index"] in {index[c] for c in clocks & index.keys()}:
                # a counter changes in steps only, and not when something is set
                unknown.attrib.update(dependencies="", dependenciesKind="")
        if unknowns:
            ET.SubElement(structure, name2).extend(
                sorted(unknowns, key=lambda unknown: int(unknown.attrib["index"]))
            )
    return structure


def _provides_directional_derivatives(description: ET.Element) -> bool:
    return child(description, "CoSimulation").get("providesDirectionalDerivatives") == "true"


def state_derivatives(description: ET.Element) -> list[Variable]:
    """The time derivatives of the continuous states, in the order of ModelStructure."""
    of = {v.reference: v for v in variables(description)}
    unknowns = description.iterfind("ModelStructure/ContinuousStateDerivative")
    return [of[int(unknown.attrib["valueReference"])] for unknown in unknowns]


@dataclass(frozen=True)
class _Resets:
    """States that events change, and what lets the events happen: in FMI 2.0 outputs show it at once."""

    states: frozenset[int]
    causes: tuple[int, ...]

    @classmethod
    def of(cls, description: ET.Element) -> _Resets:
        all_variables = variables(description)
        triggers = {v.reference for v in all_variables if v.role == "FM_TRIGGER"}
        causes = [
            v.reference
            for v in all_variables
            if v.reference in triggers or not triggers.isdisjoint(v.clocks)
        ]
        return cls(frozenset(v.reference for v in all_variables if v.is_reset), tuple(causes))


def _unknown(
    fmi3: ET.Element,
    index: dict[int, str],
    known: Iterable[int],
    lengths: dict[int, int],
    resets: _Resets | None,
) -> ET.Element:
    references = list(map(int, fmi3.attrib["dependencies"].split()))
    kinds = fmi3.attrib["dependenciesKind"].split()
    elements = [
        (reference + i, kind)
        for reference, kind in zip(references, kinds, strict=True)
        for i in range(lengths[reference])
    ]
    if resets is not None and not resets.states.isdisjoint(references):
        elements = [(r, "dependent" if r in resets.states else kind) for r, kind in elements]
        elements += [(cause, "dependent") for cause in resets.causes]
    pairs = [(index[r], kind) for r, kind in elements if r in known]
    return ET.Element(
        "Unknown",
        index=index[int(fmi3.attrib["valueReference"])],
        dependencies=" ".join(number for number, _ in pairs),
        dependenciesKind=" ".join(kind for _, kind in pairs),
    )
