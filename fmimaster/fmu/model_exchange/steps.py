"""Modes, steps and events of a Model Exchange FMU with an integrator."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.call_log import DISCARD, SUCCESS, MessageLog
from fmimaster.fmu.instance import (
    InstanceOptions,
    StepAnswer,
    UpdateAnswer,
)
from fmimaster.fmu.kernel_memory import ExchangeMemory, ExchangeMode, MemoryPlace
from fmimaster.fmu.model_exchange.equations import FmuEquations, locate
from fmimaster.fmu.model_exchange.integrator import DEFAULT_TOLERANCE, Integration, StuckError
from fmimaster.fmu.model_exchange.one_step import DormandPrince
from fmimaster.system.model import Model

_MOST_UPDATES = 1000
"""Event iterations at one time; more never end."""
_SAME = 8 * 2.0**-52
"""Two times that differ by less, relative to their size, are one time."""
_CHATTER = 64 * 2.0**-52
"""Events that follow each other within this time, relative to the time, make no progress."""


class ExchangeSteps(BinaryInstance):
    """How an instance with an integrator advances, in both versions of FMI.

    With Event Mode, a step ends at the first event, as that of a Co-Simulation FMU that returns early. Without it,
    events are executed inside the step.
    """

    def __init__(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        self.integrator = options.solver or DormandPrince()
        self.equations: FmuEquations
        self.integration: Integration
        self._prepared: Callable[[], None] = lambda: None
        """Called when the memory has its size."""
        self._uses_event_mode = options.event_mode
        self.stops = options.event_mode and options.early_return
        """Whether a step ends at the first event."""
        self._given_callback = options.update_callback
        self.copies = model.capabilities.copies_states
        """Whether states are copied, because the FMU cannot save its own."""
        self.completes = model.capabilities.needs_completed_integrator_step
        """Whether ``CompletedIntegratorStep`` is called."""
        self._begin_anew()
        super().__init__(fmu, model, name, messages, options)

    def _begin_anew(self) -> None:
        """As before the initialization: nothing is saved, and there is no integration."""
        self.memory = ExchangeMemory(0, 0)
        self._memories: dict[int, NDArray[np.float64]] = {}
        self._goes_back = False
        """Whether the state that was saved last was restored, if that matters to the integrator."""
        self._starts = True
        """Whether the integrator starts here, or learns that inputs may have changed."""
        self.is_started = False
        self._last_event, self._n_events = -inf, 0
        """Time in s of the last event inside a step, and how many events up to it made no progress."""

    # Modes

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """Enter Initialization Mode; from here on the numbers of states and event indicators do not change."""
        n, m = self._counts()
        super().enter_initialization_mode(start, stop, tolerance)
        self.memory = ExchangeMemory(n, m)
        self.memory[MemoryPlace.TIME] = start
        self.equations = FmuEquations(self, n, m, self.memory.nominals)
        self._there, self._z, self._y = np.zeros(m), np.zeros(m), np.zeros(n)
        self.tolerance = tolerance or DEFAULT_TOLERANCE
        self.integration = self.integrator.start(self.equations, self.tolerance)
        self.is_started = True
        self._prepared()

    def enter_event_mode(self) -> None:
        """``ExitInitializationMode``, which leads there, or ``EnterEventMode``."""
        memory = self.memory
        is_first = memory[MemoryPlace.MODE] == ExchangeMode.INITIALIZATION
        if memory[MemoryPlace.MODE] != ExchangeMode.EVENT:
            if not is_first:
                self._reach_time_event()
            self._tell_completed()
            self.call("ExitInitializationMode" if is_first else "EnterEventMode")
        memory[MemoryPlace.MODE] = ExchangeMode.EVENT
        memory[MemoryPlace.EVENTS] += 1

    def _reach_time_event(self) -> None:
        """A time event that is ahead by rounding only: go there, because the FMU may compare both times."""
        memory, time = self.memory, self.memory[MemoryPlace.NEXT_EVENT]
        if memory[MemoryPlace.TIME] < time and self._is_due(memory[MemoryPlace.TIME]):
            memory[MemoryPlace.TIME] = time
            self._move(time, memory.states)

    def enter_step_mode(self) -> None:
        """``EnterContinuousTimeMode``, after the events at this time if Event Mode is not used."""
        if self.memory[MemoryPlace.MODE] == ExchangeMode.INITIALIZATION:
            self.enter_event_mode()
        if not self._uses_event_mode:
            self._settle()
        if not self.memory[MemoryPlace.ENDS]:
            self._continue()

    def _continue(self) -> None:
        """``EnterContinuousTimeMode``: the states, their nominal values and the indicators may be others.

        After a step event that leaves the states as they are, the next step is as long as it would be without it: FMUs
        that request one after each step would else never have more than a first step, of 1e-6 s where all is at rest.
        """
        memory = self.memory
        self.call("EnterContinuousTimeMode")
        memory[MemoryPlace.MODE] = ExchangeMode.CONTINUOUS_TIME
        before = memory.states.copy()
        self.equations.read(memory.states)
        goes_on = bool(memory[MemoryPlace.STEP_EVENT]) and np.array_equal(before, memory.states)
        if not (self.integration.judges_events or goes_on):
            memory[MemoryPlace.SIZE] = 0.0
        memory[MemoryPlace.STEP_EVENT] = 0.0
        if not self.equations.indicate(memory.indicators):
            self.fail("GetEventIndicators", DISCARD)
        self._starts = True

    def _settle(self) -> None:
        for _ in range(_MOST_UPDATES):
            answer = self.update_discrete_states()
            if answer.terminate:
                self.memory[MemoryPlace.ENDS] = 1.0
            if answer.terminate or not answer.wants_update:
                return
        raise self._endless(
            f"it requested another update of its discrete states {_MOST_UPDATES} times"
        )

    def _endless(self, what: str) -> CallError:
        return CallError(
            f"The events of '{self.name}' at t = {self.memory[MemoryPlace.TIME]:.12g} s do not end: {what}. Check its "
            "inputs and parameters.",
            instance=self.name,
            function=self.prefix + self.update_function,
            status="not settled",
            time=self.memory[MemoryPlace.TIME],
        )

    def execute_events(self) -> None:
        """Event Mode from its start to its end, inside a step."""
        self.enter_event_mode()
        self._count_event(self.memory[MemoryPlace.TIME])
        self._settle()
        if not self.memory[MemoryPlace.ENDS]:
            self._continue()

    def _count_event(self, now: float) -> None:
        makes_progress = now - self._last_event > _CHATTER * abs(now) or now < self._last_event
        self._last_event, self._n_events = now, 0 if makes_progress else self._n_events + 1
        if self._n_events >= _MOST_UPDATES:
            raise self._endless(f"there were {_MOST_UPDATES}, without progress in time")

    def update_discrete_states(self) -> UpdateAnswer:
        """Update the discrete states; the answer defines the next time event anew."""
        answer = self._update()
        self.memory[MemoryPlace.NEXT_EVENT] = answer.next_event_time
        return answer

    # Steps

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Integrate from ``time`` by ``size``, or to the first event if a step ends there."""
        memory = self.memory
        if abs(memory[MemoryPlace.TIME] - time) > _SAME * abs(
            time
        ):  # otherwise it stands there already
            memory[MemoryPlace.TIME] = time
        self._tell_events()
        if memory[MemoryPlace.ENDS]:  # at the start: FMI allows only Terminate
            return self._answer(StepAnswer(time, terminate=True))
        if memory[MemoryPlace.MODE] == ExchangeMode.EVENT:  # discrete inputs were set
            self.execute_events()
        if not memory[MemoryPlace.ENDS]:
            self._begin_step(time)
        stop = time + size
        while True:
            now, happened = memory[MemoryPlace.TIME], False
            if memory[MemoryPlace.ENDS]:
                return self._answer(StepAnswer(now, terminate=True))
            if now < stop and not self._is_due(now):
                happened = self._advance(stop)
                now = memory[MemoryPlace.TIME]
                if memory[MemoryPlace.ENDS]:
                    continue
            if happened or self._is_due(now):
                if self.stops:
                    return self._answer(StepAnswer(now, early=now < stop, event=True))
                self.execute_events()
            elif now >= stop:
                return None

    def _answer(self, answer: StepAnswer) -> StepAnswer:
        return replace(answer, messages=tuple(self.messages.last))

    def _is_due(self, now: float) -> bool:
        """Whether the next time event is now."""
        return self.memory[MemoryPlace.NEXT_EVENT] <= now + _SAME * abs(now)

    def _begin_step(self, time: float) -> None:
        if self.equations.set_inputs is not None:
            self.equations.set_inputs(time)
        self._starts = True

    def _advance(self, stop: float) -> bool:
        """One step of the integrator, not beyond the first event; returns whether there is a state or step event."""
        memory, integration = self.memory, self.integration
        time = memory[MemoryPlace.TIME]
        end = min(stop, memory[MemoryPlace.NEXT_EVENT])
        try:
            if self._starts:
                integration.size, integration.events = (
                    memory[MemoryPlace.SIZE],
                    memory[MemoryPlace.EVENTS],
                )
                integration.restart(time, memory.states)
                self._starts = False
            there = integration.advance(end)
        except StuckError as error:
            raise self.stuck(error.time, error.reason) from None
        memory[MemoryPlace.SIZE] = integration.size
        states = integration.states
        self._look(self._there)
        has_changed = bool(((self._there > 0.0) != (memory.indicators > 0.0)).any())
        if has_changed:
            there, states = self._located(time, there), self._y
            self._look(self._there)
        memory[MemoryPlace.TIME] = there
        memory.states[:] = states
        memory.indicators[:] = self._there
        happened = has_changed
        if self.completes:
            memory[MemoryPlace.UNTOLD] = 1.0
            if not (self.copies and self.kept_from() < there):
                happened |= self._tell_completed()
        memory[MemoryPlace.STEP_EVENT] = happened and not has_changed and not self._is_due(there)
        if (happened or self._is_due(there)) and not memory[MemoryPlace.ENDS]:
            integration.mark_event()
        return happened

    def _tell_completed(self) -> bool:
        """``CompletedIntegratorStep``, if the FMU has not heard of a step; returns whether it requests an event.

        An FMU that cannot save its state must not go back behind it (FMI 3.0.2, 3.2.1). So where copies may be restored, it
        hears of their last step when the time is certain.
        """
        memory = self.memory
        if not memory[MemoryPlace.UNTOLD]:
            return False
        memory[MemoryPlace.UNTOLD] = 0.0
        wants_event, ends = self._completed(self.kept_from() >= memory[MemoryPlace.TIME])
        memory[MemoryPlace.ENDS] = float(ends)
        return wants_event

    def _tell_events(self) -> None:
        """The same where no copy of earlier states can be restored any more, and the events that are requested."""
        is_certain = self.kept_from() > self.memory[MemoryPlace.TIME]
        if is_certain and self._tell_completed() and not self.memory[MemoryPlace.ENDS]:
            self.memory[MemoryPlace.STEP_EVENT] = 1.0
            self.execute_events()

    def _located(self, low: float, high: float) -> float:
        """Go to the first change of an indicator in the last step of the integrator; returns its time in s."""
        at_low = self.memory.indicators.copy()

        def indicators(time: float) -> NDArray[np.float64]:
            self._move(time)
            self._look(self._z)
            return self._z

        there = locate(low, high, at_low, self._there.copy(), indicators)
        self._move(there, self.integration.states if there == high else None)
        return there

    def _move(self, time: float, states: NDArray[np.float64] | None = None) -> None:
        if states is None:
            self.integration.between(time, self._y)
        else:
            self._y[:] = states
        if not self.equations.move(time, self._y):
            self.fail("SetContinuousStates", DISCARD)

    def _look(self, indicators: NDArray[np.float64]) -> None:
        if not self.equations.indicate(indicators):
            self.fail("GetEventIndicators", DISCARD)

    def stuck(self, time: float, reason: str) -> CallError:
        """The error for an integrator that cannot go on."""
        stiff = "" if self.integrator.remembers else " For a stiff model, use the solver cvode."
        return CallError(
            f"'{self.name}' cannot be integrated beyond t = {time:.12g} s by {self.integrator.words}: {reason} Use "
            f"a larger tolerance, or check its inputs and parameters.{stiff}",
            instance=self.name,
            function="DoStep",
            status="stuck",
            messages=tuple(self.messages.last),
            time=time,
        )

    @cached_property
    def _completed(self) -> Callable[[bool], tuple[bool, bool]]:
        """``CompletedIntegratorStep``: whether no state of an earlier time will be restored → whether an event and the end
        of the run are requested."""
        flag: Any = self.boolean
        enter, end = flag(0), flag(0)
        function = self.function("CompletedIntegratorStep")
        pointers = ctypes.byref(enter), ctypes.byref(end)

        def completed(keeps: bool) -> tuple[bool, bool]:
            status = function(self.component, flag(keeps), *pointers)
            if status not in SUCCESS:
                self.fail("CompletedIntegratorStep", status)
            return bool(enter.value), bool(end.value)

        return completed

    # What differs between the versions of FMI

    update_function: str
    """Name of the function that updates discrete states."""

    @abstractmethod
    def _counts(self) -> tuple[int, int]:
        """Numbers of states and of event indicators, in the state Instantiated."""

    @abstractmethod
    def _update(self) -> UpdateAnswer:
        """Update the discrete states."""
