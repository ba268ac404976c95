"""What build.py derives from a model's FMI 3.0 modelDescription.xml: FMI 2.0's, and C declarations.

The file of FMI 3.0 is the only one that is written by hand.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

C_TYPES = {
    "Float32": "float",
    "Float64": "double",
    "Int8": "int8_t",
    "UInt8": "uint8_t",
    "Int16": "int16_t",
    "UInt16": "uint16_t",
    "Int32": "int32_t",
    "UInt32": "uint32_t",
    "Int64": "int64_t",
    "UInt64": "uint64_t",
    "Boolean": "bool",
    "String": "fm_String",
    "Binary": "fm_Binary",
    "Enumeration": "int64_t",
}

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
        """The name in C: collision.z[1] is collision_z_1."""
        return re.sub(r"\W+", "_", self.name).strip("_")

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
        return self.element.get("intermediateUpdate") == "true"

    @property
    def settable(self) -> list[str]:
        """The modes in which it may be set."""
        causality = self.element.get("causality")
        is_known = causality in ("input", "parameter") or self.element.get("initial") == "exact"
        is_changing = causality == "input" or self.element.get("variability") == "tunable"
        modes = ["FM_INSTANTIATED", "FM_INITIALIZATION_MODE"] if is_known else []
        modes += ["FM_STEP_MODE"] if is_known and is_changing else []
        return modes + (["FM_INTERMEDIATE_UPDATE_MODE"] if self.is_interpolated else [])


def variables(description: ET.Element) -> list[Variable]:
    """All variables, in the order of the file."""
    return [Variable(element) for element in description.iterfind("ModelVariables/*")]


# FMI 2.0


def fmi2_description(description: ET.Element, source_files: Iterable[str]) -> ET.Element:
    """FMI 2.0's modelDescription.xml, without the variables that FMI 2.0 cannot express."""
    kept = [v for v in variables(description) if v.type in FMI2_TYPES and v.length == 1]
    index = {v.reference: str(number) for number, v in enumerate(kept, start=1)}
    root = ET.Element("fmiModelDescription", fmiVersion="2.0")
    for name in ("modelName", "description", "license", "variableNamingConvention"):
        root.set(name, description.attrib[name])
    root.set("guid", description.attrib["instantiationToken"])
    root.append(_co_simulation(_child(description, "CoSimulation"), source_files))
    root.append(_child(description, "UnitDefinitions"))
    types = description.find("TypeDefinitions")
    if types is not None:
        root.append(_type_definitions(types))
    root.append(_child(description, "LogCategories"))
    root.append(_child(description, "DefaultExperiment"))
    container = ET.SubElement(root, "ModelVariables")
    container.extend(_scalar_variable(v, index) for v in kept)
    root.append(_model_structure(description, kept, index))
    return root


def _child(parent: ET.Element, name: str) -> ET.Element:
    child = parent.find(name)
    if child is None:
        raise SystemExit(f"modelDescription.xml has no element {name}, which build.py needs.")
    return child


def _co_simulation(fmi3: ET.Element, source_files: Iterable[str]) -> ET.Element:
    fmi2 = ET.Element("CoSimulation", modelIdentifier=fmi3.attrib["modelIdentifier"])
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
    parameters = {v.reference for v in kept if v.element.get("causality") == "parameter"}
    structure = ET.Element("ModelStructure")
    for name2, name3, known in (
        ("Outputs", "Output", index.keys() - parameters),  # parameters are no knowns of these
        ("Derivatives", "ContinuousStateDerivative", index.keys() - parameters),
        ("InitialUnknowns", "InitialUnknown", index.keys()),
    ):
        unknowns = [
            _unknown(unknown, index, known)
            for unknown in description.iterfind(f"ModelStructure/{name3}")
            if int(unknown.attrib["valueReference"]) in index
        ]
        if unknowns:
            ET.SubElement(structure, name2).extend(
                sorted(unknowns, key=lambda unknown: int(unknown.attrib["index"]))
            )
    return structure


def _unknown(fmi3: ET.Element, index: dict[int, str], known: Iterable[int]) -> ET.Element:
    references = map(int, fmi3.attrib["dependencies"].split())
    kinds = fmi3.attrib["dependenciesKind"].split()
    pairs = [(index[r], kind) for r, kind in zip(references, kinds, strict=True) if r in known]
    return ET.Element(
        "Unknown",
        index=index[int(fmi3.attrib["valueReference"])],
        dependencies=" ".join(number for number, _ in pairs),
        dependenciesKind=" ".join(kind for _, kind in pairs),
    )


# C


def c_header(description: ET.Element) -> str:
    """variables.h: facts of the FMU, struct Variables, and the value references."""
    co_simulation = _child(description, "CoSimulation")

    def flag(name: str) -> str:
        return "1" if co_simulation.get(name) == "true" else "0"

    members = [f"    {_declaration(v)};" for v in variables(description)]
    members += [
        f"    double {v.member}_slope;   /* time derivative of {v.member} in the next step */"
        for v in variables(description)
        if v.is_interpolated
    ]
    references = [f"    VR_{v.member} = {v.reference}," for v in variables(description)]
    return "\n".join(
        [
            "/* Made by build.py from modelDescription.xml; included by model.h. */",
            f'#define FM_MODEL_IDENTIFIER "{co_simulation.attrib["modelIdentifier"]}"',
            f'#define FM_INSTANTIATION_TOKEN "{description.attrib["instantiationToken"]}"',
            f"#define FM_CAN_GET_AND_SET_FMU_STATE {flag('canGetAndSetFMUState')}",
            f"#define FM_PROVIDES_DIRECTIONAL_DERIVATIVES {flag('providesDirectionalDerivatives')}",
            "",
            "typedef struct {",
            *members,
            "} Variables;",
            "",
            "enum {",
            *references,
            "};",
            "",
        ]
    )


def c_source(description: ET.Element) -> str:
    """variables.c: the table of the variables and their start values."""
    ordered = sorted(variables(description), key=lambda v: v.reference)
    starts = [f"    .{v.member} = {_c_start(v)}," for v in ordered if v.start is not None]
    return "\n".join(
        [
            "/* Made by build.py from modelDescription.xml. */",
            '#include "instance.h"',
            "",
            "const Variables fm_start_values = {",
            *starts,
            "};",
            "",
            "const fm_Variable fm_variables[] = {",
            *(f"    {_c_row(v)}," for v in ordered),
            "};",
            "",
            "const size_t fm_variable_count = sizeof fm_variables / sizeof *fm_variables;",
            "",
        ]
    )


def _declaration(variable: Variable) -> str:
    array = f"[{variable.length}]" if variable.length > 1 else ""
    return f"{C_TYPES[variable.type]} {variable.member}{array}"


def _c_start(variable: Variable) -> str:
    start = variable.start or ""
    if variable.type == "String":
        return '{"' + re.sub(r'(["\\])', r"\\\1", start) + '"}'
    if variable.type == "Binary":
        values = bytes.fromhex(start)
        return f"{{{len(values)}, {{{', '.join(map(str, values))}}}}}"
    return f"{{{', '.join(start.split())}}}" if variable.length > 1 else start


def _c_row(variable: Variable) -> str:
    slope = f"offsetof(Variables, {variable.member}_slope)" if variable.is_interpolated else "0"
    settable = " | ".join(variable.settable) or "0"
    return (
        f"{{{variable.reference}, FM_{variable.type.upper()}, {settable}, {variable.length}, "
        f'offsetof(Variables, {variable.member}), {slope}, "{variable.name}"}}'
    )
