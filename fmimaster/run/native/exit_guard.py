"""exit() inside an FMU ends its run with an error, and the process continues."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fmimaster.kernel._kernel import ffi, lib

_TOLD: dict[threading.Thread, Callable[[], None]] = {}
"""Thread in which FMUs are called → function to call at exit(). There is one table for the process."""

_LOCK = threading.Lock()


def _tell_nobody() -> None:
    """Note that Python itself ends: then exit() is its own call, even if an abandoned run continues in a thread."""
    lib.fm_at_exit(ffi.NULL)


atexit.register(_tell_nobody)


@contextmanager
def guarded(thread: threading.Thread, tell: Callable[[], None]) -> Iterator[None]:
    """Call a function if an FMU that is called in a thread ends the process by exit().

    The function is called in the thread that calls exit(), which then does not continue.
    """
    with _LOCK:
        _TOLD[thread] = tell
        lib.fm_at_exit(lib.fm_python_exit)
    try:
        yield
    finally:
        with _LOCK:
            del _TOLD[thread]
            if not _TOLD:
                lib.fm_at_exit(ffi.NULL)


@ffi.def_extern("fm_python_exit")  # type: ignore[untyped-decorator]
def _exit() -> None:
    """Notify the run of this thread, or all runs if an FMU has made the thread, and never return: destructors would
    free data that other threads use."""
    told = dict(_TOLD)
    here = threading.current_thread()
    for tell in [told[here]] if here in told else told.values():
        tell()
    threading.Event().wait()
