"""A whole command in a process of its own: for those that simulate many times, or call FMUs beside a run."""

from __future__ import annotations

import os

from fmimaster.apart import shared_run, watch
from fmimaster.apart.shared_run import SharedRun
from fmimaster.apart.watch import Lost, RunWatch, first_words
from fmimaster.base.errors import Interrupted
from fmimaster.run.choice import native_executor
from fmimaster.session.lost_run import OutsideCalls, lost_error


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
    end = RunWatch(shared, pid, OutsideCalls(shared), call_timeout=None, memory_limit=None).wait()
    if isinstance(end, int):
        os._exit(end)  # all was done there
    if end.is_asked:
        hangs = (
            f" {first_words(end.call)} did not return; its process was ended." if end.call else ""
        )
        raise Interrupted(f"Interrupted.{hangs}")
    raise lost_error(_message(end), end, shared)


def _message(lost: Lost) -> str:
    where = f", in {lost.call}" if lost.call else ""
    message = f"The process of the command {lost.how}{where}."
    if "memory" in lost.how:
        return message
    if lost.how.endswith("SIGKILL"):
        return (
            f"{message} It was ended from outside; the system does this if there is no memory left."
        )
    return f"{message} Ask the FMU's vendor, with the call that is named here; --debug-logging may say more."
