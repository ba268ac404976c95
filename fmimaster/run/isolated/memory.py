"""What the process of a run and the host of an FMU share: memory, whose parts are never moved, and messages for the log."""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart.plain import DamagedError, decoded, encoded
from fmimaster.apart.server import FrameReader, FrameWriter
from fmimaster.base.text import visible
from fmimaster.fmu.call_log import CallLog

log = logging.getLogger("fmimaster")

_LINE = 64
"""Bytes of a line of the cache: values begin at one."""

_PART = 1 << 16
"""Least size of a part in bytes."""

_MOST = 1 << 36
"""Room in bytes that a host has for all parts; only those that exist take memory."""
_SHARE = 8
"""Where the address space is limited (``ulimit -v``), one part of so many of it is that room."""


class SharedMemory:
    """Memory that two processes see.

    Attributes
    ----------
    name : str
        By which Windows finds it.
    descriptors : sequence of int
        Those that the host needs; none on Windows.
    """

    def __init__(self, name: str, descriptors: Sequence[int]) -> None:
        self.name, self.descriptors = name, descriptors
        self._parts: dict[int, ctypes.Array[ctypes.c_char]] = {}
        """Where it begins → part."""
        self._size = self._used = 0

    @classmethod
    def new(cls) -> SharedMemory:
        """Memory without content."""
        return cls(f"fmimaster-{os.urandom(16).hex()}", _new_descriptors())

    @classmethod
    def of_run(cls, name: str, descriptors: Sequence[int]) -> SharedMemory:
        """In a host: the memory of the run. On Linux its descriptor is closed before an FMU could write into it."""
        memory = cls(name, descriptors)
        if sys.platform == "linux":
            memory._whole = _mapped(name, descriptors, 0, _room())
            memory.close()
        return memory

    def allocate(self, size: int) -> tuple[int, int, int]:
        """Room for so many bytes: begin and size of its part, and where it lies in it."""
        size = -(-max(size, 1) // _LINE) * _LINE
        if not self._parts or self._used + size > len(self._parts[self._size_before]):
            self._size_before = self._size
            length = -(-max(size, _PART) // _PART) * _PART
            self._size += length
            for descriptor in self.descriptors:
                os.ftruncate(descriptor, self._size)
            self.part(self._size_before, length)
            self._used = 0
        at, self._used = self._used, self._used + size
        return self._size_before, len(self._parts[self._size_before]), at

    _size_before = 0
    """Begin of the last part."""
    _whole: ctypes.Array[ctypes.c_char] | None = None
    """Of a host on Linux: all parts, also those that do not exist yet."""

    def part(self, begin: int, length: int) -> ctypes.Array[ctypes.c_char]:
        """A part, from its begin; the other process has allocated it."""
        if begin not in self._parts:
            self._parts[begin] = (
                _mapped(self.name, self.descriptors, begin, length)
                if self._whole is None
                else (ctypes.c_char * length).from_buffer(self._whole, begin)
            )
        return self._parts[begin]

    def array(self, room: tuple[int, int, int], kind: Any, n: int) -> NDArray[Any]:
        """Allocated room as an array of n elements."""
        begin, length, at = room
        return np.frombuffer(memoryview(self.part(begin, length)), kind, n, at)

    def close(self) -> None:
        """Close the descriptors; parts live as long as arrays in them."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self._parts.clear()


class OwnArrays(SharedMemory):
    """Memory in which two processes see the message only: values go over a link, and each process has its own."""

    def array(self, room: tuple[int, int, int], kind: Any, n: int) -> NDArray[Any]:
        """An array of n elements, with zeros."""
        del room
        return np.zeros(n, kind)


if sys.platform == "win32":
    from fmimaster.apart.job import checked, kernel32

    def _new_descriptors() -> Sequence[int]:
        return ()

    def _mapped(
        name: str, _: Sequence[int], begin: int, length: int
    ) -> ctypes.Array[ctypes.c_char]:
        """Memory of both processes, which find it by its name."""
        part = mmap.mmap(-1, length, tagname=f"{name}-{begin}")
        return (ctypes.c_char * length).from_buffer(part)

    def wakers(name: str) -> tuple[int, int]:
        """Events by which the kernel wakes the host, and the process of the run."""
        create = kernel32().CreateEventW
        asked, answered = (
            checked(create(None, False, False, f"{name}-{kind}")) for kind in ("asked", "answered")
        )
        return asked, answered

    def close_wakers(events: Sequence[int]) -> None:
        """Close them, in the process of the run."""
        for event in events:
            kernel32().CloseHandle(event)

else:

    def _new_descriptors() -> Sequence[int]:
        if sys.platform == "linux":
            return [os.memfd_create("fmimaster", os.MFD_CLOEXEC)]
        with tempfile.TemporaryFile() as file:
            return [os.dup(file.fileno())]

    def _room() -> int:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return _MOST
        return min(_MOST, limit // _SHARE // _PART * _PART)

    @cache
    def _c() -> ctypes.CDLL:
        c, pointer, size = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p, ctypes.c_size_t
        c.mmap.restype = pointer
        c.mmap.argtypes = [pointer, size, *[ctypes.c_int] * 3, ctypes.c_long]
        c.munmap.argtypes = [pointer, size]
        return c

    def _mapped(
        _: str, descriptors: Sequence[int], begin: int, length: int
    ) -> ctypes.Array[ctypes.c_char]:
        """Memory of this process; unmapped when the last array in it is deleted.

        ``mmap.mmap`` keeps a copy of the descriptor (until Python 3.13, ``trackfd``). Arrays of a run are in cycles, so
        that each run would leave descriptors open until garbage is collected.
        """
        [descriptor] = descriptors
        access = mmap.PROT_READ | mmap.PROT_WRITE
        address = _c().mmap(None, length, access, mmap.MAP_SHARED, descriptor, begin)
        if address == ctypes.c_void_p(-1).value:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        part = (ctypes.c_char * length).from_address(address)
        weakref.finalize(part, _c().munmap, address, length).atexit = False
        return part

    def wakers(name: str) -> tuple[int, int]:
        """None are needed: processes are woken by the shared memory itself."""
        del name
        return 0, 0

    def close_wakers(events: Sequence[int]) -> None:
        """There is nothing to close."""


# Messages for the log -------------------------------------------------------------------------------------------------

_MOST_BYTES = 1 << 28
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
        self._writer = FrameWriter(descriptor, token)
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
            self._writer.write(message)
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
    end : End
        For the messages; owned by this object. Or what has its ``read_all`` and ``close``.
    """

    def __init__(self, name: str, end: Any, token: int, calls: CallLog | None) -> None:
        self._name = name
        self.end = end
        self._calls = calls
        self._reader = FrameReader(token, _MOST_BYTES)
        self._line = b""
        self.n_received = 0
        """Messages so far."""

    def receive(self) -> None:
        """Log the messages that have arrived; raises DamagedError if the FMU has written between them."""
        self._reader.add(self.end.read_all())
        while (message := self._reader.next()) is not None:
            self.n_received += 1
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
        """Close its end."""
        self.end.close()
