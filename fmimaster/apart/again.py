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
import threading
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any

from fmimaster.apart.shared_run import SIZE, SharedRun, flush_streams

_VARIABLE = "FMIMASTER_RUN"
"""Where the process of a run finds the memory and the spool; in no other process."""

_CLOSING = 5.0
"""Wall time in s that Windows gives a process whose console is closed."""
_CTRL_CLOSE = 2
"""CTRL_CLOSE_EVENT; events with larger numbers are the end of a session."""


def is_process_of_run() -> bool:
    """Whether this process was started by :func:`start`, and has not called :func:`begun` yet."""
    return _VARIABLE in os.environ


if sys.platform == "win32":
    import ctypes
    import msvcrt
    from time import sleep

    from fmimaster.apart.job import Job, own_python, show_no_dialogs

    def start(spool: int | None) -> tuple[SharedRun, StartedAgain]:
        """Start the process of the run."""
        tag = f"Local\\fmimaster-{secrets.token_hex(16)}"
        shared = SharedRun(spool, memory=mmap.mmap(-1, SIZE, tagname=tag))
        handles = [] if spool is None else [msvcrt.get_osfhandle(spool)]
        for handle in handles:
            os.set_handle_inheritable(handle, True)
        program, variables = own_python()
        words = {_VARIABLE: " ".join([tag, *map(str, handles)]), **variables}
        startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles})
        return shared, StartedAgain(program, words, startupinfo=startup)

    def begun() -> SharedRun:
        """In the process of the run: what it shares with the one that has started it."""
        tag, *handles = os.environ.pop(_VARIABLE).split(" ")
        show_no_dialogs()
        spool = msvcrt.open_osfhandle(int(handles[0]), os.O_RDWR | os.O_BINARY) if handles else None
        return SharedRun(spool, memory=mmap.mmap(-1, SIZE, tagname=tag))

    def heed_the_end_of_the_console() -> None:
        """Let the end of the console end the command like Ctrl-Break, within the time that Windows gives."""

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

    class _Group:
        """The process and what it has started: they end with this process."""

        def __init__(self, process: subprocess.Popen[Any]) -> None:
            self._job = Job(int(process._handle))

        def kill(self) -> None:
            self._job.kill()

        def pass_on(self, number: int) -> None:
            """Nothing: it has the same console, and got what this process got."""

        def send(self, number: int) -> None:
            """Nothing: there is no such signal."""

else:

    def start(spool: int | None) -> tuple[SharedRun, StartedAgain]:
        """Start the process of the run."""
        with TemporaryFile(prefix="fmimaster-") as file:
            file.truncate(SIZE)
            shared = SharedRun(spool, memory=mmap.mmap(file.fileno(), SIZE))
            ends, _stays_open = os.pipe()  # its end is that of this process
            passed = [file.fileno(), ends, *([] if spool is None else [spool])]
            words = {_VARIABLE: " ".join(map(str, passed))}
            process = StartedAgain(sys.executable, words, pass_fds=passed)
        os.close(ends)
        return shared, process

    def begun() -> SharedRun:
        """In the process of the run: what it shares with the one that has started it."""
        memory, ends, *spool = map(int, os.environ.pop(_VARIABLE).split(" "))
        with suppress(OSError):
            os.setpgid(0, 0)  # Ctrl-C comes by the process that waits, as to a forked one
        for number in (ends, *spool):
            os.set_inheritable(number, False)

        def end_with_parent() -> None:
            os.read(ends, 1)
            os.killpg(0, signal.SIGKILL)

        threading.Thread(target=end_with_parent, daemon=True).start()
        shared = SharedRun(spool[0] if spool else None, memory=mmap.mmap(memory, SIZE))
        os.close(memory)
        return shared

    def heed_the_end_of_the_console() -> None:
        """Nothing: it is SIGHUP."""

    class _Group:
        """The process and what it has started."""

        def __init__(self, process: subprocess.Popen[Any]) -> None:
            self._process = process

        def kill(self) -> None:
            self._process.kill()  # perhaps it has no group yet
            self.send(signal.SIGKILL)

        def pass_on(self, number: int) -> None:
            self._process.send_signal(number)

        def send(self, number: int) -> None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


class StartedAgain:
    """This command, started again.

    Parameters
    ----------
    program : str
        What runs Python.
    variables
        Those that are new for it.
    """

    def __init__(self, program: str, variables: Mapping[str, str], **options: Any) -> None:
        flush_streams()
        self._process = subprocess.Popen(
            [program, *sys.orig_argv[1:]],
            env={**os.environ, **variables},
            stdin=0,
            stdout=1,
            stderr=2,
            **options,
        )
        self._group = _Group(self._process)
        self.pid = self._process.pid

    def has_ended(self, seconds: float) -> bool:
        """Whether it ends within this wall time in s."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def is_stopped(self) -> bool:
        """Not known here."""
        return False

    def pass_on(self, number: int) -> None:
        """Send a signal that this process has got, if it has not got it too."""
        self._group.pass_on(number)

    def stop_or_continue(self, number: int) -> None:
        """Send SIGSTOP or SIGCONT to it and to what it has started."""
        self._group.send(number)

    def kill(self) -> None:
        """End it, and what it has started."""
        self._group.kill()

    def end(self, is_lost: bool) -> int:
        """Its exit status, after it has ended; what a lost one has started ends with it."""
        status = self._process.wait()
        if is_lost:
            self.kill()
        return status
