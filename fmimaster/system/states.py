"""The FMI state machine of Co-Simulation as one table: state × call → next state, or not allowed.

Source: FMI 3.0, sections 2.3 (common states) and 4.2.1 (Co-Simulation). FMI 2.0 (2.0.5, section 4.2.4) has the same states
except Configuration Mode and Event Mode, which an FMU without them never enters; its ``stepComplete`` is Step Mode.
A call that is not listed for a state is not allowed there.

The rules of the checker (``program/checker.py``), the guard that tests put around instances (``tests/guard.py``), and the
diagram in the documentation (``docs/figures/states.py``) are derived from this table.
"""

from __future__ import annotations

from enum import Enum
from functools import cache


class State(Enum):
    """States of an instance, with the section of FMI 3.0 that defines them."""

    INSTANTIATED = "Instantiated"  # 2.3.2
    CONFIGURATION_MODE = "Configuration Mode"  # 2.3.3
    INITIALIZATION_MODE = "Initialization Mode"  # 2.3.4
    STEP_MODE = "Step Mode"  # 4.2.1.2
    TERMINATED = "Terminated"  # 2.3.7
    EVENT_MODE = "Event Mode"  # 2.3.5

    __hash__ = (
        object.__hash__
    )  # of Enum it is written in Python, and each instruction of a program is looked up here


class FmiCall(Enum):
    """Calls that an importer makes; functions for several types count as one."""

    ENTER_CONFIGURATION_MODE = "EnterConfigurationMode"
    EXIT_CONFIGURATION_MODE = "ExitConfigurationMode"
    ENTER_INITIALIZATION_MODE = "EnterInitializationMode"
    EXIT_INITIALIZATION_MODE = "ExitInitializationMode"
    EXIT_TO_EVENT_MODE = "ExitInitializationMode, with Event Mode used"
    ENTER_EVENT_MODE = "EnterEventMode"
    ENTER_STEP_MODE = "EnterStepMode"
    SET_STRUCTURAL = "Set (structural parameter)"
    SET_START = "Set (start value)"
    SET_INPUT = "Set (input)"
    SET_TRIGGER = "Set (clock or counter, with its payload)"
    SET_TUNABLE = "Set (tunable parameter)"
    GET = "Get"
    GET_CLOCK = "GetClock"
    GET_INTERVAL = "GetInterval"
    SET_INTERVAL = "SetInterval"
    GET_SHIFT = "GetShift"
    SET_SHIFT = "SetShift"
    GET_DIRECTIONAL_DERIVATIVE = "GetDirectionalDerivative"
    UPDATE_DISCRETE_STATES = "UpdateDiscreteStates"
    DO_STEP = "DoStep"
    GET_FMU_STATE = "GetFMUState"
    SET_FMU_STATE = "SetFMUState"
    TERMINATE = "Terminate"

    __hash__ = object.__hash__


_STATE = {FmiCall.GET_FMU_STATE: None, FmiCall.SET_FMU_STATE: None}
"""Saving and restoring are allowed in every state of an instance; restoring leads to the state at the save."""

_TABLE: dict[State, dict[FmiCall, State | None]] = {
    State.INSTANTIATED: {
        FmiCall.ENTER_CONFIGURATION_MODE: State.CONFIGURATION_MODE,
        FmiCall.ENTER_INITIALIZATION_MODE: State.INITIALIZATION_MODE,
        FmiCall.SET_START: None,
        **_STATE,
    },
    State.CONFIGURATION_MODE: {
        FmiCall.SET_STRUCTURAL: None,
        FmiCall.EXIT_CONFIGURATION_MODE: State.INSTANTIATED,
        **_STATE,
    },
    State.INITIALIZATION_MODE: {
        FmiCall.SET_START: None,
        FmiCall.SET_INPUT: None,
        FmiCall.GET: None,
        FmiCall.GET_DIRECTIONAL_DERIVATIVE: None,
        FmiCall.GET_INTERVAL: None,
        FmiCall.SET_INTERVAL: None,
        FmiCall.GET_SHIFT: None,
        FmiCall.SET_SHIFT: None,
        FmiCall.EXIT_INITIALIZATION_MODE: State.STEP_MODE,
        FmiCall.EXIT_TO_EVENT_MODE: State.EVENT_MODE,
        **_STATE,
    },
    State.STEP_MODE: {
        FmiCall.SET_INPUT: None,
        FmiCall.GET: None,
        FmiCall.GET_DIRECTIONAL_DERIVATIVE: None,
        FmiCall.DO_STEP: None,
        FmiCall.ENTER_EVENT_MODE: State.EVENT_MODE,
        FmiCall.TERMINATE: State.TERMINATED,
        **_STATE,
    },
    State.TERMINATED: {
        FmiCall.GET: None,
        **_STATE,
    },
    State.EVENT_MODE: {
        FmiCall.SET_INPUT: None,
        FmiCall.SET_TRIGGER: None,
        FmiCall.SET_TUNABLE: None,
        FmiCall.GET: None,
        FmiCall.GET_CLOCK: None,
        FmiCall.GET_INTERVAL: None,
        FmiCall.SET_INTERVAL: None,
        FmiCall.GET_DIRECTIONAL_DERIVATIVE: None,
        FmiCall.UPDATE_DISCRETE_STATES: None,
        FmiCall.ENTER_STEP_MODE: State.STEP_MODE,
        FmiCall.TERMINATE: State.TERMINATED,
        **_STATE,
    },
}


def after(state: State, call: FmiCall) -> State | None:
    """State after a successful call; None if the call is not allowed in this state."""
    allowed = _TABLE[state]
    if call not in allowed:
        return None
    return allowed[call] or state


@cache
def call_between(state: State, following: State) -> FmiCall | None:
    """The call that leads from one state to another; None if there is none."""
    calls = [call for call, next_state in _TABLE[state].items() if next_state is following]
    return calls[0] if calls else None


def calls_in(state: State) -> tuple[FmiCall, ...]:
    """Calls that are allowed in a state, in the order of the table."""
    return tuple(_TABLE[state])


def states_that_allow(call: FmiCall) -> tuple[State, ...]:
    """States in which a call is allowed, for messages."""
    return tuple(state for state, allowed in _TABLE.items() if call in allowed)
