"""What a host has for the log of the run: messages of its log, FMI calls, and what the FMU prints."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Any

from fmimaster.apart.plain import DamagedError, decoded, encoded
from fmimaster.apart.server import FrameReader, FrameWriter
from fmimaster.base.text import visible
from fmimaster.fmu.call_log import CallLog

log = logging.getLogger("fmimaster")

_CHUNK = 1 << 16
_MOST_CHUNKS = 64
"""Read at one time: an FMU may write without end."""
_MOST = 1 << 28
"""Largest number of bytes of a message."""
_CONTENTS: dict[str, Any] = {
    "log": tuple[int, str],
    "begin": tuple[float | None, str, str, str],
    "end": tuple[str],
    "add": tuple[str, str],
}
"""Kind of a message → types of its content."""
_LONGEST_LINE = 8192
"""Bytes after which a line is logged although it has no end yet."""


class Sender(logging.Handler):
    """In the host: sends messages of the log."""

    def __init__(self, descriptor: int, token: int, count: Any) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._writer = FrameWriter(token)
        self._count = count
        """Called after each message."""

    def emit(self, record: logging.LogRecord) -> None:
        """Send a message of the log."""
        self.send("log", record.levelno, record.getMessage())

    def send(self, kind: str, *content: Any) -> None:
        """Send a message; for any thread."""
        message = encoded([kind, encoded(content)])
        self.acquire()
        try:
            frame = memoryview(self._writer.frame(message))
            while frame:
                frame = frame[os.write(self._descriptor, frame) :]
        except OSError:
            pass  # the run has ended
        finally:
            self.release()
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

    def __init__(self, name: str, descriptor: int, token: int, calls: CallLog | None) -> None:
        self._name = name
        self.descriptor = descriptor
        self._calls = calls
        self._reader = FrameReader(token, _MOST)
        self._line = b""

    def receive(self) -> None:
        """Log the messages that have arrived; raises DamagedError if the FMU has written between them."""
        with suppress(BlockingIOError):
            for _ in range(_MOST_CHUNKS):
                if not (part := os.read(self.descriptor, _CHUNK)):
                    break
                self._reader.add(part)
        while (message := self._reader.next()) is not None:
            kind, content = decoded(tuple[str, bytes], message)
            if kind not in _CONTENTS:
                raise DamagedError(f"a message for the log of the kind '{kind}'")
            values = decoded(_CONTENTS[kind], content)
            if kind == "log":
                level, text = values
                log.log(level, "%s", text)
            elif self._calls is not None:
                getattr(self._calls, kind)(*values)

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
