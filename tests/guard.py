"""A guard around an instance: it refuses calls that FMI does not allow in the present state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fmimaster.base.errors import CallError
from fmimaster.fmu.around import Act, Around
from fmimaster.fmu.instance import Instance
from fmimaster.system.model import Causality, DataType, Variability, Variable
from fmimaster.system.states import (
    FmiCall,
    State,
    after,
    call_between,
    states_that_allow,
)

_CALLS = {
    "directional_derivative": FmiCall.GET_DIRECTIONAL_DERIVATIVE,
    "polynomial_setter": FmiCall.SET_INPUT,
    "intervals": FmiCall.GET_INTERVAL,
    "shift": FmiCall.GET_SHIFT,
    "set_interval": FmiCall.SET_INTERVAL,
    "set_shift": FmiCall.SET_SHIFT,
    "enter_configuration_mode": FmiCall.ENTER_CONFIGURATION_MODE,
    "exit_configuration_mode": FmiCall.EXIT_CONFIGURATION_MODE,
    "enter_initialization_mode": FmiCall.ENTER_INITIALIZATION_MODE,
    "update_discrete_states": FmiCall.UPDATE_DISCRETE_STATES,
    "do_step": FmiCall.DO_STEP,
    "save": FmiCall.GET_FMU_STATE,
    "restore": FmiCall.SET_FMU_STATE,
    "serialized": FmiCall.GET_FMU_STATE,
    "deserialize": FmiCall.SET_FMU_STATE,
    "terminate": FmiCall.TERMINATE,
}
"""Method → the call of the table that it makes, in every state. Others are allowed in every state (FMI 3.0, section 2.3.1,
for ``reset``)."""

_MODES = {
    "enter_event_mode": (State.EVENT_MODE, FmiCall.ENTER_EVENT_MODE),
    "enter_step_mode": (State.STEP_MODE, FmiCall.ENTER_STEP_MODE),
}
"""Method → the state to which it leads, and its call if the table has none from the present state."""


def allowed_with_event_pending(call: FmiCall) -> bool:
    """Whether a call of Step Mode is allowed after ``DoStep`` has requested an event (eventHandlingNeeded).

    It is pending until Event Mode is entered or an earlier state is restored. Source: FMI 3.0.2, section 4.2.1.2.
    """
    return call is not FmiCall.DO_STEP


class Guarded(Around):
    """A wrapper around an instance that tracks its state with the table of ``system/states.py``.

    The checker proves the same for programs before a run. The guard finds other errors: an executor that deviates from
    its program, and code that calls instances directly.

    A call that is not allowed raises :class:`fmimaster.base.errors.CallError` with the status ``"not allowed"``, and the
    other instance is not called. A failed call leaves the state unchanged.
    """

    def __init__(self, instance: Instance) -> None:
        self._uses_event_mode = False
        self._is_event_pending = False
        self._places: dict[int, tuple[State, bool]] = {}
        self._variables = {v.value_reference: v for v in instance.model.variables}
        self.state = State.INSTANTIATED
        """State of FMI in which the instance is."""
        super().__init__(instance)

    def around(self, name: str, made: tuple[Any, ...], act: Act) -> Act:
        """The call, where it is allowed, and the state after it."""
        calls = self._calls_of(name, made)
        special: dict[str, Callable[[Act], Act]] = {
            "enter_event_mode": self._enter_event_mode,
            "do_step": self._step,
            "save": self._save,
            "restore": self._restore,
            "reset": self._reset,
        }
        follow = special[name](act) if name in special else act

        def guarded(*arguments: Any) -> Any:
            following = self.state
            for call in calls():
                following = self._check(call)
            answer = follow(*arguments)
            if name not in _OWN_STATE:
                self.state = following
            return answer

        return guarded

    def _calls_of(self, name: str, made: tuple[Any, ...]) -> Callable[[], Iterable[FmiCall]]:
        """The calls of the table that a method makes, in the state at that time."""
        if name == "getter":
            call = FmiCall.GET_CLOCK if made[0] is DataType.CLOCK else FmiCall.GET
            return lambda: [call]
        if name == "setter":
            variables = [self._variables[reference] for reference in made[1]]
            return lambda: {self._call_that_sets(variable) for variable in variables}
        if name in _MODES:
            state, otherwise = _MODES[name]
            return lambda: [call_between(self.state, state) or otherwise]
        always = [_CALLS[name]] if name in _CALLS else []
        return lambda: always

    def _check(self, call: FmiCall) -> State:
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

    def _call_that_sets(self, variable: Variable) -> FmiCall:
        if variable.causality is Causality.STRUCTURAL_PARAMETER:
            return FmiCall.SET_STRUCTURAL
        if variable.type is DataType.CLOCK:
            return FmiCall.SET_TRIGGER
        if self.state in (State.INSTANTIATED, State.INITIALIZATION_MODE):
            # FMI 2.0: inputs have no initial, and cannot be set before Initialization Mode
            return FmiCall.SET_START if variable.initial is not None else FmiCall.SET_INPUT
        if variable.clocks:
            return FmiCall.SET_TRIGGER
        if variable.variability is Variability.TUNABLE:
            # without Event Mode, FMI allows it between steps, like inputs
            return FmiCall.SET_TUNABLE if self._uses_event_mode else FmiCall.SET_INPUT
        return FmiCall.SET_INPUT if variable.causality is Causality.INPUT else FmiCall.SET_START

    def _enter_event_mode(self, act: Act) -> Act:
        def enter_event_mode() -> None:
            self._uses_event_mode |= self.state is State.INITIALIZATION_MODE
            act()
            self._is_event_pending = False

        return enter_event_mode

    def _step(self, act: Act) -> Act:
        def step(time: float, size: float) -> Any:
            if self._is_event_pending and not allowed_with_event_pending(FmiCall.DO_STEP):
                raise CallError(
                    f"DoStep was called for '{self.name}', which has requested an event. It is allowed only after "
                    "EnterEventMode.",
                    instance=self.name,
                    function=FmiCall.DO_STEP.value,
                    status="not allowed",
                )
            answer = act(time, size)
            self._is_event_pending = self._uses_event_mode and answer is not None and answer.event
            return answer

        return step

    def _save(self, act: Act) -> Act:
        def save(place: int) -> None:
            act(place)
            self._places[place] = self.state, self._is_event_pending

        return save

    def _restore(self, act: Act) -> Act:
        def restore(place: int) -> None:
            act(place)
            self.state, self._is_event_pending = self._places[place]

        return restore

    def _reset(self, act: Act) -> Act:
        def reset() -> None:
            act()
            self.state, self._uses_event_mode = State.INSTANTIATED, False
            self._is_event_pending = False

        return reset


_OWN_STATE = frozenset({"restore", "reset"})
"""Methods that lead to a state of which the table does not know."""
