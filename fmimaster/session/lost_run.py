"""The process of a run, or of a whole command, seen from outside: what it calls, and the message about its end.

A command with many runs is forked here, a single run in :mod:`fmimaster.session.own_process`. Where a process cannot be
forked, both start again, and this process does nothing unless the other one is lost: then it prepares the run as well, and
completes the files.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fmimaster.apart import shared_run, watch
from fmimaster.apart.run_watch import Lost, RunWatch
from fmimaster.apart.shared_run import Called, CommandPhase, SharedNumber, SharedRun, first_words
from fmimaster.base.errors import FmimasterError, FmuLostError, Interrupted

log = logging.getLogger("fmimaster")

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


class LeftRun:
    """The run of this command, whose process was lost before this one has prepared it.

    Until it is taken, no messages are logged: the other process has logged them.
    """

    def __init__(self, shared: SharedRun, lost: Lost) -> None:
        self.shared, self.lost = shared, lost
        self.error: Exception = lost_error(message_of(lost), lost, shared)
        """What a further run of the command raises."""
        self.is_taken = False
        log.addFilter(self._is_heard)

    def _is_heard(self, _: logging.LogRecord) -> bool:
        return self.is_taken

    def take(self) -> None:
        """The run is prepared; this process goes on with it."""
        self.is_taken = True
        log.removeFilter(self._is_heard)


left: LeftRun | None = None
"""Of this process, if it is a command that was started again."""


def unnamed_file(folder: str | os.PathLike[str] | None) -> int:
    """Descriptor of a new file without a name in a folder, or where temporary files are; it is gone when it is closed."""
    from tempfile import TemporaryFile  # few commands need it here

    if folder is not None and os.access(folder, os.W_OK):
        with suppress(OSError), TemporaryFile(prefix="fmimaster-", dir=folder) as file:
            return os.dup(file.fileno())
    with TemporaryFile(prefix="fmimaster-") as file:
        return os.dup(file.fileno())


@contextmanager
def in_own_process(*, is_run: bool, folder: str | None = None) -> Iterator[None]:
    """A context for the rest of a command, which another process does; this one waits, and ends in it. Where there can be
    no other process, this one does it.

    Parameters
    ----------
    is_run : bool
        Whether the command is one run: its rows are kept, and if it can be forked, that is done when it is prepared.
    folder : str, optional
        Of its results, for a temporary file.

    Raises
    ------
    FmuLostError, Interrupted
        In the process that waits, if the other one is lost.
    """
    if not _kernel_is_built():
        yield
    elif watch.can_fork():
        if not is_run:
            _fork()
        yield
    else:
        from fmimaster.apart import again  # not on Linux

        shared_run.is_command = True
        again.heed_the_end_of_the_console()
        if again.is_process_of_run():
            shared_run.current = again.begun()
            yield
        else:
            shared, process = again.start(unnamed_file(folder) if is_run else None)
            lost = _waited(shared, process)
            if shared[SharedNumber.PHASE] == CommandPhase.PREPARING:
                raise _loss(lost, shared)
            with _completing(shared, lost):
                yield


def _kernel_is_built() -> bool:
    try:
        import fmimaster.kernel._kernel  # noqa: F401
    except ImportError:
        return False
    return True


def _fork() -> None:
    """Fork; this returns in the new process."""
    shared_run.is_command = True
    shared = SharedRun()
    process = watch.fork()
    if process is None:
        shared_run.current = shared
        return
    raise _loss(_waited(shared, process), shared)


def _waited(shared: SharedRun, process: watch.RunProcess) -> Lost:
    """How the other process was lost; if it was not, this one ends too."""
    end = RunWatch(shared, process, OutsideCalls(shared)).wait()
    if isinstance(end, int):
        os._exit(end)  # all was done there
    return end


@contextmanager
def _completing(shared: SharedRun, lost: Lost) -> Iterator[None]:
    """A context in which this process prepares the run that was lost, and completes its files."""
    global left
    left = found = LeftRun(shared, lost)
    try:
        yield
    except FmimasterError as error:
        if found.is_taken:
            raise
        raise found.error from error  # what was prepared there cannot be prepared again


def _loss(lost: Lost, shared: SharedRun) -> Exception:
    """The error of a command whose process was lost."""
    if lost.is_asked:
        return Interrupted(f"Interrupted.{hanging(lost)}")
    return lost_error(_message(lost), lost, shared)


def _message(lost: Lost) -> str:
    where = f", in {lost.call}" if lost.call else ""
    message = f"The process of the command {lost.how}{where}."
    if "memory" in lost.how:
        return message
    if lost.how.endswith("SIGKILL"):
        return f"{message} {_ENDED_FROM_OUTSIDE}"
    return f"{message} {_ASK_THE_VENDOR}"
