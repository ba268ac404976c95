"""What an FMU changes in the process is put back, with one warning; what it does to the process ends its run only."""

from __future__ import annotations

import locale
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from misbehaving_fmu import Act, misbehaving
from processes import PATIENCE

from fmimaster import Interrupted, Progress, Simulation, reference_path, resume
from fmimaster.base.errors import CallError, InputError
from fmimaster.fmu.process_state import LOADING, ProcessState
from fmimaster.results.csv import read_csv
from fmimaster.run import Backend
from fmimaster.session.checkpoint_file import CheckpointFile
from fmimaster.session.checkpoints import Checkpoints

pytestmark = [
    pytest.mark.in_this_process("what FMUs change in the process of the run is put back"),
]

BACKENDS = (Backend.NATIVE, Backend.REFERENCE)


def run(fmu: Path, backend: Backend = Backend.NATIVE, **settings: object) -> object:
    return Simulation(fmu, backend=backend, **settings).run()  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["Load", "Instantiate", "DoStep", "Terminate", "FreeInstance"])
@pytest.mark.parametrize(
    ("action", "argument", "words"),
    [
        ("chdir", "/", f"the working directory to '{os.path.abspath('/')}'"),
        ("umask", "000", "the file mode mask (umask) to 000"),
        ("round_up", "", "the rounding of floating-point numbers"),
        ("ignore_sigint", "", "the handler of SIGINT"),
    ],
)
def test_it_is_put_back_with_one_warning(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    call: str,
    action: str,
    argument: str,
    words: str,
) -> None:
    before = os.getcwd(), signal.getsignal(signal.SIGINT)
    mask = os.umask(0o022)
    try:
        run(misbehaving(tmp_path, "fmi3", Act(call, action, argument)))
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(mask)
    assert (os.getcwd(), signal.getsignal(signal.SIGINT)) == before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    if (call, action) == ("Load", "chdir"):
        return  # fmpy has put it back already
    assert told == [f"'Misbehaving' has changed {words}, for the whole process. It was restored."]


def test_the_locale_is_put_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = locale.setlocale(locale.LC_ALL)
    other = "C" if before != "C" else "C.UTF-8"
    run(misbehaving(tmp_path, "fmi2", Act("DoStep", "locale", other)))
    assert locale.setlocale(locale.LC_ALL) == before
    assert "'Misbehaving' has changed the locale" in caplog.text


def test_an_fmu_that_changes_nothing_is_not_accused(caplog: pytest.LogCaptureFixture) -> None:
    run(reference_path("fmi3/Dahlquist.fmu"))
    assert caplog.records == []


def test_the_file_is_where_it_was_meant_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fmu = misbehaving(tmp_path, "fmi3", Act("Instantiate", "chdir", "/"))
    Simulation(fmu).run(output_file="rows.csv")
    assert read_csv(tmp_path / "rows.csv").rows == 11


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_rows_and_times_agree_after_a_call_that_failed(
    tmp_path: Path, backend: Backend
) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "return", 3, since=500.0))
    with pytest.raises(CallError) as caught:
        run(fmu, backend, stop_time=1000, step_size=0.5)
    results = caught.value.results
    assert results.rows == results.statistics.rows == 1001
    assert results.statistics.steps == sum(s.count for s in results.steps) == 1000
    assert results.statistics.attempts == 1001
    assert results.time[-1] == caught.value.time == results.steps[-1].end == 500.0


@pytest.mark.parametrize("interval", [None, 1000.0])
def test_an_interruption_tells_the_last_row_of_the_file(
    tmp_path: Path, interval: float | None
) -> None:
    def press_ctrl_c(progress: Progress) -> None:
        if progress.time > 1e4:
            raise KeyboardInterrupt

    simulation = Simulation(
        reference_path("fmi3/Dahlquist.fmu"), stop_time=1e9, step_size=0.5, output_interval=interval
    )
    table = tmp_path / "rows.csv"
    with pytest.raises(Interrupted) as caught:
        simulation.run(press_ctrl_c, output_file=table)
    rows = read_csv(table)
    statistics = caught.value.results.statistics
    assert str(caught.value) == f"Interrupted at t = {rows.time[-1]:.12g} s."
    assert caught.value.time == rows.time[-1] == statistics.steps * 0.5
    assert statistics.rows == rows.rows


def test_a_real_ctrl_c_in_python_is_interrupted_with_the_results(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "sleep", 4.0, since=0.5), trace=trace)
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        """In the sixth step, however late a loaded machine comes to it."""
        while not (trace.exists() and trace.read_text(encoding="utf-8").count(" DoStep\n") == 6):
            time.sleep(0.02)
        if (
            sys.platform == "win32"
        ):  # it has no signals to threads; Python's handler is that of the main one
            signal.raise_signal(signal.SIGINT)
        else:
            signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(Interrupted, match=r"DoStep of 'Misbehaving' did not return") as caught:
        Simulation(fmu).run()
    assert caught.value.results.time.tolist() == [k / 10 for k in range(6)]


def test_ctrl_c_before_the_first_step_of_a_resumed_run(
    tmp_path: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of the first part are written, which takes longer than the loop that has not begun."""
    file, table = tmp_path / "a.checkpoint", tmp_path / "rows.csv"
    simulation = Simulation(
        reference_path("fmi3/Dahlquist.fmu"), stop_time=100, checkpoint=file, backend=backend
    )
    with simulation.start(output_file=table) as run:
        run.advance_to(50)
    go_on = Checkpoints._continue

    def press_ctrl_c(self: Checkpoints, resumed: CheckpointFile) -> None:
        go_on(self, resumed)
        session: Any = self._session
        session.rows.writing_seconds += 1.0  # of many rows, to a slow disk
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "_continue", press_ctrl_c)
    with pytest.raises(Interrupted, match="Interrupted at t = 50 s") as caught:
        resume(file)
    assert caught.value.results.time[-1] == read_csv(table).time[-1] == 50
    assert all(i.seconds >= 0 for i in caught.value.results.statistics.instances)


def test_an_old_file_stays_until_there_is_a_row(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("old\n", encoding="utf-8")
    fmu = misbehaving(tmp_path, "fmi3", Act("ExitInitializationMode", "return", 3))
    with pytest.raises(CallError):
        Simulation(fmu).run(output_file=table)
    assert table.read_text(encoding="utf-8") == "old\n"
    table.unlink()
    with pytest.raises(CallError):
        Simulation(fmu).run(output_file=table)
    assert not table.exists()


@pytest.mark.parametrize(
    "how",
    [
        "itself",
        pytest.param(
            "symbolic link",
            marks=pytest.mark.skipif(
                sys.platform == "win32", reason="a link needs a privilege of Windows"
            ),
        ),
        "hard link",
        "another FMU",
    ],
)
def test_an_fmu_is_never_overwritten(tmp_path: Path, how: str) -> None:
    fmu = misbehaving(tmp_path, "fmi3")
    before, table = fmu.read_bytes(), tmp_path / "rows.csv"
    if how == "itself":
        table = fmu
    elif how == "symbolic link":
        table.symlink_to(fmu)
    elif how == "hard link":
        table.hardlink_to(fmu)
    else:
        table.write_bytes(before)
    with pytest.raises(
        InputError, match=r"would (be overwritten|overwrite)|has the suffix '\.fmu'"
    ):
        Simulation(fmu).run(output_file=table)
    assert table.read_bytes() == fmu.read_bytes() == before


@pytest.mark.parametrize("option", ["--output-file", "--plot", "--log-file"])
def test_no_option_overwrites_an_fmu(
    tmp_path: Path, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fmu = misbehaving(tmp_path, "fmi3")
    before, link = fmu.read_bytes(), tmp_path / "out.svg"
    link.hardlink_to(fmu)
    outcome = command(capfd, "simulate", fmu, option, link)
    assert "Choose another name." in outcome.error
    assert fmu.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file of this name")
def test_the_standard_output_by_its_name_has_the_rows(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "print", "printed"))
    arguments = ["simulate", str(fmu), "--output-file", "/dev/stdout"]
    done = subprocess.run(
        [sys.executable, "-m", "fmimaster", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert [line.partition(",")[0] for line in done.stdout.splitlines()[:2]] == ['"time"', "0.0"]
    assert len(done.stdout.splitlines()) == 12


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_messages_of_two_runs_at_a_time_are_not_mixed(tmp_path: Path, version: str) -> None:
    """Both have an instance of the same name; the one says what the other does not."""
    told = {}
    fmus = {}
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        acts = [Act("DoStep", "say", name), Act("DoStep", "sleep", 0.02)]
        fmus[name] = misbehaving(folder, version, *acts, Act("DoStep", "return", 3, since=0.75))

    def simulate(name: str) -> None:
        with pytest.raises(CallError) as caught:
            run(fmus[name])
        told[name] = set(caught.value.messages)

    threads = [threading.Thread(target=simulate, args=(name,)) for name in fmus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {"one": {"one"}, "two": {"two"}}


def test_the_folder_in_which_another_run_loads_a_library_is_not_that_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that began then put that folder back, for the whole process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binaries").mkdir()
    states: list[ProcessState] = []
    beginning = threading.Thread(target=lambda: states.append(ProcessState()))
    with LOADING:
        os.chdir(tmp_path / "binaries")
        beginning.start()
        beginning.join(0.05)
        os.chdir(tmp_path)
    beginning.join()
    states[0].put_back_process("nobody")
    assert Path.cwd() == tmp_path
    assert states[0].changes == ()
