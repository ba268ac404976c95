"""State of the process that FMUs must not change: it is saved before FMUs are called, and restored after a change."""

from __future__ import annotations

import ctypes
import locale
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

log = logging.getLogger("fmimaster")

LOADING = threading.Lock()
"""Held while a library is loaded, because fmpy changes the working directory of the process."""

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE")
"""Signals that end a run, and that of a closed pipe; an FMU may use others itself."""

_ROOM = 1024
"""Size in bytes that is larger than a struct sigaction or an fenv_t of any C library."""

_Sigaction = ctypes.c_void_p * (_ROOM // ctypes.sizeof(ctypes.c_void_p))
"""A struct sigaction begins with the address of the handler; of the rest the C library leaves a part undefined."""


class ProcessState:
    """Working directory, file mode mask, locale, signal handlers, and rounding of floating-point numbers.

    It is saved when this object is made. Rounding belongs to the thread: :meth:`put_back` must be called in the thread
    that calls FMUs, which has inherited it.
    """

    def __init__(self) -> None:
        self._c = None if sys.platform == "win32" else ctypes.CDLL(None)
        self._told: dict[str, str] = {}
        with LOADING:  # a run in another thread may load a library
            self._folder = _folder()
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._locale = locale.setlocale(locale.LC_ALL)
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        self._handlers = {number: self._sigaction(number) for number in numbers}
        self._handlers_of_python = {number: signal.getsignal(number) for number in numbers}
        self._environment = ctypes.create_string_buffer(_ROOM)
        self._call("fegetenv", self._environment)
        self._arithmetic = self._find_arithmetic()

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes that were found and undone: ``"the locale"``."""
        return tuple(self._told.values())

    def put_back(self, who: str) -> None:
        """Restore changed state, with one warning for each kind of change that names the FMU, or all possible FMUs."""
        self.put_back_process(who)
        if self._find_arithmetic() != self._arithmetic:
            self._call("fesetenv", self._environment)
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
        self._put_back_folder(who)

    def put_back_signals(self, who: str) -> None:
        """Restore the handlers of signals; for any thread."""
        for number, handler in self._handlers.items():
            of_python = signal.getsignal(number)
            if of_python != self._handlers_of_python[number]:  # another thread has set it: no FMU
                self._handlers_of_python[number] = of_python
                self._handlers[number] = self._sigaction(number)
            elif self._sigaction(number)[0] != handler[0]:
                self._call("sigaction", number, handler, None)
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

    def _sigaction(self, number: signal.Signals) -> ctypes.Array[ctypes.c_void_p]:
        """The present handler."""
        found = _Sigaction()
        self._call("sigaction", number, None, found)
        return found

    def _find_arithmetic(self) -> tuple[Any, ...]:
        """Rounding mode, trapped exceptions, and treatment of subnormal numbers."""
        smallest = sys.float_info.min
        return self._call("fegetround"), self._call("fegetexcept"), smallest / 2 > 0.0

    def _call(self, name: str, *arguments: Any) -> Any:
        """A function of the C library; one without effect if it is missing."""
        function: Callable[..., Any] | None = getattr(self._c, name, None)
        return None if function is None else function(*arguments)

    def _tell(self, who: str, what: str) -> None:
        kind = what.partition(" to ")[0]
        if kind not in self._told:
            self._told[kind] = what
            log.warning("%s has changed %s, for the whole process. It was restored.", who, what)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None
