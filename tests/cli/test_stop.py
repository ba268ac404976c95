"""A run in a process of its own is ended by a signal: rows stay, temporary folders do not, the exit status is 130.

Each case takes more than a second. All calls in which an FMU can hang, and all signals, are tried with

    FMIMASTER_STOP=all pytest tests/cli/test_stop.py
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from forks import Begun, Forks
from misbehaving_fmu import VERSIONS, Act, misbehaving
from processes import PATIENCE

if sys.platform == "win32":
    pytest.skip("signals of POSIX", allow_module_level=True)

BACKENDS = ("native", "reference")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Started:
    """``fmimaster simulate`` in a process of its own."""

    process: Begun
    table: Path
    trace: Path
    temporary: Path

    def wait_for(self, call: str, times: int = 1) -> None:
        """Until the FMU has been called so often in this way."""
        until = time.monotonic() + PATIENCE
        while not (
            self.trace.exists()
            and self.trace.read_text(encoding="utf-8").count(f" {call}\n") >= times
        ):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)

    def ended_by(self, *numbers: signal.Signals) -> str:
        """What it prints when it gets these signals; the exit status is 130, and no temporary file stays."""
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(0.2)
        _, printed = self.process.communicate()
        assert self.process.returncode == 130, printed
        assert list(self.temporary.iterdir()) == []
        assert "Traceback" not in printed
        return printed

    @property
    def times(self) -> list[float]:
        """Of the rows in the file, in s; all its lines are whole."""
        text = self.table.read_text(encoding="utf-8")
        assert text.endswith("\n")
        return [float(line.partition(",")[0]) for line in text.splitlines()[1:]]


Start = Callable[..., Started]


AS_A_JOB = "import os; os.setpgrp()"
"""In the process of the command, as a shell does it: a group of its own, which Ctrl-Z can stop."""


@pytest.fixture
def start(forks: Forks, tmp_path: Path) -> Iterator[Start]:
    """start(*acts, version, backend): a simulation of a misbehaving FMU, of steps of 0.1 s."""
    started = []

    def begin(
        *acts: Act,
        version: str = "fmi3",
        backend: str = "native",
        stop_time: float = 1e6,
        options: tuple[str, ...] = (),
        **environment: str,
    ) -> Started:
        trace, table, temporary = (tmp_path / n for n in ("trace", "rows.csv", "temporary"))
        temporary.mkdir()
        fmu = misbehaving(tmp_path, version, *acts, trace=trace)
        times = ("--step-size", "0.1", "--stop-time", stop_time, "--output-file", table)
        process = forks.begin(
            *("simulate", fmu, *times, *options, "--backend", backend),
            environment={"TMPDIR": str(temporary), **environment},
            first=AS_A_JOB,
        )
        started.append(process)
        return Started(process, table, trace, temporary)

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_fmu_that_hangs_in_do_step_is_left_alone_after_ctrl_c(
    start: Start, backend: str
) -> None:
    run = start(Act("DoStep", "hang", since=0.5), backend=backend)
    run.wait_for("DoStep", 6)
    assert run.ended_by(signal.SIGINT).splitlines()[-2:] == [
        f"6 rows written to {run.table} and rows.csv.json",
        "fmimaster: error: Interrupted at t = 0.5 s. The call fmi3DoStep of 'Misbehaving' did not return, and its "
        "thread was abandoned.",
    ]
    assert run.times == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_a_second_ctrl_c_waits_for_nothing(start: Start) -> None:
    run = start(Act("DoStep", "hang", since=0.5))
    run.wait_for("DoStep", 6)
    assert "did not return, and its thread was abandoned" in run.ended_by(
        signal.SIGINT, signal.SIGINT
    )
    assert len(run.times) == 6


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("Load", "The loading of the library of "),
        ("Instantiate", "The instantiation of 'Misbehaving'"),
        ("FreeInstance", "The call fmi2FreeInstance of 'Misbehaving'"),
    ],
)
def test_before_the_first_row_and_after_the_last_one_too(
    start: Start, call: str, words: str
) -> None:
    run = start(Act(call, "hang"), stop_time=1, version="fmi2")
    run.wait_for(call)
    told = run.ended_by(signal.SIGTERM)
    assert words in told
    assert "did not return, and its thread was abandoned." in told
    assert len(run.times) == 11 if call == "FreeInstance" else not run.table.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="processes of FMUs need Linux")
def test_an_isolated_fmu_that_hangs_when_it_is_loaded_is_named(start: Start) -> None:
    run = start(Act("Load", "hang"), options=("--isolate", "all"))
    run.wait_for("Load")
    told = "The instantiation of 'Misbehaving' did not return, and its thread was abandoned."
    assert told in run.ended_by(signal.SIGINT)


@pytest.mark.parametrize(
    "acts",
    [
        (Act("Instantiate", "block_signals"), Act("DoStep", "sleep", 0.01)),
        (Act("EnterInitializationMode", "ignore_sigint"), Act("DoStep", "sleep", 0.01)),
        (Act("DoStep", "flood", 1000),),
    ],
    ids=["signals blocked", "handler replaced", "messages without end"],
)
def test_an_fmu_that_returns_is_freed(start: Start, acts: tuple[Act, ...]) -> None:
    run = start(*acts)
    run.wait_for("DoStep", 20)
    time.sleep(0.3)  # a handler is looked after ten times a second
    printed = run.ended_by(signal.SIGINT)
    assert f"error: Interrupted at t = {run.times[-1]:.12g} s.\n" in printed
    assert " FreeInstance\n" in run.trace.read_text(encoding="utf-8")


def test_rows_reach_the_file_while_an_fmu_takes_its_time(start: Start) -> None:
    run = start(Act("DoStep", "hang", since=0.5))
    run.wait_for("DoStep", 6)
    until = time.monotonic() + PATIENCE
    while not run.table.exists() or run.table.read_text(encoding="utf-8").count("\n") < 7:
        assert time.monotonic() < until
        time.sleep(0.05)
    run.ended_by(signal.SIGINT, signal.SIGINT)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_z_stops_the_run_too_and_both_go_on(start: Start) -> None:
    run = start()
    run.wait_for("DoStep")
    run.process.send_signal(signal.SIGTSTP)
    until = time.monotonic() + PATIENCE
    while (
        Path(f"/proc/{run.process.pid}/stat")
        .read_text(encoding="utf-8")
        .rpartition(")")[2]
        .split()[0]
        != "T"
    ):
        assert time.monotonic() < until
        time.sleep(0.02)
    calls = run.trace.stat().st_size
    time.sleep(0.2)
    assert run.trace.stat().st_size == calls
    run.process.send_signal(signal.SIGCONT)
    while run.trace.stat().st_size == calls:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert "Interrupted" in run.ended_by(signal.SIGINT)


CASES = tuple(
    product(
        ("Instantiate", "EnterInitializationMode", "DoStep", "Get", "Terminate", "FreeInstance"),
        ("hang", "spin", "flood_for_ever"),
        VERSIONS,
        BACKENDS,
        SIGNALS,
    )
)


@pytest.mark.parametrize(
    ("call", "action", "version", "backend", "number"),
    CASES if os.environ.get("FMIMASTER_STOP") == "all" else (),
)
def test_every_call(
    start: Start, call: str, action: str, version: str, backend: str, number: signal.Signals
) -> None:
    since = 0.5 if call in ("DoStep", "Get") else -float("inf")
    run = start(Act(call, action, since=since), version=version, backend=backend, stop_time=1)
    run.wait_for(call, {"DoStep": 6, "Get": 8}.get(call, 1))
    printed = run.ended_by(number)
    assert "of 'Misbehaving' did not return, and its thread was abandoned." in printed
    if call not in ("Instantiate", "EnterInitializationMode"):
        assert len(run.times) >= 5
