"""Signals and other threads of the program that runs a simulation: what belongs to the program stays the program's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import PATIENCE

import fmimaster.session.launch
from fmimaster import Interrupted, Progress, Simulation, reference_path
from fmimaster.session.work_thread import Signals


def long_run(stop_time: float = 1e9) -> Simulation:
    return Simulation(
        reference_path("fmi3/Dahlquist.fmu"),
        stop_time=stop_time,
        step_size=0.5,
        output_interval=stop_time / 10,
    )


def test_a_handler_that_the_program_sets_during_a_run_in_a_thread_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ended, ticks = threading.Event(), threading.Semaphore(0)
    heard: list[int] = []

    def progress(_: Progress) -> None:
        ticks.release()
        if ended.is_set():
            raise TimeoutError

    def run() -> None:
        with pytest.raises(TimeoutError):
            long_run().run(progress)

    thread = threading.Thread(target=run)
    try:
        thread.start()
        ticks.acquire()
        signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
        for _ in range(4):
            ticks.acquire()
        ended.set()
        thread.join()
        assert "handler of SIGTERM" not in caplog.text  # else the signal would end this process
        signal.raise_signal(signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGTERM, before)


def test_a_run_inside_of_another_one_ends_with_it() -> None:
    told: list[str] = []

    def inner(progress: Progress) -> None:
        now = progress.time
        if now > 1e3 and not told:
            told.append("")
            signal.raise_signal(signal.SIGINT)
        if now > 5e7:
            raise TimeoutError

    def outer(_: Progress) -> None:
        try:
            long_run().run(inner)
        except Interrupted as error:
            told.append(str(error))
            raise

    with pytest.raises(Interrupted) as caught:
        long_run().run(outer)
    assert str(caught.value).startswith("Interrupted at t = ")
    assert told[1].startswith("Interrupted at t = ")


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_after_the_last_row_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, presses: int
) -> None:
    def press(*_: object) -> None:
        for _press in range(presses):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(fmimaster.session.launch, "finish_facts", press)
    with pytest.raises(Interrupted, match=r"had ended|at t = 10 s") as caught:
        long_run(10).run(output_file=tmp_path / "rows.csv")
    assert caught.value.results is not None
    assert caught.value.results.time[-1] == 10


def test_what_came_when_the_run_had_ended_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), Signals() as signals:  # noqa: PT012
        signals.is_held = True
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("backend", ["NATIVE", "REFERENCE"])
def test_a_program_can_end_during_a_run_in_a_thread_of_its_own(backend: str) -> None:
    code = f"""
import sys, threading, time
from fmimaster import Simulation, reference_path
from fmimaster.run import Backend
running = threading.Event()
path = reference_path("fmi3/Dahlquist.fmu")
simulation = Simulation(path, stop_time=1e9, step_size=0.5, output_interval=1e8, backend=Backend.{backend})
threading.Thread(target=simulation.run, args=[lambda *_: running.set()], daemon=True).start()
running.wait()
sys.exit(5)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 5, done.stderr


STILL = 10
"""The pipe is full if it has the same number of bytes so often, 0.05 s apart."""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_pipe_that_nobody_reads_is_not_the_fault_of_an_fmu(tmp_path: Path) -> None:
    import fcntl  # not there on Windows
    import termios

    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    before = threading.enumerate()
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        """When the pipe is full."""
        waiting = [0]
        while waiting[-1] == 0 or len(waiting) < STILL or len(set(waiting[-STILL:])) > 1:
            time.sleep(0.05)
            count = fcntl.ioctl(reader, termios.FIONREAD, bytes(4))
            waiting.append(int.from_bytes(count, sys.byteorder))
        signal.pthread_kill(main, signal.SIGINT)

    try:
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(Interrupted, match=r"The writing of the results did not return"):
            Simulation(reference_path("fmi3/Dahlquist.fmu"), stop_time=1e9, step_size=0.5).run(
                output_file=pipe
            )
        others = [
            (tmp_path / str(k)).open("wb") for k in range(4)
        ]  # one has the number of the pipe
    finally:
        os.close(reader)  # the abandoned thread goes on
    for thread in set(threading.enumerate()).difference(before):
        thread.join()
    for other in others:
        other.close()
        assert Path(other.name).read_bytes() == b""
