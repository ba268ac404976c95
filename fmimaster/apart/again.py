"""A command that starts itself again as the process of its run, where a process cannot be forked: Windows and macOS.

The other process has the same program, arguments, variables, folder and standard streams. It gets the memory and the spool
of :mod:`fmimaster.apart.shared_run`, and ends when this one does. On macOS, the libraries of the system do not work in a
forked process.
"""

from __future__ import annotations

import mmap
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any

from fmimaster.apart.anew import NewProcess, passed
from fmimaster.apart.shared_run import SIZE, SharedRun, flush_streams
from fmimaster.apart.watch import RunProcess

_VARIABLE = "FMIMASTER_RUN"
"""In the process of a run, and in no other, until it has begun: the name by which Windows finds the memory."""

_CLOSING = 5.0
"""Wall time in s that Windows gives a process whose console is closed."""
_CTRL_CLOSE = 2
"""CTRL_CLOSE_EVENT; events with larger numbers are the end of a session."""


def is_process_of_run() -> bool:
    """Whether this process was started by :func:`start`, and has not called :func:`begun` yet."""
    return _VARIABLE in os.environ


def start(spool: int | None) -> tuple[SharedRun, StartedAgain]:
    """Start the process of the run."""
    descriptors = [] if spool is None else [spool]
    if sys.platform == "win32":
        name = f"Local\\fmimaster-{secrets.token_hex(16)}"
        shared = SharedRun(spool, memory=mmap.mmap(-1, SIZE, tagname=name))
        return shared, StartedAgain(name, descriptors)
    with TemporaryFile(prefix="fmimaster-") as file:
        file.truncate(SIZE)
        shared = SharedRun(spool, memory=mmap.mmap(file.fileno(), SIZE))
        return shared, StartedAgain("", [file.fileno(), *descriptors])


def begun() -> SharedRun:
    """In the process of the run: what it shares with the one that has started it."""
    name = os.environ.pop(_VARIABLE)
    if sys.platform == "win32":
        spool = passed()
        memory = mmap.mmap(-1, SIZE, tagname=name)
    else:
        with suppress(OSError):
            os.setpgid(0, 0)  # Ctrl-C comes by the process that waits, as to a forked one
        file, *spool = passed()
        memory = mmap.mmap(file, SIZE)
        os.close(file)
    return SharedRun(spool[0] if spool else None, memory=memory)


class StartedAgain(RunProcess):
    """This command, started again with the same standard streams.

    Parameters
    ----------
    memory : str
        Its name.
    descriptors
        Those that it gets as well.
    """

    def __init__(self, memory: str, descriptors: Sequence[int]) -> None:
        flush_streams()
        streams = {"stdin": 0, "stdout": 1, "stderr": 2}
        self._process = NewProcess(sys.orig_argv[1:], descriptors, {_VARIABLE: memory}, **streams)
        super().__init__(self._process.pid)

    def has_ended(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    def kill(self) -> None:
        self._process.kill()

    def end(self, is_lost: bool) -> int:
        status = self._process.wait()
        if is_lost:
            self.kill()
        return status


def heed_the_end_of_the_console() -> None:
    """On Windows, let the end of the console end the command like Ctrl-Break, within the time that it gives."""
    if sys.platform == "win32":  # elsewhere it is SIGHUP
        import ctypes
        from time import sleep

        @ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
        def heed(event: int) -> int:
            if event < _CTRL_CLOSE:
                return 0  # Python's own
            signal.raise_signal(signal.SIGBREAK)
            sleep(_CLOSING)  # when it returns, Windows ends this process
            return 1

        _heeded.append(heed)
        ctypes.WinDLL("kernel32").SetConsoleCtrlHandler(heed, 1)


_heeded: list[Any] = []
"""Functions that the system calls, so that they stay."""
