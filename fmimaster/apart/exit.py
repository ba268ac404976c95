"""How a process has ended, in words: by a signal, by an exception of Windows, or with an exit status."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import NamedTuple, NoReturn, Protocol

KILLED = 0xE0464D49
"""Exit status of processes that a job ends: of no exception of Windows or of a compiler."""

_EXCEPTIONS = {
    0x40000015: "an abort",
    0x80000003: "a breakpoint",
    0xC0000005: "an access violation",
    0xC0000006: "a page that could not be read",
    0xC0000017: "a lack of memory",
    0xC000001D: "an illegal instruction",
    0xC0000025: "an exception from which it could not continue",
    0xC000008C: "an index outside of an array",
    0xC000008E: "a division by zero",
    0xC0000090: "an invalid floating-point operation",
    0xC0000091: "a floating-point overflow",
    0xC0000094: "an integer division by zero",
    0xC0000095: "an integer overflow",
    0xC0000096: "a privileged instruction",
    0xC00000FD: "a stack overflow",
    0xC0000135: "a missing DLL",
    0xC0000139: "a DLL that lacks a function",
    0xC000013A: "Ctrl-C",
    0xC0000142: "a DLL that could not start",
    0xC0000374: "a heap corruption",
    0xC0000409: "a fail-fast exception, as of a stack buffer overrun or an abort",
    0xC0000417: "an invalid argument of a C function",
    0xC0000420: "an assertion",
    0xE06D7363: "a C++ exception that nothing has caught",
}
"""Exit status of Windows → what has ended the process."""

_CAUGHT = {
    "access violation": 0xC0000005,
    "float divide by zero": 0xC000008E,
    "integer divide by zero": 0xC0000094,
    "stack overflow": 0xC00000FD,
}
"""What ctypes says of an exception of Windows → its exit status."""

_FIRST_EXCEPTION = 0x80000000
_ABORT = 3
"""Exit status of ``abort`` in the C library of Windows."""


class HowEnded(Protocol):
    """How a process has ended, on this machine or on another one."""

    @property
    def how(self) -> str:
        """In words, after the name of the process."""
        ...

    @property
    def signal(self) -> str:
        """The signal that has ended it; empty if it was none."""
        ...


class Exit(NamedTuple):
    """How a process has ended."""

    code: int | None
    """As ``subprocess.Popen.returncode`` has it; None if it is not known."""

    @property
    def signal(self) -> str:
        """The signal or the exception of Windows that has ended it, in words; empty if it was none."""
        if self.code is None:
            return ""
        if self.code < 0:
            return signal_name(-self.code)
        if self.code == KILLED:
            return "the process that had started it"
        if self.code in _EXCEPTIONS or self.code >= _FIRST_EXCEPTION:
            return f"{_EXCEPTIONS.get(self.code, 'an exception')} (0x{self.code:08X})"
        return ""

    @property
    def how(self) -> str:
        """The end in words, after the name of the process."""
        if self.code is None:
            return "was lost with the process that had started it"
        if self.signal:
            return f"was ended by {self.signal}"
        is_abort = self.code == _ABORT and sys.platform == "win32"
        return f"ended with exit status {self.code}{' (as by abort)' if is_abort else ''}"

    def repeat(self) -> NoReturn:
        """End this process in the same way, if that was an exception of Windows."""
        os._exit((self.code or 0) - 2**32)  # the same bits, as a C int


def crash_of(error: BaseException | None) -> Exit | None:
    """The exception of Windows that an error tells of, or was raised from: ctypes goes on after it, with an OSError."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is None:
            first, _, said = str(error).partition("exception: ")
            if not first and said:
                codes = (code for words, code in _CAUGHT.items() if said.startswith(words))
                return Exit(next(codes, _FIRST_EXCEPTION))
        error = error.__cause__
    return None


def signal_name(number: int) -> str:
    """``"SIGSEGV"``; the number of a signal without a name."""
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
