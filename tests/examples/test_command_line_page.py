"""docs/command-line.md names every command and every option."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from fmimaster.commands.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = (
    "simulate",
    "resume",
    "info",
    "validate",
    "probe",
    "plan",
    "optimize",
    "stability",
    "budget",
    "export",
    "sweep",
    "plot",
    "steps",
    "conformance",
    "host",
    "demo",
    "completion",
)


def help_of(*command: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed, pytest.raises(SystemExit) as end:
        main([*command, "--help"])
    assert end.value.code == 0
    return printed.getvalue()


def test_all_commands_are_known_here() -> None:
    assert tuple(re.findall(r"^    ([a-z]+)\b", help_of(), re.M)) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_names_every_option(command: str) -> None:
    assert f"`{command}" in PAGE
    options = set(re.findall(r"--[a-z-]+", help_of(command)))
    missing = {o for o in options if not re.search(rf"`{o}[ `]", PAGE)}
    assert not missing


def test_every_option_of_the_page_exists() -> None:
    known = {
        option
        for command in ((), *((c,) for c in COMMANDS))
        for option in re.findall(r"--[a-z-]+", help_of(*command))
    }
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) <= known
