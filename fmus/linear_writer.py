"""Reference FMUs of linear systems with given matrices: the binary of LinearSystem with another description and data.

    write_fmu(path, LinearSystem(a=[[-1.0]], b=[[1.0]], c=[[1.0]]), template)

needs no compiler. See LinearSystem/readme.md.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from description import fmi2_description, xml_bytes
from linear_system import MOST, UNITS, LinearSystem

MODEL = "LinearSystem"
"""The model whose description and data are made here."""

DATA = "resources/system.f64"
"""Where the matrices are in the FMU: doubles, one after the other."""

REFERENCES = {"u": 1, "y": 101, "x": 201, "dx": 301, "microStep": 401}
"""Value references of the first of each, and of the parameter."""

_HIDDEN = {"states": 402, "inputs": 403, "outputs": 404}
_MATRICES = ("A", "B", "C", "D")
_FIRST_MATRIX = 411
_FIRST_VECTOR = 415


def write_fmu(path: Path, system: LinearSystem, template: Path) -> Path:
    """Write the FMU of a system; of the FMI version of `template`, the LinearSystem.fmu that build.py has made."""
    with zipfile.ZipFile(template) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in fmu_files(system, contents).items():
            archive.writestr(name, content)
    return path


def fmu_files(system: LinearSystem, template: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of the FMU of a system, by those of the template."""
    contents = dict(template)
    built = ET.fromstring(contents["modelDescription.xml"])
    root = description(system)
    root.set("instantiationToken", built.get("instantiationToken") or built.attrib["guid"])
    for name in ("generationTool", "version"):
        root.set(name, built.attrib[name])
    if built.attrib["fmiVersion"] == "2.0":
        sources = [f.attrib["name"] for f in built.iterfind("CoSimulation/SourceFiles/File")]
        root = fmi2_description(root, sources)
    return contents | {"modelDescription.xml": xml_bytes(root), DATA: data(system)}


def data(system: LinearSystem) -> bytes:
    """The content of the file that the binary reads."""
    s = system
    sizes = [len(s.states), len(s.inputs), len(s.outputs), s.micro_step]
    parts = (sizes, s.a, s.b, s.c, s.d, s.e, s.f, s.x0, s.u0)
    return np.concatenate([np.ravel(part).astype(float) for part in parts]).tobytes()


# Descriptions of FMI 3.0


def description(system: LinearSystem) -> ET.Element:
    """modelDescription.xml of FMI 3.0, with the dependencies that the matrices have."""
    variables: list[ET.Element] = []
    for k, (name, start) in enumerate(zip(system.inputs, system.u0, strict=True)):
        attributes = {
            "causality": "input",
            "intermediateUpdate": "true",
            "start": repr(float(start)),
        }
        variables.append(_variable(name, "u", k, f"Input {k + 1}", **attributes))
    for k, name in enumerate(system.outputs):
        attributes = {"causality": "output", "initial": "calculated"}
        variables.append(_variable(name, "y", k, f"Output {k + 1}", **attributes))
    for k, (name, start) in enumerate(zip(system.states, system.x0, strict=True)):
        attributes = {"causality": "local", "initial": "exact", "start": repr(float(start))}
        variables.append(_variable(name, "x", k, f"State {k + 1}", **attributes))
    for k, name in enumerate(system.states):
        attributes = {"causality": "local", "initial": "calculated"}
        attributes["derivative"] = str(REFERENCES["x"] + k)
        text = f"Time derivative of state {k + 1}"
        variables.append(_variable(f"der({name})", "dx", k, text, **attributes))
    for variable in variables:
        if variable.get("name") in system.units:
            variable.set("unit", system.units[variable.attrib["name"]])
    variables.append(_micro_step(system.micro_step))
    structure = ET.Element("ModelStructure")
    outputs = [("y", k, system.c[k], system.d[k]) for k in range(len(system.outputs))]
    derivatives = [("dx", k, system.a[k], system.b[k]) for k in range(len(system.states))]
    for tag, unknowns in (
        ("Output", outputs),
        ("ContinuousStateDerivative", derivatives),
        ("InitialUnknown", outputs + derivatives),
    ):
        structure.extend(_unknown(tag, *unknown) for unknown in unknowns)
    return _root(variables, structure)


def largest() -> ET.Element:
    """What the binary is made of: a description of all variables that any system can have, and of the matrices."""
    variables = []
    for kind, attributes in (
        ("u", {"causality": "input", "intermediateUpdate": "true", "start": _zeros(MOST)}),
        ("y", {"causality": "output", "initial": "calculated"}),
        ("x", {"causality": "local", "initial": "exact", "start": _zeros(MOST)}),
        ("dx", {"causality": "local", "initial": "calculated"}),
    ):
        element = _variable(kind, kind, 0, "All", **attributes)
        ET.SubElement(element, "Dimension", start=str(MOST))
        variables.append(element)
    variables.append(_micro_step(0.0))
    for name, reference in _HIDDEN.items():
        attributes = {
            "name": name,
            "valueReference": str(reference),
            "description": "",
            "start": "0",
        }
        variables.append(
            ET.Element("Int32", attributes, causality="parameter", variability="fixed")
        )
    sizes = {_FIRST_MATRIX + k: (name, MOST**2) for k, name in enumerate(_MATRICES)}
    sizes |= {_FIRST_VECTOR + k: (name, MOST) for k, name in enumerate(("e", "f"))}
    for reference, (name, size) in sizes.items():
        element = ET.Element(
            "Float64",
            name=name,
            valueReference=str(reference),
            description="",
            causality="parameter",
            variability="fixed",
            start=_zeros(size),
        )
        ET.SubElement(element, "Dimension", start=str(size))
        variables.append(element)
    return _root(variables, ET.Element("ModelStructure"))


def _zeros(count: int) -> str:
    return " ".join(["0"] * count)


def _variable(name: str, kind: str, number: int, text: str, **attributes: str) -> ET.Element:
    return ET.Element(
        "Float64",
        {
            "name": name,
            "valueReference": str(REFERENCES[kind] + number),
            "variability": "continuous",
            "description": text,
            **attributes,
        },
    )


def _micro_step(start: float) -> ET.Element:
    return ET.Element(
        "Float64",
        name="microStep",
        valueReference=str(REFERENCES["microStep"]),
        causality="parameter",
        variability="fixed",
        unit="s",
        start=repr(start),
        description="Length of the steps of Euler's method; 0: exact",
    )


def _unknown(
    tag: str, kind: str, row: int, of_states: Iterable[float], of_inputs: Iterable[float]
) -> ET.Element:
    known = [str(REFERENCES["u"] + k) for k, weight in enumerate(of_inputs) if weight]
    known += [str(REFERENCES["x"] + k) for k, weight in enumerate(of_states) if weight]
    return ET.Element(
        tag,
        valueReference=str(REFERENCES[kind] + row),
        dependencies=" ".join(known),
        dependenciesKind=" ".join(["constant"] * len(known)),
    )


_CAPABILITIES = (
    "canHandleVariableCommunicationStepSize",
    "canGetAndSetFMUState",
    "canSerializeFMUState",
    "providesDirectionalDerivatives",
    "providesIntermediateUpdate",
)
_LOG_CATEGORIES = {
    "logEvents": "Located events",
    **{
        f"logStatus{s}": f"Messages with the status {s}"
        for s in ("Warning", "Discard", "Error", "Fatal")
    },
}


def _root(variables: Sequence[ET.Element], structure: ET.Element) -> ET.Element:
    """A whole description around these."""
    attributes = {
        "fmiVersion": "3.0",
        "modelName": MODEL,
        "instantiationToken": "made by build.py",
        "description": "x' = A x + B u + e, y = C x + D u + f",
        "license": "BSD-2-Clause",
        "variableNamingConvention": "structured",
    }
    root = ET.Element("fmiModelDescription", attributes)
    ET.SubElement(
        root,
        "CoSimulation",
        {"modelIdentifier": MODEL, **dict.fromkeys(_CAPABILITIES, "true")},
    )
    definitions = ET.SubElement(root, "UnitDefinitions")
    used = {element.get("unit") for element in variables}
    for name, exponents in {"s": {"s": 1}, **UNITS}.items():
        if name in used:
            unit = ET.SubElement(definitions, "Unit", name=name)
            ET.SubElement(unit, "BaseUnit", {b: str(e) for b, e in exponents.items()})
    categories = ET.SubElement(root, "LogCategories")
    for name, text in _LOG_CATEGORIES.items():
        ET.SubElement(categories, "Category", name=name, description=text)
    ET.SubElement(root, "DefaultExperiment", startTime="0", stopTime="10", stepSize="0.1")
    container = ET.SubElement(root, "ModelVariables")
    ET.SubElement(
        container,
        "Float64",
        name="time",
        valueReference="0",
        causality="independent",
        variability="continuous",
        unit="s",
        description="Simulation time",
    )
    container.extend(variables)
    root.append(structure)
    return root
