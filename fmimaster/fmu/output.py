"""Output of FMUs: redirected from the standard output of the process to the log while they run."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from fmimaster.visible import visible

log = logging.getLogger("fmimaster")

_STDOUT = 1
"""File descriptor of the standard output; C code prints there, whatever Python's sys.stdout is."""
_CHUNK = 65536
"""Bytes that are read at once: what a pipe holds."""
_PATIENCE = 0.5
"""Wall time in s that flushing may take."""
_LONGEST_LINE = 8192
"""Bytes after which a line is logged although it has no end yet: bounds the memory."""


@contextmanager
def fmu_output_to_log(component: str = "") -> Iterator[None]:
    """Redirect file descriptor 1 to the log: each line that is printed there becomes a message of level INFO.

    A thread reads at the same time, so that output of any length does not block the FMU, provided that it is called
    without Python's lock, as ctypes and cffi do. At the end the descriptor is what it was before, also if it was closed.

    Parameters
    ----------
    component : str
        Name of the component that runs, if it is only one; empty otherwise.
    """
    # found now: while a library is loaded or unloaded, which may take for ever, no other can be
    c = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    _flush(c)
    before = _duplicate()
    reading, writing = os.pipe()
    os.dup2(writing, _STDOUT)
    # not the end of the pipe: a process that the FMU has started may keep that open
    end = uuid4().hex.encode()
    prefix = f"FMU output: {component}: " if component else "FMU output: "
    reader = threading.Thread(target=_read, args=(reading, end, prefix), daemon=True)
    reader.start()
    try:
        yield
    finally:
        _flush(c)
        if before is None:
            os.close(_STDOUT)
        else:
            os.dup2(before, _STDOUT)
            os.close(before)
        os.write(writing, end)
        reader.join()
        os.close(writing)
        os.close(reading)


def _duplicate() -> int | None:
    """Another descriptor of the standard output; None if it is closed; its number is then in use."""
    try:
        return os.dup(_STDOUT)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != _STDOUT:  # else a pipe could get this number
            os.dup2(nowhere, _STDOUT)
            os.close(nowhere)
        return None


def _read(source: int, end: bytes, prefix: str) -> None:
    """Log line after line until the end is read."""
    rest = b""
    while True:
        rest += os.read(source, _CHUNK)
        *lines, rest = rest.split(b"\n")
        for line in lines:
            _log(prefix, line)
        if rest.endswith(end):
            _log(prefix, rest.removesuffix(end))
            return
        if len(rest) > _LONGEST_LINE:
            begin, rest = rest[: -len(end)], rest[-len(end) :]  # the end may be there in part
            _log(prefix, begin)


def _log(prefix: str, line: bytes) -> None:
    text = visible(line.decode("utf-8", "replace").rstrip())
    if text:
        log.info("%s%s", prefix, text)


def _flush(c: ctypes.CDLL) -> None:
    """Flush the buffers of Python and C, so that their content goes to the present descriptor."""
    with suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stdout.flush()
    # a library with a C runtime of its own is not reached; an FMU that does not return may hold the lock of a stream
    flush = threading.Thread(target=c.fflush, args=(None,), daemon=True)
    flush.start()
    flush.join(_PATIENCE)
