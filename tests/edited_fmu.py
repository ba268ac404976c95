"""Copies of FMUs with other capabilities, other attributes of variables, or other dependencies.

    edited_fmu(reference_path("fmi2/FourUnitsS1.fmu"), folder / "a.fmu", capabilities={"canGetAndSetFMUState": None})

Names are those of FMI 3.0, for FMUs of FMI 2.0 too. The binary is the same.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from command_line import changed
from description import CAPABILITIES

Attributes = Mapping[str, str | None]
"""Attribute → value, None to remove it."""

_OF_TYPE = ("nominal", "start", "min", "max", "unit")
"""FMI 2.0 has these at the element of the type."""


def edited_fmu(
    source: Path,
    target: Path,
    *,
    capabilities: Attributes | None = None,
    variables: Mapping[str, Attributes] | None = None,
    unknowns: Mapping[str, Attributes] | None = None,
) -> Path:
    """Write the copy.

    Parameters
    ----------
    capabilities
        Of the element CoSimulation.
    variables
        Name → attributes of the variable.
    unknowns
        Name → attributes of its entries in ModelStructure, such as ``{"dependencies": None, "dependenciesKind": None}``.
        Their values are those of the version: names of known variables become value references or indices.
    """

    def edit(text: str) -> str:
        root = ET.fromstring(text)
        is_fmi2 = root.attrib["fmiVersion"].startswith("2")
        of_name = {v.attrib["name"]: v for v in root.iterfind("ModelVariables/*")}
        keys = {
            name: str(k) if is_fmi2 else v.attrib["valueReference"]
            for k, (name, v) in enumerate(of_name.items(), start=1)
        }
        [co_simulation] = root.iterfind("CoSimulation")
        for name, value in (capabilities or {}).items():
            _put(co_simulation, CAPABILITIES.get(name, name) if is_fmi2 else name, value)
        for name, attributes in (variables or {}).items():
            for attribute, value in attributes.items():
                of_type = is_fmi2 and attribute in _OF_TYPE
                _put(of_name[name][0] if of_type else of_name[name], attribute, value)
        key = "index" if is_fmi2 else "valueReference"
        for name, attributes in (unknowns or {}).items():
            for entry in root.iterfind("ModelStructure//*"):
                if entry.get(key) == keys[name]:
                    for attribute, value in attributes.items():
                        if attribute == "dependencies" and value is not None:
                            value = " ".join(keys[known] for known in value.split())
                        _put(entry, attribute, value)
        return ET.tostring(root, encoding="unicode", xml_declaration=True)

    return changed(source, target, description=edit)


def _put(element: ET.Element, name: str, value: str | None) -> None:
    if value is None:
        element.attrib.pop(name, None)
    else:
        element.set(name, value)
