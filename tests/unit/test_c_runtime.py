"""What C code changes in the process is found and put back, on each system by its own C library."""

from __future__ import annotations

import ctypes
import logging
import platform
import signal
import sys
from threading import Thread

import pytest

from fmimaster.fmu.c_runtime import c_library
from fmimaster.fmu.process_state import ProcessState

IGNORED = 1
"""SIG_IGN, in every C library."""

UPWARD = {("Windows", "AMD64"): 0x200, ("Linux", "x86_64"): 0x800, ("Darwin", "x86_64"): 0x800}
"""FE_UPWARD, by system and processor."""


def told(caplog: pytest.LogCaptureFixture, state: ProcessState) -> list[str]:
    state.put_back("'A'")
    messages = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    caplog.clear()
    state.put_back("'A'")
    assert not caplog.records  # it was put back
    return messages


def test_nothing_is_found_where_nothing_was_changed(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, ProcessState()) == []


def test_handlers_of_signals_are_put_back(caplog: pytest.LogCaptureFixture) -> None:
    state, change = ProcessState(), c_library().signal
    change.argtypes, change.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    change(signal.SIGINT, IGNORED)
    change(signal.SIGTERM, IGNORED)
    assert told(caplog, state) == [
        f"'A' has changed the handler of {name}, for the whole process. It was restored."
        for name in ("SIGINT", "SIGTERM")
    ]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_the_rounding_is_put_back(caplog: pytest.LogCaptureFixture) -> None:
    upward = UPWARD.get((platform.system(), platform.machine()))
    if upward is None:
        pytest.skip("the number of FE_UPWARD on this processor is not known here")
    state, third = ProcessState(), 1.0 / float("3")
    c_library().fesetround(upward)
    (message,) = told(caplog, state)
    assert message.startswith("'A' has changed the rounding of floating-point numbers")
    assert 1.0 / float("3") == third


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows has this mode")
def test_how_windows_tells_of_errors_is_put_back(caplog: pytest.LogCaptureFixture) -> None:
    state, system = ProcessState(), ctypes.CDLL("kernel32")
    before = system.GetErrorMode()
    system.SetErrorMode(before ^ 1)
    (message,) = told(caplog, state)
    assert message.startswith("'A' has changed how the system tells of errors (SetErrorMode)")
    assert system.GetErrorMode() == before


@pytest.mark.skipif(sys.platform == "win32", reason="a handler is read by setting another")
def test_several_threads_look_at_handlers_at_once() -> None:
    """The thread of a run, and the one that waits for it."""
    state = ProcessState()

    def look() -> None:
        for _ in range(3000):
            state.put_back_signals("nobody")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert state.changes == ()
