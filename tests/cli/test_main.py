"""The command as a process sees it: exit statuses, messages, the log, and no traceback that nobody asked for."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, reference
from processes import PATIENCE

from fmimaster.base.errors import Interrupted
from fmimaster.commands import demo
from fmimaster.commands.cli import main
from fmimaster.front.simulation import Simulation

Run = Callable[..., Outcome]


def process(*arguments: object, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "fmimaster", *map(str, arguments)]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
    )


def test_alone_it_prints_a_short_help_with_first_commands(run: Run) -> None:
    outcome = run()
    assert outcome.status == 0
    assert "\n  fmimaster demo files " in outcome.out
    for name in ("simulate", "info", "validate", "plan", "plot", "demo"):
        assert f"\n    {name} " in outcome.out


def test_it_knows_its_version(run: Run) -> None:
    outcome = run("--version")
    assert outcome.status == 0
    assert outcome.out.startswith("fmimaster ")


def test_a_wrong_argument_is_told_in_one_line_with_where_to_look(run: Run) -> None:
    outcome = run("simulate", "a.fmu", "--stop", "1")
    assert outcome.error.count("\n") == 1
    assert "--stop" in outcome.error
    assert (
        "See 'fmimaster --help'" in outcome.error
        or "See 'fmimaster simulate --help'" in outcome.error
    )


def test_as_a_process_an_error_has_status_2_and_no_traceback() -> None:
    done = process("simulate", "/no/such.fmu")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"fmimaster: error: '{Path('/no/such.fmu')}' does not exist")
    assert "Traceback" not in done.stderr


def test_as_a_process_the_results_are_all_of_the_standard_output() -> None:
    fmu = reference("fmi3/Faulty.fmu")
    done = process(
        "simulate", fmu, "--start-value", "fault", "7", "--stop-time", "1", "--output-file", "-"
    )
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == '"time","x","dx"'
    assert len(lines) == 12
    assert "10 steps" in done.stderr


def test_as_a_process_json_is_all_of_the_standard_output() -> None:
    done = process("plan", reference("systems/two-mass-b1-fmi3.ssp"), "--json")
    assert json.loads(done.stdout)["order"] == ["lower", "upper"]


def test_a_reader_that_goes_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = process("info", reference("fmi3/Feedthrough.fmu"), "--json", stdout=writing)
    os.close(writing)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_a_closed_standard_output_does_not_disturb_a_run(tmp_path: Path) -> None:
    fmu, table = reference("fmi2/Faulty.fmu"), tmp_path / "a.csv"
    script = f"exec {sys.executable} -m fmimaster simulate {fmu} --start-value fault 7 --output-file {table} >&-"
    done = subprocess.run(
        script, shell=True, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(table.read_text(encoding="utf-8").splitlines()) == 102


def test_a_traceback_is_shown_on_request(run: Run) -> None:
    outcome = run("simulate", "/no/such.fmu", "--debug")
    assert outcome.status == 2
    assert "Traceback" in outcome.err
    assert outcome.err.rstrip().endswith("nor does its folder. Check the path.")


def test_a_defect_is_told_as_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        raise ZeroDivisionError("of the unexpected kind")

    monkeypatch.setattr(demo, "run", fail)
    outcome = run("demo")
    assert outcome.status == 3
    assert outcome.err.startswith(
        "fmimaster: error: This is a defect of fmimaster: ZeroDivisionError"
    )
    assert "--debug" in outcome.err
    assert "Traceback" not in outcome.err


def test_an_interrupted_run_keeps_its_rows_and_has_status_130(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fmu, table = reference("fmi3/Dahlquist.fmu"), tmp_path / "a.csv"
    results = Simulation(fmu, stop_time=1).run()

    def interrupted(
        _self: Simulation, _progress: object, *, output_file: str, resume_from: object
    ) -> None:
        results.write(output_file)  # as it does while it goes on
        error = Interrupted("Interrupted at t = 1 s.", time=1.0)
        error.results = results
        raise error

    monkeypatch.setattr(Simulation, "run", interrupted)
    outcome = run("simulate", fmu, "--output-file", table)
    assert outcome.status == 130
    assert len(table.read_text(encoding="utf-8").splitlines()) == 12
    assert outcome.err.endswith("fmimaster: error: Interrupted at t = 1 s.\n")


def test_ctrl_c_before_a_run_has_status_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    outcome = run("demo")
    assert (outcome.status, outcome.err) == (130, "fmimaster: error: Interrupted.\n")


# The log --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def printing() -> list[object]:
    """Arguments for a run of an FMU that prints a line in each of its two steps."""
    fmu = reference("fmi2/Faulty.fmu")
    return [
        "simulate",
        fmu,
        "--start-value",
        "fault",
        "7",
        "--stop-time",
        "0.2",
        "--output-file",
        "-",
    ]


def test_what_fmus_print_is_shown_only_on_request(run: Run, printing: list[object]) -> None:
    assert "told to print" not in run(*printing).err
    outcome = run(*printing, "--verbose")
    assert "fmimaster: FMU output: Faulty: Faulty: told to print at t = 0.1 s." in outcome.err
    assert "told to print" not in outcome.out


def test_a_log_file_has_all_messages(run: Run, printing: list[object], tmp_path: Path) -> None:
    outcome = run(*printing, "--log-file", tmp_path / "log.txt")
    assert "told to print" not in outcome.err
    lines = (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines()
    messages = [line.partition("INFO ")[2] for line in lines]
    assert messages[0].startswith("fmimaster ")
    assert [m for m in messages if m.startswith("FMU output: ")] == [
        "FMU output: Faulty: Faulty: told to print at t = 0 s.",
        "FMU output: Faulty: Faulty: told to print at t = 0.1 s.",
    ]
    [end] = [m for m in messages if m.startswith("ended ")]
    assert end.startswith("ended at t = 0.2 s after 2 steps and 0 events in ")


def test_a_log_file_that_cannot_be_written_is_told(run: Run, tmp_path: Path) -> None:
    message = run("demo", "--log-file", tmp_path / "no" / "log.txt").error
    assert "log.txt' cannot be written" in message


def test_warnings_of_fmus_are_shown(run: Run) -> None:
    fmu = reference("fmi3/Faulty.fmu")
    outcome = run(
        "simulate", fmu, "--start-value", "fault", "1", "--stop-time", "0.1", "--debug-logging"
    )
    assert outcome.status == 0
    assert "fmimaster: warning: Faulty [Warning] " in outcome.err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/a"), "'/a' cannot be used: too many open"),
        (OSError(errno.EMFILE, "Too many open files"), "Allow more open files (ulimit -n)"),
        (OSError(errno.ENOSPC, "No space left on device", "/a"), "Make room, also in"),
        (BlockingIOError(errno.EAGAIN, "Resource"), "no room for another process or thread"),
        (PermissionError(errno.EACCES, "Permission denied", "/a"), "'/a' cannot be used: perm"),
    ],
)
def test_what_the_system_refuses_is_said_with_the_place(
    error: OSError,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(_: object) -> int:
        raise error

    monkeypatch.setattr("fmimaster.commands.info.run", refuse)
    assert main(["info", "a.fmu"]) == 2
    assert told in capsys.readouterr().err
