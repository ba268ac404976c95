"""The preloaded process, which forks itself on Linux for each function or FMU, and the messages of all processes.

It has imported what they need. It has one thread, and nothing of the program that has started it, so a fork is safe and
takes some milliseconds.

A process that is started trusts the one that has started it, and gets pickled objects. In the other direction nothing is
unpickled, because foreign code may run in that process and write into its descriptors.
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
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

from fmimaster.apart.anew import MOST_DESCRIPTORS, limit
from fmimaster.apart.plain import DamagedError
from fmimaster.apart.streams import End
from fmimaster.apart.watch import adopt_orphans, end_children, end_with_parent, keep

_HEAD, _LENGTH = struct.Struct("=QQQI"), struct.Struct("=Q")
"""What a message begins with: of a process that was started, and to it."""
_CHUNK = 1 << 20

MOST = 1 << 31
"""Largest number of bytes of a message."""


class FrameWriter:
    """Writes contents as messages to a descriptor."""

    def __init__(self, descriptor: int, token: int) -> None:
        self._descriptor, self._token = descriptor, token
        self._number = 0

    def write(self, content: bytes) -> None:
        """Write the next message; raises OSError if the other process has ended."""
        head = _HEAD.pack(self._token, self._number, len(content), crc32(content))
        self._number += 1
        left = memoryview(head + content)
        while left:
            left = left[os.write(self._descriptor, left[:_CHUNK]) :]


class FrameReader:
    """Takes messages from parts of the stream as they come."""

    def __init__(self, token: int, most: int = MOST) -> None:
        self._token, self._most = token, most
        self._number = 0
        self._waiting = bytearray()

    def add(self, part: bytes) -> None:
        """What has come."""
        self._waiting += part

    def next(self) -> bytes | None:
        """The content of the next message; None if it has not come completely.

        Raises
        ------
        DamagedError
            If the bytes are no message, or not the next one.
        """
        waiting = self._waiting
        known = _HEAD.pack(self._token, self._number, 0, 0)[:16]
        if waiting[:16] != known[: len(waiting)]:
            raise DamagedError("bytes that are no message")
        if len(waiting) < _HEAD.size:
            return None
        _, _, length, checksum = _HEAD.unpack_from(waiting)
        if length > self._most:
            raise DamagedError(f"a message of {length} bytes")
        end = _HEAD.size + length
        if len(waiting) < end:
            return None
        content = bytes(memoryview(waiting)[_HEAD.size : end])
        del waiting[:end]
        if crc32(content) != checksum:
            raise DamagedError("a message whose bytes were changed")
        self._number += 1
        return content


class Channel:
    """The end of the process that was started.

    Attributes
    ----------
    token : int
        What its messages begin with. It arrives with the first object.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.expect(0)

    def expect(self, token: int) -> None:
        """Let the messages begin with this token."""
        self.token, self._writer = token, FrameWriter(self._descriptor, token)

    def receive(self) -> Any:
        """The next object; raises EOFError if the other process has ended."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(length))

    def _exactly(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            try:
                part = os.read(self._descriptor, min(size - len(content), _CHUNK))
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError
            content += part
        return bytes(content)

    def send(self, content: bytes) -> None:
        """Send a message; raises OSError if the other process has ended."""
        self._writer.write(content)


class ChannelEnd:
    """The end of the process that has started the other one. It never blocks for ever.

    Parameters
    ----------
    token : int
        What messages of the other process begin with.
    """

    def __init__(self, end: End, token: int) -> None:
        self.end = end
        self._reader = FrameReader(token)

    def send(self, message: Any, seconds: float | None = None) -> None:
        """Send an object.

        Parameters
        ----------
        seconds : float, optional
            How long the other process may read nothing; None before foreign code runs in it.

        Raises
        ------
        OSError
            If the other process has ended, or has read nothing for so long.
        """
        content = pickle.dumps(message)
        self.end.write(_LENGTH.pack(len(content)) + content, seconds)

    def receive(self) -> bytes | None:
        """The next message, if it has come completely.

        Raises
        ------
        EOFError
            If the other process has ended, or closed its end.
        DamagedError
            If it has sent something else.
        """
        while (message := self._reader.next()) is None:
            if not (part := self.end.read(_CHUNK)):
                if self.end.is_at_end:
                    raise EOFError
                return None
            self._reader.add(part)
        return message


# The preloaded process ------------------------------------------------------------------------------------------------

START, KILL = 0, 1

REQUEST = struct.Struct("=BQ")
"""What is requested, and the number of the process."""


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


def import_first(modules: Iterable[str]) -> None:
    """Import what will be needed."""
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()  # pages of these objects stay shared after a fork


def main(control: str, *modules: str) -> None:
    """Serve requests until the other end of the control socket is closed."""
    connection = socket.socket(fileno=int(control))
    try:
        import_first(modules)
        server = _Server(connection)
    except BaseException:
        connection.send(traceback.format_exc().encode()[-8000:])
        raise
    server.serve()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._keepers: dict[int, int] = {}
        """Number in a request → number of the keeper in the system."""
        adopt_orphans()  # of keepers that were killed
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
            keep(report, of_process, lambda: _run(channel, output, further))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        for descriptor in descriptors:
            os.close(descriptor)
        self._keepers[number] = pid

    def _leave(self, server: int) -> None:
        """In a new process: drop what belongs to the server."""
        end_with_parent(server, signal.SIGTERM)
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
                    end_children(spared=self._keepers.values())


def _end(keeper: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(keeper, signal.SIGTERM)


def _run(channel: int, output: int, further: list[int]) -> NoReturn:
    """In a new process: run what it is started for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    run_started(Channel(channel), further)


def run_started(connection: Channel, further: list[int]) -> NoReturn:
    """In a new process, which has these further descriptors: run what it is started for, and end."""
    status = 1
    try:
        start: Start = connection.receive()
        connection.expect(start.token)
        os.environ.clear()
        os.environ.update(start.environment)
        sys.path[:] = start.path
        with suppress(OSError):
            os.chdir(start.folder)
        limit(start.memory_limit)
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
