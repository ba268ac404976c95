"""The words for the status of FMI functions, the messages of FMUs, and the log of FMI calls.

The log has every call with time, instance, arguments, status and returned values.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from fmimaster.base.errors import FileError
from fmimaster.base.files import reason_of
from fmimaster.base.text import in_a_line, visible

OK, WARNING, DISCARD, ERROR, FATAL, PENDING = range(6)

SUCCESS = (OK, WARNING)
"""An FMU may return any number; all others are failures."""

_WORDS = ("OK", "Warning", "Discard", "Error", "Fatal", "Pending")
_COUNT = {"fmi2": 6, "fmi3": 5}
_MAY_DISCARD = frozenset(
    [
        "DoStep",
        "SetReal",
        "SetInteger",
        "SetBoolean",
        "SetString",
        "GetRealStatus",
        "GetBooleanStatus",
    ]
)
"""Functions that may return Discard in Co-Simulation of FMI 2.0 (2.1.3); in FMI 3.0 all functions may."""


def _word_of(status: int) -> str:
    """The status of a message as a word, or its number."""
    return _WORDS[status] if 0 <= status < len(_WORDS) else str(status)


def status_name(prefix: str, status: int) -> str:
    """A status as the standard calls it, or its number; ``prefix`` is ``"fmi2"`` or ``"fmi3"``."""
    return f"{prefix}{_WORDS[status]}" if 0 <= status < _COUNT[prefix] else str(status)


def objection(prefix: str, function: str, status: int) -> str:
    """Why the standard does not allow a function, named without prefix, to return a status; empty if it does."""
    version = f"FMI {prefix[3:]}.0"
    if not 0 <= status < _COUNT[prefix]:
        return f", which is not a status of {version}"
    if status == PENDING and function == "DoStep":
        return ": it computes asynchronously, which is not supported"
    if status == PENDING or (
        prefix == "fmi2" and status == DISCARD and function not in _MAY_DISCARD
    ):
        return f", which {version} does not allow for this function"
    return ""


# The log of FMI calls -------------------------------------------------------------------------------------------------

log = logging.getLogger("fmimaster")

_RETURNED = frozenset(
    [
        "discreteStatesNeedUpdate",
        "dvUnknown",
        "earlyReturn",
        "eventHandlingNeeded",
        "eventInfo",
        "lastSuccessfulTime",
        "nextEventTime",
        "nextEventTimeDefined",
        "nominalsOfContinuousStatesChanged",
        "sensitivity",
        "terminateSimulation",
        "valuesOfContinuousStatesChanged",
    ]
)
"""Arguments that the FMU writes."""
_RETURNED_BY_GET = frozenset(
    [
        "FMUState",
        "FMUstate",
        "counters",
        "intervals",
        "qualifiers",
        "resolutions",
        "shifts",
        "value",
        "valueSizes",
        "values",
    ]
)
"""The same, where the name of the function begins with Get."""


class CallLog:
    """Records the calls of all instances of a run, and the messages of FMUs in between.

    In a file, a call is written with its arguments before it is made: if the process crashes, the last line shows where.
    Names and texts of FMUs stay within their line. With a log, the kernel calls the methods in Python instead of the
    library: so there is one place that logs, and both executors log the same calls.

    Parameters
    ----------
    path : Path or None
        A file, which is overwritten; None for the log of fmimaster.

    Raises
    ------
    FileError
        If the file cannot be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._stream: TextIO | None = None
        self._calls: list[tuple[str, str]] = []
        """Calls that have not returned, with their arguments: FMUs can call back."""
        self._is_open = False
        """Whether the last line is incomplete."""
        self._failure: FileError | None = None
        self._path = path
        if path is not None:
            try:
                self._stream = path.open("w", encoding="utf-8", newline="\n")
            except OSError as error:
                raise self._told(error) from error

    def _told(self, error: OSError) -> FileError:
        return FileError(
            f"The log of FMI calls '{self._path}' cannot be written: {reason_of(error)}."
        )

    def begin(self, time: float | None, instance: str, name: str, arguments: str) -> None:
        """Log a call before it is made."""
        call = in_a_line(f"{_time(time)}{instance}: {name}")
        arguments = in_a_line(arguments)
        if self._stream is not None:
            self._write(self._new_line(f"{call}({arguments})"))
            self._is_open = True
        self._calls.append((call, arguments))

    def end(self, answer: str) -> None:
        """Log the result of the last call."""
        call, arguments = self._calls.pop()
        answer = in_a_line(answer)
        if self._stream is None:
            log.info("FMI call: %s(%s) -> %s", call, arguments, answer)
            return
        # after calls and messages in between, the line names the call again
        begin = "" if self._is_open else self._new_line(call)
        self._write(f"{begin} -> {answer}\n")
        self._is_open = False

    def add(self, instance: str, text: str) -> None:
        """A line that is not a call of fmimaster: a message of an FMU, or a call that is already finished."""
        line = in_a_line(f"{instance}: {text}")
        if self._stream is None:
            log.info("FMI call: %s", line)
            return
        self._write(self._new_line(f"{line}\n"))
        self._is_open = False

    def _new_line(self, text: str) -> str:
        """A text on its own line, indented within the calls that have not returned."""
        return ("\n" if self._is_open else "") + "  " * len(self._calls) + text

    def _write(self, text: str) -> None:
        if self._failure is not None or self._stream is None or self._stream.closed:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:  # the run goes on without the log
            self._failure = self._told(error)
            log.warning("%s", self._failure)

    def close(self) -> None:
        """Close the file. Never raises."""
        if self._stream is not None:
            try:
                self._stream.close()
            except OSError as error:
                log.warning("%s", self._told(error))

    def logged(
        self,
        function: Callable[..., int],
        name: str,
        signature: tuple[Sequence[str], Sequence[Any]],
        instance: str,
        clock: Callable[[], float | None],
    ) -> Callable[..., int]:
        """A function that calls another one and logs the call.

        Parameters
        ----------
        function
            Its first argument is the instance.
        name
            Its name in the standard.
        signature
            Names and ctypes of its arguments, with the instance.
        """
        names, kinds = (list(part)[1:] for part in signature)
        also = _RETURNED_BY_GET if name[4:].startswith("Get") else frozenset()
        is_returned = [n in _RETURNED or n in also for n in names]

        def call(component: Any, *arguments: Any) -> int:
            def shown(of_answer: bool) -> Iterator[str]:
                for k, argument_name in enumerate(names[: len(arguments)]):
                    if is_returned[k] is of_answer:
                        yield f"{argument_name}={_shown(names, kinds, arguments, k)}"

            self.begin(clock(), instance, name, ", ".join(shown(False)))
            answer = "did not return"
            try:
                status = function(component, *arguments)
                is_void = status is None  # FreeInstance
                answer = "returned" if is_void else status_name(name[:4], status)
                answer = ", ".join([answer, *shown(True)])
                return status
            finally:
                self.end(answer)

        return call


def _time(time: float | None) -> str:
    return "" if time is None else f"t={time!r} "


# Arguments ------------------------------------------------------------------------------------------------------------


def _shown(names: Sequence[str], kinds: Sequence[Any], arguments: Sequence[Any], k: int) -> str:
    """One argument as text."""
    kind = kinds[k]
    points_to = getattr(kind, "_type_", None) if issubclass(kind, ctypes._Pointer) else None
    if points_to is None:
        value = getattr(arguments[k], "value", arguments[k])
        return hex(value or 0) if kind is ctypes.c_void_p else _text(value)
    values = _pointer(kind, arguments[k])
    if not values:
        return "NULL"
    count = _count(names, kinds, arguments, k)
    if points_to is ctypes.c_void_p:  # an FMU state
        return hex(values[0] or 0)
    if count is None:
        return _text(values[0])
    if issubclass(points_to, ctypes._Pointer):  # binaries, whose sizes come before them
        sizes = _pointer(kinds[k - 1], arguments[k - 1])
        sized = [(values[i], sizes[i]) for i in range(count)]
        return _list((ctypes.string_at(p, n) if p and n else b"").hex() for p, n in sized)
    return _list(_text(values[i]) for i in range(count))


def _pointer(kind: Any, argument: Any) -> Any:
    """An argument as a pointer of its type: it may be an array, an address, or a reference to one value."""
    if (one := getattr(argument, "_obj", None)) is not None:  # of byref
        argument = ctypes.pointer(one)
    return ctypes.cast(argument, kind)


def _count(
    names: Sequence[str], kinds: Sequence[Any], arguments: Sequence[Any], k: int
) -> int | None:
    """How many values an argument points to; None for a single one, which has no count."""
    counts = [i for i, kind in enumerate(kinds[: len(arguments)]) if kind is ctypes.c_size_t]
    if not counts:
        return None
    after = [i for i in counts if i > k]
    found = after[0] if after else counts[-1]
    if names[k] == "dvUnknown":  # FMI 2.0: its count is that of the unknowns, and stands first
        found = counts[0]
    return int(getattr(arguments[found], "value", arguments[found]))


def _text(value: Any) -> str:
    if isinstance(value, ctypes.Structure):
        return _list(f"{name}={getattr(value, name)!r}" for name, *_ in value._fields_)
    return repr(value.decode("utf-8", "replace")) if isinstance(value, bytes) else repr(value)


def _list(values: Iterator[str]) -> str:
    return f"[{', '.join(values)}]"


MESSAGE = "%s [%s] %s"
"""Form of a message of an FMU in the log: name of the instance, status, text."""

_KEPT_MESSAGES = 20


class MessageLog:
    """Receives the log messages of one instance: the last ones are kept for errors, and all are passed to the
    ``logging`` module."""

    def __init__(self, instance: str, is_complete: bool = False) -> None:
        self.instance = instance
        self.is_complete = is_complete
        """Whether all messages of the FMU were requested."""
        self.last: deque[str] = deque(maxlen=_KEPT_MESSAGES)
        self.call_log: CallLog | None = None
        """A further receiver: the log of FMI calls."""
        self.is_abandoned = False
        """Whether the run has abandoned the FMU. If it still sends messages, its thread is blocked."""

    def add(self, status: int, category: bytes | None, message: bytes | None) -> None:
        """Receive one message of the FMU."""
        if self.is_abandoned:
            threading.Event().wait()
        text = visible((message or b"").decode("utf-8", "replace").rstrip())
        self.last.append(text)
        if self.call_log is not None:
            self.call_log.add(self.instance, f"[{_word_of(status)}] {text}")
        level = logging.INFO if status == OK else logging.WARNING
        log.log(level, MESSAGE, self.instance, _word_of(status), text)
