"""A guard around an instance: it refuses calls that FMI does not allow in the present state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.instance import Instance, Signal, StepAnswer, Transfer, UpdateAnswer
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import Causality, DataType, Variability, Variable
from fmimaster.system.states import (
    Call,
    State,
    after,
    allowed_with_event_pending,
    call_between,
    states_that_allow,
)


class Guarded(Instance):
    """A wrapper around an instance that tracks its state with the table of ``system/states.py``.

    The checker proves the same for programs before a run. The guard finds other errors: an executor that deviates from
    its program, and code that calls instances directly.

    A call that is not allowed raises :class:`fmimaster.base.errors.CallError` with the status ``"not allowed"``, and the
    other instance is not called.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance.name, instance.model)
        self._instance = instance
        self._uses_event_mode = False
        self._is_event_pending = False
        self._places: dict[int, tuple[State, bool]] = {}
        self._variables = {v.value_reference: v for v in instance.model.variables}
        self.state = State.INSTANTIATED
        """State of FMI in which the instance is."""

    @property
    def is_dropped(self) -> bool:
        """Whether the other instance no longer takes part in the run."""
        return self._instance.is_dropped

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the other instance."""
        return self._instance.notes

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the other instance."""
        return self._instance.warnings

    def _check(self, call: Call) -> State:
        """The state after a call; an error if the call is not allowed."""
        following = after(self.state, call)
        if following is None:
            allowed = " or ".join(s.value for s in states_that_allow(call))
            raise CallError(
                f"{call.value} was called for '{self.name}' in {self.state.value}, but it is allowed only in {allowed}.",
                instance=self.name,
                function=call.value,
                status="not allowed",
            )
        return following

    def _go(self, call: Call, make: Callable[[], None]) -> None:
        """Make a call if it is allowed, and update the state; a failed call leaves it unchanged."""
        following = self._check(call)
        make()
        self.state = following

    def _enter(self, state: State, make: Callable[[], None], otherwise: Call) -> None:
        """Enter a mode by the call from the present state to it."""
        self._go(call_between(self.state, state) or otherwise, make)

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A getter that is allowed where GetClock, or Get, is allowed."""
        call = Call.GET_CLOCK if kind is DataType.CLOCK else Call.GET
        read = self._instance.getter(kind, references, values)
        return lambda: self._go(call, read)

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A setter that is allowed depending on its variables and on the state at that time."""
        variables = [self._variables[reference] for reference in references]
        write = self._instance.setter(kind, references, values)

        def act() -> None:
            for call in {self._call_that_sets(variable) for variable in variables}:
                self._check(call)
            write()

        return act

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """A function that computes directional derivatives where that is allowed."""
        act = self._instance.directional_derivative(unknowns, knowns, seed, sensitivity)
        return lambda: self._go(Call.GET_DIRECTIONAL_DERIVATIVE, act)

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets polynomials where inputs can be set."""
        act = self._instance.polynomial_setter(references)
        return lambda time, signal: self._go(Call.SET_INPUT, lambda: act(time, signal))

    def _call_that_sets(self, variable: Variable) -> Call:
        if variable.causality is Causality.STRUCTURAL_PARAMETER:
            return Call.SET_STRUCTURAL
        if variable.type is DataType.CLOCK:
            return Call.SET_TRIGGER
        if self.state in (State.INSTANTIATED, State.INITIALIZATION_MODE):
            # FMI 2.0: inputs have no initial, and cannot be set before Initialization Mode
            return Call.SET_START if variable.initial is not None else Call.SET_INPUT
        if variable.clocks:
            return Call.SET_TRIGGER
        if variable.variability is Variability.TUNABLE:
            # without Event Mode, FMI allows it between steps, like inputs
            return Call.SET_TUNABLE if self._uses_event_mode else Call.SET_INPUT
        return Call.SET_INPUT if variable.causality is Causality.INPUT else Call.SET_START

    # Intervals of clocks

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        """A function that asks for intervals where that is allowed."""
        act = self._instance.intervals(clocks, answers)
        return lambda: self._go(Call.GET_INTERVAL, act)

    def shift(self, clock: int) -> Fraction:
        """``GetShift``."""
        self._check(Call.GET_SHIFT)
        return self._instance.shift(clock)

    def set_interval(self, clock: int, interval: Fraction) -> None:
        """``SetInterval``."""
        self._go(Call.SET_INTERVAL, lambda: self._instance.set_interval(clock, interval))

    def set_shift(self, clock: int, shift: Fraction) -> None:
        """``SetShift``."""
        self._go(Call.SET_SHIFT, lambda: self._instance.set_shift(clock, shift))

    # Modes

    def enter_configuration_mode(self) -> None:
        """``EnterConfigurationMode``."""
        self._go(Call.ENTER_CONFIGURATION_MODE, self._instance.enter_configuration_mode)

    def exit_configuration_mode(self) -> None:
        """``ExitConfigurationMode``."""
        self._go(Call.EXIT_CONFIGURATION_MODE, self._instance.exit_configuration_mode)

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``EnterInitializationMode``."""
        self._go(
            Call.ENTER_INITIALIZATION_MODE,
            lambda: self._instance.enter_initialization_mode(start, stop, tolerance),
        )

    def enter_event_mode(self) -> None:
        """``ExitInitializationMode`` with Event Mode used, or ``EnterEventMode``."""
        self._uses_event_mode |= self.state is State.INITIALIZATION_MODE
        self._enter(State.EVENT_MODE, self._instance.enter_event_mode, Call.ENTER_EVENT_MODE)
        self._is_event_pending = False

    def enter_step_mode(self) -> None:
        """``ExitInitializationMode`` with Event Mode not used, or ``EnterStepMode``."""
        self._enter(State.STEP_MODE, self._instance.enter_step_mode, Call.ENTER_STEP_MODE)

    def update_discrete_states(self) -> UpdateAnswer:
        """``UpdateDiscreteStates``."""
        self._check(Call.UPDATE_DISCRETE_STATES)
        return self._instance.update_discrete_states()

    # Time

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """``DoStep``."""
        self._check(Call.DO_STEP)
        if self._is_event_pending and not allowed_with_event_pending(Call.DO_STEP):
            raise CallError(
                f"DoStep was called for '{self.name}', which has requested an event. It is allowed only after "
                "EnterEventMode.",
                instance=self.name,
                function=Call.DO_STEP.value,
                status="not allowed",
            )
        answer = self._instance.do_step(time, size)
        self._is_event_pending = self._uses_event_mode and answer is not None and answer.event
        return answer

    def save(self, place: int) -> None:
        """``GetFMUState``; the FMI state is saved with it."""
        self._go(Call.GET_FMU_STATE, lambda: self._instance.save(place))
        self._places[place] = self.state, self._is_event_pending

    def restore(self, place: int) -> None:
        """``SetFMUState``; the instance is in the FMI state in which it was saved."""
        self._go(Call.SET_FMU_STATE, lambda: self._instance.restore(place))
        self.state, self._is_event_pending = self._places[place]

    def serialized(self) -> bytes:
        """The present state as bytes; allowed where it can be saved."""
        self._check(Call.GET_FMU_STATE)
        return self._instance.serialized()

    def deserialize(self, state: bytes) -> None:
        """Go to a serialized state, which was saved in the same FMI state."""
        self._go(Call.SET_FMU_STATE, lambda: self._instance.deserialize(state))

    # The end

    def terminate(self) -> None:
        """``Terminate``."""
        self._go(Call.TERMINATE, self._instance.terminate)

    def reset(self) -> None:
        """``Reset``; allowed in every state (FMI 3.0, section 2.3.1)."""
        self._instance.reset()
        self.state, self._uses_event_mode = State.INSTANTIATED, False
        self._is_event_pending = False

    def free(self) -> None:
        """Release the other instance; allowed in every state."""
        self._instance.free()

    def abandon(self) -> None:
        """End the process of the other instance."""
        self._instance.abandon()
