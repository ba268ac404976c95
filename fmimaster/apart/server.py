"""The preloaded process: it has imported what others need, and forks itself for each of them. Linux only.

It has one thread, and nothing of the program that has started it, so a fork is safe and takes some milliseconds.
"""

from __future__ import annotations

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

from fmimaster.apart import family
from fmimaster.apart.server import Channel

START, KILL = 0, 1

REQUEST = struct.Struct("=BQ")
"""What is requested, and the number of the process."""

MOST_DESCRIPTORS = 8
"""Largest number of descriptors that come with a request: channel, report, output, and those of the function."""

_KIB = 1024


class Start(NamedTuple):
    """What a new process reads first from its channel."""

    folder: str
    environment: dict[str, str]
    path: list[str]
    memory_limit: int | None
    """In bytes, beyond what the process has at its start."""
    token: int
    """What its messages begin with."""
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
        self._keepers: dict[int, int] = {}
        """Number in a request → number of the keeper in the system."""
        family.adopt_orphans()  # of keepers that were killed
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
        for keeper in self._keepers.values():
            _end(keeper)

    def _heed(self) -> bool:
        content, descriptors, _, _ = socket.recv_fds(self._control, 4096, MOST_DESCRIPTORS)
        if not content:
            return False
        request, number = REQUEST.unpack(content)
        if request == START:
            self._start(number, descriptors)
        elif number in self._keepers:
            _end(self._keepers[number])
        return True

    def _start(self, number: int, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        channel, report, output, *further = descriptors
        server = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        pid = os.fork()
        if pid == 0:
            self._leave(server)
            of_process = (channel, output, *further)
            family.keep(report, of_process, lambda: _run(channel, output, further))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        for descriptor in descriptors:
            os.close(descriptor)
        self._keepers[number] = pid

    def _leave(self, server: int) -> None:
        """In a new process: drop what belongs to the server."""
        family.end_with_parent(server, signal.SIGTERM)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._control.close()
        for descriptor in (self._wake, self._woken):
            os.close(descriptor)

    def _reap(self) -> None:
        """Forget keepers that have ended; what was below one that was killed has come to this process."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                self._keepers = {n: p for n, p in self._keepers.items() if p != pid}
                if status:
                    family.end_children(spared=self._keepers.values())


def _end(keeper: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(keeper, signal.SIGTERM)


def _run(channel: int, output: int, further: list[int]) -> NoReturn:
    """In a new process: run what it is started for."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.close(output)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        connection = Channel(socket.socket(fileno=channel))
        start: Start = connection.receive()
        connection.expect(start.token)
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
