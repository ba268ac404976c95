"""What is printed on file descriptor 1 while FMUs run goes to the log, and the descriptor comes back as it was."""

from __future__ import annotations

import ctypes
import logging
import os
import sys

import pytest

from fmimaster.fmu.output import fmu_output_to_log

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="calls the C library by its POSIX names"
)


@pytest.fixture
def messages(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "fmimaster")
    return caplog


def test_each_line_is_a_message(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with fmu_output_to_log("motor"):
        os.write(1, b"without buffer\n\n")
        ctypes.CDLL(None).printf(b"by C, without end")
    os.write(1, b"afterwards")
    assert capfd.readouterr().out == "afterwards"
    assert messages.messages == [
        "FMU output: motor: without buffer",
        "FMU output: motor: by C, without end",
    ]


def test_what_python_and_c_held_back_goes_where_it_was_meant_for(
    messages: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    ctypes.CDLL(None).printf(b"C, ")
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
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(1)
    finally:
        os.dup2(before, 1)
        os.close(before)
    assert messages.messages == ["FMU output: said"]


def test_no_descriptor_and_no_thread_is_left() -> None:
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else None
    for _ in range(20):
        with fmu_output_to_log():
            os.write(1, b"text\n")
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == len(before)
