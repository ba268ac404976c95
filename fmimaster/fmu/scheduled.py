"""An FMI 3.0 Scheduled Execution FMU as an instance: what Event Mode is to others, activating model partitions is to it.

Source: FMI 3.0.2, section 5.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from fmpy.fmi3 import (
    fmi3ClockUpdateCallback,
    fmi3LockPreemptionCallback,
    fmi3UnlockPreemptionCallback,
)
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import CallError
from fmimaster.fmu.call_log import SUCCESS, MessageLog
from fmimaster.fmu.fmi3 import Fmi3Instance, FMU3ScheduledTolerant
from fmimaster.fmu.instance import InstanceOptions, StepAnswer, Transfer, UpdateAnswer
from fmimaster.fmu.kernel_entry import E, KernelEntries
from fmimaster.fmu.kernel_memory import ScheduledMemory
from fmimaster.system.clocks import Intervals, IntervalVariability, Qualifier
from fmimaster.system.model import Causality, DataType, Model, Variable


@dataclass
class _Known:
    """Variables that are read in one call."""

    values: NDArray[Any]
    """As they were read last."""
    read: Transfer
    is_unclocked: bool
    """Whether they always have values."""
    version: int = -1
    """Of the instance when they were read last."""


class ScheduledInstance(Fmi3Instance):
    """An FMU whose model partitions are activated by its input clocks.

    Its only mode after the initialization, Clock Activation Mode, is Event Mode and Step Mode of an instance; a step only
    moves its time. A clock that is set is due. The partitions of due clocks are activated before the next variable is
    read, or in the update at the latest: in the order of their priorities, the smallest number first, then by name. One
    partition ends before the next one begins, so that none is ever preempted, and locks have nothing to do.

    In ``ClockUpdate``, which the FMU calls inside a partition, its output clocks and the intervals of its countdown clocks
    are read, as FMI requires; both are given where they are asked for.
    """

    fmpy_class = FMU3ScheduledTolerant

    def __init__(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        clocks = [v for v in model.variables if v.clock is not None]
        self.clocks = sorted(clocks, key=_urgency)
        """In the order in which they are activated."""
        self._place = {v.value_reference: k for k, v in enumerate(self.clocks)}
        self.output_clocks = [v for v in clocks if v.causality is Causality.OUTPUT]
        self.countdowns = [v for v in clocks if _is_countdown(v)]
        self._countdown_references = [v.value_reference for v in self.countdowns]
        self.memory = ScheduledMemory(len(clocks), len(self.countdowns))
        self._memories: dict[int, NDArray[Any]] = {}
        self._versions: dict[int, int] = {}
        self._known: dict[tuple[DataType, tuple[int, ...]], _Known] = {}
        self._unclocked = {v.value_reference for v in model.variables if not v.clocks}
        self.version = np.zeros((), np.int64)
        """Changes with each activation and each restored state."""
        self.has_fmu_states = not model.capabilities.copies_states
        self.callbacks = options.partition_callbacks
        self._update_callback = None  # there are no intermediate updates
        super().__init__(fmu, model, name, messages, options)
        self._activate_partition = self.function(
            "ActivateModelPartition", ctypes.c_void_p, ctypes.c_uint32, ctypes.c_double
        )

    def _instantiate(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        in_python = fmi3ClockUpdateCallback(lambda _environment: self._update_clocks())
        update, lock, unlock = (
            in_python,
            fmi3LockPreemptionCallback(_nothing),
            fmi3UnlockPreemptionCallback(_nothing),
        )
        in_c = options.partition_callbacks
        if in_c is not None:
            in_c.otherwise(ctypes.cast(in_python, ctypes.c_void_p).value or 0)
            update = fmi3ClockUpdateCallback(in_c.clock_update)
            lock = fmi3LockPreemptionCallback(in_c.nothing)
            unlock = fmi3UnlockPreemptionCallback(in_c.nothing)
        self._in_python = in_python  # ctypes does not keep it alive, and C has its address
        self.make(
            "InstantiateScheduledExecution",
            (fmu, model, name, messages, options),
            environment=None if in_c is None else in_c.environment,
            callbacks=(update, lock, unlock),
        )

    @property
    def is_called_in_python(self) -> bool:
        """Whether the kernel calls its methods: also if the callbacks of the FMU are not those of the kernel."""
        return super().is_called_in_python or self.callbacks is None

    def _functions_for(self, kernel: KernelEntries[E]) -> E:
        return kernel.of_scheduled(self.binding, self)

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these variables after the activation of all due partitions.

        FMI does not allow reading between a set and the next activation, and nothing changes there: the values are those
        from before the set.
        """
        if kind is DataType.CLOCK:
            return self._clock_getter(references, values)
        key = kind, tuple(references)
        if key not in self._known:
            last = values.copy()
            read = super().getter(kind, references, last)
            is_unclocked = self._unclocked.issuperset(references)
            self._known[key] = _Known(last, read, is_unclocked)
        known = self._known[key]

        def act() -> None:
            self._activate()
            if not (self.memory.is_set and known.version == self.version):
                self._read(known)
            values[:] = known.values

        return act

    def _read(self, known: _Known) -> None:
        known.read()
        known.version = int(self.version)

    def _read_before_set(self) -> None:
        """What may be asked for after a set, and was not read since the last activation; clocked variables are read only
        where one has just been made."""
        if self.memory.is_set or self.memory.due.any():
            return
        for known in reversed(self._known.values()):  # as the kernel has them
            if known.is_unclocked and known.version != self.version:
                self._read(known)

    def _clock_getter(self, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        places = self.places(references)

        def act() -> None:
            self._activate()
            values[:] = self.memory.active[places]
            self.memory.active[places] = False

        return act

    def places(self, clocks: Sequence[int]) -> list[int]:
        """Where these clocks stand in the memory."""
        return [self._place[reference] for reference in clocks]

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets these variables; clocks that are active become due."""
        if kind is DataType.CLOCK:
            places = self.places(references)

            def tick() -> None:
                self.memory.due[places] |= values

            return tick
        write = super().setter(kind, references, values)

        def act() -> None:
            if self._initialized:
                self._read_before_set()
            write()
            self.memory.is_set[...] = self._initialized

        return act

    # Intervals

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        """A function that asks for intervals; those that the FMU has announced in ``ClockUpdate`` are given here.

        Those of countdown clocks are not asked for after the initialization: Clock Activation Mode does not allow it.
        """
        ask = super().intervals(clocks, answers)
        announced = self.memory.announced
        row_of = {reference: row for row, reference in enumerate(self._countdown_references)}
        rows = [row_of.get(clock) for clock in clocks]
        are_countdowns = None not in rows

        def act() -> None:
            self._activate()
            if are_countdowns and self._initialized:
                answers.qualifier[:] = Qualifier.NOT_YET_KNOWN
            else:
                ask()
            for k, row in enumerate(rows):
                if row is None or announced.qualifier[row] != Qualifier.CHANGED:
                    continue
                if answers.qualifier[k] != Qualifier.CHANGED:
                    for answer, told in zip(answers.arrays, announced.arrays, strict=True):
                        answer[k] = told[row]
                announced.qualifier[row] = Qualifier.NOT_YET_KNOWN

        return act

    # Model partitions

    def _activate(self) -> None:
        """``ActivateModelPartition`` for each clock that is due."""
        in_order = [place for place, is_due in enumerate(self.memory.due.tolist()) if is_due]
        if in_order:
            self.memory.due[:] = False
        for place in in_order:
            self._activate_by(place)

    def _activate_by(self, place: int) -> None:
        memory = self.memory
        if memory.activated[place] >= memory.now:
            raise self.second_tick(place)
        memory.activated[place] = memory.now
        memory.n_activations += 1
        memory.is_set[...] = False
        self.version += 1
        reference = self.clocks[place].value_reference
        status = self._activate_partition(self.component, reference, memory.now.item())
        self.inside.raise_if_failed()
        if status not in SUCCESS:
            self.fail("ActivateModelPartition", status)

    def second_tick(self, place: int) -> CallError:
        """The error if a clock ticks a second time at one time."""
        now = float(self.memory.now)
        return CallError(
            f"The clock '{self.name}.{self.clocks[place].name}' ticks a second time at t = {now:.12g} s, but FMI allows "
            "one activation of a model partition at one time (FMI 3.0, 5.2.2). Expected an interval above 0 s, or "
            "another clock for the second tick.",
            instance=self.name,
            function="fmi3ActivateModelPartition",
            status="not allowed",
            time=now,
        )

    def _update_clocks(self) -> None:
        """``ClockUpdate``, called by the FMU inside a partition."""
        try:
            self._read_output_clocks()
            self._read_countdowns()
        except CallError as error:  # an exception cannot pass through the FMU
            self.inside.failure = self.inside.failure or error

    def _read_output_clocks(self) -> None:
        if references := [clock.value_reference for clock in self.output_clocks]:
            n = len(references)
            values = (ctypes.c_bool * n)()
            self.call("GetClock", (ctypes.c_uint32 * n)(*references), ctypes.c_size_t(n), values)
            self.memory.active[self.places(references)] |= values

    def _read_countdowns(self) -> None:
        if not self.countdowns:
            return
        answers, ask = self._countdown_intervals
        ask()
        has_changed = answers.qualifier == Qualifier.CHANGED
        for told, answer in zip(self.memory.announced.arrays, answers.arrays, strict=True):
            told[has_changed] = answer[has_changed]

    @cached_property
    def _countdown_intervals(self) -> tuple[Intervals, Transfer]:
        answers = Intervals.of(len(self.countdowns))
        return answers, super().intervals(self._countdown_references, answers)

    def update_discrete_states(self) -> UpdateAnswer:
        """Activate all partitions that are due; output clocks are active up to here."""
        self._activate()
        self.memory.active[:] = False
        return UpdateAnswer()

    # Modes and time

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``EnterInitializationMode``."""
        self.memory.now[...] = start
        super().enter_initialization_mode(start, stop, tolerance)

    def enter_event_mode(self) -> None:
        """``ExitInitializationMode``, the first time."""
        self._exit_initialization_mode()

    def enter_step_mode(self) -> None:
        """``ExitInitializationMode``, the first time."""
        self._exit_initialization_mode()

    def _exit_initialization_mode(self) -> None:
        if not self._initialized:
            super().enter_step_mode()

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Only time advances."""
        self.memory.now[...] = time + size
        return None

    def reset(self) -> None:
        """``Reset``."""
        super().reset()
        self.memory.clear()
        self.version += 1

    # States

    def save(self, place: int) -> None:
        """``GetFMUState``, if the FMU has it."""
        if self.has_fmu_states:
            super().save(place)
        self._memories[place] = self.memory.values.copy()
        self._versions[place] = int(self.version)

    def restore(self, place: int) -> None:
        """``SetFMUState``, if the FMU has it; otherwise not behind an activation. Then the FMU stays as it is: what was set
        is set."""
        saved, memory = self._memories[place], self.memory
        is_set = bool(memory.is_set)
        if self.has_fmu_states:
            super().restore(place)
            is_set = bool(saved["is_set"])
        elif saved["n_activations"] != memory.n_activations:
            raise self.behind_activation(float(saved["now"]))
        memory.values[...] = saved
        memory.is_set[...] = is_set
        if self._versions[place] != self.version:  # else what was read since then is still right
            self.version += 1

    def behind_activation(self, time: float) -> CallError:
        """The error if a partition was activated after a time in s, and the FMU has no states."""
        return CallError(
            f"'{self.name}' cannot go back to t = {time:.12g} s: a model partition was activated since then, and "
            "the FMU cannot save its state (canGetAndSetFMUState is false). Use an algorithm that does not repeat "
            "steps.",
            instance=self.name,
            function="fmi3SetFMUState",
            status="not allowed",
            time=float(self.memory.now),
        )

    def serialized(self) -> bytes:
        """The memory and the FMU state as bytes."""
        return self.memory.values.tobytes() + super().serialized()

    def deserialize(self, state: bytes) -> None:
        """Go to a serialized state."""
        values = self.memory.values
        super().deserialize(state[values.nbytes :])
        values[...] = np.frombuffer(state, values.dtype, 1)[0]
        self.version += 1


def _urgency(clock: Variable) -> tuple[float, str]:
    """The order of partitions at one time: by priority, clocks without one last, then by name."""
    assert clock.clock is not None
    priority = clock.clock.priority
    return inf if priority is None else priority, clock.name


def _is_countdown(clock: Variable) -> bool:
    return bool(clock.clock and clock.clock.interval_variability is IntervalVariability.COUNTDOWN)


def _nothing() -> None:
    """A lock, or its end: no partition is ever preempted."""
