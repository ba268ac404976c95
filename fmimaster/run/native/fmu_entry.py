"""Co-Simulation FMUs as the kernel calls them, by the addresses of their functions; and their intermediate updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import CallError
from fmimaster.fmu.call_log import OK
from fmimaster.fmu.kernel_entry import Binding, UpdateCallback
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.program.store import Courses
from fmimaster.run.native.header import TYPES, LentMemory
from fmimaster.run.native.instances import READ, KernelEntry, PythonEntry, Variables
from fmimaster.run.native.objects import Texts
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType, Variable


@dataclass(frozen=True, slots=True)
class Version:
    """The functions of the kernel for one FMI version."""

    name: Any
    table: Any
    bind: Any
    bind_derivative: Any


VERSIONS = {
    "fmi2": Version(
        lib.fm_fmi2_name, lib.fm_fmi2_table, lib.fm_fmi2_bind, lib.fm_fmi2_bind_derivative
    ),
    "fmi3": Version(
        lib.fm_fmi3_name, lib.fm_fmi3_table, lib.fm_fmi3_bind, lib.fm_fmi3_bind_derivative
    ),
}


@dataclass(frozen=True, slots=True)
class Lent:
    """What the entry of an FMU works on.

    Parameters
    ----------
    python : PythonEntry
        For what C cannot do.
    binding : Binding
    places : shape (number of places,)
        Room for the addresses of its saved FMU states.
    functions : cdata
        Addresses of its functions, which it shares with others from the same library.
    """

    python: PythonEntry
    binding: Binding
    places: NDArray[np.uintp]
    functions: Any


class FmuEntry(KernelEntry):
    """An FMU as the kernel calls it."""

    def __init__(self, lent: Lent) -> None:
        super().__init__()
        self._python, self._binding = lent.python, lent.binding
        self.instance = lent.python.instance
        self._version = VERSIONS[lent.binding.prefix]
        context, i, places = lent.python.context, lent.python.index, lent.places
        lent.binding.lend_places(lambda: [int(p) for p in places[places.nonzero()]])
        tolerance = context.plan.instances[i].tolerance.value
        self.entry = ffi.new("fm_instance *")
        self.component = ffi.cast("void *", lent.binding.component)
        self.shared = id(lent.functions) if type(self) is FmuEntry else 0
        self.fmu = self.made(
            "fm_fmu",
            component=self.component,
            functions=self.lent(lent.functions),
            places=places,
            kept_from=context.registers.kept_from[i:],
            initialized=context.registers.initialized[i:],
            calling=context.registers.calling[i:],
            tolerance=tolerance or 0.0,
            tolerance_defined=tolerance is not None,
        )
        if lent.binding.update_callback is not None:
            self.fmu.updates = lent.binding.update_callback.kept
        self._version.table(self.fmu, self.entry)
        self._updates = self._lend_updates()
        self._lend_rates(self.instance.model.capabilities.max_input_derivative_order)
        self._lend_coefficients()

    @property
    def requested(self) -> Sequence[int]:
        """Value references of the inputs that it requests in Intermediate Update Mode."""
        return () if self._updates is None else self._binding.intermediate

    def lent_memory(self) -> Sequence[Any]:
        """All that it lends to the kernel, also inside of steps."""
        updates = self._updates
        inside = () if updates is None else (updates.updates, *updates.kept)
        callback = self._binding.update_callback
        return [*self.kept, *inside, *([] if callback is None else [callback.kept])]

    def _lend_updates(self) -> _Updates | None:
        """Inputs that are set in Intermediate Update Mode, if there are any."""
        if not self.fmu.updates:
            return None
        context, i = self._python.context, self._python.index
        segments = context.plan.layout.segments(i, Group.CONTINUOUS)
        if not segments:
            return None

        def bind(call: Any) -> None:
            self._version.bind(self.fmu, TYPES[DataType.FLOAT64], False, call)

        return _Updates(self._binding, i, segments[0], context.store.courses, bind)

    def _lend_rates(self, most_orders: int) -> None:
        """FMI 2.0: references and orders of the derivatives of all continuous inputs, and room for them."""
        if not most_orders:
            return
        segments = self._python.context.plan.layout.segments(self._python.index, Group.CONTINUOUS)
        references = [r for s in segments for r in s.value_references] * most_orders
        n = len(references)
        if n:  # it takes some
            self.fill(
                self.fmu,
                most_orders=most_orders,
                rate_references=references,
                orders=[k for k in range(1, most_orders + 1) for _ in range(n // most_orders)],
                rates=np.zeros(n),
            )

    def _lend_coefficients(self) -> None:
        """Inputs that take the coefficients of polynomials."""
        layout, i = self._python.context.plan.layout, self._python.index
        model, found = self.instance.model, []
        for polynomial in model.input_polynomials:
            key = i, Group.CONTINUOUS, polynomial.input
            if key in layout.slots:
                first = layout.segments(i, Group.CONTINUOUS)[0].start
                variables = [model.variable(name) for name in polynomial.coefficients]
                found.append((layout.slots[key][1].start - first, [v for v in variables if v]))
        if not found:
            return
        table = self.table("fm_coefficients", [{"row": row} for row, _ in found])
        for entry, (_, targets) in zip(table, found, strict=False):
            self._bind_inputs(entry.segment, targets)
        self.fill(self.fmu, n_coefficients=len(found), coefficients=table)

    def _bind_inputs(self, call: Any, variables: Sequence[Variable]) -> None:
        """Make a call ready that sets Float64 variables to values of its own."""
        references, size = [v.value_reference for v in variables], sum(v.size for v in variables)
        n = len(references)
        self.fill(call, references=references, n=n, size=size, values=np.zeros(size))
        self._version.bind(self.fmu, TYPES[DataType.FLOAT64], False, ffi.addressof(call))

    def bind(self, call: Any, group: Group, segment: Segment, values: NDArray[Any]) -> None:
        """Make a call ready that reads or sets a segment."""
        if segment.type is DataType.BOOLEAN:
            self.fill(call, integers=np.zeros(call.size, np.intc))
        elif segment.type.dtype.hasobject:
            texts = Texts(self._python.context, segment.type, group in READ, values)
            call.texts = self.lent(texts).call
        self._version.bind(self.fmu, TYPES[segment.type], group in READ, ffi.addressof(call))

    def bind_derivative(self, call: Any, outputs: Variables, inputs: Variables) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""
        self._version.bind_derivative(self.fmu, ffi.addressof(call))

    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Make the call ready that asks for the intervals of clocks."""
        del references, answers
        lib.fm_fmi3_bind_intervals(self.fmu, by_fraction, ffi.addressof(call))

    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Raise the error in the words of the FMU."""
        if self._updates is not None and self._updates.error is not None:
            raise self._updates.error
        if self._python.error is not None:
            raise self._python.error
        is_answered = status == lib.FM_NOT_VALID
        self._binding.raise_failure(function, OK if is_answered else status, step)

    def messages(self) -> tuple[str, ...]:
        """What the FMU has logged."""
        return self._binding.messages()


def make_update_callback() -> UpdateCallback:
    """The callback of an instance before there is an executor: it does nothing until :class:`_Updates` fills it.

    An FMU gets its callback when it is instantiated. In C, a step of two FMUs with cubic inputs takes 0.7 us, in Python 57.
    """
    updates, handles = ffi.new("fm_updates *", {"degree": -1}), []
    function = ffi.cast("uintptr_t", ffi.addressof(lib, "fm_intermediate_update"))

    def read(reader: Callable[[float, float, bool], float]) -> None:
        handles.append(ffi.new_handle((reader, updates)))
        updates.reader, updates.read = handles[-1], lib.fm_python_read_outputs

    return UpdateCallback(int(function), int(ffi.cast("uintptr_t", updates)), updates, read)


@ffi.def_extern("fm_python_read_outputs", error=nan)  # type: ignore[untyped-decorator]
def _read_outputs(handle: Any, begin: float, time: float, can_return: int) -> float:
    reader, updates = ffi.from_handle(handle)
    try:
        return float(reader(begin, time, bool(can_return)))
    except CallError:  # the instance raises it when the step has ended
        updates.failed = 1
        return nan


class _Updates(LentMemory):
    """The intermediate updates of one instance.

    Parameters
    ----------
    binding : Binding
        How the kernel calls the instance.
    i : int
        Number of the instance.
    segment : Segment
        Of its continuous inputs.
    bind : function
        Makes an FMI call ready that sets Float64 variables.

    Attributes
    ----------
    updates : fm_updates
    error : CallError or None
        Of a call in Intermediate Update Mode that failed; the step raises it.
    """

    def __init__(
        self,
        binding: Binding,
        i: int,
        segment: Segment,
        courses: Courses,
        bind: Callable[[Any], None],
    ) -> None:
        super().__init__()
        assert binding.update_callback is not None
        self.error: CallError | None = None
        self._raise_failure = binding.raise_failure
        self.updates = u = binding.update_callback.kept
        chosen = [
            row
            for row, reference in enumerate(segment.value_references)
            if reference in binding.intermediate
        ]
        n, coefficients = segment.stop - segment.start, courses.coefficients[i]
        self.fill(
            u,
            rows=chosen,
            n_inputs=n,
            coefficients=np.zeros_like(coefficients),
            source_degree=courses.degree[i:],
            source_centre=courses.centre[i:],
            source_coefficients=coefficients,
            fail=lib.fm_python_update_failed,
            self=self.lent(ffi.new_handle(self)),
        )
        self.fill(
            u.inputs,
            references=[segment.value_references[row] for row in chosen],
            n=len(chosen),
            size=len(chosen),
            values=np.zeros(len(chosen)),
        )
        bind(ffi.addressof(u, "inputs"))

    def failed(self, status: int) -> None:
        """Take up what the call has returned."""
        try:
            self._raise_failure(ffi.string(self.updates.inputs.function).decode(), status, 0.0)
        except CallError as error:
            self.error = error


@ffi.def_extern("fm_python_update_failed")  # type: ignore[untyped-decorator]
def _failed(self: Any, status: int) -> None:
    ffi.from_handle(self).failed(status)
