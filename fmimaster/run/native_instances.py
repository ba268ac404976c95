"""Instances as the kernel calls them: tables of functions, of an FMU by its addresses, or written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fmimaster.errors import CallError
from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.instance import Instance, Signal
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.inputs import Polynomials
from fmimaster.system.model import DataType
from fmimaster.system.states import State

if TYPE_CHECKING:
    from fmimaster.run.native import NativeExecutor

TYPES = tuple(DataType)
"""Types in the order of the kernel's fm_type."""

STATES = tuple(State)
"""States in the order of the kernel's fm_state."""


class PythonInstance:
    """The functions of one instance, written in Python: of one that is, or of an FMU for what C cannot do."""

    def __init__(self, executor: NativeExecutor, i: int, instance: Instance) -> None:
        self.instance = instance
        self.error: CallError | None = None
        """What the last call raised."""
        self.messages: tuple[str, ...] = ()
        """What the instance logged before it discarded a step."""
        self.executor = executor
        self.index = i
        self.set_polynomials: Callable[[float, Signal], None] | None = None
        self.handle = ffi.new_handle(self)
        self._transfers: list[Any] = []
        self.entry = ffi.new(
            "fm_instance *",
            (
                self.handle,
                lib.fm_python_interpolate,
                lib.fm_python_do_step,
                lib.fm_python_save,
                lib.fm_python_restore,
                lib.fm_python_enter,
                lib.fm_python_update,
            ),
        )

    def bind(self, call: Any, group: Group, segment: Segment) -> None:
        """Make a call ready that reads or sets a segment."""
        is_get = group in (Group.OUTPUTS, Group.CLOCKS)
        make = self.instance.getter if is_get else self.instance.setter
        values = self.executor.store.values[segment.type][segment.start : segment.stop]
        transfer = ffi.new_handle((self, make(segment.type, segment.value_references, values)))
        self._transfers.append(transfer)
        call.self, call.transfer = transfer, lib.fm_python_transfer

    def interpolate(self) -> None:
        """Tell the FMU the polynomials as they stand in the kernel."""
        executor, i = self.executor, self.index
        degree, at = executor.kernel.degree[i], float(executor.at[i])
        segment = executor.plan.layout.segments(i, Group.CONTINUOUS)[0]
        if self.set_polynomials is None:
            self.set_polynomials = self.instance.polynomial_setter(segment.value_references)
        if degree < 0:
            values = executor.store.values[segment.type][segment.start : segment.stop]
            signal = Polynomials(values[np.newaxis].copy(), at)
        else:
            coefficients = executor.coefficients[i][: degree + 1].copy()
            signal = Polynomials(coefficients, float(executor.centre[i]))
        self.set_polynomials(at, signal)

    def enter(self, state: State) -> None:
        """Bring the instance to a state."""
        experiment = self.executor.experiment
        {
            State.CONFIGURATION_MODE: self.instance.enter_configuration_mode,
            State.INSTANTIATED: self.instance.exit_configuration_mode,
            State.INITIALIZATION_MODE: lambda: self.instance.enter_initialization_mode(
                experiment.start, experiment.stop, experiment.tolerance
            ),
            State.STEP_MODE: self.instance.enter_step_mode,
            State.EVENT_MODE: self.instance.enter_event_mode,
            State.TERMINATED: self.instance.terminate,
        }[state]()


def _status(table: PythonInstance, act: Callable[..., int | None], *arguments: Any) -> int:
    """What the kernel is told of a call; an exception is kept."""
    try:
        status = act(*arguments)
    except CallError as error:
        table.error = error
        return int(lib.FM_ERROR)
    except BaseException as error:  # Ctrl-C too: it is raised again where the kernel was called
        table.executor.hook_error = error
        return int(lib.FM_ERROR)
    return int(lib.FM_OK) if status is None else status


def _called(act: Callable[..., int | None]) -> Callable[..., int]:
    """A function of the table of an instance, which the kernel can call."""

    def call(self: Any, *arguments: Any) -> int:
        table: PythonInstance = ffi.from_handle(self)
        return _status(table, act, table, *arguments)

    return call


def _transfer(segment: Any) -> int:
    table, transfer = ffi.from_handle(segment.self)
    return _status(table, transfer)


def _do_step(table: PythonInstance, time: float, size: float, answer: Any, _: Any) -> int | None:
    said = table.instance.do_step(time, size)
    if said is None:
        return None
    answer.last_successful_time, answer.terminate = said.last_successful_time, said.terminate
    answer.discarded, answer.early, answer.event = said.discarded, said.early, said.event
    table.messages = said.messages
    return int(lib.FM_DISCARD)


def _update(table: PythonInstance, answer: Any, _: Any) -> None:
    said = table.instance.update_discrete_states()
    answer.wants_update, answer.terminate = said.wants_update, said.terminate
    answer.next_event_time = said.next_event_time


def _hook(python: Any, hook: int) -> int:
    executor: NativeExecutor = ffi.from_handle(python)
    try:
        executor.hooks[hook](executor.store)
    except BaseException as error:  # Ctrl-C too: it is raised again where the kernel was called
        executor.hook_error = error
        return int(lib.FM_ERROR)
    return int(lib.FM_OK)


ffi.def_extern("fm_python_update")(_called(_update))
ffi.def_extern("fm_python_call")(_hook)
ffi.def_extern("fm_python_transfer")(_transfer)
ffi.def_extern("fm_python_interpolate")(_called(lambda table, *_: table.interpolate()))
ffi.def_extern("fm_python_do_step")(_called(_do_step))
ffi.def_extern("fm_python_save")(_called(lambda table, place, _: table.instance.save(place)))
ffi.def_extern("fm_python_restore")(_called(lambda table, place, _: table.instance.restore(place)))
ffi.def_extern("fm_python_enter")(_called(lambda table, state, *_: table.enter(STATES[state])))


def functions_of(instance: BinaryInstance) -> Any:
    """Addresses of the FMI functions of an instance's library."""
    name_of = lib.fm_fmi2_name if instance.prefix == "fmi2" else lib.fm_fmi3_name
    names = [name_of(function) for function in range(lib.FM_FUNCTIONS)]
    addresses = [instance.address(ffi.string(name).decode()) if name else 0 for name in names]
    return ffi.new("void *[]", [ffi.cast("void *", address) for address in addresses])


class FmuInstance:
    """An FMU as the kernel calls it: addresses of its functions, which it shares with others from the same library."""

    def __init__(
        self, python: PythonInstance, instance: BinaryInstance, n_places: int, functions: Any
    ) -> None:
        self._python = python
        self._kept: list[Any] = [functions]
        self.entry = ffi.new("fm_instance *")
        self._fmu = fmu = ffi.new("fm_fmu *")
        is_fmi2 = instance.prefix == "fmi2"
        table = lib.fm_fmi2_table if is_fmi2 else lib.fm_fmi3_table
        self._bind = lib.fm_fmi2_bind if is_fmi2 else lib.fm_fmi3_bind
        fmu.component = ffi.cast("void *", instance.component.value)
        fmu.functions = functions
        places = fmu.places = self._lent("void *[]", max(n_places, 1))
        instance.lent_places = lambda: [int(ffi.cast("uintptr_t", p)) for p in places if p]
        fmu.orders = self._lent("int[]", 64)
        fmu.most_orders = instance.model.capabilities.max_input_derivative_order
        tolerance = instance.model.default_experiment.tolerance
        fmu.tolerance, fmu.tolerance_defined = tolerance or 0.0, tolerance is not None
        fmu.python = python.entry
        self._lend_coefficients(python, instance)
        table(fmu, self.entry)

    def _lend_coefficients(self, python: PythonInstance, instance: BinaryInstance) -> None:
        """Inputs that take the coefficients of polynomials."""
        slots = python.executor.plan.layout.slots
        found = []
        for polynomial in instance.model.input_polynomials:
            key = python.index, Group.CONTINUOUS, polynomial.input
            if key in slots:
                first = python.executor.plan.layout.segments(python.index, Group.CONTINUOUS)[
                    0
                ].start
                variables = [instance.model.variable(name) for name in polynomial.coefficients]
                found.append((slots[key][1].start - first, [v for v in variables if v]))
        table = self._lent("fm_coefficients[]", len(found))
        for entry, (row, targets) in zip(table, found, strict=True):
            entry.row, call = row, entry.segment
            call.n, call.size = len(targets), sum(v.size for v in targets)
            call.references = self._lent("uint32_t[]", call.n)
            call.references[0 : call.n] = [v.value_reference for v in targets]
            call.values = self._lent("double[]", call.size)
            set_float64 = TYPES.index(DataType.FLOAT64), False
            self._bind(self._fmu, *set_float64, ffi.addressof(call))
        self._fmu.n_coefficients, self._fmu.coefficients = len(found), table

    def bind(self, call: Any, group: Group, segment: Segment) -> None:
        """Make a call ready that reads or sets a segment; what is text or binary goes through Python."""
        if segment.type.dtype == object:
            self._python.bind(call, group, segment)
            return
        call.integers = self._lent("int[]", call.size if segment.type is DataType.BOOLEAN else 0)
        is_get = group in (Group.OUTPUTS, Group.CLOCKS)
        self._bind(self._fmu, TYPES.index(segment.type), is_get, ffi.addressof(call))

    def _lent(self, kind: str, size: int) -> Any:
        self._kept.append(ffi.new(kind, size))
        return self._kept[-1]
