"""Data of the kernel where the process that waits for a run can read it after any end of the run."""

from __future__ import annotations

from typing import Any

from fmimaster.apart import shared_run
from fmimaster.apart.shared_run import SharedNumber, SharedRun
from fmimaster.kernel._kernel import ffi
from fmimaster.run.native.present_call import call_of, integrator_call


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
        address = self._shared[SharedNumber.KERNEL]
        is_there = self._shared.holds(address, ffi.sizeof("fm_kernel"))
        return ffi.cast("fm_kernel *", address) if is_there else None

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
        present = int(ffi.cast("intptr_t", kernel.present))
        if not self._shared.holds(present, ffi.sizeof("fm_instruction")):
            return -1, "a function"
        is_initialized = self._mark(kernel.initialized, kernel.present.instance)
        return call_of(kernel.present[0], is_initialized != 0)

    def of_integrator(self, i: int, fmi: str) -> str:
        """The function that the integrator of an instance has called last; empty if it has none."""
        kernel = self._struct
        function = 0 if kernel is None else self._mark(kernel.calling, i)
        return integrator_call(function, fmi)

    def _mark(self, marks: Any, i: int) -> int:
        """Of an instance; 255 if the process has damaged where they are."""
        address = int(ffi.cast("intptr_t", marks)) + i
        return int(marks[i]) if i >= 0 and self._shared.holds(address) else 255

    def activity(self) -> tuple[int, ...]:
        """Numbers of which one changes whenever it makes another call."""
        kernel = self._struct
        if kernel is None:
            return ()
        present = int(ffi.cast("intptr_t", kernel.present))
        return present, kernel.attempts, kernel.n_rows, hash(kernel.begin), kernel.is_running
