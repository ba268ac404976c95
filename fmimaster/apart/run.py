"""Run a function in a process of its own, and survive its end."""

from __future__ import annotations

import pickle
import select
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import inf
from threading import Event
from time import perf_counter
from typing import Any

from fmimaster.apart.channel import Channel
from fmimaster.apart.process import Process
from fmimaster.errors import OptionError
from fmimaster.text import bytes_in_words

_MOST_OUTPUT = 1 << 20
"""Bytes of output that are kept: the last ones."""


_STOP_SEEN = 0.1
"""Time in s after which a request to stop is noticed."""


class Cause(Enum):
    """Why a process has ended."""

    RETURNED = "returned"
    RAISED = "raised"
    SIGNAL = "signal"
    EXIT = "exit"
    DEADLINE = "deadline"
    STOPPED = "stopped"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a function in a process of its own."""

    cause: Cause
    value: Any = None
    """What the function has returned."""
    error: BaseException | None = None
    """The exception that it has raised."""
    traceback: str = ""
    """Where it was raised."""
    how: str = ""
    """The end in words, after the name of the process, as "was ended by SIGSEGV"; empty if the function has returned
    or raised an exception."""
    signal: str = ""
    """Name of the signal that has ended the process; empty if it was none."""
    exit_status: int | None = None
    """Exit status of a process that the function has ended itself."""
    output: str = ""
    """What was printed to its standard output and standard error, at most the last 1 MB."""
    seconds: float = 0.0
    """Wall time in s from start to end."""
    most_memory: int = 0
    """The largest memory of the process in bytes."""

    @property
    def is_lost(self) -> bool:
        """Whether the process has ended before the function."""
        return self.cause not in (Cause.RETURNED, Cause.RAISED)


def run_apart(
    function: Callable[..., Any],
    *arguments: Any,
    deadline: float | None = None,
    memory_limit: int | None = None,
    on_output: Callable[[str], None] | None = None,
    stop: Event | None = None,
) -> Ended:
    """Run a function in a process of its own, with its own working directory, environment and signal handlers.

    The process is forked from one in which fmimaster is imported, so that it starts in some milliseconds. Nothing of
    the program that calls this is in it. Linux only.

    Parameters
    ----------
    function
        Defined at the top of a module that can be imported; not in a script that is run, nor in a notebook.
    arguments, value
        They are pickled.
    deadline : float, in s
        After that time the process is ended, with all that it has started. Default: none.
    memory_limit : int, in bytes
        For allocations of the function; beyond it they fail. Default: none.
    on_output : function
        Called with each part of the output as it comes.
    stop : threading.Event
        When another thread sets it, the process is ended as at a deadline.

    Returns
    -------
    Ended
        The value or the exception of the function, or how the process has ended.

    Raises
    ------
    OptionError
        If the function cannot be found by another process, or on other platforms.
    """
    _check(function, deadline, memory_limit)
    begun = perf_counter()
    process = Process(_call, (function, arguments), memory_limit=memory_limit)
    try:
        return _followed(process, begun, deadline, memory_limit, on_output, stop)
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


def _call(channel: Channel, _: list[int], function: Callable[..., Any], arguments: Any) -> None:
    """In the process: call the function, and send what it returns or raises."""
    try:
        answer = pickle.dumps((Cause.RETURNED, function(*arguments), ""))
    except BaseException as error:
        text = traceback.format_exc()
        try:
            answer = pickle.dumps((Cause.RAISED, error, text))
            pickle.loads(answer)
        except Exception:
            replaced = RuntimeError(f"{type(error).__name__}: {error}")
            answer = pickle.dumps((Cause.RAISED, replaced, text))
    channel.send(answer)


def _followed(
    process: Process,
    begun: float,
    deadline: float | None,
    memory_limit: int | None,
    on_output: Callable[[str], None] | None,
    stop: Event | None,
) -> Ended:
    """The end of a process, while its output is read."""
    output, answer = bytearray(), None
    poll = select.poll()
    for descriptor in (process.channel.fileno(), process.output, process.report):
        poll.register(descriptor, select.POLLIN)

    def read() -> None:
        if part := process.read_output():
            output.extend(part)
            del output[:-_MOST_OUTPUT]
            if on_output is not None:
                on_output(part.decode("utf-8", "replace"))

    is_late = is_stopped = False
    while (end := process.ended()) is None:
        left = inf if deadline is None else begun + deadline - perf_counter()
        is_late, is_stopped = left <= 0.0, stop is not None and stop.is_set()
        if is_late or is_stopped:
            end = process.kill()
            break
        if stop is not None:
            left = min(left, _STOP_SEEN)
        ready = dict(poll.poll(None if left == inf else left * 1000.0 + 1.0))
        read()
        if process.output in ready and not ready[process.output] & select.POLLIN:
            poll.unregister(process.output)  # closed by the function
        if process.channel.fileno() in ready:
            answer = _received(process.channel)
            poll.unregister(process.channel.fileno())
    read()
    if answer is None and not is_late and not is_stopped:
        answer = _received(process.channel)
    common: dict[str, Any] = {
        "output": output.decode("utf-8", "replace"),
        "seconds": perf_counter() - begun,
        "most_memory": end.most_memory,
    }
    if is_stopped:
        return Ended(Cause.STOPPED, how="was stopped", **common)
    if is_late:
        return Ended(Cause.DEADLINE, how=f"did not end within {deadline:g} s", **common)
    if answer is not None:
        cause, value, text = answer
        if cause is Cause.RETURNED:
            return Ended(cause, value=value, **common)
        if isinstance(value, MemoryError) and memory_limit is not None:
            how = f"exceeded its memory limit of {bytes_in_words(memory_limit)}"
            return Ended(Cause.MEMORY, error=value, traceback=text, how=how, **common)
        return Ended(cause, error=value, traceback=text, **common)
    cause = Cause.SIGNAL if end.signal else Cause.EXIT
    return Ended(cause, how=end.how, signal=end.signal, exit_status=end.exit_status, **common)


def _received(channel: Channel) -> Any:
    """The answer of the function; None if there is none."""
    try:
        return pickle.loads(channel.receive())
    except EOFError:
        return None
