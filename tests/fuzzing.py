"""The checks of a fuzzer: one call under limits, in which no exception but the project's own may leave.

A fuzzer is a test of hypothesis in tests/fuzz/: it draws a hostile input, most often by mutations.py, and reads it by
:func:`survives`.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings

from fmimaster.base.errors import FmimasterError

SECONDS = 3
"""Processor time that one input may take. The clock on the wall would blame a busy machine."""

SECONDS_ON_THE_WALL = 300
"""The end of a call that waits for something."""

MEGABYTES = 500
"""Memory that one input may take."""

T = TypeVar("T")

FUZZ_PROFILE = "fuzz"
"""With ``--fuzz-minutes``: other examples each time, and a line with which a failure is reproduced."""

settings.register_profile(
    FUZZ_PROFILE,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


class _Hang(BaseException):
    """Raised by a signal; no ``except Exception`` takes it."""


def survives(
    call: Callable[..., T],
    *arguments: Any,
    errors: tuple[type[BaseException], ...] = (FmimasterError,),
) -> T | BaseException:
    """Call under the limits of time and memory; any exception that is not one of ``errors`` is a finding.

    Returns
    -------
    What the call returned, or the error that it raised.
    """
    try:
        with _limits() as hangs:
            result: T | BaseException = call(*arguments)
    except _Hang as hang:
        raise AssertionError(f"no end: {hang}") from None
    except errors as error:
        result = error
    if isinstance(result, BaseException):
        assert str(result).strip(), f"{type(result).__name__} without a message"
        assert not _is_caused_by(result, MemoryError), f"more than {MEGABYTES} MB: {result}"
    assert not hangs, f"no end, and the exception of the time limit was swallowed: {hangs[0]}"
    return result


def _is_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an exception, or one that it replaced, is of a kind."""
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _limits() -> Iterator[list[str]]:
    """Limits of time and memory on what runs in this process; what was too slow."""
    if sys.platform != "linux":  # elsewhere exceptions are looked for, and nothing else
        yield []
        return
    import resource  # not there on Windows

    hangs: list[str] = []

    def end(number: int, _: object) -> None:
        clock = f"{SECONDS} s of processor time"
        if number == signal.SIGALRM:
            clock = f"{SECONDS_ON_THE_WALL} s on the wall"
        hangs.append(f"more than {clock}")
        raise _Hang(hangs[-1])

    clocks = {
        signal.SIGPROF: (signal.ITIMER_PROF, SECONDS),
        signal.SIGALRM: (signal.ITIMER_REAL, SECONDS_ON_THE_WALL),
    }
    before = {number: signal.signal(number, end) for number in clocks}
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_memory_in_use() + MEGABYTES * 10**6, hard))
    try:
        for timer, seconds in clocks.values():
            signal.setitimer(timer, seconds, 1.0)  # again, should it be swallowed
        yield hangs
    finally:
        for timer, _ in clocks.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _memory_in_use() -> int:
    """Bytes that count against RLIMIT_DATA."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmData in /proc/self/status")
