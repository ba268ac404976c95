"""How processes have ended, in words: signals, exceptions of Windows, exit status."""

from __future__ import annotations

import sys

import pytest

from fmimaster.apart.exit import KILLED, Exit, crash_of


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (None, "was lost with the process that had started it"),
        (0, "ended with exit status 0"),
        (255, "ended with exit status 255"),
        (-11, "was ended by SIGSEGV"),
        (-99, "was ended by signal 99"),
        (0xC0000005, "was ended by an access violation (0xC0000005)"),
        (0xC00000FD, "was ended by a stack overflow (0xC00000FD)"),
        (0xC0000374, "was ended by a heap corruption (0xC0000374)"),
        (0xC0000135, "was ended by a missing DLL (0xC0000135)"),
        (0xC0000999, "was ended by an exception (0xC0000999)"),
        (KILLED, "was ended by the process that had started it"),
    ],
)
def test_an_end_is_told_in_words(code: int | None, how: str) -> None:
    assert Exit(code).how == how


def test_the_exit_status_of_abort_is_named_on_windows() -> None:
    how = "ended with exit status 3"
    assert Exit(3).how == (f"{how} (as by abort)" if sys.platform == "win32" else how)


@pytest.mark.parametrize(
    ("words", "signal"),
    [
        ("access violation writing 0x0000000000000000", "an access violation (0xC0000005)"),
        ("stack overflow", "a stack overflow (0xC00000FD)"),
        ("single step", "an exception (0x80000000)"),
    ],
)
def test_a_crash_that_ctypes_has_caught_is_found(words: str, signal: str) -> None:
    error = OSError(f"exception: {words}")
    behind = ValueError("the instantiation has failed")
    behind.__cause__ = error
    for found in (crash_of(error), crash_of(behind)):
        assert found is not None
        assert found.signal == signal


def test_other_errors_are_no_crashes() -> None:
    errors = (OSError(5, "exception: it is full"), ValueError("exception: stack overflow"), None)
    assert [crash_of(error) for error in errors] == [None, None, None]
