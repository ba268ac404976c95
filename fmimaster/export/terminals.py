"""The terminals of an exported system: those of its components whose variables it has."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from fmimaster.export.exposed import ExposedVariables
from fmimaster.fmu.description.terminals import Terminal, read_terminals
from fmimaster.fmu.load import Loader
from fmimaster.fmu.manifest import UnpackedFmu

_PLAIN = ("signal", "inflow", "outflow")


def terminals_of(interface: ExposedVariables, loader: Loader, fmi_version: int) -> bytes | None:
    """terminalsAndIcons.xml; None if there is no terminal. A terminal without one of its variables is left out, since a
    connection inside of the system uses it."""
    root = ET.Element("fmiTerminalsAndIcons", fmiVersion="3.0")
    if fmi_version == 2:
        root.set("fmiVersion", "2.0")
    holder = ET.SubElement(root, "Terminals")
    for component, terminal in _every(interface, loader):
        names = [interface.by_key.get((component, member.variable)) for member in terminal.members]
        kinds = {member.kind for member in terminal.members}
        if not names or None in names or not kinds <= {*_PLAIN}:
            continue
        is_single = interface.prepared.description.is_single_fmu
        name = terminal.name if is_single else f"{component}.{terminal.name}"
        given = {
            "name": name,
            "terminalKind": terminal.kind,
            "matchingRule": terminal.matching_rule,
            "description": terminal.description,
        }
        element = ET.SubElement(holder, "Terminal", {k: v for k, v in given.items() if v})
        for member, number in zip(terminal.members, names, strict=True):
            assert number is not None
            of_member = {
                "variableName": interface.every[number].variable.name,
                "memberName": member.name,
                "variableKind": member.kind,
            }
            ET.SubElement(
                element, "TerminalMemberVariable", {k: v for k, v in of_member.items() if v}
            )
    if not len(holder):
        return None
    ET.indent(root)
    return b"%s\n" % ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _every(interface: ExposedVariables, loader: Loader) -> Iterator[tuple[str, Terminal]]:
    prepared = interface.prepared
    for planned, component in zip(prepared.plan.instances, prepared.components, strict=True):
        file = loader.file(component.source, component.interface)
        unpacked = UnpackedFmu(file.folder, str(component.source))
        found, _ = read_terminals(unpacked, planned.model)
        yield from ((planned.name, terminal) for terminal in found)
