"""Messages in a stream of bytes into which foreign code may have written: what is damaged is noticed, and nothing waits for
a length that a stranger has written.

Each message begins with a token that only the two processes know, its number, its length and a checksum.
"""

from __future__ import annotations

import struct
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
