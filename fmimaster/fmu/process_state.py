"""The process in which FMUs run: what they must not change, and what they print on its standard output."""

from __future__ import annotations

import ctypes
import io
import locale
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from fmimaster.base.text import visible
from fmimaster.fmu.c_runtime import CRuntime, c_library

log = logging.getLogger("fmimaster")

LOADING = threading.Lock()
"""Held while a library is loaded, because fmpy changes the working directory of the process."""

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGBREAK")
"""Signals that end a run, and that of a closed pipe; an FMU may use others itself."""


class ProcessState:
    """Working directory, file mode mask, locale, signal handlers, and rounding of floating-point numbers.

    It is saved when this object is made. Rounding belongs to the thread: :meth:`put_back` must be called in the thread
    that calls FMUs, which has inherited it.
    """

    def __init__(self) -> None:
        self._c = CRuntime()
        self._told: dict[str, str] = {}
        with LOADING:  # a run in another thread may load a library
            self._folder = _folder()
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._locale = locale.setlocale(locale.LC_ALL)
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        self._handlers = {number: self._c.handler(number) for number in numbers}
        self._handlers_of_python = {number: _handler_of_python(number) for number in numbers}

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes that were found and undone: ``"the locale"``."""
        return tuple(self._told.values())

    def put_back(self, who: str) -> None:
        """Restore changed state, with one warning for each kind of change that names the FMU, or all possible FMUs."""
        self.put_back_process(who)
        if self._c.puts_back_arithmetic():
            self._tell(who, "the rounding of floating-point numbers")

    def put_back_process(self, who: str) -> None:
        """Restore everything except the rounding; for any thread."""
        self.put_back_signals(who)
        before = os.umask(self._mask)
        if before != self._mask:
            self._tell(who, f"the file mode mask (umask) to {before:03o}")
        if locale.setlocale(locale.LC_ALL) != self._locale:
            with suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, self._locale)
            self._tell(who, "the locale")
        for what in self._c.put_back_others():
            self._tell(who, what)
        self._put_back_folder(who)

    def put_back_signals(self, who: str) -> None:
        """Restore the handlers of signals; for any thread."""
        for number, handler in self._handlers.items():
            if not self._c.is_another(self._c.handler(number), handler):
                continue
            of_python = _handler_of_python(number)
            if of_python != self._handlers_of_python[number]:  # another thread has set it: no FMU
                self._handlers_of_python[number] = of_python
                self._handlers[number] = self._c.handler(number)
            else:
                self._c.put_back_handler(number, handler)
                self._tell(who, f"the handler of {number.name}")

    def _put_back_folder(self, who: str) -> None:
        if not LOADING.acquire(blocking=False):
            return  # fmpy changes the folder while it loads a library for another run
        try:
            folder = _folder()
            if folder != self._folder and self._folder is not None:
                with suppress(OSError):
                    os.chdir(self._folder)
                self._tell(who, f"the working directory to '{folder}'")
        finally:
            LOADING.release()

    def _tell(self, who: str, what: str) -> None:
        kind = what.partition(" to ")[0]
        if kind not in self._told:
            self._told[kind] = what
            log.warning("%s has changed %s, for the whole process. It was restored.", who, what)


def _handler_of_python(number: signal.Signals) -> Any:
    """What Python does at a signal; all of its functions are called by one handler in C."""
    handler = signal.getsignal(number)
    return callable if callable(handler) else handler


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


# What FMUs print ------------------------------------------------------------------------------------------------------

_STDOUT = 1
"""File descriptor of the standard output; C code prints there, whatever Python's sys.stdout is."""
_CHUNK = 65536
"""Bytes that are read at once: the size of a pipe."""
_PATIENCE = 0.5
"""Wall time in s that flushing may take."""
_REST = 1.0
"""Wall time in s in which the rest is read of a pipe whose descriptors an FMU has closed or replaced."""
_LONGEST_LINE = 8192
"""Bytes after which a line is logged although it has no end yet: bounds the memory."""


@contextmanager
def fmu_output_to_log(component: str = "") -> Iterator[None]:
    """Redirect file descriptor 1 to the log: each line that is printed there becomes a message of level INFO.

    Python's own output is not redirected, also that of other threads. Runs in several threads share one
    redirection; it ends with the last of them. If the log does not show the lines, one message per process tells how to
    show them.

    Parameters
    ----------
    component : str
        Name of the component that runs, if it is only one; empty otherwise.
    """
    redirection = _join(component)
    try:
        yield
    finally:
        _leave(redirection)


_LOCK = threading.Lock()
_PRESENT: list[_Redirection] = []
"""The redirection of this process, if there is one: file descriptor 1 belongs to the process."""
_IDLE: list[_Redirection] = []
"""The one that comes next, if one is kept."""
_KEEPERS: set[object] = set()
"""Who will redirect again: a pipe and a thread for each pause of a run would take longer than its steps."""


def keep_output_pipe(keeper: object) -> None:
    """Keep the pipe and the thread of :func:`fmu_output_to_log` when it ends, until the keeper lets it go."""
    with _LOCK:
        _KEEPERS.add(keeper)


def let_go_output_pipe(keeper: object) -> None:
    """The opposite of :func:`keep_output_pipe`; no effect for others."""
    with _LOCK:
        _KEEPERS.discard(keeper)
        while _IDLE and not _KEEPERS:
            _IDLE.pop().close()


def _join(component: str) -> _Redirection:
    with _LOCK:
        if not _PRESENT:
            while _IDLE and _IDLE[0].process != os.getpid():  # a fork has no thread that reads
                _IDLE.pop().close_files()
            _PRESENT.append(_IDLE.pop() if _IDLE else _Redirection())
            _PRESENT[0].begin(component)
        present = _PRESENT[0]
        present.users += 1
        if present.component != component:  # it is not known which FMU prints
            present.component = ""
        return present


def _leave(redirection: _Redirection) -> None:
    with _LOCK:
        redirection.users -= 1
        if redirection.users:
            return
        _PRESENT.remove(redirection)
        if redirection.end():
            _IDLE.append(redirection)
            if not _KEEPERS:
                _IDLE.pop().close()
    if redirection.lines and not log.isEnabledFor(logging.INFO):
        _say_how_to_see_it(redirection.component)


@cache
def _say_how_to_see_it(component: str) -> None:
    """Log a message once for each component: a sweep has thousands of runs."""
    who = f"'{component}'" if component else "An FMU"
    log.warning(
        "%s has printed lines that are not shown. To see them: logging.basicConfig(level=logging.INFO) in Python, "
        "--verbose on the command line.",
        who,
    )


class _Redirection:
    """Captures the output on file descriptor 1, from each :meth:`begin` to :meth:`end`.

    A thread reads at the same time, so that output of any length does not block the FMU, provided that it is called
    without Python's lock, as ctypes and cffi do. At the end the descriptor is what it was before, also if it was closed.
    """

    def __init__(self) -> None:
        self.component = ""
        self.users = self.lines = 0
        self.process = os.getpid()
        # loaded now: while a library is loaded or unloaded, which may take forever, no other library can be loaded
        self._c = c_library()
        self._before: int | None = None
        self._python: list[tuple[io.FileIO, Any, bool]] = []
        self._pipe: tuple[object, ...] = ()
        # not the end of the pipe: a process that the FMU has started may keep the pipe open
        self._end = os.urandom(16).hex().encode()
        self._is_read = threading.Lock()
        """Released for each end that was read."""
        self._is_read.acquire()
        self._is_last = False
        self._reader = threading.Thread(target=self._read, daemon=True)

    def _open(self) -> None:
        self._reading, self._writing = os.pipe()
        self._pipe = self._files()
        self._reader.start()

    def _files(self) -> tuple[object, ...]:
        return _file_of(self._reading), _file_of(self._writing)

    def begin(self, component: str) -> None:
        """Redirect the descriptor."""
        self.component, self.lines = component, 0
        _flush(self._c)
        self._before = _duplicate()
        if not self._pipe:  # now its descriptors have other numbers
            self._open()
        self._python = [] if self._before is None else _redirected_streams(self._before)
        os.dup2(self._writing, _STDOUT)

    def end(self) -> bool:
        """Restore the descriptor, and log the remaining output; returns whether all can be used again."""
        _flush(self._c)
        # the FMU may have closed any descriptor, or may have put another file in its place
        is_ours = self._pipe == self._files()
        with suppress(OSError):
            if self._before is None:
                os.close(_STDOUT)
            else:
                os.dup2(self._before, _STDOUT)
                for raw, name, owns_it in self._python:
                    _point(raw, _STDOUT, name, owns_it)
                os.close(self._before)
        if not is_ours:
            self._reader.join(_REST)
            return False
        os.write(self._writing, self._end)
        while not self._is_read.acquire(timeout=_REST):
            if not self._reader.is_alive():  # by an error of a handler of the log
                self.close_files()
                return False
        return True

    def close(self) -> None:
        """End the thread, after :meth:`end`."""
        self._is_last = True
        os.write(self._writing, self._end)
        self._reader.join()
        self.close_files()

    def close_files(self) -> None:
        """Close the pipe."""
        os.close(self._writing)
        os.close(self._reading)

    def _read(self) -> None:
        """Log line after line until the last end is read."""
        rest = b""
        while True:
            try:
                part = os.read(self._reading, _CHUNK)
            except OSError:
                part = b""
            if not part:  # the descriptor is not ours any more
                self._log(rest)
                return
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self._log(line)
            if rest.endswith(self._end):
                self._log(rest.removesuffix(self._end))
                rest = b""
                self._is_read.release()
                if self._is_last:
                    return
            if len(rest) > _LONGEST_LINE:
                # only a part of the end may have been read
                begin, rest = rest[: -len(self._end)], rest[-len(self._end) :]
                self._log(begin)

    def _log(self, line: bytes) -> None:
        text = visible(line.decode("utf-8", "replace").rstrip())
        if text:
            self.lines += 1
            who = f"{self.component}: " if self.component else ""
            log.info("FMU output: %s%s", who, text)


def _file_of(descriptor: int) -> tuple[int, int] | None:
    """What tells the file of a descriptor from others; None if it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _duplicate() -> int | None:
    """A duplicate of the descriptor of the standard output; None if that is closed; its number is then occupied."""
    try:
        return os.dup(_STDOUT)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != _STDOUT:  # else a pipe could get this number
            os.dup2(nowhere, _STDOUT)
            os.close(nowhere)
        return None


_RAW: tuple[Any, ...] = (io.FileIO, getattr(io, "_WindowsConsoleIO", io.FileIO))
"""Python's raw streams that write to a file descriptor."""


def _redirected_streams(descriptor: int) -> list[tuple[io.FileIO, Any, bool]]:
    """Redirect Python's streams on file descriptor 1 to another one; the same objects are used, because other code
    keeps them.

    Streams of notebooks and of tools that capture output write elsewhere, and are not changed. A stream that owns file
    descriptor 1, as ``os.fdopen(1, "w")`` does, closes it here.

    Returns
    -------
    Each with its name, and whether it owns the descriptor.
    """
    found: dict[int, tuple[io.FileIO, Any, bool]] = {}
    for stream in (sys.stdout, sys.__stdout__):
        buffer = getattr(stream, "buffer", None)
        raw: Any = getattr(buffer, "raw", buffer)
        with suppress(OSError, ValueError):  # closed
            if isinstance(raw, _RAW) and raw.fileno() == _STDOUT:
                found[id(raw)] = raw, raw.name, raw.closefd
                _point(raw, descriptor, raw.name)
    return list(found.values())


def _point(raw: io.FileIO, descriptor: int, name: Any, owns_it: bool = False) -> None:
    """Make an open file write to another descriptor; the one that it had stays open, if the file does not own it."""
    with suppress(OSError, ValueError):  # closed in the meantime
        raw.__init__(descriptor, "wb", closefd=owns_it)  # type: ignore[misc]
        raw.name = name


def _flush(c: ctypes.CDLL) -> None:
    """Flush the buffers of Python and C to the present descriptor."""
    for stream in (sys.stdout, sys.__stdout__):
        with suppress(OSError, ValueError, AttributeError):  # closed, or none at all
            stream.flush()  # type: ignore[union-attr]
    # a library with a C runtime of its own is not reached
    if not _MAY_HANG.is_set():
        c.fflush(None)
        return
    flush = threading.Thread(target=c.fflush, args=(None,), daemon=True)
    flush.start()
    flush.join(_PATIENCE)


_MAY_HANG = threading.Event()
"""Whether an FMU that does not return may hold the lock of a stream. A thread for each flush takes 0.1 ms."""


def expect_hanging_streams() -> None:
    """Note that an FMU was abandoned and still runs."""
    _MAY_HANG.set()
