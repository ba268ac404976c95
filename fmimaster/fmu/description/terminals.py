"""Terminals of an FMU, which group its variables for connections (FMI 3.0, 2.4.9), and its power ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, cast

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import read_whole
from fmimaster.base.text import listed
from fmimaster.fmu.description.findings import Findings
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.system.declarations import PowerPort
from fmimaster.system.model import Causality, DataType, Model, Variable
from fmimaster.system.units import watts
from fmimaster.system.xml import (
    Element,
    child,
    children,
    local_name,
    location,
    parse_lenient_xml,
    text_of,
)
from fmimaster.system.xml_form import AT_LEAST_ONE, NAME, WITH_VERSION, Form, faults, one_of

ANNOTATION = "org.fmimaster.power-bonds"
"""Type of the annotation of power ports; it is that of power bonds in an SSD too."""
NAMESPACE = "https://fmimaster.org/power-bonds"
"""Of all elements in the annotation."""
FILE = "terminalsAndIcons/terminalsAndIcons.xml"
"""Path inside of an FMU; a maintenance release of FMI 2.0 has it too."""


@dataclass(frozen=True, slots=True)
class TerminalMember:
    """One variable of a terminal."""

    name: str
    """Name in the terminal; empty if the file gives none."""
    variable: str
    kind: str
    """``"signal"``, ``"inflow"``, ``"outflow"``, or a kind of another standard."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """One terminal. The name of a nested terminal begins with the names of the enclosing terminals."""

    name: str
    kind: str
    matching_rule: str
    """``"plug"``, ``"bus"``, ``"sequence"``, or a rule of another standard."""
    description: str
    members: tuple[TerminalMember, ...]


def read_terminals(fmu: UnpackedFmu, model: Model) -> tuple[tuple[Terminal, ...], tuple[str, ...]]:
    """Terminals in the order of the file, nested ones after the enclosing ones; and their errors.

    No terminals if the FMU has no such file, or a malformed one.
    """
    file, where = fmu.folder / FILE, f"{fmu.where}/{FILE}"
    if not file.exists():
        return (), ()
    try:
        root, notes = parse_lenient_xml(read_whole(file), where)
    except FileError as error:
        return (), (str(error),)
    if local_name(root) != "fmiTerminalsAndIcons":
        what = f"{location(root)}: the root is {local_name(root)}, expected fmiTerminalsAndIcons."
        return (), (what,)
    terminals = tuple(_terminals(child(root, "Terminals"), ""))
    return terminals, (*notes, *_problems(terminals, model, where))


def _terminals(holder: Element | None, prefix: str) -> Iterator[Terminal]:
    for element in children(holder, "Terminal"):
        name = prefix + _text(element, "name")
        yield Terminal(
            name,
            _text(element, "terminalKind"),
            _text(element, "matchingRule"),
            _text(element, "description"),
            tuple(_members(element)),
        )
        yield from _terminals(element, f"{name}.")


def _members(terminal: Element) -> Iterator[TerminalMember]:
    for element in terminal:
        match local_name(element):
            case "TerminalMemberVariable":
                variable = _text(element, "variableName")
                yield TerminalMember(
                    _text(element, "memberName"), variable, _text(element, "variableKind")
                )
            case "TerminalStreamMemberVariable":
                for side in ("inStream", "outStream"):
                    name, variable = (
                        _text(element, f"{side}{what}") for what in ("MemberName", "VariableName")
                    )
                    yield TerminalMember(name, variable, side)


def _problems(terminals: tuple[Terminal, ...], model: Model, where: str) -> Iterator[str]:
    seen: set[str] = set()
    for terminal in terminals:
        if not terminal.name or terminal.name in seen:
            yield f"{where}: the name of terminal '{terminal.name}' is missing or not unique."
        seen.add(terminal.name)
        missing = [m.variable for m in terminal.members if model.variable(m.variable) is None]
        if missing:
            yield f"{where}: terminal '{terminal.name}' names variables that the FMU does not have: {listed(missing)}."


def _text(element: Element, name: str) -> str:
    return " ".join((element.get(name) or "").split())


_FORMS = {
    "PowerPorts": Form(WITH_VERSION, inside={"PowerPort": AT_LEAST_ONE}),
    "PowerPort": Form({"name": NAME, "input": NAME, "output": NAME, "power": one_of("in", "out")}),
}
_FLOWS: Mapping[str, Literal["in", "out"]] = {"inflow": "in", "outflow": "out"}
"""Kind of a flow variable of a terminal (FMI 3.0, 2.4.9.2.2) → whether effort times flow enters the FMU."""


def read_power_ports(
    root: Element, variables: Mapping[str, Variable], findings: Findings
) -> tuple[PowerPort, ...]:
    """Ports from the annotation: of the vendor in FMI 2.0, of type ``org.fmimaster.power-bonds`` in FMI 3.0.

    Malformed ports, and ports without continuous scalars, are ignored with a note.
    """
    found = list[PowerPort]()
    for element in _annotated(root):
        if element.tag != f"{{{NAMESPACE}}}PowerPorts":
            findings.note(
                element, f"element {local_name(element)} is not PowerPorts of {NAMESPACE}"
            )
            continue
        wrong = list(faults(element, _FORMS, NAMESPACE))
        for fault in wrong:
            findings.note(fault.element, f"power ports are ignored: {fault.text}")
        for port in () if wrong else children(element, "PowerPort"):
            name, u, y, power = (text_of(port, a) for a in ("name", "input", "output", "power"))
            if _is_port(variables.get(u), variables.get(y)):
                where = f"the annotation of port '{name}'"
                found.append(PowerPort(name, u, y, cast(Literal["in", "out"], power), where))
            else:
                findings.note(
                    port, "power ports without a continuous scalar input and output", name
                )
    return tuple(found)


def _annotated(root: Element) -> Iterator[Element]:
    for tool in children(root, "VendorAnnotations", "Tool"):
        if tool.get("name") == ANNOTATION:
            yield from tool
    for annotation in children(root, "Annotations", "Annotation"):
        if annotation.get("type") == ANNOTATION:
            yield from annotation


def _is_port(u: Variable | None, y: Variable | None) -> bool:
    ends = (u, Causality.INPUT), (y, Causality.OUTPUT)
    return all(
        v is not None
        and v.causality is causality
        and v.is_continuous
        and v.type is DataType.FLOAT64
        and not v.shape
        for v, causality in ends
    )


def with_terminal_ports(fmu: UnpackedFmu, model: Model) -> Model:
    """The model with the power ports from its terminals: those with one input and one output whose product is a
    power."""
    terminals, _ = read_terminals(fmu, model)
    known = {(p.input, p.output) for p in model.power_ports}
    found = [p for t in terminals for p in _port_of(t, model) if (p.input, p.output) not in known]
    return replace(model, power_ports=(*model.power_ports, *found)) if found else model


def _port_of(terminal: Terminal, model: Model) -> Iterator[PowerPort]:
    members = [(model.variable(m.variable), m.kind) for m in terminal.members]
    if len(members) != 2:
        return
    members.sort(key=lambda m: m[0] is None or m[0].causality is not Causality.INPUT)
    (u, _), (y, _) = members
    if u is None or y is None or not _is_port(u, y) or u.unit is None or y.unit is None:
        return
    if u.unit.exponents is None or y.unit.exponents is None or watts(u.unit, y.unit) is None:
        return
    powers: set[Literal["in", "out"]] = {_FLOWS[kind] for _, kind in members if kind in _FLOWS}
    power = powers.pop() if len(powers) == 1 else None
    yield PowerPort(terminal.name, u.name, y.name, power, f"terminal '{terminal.name}'")
