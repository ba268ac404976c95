"""Instances as the kernel calls them: tables of functions; those of an instance in Python are written here, and those of an
FMU in a process of its own send requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.instance import Instance, Signal, Transfer
from fmimaster.fmu.kernel_entry import Requests
from fmimaster.inputs.polynomial import Polynomials
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.executor import InitialTimes, entering
from fmimaster.run.native.header import STATES, Context, LentMemory, called, extern
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import Variable
from fmimaster.system.states import State

Variables = Sequence[Variable]

READ = (Group.OUTPUTS, Group.SOURCES, Group.CLOCKS, Group.CLOCKED)
"""Groups that are read; all others are set."""

_STATE_OF = {number: state for state, number in STATES.items()}


class KernelEntry(LentMemory, ABC):
    """An instance as the kernel calls it.

    Attributes
    ----------
    entry : fm_instance
        Its table of functions.
    """

    entry: Any
    instance: Instance
    component: Any = None
    """Of an FMU that is called in this process: its address."""
    shared: int = 0
    """Identity of the functions of such an FMU: calls of two that share them differ in component and values only. 0 for
    what has calls of its own."""

    def lent_memory(self) -> Sequence[Any]:
        """All that it lends to the kernel."""
        return self.kept

    @abstractmethod
    def bind(self, call: Any, group: Group, segment: Segment, values: NDArray[Any]) -> None:
        """Make an FMI call ready that reads or sets a segment, with these values."""

    @abstractmethod
    def bind_derivative(self, call: Any, outputs: Variables, inputs: Variables) -> None:
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
        super().__init__()
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
        functions = (
            lib.fm_python_set_polynomials,
            lib.fm_python_do_step,
            lib.fm_python_save,
            lib.fm_python_restore,
            lib.fm_python_enter,
            lib.fm_python_update,
        )
        self.entry = ffi.new("fm_instance *", (self.handle, *functions))

    def bind(self, call: Any, group: Group, segment: Segment, values: NDArray[Any]) -> None:
        """Make a call ready that reads or sets a segment."""
        make = self.instance.getter if group in READ else self.instance.setter
        self._bind_transfer(call, make(segment.type, segment.value_references, values))

    def _bind_transfer(self, call: Any, transfer: Transfer) -> None:
        handle = self.lent(ffi.new_handle((self, transfer)))
        call.self, call.transfer = handle, lib.fm_python_transfer

    def bind_derivative(self, call: Any, outputs: Variables, inputs: Variables) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""
        sizes = ((call.seed, call.n_seed), (call.sensitivity, call.n_sensitivity))
        seed, sensitivity = (np.frombuffer(ffi.buffer(p, 8 * n), np.float64) for p, n in sizes)
        unknowns, knowns = ([v.value_reference for v in some] for some in (outputs, inputs))
        derive = self.instance.directional_derivative(unknowns, knowns, seed, sensitivity)
        handle = self.lent(ffi.new_handle((self, derive)))
        call.self, call.derive = handle, lib.fm_python_derive

    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Make the call ready that asks for the intervals of clocks."""
        del by_fraction
        self._bind_transfer(call, self.instance.intervals(references, answers))

    def keep(self, error: BaseException) -> None:
        """Keep what a call has raised."""
        if isinstance(error, CallError):
            self.error = error
        else:
            self.context.keep(error)

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
        times = InitialTimes(0.0)
        if state is State.INITIALIZATION_MODE:  # the kernel has no experiment for other states
            stop = experiment.stop if experiment.stop_defined else None
            times = InitialTimes(experiment.start, stop)
        tolerance = self.context.plan.instances[self.index].tolerance.value
        entering(self.instance, state, times, tolerance)()


class IsolatedEntry(KernelEntry):
    """An FMU in a process of its own: requests are collected and sent in C."""

    def __init__(self, python: PythonEntry, requests: Requests) -> None:
        super().__init__()
        self._python = python
        self.instance = python.instance
        self._requests = requests
        i, self.entry = python.index, requests.table
        registers, courses = python.context.registers, python.context.store.courses
        self.instance.kept_from = lambda: registers.kept_from.item(i)
        self.fill(
            requests.isolated,
            at=registers.at[i:],
            kept_from=registers.kept_from[i:],
            source_degree=courses.degree[i:],
            source_centre=courses.centre[i:],
            source_coefficients=courses.coefficients[i],
        )

    def bind(self, call: Any, group: Group, segment: Segment, values: NDArray[Any]) -> None:
        """Make a call ready that reads or sets a segment; what is text or binary goes through Python."""
        if segment.type.dtype == object:
            self._python.bind(call, group, segment, values)
            return
        is_get = group in READ
        remote = self._requests.remote(group, segment.type, segment.value_references, call.size)
        call.self, call.function = self.lent(remote), ffi.NULL
        call.transfer = ffi.addressof(lib, "fm_isolated_get" if is_get else "fm_isolated_set")

    def bind_derivative(self, call: Any, outputs: Variables, inputs: Variables) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""
        unknowns, knowns = ([v.value_reference for v in some] for some in (outputs, inputs))
        remote = self._requests.remote_derivative(unknowns, knowns, call.n_seed, call.n_sensitivity)
        call.self, call.derive = self.lent(remote), ffi.addressof(lib, "fm_isolated_derive")

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


@extern("fm_python_transfer")
def _transfer(call: Any) -> int:
    _, transfer = ffi.from_handle(call.self)
    transfer()
    return int(lib.FM_OK)


@extern("fm_python_derive")
def _derive(call: Any) -> int:
    _, derive = ffi.from_handle(call.self)
    derive()
    return int(lib.FM_OK)


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


called("fm_python_update", _update)
called("fm_python_events", lambda entry: entry.execute_events())
called("fm_python_set_polynomials", lambda entry, *_: entry.give_polynomials())
called("fm_python_do_step", _do_step)
called("fm_python_save", lambda entry, place, _: entry.instance.save(place))
called("fm_python_restore", lambda entry, place, _: entry.instance.restore(place))
called(
    "fm_python_enter",
    lambda entry, state, experiment, *_: entry.enter(_STATE_OF[state], experiment),
)
