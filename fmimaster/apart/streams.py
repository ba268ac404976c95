"""What connects processes: streams of bytes whose ends in this process never block, and waiting for several of them.

On Windows they are named pipes, because only those can be waited for; elsewhere pipes and pairs of sockets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from math import inf
from time import monotonic

CHUNK = 1 << 16
"""Bytes that are read or written at one time: the size of a pipe on Linux."""

_MOST_CHUNKS = 64
"""Read at one time: a process may write without end."""


class _End:
    """One end of a stream, in this process."""

    is_at_end = False
    """Whether all has been read that will ever come."""

    def read_all(self, most: int = _MOST_CHUNKS) -> bytes:
        """What has come, at most so many chunks."""
        parts = []
        for _ in range(most):
            if not (part := self.read(CHUNK)):
                break
            parts.append(part)
        return b"".join(parts)

    def read(self, size: int) -> bytes:
        """What has come, at most so many bytes; empty if there is nothing, or nothing more will come."""
        raise NotImplementedError


if sys.platform == "win32":
    import _winapi
    import itertools
    import msvcrt
    from multiprocessing.connection import wait

    _DUPLEX, _INBOUND = 0x3, 0x1
    _FIRST_INSTANCE, _REJECT_REMOTE_CLIENTS = 0x00080000, 0x8
    _number = itertools.count()

    class End(_End):
        """The end of a named pipe that was made here.

        Parameters
        ----------
        handle : int
            Owned by this object.
        """

        def __init__(self, handle: int) -> None:
            self._handle = handle

        def fileno(self) -> int:
            """The handle, for waiting."""
            return self._handle

        def read(self, size: int) -> bytes:
            try:
                available, _ = _winapi.PeekNamedPipe(self._handle)
                if not available:
                    return b""
                overlapped, _ = _winapi.ReadFile(self._handle, min(size, available), True)
                overlapped.GetOverlappedResult(True)
                return bytes(overlapped.getbuffer())
            except BrokenPipeError:
                self.is_at_end = True
                return b""

        def write(self, content: bytes, seconds: float | None) -> None:
            """Write all; raises OSError if the other process has ended, or has read nothing for so long."""
            patience = _winapi.INFINITE if seconds is None else int(seconds * 1000.0) + 1
            for at in range(0, len(content), CHUNK):
                part = content[at : at + CHUNK]
                overlapped, _ = _winapi.WriteFile(self._handle, part, overlapped=True)
                found = _winapi.WaitForMultipleObjects([overlapped.event], False, patience)
                if found != _winapi.WAIT_OBJECT_0:
                    overlapped.cancel()
                    raise TimeoutError("the other process reads nothing")
                overlapped.GetOverlappedResult(True)

        def close(self) -> None:
            """Close this end."""
            _winapi.CloseHandle(self._handle)

    def _made(mode: int, access: int, flags: int) -> tuple[End, int]:
        name = rf"\\.\pipe\fmimaster-{os.getpid()}-{next(_number)}-{os.urandom(8).hex()}"
        mode |= _winapi.FILE_FLAG_OVERLAPPED | _FIRST_INSTANCE
        sizes = 1, CHUNK, CHUNK
        handle = _winapi.CreateNamedPipe(name, mode, _REJECT_REMOTE_CLIENTS, *sizes, 0, 0)
        end = End(handle)
        try:
            other = _winapi.CreateFile(name, access, 0, 0, _winapi.OPEN_EXISTING, 0, 0)
        except BaseException:
            end.close()
            raise
        return end, msvcrt.open_osfhandle(other, flags | os.O_BINARY)

    def pipe() -> tuple[End, int]:
        """A pipe: the end that is read here, and a descriptor to write to."""
        return _made(_INBOUND, _winapi.GENERIC_WRITE, os.O_WRONLY)

    def pair() -> tuple[End, int]:
        """A stream in both directions: the end here, and the descriptor of the other one."""
        return _made(_DUPLEX, _winapi.GENERIC_READ | _winapi.GENERIC_WRITE, os.O_RDWR)

else:
    import select
    import socket

    class End(_End):
        """The end of a pipe or of a pair of sockets.

        Parameters
        ----------
        descriptor : int
            Owned by this object.
        """

        def __init__(self, descriptor: int) -> None:
            os.set_blocking(descriptor, False)
            self._descriptor = descriptor

        def fileno(self) -> int:
            """The descriptor."""
            return self._descriptor

        def read(self, size: int) -> bytes:
            try:
                part = os.read(self._descriptor, size)
            except BlockingIOError:
                return b""
            except ConnectionError:
                part = b""
            self.is_at_end = not part
            return part

        def write(self, content: bytes, seconds: float | None) -> None:
            """Write all; raises OSError if the other process has ended, or has read nothing for so long."""
            patience = inf if seconds is None else seconds
            left, until = memoryview(content), monotonic() + patience
            poll = select.poll()
            poll.register(self._descriptor, select.POLLOUT)
            while left:
                try:
                    left = left[os.write(self._descriptor, left) :]
                    until = monotonic() + patience
                except BlockingIOError:
                    if monotonic() > until:
                        raise TimeoutError("the other process reads nothing") from None
                    poll.poll(None if seconds is None else 1000.0 * seconds + 1.0)

        def close(self) -> None:
            """Close this end."""
            os.close(self._descriptor)

    def pipe() -> tuple[End, int]:
        """A pipe: the end that is read here, and a descriptor to write to."""
        reading, writing = os.pipe()
        return End(reading), writing

    def pair() -> tuple[End, int]:
        """A stream in both directions: the end here, and the descriptor of the other one."""
        mine, theirs = socket.socketpair()
        return End(mine.detach()), theirs.detach()

    def wait(objects: Sequence[End | int], seconds: float | None) -> Sequence[End | int]:
        """Wait for so many seconds; returns the ends and descriptors that can be read."""
        poll = select.poll()
        numbers = {one if isinstance(one, int) else one.fileno(): one for one in objects}
        for number in numbers:
            poll.register(number, select.POLLIN)
        found = poll.poll(None if seconds is None else seconds * 1000.0)
        return [numbers[number] for number, _ in found]


class Waiting:
    """Waits until one of several ends can be read, or a process has ended.

    Parameters
    ----------
    report : int
        What can be read when the process has ended: a descriptor, on Windows a handle.
    """

    def __init__(self, report: int, *ends: End) -> None:
        self._report, self._ends = report, list(ends)

    def ready(self, seconds: float | None) -> Sequence[End]:
        """Wait for so many seconds; returns the ends that can be read."""
        self._ends = [end for end in self._ends if not end.is_at_end]
        found = wait([self._report, *self._ends], seconds)
        return [end for end in self._ends if end in found]

    def drop(self, end: End) -> None:
        """Wait for this end no more."""
        self._ends.remove(end)
