"""The C library of the process: handlers of signals, and the arithmetic of a thread, which FMUs must leave as they are."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

_ROOM = 1024
"""Size in bytes that is larger than a struct sigaction or an fenv_t of any C library."""

_Sigaction = ctypes.c_void_p * (_ROOM // ctypes.sizeof(ctypes.c_void_p))
"""A struct sigaction begins with the address of the handler; of the rest the C library leaves a part undefined."""


@cache
def c_library() -> ctypes.CDLL:
    """The C library that Python uses."""
    return ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)


@cache
def _function(name: str) -> Callable[..., Any] | None:
    return getattr(c_library(), name, None)


class Posix:
    """The state when this object is made; arithmetic is that of the thread."""

    def __init__(self) -> None:
        self._environment = ctypes.create_string_buffer(_ROOM)
        self._call("fegetenv", self._environment)
        self._arithmetic = self._find_arithmetic()

    def handler(self, number: int) -> Any:
        """The present handler of a signal."""
        found = _Sigaction()
        self._call("sigaction", number, None, found)
        return found

    @staticmethod
    def is_another(handler: Any, before: Any) -> bool:
        """Whether a signal is handled otherwise than before."""
        is_another: bool = handler[0] != before[0]
        return is_another

    def put_back_handler(self, number: int, handler: Any) -> None:
        """Restore a handler."""
        self._call("sigaction", number, handler, None)

    def puts_back_arithmetic(self) -> bool:
        """Restore the arithmetic of this thread; returns whether it was another one."""
        is_another = self._find_arithmetic() != self._arithmetic
        if is_another:
            self._call("fesetenv", self._environment)
        return is_another

    def put_back_others(self) -> Iterator[str]:
        """Restore what only this system has; yields what was changed."""
        yield from ()

    def _find_arithmetic(self) -> tuple[Any, ...]:
        """Rounding mode, trapped exceptions, and treatment of subnormal numbers."""
        smallest = sys.float_info.min
        return self._call("fegetround"), self._call("fegetexcept"), smallest / 2 > 0.0

    def _call(self, name: str, *arguments: Any) -> Any:
        """A function of the C library; one without effect if it is missing."""
        function = _function(name)
        return None if function is None else function(*arguments)


_ARITHMETIC = 0x03000000 | 0x0008001F | 0x00000300
"""_MCW_DN, _MCW_EM and _MCW_RC of <float.h>: subnormal numbers, trapped exceptions, rounding mode."""


class Windows:
    """The same, and how the system tells of errors."""

    _alone = threading.Lock()
    """A handler is read by setting another one, which no other thread may take for the handler."""

    def __init__(self) -> None:
        prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        self._signal = prototype(("signal", c_library()))
        self._system = ctypes.CDLL("kernel32")
        self._arithmetic = self._control(0, 0)
        self._error_mode = self._system.GetErrorMode()

    def handler(self, number: int) -> Any:
        """The present handler of a signal."""
        with self._alone:
            found = self._signal(number, None)  # there is no other way to read it
            self._signal(number, found)
        return found

    @staticmethod
    def is_another(handler: Any, before: Any) -> bool:
        """Whether a signal is handled otherwise than before."""
        return bool(handler != before)

    def put_back_handler(self, number: int, handler: Any) -> None:
        """Restore a handler."""
        with self._alone:
            self._signal(number, handler)

    def puts_back_arithmetic(self) -> bool:
        """Restore the arithmetic of this thread; returns whether it was another one."""
        is_another = self._control(0, 0) != self._arithmetic
        if is_another:
            self._control(self._arithmetic, _ARITHMETIC)
        return is_another

    def put_back_others(self) -> Iterator[str]:
        """Restore what only this system has; yields what was changed."""
        if self._system.SetErrorMode(self._error_mode) != self._error_mode:
            yield "how the system tells of errors (SetErrorMode)"

    def _control(self, value: int, mask: int) -> int:
        """The control word of this thread, with these bits set before."""
        found = ctypes.c_uint()
        c_library()._controlfp_s(ctypes.byref(found), value, mask)
        return found.value & _ARITHMETIC


CRuntime = Windows if sys.platform == "win32" else Posix
