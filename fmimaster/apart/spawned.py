"""Processes that are started anew for each function or FMU, where they are not forked: on Windows and macOS.

A new one imports for a second before it can begin, so one waits ready for the next function.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

from fmimaster.apart.exit import Exit
from fmimaster.apart.server import Channel, Start, limit, run_started
from fmimaster.apart.streams import End, Waiting, pair, pipe

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[3:]; from fmimaster.apart.spawned import main; "
    "main(int(sys.argv[1]), sys.argv[2].split())"
)
"""It imports nothing before the path is set: the working directory may have files with the names of modules."""

_STARTED = b"!"
"""What a new process writes when it has imported."""

Popen = subprocess.Popen[bytes]


class Spawned:
    """A process that was started anew.

    Parameters
    ----------
    modules
        What it imports at once.

    Attributes
    ----------
    stream, output : End
        To its channel, and from its standard output and standard error.
    report : int
        What can be waited for until it has ended: a descriptor, on Windows a handle.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self.stream, theirs = pair()
        self.output, output = pipe()
        try:
            arguments = [" ".join(modules), *(os.path.abspath(p) for p in sys.path)]
            self._process = _started(theirs, output, arguments)
        except BaseException:
            self.stream.close()
            self.output.close()
            raise
        finally:
            os.close(theirs)
            os.close(output)
        self.pid = self._process.pid
        self._kin = _Kin(self._process)
        self.report = self._kin.report
        self.further: Sequence[int] = ()
        self._has_started = self._is_over = False

    def give(self, descriptors: Sequence[int]) -> None:
        """Let the process have these descriptors as well."""
        self.further = _given(self.stream, self._process, descriptors)

    def wait_for_start(self) -> None:
        """Wait until it has imported what it needs, or has ended."""
        waiting = Waiting(self.report, self.stream)
        while not self._has_started and self.ended() is None:
            waiting.ready(None)
            self._has_started = bool(self.stream.read(len(_STARTED)))

    def ended(self) -> Exit | None:
        """How it has ended; None if it runs."""
        code = self._process.poll()
        if code is None:
            return None
        if not self._is_over:
            self._is_over = True
            self._kin.kill()  # what it has started
        return Exit(code)

    def kill(self) -> None:
        """End it and all that it has started, and wait for that."""
        self._kin.kill()
        self._process.wait()

    def forget(self) -> None:
        """In a fork of the process that has started it: it belongs to that one."""
        self._process.returncode = 0  # no warning that it still runs
        self.close()

    def close(self) -> None:
        """Give up all that belongs to it here; it ends then if it has not."""
        self.stream.close()
        self.output.close()
        self._kin.close()


if sys.platform == "win32":
    import _winapi
    import msvcrt

    from fmimaster.apart.job import Job, own_python, show_no_dialogs
    from fmimaster.base.memory import private_memory

    def _started(theirs: int, output: int, arguments: Sequence[str]) -> Popen:
        handle = msvcrt.get_osfhandle(theirs)
        os.set_handle_inheritable(handle, True)
        python, variables = own_python()
        return subprocess.Popen(
            [
                python,
                *subprocess._args_from_interpreter_flags(),
                "-c",
                _PROGRAM,
                str(handle),
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **variables},
            startupinfo=subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]}),
            creationflags=subprocess.CREATE_NO_WINDOW,  # Ctrl-C belongs to the process that has started it
        )

    class _Kin:
        """A process and all that it starts: a job."""

        def __init__(self, process: Popen) -> None:
            self.report = int(process._handle)
            self._job = Job(self.report)

        def kill(self) -> None:
            self._job.kill()

        def close(self) -> None:
            self._job.close()

    def _given(stream: End, process: Popen, descriptors: Sequence[int]) -> list[int]:
        here, there = _winapi.GetCurrentProcess(), int(process._handle)
        handles = [msvcrt.get_osfhandle(descriptor) for descriptor in descriptors]
        same = 0, False, _winapi.DUPLICATE_SAME_ACCESS
        return [_winapi.DuplicateHandle(here, handle, there, *same) for handle in handles]

    def _channel(number: int) -> int:
        os.set_handle_inheritable(number, False)
        show_no_dialogs()
        return msvcrt.open_osfhandle(number, os.O_RDWR | os.O_BINARY)

    def _prepared(_: int) -> Callable[[Start], list[int]]:
        def prepared(start: Start) -> list[int]:
            if start.memory_limit is not None:
                me = _winapi.GetCurrentProcess()
                own = Job(me)  # inside of the other one; nobody closes it before the process ends
                own.limit_memory(private_memory(me) + start.memory_limit)
            return [msvcrt.open_osfhandle(n, os.O_WRONLY | os.O_BINARY) for n in start.further]

        return prepared

else:
    import socket

    _MOST = 8
    """Largest number of further descriptors."""

    def _started(theirs: int, output: int, arguments: Sequence[str]) -> Popen:
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        return subprocess.Popen(
            [sys.executable, *flags, "-c", _PROGRAM, str(theirs), *arguments],
            pass_fds=[theirs],
            stdin=subprocess.PIPE,  # it finds its end when this process ends
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    class _Kin:
        """A process and its group."""

        def __init__(self, process: Popen) -> None:
            self._process = process
            self.report, self._told = os.pipe()
            threading.Thread(target=self._wait, name="end of a process", daemon=True).start()

        def _wait(self) -> None:
            self._process.wait()
            os.close(self._told)

        def kill(self) -> None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

        def close(self) -> None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            os.close(self.report)

    def _given(stream: End, process: Popen, descriptors: Sequence[int]) -> list[int]:
        del process
        connection = socket.socket(fileno=stream.fileno())
        try:
            socket.send_fds(connection, [b"\0"], list(descriptors))
        finally:
            connection.detach()
        return []

    def _channel(number: int) -> int:
        os.set_inheritable(number, False)
        life = os.dup(0)  # not inherited
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        threading.Thread(target=_end_with, args=(life,), daemon=True).start()
        return number

    def _end_with(life: int) -> None:
        """End this process and its group when the one that has started it has ended."""
        os.read(life, 1)
        os.killpg(0, signal.SIGKILL)

    def _prepared(channel: int) -> Callable[[Start], list[int]]:
        connection = socket.socket(fileno=channel)
        _, further, _, _ = socket.recv_fds(connection, 1, _MOST)
        connection.detach()
        for descriptor in further:
            os.set_inheritable(descriptor, False)

        def prepared(start: Start) -> list[int]:
            limit(start.memory_limit)
            return further

        return prepared


def main(number: int, modules: Sequence[str]) -> None:
    """In the new process: import, and run what it is started for.

    Parameters
    ----------
    number
        Descriptor of the channel, on Windows its handle.
    """
    faulthandler.disable()
    channel = _channel(number)
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True
    )
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()
    os.write(channel, _STARTED)
    run_started(Channel(channel), _prepared(channel))


# One in advance ---------------------------------------------------------------------------------------------------------

_LOCK = threading.Lock()
_READY: list[Spawned] = []
"""The process that waits for the next function, if there is one."""


def spawned(modules: Sequence[str], descriptors: Sequence[int]) -> Spawned:
    """A process that imports these modules, or has imported them already, and gets these descriptors."""
    with _LOCK:
        found = _READY.pop() if _READY else Spawned(modules)
        if found.ended() is not None:  # somebody has ended it
            found.close()
            found = Spawned(modules)
        _READY.append(Spawned(modules))
    found.give(descriptors)
    return found


def _forget_ready() -> None:
    """In a fork of this process: it belongs to the other one."""
    for process in _READY:
        process.forget()
    _READY.clear()


def close_ready() -> None:
    """End the process that waits ready."""
    while _READY:
        process = _READY.pop()
        process.kill()
        process.close()


atexit.register(close_ready)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_ready)
