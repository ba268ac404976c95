"""The kernel of a run, seen from outside: the call that it makes, its data in shared memory, and exit() inside an FMU.

The process that waits for a run reads these data after any end of the run."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from fmimaster.apart import shared_run
from fmimaster.apart.shared_run import SharedNumber, SharedRun
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.system.states import State

_TO_STATE = {
    State.CONFIGURATION_MODE: "EnterConfigurationMode",
    State.INSTANTIATED: "ExitConfigurationMode",
    State.INITIALIZATION_MODE: "EnterInitializationMode",
    State.STEP_MODE: "EnterStepMode",
    State.EVENT_MODE: "EnterEventMode",
    State.TERMINATED: "Terminate",
}


@cache
def _functions() -> dict[int, str]:
    """What an operation calls."""
    from fmimaster.run.native.header import OPERATIONS  # it imports much; see apart/shared_run.py

    found = {OPERATIONS[kind]: kind.calls.value for kind in OPERATIONS if kind.calls is not None}
    return {**found, lib.FM_STEP_LIMITED: found[lib.FM_STEP]}


def call_of(entry: Any, is_initialized: bool) -> tuple[int, str] | None:
    """Number of the instance that an encoded instruction calls, and the function; None if it calls none.

    Parameters
    ----------
    is_initialized : bool
        Whether the instance has left Initialization Mode.
    """
    if entry.op == lib.FM_MODE:
        from fmimaster.run.native.header import STATES

        state = next(state for state, number in STATES.items() if number == entry.mode.state)
        if state in (State.STEP_MODE, State.EVENT_MODE) and not is_initialized:
            return entry.instance, "ExitInitializationMode"
        return entry.instance, _TO_STATE[state]
    if (function := _functions().get(entry.op)) is not None:
        return entry.instance, function
    if entry.op in (lib.FM_GET, lib.FM_GET_CLOCKS, lib.FM_GET_CLOCKED, lib.FM_GET_INTERVALS):
        return entry.instance, "a Get function"
    if entry.op in (lib.FM_SET, lib.FM_MOVE_SET, lib.FM_SET_TRIGGERS):
        return entry.instance, "a Set function"
    return None


def integrator_call(mark: int, fmi: str) -> str:
    """The function that the integrator of an FMU has called last, by its mark; empty if it has none.

    Parameters
    ----------
    mark : int
        Entry of :attr:`fmimaster.run.rows.Registers.calling`.
    fmi : str
        ``"fmi2"`` or ``"fmi3"``.
    """
    if not lib.FM_SET_TIME <= mark <= lib.FM_COMPLETED_INTEGRATOR_STEP:
        return ""
    name = lib.fm_fmi2_name(mark) if fmi == "fmi2" else lib.fm_fmi3_name(mark)
    return str(ffi.string(name).decode()) if name else ""


def _memory(size: int) -> Any:
    address = 0 if shared_run.current is None else shared_run.current.take(size)
    return ffi.cast("char *", address) if address else ffi.new("char[]", size)


def _give_back(memory: Any) -> None:
    if shared_run.current is not None:
        shared_run.current.give_back(int(ffi.cast("intptr_t", memory)))


_new_shared = ffi.new_allocator(alloc=_memory, free=_give_back, should_clear_after_alloc=True)


def new(kind: str, value: Any = None) -> Any:
    """As ``ffi.new``; in the process of a run in shared memory."""
    return (ffi.new if shared_run.current is None else _new_shared)(kind, value)


def new_kernel() -> Any:
    """The struct of a kernel, which the process that waits finds."""
    kernel = new("fm_kernel *")
    if shared_run.current is not None:
        shared_run.current.numbers[SharedNumber.KERNEL] = int(ffi.cast("intptr_t", kernel))
    return kernel


class KernelOutside:
    """The kernel of a run in another process, read from shared memory."""

    def __init__(self, shared: SharedRun) -> None:
        self._shared = shared

    @property
    def _struct(self) -> Any:
        """None if there is no kernel."""
        address = self._shared.here(self._shared[SharedNumber.KERNEL], ffi.sizeof("fm_kernel"))
        return ffi.cast("fm_kernel *", address) if address else None

    @property
    def rows(self) -> int | None:
        """How many rows of the block are filled; None without a kernel."""
        kernel = self._struct
        return None if kernel is None else int(kernel.n_rows)

    @property
    def begin(self) -> float | None:
        """Start in s of the interval on which it works; None without a kernel."""
        kernel = self._struct
        return None if kernel is None else float(kernel.begin)

    def call(self) -> tuple[int, str] | None:
        """Number of the instance that it calls, and the function; None if it calls none."""
        kernel = self._struct
        if kernel is None or not kernel.is_running:
            return None
        there = int(ffi.cast("intptr_t", kernel.present))
        address = self._shared.here(there, ffi.sizeof("fm_instruction"))
        if not address:
            return -1, "a function"
        present = ffi.cast("fm_instruction *", address)
        is_initialized = self._mark(kernel.initialized, present.instance)
        return call_of(present[0], is_initialized != 0)

    def of_integrator(self, i: int, fmi: str) -> str:
        """The function that the integrator of an instance has called last; empty if it has none."""
        kernel = self._struct
        function = 0 if kernel is None else self._mark(kernel.calling, i)
        return integrator_call(function, fmi)

    def _mark(self, marks: Any, i: int) -> int:
        """Of an instance; 255 if the process has damaged where they are."""
        address = self._shared.here(int(ffi.cast("intptr_t", marks)) + i) if i >= 0 else 0
        return int(ffi.cast("uint8_t *", address)[0]) if address else 255

    def activity(self) -> tuple[int, ...]:
        """Numbers of which one changes whenever it makes another call."""
        kernel = self._struct
        if kernel is None:
            return ()
        present = int(ffi.cast("intptr_t", kernel.present))
        return present, kernel.attempts, kernel.n_rows, hash(kernel.begin), kernel.is_running


# exit() inside an FMU -------------------------------------------------------------------------------------------------

_TOLD: dict[threading.Thread, Callable[[], None]] = {}
"""Thread in which FMUs are called → function to call at exit(). There is one table for the process."""

_LOCK = threading.Lock()


def _tell_nobody() -> None:
    """Note that Python itself ends: then exit() is its own call, even if an abandoned run continues in a thread."""
    lib.fm_at_exit(ffi.NULL)


atexit.register(_tell_nobody)


@contextmanager
def telling_of_exit(thread: threading.Thread, tell: Callable[[], None]) -> Iterator[None]:
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
