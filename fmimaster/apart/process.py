"""Processes of their own. On Linux they are forked from a preloaded one, which is started when the first is needed."""

from __future__ import annotations

import atexit
import os
import pickle
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from fmimaster.apart.exit import Exit
from fmimaster.apart.server import KILL, REQUEST, START, ChannelEnd, Start
from fmimaster.apart.spawned import spawned
from fmimaster.apart.streams import End, Waiting, pair, pipe
from fmimaster.apart.watch import REPORT
from fmimaster.base.errors import OptionError

MODULES = (
    "fmimaster.apart.run",
    "fmimaster.front.simulation",
    "fmimaster.session.session",
    "fmimaster.run.choice",
    "fmimaster.fmu.fmi2",
    "fmimaster.fmu.fmi3",
    "fmimaster.fmu.model_exchange.instance",
    "fmimaster.conformance.one_run",
)
"""What the preloaded process imports: what nearly all processes need, and what is slow to import."""

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[3:]; from fmimaster.apart.server import main; "
    "main(int(sys.argv[1]), sys.argv[2].split())"
)
"""It imports nothing before the path is set: the working directory may have files with the names of modules."""

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables for the preloaded process: libraries must not start threads in it, because it is forked."""

_TOKEN_BYTES = 8
_MOST_CHUNKS = 16
"""Of 64 kB, the size of a pipe: read at one time."""

_GRACE = 5.0
"""Time in s for the preloaded process to end after its socket was closed."""


class Carrier(Protocol):
    """A process in the system."""

    stream: End
    """To its channel."""
    output: End
    """From its standard output and standard error."""
    report: int
    """What can be waited for until it has ended: a descriptor, on Windows a handle."""
    pid: int
    """Its number in the system; 0 if it is not known yet."""
    further: Sequence[int]
    """Further descriptors as numbers of that process; empty if it gets them in another way."""

    def wait_for_start(self) -> None:
        """Wait until it can begin, or has ended."""
        ...

    def ended(self) -> Exit | None:
        """How it has ended; None if it runs."""
        ...

    def kill(self) -> None:
        """End it and all that it has started, and wait for that."""
        ...

    def close(self) -> None:
        """Give up all that belongs to it here."""
        ...


class Process:
    """A process of its own: forked from a preloaded one on Linux, elsewhere started anew.

    Parameters
    ----------
    main : function
        Called in the new process with its :class:`~fmimaster.apart.server.Channel`, a list of the further descriptors,
        and the arguments. It is found by its name, so it must be defined at the top of a module.
    arguments : tuple
    descriptors : int
        Further descriptors, which the new process gets as well; on Windows to write to.
    memory_limit : int or None
        In bytes, beyond what a process has at its start. An allocation beyond it fails.

    Attributes
    ----------
    channel : ChannelEnd
    output : End
        From which its standard output and standard error can be read.
    token : int
        What its messages begin with.
    """

    def __init__(
        self,
        main: Callable[..., None],
        arguments: tuple[Any, ...] = (),
        *,
        descriptors: Sequence[int] = (),
        memory_limit: int | None = None,
    ) -> None:
        self.token = int.from_bytes(os.urandom(_TOKEN_BYTES), "little")
        self._carrier = carry(MODULES, descriptors)
        self.channel = ChannelEnd(self._carrier.stream, self.token)
        self.output = self._carrier.output
        self._is_closed = False
        try:
            start = Start(
                os.getcwd(),
                dict(os.environ),
                [os.path.abspath(p) for p in sys.path],
                memory_limit,
                self.token,
                self._carrier.further,
                pickle.dumps((main, arguments)),
            )
            with suppress(OSError):  # it has ended: the report says how
                self.channel.send(start)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its number in the system, after its start."""
        return self._carrier.pid

    def waiting(self, *further: End) -> Waiting:
        """What waits until something comes from it, also through further ends, or until it ends."""
        return Waiting(self._carrier.report, self.channel.end, self.output, *further)

    def wait_for_start(self) -> None:
        """Wait until it can begin, or has ended."""
        self._carrier.wait_for_start()

    def ended(self) -> Exit | None:
        """How it has ended; None if it runs."""
        return self._carrier.ended()

    def read_output(self) -> bytes:
        """What it has printed since the last call: a part of it, if it prints without end."""
        return self.output.read_all(_MOST_CHUNKS)

    def kill(self) -> Exit:
        """End it and all that it has started, and wait for that."""
        while (end := self.ended()) is None:
            self._carrier.kill()
        return end

    def close(self) -> None:
        """Give up the connections; the process must have ended, or ends when it finds its channel closed."""
        if not self._is_closed:
            self._is_closed = True
            self._carrier.close()


class _Forked:
    """A process that is forked from the preloaded one."""

    further: Sequence[int] = ()

    def __init__(self, descriptors: Sequence[int]) -> None:
        self.stream, theirs = pair()
        self.output, output = pipe()
        self.report, report = os.pipe()
        self.pid = 0
        self._exit: Exit | None = None
        try:
            given = [theirs, report, output, *descriptors]
            self._preloaded, self._number = _started(given)
        except BaseException:
            self.close()
            raise
        finally:
            for descriptor in (theirs, report, output):
                os.close(descriptor)

    def wait_for_start(self) -> None:
        """Wait until it is forked."""
        self.ended()

    def ended(self) -> Exit | None:
        """How it has ended; None if it runs. Waits for its start."""
        while self._exit is None and (self.pid == 0 or _wait_until_readable(self.report, 0.0)):
            content = os.read(self.report, REPORT.size)
            if len(content) < REPORT.size:  # the preloaded process has ended, and this one with it
                self._exit = Exit(None)
                break
            self.pid, status = REPORT.unpack(content)
            if status >= 0:
                self._exit = Exit(os.waitstatus_to_exitcode(status))
                os.read(self.report, 1)  # its keeper has ended too
        return self._exit

    def kill(self) -> None:
        """Have it ended with all that it has started, and wait for its report."""
        self._preloaded.kill(self._number)
        _wait_until_readable(self.report)

    def close(self) -> None:
        """Give up the connections."""
        self.stream.close()
        self.output.close()
        os.close(self.report)


class _Preloaded:
    """The process from which others are forked."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._numbers = count()
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
                    "-c",
                    _PROGRAM,
                    str(theirs.fileno()),
                    " ".join(MODULES),
                    *(os.path.abspath(p) for p in sys.path),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1")},
                start_new_session=True,  # Ctrl-C in a terminal belongs to the process that has started it
            )

    @property
    def is_usable(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

    def start(self, descriptors: list[int]) -> int:
        """Fork a process; returns its number for :meth:`kill`. Raises ConnectionError if this one has ended."""
        with self._lock:
            number = next(self._numbers)
            socket.send_fds(self._control, [REQUEST.pack(START, number)], descriptors)
        return number

    def kill(self, number: int) -> None:
        with self._lock, suppress(OSError):
            self._control.send(REQUEST.pack(KILL, number))

    def wait(self) -> None:
        """Wait for its end, which its socket has announced."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)

    def why_ended(self) -> str:
        """Why it has ended, in words."""
        with suppress(OSError):
            said = self._control.recv(1 << 16, socket.MSG_DONTWAIT).decode("utf-8", "replace")
            if said:
                return f"The process from which others are started has failed:\n{said}"
        return "The process from which others are started has ended."

    def close(self) -> None:
        """End it and all processes that were forked from it."""
        self._control.close()
        self.wait()

    def forget(self) -> None:
        """In a fork of its owner: it belongs to the other process."""
        self._control.close()
        self._process.returncode = 0  # no warning that it still runs


_LOCK = threading.Lock()
_PRELOADED: list[_Preloaded] = []
"""The preloaded process of this process, if there is one."""


def _preloaded() -> _Preloaded:
    with _LOCK:
        if not _PRELOADED or not _PRELOADED[0].is_usable:
            _close()
            _PRELOADED.append(_Preloaded())
        return _PRELOADED[0]


def _started(descriptors: list[int]) -> tuple[_Preloaded, int]:
    """A new process: the preloaded one, and the number there. One that has ended is replaced."""
    preloaded = _preloaded()
    try:
        return preloaded, preloaded.start(descriptors)
    except ConnectionError:
        preloaded.wait()
    preloaded = _preloaded()
    try:
        return preloaded, preloaded.start(descriptors)
    except ConnectionError as error:
        raise OptionError(preloaded.why_ended()) from error


def _close() -> None:
    while _PRELOADED:
        preloaded = _PRELOADED.pop()
        preloaded.close() if preloaded.owner == os.getpid() else preloaded.forget()


def _close_at_exit() -> None:
    with suppress(KeyboardInterrupt):  # it ends by itself, nobody has to wait for it
        _close()


def _forget() -> None:
    """In a fork of this process, whose lock another thread may hold."""
    global _LOCK
    _LOCK = threading.Lock()
    _close()


atexit.register(_close_at_exit)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)


def _wait_until_readable(descriptor: int, seconds: float | None = None) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000.0))


def _forked(_: Sequence[str], descriptors: Sequence[int]) -> Carrier:
    return _Forked(descriptors)


carry: Callable[[Sequence[str], Sequence[int]], Carrier] = (
    _forked if sys.platform == "linux" else spawned
)
"""Starts a process."""
