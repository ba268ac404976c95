"""Hostile times, names, paths and options on the command line: a result, or a message and the exit status 2."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from io import StringIO
from pathlib import Path

import pytest
from command_line import reference
from fuzzing import survives
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mutations import hostile_text

from fmimaster.base.errors import OptionError
from fmimaster.commands.cli import main
from fmimaster.instants.instant import exact

PATHS = (
    *(
        "",
        ".",
        "..",
        "/",
        "~",
        "-",
        "//",
        "a.fmu/",
        "a.fmu/x",
        "new/",
        "nowhere/a.csv",
        "/dev/null",
    ),
    *("\0", "a\0b", "\udcff", "\ud800", "x" * 300, "x/" * 3000, "\n", "é", "a.csv", "folder"),
    *("a.fmu", "A.FMU", "a.ssd", "a.ssp", "loop", "loop/a.csv", "/proc/self/mem", "/proc/x"),
    *("x" * 300 + ".csv", "x" * 300 + ".fmu", "\0.fmu", "\ud800.fmu", "\ud800.csv", "\udcff.png"),
)

QUICK = ("--no-progress", "--stop-time", "0.5", "--step-size", "0.1")
NAMES = (
    "--algorithm",
    "--inputs",
    "--event-clock",
    "--step-rule",
    "--backend",
    "--output-variable",
)
TIMES = ("--start-time", "--stop-time", "--step-size", "--output-interval", "--tolerance")
COUNTS = ("--sweeps", "--threads")
FILES = ("--input-file", "--output-file", "--plot", "--log-file")
SETTINGS = (
    *(
        "look-ahead:",
        "predictive:near=",
        "check",
        "ramp:first=",
        "ramp:growth=",
        "locate:tolerance=",
    ),
    *(
        "free:",
        "grid:size=",
        "Jacobi",
        "Sequential",
        "1,",
        ",1",
        "first-order",
        "native",
        "reference",
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an FMU, a table, a folder, and a link to itself."""
    folder = tmp_path_factory.mktemp("fuzz")
    shutil.copy(reference("fmi3/Feedthrough.fmu"), folder / "a.fmu")
    (folder / "a.csv").write_text("time,Float64_continuous_input\n0,1\n1,2\n", encoding="utf-8")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    return folder


def text() -> st.SearchStrategy[str]:
    odd = hostile_text()
    return st.one_of(
        odd, st.sampled_from(PATHS), st.tuples(st.sampled_from(SETTINGS), odd).map("".join)
    )


def is_long(option: str, value: str) -> bool:
    """Whether a time makes a run of very many steps, which is none of the faults that are looked for."""
    try:
        seconds = exact(value)
    except OptionError:
        return False
    limits = {
        "--stop-time": seconds > 1000,
        "--start-time": seconds < -1000,
        "--step-size": 0 < seconds < Fraction(1, 10**4),
    }
    return limits.get(option, False)


def ends_well(folder: Path, arguments: Sequence[str]) -> None:
    """The command ends with a result, or with a message and the status 2."""
    out, err = StringIO(), StringIO()

    def run() -> int:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                return main(arguments)
            except SystemExit as leave:
                return int(leave.code or 0)

    before = Path.cwd()
    os.chdir(folder)
    try:
        status = survives(run)
    finally:
        os.chdir(before)
    assert status in (0, 1, 2), err.getvalue()
    assert (status == 2) == ("fmimaster: error: " in err.getvalue())
    assert "Traceback" not in err.getvalue()
    assert (folder / "a.fmu").read_bytes()[:2] == b"PK"  # it was not overwritten


@settings(max_examples=60)
@given(option=st.sampled_from((*TIMES, *COUNTS, *NAMES)), value=text())
def test_an_option_of_simulate(option: str, value: str, folder: Path) -> None:
    assume(not is_long(option, value))
    ends_well(folder, ["simulate", "a.fmu", *QUICK, f"{option}={value}"])


@settings(max_examples=60)
@given(option=st.sampled_from((*TIMES, *COUNTS, *NAMES)), value=text())
def test_an_option_of_plan(option: str, value: str, folder: Path) -> None:
    ends_well(folder, ["plan", "a.fmu", "--stop-time", "0.5", f"{option}={value}"])


@settings(max_examples=60)
@given(name=st.one_of(text(), st.just("Float64_continuous_input")), value=text())
def test_a_start_value(name: str, value: str, folder: Path) -> None:
    ends_well(folder, ["simulate", "a.fmu", *QUICK, "--start-value", name, value])


@settings(max_examples=60)
@given(option=st.sampled_from(FILES), path=st.one_of(st.sampled_from(PATHS), hostile_text()))
def test_a_file_of_simulate(option: str, path: str, folder: Path) -> None:
    ends_well(folder, ["simulate", "a.fmu", *QUICK, f"{option}={path}"])


@settings(max_examples=60)
@given(
    command=st.sampled_from(
        (
            ["info"],
            ["info", "--json"],
            ["validate"],
            ["plan"],
            ["simulate", *QUICK],
            ["steps"],
            ["plot"],
            ["plot", "a.csv", "--output-file"],
            ["plot", "a.csv", "--output-file=a.png", "--variable"],
            ["demo", "two-mass", "--fmus"],
            ["demo", "--output-directory"],
            ["demo"],
            [],
        )
    ),
    path=st.one_of(st.sampled_from(PATHS), hostile_text()),
)
def test_a_path_or_a_name_of_each_command(command: list[str], path: str, folder: Path) -> None:
    ends_well(folder, [*command, path])
