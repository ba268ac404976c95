"""Which call of an FMU an encoded instruction makes, in words."""

from __future__ import annotations

from typing import Any

from fmimaster.kernel._kernel import ffi, lib
from fmimaster.run.native.header import OPERATIONS, STATES
from fmimaster.system.states import State

_FUNCTION = {OPERATIONS[kind]: kind.calls.value for kind in OPERATIONS if kind.calls is not None}
_FUNCTION[lib.FM_STEP_LIMITED] = _FUNCTION[lib.FM_STEP]
"""What an operation calls."""

_TO_STATE = {
    State.CONFIGURATION_MODE: "EnterConfigurationMode",
    State.INSTANTIATED: "ExitConfigurationMode",
    State.INITIALIZATION_MODE: "EnterInitializationMode",
    State.STEP_MODE: "EnterStepMode",
    State.EVENT_MODE: "EnterEventMode",
    State.TERMINATED: "Terminate",
}


def call_of(entry: Any, is_initialized: bool) -> tuple[int, str] | None:
    """Number of the instance that an encoded instruction calls, and the function; None if it calls none.

    Parameters
    ----------
    is_initialized : bool
        Whether the instance has left Initialization Mode.
    """
    if entry.op == lib.FM_MODE:
        state = next(state for state, number in STATES.items() if number == entry.mode.state)
        if state in (State.STEP_MODE, State.EVENT_MODE) and not is_initialized:
            return entry.instance, "ExitInitializationMode"
        return entry.instance, _TO_STATE[state]
    if entry.op in _FUNCTION:
        return entry.instance, _FUNCTION[entry.op]
    if entry.op in (lib.FM_GET, lib.FM_GET_CLOCKS, lib.FM_GET_CLOCKED, lib.FM_GET_INTERVALS):
        return entry.instance, "a Get function"
    if entry.op in (lib.FM_SET, lib.FM_MOVE_SET, lib.FM_SET_TRIGGERS):
        return entry.instance, "a Set function"
    return None


def integrator_call(mark: int, fmi: str) -> str:
    """The function that the integrator of an FMU has called last, by its mark; empty if it has none.

    Parameters
    ----------
    mark : int
        Entry of :attr:`fmimaster.run.registers.Registers.calling`.
    fmi : str
        ``"fmi2"`` or ``"fmi3"``.
    """
    if not lib.FM_SET_TIME <= mark <= lib.FM_COMPLETED_INTEGRATOR_STEP:
        return ""
    name = lib.fm_fmi2_name(mark) if fmi == "fmi2" else lib.fm_fmi3_name(mark)
    return str(ffi.string(name).decode()) if name else ""
