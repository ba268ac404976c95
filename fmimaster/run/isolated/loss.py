"""The error of an isolated FMU whose process has ended: how, in which call, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fmimaster.apart.process import Exit
from fmimaster.errors import FmuLostError
from fmimaster.kernel._kernel import lib
from fmimaster.system.model import Model
from fmimaster.text import bytes_in_words

LOADING_TIMEOUT = 30.0
"""Wall time in s in which an FMU must be loaded and instantiated, unless the deadline for calls is longer."""


_CALLS = {
    lib.FM_REQUEST_SET: "setting variables",
    lib.FM_REQUEST_GET: "reading variables",
    lib.FM_REQUEST_POLYNOMIALS: "setting inputs as polynomials",
    lib.FM_REQUEST_ENTER: "a change of its mode",
    lib.FM_REQUEST_UPDATE: "UpdateDiscreteStates",
    lib.FM_REQUEST_DERIVE: "GetDirectionalDerivative",
    lib.FM_REQUEST_STEP: "DoStep",
    lib.FM_REQUEST_SAVE: "GetFMUState",
    lib.FM_REQUEST_RESTORE: "SetFMUState",
}
"""Request → function, or what the host does, for hosts that call in Python."""


_TALKS = {
    "instantiate": "instantiation",
    "free": "FreeInstance",
    "serialized": "SerializeFMUState",
    "deserialize": "DeserializeFMUState",
    "reset": "Reset",
    "intervals": "GetInterval",
    "shift": "GetShift",
    "set_interval": "SetInterval",
    "set_shift": "SetShift",
    "transfer": "the transfer of text",
}
"""Request through the channel → function, or what the host does."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process of an FMU may take."""

    call_timeout: float | None = None
    """Wall time in s of a call; None for no limit."""
    memory: int | None = None
    """Bytes that the FMU may allocate; None for no limit."""


class PresentCall(NamedTuple):
    """What was called last."""

    message: Any
    """fm_message: its requests, and how many of them are done."""
    talk: str
    """Request through the channel; empty if there was none."""
    names: Mapping[int, str]
    """Functions of the FMU by the addresses of their names in the host."""
    time: float | None

    def function(self, prefix: str) -> str:
        """The FMI function, or what the host did."""
        request = self._request
        if request is None:
            name = _TALKS.get(self.talk, self.talk)
        elif request.what == lib.FM_REQUEST_STEP:
            name = "DoStep"
        else:
            name = self.names.get(self.message.function) or _CALLS[request.what]
        return prefix + name if name[0].isupper() else name

    @property
    def where(self) -> str:
        """Time and step in words."""
        where = "" if self.time is None else f" at t = {self.time:.12g} s"
        request = self._request
        if request is not None and request.what == lib.FM_REQUEST_STEP:
            where += f" (step {request.size:.6g} s)"
        return where

    @property
    def _request(self) -> Any:
        """None if it came through the channel."""
        m = self.message
        if self.talk and m.done >= m.n - 1:
            return None
        return m.requests[min(m.done, lib.FM_MOST_REQUESTS - 1)]


def lost_error(
    name: str, model: Model, call: PresentCall, limits: Limits, end: Exit, is_late: bool
) -> FmuLostError:
    """The error of an instance whose process has ended, or was ended because a call took too long."""
    how = end.how
    advice = "Run it with debug_logging (--debug-logging), or ask the FMU's vendor."
    if is_late:
        timeout = limits.call_timeout
        limit = max(LOADING_TIMEOUT, timeout or 0.0) if call.talk == "instantiate" else timeout
        how = f"did not answer within {limit:g} s and was ended"
        advice = "If it only needs more time: call_timeout (--call-timeout)."
    elif limits.memory is not None:
        advice = (
            f"Allocations beyond its memory limit of {bytes_in_words(limits.memory)} fail, which may be the "
            "reason: memory_limit (--memory-limit)."
        )
    function = call.function(f"fmi{model.fmi_version[0]}")
    return FmuLostError(
        f"The process of '{name}' {how}, in {function}{call.where}. {advice}",
        how=how,
        signal="" if is_late else end.signal,
        instance=name,
        function=function,
        time=call.time,
    )
