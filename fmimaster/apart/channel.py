"""Messages between two processes: objects to the one that is started, plain data from it.

The process that is started trusts the one that has started it, and gets pickled objects. In the other direction nothing is
unpickled, because foreign code may run in that process and write into its descriptors.
"""

from __future__ import annotations

import pickle
import select
import socket
import struct
from math import inf
from time import monotonic
from typing import Any
from zlib import crc32

from fmimaster.apart.plain import DamagedError

_HEAD = struct.Struct("=QQQI")

MOST = 1 << 31
"""Largest number of bytes of a message."""


class FrameWriter:
    """Makes messages of contents."""

    def __init__(self, token: int) -> None:
        self._token = token
        self._number = 0

    def frame(self, content: bytes) -> bytes:
        """A content as a message, which is the next one."""
        head = _HEAD.pack(self._token, self._number, len(content), crc32(content))
        self._number += 1
        return head + content


class FrameReader:
    """Takes messages from parts of the stream as they come."""

    def __init__(self, token: int, most: int = MOST) -> None:
        self._token, self._most = token, most
        self._number = 0
        self._waiting = bytearray()

    def add(self, part: bytes) -> None:
        """What has come."""
        self._waiting += part

    @property
    def is_within(self) -> bool:
        """Whether the rest of a message is expected."""
        return bool(self._waiting)

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


_LENGTH = struct.Struct("=Q")
_CHUNK = 1 << 20


class Channel:
    """The end of the process that was started.

    Attributes
    ----------
    token : int
        What its messages begin with. It arrives with the first object.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.expect(0)

    def expect(self, token: int) -> None:
        """Let the messages begin with this token."""
        self.token, self._writer = token, FrameWriter(token)

    def receive(self) -> Any:
        """The next object; raises EOFError if the other process has ended."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(length))

    def _exactly(self, size: int) -> bytearray:
        content = bytearray(size)
        view = memoryview(content)
        while view:
            try:
                n = self._socket.recv_into(view)
            except ConnectionError:
                n = 0
            if n == 0:
                raise EOFError
            view = view[n:]
        return content

    def send(self, content: bytes) -> None:
        """Send a message; raises OSError if the other process has ended."""
        self._socket.sendall(self._writer.frame(content))


class ChannelEnd:
    """The end of the process that has started the other one. It never blocks for ever.

    Parameters
    ----------
    token : int
        What messages of the other process begin with.
    """

    def __init__(self, connection: socket.socket, token: int) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._reader = FrameReader(token)

    def fileno(self) -> int:
        """The descriptor, for polling."""
        return self._socket.fileno()

    @property
    def is_within(self) -> bool:
        """Whether a message has begun and not ended."""
        return self._reader.is_within

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
        content, patience = pickle.dumps(message), inf if seconds is None else seconds
        left, until = memoryview(_LENGTH.pack(len(content)) + content), monotonic() + patience
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        while left:
            try:
                left, until = left[self._socket.send(left) :], monotonic() + patience
            except BlockingIOError:
                if monotonic() > until:
                    raise TimeoutError("the other process reads nothing") from None
                poll.poll(None if seconds is None else 1000.0 * seconds + 1.0)

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
            try:
                part = self._socket.recv(_CHUNK)
            except BlockingIOError:
                return None
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError
            self._reader.add(part)
        return message

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
