"""The limits of an isolated FMU, and the error if its process has ended: how, in which call, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from math import inf
from time import monotonic
from typing import Any, NamedTuple

from fmimaster.apart.exit import HowEnded
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FmuLostError
from fmimaster.base.text import bytes_in_words
from fmimaster.kernel._kernel import lib
from fmimaster.system.model import Model


class Deadline:
    """The time at which a call must have returned.

    Parameters
    ----------
    seconds : float
        From now on; inf for no limit.
    process : int, optional
        Number of a process that may wait for a processor longer: on a loaded machine it is healthy although it is late.
        Default: wall time, as users set it.
    """

    def __init__(self, seconds: float, process: int | None = None) -> None:
        self._until = monotonic() + seconds
        self._process = process
        self._waited = 0.0 if process is None or seconds == inf else _waited(process)

    @property
    def left(self) -> float:
        """Time in s until it must be looked at again."""
        return self._until - monotonic()

    @property
    def has_passed(self) -> bool:
        """Whether the process has had its time."""
        if self._process is not None and self.left <= 0.0:
            waited = _waited(self._process)
            self._until += waited - self._waited
            self._waited = waited
        return self.left <= 0.0


def _waited(process: int) -> float:
    """Time in s in which the main thread of a process was ready and had no processor; 0 where Linux does not tell."""
    try:
        with open(f"/proc/{process}/schedstat", encoding="utf-8") as counts:
            return int(counts.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


LOADING_TIMEOUT = 30.0
"""Time in s in which an FMU must be loaded and instantiated, unless the deadline for calls is longer."""

FREEING_TIMEOUT = 5.0
"""Time in s in which an FMU must be freed; then its process is ended. As for loading, without the time in which the process
waits for a processor."""

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


class Loss(Enum):
    """Why a process is lost."""

    ENDED = auto()
    """It has ended."""
    LATE = auto()
    """It did not answer in time, and was ended."""
    DAMAGED = auto()
    """It sent what is no message, and was ended."""
    CUT = auto()
    """The connection to its machine was lost."""


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
        n = min(max(m.n, 1), lib.FM_MOST_REQUESTS)
        if 0 <= m.done < n:
            return m.requests[m.done]
        requests = list(m.requests[0:n])  # all are done, most likely a step did it
        return next((r for r in requests if r.what == lib.FM_REQUEST_STEP), requests[-1])


def lost_error(
    name: str,
    model: Model,
    call: PresentCall,
    limits: Limits,
    end: HowEnded,
    loss: Loss,
    damage: str = "",
    where: str = "",
) -> FmuLostError:
    """The error of an instance whose process has ended, or was ended.

    Parameters
    ----------
    damage
        What it sent instead of a message.
    where
        " at ADDRESS", if it is on another machine.
    """
    how = end.how
    advice = "Run it with debug_logging (--debug-logging), or ask the FMU's vendor."
    if loss is Loss.LATE:
        how = f"did not answer within {_limit(call, limits):g} s and was ended"
        advice = "If it only needs more time: call_timeout (--call-timeout)."
    elif loss is Loss.DAMAGED:
        how = f"sent {damage} and was ended"
        advice = "The FMU writes into, or closes, descriptors of files that are not its own. Ask its vendor."
    elif loss is Loss.CUT:
        advice = (
            "See whether 'fmimaster host' still runs there. With on_fault (--on-fault) restart the run goes on, by another "
            "host if isolate (--isolate) names several."
        )
    elif limits.memory is not None:
        advice = (
            f"Allocations beyond its memory limit of {bytes_in_words(limits.memory)} fail, which may be the "
            "reason: memory_limit (--memory-limit)."
        )
    function = call.function(model.function_prefix)
    return FmuLostError(
        f"The process of '{name}'{where} {how}, in {function}{call.where}. {advice}",
        how=how,
        signal=end.signal if loss is Loss.ENDED else "",
        instance=name,
        function=function,
        time=call.time,
    )


def _limit(call: PresentCall, limits: Limits) -> float:
    """Time in s that the call might take."""
    if call.talk == "free":
        return FREEING_TIMEOUT
    if call.talk == "instantiate":
        return max(LOADING_TIMEOUT, limits.call_timeout or 0.0)
    assert limits.call_timeout is not None
    return limits.call_timeout
