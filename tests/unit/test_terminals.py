"""Terminals are read, and what is wrong with them costs a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from event_fmus import event_fmu

from fmimaster.fmu.description.terminals import FILE, Terminal, TerminalMember, read_terminals
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.front.validation import Severity, validate
from fmimaster.system.model import Source


def document(terminals: str) -> str:
    return f"<fmiTerminalsAndIcons fmiVersion='3.0'><Terminals>{terminals}</Terminals></fmiTerminalsAndIcons>"


def terminal(name: str, inside: str) -> str:
    return f"<Terminal name='{name}' matchingRule='plug'>{inside}</Terminal>"


def member(variable: str) -> str:
    return f"<TerminalMemberVariable variableName='{variable}' variableKind='signal'/>"


def fmu_with(tmp_path: Path, text: str, version: str = "3.0") -> Path:
    return event_fmu(tmp_path / "a.fmu", None, version=version, members={FILE: text.encode()})


def read(path: Path) -> tuple[tuple[Terminal, ...], tuple[str, ...]]:
    fmu = FmuFile(Source(path))
    found = read_terminals(UnpackedFmu(fmu.folder, "a.fmu"), fmu.model)
    fmu.close()
    return found


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_terminals_are_read_with_those_inside_of_them(version: str, tmp_path: Path) -> None:
    inner = terminal("inner", member("v"))
    path = fmu_with(tmp_path, document(terminal("outer", member("x") + inner)), version)
    assert read(path) == (
        (
            Terminal("outer", "", "plug", "", (TerminalMember("", "x", "signal"),)),
            Terminal("outer.inner", "", "plug", "", (TerminalMember("", "v", "signal"),)),
        ),
        (),
    )


def test_an_fmu_without_the_file_has_no_terminals(tmp_path: Path) -> None:
    assert read(event_fmu(tmp_path / "a.fmu", None)) == ((), ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<fmiTerminalsAndIcons>", "terminalsAndIcons.xml, line 1, column 23: malformed XML"),
        ("<!DOCTYPE a><a/>", "the document has a document type"),
        ("<other/>", "line 1: the root is other, expected fmiTerminalsAndIcons."),
        (document(terminal("", "")), "the name of terminal '' is missing or not unique."),
        (document(terminal("a", "") * 2), "the name of terminal 'a' is missing or not unique."),
        (
            document(terminal("a", member("x") + member("y") + member("z"))),
            "terminal 'a' names variables that the FMU does not have: y, z.",
        ),
    ],
)
def test_what_is_wrong_with_terminals_is_a_warning(tmp_path: Path, text: str, told: str) -> None:
    path = fmu_with(tmp_path, text)
    [problem] = read(path)[1]
    assert problem.startswith(f"a.fmu/{FILE}")
    assert told in problem
    [finding] = [f for f in validate(path) if f.what == problem]
    assert finding.severity is Severity.WARNING
