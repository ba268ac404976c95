"""The process of a run, or of a whole command, seen from outside: what it calls, and the message about its end.

A command with many runs is forked here, a single run in :mod:`fmimaster.session.own_process`.
"""

from __future__ import annotations

import os
import re
from typing import Any

from fmimaster.apart import shared_run, watch
from fmimaster.apart.run_watch import Lost, RunWatch
from fmimaster.apart.shared_run import Called, SharedNumber, SharedRun, first_words
from fmimaster.base.errors import FmuLostError, Interrupted
from fmimaster.run.choice import native_executor

_ENDED_FROM_OUTSIDE = "It was ended from outside; the system does this if there is no memory left."
_ASK_THE_VENDOR = (
    "Ask the FMU's vendor, with the call that is named here; --debug-logging may say more."
)


class OutsideCalls:
    """The calls of the run, by the note and by the kernel."""

    def __init__(self, shared: SharedRun) -> None:
        from fmimaster.run.native.shared import KernelOutside  # there is a kernel

        self._shared, self.kernel = shared, KernelOutside(shared)

    def present(self) -> str:
        """Words for the present call; empty if there is none."""
        if noted := self._shared.note_now:
            return noted
        found = self.kernel.call()
        if found is None:
            return ""
        (i, function), called = found, self._shared.called
        if not 0 <= i < len(called):
            return f"{function} of an FMU"
        if function == "DoStep":
            function = self.kernel.of_integrator(i, called[i].fmi) or function
        prefix = called[i].fmi if function[:1].isupper() else ""
        return f"{prefix}{function} of '{called[i].name}'"

    def activity(self) -> tuple[Any, ...]:
        """Numbers of which one changes whenever there is another call."""
        return self._shared[SharedNumber.NOTES], *self.kernel.activity()

    def time(self) -> float | None:
        """Time in s that the run has reached."""
        return self.kernel.begin

    def has_own_limit(self, call: str) -> bool:
        """Whether the process of the FMU itself holds the limit of its calls."""
        found = _instance(self._shared, call)
        return found is not None and found.is_isolated


def _instance(shared: SharedRun, call: str) -> Called | None:
    """The one that a call in words names."""
    return next((one for one in shared.called if call.endswith(f" of '{one.name}'")), None)


def message_of(lost: Lost) -> str:
    """What has happened, as a sentence."""
    when = "" if lost.time is None else f" at t = {lost.time:.12g} s"
    if lost.limit == "--call-timeout":
        return f"{first_words(lost.call)} {lost.how}{when}."
    where = f", in {lost.call}" if lost.call else ""
    return f"The process of the run {lost.how}{where}{when}."


def advice_for(lost: Lost) -> str:
    """What the user can do."""
    if lost.limit == "--call-timeout":
        return "If it only needs more time, raise --call-timeout."
    if lost.limit or "memory" in lost.how:
        return "If the run needs so much, raise --memory-limit; a results file (--output-file) keeps no rows in memory."
    if lost.how.endswith("SIGKILL"):
        return _ENDED_FROM_OUTSIDE
    return f"{_ASK_THE_VENDOR} --on-fault restart starts such an FMU again, and --on-fault drop goes on without it."


def lost_error(message: str, lost: Lost, shared: SharedRun) -> FmuLostError:
    """The error with this message."""
    found = re.fullmatch(r"(.*?) of '[^']*'", lost.call)
    one = _instance(shared, lost.call)
    signal = lost.how.rpartition(" ")[2] if lost.how.startswith("was ended by SIG") else ""
    return FmuLostError(
        message,
        how=lost.how,
        signal=signal,
        instance="" if one is None else one.name,
        function=found[1] if found else lost.call,
        time=lost.time,
    )


def hanging(lost: Lost) -> str:
    """The call that did not return, as a further sentence; empty if there was none."""
    return f" {first_words(lost.call)} did not return; its process was ended." if lost.call else ""


# The process of a command ---------------------------------------------------------------------------------------------


def go_on_in_own_process() -> None:
    """Fork; the new process returns and does the rest of the command, this one waits and ends. Where there can be no other
    process, this one returns.

    Raises
    ------
    FmuLostError, Interrupted
        In the process that waits, if the other one is lost.
    """
    if not watch.can_fork() or native_executor() is None:
        return
    shared_run.is_command = True
    shared = SharedRun()
    pid = watch.fork()
    if pid == 0:
        shared_run.current = shared
        return
    end = RunWatch(shared, watch.ForkedRun(pid), OutsideCalls(shared)).wait()
    if isinstance(end, int):
        os._exit(end)  # all was done there
    if end.is_asked:
        raise Interrupted(f"Interrupted.{hanging(end)}")
    raise lost_error(_message(end), end, shared)


def _message(lost: Lost) -> str:
    where = f", in {lost.call}" if lost.call else ""
    message = f"The process of the command {lost.how}{where}."
    if "memory" in lost.how:
        return message
    if lost.how.endswith("SIGKILL"):
        return f"{message} {_ENDED_FROM_OUTSIDE}"
    return f"{message} {_ASK_THE_VENDOR}"
