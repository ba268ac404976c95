"""The preloaded process: it has imported what others need, and forks itself for each of them. Linux only.

It has one thread, and nothing of the program that has started it, so a fork is safe and takes some milliseconds.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple, NoReturn

from fmimaster.apart.channel import Channel

START, KILL = 0, 1

REQUEST = struct.Struct("=BQ")
"""What is requested, and the number of the process."""

REPORT = struct.Struct("=qqq")
"""Number of the process in the system; after its end its status as ``os.wait4`` has it, else -1; its largest memory in
bytes."""

MOST_DESCRIPTORS = 8
"""Largest number of descriptors that come with a request: channel, report, output, and those of the function."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""From <sys/prctl.h>."""

_KIB = 1024


class Start(NamedTuple):
    """What a new process reads first from its channel."""

    folder: str
    environment: dict[str, str]
    path: list[str]
    memory_limit: int | None
    """In bytes, beyond what the process has at its start."""
    call: bytes
    """Pickled: a function, called with the channel, further descriptors, and arguments; and the arguments. Unpickled when
    the path is set, on which the function is found."""


def main(control: int, modules: Sequence[str]) -> None:
    """Serve requests until the other end of the control socket is closed."""
    connection = socket.socket(fileno=control)
    try:
        for module in modules:
            import_module(module)
        server = _Server(connection)
    except BaseException:
        connection.send(traceback.format_exc().encode()[-8000:])
        raise
    gc.collect()
    gc.freeze()  # pages of these objects stay shared after a fork
    server.serve()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._reports: dict[int, int] = {}
        """Number of a process in the system → descriptor for reports about it."""
        self._numbers: dict[int, int] = {}
        """Number in a request → number in the system."""
        self._prctl = ctypes.CDLL(None).prctl
        self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # also what an FMU starts ends here
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._woken)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap()
            if self._control.fileno() in ready and not self._heed():
                break
        for pid in self._reports:
            _kill(pid)

    def _heed(self) -> bool:
        content, descriptors, _, _ = socket.recv_fds(self._control, 4096, MOST_DESCRIPTORS)
        if not content:
            return False
        request, number = REQUEST.unpack(content)
        if request == START:
            self._start(number, descriptors)
        elif number in self._numbers:
            _kill(self._numbers[number])
        return True

    def _start(self, number: int, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        channel, report, output, *further = descriptors
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._leave(server)
            _run(channel, report, output, further)
        for descriptor in (channel, output, *further):
            os.close(descriptor)
        self._reports[pid], self._numbers[number] = report, pid
        self._tell(pid, -1, 0)

    def _leave(self, server: int) -> None:
        """In a new process: drop what belongs to the server."""
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:
            os._exit(1)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._control.close()
        for descriptor in (self._wake, self._woken, *self._reports.values()):
            os.close(descriptor)

    def _reap(self) -> None:
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, options)
            except ChildProcessError:
                return
            if ended is None:
                return
            pid = ended.si_pid
            if pid in self._reports:
                _kill(pid)  # what it has started itself
            _, status, usage = os.wait4(pid, 0)
            if pid in self._reports:
                self._tell(pid, status, usage.ru_maxrss * _KIB)
                os.close(self._reports.pop(pid))
                self._numbers = {n: p for n, p in self._numbers.items() if p != pid}

    def _tell(self, pid: int, status: int, memory: int) -> None:
        with suppress(OSError):  # the process that asked has ended, or does not want to know
            os.write(self._reports[pid], REPORT.pack(pid, status, memory))


def _kill(pid: int) -> None:
    """End a process and all processes that it has started. It is not reaped yet, so its number is still its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _run(channel: int, report: int, output: int, further: list[int]) -> NoReturn:
    """In a new process: run what it is started for."""
    status = 1
    try:
        os.close(report)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.close(output)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        connection = Channel(socket.socket(fileno=channel))
        start: Start = connection.receive()
        os.environ.clear()
        os.environ.update(start.environment)
        sys.path[:] = start.path
        with suppress(OSError):
            os.chdir(start.folder)
        _limit(start.memory_limit)
        called, arguments = pickle.loads(start.call)
        called(connection, further, *arguments)
        status = 0
    except (EOFError, BrokenPipeError):
        pass  # the process that asked has ended
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _limit(memory: int | None) -> None:
    """No core dump, and at most so many bytes of memory more than now."""
    import resource  # Linux only

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if memory is not None:
        most = _data() + memory
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _data() -> int:
    """Size in bytes of the private memory of this process, as RLIMIT_DATA counts it."""
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * _KIB
    return 0
