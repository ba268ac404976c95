"""The FMU call in which a thread is: found on request, at no cost for a run."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from fmimaster.apart.shared_run import SharedRun
from fmimaster.fmu.instance import Instance
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.load import Loader
from fmimaster.session.row_keeper import RowKeeper
from fmimaster.session.session import Session
from fmimaster.system.model import Model

_FUNCTION = {
    "do_step": "DoStep",
    "save": "GetFMUState",
    "restore": "SetFMUState",
    "update_discrete_states": "UpdateDiscreteStates",
    "terminate": "Terminate",
    "free": "FreeInstance",
    "load": "the instantiation",  # in a process of its own
}
"""Methods of instances that call an FMU."""


def call_under_way(thread: threading.Thread, session: Session | None) -> str | None:
    """Words for the call, such as ``"fmi3DoStep of 'motor'"``; None if none is found."""
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
    if isinstance(me, SharedRun) and method == "call":  # SharedRun.noted
        return str(local["text"])
    if isinstance(me, Loader) and method == "instantiate":
        return f"the instantiation of '{local['name']}'"
    if isinstance(me, FmuFile) and method == "close":
        return f"the unloading of the library of '{me.source}'"
    if isinstance(me, Instance):
        function = local.get("name") if method == "call" else _FUNCTION.get(method)
        return None if function is None else _in_words(function, me.name, me.model)
    if isinstance(me, RowKeeper):  # not a call of an FMU, but a pipe that is not read
        return "the writing of the results"
    if method == "act" and "fail" in local:  # BinaryInstance.transfer
        return f"{local['function'].__name__} of '{local['fail'].__self__.name}'"
    if session is not None and me is session.executor:
        call = session.executor.present_call()
        if call is None:
            return None
        called = session.plan.instances[call[0]]
        return _in_words(call[1], called.name, called.model)
    return None


def _in_words(function: str, name: str, model: Model) -> str:
    prefix = f"fmi{model.fmi_version[:1]}" if function[:1].isupper() else ""
    return f"{prefix}{function} of '{name}'"
