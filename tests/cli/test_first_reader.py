"""What a first reader tripped over, each held by a test."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, reference
from processes import PATIENCE

from fmimaster import FileError, OptionError, Simulation, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Jacobi

Run = Callable[..., Outcome]


@pytest.fixture
def dahlquist() -> Path:
    return reference("fmi3/Dahlquist.fmu")


def test_an_output_never_overwrites_what_is_read(run: Run, dahlquist: Path, tmp_path: Path) -> None:
    fmu = shutil.copy(dahlquist, tmp_path / "a.fmu")
    before = Path(fmu).read_bytes()
    message = run("simulate", fmu, "--output-file", fmu).error
    assert f"would overwrite the input '{fmu}'" in message
    assert Path(fmu).read_bytes() == before


@pytest.mark.parametrize("option", ["--log-file", "--fmi-log-file", "--final-fmu-state-file"])
def test_no_log_overwrites_the_inputs(
    run: Run, dahlquist: Path, tmp_path: Path, option: str
) -> None:
    inputs = tmp_path / "u.csv"
    inputs.write_text("time,u\n0,1\n", encoding="utf-8")
    assert (
        "would overwrite the input"
        in run("simulate", dahlquist, "--input-file", inputs, option, inputs).error
    )
    assert inputs.read_text(encoding="utf-8") == "time,u\n0,1\n"


def test_a_log_and_the_results_need_two_names(run: Run, dahlquist: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    for option in ("--log-file", "--fmi-log-file"):
        message = run("simulate", dahlquist, "--output-file", one, option, one).error
        assert "would overwrite what --output-file writes" in message


def test_two_outputs_need_two_names(run: Run, dahlquist: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.png"
    message = run("simulate", dahlquist, "--output-file", one, "--plot", one).error
    assert "would overwrite what --output-file writes" in message


def test_a_step_that_fmus_cannot_see_is_refused() -> None:
    with pytest.raises(OptionError, match="step size 1e-17 s is too small"):
        simulate(reference_path("fmi3/Dahlquist.fmu"), start_time=1, stop_time=2, step_size=1e-17)


def test_the_last_row_is_recorded_whatever_the_interval() -> None:
    path = reference_path("fmi3/Dahlquist.fmu")
    r = simulate(path, stop_time=1, step_size=0.1, output_interval=0.35)
    assert r.time.tolist() == [0.0, 0.4, 0.7, 1.0]
    every = simulate(path, stop_time=1, step_size=0.1, output_interval=0.5)
    assert every.time.tolist() == [0.0, 0.5, 1.0]


def test_an_input_file_without_rows_or_with_nan_is_told(tmp_path: Path) -> None:
    table = tmp_path / "u.csv"
    for text, expected in (
        ("time,u\n", "has a header and no rows"),
        ("time,u\n0,1\n1,nan\n", "column 'u' is NaN at t = 1 s"),
    ):
        table.write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match=expected):
            simulate(reference_path("fmi3/Dahlquist.fmu"), stop_time=1, input=table)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told(run: Run, dahlquist: Path) -> None:
    message = run("simulate", dahlquist, "--output-file", "/dev/full").error
    assert "The results cannot be written to '/dev/full': No space left on device." in message


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"output_interval": "a"}, "output_interval: 'a', expected a positive number"),
        ({"tolerance": -1}, "tolerance: -1, expected a positive number"),
        ({"start_values": [("k", 1)]}, "expected a mapping of names to values"),
        ({"output_variables": 3}, "expected a sequence of names or globs"),
        ({"algorithm": Jacobi}, "Jacobi is a class. Give an object: Jacobi"),
        ({"threads": -1}, "threads: -1"),
        ({"backend": 3}, "backend: 3, expected one of"),
    ],
)
def test_options_are_checked_when_they_are_made(settings: dict[str, object], expected: str) -> None:
    with pytest.raises(OptionError, match=expected):
        Simulation(reference_path("fmi3/Dahlquist.fmu"), **settings)  # type: ignore[arg-type]


def test_a_builder_is_a_system_too() -> None:
    builder = SystemBuilder("one")
    builder.add("d", reference_path("fmi3/Dahlquist.fmu"))
    assert simulate(builder, stop_time=1, step_size=0.5).names == ("d.x", "d.dx")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_terminated_run_keeps_its_rows(tmp_path: Path) -> None:
    """SIGTERM is taken like Ctrl-C: batch systems send it."""
    table = tmp_path / "rows.csv"
    command = [sys.executable, "-m", "fmimaster", "simulate", "--step-size", "1e-6"]
    command += ["--stop-time", "1000", "--output-file", str(table)]
    process = subprocess.Popen([*command, str(reference_path("fmi3/Dahlquist.fmu"))])
    deadline = time.monotonic() + PATIENCE
    while (not table.exists() or table.stat().st_size < 10_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE) == 130
    assert len(table.read_text(encoding="utf-8").splitlines()) > 100


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_text_can_come_from_an_input_file(version: str, tmp_path: Path) -> None:
    table = tmp_path / "text.csv"
    table.write_text('time,String_input\n0,"a"\n0.5,"b"\n', encoding="utf-8")
    path = reference_path(f"{version}/Feedthrough.fmu")
    r = simulate(path, stop_time=1, step_size=0.25, input=table)
    # an input that is set at one point shows at the next
    assert r["String_output"].tolist() == ["a", "a", "a", "b", "b"]
