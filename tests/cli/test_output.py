"""What is printed on file descriptor 1 while FMUs run goes to the log, and the descriptor comes back as it was."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from fmimaster import reference_path, simulate
from fmimaster.fmu import process_state
from fmimaster.fmu.process_state import fmu_output_to_log

_C = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="calls a function that POSIX alone has")


def printed_by_c(text: bytes) -> None:
    """A text in the buffer of the C library."""
    for letter in text:
        _C.putchar(letter)


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "fmimaster")
    return caplog


def test_each_line_is_a_message(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with fmu_output_to_log("motor"):
        os.write(1, b"without buffer\n\n")
        printed_by_c(b"by C, without end")
    os.write(1, b"afterwards")
    assert capfd.readouterr().out == "afterwards"
    assert messages.messages == [
        "FMU output: motor: without buffer",
        "FMU output: motor: by C, without end",
    ]


def test_what_python_and_c_held_back_goes_where_it_was_meant_for(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    printed_by_c(b"C, ")
    sys.stdout.write("Python")
    with fmu_output_to_log():
        pass
    assert capfd.readouterr().out in ("C, Python", "PythonC, ")
    assert messages.messages == []


def test_output_of_any_length_does_not_block(messages: pytest.LogCaptureFixture) -> None:
    with fmu_output_to_log():
        os.write(1, b"x" * 3_000_000)
        os.write(1, b"\n" + b"line\n" * 20_000)
    assert sum(m.count("x") for m in messages.messages) == 3_000_000
    assert messages.messages.count("FMU output: line") == 20_000


@pytest.mark.skipif(sys.platform != "linux", reason="lists its descriptors")
@pytest.mark.parametrize("is_replaced", [False, True], ids=["closed", "replaced"])
def test_it_ends_although_an_fmu_has_taken_its_descriptors(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], is_replaced: bool
) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with fmu_output_to_log("motor"):
        os.write(1, b"first\n")
        while not messages.messages:  # until it is read
            time.sleep(0.001)
        taken = []
        for name in set(os.listdir("/proc/self/fd")) - before:
            with suppress(OSError):  # the descriptor of the list itself
                if os.readlink(f"/proc/self/fd/{name}").startswith("pipe:"):
                    taken.append(int(name))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in taken:
            os.dup2(nowhere, descriptor) if is_replaced else os.close(descriptor)
        os.close(nowhere)
    os.write(1, b"afterwards")
    assert len(taken) == 2
    assert capfd.readouterr().out == "afterwards"
    assert messages.messages == ["FMU output: motor: first"]
    if is_replaced:
        for descriptor in taken:  # they are the FMU's now
            os.close(descriptor)


@_POSIX  # fork
def test_it_ends_although_a_process_keeps_the_descriptor_open(
    messages: pytest.LogCaptureFixture,
) -> None:
    reading, writing = os.pipe()
    with fmu_output_to_log():
        child = os.fork()
        if child == 0:
            os.read(reading, 1)  # until the parent has left the block
            os._exit(0)
        os.write(1, b"parent\n")
    os.write(writing, b".")
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
    assert messages.messages == ["FMU output: parent"]


def test_the_descriptor_comes_back_after_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), fmu_output_to_log():
        raise ZeroDivisionError
    os.write(1, b"back")
    assert capfd.readouterr().out == "back"


def test_a_closed_descriptor_is_closed_again(messages: pytest.LogCaptureFixture) -> None:
    before = os.dup(1)
    os.close(1)
    try:
        with fmu_output_to_log():
            os.write(1, b"said\n")
        with pytest.raises(OSError, match=r"Bad file descriptor|WinError 6"):
            os.fstat(1)
    finally:
        os.dup2(before, 1)
        os.close(before)
    assert messages.messages == ["FMU output: said"]


def test_no_descriptor_and_no_thread_is_left() -> None:
    before = os.listdir("/proc/self/fd") if sys.platform == "linux" else None
    for _ in range(20):
        with fmu_output_to_log():
            os.write(1, b"text\n")
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == len(before)


# In Python


_SCRIPT = """
import logging, sys, threading
from fmimaster import PythonComponent, SystemBuilder, reference_path, simulate
from fmimaster import reference_path, simulate
from fmimaster.fmu import process_state
from fmimaster.fmu.process_state import fmu_output_to_log

handler = logging.StreamHandler(sys.stdout)  # keeps the stream
logging.getLogger("user").addHandler(handler)
logging.getLogger("user").setLevel(logging.INFO)

def step(component, t, h):
    print(f"step at {t:g}")
    logging.getLogger("user").info(f"log at {t:g}")

system = SystemBuilder()
system.add("talker", PythonComponent(outputs={"y": 0.0}, step=step))
system.add("faulty", reference_path("fmi2/Faulty.fmu"), {"fault": 7})
print("before")
for _ in range(2):
    simulate(system, stop_time=0.1, step_size=0.1)
print("after", sys.stdout.fileno(), sys.stdout.name)
"""


@pytest.mark.parametrize("unbuffered", [False, True], ids=["buffered", "unbuffered"])
def test_python_prints_as_ever_while_fmus_print_to_the_log(unbuffered: bool) -> None:
    """As in a script, whose standard output is a pipe: and one line says how to see the rest, once."""
    options = ["-u"] if unbuffered else []
    ended = subprocess.run(
        [sys.executable, *options, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    run = ["step at 0", "log at 0"]
    assert ended.stdout.splitlines() == ["before", *run, *run, "after 1 <stdout>"]
    assert ended.stderr.splitlines() == [
        "An FMU has printed lines that are not shown. To see them: logging.basicConfig(level=logging.INFO) in Python, "
        "--verbose on the command line."
    ]


def test_a_stream_that_owns_the_descriptor_prints_as_ever(
    messages: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ``sys.stdout = os.fdopen(1, "w", buffering=1)``, which scripts do for a buffer of lines."""
    before = os.dup(1)
    try:
        with os.fdopen(1, "w", encoding="utf-8", newline="") as own, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", own)
            with fmu_output_to_log():
                own.write("of Python\n")
                os.write(1, b"of an FMU\n")
            own.write("back\n")
        with pytest.raises(OSError, match=r"Bad file descriptor|WinError 6"):  # it still owns it
            os.fstat(1)
    finally:
        os.dup2(before, 1)
        os.close(before)
    assert capfd.readouterr().out == "of Python\nback\n"
    assert messages.messages == ["FMU output: of an FMU"]


def test_runs_in_several_threads_share_one_redirection(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """They end in any order, and the descriptor comes back with the last of them."""
    first, second = fmu_output_to_log("motor"), fmu_output_to_log("load")
    with first:
        os.write(1, b"alone\n")
        second.__enter__()
        os.write(1, b"both\n")
    os.write(1, b"still\n")
    second.__exit__(None, None, None)
    os.write(1, b"back")
    assert capfd.readouterr().out == "back"
    assert messages.messages[1:] == ["FMU output: both", "FMU output: still"]
    assert messages.messages[0].endswith("alone")  # the reader may see it when both are there


@_POSIX  # descriptors
def test_a_pipe_that_is_kept_serves_again_and_is_closed_when_it_is_let_go(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    before, keeper = threading.active_count(), object()
    process_state.keep_output_pipe(keeper)
    for n in range(3):
        with fmu_output_to_log(f"motor {n}"):
            os.write(1, b"line\nrest")
        assert messages.messages[-2:] == [f"FMU output: motor {n}: {t}" for t in ("line", "rest")]
        os.write(1, b"between")
        assert threading.active_count() == before + 1
    (kept,) = process_state._IDLE
    if (child := os.fork()) == 0:  # it has no thread that reads
        with fmu_output_to_log():
            os.write(1, b"of a child\n")
        os._exit(messages.messages[-1] != "FMU output: of a child")
    assert os.waitpid(child, 0)[1] == 0
    process_state.let_go_output_pipe(keeper)
    assert not process_state._IDLE
    assert not kept._reader.is_alive()
    assert capfd.readouterr().out == 3 * "between"


def test_a_run_in_python_logs_what_its_fmu_prints(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    fmu = reference_path("fmi3/Faulty.fmu")
    simulate(fmu, stop_time=0.1, step_size=0.1, start_values={"fault": 7})
    assert "FMU output: Faulty: Faulty: told to print at t = 0 s." in messages.messages
    assert capfd.readouterr().out == ""


@_POSIX  # flockfile
def test_an_fmu_that_hangs_with_the_lock_of_a_stream_stops_no_other_run(
    messages: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_state, "_MAY_HANG", threading.Event())
    monkeypatch.setattr(process_state, "_PATIENCE", 0.02)  # s
    stream = ctypes.c_void_p.in_dll(_C, "stdout")
    is_held, goes_on = threading.Event(), threading.Event()

    def hang() -> None:
        _C.flockfile(stream)
        is_held.set()
        goes_on.wait()
        _C.funlockfile(stream)

    fmu = threading.Thread(target=hang)
    fmu.start()
    is_held.wait()
    try:
        process_state.expect_hanging_streams()
        with fmu_output_to_log():
            os.write(1, b"text\n")
    finally:
        goes_on.set()
        fmu.join()
    assert messages.messages == ["FMU output: text"]
