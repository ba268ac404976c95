"""Python objects over a socket between two processes."""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("=Q")


class Channel:
    """One end of a connection between two processes of fmimaster that trust each other."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection

    def fileno(self) -> int:
        """The descriptor, for polling."""
        return self.socket.fileno()

    def send(self, message: Any) -> None:
        """Send an object; raises OSError if the other process has ended."""
        content = pickle.dumps(message)
        self.socket.sendall(_LENGTH.pack(len(content)) + content)

    def receive(self) -> Any:
        """The next object; raises EOFError if the other process has ended."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(length))

    def _exactly(self, size: int) -> bytearray:
        content = bytearray(size)
        view = memoryview(content)
        while view:
            try:
                n = self.socket.recv_into(view)
            except ConnectionError:
                n = 0
            if n == 0:
                raise EOFError
            view = view[n:]
        return content

    def close(self) -> None:
        """Close this end."""
        self.socket.close()
