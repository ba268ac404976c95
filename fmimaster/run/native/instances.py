"""Instances as the kernel calls them: tables of functions, of an FMU by its addresses, or written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.call_log import OK
from fmimaster.fmu.instance import Instance, Signal
from fmimaster.fmu.kernel_entry import Binding, KernelInterface
from fmimaster.inputs.polynomial import Polynomials
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.native.context import Context
from fmimaster.run.native.header import STATES, TYPES
from fmimaster.run.native.objects import Texts
from fmimaster.run.native.updates import Updates
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType, Variable
from fmimaster.system.states import State

READ = (Group.OUTPUTS, Group.SOURCES, Group.CLOCKS, Group.CLOCKED)
"""Groups that are read; all others are set."""

_STATE_OF = {number: state for state, number in STATES.items()}


class KernelEntry(ABC):
    """An instance as the kernel calls it.

    Attributes
    ----------
    entry : fm_instance
        Its table of functions.
    """

    entry: Any
    instance: Instance

    @abstractmethod
    def bind(
        self, call: Any, group: Group, segment: Segment, values: NDArray[Any] | None = None
    ) -> None:
        """Make an FMI call ready that reads or sets a segment, in the value store unless other values are given."""

    @abstractmethod
    def bind_derivative(
        self, call: Any, outputs: Sequence[Variable], inputs: Sequence[Variable]
    ) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""

    @abstractmethod
    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Make the call ready that asks for the intervals of clocks, of which all or none are fractions."""

    @abstractmethod
    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Raise the error for a call that failed; ``step`` is the length in s of the last step that failed."""

    @abstractmethod
    def messages(self) -> tuple[str, ...]:
        """What the instance logged last, oldest first."""


class PythonEntry(KernelEntry):
    """The functions of one instance, written in Python: of one that is, or of an FMU for what C cannot do."""

    def __init__(self, context: Context, i: int, instance: Instance) -> None:
        self.instance = instance
        instance.clock = partial(context.registers.at.item, i)
        self.error: CallError | None = None
        """What the last call raised."""
        self.logged: tuple[str, ...] = ()
        """What the instance logged before it discarded a step."""
        self.context = context
        self.index = i
        self.set_polynomials: Callable[[float, Signal], None] | None = None
        self.execute_events: Callable[[], None] = lambda: None
        """Event Mode inside a step, of a Model Exchange FMU."""
        self.handle = ffi.new_handle(self)
        self._transfers: list[Any] = []
        functions = (
            lib.fm_python_set_polynomials,
            lib.fm_python_do_step,
            lib.fm_python_save,
            lib.fm_python_restore,
            lib.fm_python_enter,
            lib.fm_python_update,
        )
        self.entry = ffi.new("fm_instance *", (self.handle, *functions))

    def bind(
        self, call: Any, group: Group, segment: Segment, values: NDArray[Any] | None = None
    ) -> None:
        """Make a call ready that reads or sets a segment."""
        make = self.instance.getter if group in READ else self.instance.setter
        if values is None:
            values = self.context.store.values[segment.type][segment.start : segment.stop]
        transfer = ffi.new_handle((self, make(segment.type, segment.value_references, values)))
        self._transfers.append(transfer)
        call.self, call.transfer = transfer, lib.fm_python_transfer

    def bind_derivative(
        self, call: Any, outputs: Sequence[Variable], inputs: Sequence[Variable]
    ) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""
        sizes = ((call.seed, call.n_seed), (call.sensitivity, call.n_sensitivity))
        seed, sensitivity = (np.frombuffer(ffi.buffer(p, 8 * n), np.float64) for p, n in sizes)
        unknowns, knowns = (
            [v.value_reference for v in variables] for variables in (outputs, inputs)
        )
        derive = self.instance.directional_derivative(unknowns, knowns, seed, sensitivity)
        handle = ffi.new_handle((self, derive))
        self._transfers.append(handle)
        call.self, call.derive = handle, lib.fm_python_derive

    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Make the call ready that asks for the intervals of clocks."""
        del by_fraction
        transfer = ffi.new_handle((self, self.instance.intervals(references, answers)))
        self._transfers.append(transfer)
        call.self, call.transfer = transfer, lib.fm_python_transfer

    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Raise what the call has raised."""
        del function, status, step
        assert self.error is not None
        raise self.error

    def messages(self) -> tuple[str, ...]:
        """What came with the answer of the step."""
        return self.logged

    def give_polynomials(self) -> None:
        """Give the instance its polynomials as they stand in the value store."""
        context, i = self.context, self.index
        at = context.registers.at.item(i)
        segment = context.plan.layout.segments(i, Group.CONTINUOUS)[0]
        if self.set_polynomials is None:
            self.set_polynomials = self.instance.polynomial_setter(segment.value_references)
        signal = context.store.courses.get(i)
        if signal is None:
            values = context.store.values[segment.type][segment.start : segment.stop]
            signal = Polynomials(values[np.newaxis].copy(), at)
        self.set_polynomials(at, signal)

    def enter(self, state: State, experiment: Any) -> None:
        """Bring the instance to a state; of the experiment (fm_experiment), Initialization Mode needs the times."""
        {
            State.CONFIGURATION_MODE: self.instance.enter_configuration_mode,
            State.INSTANTIATED: self.instance.exit_configuration_mode,
            State.INITIALIZATION_MODE: lambda: self.instance.enter_initialization_mode(
                experiment.start,
                experiment.stop if experiment.stop_defined else None,
                self.context.plan.instances[self.index].tolerance.value,
            ),
            State.STEP_MODE: self.instance.enter_step_mode,
            State.EVENT_MODE: self.instance.enter_event_mode,
            State.TERMINATED: self.instance.terminate,
        }[state]()


def guarded(entry: PythonEntry, act: Callable[..., int | None], *arguments: Any) -> int:
    """What the kernel gets from a call; an exception is kept."""
    try:
        status = act(*arguments)
    except CallError as error:
        entry.error = error
        return int(lib.FM_ERROR)
    except BaseException as error:  # Ctrl-C too: it is raised again where the kernel was called
        entry.context.raised = error
        return int(lib.FM_ERROR)
    return int(lib.FM_OK) if status is None else status


def _called(act: Callable[..., int | None]) -> Callable[..., int]:
    """A function of the table of an instance, which the kernel can call."""

    def call(self: Any, *arguments: Any) -> int:
        entry: PythonEntry = ffi.from_handle(self)
        return guarded(entry, act, entry, *arguments)

    return call


def _transfer(segment: Any) -> int:
    entry, transfer = ffi.from_handle(segment.self)
    return guarded(entry, transfer)


def _derive(derivative: Any) -> int:
    entry, derive = ffi.from_handle(derivative.self)
    return guarded(entry, derive)


def _do_step(entry: PythonEntry, time: float, size: float, answer: Any, _: Any) -> int | None:
    said = entry.instance.do_step(time, size)
    if said is None:
        return None
    answer.last_successful_time, answer.terminate = said.last_successful_time, said.terminate
    answer.discarded, answer.early, answer.event = said.discarded, said.early, said.event
    entry.logged = said.messages
    return int(lib.FM_DISCARD)


def _update(entry: PythonEntry, answer: Any, _: Any) -> None:
    said = entry.instance.update_discrete_states()
    answer.wants_update, answer.terminate = said.wants_update, said.terminate
    answer.next_event_time = said.next_event_time


def _escaped(_kind: Any, error: BaseException, traceback: Any) -> None:
    """Ctrl-C that arrives before the ``try`` of :func:`guarded`."""
    local = traceback.tb_frame.f_locals
    call = local.get("segment", local.get("derivative"))
    if call is not None:
        entry, _ = ffi.from_handle(call.self)
    else:
        entry = ffi.from_handle(local["self"])
    entry.context.raised = error


def _extern(name: str) -> Callable[[Callable[..., int]], Any]:
    """A function that the kernel calls; an exception that escapes it is an error of the call, not success."""
    return ffi.def_extern(name, error=lib.FM_ERROR, onerror=_escaped)  # type: ignore[no-any-return]


_extern("fm_python_update")(_called(_update))
_extern("fm_python_events")(_called(lambda entry: entry.execute_events()))
_extern("fm_python_transfer")(_transfer)
_extern("fm_python_derive")(_derive)
_extern("fm_python_set_polynomials")(_called(lambda entry, *_: entry.give_polynomials()))
_extern("fm_python_do_step")(_called(_do_step))
_extern("fm_python_save")(_called(lambda entry, place, _: entry.instance.save(place)))
_extern("fm_python_restore")(_called(lambda entry, place, _: entry.instance.restore(place)))
_extern("fm_python_enter")(
    _called(lambda entry, state, experiment, *_: entry.enter(_STATE_OF[state], experiment))
)


@dataclass(frozen=True, slots=True)
class Version:
    """The functions of the kernel for one FMI version."""

    name: Any
    table: Any
    bind: Any
    bind_derivative: Any


VERSIONS = {
    KernelInterface.FMI2: Version(
        lib.fm_fmi2_name, lib.fm_fmi2_table, lib.fm_fmi2_bind, lib.fm_fmi2_bind_derivative
    ),
    KernelInterface.FMI3: Version(
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
        python, binding, places, functions = lent.python, lent.binding, lent.places, lent.functions
        self._python = python
        self.instance = python.instance
        self._kept: list[Any] = [functions, places]
        self._binding = binding
        self._version = VERSIONS[binding.interface]
        self.entry = ffi.new("fm_instance *")
        self._fmu = fmu = ffi.new("fm_fmu *")
        fmu.component = ffi.cast("void *", binding.component)
        fmu.functions = functions
        fmu.places = ffi.cast("void **", ffi.from_buffer(places))
        binding.lend_places(lambda: [int(p) for p in places[places.nonzero()]])
        registers = python.context.registers
        fmu.kept_from = ffi.from_buffer("double[]", registers.kept_from) + python.index
        fmu.initialized = ffi.from_buffer("uint8_t[]", registers.initialized) + python.index
        fmu.calling = ffi.from_buffer("uint8_t[]", registers.calling) + python.index
        self._kept.append(registers)
        model = python.instance.model
        tolerance = python.context.plan.instances[python.index].tolerance.value
        fmu.tolerance, fmu.tolerance_defined = tolerance or 0.0, tolerance is not None
        if binding.update_callback is not None:
            fmu.updates = binding.update_callback.kept
        self._version.table(fmu, self.entry)
        self._updates = self._lend_updates()
        self._lend_rates(model.capabilities.max_input_derivative_order)
        self._lend_coefficients()

    def _lend_updates(self) -> Updates | None:
        """Inputs that are set in Intermediate Update Mode, if there are any."""
        context, i = self._python.context, self._python.index
        segments = context.plan.layout.segments(i, Group.CONTINUOUS)
        if not (self._fmu.updates and segments):
            return None

        def bind(call: Any) -> None:
            self._version.bind(self._fmu, TYPES[DataType.FLOAT64], False, call)

        return Updates(self._binding, i, segments[0], context.store.courses, bind)

    def _lend_rates(self, most_orders: int) -> None:
        """FMI 2.0: references and orders of the derivatives of all continuous inputs, and room for them."""
        segments = self._python.context.plan.layout.segments(self._python.index, Group.CONTINUOUS)
        references = [r for s in segments for r in s.value_references] * most_orders
        n, fmu = len(references), self._fmu
        if n == 0:  # it takes none
            return
        orders = [order for order in range(1, most_orders + 1) for _ in range(n // most_orders)]
        fmu.most_orders = most_orders
        fmu.rate_references, fmu.orders = self._lent("uint32_t[]", n), self._lent("int[]", n)
        fmu.rate_references[0:n], fmu.orders[0:n] = references, orders
        fmu.rates = self._lent("double[]", n)

    def _lend_coefficients(self) -> None:
        """Inputs that take the coefficients of polynomials."""
        layout, i = self._python.context.plan.layout, self._python.index
        model = self._python.instance.model
        found = []
        for polynomial in model.input_polynomials:
            key = i, Group.CONTINUOUS, polynomial.input
            if key in layout.slots:
                first = layout.segments(i, Group.CONTINUOUS)[0].start
                variables = [model.variable(name) for name in polynomial.coefficients]
                found.append((layout.slots[key][1].start - first, [v for v in variables if v]))
        table = self._lent("fm_coefficients[]", len(found))
        for entry, (row, targets) in zip(table, found, strict=True):
            entry.row, call = row, entry.segment
            call.n, call.size = len(targets), sum(v.size for v in targets)
            call.references = self._lent("uint32_t[]", call.n)
            call.references[0 : call.n] = [v.value_reference for v in targets]
            call.values = self._lent("double[]", call.size)
            self._version.bind(self._fmu, TYPES[DataType.FLOAT64], False, ffi.addressof(call))
        self._fmu.n_coefficients, self._fmu.coefficients = len(found), table

    def bind(
        self, call: Any, group: Group, segment: Segment, values: NDArray[Any] | None = None
    ) -> None:
        """Make a call ready that reads or sets a segment."""
        if segment.type is DataType.BOOLEAN:
            call.integers = self._lent("int[]", call.size)
        elif segment.type.dtype == object:
            context = self._python.context
            if values is None:
                values = context.store.values[segment.type][segment.start : segment.stop]
            texts = Texts(context, segment.type, group in READ, values)
            self._kept.append(texts)
            call.texts = texts.call
        self._version.bind(self._fmu, TYPES[segment.type], group in READ, ffi.addressof(call))

    def bind_derivative(
        self, call: Any, outputs: Sequence[Variable], inputs: Sequence[Variable]
    ) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""
        self._version.bind_derivative(self._fmu, ffi.addressof(call))

    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Make the call ready that asks for the intervals of clocks."""
        del references, answers
        lib.fm_fmi3_bind_intervals(self._fmu, by_fraction, ffi.addressof(call))

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

    def _lent(self, kind: str, size: int) -> Any:
        self._kept.append(ffi.new(kind, size))
        return self._kept[-1]
