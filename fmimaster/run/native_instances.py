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
from fmimaster.system.states import State

if TYPE_CHECKING:
    from fmimaster.run.native import NativeExecutor

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
        self.interpolator: Callable[[float, Signal], None] | None = None
        self.transfers: dict[int, Callable[[], None]] = {}
        """Address of the value references → what reads or sets these variables."""
        self.handle = ffi.new_handle(self)
        self.entry = ffi.new(
            "fm_instance *",
            (
                self.handle,
                lib.fm_python_get,
                lib.fm_python_set,
                lib.fm_python_interpolate,
                lib.fm_python_do_step,
                lib.fm_python_save,
                lib.fm_python_restore,
                lib.fm_python_enter,
            ),
        )

    def lend(self, group: Group, segment: Segment, address: int) -> None:
        """Make what moves a segment, if that is done in Python."""
        if isinstance(self.instance, BinaryInstance) and segment.type.dtype != object:
            return
        make = self.instance.getter if group is Group.OUTPUTS else self.instance.setter
        values = self.executor.store.values[segment.type][segment.start : segment.stop]
        self.transfers[address] = make(segment.type, segment.value_references, values)

    def interpolate(self) -> None:
        """Tell the FMU the polynomials as they stand in the kernel."""
        executor, i = self.executor, self.index
        degree, at = executor.kernel.degree[i], float(executor.at[i])
        segment = executor.plan.layout.segments(i, Group.CONTINUOUS)[0]
        if self.interpolator is None:
            self.interpolator = self.instance.interpolator(segment.value_references)
        if degree < 0:
            values = executor.store.values[segment.type][segment.start : segment.stop]
            signal = Polynomials(values[np.newaxis].copy(), at)
        else:
            coefficients = executor.coefficients[i][: degree + 1].copy()
            signal = Polynomials(coefficients, float(executor.centre[i]))
        self.interpolator(at, signal)

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


def _guarded(act: Callable[..., None]) -> Callable[..., int]:
    """A function that the kernel can call: an exception is kept, and told by the status."""

    def call(self: Any, *arguments: Any) -> int:
        table: PythonInstance = ffi.from_handle(self)
        try:
            act(table, *arguments)
        except CallError as error:
            table.error = error
            return int(lib.FM_ERROR)
        return int(lib.FM_OK)

    return call


def _transfer(table: PythonInstance, _type: int, references: Any, *_: Any) -> None:
    table.transfers[int(ffi.cast("uintptr_t", references))]()


def _do_step(table: PythonInstance, time: float, size: float, answer: Any, _: Any) -> None:
    said = table.instance.do_step(time, size)
    if said is not None:
        answer.last_successful_time = said.last_successful_time
        answer.discarded, answer.terminate = said.discarded, said.terminate
        table.messages = said.messages


ffi.def_extern("fm_python_get")(_guarded(_transfer))
ffi.def_extern("fm_python_set")(_guarded(_transfer))
ffi.def_extern("fm_python_interpolate")(_guarded(lambda table, *_: table.interpolate()))
ffi.def_extern("fm_python_do_step")(_guarded(_do_step))
ffi.def_extern("fm_python_save")(_guarded(lambda table, place, _: table.instance.save(place)))
ffi.def_extern("fm_python_restore")(_guarded(lambda table, place, _: table.instance.restore(place)))
ffi.def_extern("fm_python_enter")(_guarded(lambda table, state, *_: table.enter(STATES[state])))


class FmuInstance:
    """An FMU as the kernel calls it: addresses of its functions."""

    def __init__(self, python: PythonInstance, instance: BinaryInstance, n_places: int) -> None:
        self._python = python
        self.entry = ffi.new("fm_instance *")
        self._fmu = fmu = ffi.new("fm_fmu *")
        name_of, table = (
            (lib.fm_fmi2_name, lib.fm_fmi2_table)
            if instance.prefix == "fmi2"
            else (lib.fm_fmi3_name, lib.fm_fmi3_table)
        )
        fmu.component = ffi.cast("void *", instance.component.value)
        for function in range(lib.FM_FUNCTIONS):
            name = name_of(function)
            address = instance.address(ffi.string(name).decode()) if name else 0
            fmu.functions[function] = ffi.cast("void *", address)
        largest = 1 + max((v.size for v in instance.model.variables), default=0)
        room = largest * max(len(instance.model.variables), 1)
        self._places = ffi.new("void *[]", max(n_places, 1))
        self._booleans = ffi.new("int32_t[]", room)
        self._orders = ffi.new("int[]", 64)
        fmu.places, fmu.booleans, fmu.orders = self._places, self._booleans, self._orders
        fmu.most_orders = instance.model.capabilities.max_input_derivative_order
        tolerance = instance.model.default_experiment.tolerance
        fmu.tolerance, fmu.tolerance_defined = tolerance or 0.0, tolerance is not None
        fmu.python = python.entry
        table(fmu, self.entry)
