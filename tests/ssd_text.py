"""System descriptions as text: what tests of reading SSP write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from fmimaster.fmu.description.terminals import NAMESPACE as POWER_BONDS
from fmimaster.system.description import Constraint, PowerBond, SystemDescription
from fmimaster.system.read import read_system
from fmimaster.system.ssp_annotations import CONSTRAINTS, VERSION
from fmimaster.system.xml import quoted

NAMESPACES = " ".join(
    f'xmlns:{prefix}="http://ssp-standard.org/SSP1/SystemStructure{name}"'
    for prefix, name in {
        "ssd": "Description",
        "ssc": "Common",
        "ssv": "ParameterValues",
        "ssm": "ParameterMapping",
    }.items()
)


def ssd(system: str = "", after: str = "", version: str = "1.0") -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription name="test" version="{version}" {NAMESPACES}>
<ssd:System name="root">
{system}
</ssd:System>
{after}
</ssd:SystemStructureDescription>"""


def component(name: str, inside: str = "", source: str = "a.fmu", more: str = "") -> str:
    return f'<ssd:Component name="{name}" source="{source}" {more}>{inside}</ssd:Component>'


def elements(*inside: str) -> str:
    return f"<ssd:Elements>{''.join(inside)}</ssd:Elements>"


def values(*parameters: str, units: str = "") -> str:
    return (
        f'<ssv:ParameterSet version="1.0" name="set" {NAMESPACES}><ssv:Parameters>'
        f"{''.join(parameters)}</ssv:Parameters>{units}</ssv:ParameterSet>"
    )


def parameter(name: str, value: str, kind: str = "Real", more: str = "") -> str:
    return f'<ssv:Parameter name="{name}"><ssv:{kind} value="{value}" {more}/></ssv:Parameter>'


def bindings(*inside: str) -> str:
    return f"<ssd:ParameterBindings>{''.join(inside)}</ssd:ParameterBindings>"


def binding(content: str, more: str = "", mapping: str = "") -> str:
    return (
        f"<ssd:ParameterBinding {more}><ssd:ParameterValues>{content}</ssd:ParameterValues>"
        f"{mapping}</ssd:ParameterBinding>"
    )


def inline_mapping(*entries: str) -> str:
    return (
        '<ssd:ParameterMapping><ssm:ParameterMapping version="1.0">'
        f"{''.join(entries)}</ssm:ParameterMapping></ssd:ParameterMapping>"
    )


def read(folder: Path, text: str) -> SystemDescription:
    """The system of a text, without a folder around it in messages and sources."""
    (folder / "s.ssd").write_text(text, encoding="utf-8")
    return read_system(folder / "s.ssd")


def annotated(*inside: str) -> str:
    return f"<ssd:Annotations>{''.join(inside)}</ssd:Annotations>"


def as_version_2(text: str) -> str:
    """The text with version 2.0 of SSP wherever it had 1.0."""
    return re.sub('(?<!xml )version="1.0"', 'version="2.0"', text)


def write_constraints(constraints: Mapping[str, Constraint]) -> str:
    """Constraints, by name, as the element inside their annotation."""
    lines = [f'<Constraints xmlns="{CONSTRAINTS.namespace}" version="{VERSION}">']
    for name, c in constraints.items():
        attributes = f'level="{c.level.value}" tolerance="{c.tolerance!r}"'
        lines.append(f"  <Constraint name={quoted(name)} {attributes}>")
        for end in c.ends:
            given = {"position": end.position, "velocity": end.velocity}
            known = "".join(f" {n}={quoted(text)}" for n, text in given.items() if text)
            names = f"element={quoted(end.element)} force={quoted(end.force)}{known}"
            lines.append(f'    <End {names} factor="{end.factor!r}"/>')
        lines.append("  </Constraint>")
    lines.append("</Constraints>")
    return "".join(f"{line}\n" for line in lines)


def write_power_bonds(bonds: Iterable[PowerBond]) -> str:
    """Power bonds as the element inside their annotation."""
    lines = [f'<PowerBonds xmlns="{POWER_BONDS}" version="{VERSION}">']
    for bond in bonds:
        given = {"scale": bond.scale, "tolerance": bond.tolerance}
        known = "".join(f' {n}="{value!r}"' for n, value in given.items() if value is not None)
        lines.append(f"  <PowerBond name={quoted(bond.name)}{known}>")
        for p in bond.ports:
            names = f"component={quoted(p.component)} input={quoted(p.input)}"
            lines.append(f'    <Port {names} output={quoted(p.output)} power="{p.power}"/>')
        lines.append("  </PowerBond>")
    lines.append("</PowerBonds>")
    return "".join(f"{line}\n" for line in lines)
