"""An FMI 3.0 Scheduled Execution FMU as an instance: what Event Mode is to others, activating model partitions is to it.

Source: FMI 3.0.2, section 5.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from struct import Struct
from typing import Any

from fmpy.fmi3 import (
    fmi3ClockUpdateCallback,
    fmi3LockPreemptionCallback,
    fmi3LogMessageCallback,
    fmi3UnlockPreemptionCallback,
)
from numpy.typing import NDArray

from fmimaster.errors import CallError
from fmimaster.fmu.binary import MessageLog
from fmimaster.fmu.fmi3 import Fmi3Instance
from fmimaster.fmu.instance import (
    IN_PYTHON,
    Binding,
    InstanceOptions,
    StepAnswer,
    Transfer,
    UpdateAnswer,
)
from fmimaster.fmu.status import SUCCESS
from fmimaster.system.clocks import Intervals, IntervalVariability, Qualifier
from fmimaster.system.model import Causality, DataType, Model, Variable

_LENGTH = Struct("<I")
"""Length of the memory at the start of a serialized state."""


@dataclass
class _Memory:
    """What the instance remembers beside its FMU; a copy of it belongs to each saved FMU state."""

    now: float = 0.0
    """Time in s."""
    due: set[int] = field(default_factory=set)
    """Clocks that tick now, whose partitions are not activated yet."""
    activated: dict[int, float] = field(default_factory=dict)
    """Clock → time in s of its last activation."""
    n_activations: int = 0
    active: set[int] = field(default_factory=set)
    """Output clocks that the FMU has activated, and nobody has read yet."""
    announced: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    """Countdown clock → counter, resolution and seconds of its interval, which nobody has read yet."""
    is_set: bool = False
    """Whether a variable was set after the last activation."""

    def plain(self) -> list[Any]:
        """All of it as JSON has it."""
        activated, announced = list(self.activated.items()), list(self.announced.items())
        sets = sorted(self.due), activated, sorted(self.active), announced
        return [self.now, *sets, self.n_activations, self.is_set]

    @classmethod
    def of(cls, plain: list[Any]) -> _Memory:
        """What :meth:`plain` has returned."""
        now, due, activated, active, announced, n_activations, is_set = plain
        times = {clock: tuple(time) for clock, time in announced}
        return cls(now, set(due), dict(activated), n_activations, set(active), times, is_set)


class ScheduledInstance(Fmi3Instance):
    """An FMU whose model partitions are activated by its input clocks.

    Its only mode after the initialization, Clock Activation Mode, is Event Mode and Step Mode of an instance; a step only
    moves its time. A clock that is set is due. The partitions of due clocks are activated before the next variable is
    read, or in the update at the latest: in the order of their priorities, the smallest number first, then by name. One
    partition ends before the next one begins, so that none is ever preempted, and locks have nothing to do.

    In ``ClockUpdate``, which the FMU calls inside a partition, its output clocks and the intervals of its countdown clocks
    are read, as FMI requires; both are given where they are asked for.
    """

    def __init__(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        self._memory = _Memory()
        self._memories: dict[int, _Memory] = {}
        self._version = 0
        """Changes with each activation and each restored state."""
        self._has_fmu_states = not model.capabilities.copies_states
        clocks = [v for v in model.variables if v.clock is not None]
        self._clocks = {v.value_reference: v for v in clocks}
        self._output_clocks = [v.value_reference for v in clocks if v.causality is Causality.OUTPUT]
        self._countdowns = [
            v.value_reference
            for v in clocks
            if v.clock and v.clock.interval_variability is IntervalVariability.COUNTDOWN
        ]
        super().__init__(fmu, model, name, messages, options)
        self._activate_partition = self.function(
            "ActivateModelPartition", ctypes.c_void_p, ctypes.c_uint32, ctypes.c_double
        )

    def _instantiate(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        fmu.must_have("fmi3InstantiateScheduledExecution")
        self._callbacks = (
            fmi3LogMessageCallback(
                lambda _environment, status, category, text: messages.add(status, category, text)
            ),
            fmi3ClockUpdateCallback(lambda _environment: self._update_clocks()),
            fmi3LockPreemptionCallback(_nothing),
            fmi3UnlockPreemptionCallback(_nothing),
        )
        fmu.component = fmu.fmi3InstantiateScheduledExecution(
            name.encode(),
            model.instantiation_token.encode(),
            fmu.resources,
            False,
            options.logging_on,
            None,
            *self._callbacks,
        )
        if not fmu.component:
            raise ValueError("fmi3InstantiateScheduledExecution returned null")

    @property
    def binding(self) -> Binding:
        """The kernel calls it in Python: activations are ordered here."""
        return IN_PYTHON

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these variables after the activation of all due partitions.

        What was set since the last activation changes nothing that can be read, and FMI does not allow reading there: the
        last values are given again.
        """
        if kind is DataType.CLOCK:
            return self._clock_getter(references, values)
        read = super().getter(kind, references, values)
        last, version = values.copy(), -1

        def act() -> None:
            nonlocal version
            self._activate()
            if self._memory.is_set and version == self._version:
                values[:] = last
                return
            read()
            last[:] = values
            version = self._version

        return act

    def _clock_getter(self, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        def act() -> None:
            self._activate()
            active = self._memory.active
            values[:] = [reference in active for reference in references]
            active.difference_update(references)

        return act

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets these variables; clocks that are active become due."""
        if kind is DataType.CLOCK:
            return lambda: self._memory.due.update(
                reference for reference, active in zip(references, values, strict=True) if active
            )
        write = super().setter(kind, references, values)

        def act() -> None:
            write()
            self._memory.is_set = self._initialized

        return act

    # Intervals

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        """A function that asks for intervals; those that the FMU has announced in ``ClockUpdate`` are given here."""
        ask = super().intervals(clocks, answers)

        def act() -> None:
            self._activate()
            ask()
            announced = self._memory.announced
            for k, clock in enumerate(clocks):
                time = announced.pop(clock, None)
                if time is not None and answers.qualifier[k] != Qualifier.CHANGED:
                    answers.counter[k], answers.resolution[k], answers.seconds[k] = time
                    answers.qualifier[k] = Qualifier.CHANGED

        return act

    # Model partitions

    def _activate(self) -> None:
        """``ActivateModelPartition`` for each clock that is due."""
        due = self._memory.due
        if not due:
            return
        in_order = sorted((self._clocks[reference] for reference in due), key=_urgency)
        due.clear()
        for clock in in_order:
            self._activate_by(clock)

    def _activate_by(self, clock: Variable) -> None:
        memory, reference = self._memory, clock.value_reference
        if memory.activated.get(reference, -inf) >= memory.now:
            raise CallError(
                f"The clock '{self.name}.{clock.name}' ticks a second time at t = {memory.now:.12g} s, but FMI allows one "
                "activation of a model partition at one time (FMI 3.0, 5.2.2). Expected an interval above 0 s, or another "
                "clock for the second tick.",
                instance=self.name,
                function="fmi3ActivateModelPartition",
                status="not allowed",
                time=memory.now,
            )
        memory.activated[reference] = memory.now
        memory.n_activations += 1
        memory.is_set = False
        self._version += 1
        status = self._activate_partition(self.component, reference, memory.now)
        if self._failure is not None:
            raise self._failure
        if status not in SUCCESS:
            self.fail("ActivateModelPartition", status)

    def _update_clocks(self) -> None:
        """``ClockUpdate``, called by the FMU inside a partition."""
        try:
            self._read_output_clocks()
            self._read_countdowns()
        except CallError as error:  # an exception cannot pass through the FMU
            self._failure = self._failure or error

    def _read_output_clocks(self) -> None:
        if references := self._output_clocks:
            n = len(references)
            values = (ctypes.c_bool * n)()
            self.call("GetClock", (ctypes.c_uint32 * n)(*references), ctypes.c_size_t(n), values)
            self._memory.active.update(r for r, on in zip(references, values, strict=True) if on)

    def _read_countdowns(self) -> None:
        if not self._countdowns:
            return
        answers, ask = self._countdown_intervals
        ask()
        for k in (answers.qualifier == Qualifier.CHANGED).nonzero()[0].tolist():
            time = (
                answers.counter[k].item(),
                answers.resolution[k].item(),
                answers.seconds[k].item(),
            )
            self._memory.announced[self._countdowns[k]] = time

    @cached_property
    def _countdown_intervals(self) -> tuple[Intervals, Transfer]:
        answers = Intervals.of(len(self._countdowns))
        return answers, super().intervals(self._countdowns, answers)

    def update_discrete_states(self) -> UpdateAnswer:
        """Activate all partitions that are due; output clocks are active up to here."""
        self._activate()
        self._memory.active.clear()
        return UpdateAnswer()

    # Modes and time

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``EnterInitializationMode``."""
        self._memory.now = start
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
        self._memory.now = time + size
        return None

    def reset(self) -> None:
        """``Reset``."""
        super().reset()
        self._memory = _Memory()
        self._version += 1

    # States

    def save(self, place: int) -> None:
        """``GetFMUState``, if the FMU has it."""
        if self._has_fmu_states:
            super().save(place)
        self._memories[place] = deepcopy(self._memory)

    def restore(self, place: int) -> None:
        """``SetFMUState``, if the FMU has it; otherwise not behind an activation."""
        saved = self._memories[place]
        if self._has_fmu_states:
            super().restore(place)
        elif saved.n_activations != self._memory.n_activations:
            raise CallError(
                f"'{self.name}' cannot go back to t = {saved.now:.12g} s: a model partition was activated since then, and "
                "the FMU cannot save its state (canGetAndSetFMUState is false). Use an algorithm that does not repeat "
                "steps.",
                instance=self.name,
                function="fmi3SetFMUState",
                status="not allowed",
                time=self._memory.now,
            )
        self._memory = deepcopy(saved)
        self._version += 1

    def serialized(self) -> bytes:
        """The memory and the FMU state as bytes."""
        memory = json.dumps(self._memory.plain()).encode()
        return _LENGTH.pack(len(memory)) + memory + super().serialized()

    def deserialize(self, state: bytes) -> None:
        """Go to a serialized state."""
        (length,) = _LENGTH.unpack_from(state)
        end = _LENGTH.size + length
        super().deserialize(state[end:])
        self._memory = _Memory.of(json.loads(state[_LENGTH.size : end]))
        self._version += 1


def _urgency(clock: Variable) -> tuple[float, str]:
    """The order of partitions at one time: by priority, clocks without one last, then by name."""
    assert clock.clock is not None
    priority = clock.clock.priority
    return inf if priority is None else priority, clock.name


def _nothing() -> None:
    """A lock, or its end: no partition is ever preempted."""
