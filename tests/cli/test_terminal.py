"""What reaches a terminal, and what happens if it does not reach it: names with control characters, streams that are closed
or full."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome, changed, reference, system
from forks import Forks
from processes import PATIENCE

from fmimaster.commands.cli import main

Run = Callable[..., Outcome]

EVIL = "\x9b2Ja\rb\nc\u202ed"
"""Clears the screen, overwrites the line, begins another one, and turns the text, in a terminal that takes C1."""
EVIL_FILE = "evil\x9b" if sys.platform == "win32" else "\x1b[31mevil\x9b"
"""Windows has no file with an escape in its name, but any C1."""
IN_XML = "\x9b2Ja&#13;b&#10;c\u202ed"


@pytest.fixture
def dahlquist() -> Path:
    return reference("fmi3/Dahlquist.fmu")


@pytest.fixture
def evil_fmu(dahlquist: Path, tmp_path: Path) -> Path:
    """All its names and descriptions have control characters; so has its file name."""
    path = changed(
        dahlquist,
        tmp_path / "fmu",
        description=lambda text: (
            text.replace('modelName="', f'modelName="{IN_XML}')
            .replace('description="', f'description="{IN_XML}')
            .replace('generationTool="', f'generationTool="{IN_XML}')
            .replace('name="x"', f'name="x{IN_XML}"')
        ),
    )
    return path.rename(tmp_path / f"{EVIL_FILE}.fmu")


@pytest.fixture
def evil_system(evil_fmu: Path, tmp_path: Path) -> Path:
    path = system(tmp_path / "system", {"NAME": evil_fmu}, [f"NAME.x{IN_XML} -> NAME.nothing"])
    text = path.read_text(encoding="utf-8").replace('"NAME"', f'"{IN_XML}"').replace("\x1b", "")
    (path.parent / "fmu.fmu").write_bytes(evil_fmu.read_bytes())
    path.write_text(text.replace('source="', 'source="fmu.fmu" ignored="'), encoding="utf-8")
    return path


def tame(outcome: Outcome) -> bool:
    """Whether nothing that was printed acts in a terminal."""
    text = (outcome.out + outcome.err).replace("\n", "")
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Cf") for c in text)


@pytest.mark.parametrize(
    "command",
    [
        ("info",),
        ("info", "--json"),
        ("validate",),
        ("validate", "--json"),
        ("plan",),
        ("plan", "--json"),
        ("simulate", "--verbose"),
        ("simulate", "--output-variable", EVIL),
        ("simulate", "--start-value", EVIL, EVIL),
        ("simulate", "--algorithm", EVIL),
        ("simulate", f"--nothing{EVIL}"),
        ("simulate", "--stop-time", EVIL),
        ("simulate", "--debug", "--stop-time", EVIL),
    ],
    ids=lambda command: " ".join(command).replace(EVIL, "EVIL"),
)
def test_no_name_of_an_fmu_or_an_option_controls_the_terminal(
    run: Run, evil_fmu: Path, evil_system: Path, command: tuple[str, ...]
) -> None:
    for path in (evil_fmu, evil_system):
        outcome = run(*command, path)
        assert outcome.status in (0, 1, 2)
        assert tame(outcome)
        assert "\\" in outcome.out + outcome.err  # where escapes stand for what would act


def test_json_has_the_names_unchanged(run: Run, evil_fmu: Path) -> None:
    names = [v["name"] for v in json.loads(run("info", evil_fmu, "--json").out)["variables"]]
    assert f"x{EVIL}" in names


def test_a_name_with_a_line_feed_stays_in_its_row(run: Run, evil_fmu: Path) -> None:
    rows = run("simulate", evil_fmu).out.splitlines()
    assert [row.split()[0] for row in rows] == ["variable", r"x\x9b2Ja\rb\nc\u202ed", "dx"]


PRINTS = ("--start-value", "fault", "7", "--stop-time", "1")
"""Options with which the FMU Faulty prints to the standard output."""


def test_a_log_file_has_no_control_characters(run: Run, tmp_path: Path) -> None:
    path, log = tmp_path / f"{EVIL_FILE}.fmu", tmp_path / "log.txt"
    shutil.copy(reference("fmi3/Faulty.fmu"), path)
    assert run("simulate", path, *PRINTS, "--log-file", log).status == 0
    assert r"evil\x9b: Faulty: told to print" in log.read_text(encoding="utf-8")
    assert tame(Outcome(0, log.read_text(encoding="utf-8"), ""))


def test_columns_and_titles_of_figures_have_no_control_characters(run: Run, tmp_path: Path) -> None:
    table, figure = tmp_path / "a.csv", tmp_path / "a.svg"
    table.write_text(f'"time","a{EVIL}\x1b"\n0,1\n1,2\n', encoding="utf-8")
    assert run("plot", table, "--output-file", figure, "--title", EVIL).status == 0
    assert tame(Outcome(0, figure.read_text(encoding="utf-8"), ""))


def test_facts_of_a_run_do_not_control_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time\n0\n1\n", encoding="utf-8")
    cause = {"kind": "early_return", "who": [EVIL]}
    event = {"time": 1, "index": 1, "name": EVIL, "scope": "private", "components": [EVIL]}
    facts = {
        "format": "fmimaster results 1",
        "events": [{**event, "cause": cause, "left": {EVIL: EVIL}, "right": {EVIL: "\x1b"}}],
        "steps": [{"begin": 0, "end": 1, "count": 1, "cause": cause}],
    }
    (tmp_path / "a.csv.json").write_text(json.dumps(facts), encoding="utf-8")
    outcome = run("steps", tmp_path / "a.csv")
    assert outcome.status == 0, outcome.err
    assert tame(outcome)
    assert r"\x9b2Ja\rb\nc\u202ed" in outcome.out


def on_a_terminal(*arguments: object, **settings: str) -> str:
    """What a command writes to the standard error, if that is a terminal of 60 columns."""
    import pty

    reading, terminal = pty.openpty()
    plain = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    fmimaster(
        *arguments, stderr=terminal, env=plain | {"TERM": "xterm", "COLUMNS": "60"} | settings
    )
    os.close(terminal)
    text = os.read(reading, 4096).decode()
    os.close(reading)
    return text


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_an_error_is_red_on_a_terminal_and_fits_it() -> None:
    arguments = ("simulate", "a.fmu", "--out")
    text = on_a_terminal(*arguments)
    assert text.startswith("\x1b[1;31mfmimaster: error:\x1b[0m 'simulate' has no option")
    plain = on_a_terminal(*arguments, NO_COLOR="1")
    assert plain == text.replace("\x1b[1;31m", "").replace("\x1b[0m", "")
    lines = plain.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 60
    assert all(line.startswith("  ") for line in lines[1:])


# Streams that are closed or full --------------------------------------------------------------------------------------


def fmimaster(*arguments: object, **streams: object) -> subprocess.CompletedProcess[Any]:
    """Run it as a process of its own."""
    command = [sys.executable, "-m", "fmimaster", *map(str, arguments)]
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(command, **({"text": True} | settings), timeout=PATIENCE, check=False)  # type: ignore[call-overload,no-any-return]


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/full")

FULL = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), {})"
"""Executed in a process, before its command: one of its streams is full."""

WRITING = [("info",), ("info", "--json"), ("plan",), ("simulate",), ("simulate", "--output-file=-")]


@on_linux
@pytest.mark.parametrize("command", [*WRITING, ("--help",), ("--version",)], ids=" ".join)
def test_a_full_standard_output_is_an_error_in_one_line(
    forks: Forks, dahlquist: Path, command: tuple[str, ...]
) -> None:
    if command[0].startswith("-"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = fmimaster(*command, stdout=full)
    else:
        done = forks.run(*command, dahlquist, first=FULL.format(1))
    assert done.returncode == 2, done.stderr
    assert done.stderr.rpartition("fmimaster: error: ")[2] in (
        "The standard output cannot be written: No space left on device.\n",
        "The results cannot be written to the stream: No space left on device. Make room there, or choose another place.\n",
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@on_linux
def test_a_full_standard_error_changes_no_status(forks: Forks, dahlquist: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert fmimaster("simulate", dahlquist, stderr=full).returncode == 0
    full_error = FULL.format(2)
    assert forks.run("simulate", dahlquist, first=full_error).returncode == 0
    assert forks.run("simulate", "nowhere.fmu", first=full_error).returncode == 2
    assert forks.run("simulate", dahlquist, "--nothing", first=full_error).returncode == 2
    both = f"{FULL.format(1)}; {full_error}"
    assert forks.run("simulate", dahlquist, "--verbose", first=both).returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
@pytest.mark.parametrize(
    ("closed", "status"),
    [(">&-", 2), ("2>&-", 0), ("<&-", 0), (">&- 2>&-", 2), ("<&- >&- 2>&-", 2)],
)
def test_closed_streams_are_no_defect(
    dahlquist: Path, tmp_path: Path, closed: str, status: int
) -> None:
    command = f"'{sys.executable}' -m fmimaster simulate '{dahlquist}' --verbose --log-file log"
    done = subprocess.run(
        f"{command} {closed}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == status, done.stderr
    assert done.stderr.decode().rpartition("error: ")[2] in (
        ""
        if "2>" in closed
        else "The standard output is closed. Keep it open, or write to a file.\n",
        done.stderr.decode() if status == 0 else "",
    )
    assert "100 steps in" not in (tmp_path / "log").read_text(
        encoding="utf-8"
    )  # nothing else went into its descriptor


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_with_all_streams_closed_the_results_are_in_the_file(
    dahlquist: Path, tmp_path: Path
) -> None:
    command = f"'{sys.executable}' -m fmimaster simulate '{dahlquist}' --output-file a.csv"
    done = subprocess.run(
        f"{command} <&- >&- 2>&-", shell=True, cwd=tmp_path, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0
    assert len((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()) == 102


@pytest.mark.parametrize("encoding", ["ascii", "utf-16"])
def test_no_character_is_too_much_for_the_encoding_of_a_terminal(
    dahlquist: Path, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "Größe-日本.fmu"
    shutil.copy(dahlquist, path)
    for options in ((), ("--json",)):
        done = fmimaster(
            "info",
            path,
            *options,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            text=False,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode(encoding))["file"] == str(path)


def test_a_table_on_the_standard_output_has_the_bytes_of_a_file(
    run: Run, dahlquist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of the code page, and not the ends of lines, of a pipe on Windows."""
    fmu = changed(dahlquist, tmp_path / "a.fmu", description=lambda t: t.replace('"x"', '"Größe→"'))
    stream = TextIOWrapper(BytesIO(), encoding="cp1252", newline="\r\n")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main(["simulate", str(fmu), "--output-file", "-"]) == 0
    run("simulate", fmu, "--output-file", tmp_path / "a.csv")
    assert stream.buffer.getvalue() == (tmp_path / "a.csv").read_bytes()


def test_files_have_the_same_ends_of_lines_on_every_system(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table, figure, log, calls = (tmp_path / f"a.{s}" for s in ("csv", "svg", "log", "calls"))
    files = ("--output-file", table, "--plot", figure, "--log-file", log, "--fmi-log-file", calls)
    assert run("simulate", reference("fmi3/Faulty.fmu"), *PRINTS, *files).status == 0
    written = [*tmp_path.iterdir()]
    assert len(written) == 5  # the facts are beside the table
    assert all(b"\r" not in file.read_bytes() and b"\n" in file.read_bytes() for file in written)


# Files that cannot be written -----------------------------------------------------------------------------------------


@on_linux
def test_a_log_file_on_a_full_disk_is_reported_after_the_results(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    options = ("--output-file", table, "--log-file", "/dev/full")
    error = run("simulate", reference("fmi3/Faulty.fmu"), *PRINTS, *options).error
    assert error == "The log file '/dev/full' cannot be written: No space left on device.\n"
    assert len(table.read_text(encoding="utf-8").splitlines()) == 12


@pytest.mark.parametrize("option", ["--output-file", "--plot"])
@on_linux
def test_results_on_a_full_disk_are_an_error(
    run: Run, dahlquist: Path, tmp_path: Path, option: str
) -> None:
    full = tmp_path / "full.png"
    full.symlink_to("/dev/full")
    error = run("simulate", dahlquist, option, full).error
    assert f"'{full}'" in error
    assert "No space left on device." in error
