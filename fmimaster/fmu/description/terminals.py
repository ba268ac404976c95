"""The terminals of an FMU, which group its variables for connections (FMI 3.0, 2.4.9). A simulation does not need them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fmimaster.base.errors import FileError
from fmimaster.base.files import read_whole
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.system.model import Model
from fmimaster.system.notes import listed
from fmimaster.system.xml import Element, child, children, local_name, location, parse_lenient_xml

FILE = "terminalsAndIcons/terminalsAndIcons.xml"
"""Path inside of an FMU; a maintenance release of FMI 2.0 has it too."""


@dataclass(frozen=True, slots=True)
class Member:
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
    members: tuple[Member, ...]


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


def _members(terminal: Element) -> Iterator[Member]:
    for element in terminal:
        match local_name(element):
            case "TerminalMemberVariable":
                variable = _text(element, "variableName")
                yield Member(_text(element, "memberName"), variable, _text(element, "variableKind"))
            case "TerminalStreamMemberVariable":
                for side in ("inStream", "outStream"):
                    name, variable = (
                        _text(element, f"{side}{what}") for what in ("MemberName", "VariableName")
                    )
                    yield Member(name, variable, side)


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
