"""FMUs in processes of their own as the kernel calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fmimaster.fmu.kernel_entry import Requests
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.native.instances import READ, KernelEntry, PythonEntry
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import Variable


class IsolatedEntry(KernelEntry):
    """An FMU in a process of its own: requests are collected and sent in C."""

    def __init__(self, python: PythonEntry, requests: Requests) -> None:
        self._python = python
        self.instance = python.instance
        self._requests = requests
        context, i = python.context, python.index
        self.entry = requests.table
        registers, courses = context.registers, context.store.courses
        self.instance.kept_from = lambda: registers.kept_from.item(i)
        self._kept = [
            ffi.from_buffer("double[]", registers.at),
            ffi.from_buffer("double[]", registers.kept_from),
            ffi.from_buffer("int[]", courses.degree),
            ffi.from_buffer("double[]", courses.centre),
            ffi.from_buffer("double[]", courses.coefficients[i]),
        ]
        at, kept_from, degree, centre, coefficients = self._kept
        c = requests.isolated
        c.at, c.kept_from = at + i, kept_from + i
        c.source_degree, c.source_centre = degree + i, centre + i
        c.source_coefficients = coefficients

    def bind(
        self, call: Any, group: Group, segment: Segment, values: NDArray[Any] | None = None
    ) -> None:
        """Make a call ready that reads or sets a segment; what is text or binary goes through Python."""
        if segment.type.dtype == object:
            self._python.bind(call, group, segment, values)
            return
        is_get = group in READ
        remote = self._requests.remote(group, segment.type, segment.value_references, call.size)
        self._kept.append(remote)
        call.self, call.function = remote, ffi.NULL
        call.transfer = ffi.addressof(lib, "fm_isolated_get" if is_get else "fm_isolated_set")

    def bind_derivative(
        self, call: Any, outputs: Sequence[Variable], inputs: Sequence[Variable]
    ) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""
        unknowns, knowns = ([v.value_reference for v in some] for some in (outputs, inputs))
        remote = self._requests.remote_derivative(unknowns, knowns, call.n_seed, call.n_sensitivity)
        self._kept.append(remote)
        call.self, call.derive = remote, ffi.addressof(lib, "fm_isolated_derive")

    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Make the call ready that asks for the intervals of clocks."""
        self._python.bind_intervals(call, references, answers, by_fraction)

    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Raise the error of the host, or the one that tells how it was lost."""
        del function, status, step
        if self._python.error is not None:
            raise self._python.error
        self._requests.raise_failure()

    def messages(self) -> tuple[str, ...]:
        """What the FMU has logged last."""
        return self._requests.messages()
