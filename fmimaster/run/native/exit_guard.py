"""exit() inside an FMU ends its run with an error, and the process goes on."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fmimaster.kernel._kernel import ffi, lib

_TOLD: dict[threading.Thread, Callable[[], None]] = {}
"""Thread in which FMUs are called → whom to tell. A process ends as a whole, so there is one table."""

_LOCK = threading.Lock()


def _tell_nobody() -> None:
    """Python itself ends: then exit() is its own, though a run goes on in a thread that nobody waits for."""
    lib.fm_at_exit(ffi.NULL)


atexit.register(_tell_nobody)


@contextmanager
def guarded(thread: threading.Thread, tell: Callable[[], None]) -> Iterator[None]:
    """Call a function if an FMU that is called in a thread ends the process by exit().

    It is called in the thread that does so, which is often that one, and goes no further then.
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
    """Tell the run of this thread, or all if it is one of an FMU's own; and never return: destructors that would come
    next take away what others use."""
    told = dict(_TOLD)
    here = threading.current_thread()
    for tell in [told[here]] if here in told else told.values():
        tell()
    threading.Event().wait()
