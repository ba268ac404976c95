"""The FMU call in which a thread is: found on request, at no cost for a run."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from fmimaster.fmu.instance import Instance
from fmimaster.fmu.load import Loader
from fmimaster.session.row_keeper import RowKeeper
from fmimaster.session.session import Session

_FUNCTION = {
    "do_step": "DoStep",
    "save": "GetFMUState",
    "restore": "SetFMUState",
    "update_discrete_states": "UpdateDiscreteStates",
    "terminate": "Terminate",
    "free": "FreeInstance",
}
"""Methods of instances that call an FMU."""


def call_under_way(thread: threading.Thread, session: Session | None) -> str | None:
    """Words for the call, such as ``"DoStep of 'motor'"``; None if none is found."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        found = _call_in(frame, session)
        if found is not None:
            return found
        frame = frame.f_back
    return None


def _call_in(frame: FrameType, session: Session | None) -> str | None:
    method, local = frame.f_code.co_name, frame.f_locals
    me = local.get("self")
    if isinstance(me, Loader) and method == "instantiate":
        return f"the instantiation of '{local['name']}'"
    if isinstance(me, Instance):
        function = local.get("name") if method == "call" else _FUNCTION.get(method)
        return None if function is None else f"{function} of '{me.name}'"
    if isinstance(me, RowKeeper):  # not a call of an FMU, but a pipe that is not read
        return "the writing of the results"
    if method == "act" and "fail" in local:  # BinaryInstance.transfer
        return f"{local['function'].__name__} of '{local['fail'].__self__.name}'"
    if session is not None and me is session.executor:
        call = session.executor.present_call()
        return None if call is None else f"{call[1]} of '{session.plan.instances[call[0]].name}'"
    return None
