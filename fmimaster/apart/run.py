"""Run a function in a process of its own, and survive its end."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from math import inf
from threading import Event
from time import perf_counter
from typing import Any, get_type_hints

from fmimaster.apart.exit import Exit
from fmimaster.apart.plain import DamagedError, decoded, encoded, error_of, plain_error
from fmimaster.apart.process import Process
from fmimaster.apart.server import Channel
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import bytes_in_words

_MOST_OUTPUT = 1 << 20
"""Bytes of output that are kept: the last ones."""

_STOP_SEEN = 0.1
"""Time in s after which a request to stop is noticed."""


class EndCause(Enum):
    """Why a process has ended."""

    RETURNED = "returned"
    RAISED = "raised"
    SIGNAL = "signal"
    EXIT = "exit"
    DEADLINE = "deadline"
    STOPPED = "stopped"
    MEMORY = "memory"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """The end of a function in a process of its own."""

    cause: EndCause
    value: Any = None
    """What the function has returned."""
    error: BaseException | None = None
    """The exception that it has raised."""
    how: str = ""
    """The end in words, after the name of the process, as "was ended by SIGSEGV"; empty if the function has returned
    or raised an exception."""
    output: str = ""
    """What was printed to its standard output and standard error, at most the last 1 MB."""
    seconds: float = 0.0
    """Wall time in s from start to end."""


def run_apart(
    function: Callable[..., Any],
    *arguments: Any,
    deadline: float | None = None,
    memory_limit: int | None = None,
    stop: Event | None = None,
    returns: Any = None,
) -> EndedProcess:
    """Run a function in a process of its own, with its own working directory, environment and signal handlers.

    On Linux the process is forked from one in which fmimaster is imported, so that it starts in some milliseconds; on
    Windows and macOS one that has imported it waits ready. Nothing of the program that calls this is in it.

    Parameters
    ----------
    function
        Defined at the top of a module that can be imported; not in a script that is run, nor in a notebook.
    arguments
        They are pickled.
    returns
        Type of the value that the function returns: plain data, such as dataclasses, tuples, arrays, numbers and text.
        What comes back is data of exactly this type. Nothing is unpickled, because foreign code may run in the process.
        Default: as the function is annotated.
    deadline : float, in s
        After that time the process is ended, with all that it has started. Default: none.
    memory_limit : int, in bytes
        For allocations of the function; beyond it they fail. Default: none.
    stop : threading.Event
        When another thread sets it, the process is ended as at a deadline.

    Returns
    -------
    EndedProcess
        The value or the exception of the function, or how the process has ended.

    Raises
    ------
    OptionError
        If the function cannot be found by another process.
    """
    _check(function, deadline, memory_limit)
    kind = _annotated(function) if returns is None else returns
    process = Process(_call, (function, arguments), memory_limit=memory_limit)
    try:
        process.wait_for_start()
        begun = perf_counter()
        return _followed(process, kind, begun, (deadline, memory_limit), stop)
    finally:
        process.kill()
        process.close()


def _check(function: Callable[..., Any], deadline: float | None, memory_limit: int | None) -> None:
    if getattr(function, "__module__", None) == "__main__":
        raise OptionError(
            f"'{getattr(function, '__name__', function)}' is defined in the script that is run or in a notebook, where "
            "another process does not find it. Define it in a module of its own, and import it."
        )
    if deadline is not None and not deadline > 0.0:
        raise OptionError(f"deadline: {deadline!r}, expected a positive number of seconds.")
    if memory_limit is not None and not memory_limit > 0:
        raise OptionError(f"memory_limit: {memory_limit!r}, expected a positive number of bytes.")


def _annotated(function: Callable[..., Any]) -> Any:
    """The type of what a function returns."""
    if isinstance(function, type):
        return function
    return get_type_hints(function).get("return", Any)


def _call(channel: Channel, _: list[int], function: Callable[..., Any], arguments: Any) -> None:
    """In the process: call the function, and send what it returns or raises."""
    try:
        answer = True, encoded(function(*arguments))
    except BaseException as error:
        answer = False, plain_error(error)
    channel.send(encoded(answer))


def _followed(
    process: Process,
    kind: Any,
    begun: float,
    limits: tuple[float | None, int | None],
    stop: Event | None,
) -> EndedProcess:
    """The end of a process, while its output is read."""
    deadline, memory_limit = limits
    output = bytearray()
    answers = _Answers(process, kind)
    waiting, channel = process.waiting(), process.channel.end

    def read() -> None:
        output.extend(process.read_output())
        del output[:-_MOST_OUTPUT]

    is_late = is_stopped = False
    while (end := process.ended()) is None:
        left = inf if deadline is None else begun + deadline - perf_counter()
        is_late, is_stopped = left <= 0.0, stop is not None and stop.is_set()
        if is_late or is_stopped or answers.damage:
            end = process.kill()
            break
        if stop is not None:
            left = min(left, _STOP_SEEN)
        ready = waiting.ready(None if left == inf else left)
        read()
        if channel in ready and not answers.read():
            waiting.drop(channel)
    read()
    if not is_late and not is_stopped:
        answers.read()
    text = output.decode("utf-8", "replace").replace("\r\n", "\n")
    made = partial(EndedProcess, output=text, seconds=perf_counter() - begun)
    if is_stopped:
        return made(EndCause.STOPPED, how="was stopped")
    if is_late:
        return made(EndCause.DEADLINE, how=f"did not end within {deadline:g} s")
    return answers.ended(end, memory_limit, made)


class _Answers:
    """What comes through the channel of a process: one answer, or what is none."""

    def __init__(self, process: Process, kind: Any) -> None:
        self._channel, self._kind = process.channel, kind
        self._answer: tuple[bool, bytes] | None = None
        self.damage = ""
        """Why it is no answer."""

    def read(self) -> bool:
        """Take what has come; returns whether more is expected."""
        try:
            while self._answer is None:
                content = self._channel.receive()
                if content is None:
                    return True
                self._answer = decoded(tuple[bool, bytes], content)
        except EOFError:
            pass
        except DamagedError as error:
            self.damage = str(error)
        return False

    def ended(
        self, end: Exit, memory_limit: int | None, made: Callable[..., EndedProcess]
    ) -> EndedProcess:
        """The end of the process by its answer."""
        try:
            if self.damage:
                raise DamagedError(self.damage)
            if self._answer is None:
                return made(EndCause.SIGNAL if end.signal else EndCause.EXIT, how=end.how)
            returned, content = self._answer
            if returned:
                return made(EndCause.RETURNED, value=decoded(self._kind, content))
            error = error_of(content)
        except DamagedError as damage:
            how = f"sent a damaged answer ({damage}) and was ended"
            return made(EndCause.DAMAGED, how=how)
        if isinstance(error, MemoryError) and memory_limit is not None:
            how = f"exceeded its memory limit of {bytes_in_words(memory_limit)}"
            return made(EndCause.MEMORY, error=error, how=how)
        return made(EndCause.RAISED, error=error)
