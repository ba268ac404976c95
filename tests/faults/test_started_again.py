"""A command that starts itself again as the process of its run: on Windows and macOS, elsewhere because tests do so."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from misbehaving_fmu import Act, misbehaving
from processes import PATIENCE

from fmimaster import Results, reference_path
from fmimaster.base.files import is_for_the_same, own_name
from fmimaster.run.choice import native_executor

pytestmark = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")

IS_WINDOWS = sys.platform == "win32"
COMMAND = """
import sys
from fmimaster.apart import watch
watch.can_fork = lambda: False
from fmimaster.__main__ import main
sys.exit(main())
"""
TIMES = ("--stop-time", "1", "--step-size", "1/100")
ROWS = 51
"""Up to t = 0.5 s, where the FMUs misbehave."""
CRASH = "an access violation (0xC0000005)" if IS_WINDOWS else "SIGSEGV"


def begun(folder: Path, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, encoding="utf-8", **pipes, **options)


def done(folder: Path, *arguments: object) -> tuple[int, str, str]:
    process = begun(folder, *arguments)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def rows_of(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("\n") - 1 if file.is_file() else 0


def wait_for_rows(process: subprocess.Popen[str], file: Path) -> None:
    while rows_of(file) < ROWS and process.poll() is None:
        time.sleep(0.02)


def test_rows_of_a_crashed_run_are_in_its_file(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "crash", since=0.5))
    options = ("--output-file", "rows.mat", "--log-file", "log.txt")
    status, out, err = done(tmp_path, "simulate", fmu.name, *TIMES, *options)
    assert (status, out) == (2, "")
    assert f"was ended by {CRASH}, in fmi3DoStep of 'Misbehaving' at t = 0.5 s" in err
    assert f"{ROWS} rows written to rows.mat" in err
    results = Results.read(tmp_path / "rows.mat")
    assert results.rows == ROWS
    assert CRASH in results.metadata["failure"]
    assert not list(tmp_path.glob("*.part"))
    assert (tmp_path / "log.txt").read_text(encoding="utf-8").count("INFO") > 1  # of both processes


@pytest.mark.thorough
def test_rows_in_a_text_file_and_in_the_answer_are_kept(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "crash", since=0.5))
    status, _, err = done(tmp_path, "simulate", fmu.name, *TIMES, "--output-file", "rows.csv")
    assert (status, rows_of(tmp_path / "rows.csv")) == (2, ROWS)
    assert f"{ROWS} rows written to rows.csv and rows.csv.json" in err
    status, out, err = done(tmp_path, "simulate", fmu.name, *TIMES, "--json")
    assert status == 2
    assert f'"rows": {ROWS}' in out
    assert err.count("error: ") == 1


@pytest.mark.thorough
def test_after_the_last_row_a_crash_is_a_warning(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("FreeInstance", "crash"))
    status, _, err = done(tmp_path, "simulate", fmu.name, *TIMES, "--output-file", "rows.csv")
    assert (status, rows_of(tmp_path / "rows.csv")) == (0, 101)
    assert f"was ended by {CRASH}, in fmi3FreeInstance of 'Misbehaving'" in err
    assert "All rows had been recorded: the results are complete." in err


@pytest.mark.thorough
def test_a_crash_while_the_error_is_measured_loses_nothing(tmp_path: Path) -> None:
    """Only the second run, with half the steps, is at 0.995 s."""
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "crash", since=0.995))
    options = ("--output-file", "rows.csv", "--check-step")
    status, _, err = done(tmp_path, "simulate", fmu.name, *TIMES, *options)
    assert rows_of(tmp_path / "rows.csv") == 101
    assert (status, f"was ended by {CRASH}, in fmi3DoStep" in err) == (2, True)


@pytest.mark.thorough
def test_a_call_is_ended_after_the_given_time(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "spin", since=0.5))
    options = ("--output-file", "rows.csv", "--call-timeout", "0.5")
    status, _, err = done(tmp_path, "simulate", fmu.name, *TIMES, *options)
    assert (status, rows_of(tmp_path / "rows.csv")) == (2, ROWS)
    assert "The call fmi3DoStep of 'Misbehaving' has not returned within 0.5 s" in err


@pytest.mark.thorough
def test_no_process_is_left_by_a_command_that_is_killed(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "spin", since=0.5))
    process = begun(tmp_path, "simulate", fmu.name, *TIMES, "--output-file", "rows.csv")
    wait_for_rows(process, tmp_path / "rows.csv")
    process.kill()
    process.communicate(timeout=PATIENCE)  # the other process has the pipes open while it is there
    assert rows_of(tmp_path / "rows.csv") == ROWS


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["stability", "budget"])
def test_a_command_with_many_runs_names_the_call_that_ended_it(
    command: str, tmp_path: Path
) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("ExitInitializationMode", "crash"))
    status, out, err = done(tmp_path, command, fmu.name, "--step-size", "1/10")
    assert (status, out) == (2, "")
    assert f"was ended by {CRASH}, in fmi3ExitInitializationMode of 'Misbehaving'." in err


@pytest.mark.thorough
def test_the_answer_is_that_of_the_other_process(tmp_path: Path) -> None:
    ball = reference_path("fmi3/BouncingBall.fmu")
    status, out, err = done(tmp_path, "simulate", ball, "--output-file", "rows.csv")
    assert (status, out) == (0, "")
    assert "301 rows written to rows.csv" in err


def test_incomplete_files_are_known_by_their_names(tmp_path: Path) -> None:
    one, other = own_name(tmp_path / "a.mat"), own_name(tmp_path / "b.mat")
    assert is_for_the_same(one, own_name(tmp_path / "a.mat"))
    assert not is_for_the_same(one, other)
    assert not is_for_the_same(one, tmp_path / "a.mat")
