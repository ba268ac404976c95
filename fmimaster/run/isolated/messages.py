"""What a host has for the log of the run: messages of its log, FMI calls, and what the FMU prints."""

from __future__ import annotations

import logging
import os
import pickle
import struct
from contextlib import suppress
from typing import Any

from fmimaster.fmu.call_log import CallLog
from fmimaster.visible import visible

log = logging.getLogger("fmimaster")

_LENGTH = struct.Struct("=I")
_CHUNK = 1 << 16
_LONGEST_LINE = 8192
"""Bytes after which a line is logged although it has no end yet."""


class Sender(logging.Handler):
    """In the host: sends messages of the log."""

    def __init__(self, descriptor: int, count: Any) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._count = count
        """Called after each message."""

    def emit(self, record: logging.LogRecord) -> None:
        """Send a message of the log."""
        self.send("log", record.levelno, record.getMessage())

    def send(self, *message: Any) -> None:
        """Send a message of any kind."""
        content = pickle.dumps(message)
        content = _LENGTH.pack(len(content)) + content
        with suppress(OSError):  # the run has ended
            while content:
                content = content[os.write(self._descriptor, content) :]
        self._count()


class SentCalls(CallLog):
    """In the host: the log of FMI calls, which is written in the process of the run."""

    def __init__(self, sender: Sender) -> None:
        super().__init__(None)
        self._sender = sender

    def begin(self, time: float | None, instance: str, name: str, arguments: str) -> None:
        """Log a call before it is made."""
        self._sender.send("begin", time, instance, name, arguments)

    def end(self, answer: str) -> None:
        """Log the result of the last call."""
        self._sender.send("end", answer)

    def add(self, instance: str, text: str) -> None:
        """A line that is not a call of fmimaster."""
        self._sender.send("add", instance, text)


class Receiver:
    """In the process of the run: logs what a host sends, and what its FMU prints.

    Parameters
    ----------
    name : str
        Full name of the instance.
    descriptor : int
        For the messages; it does not block, and is owned by this object.
    """

    def __init__(self, name: str, descriptor: int, calls: CallLog | None) -> None:
        self._name = name
        self.descriptor = descriptor
        self._calls = calls
        self._messages = bytearray()
        self._line = b""

    def receive(self) -> None:
        """Log all messages that have arrived."""
        with suppress(BlockingIOError):
            while part := os.read(self.descriptor, _CHUNK):
                self._messages += part
        while len(self._messages) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._messages)
            end = _LENGTH.size + length
            if len(self._messages) < end:
                break
            kind, *content = pickle.loads(self._messages[_LENGTH.size : end])
            del self._messages[:end]
            if kind == "log":
                level, text = content
                log.log(level, "%s", text)
            elif self._calls is not None:
                getattr(self._calls, kind)(*content)

    def print(self, output: bytes, is_last: bool = False) -> None:
        """Log the lines of what the FMU has printed."""
        *lines, self._line = (self._line + output).split(b"\n")
        if is_last or len(self._line) > _LONGEST_LINE:
            lines.append(self._line)
            self._line = b""
        for line in lines:
            if text := visible(line.decode("utf-8", "replace").rstrip()):
                log.info("FMU output: %s: %s", self._name, text)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)
