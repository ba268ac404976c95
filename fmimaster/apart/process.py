"""Processes of their own. On Linux they are forked from a preloaded one, which is started when the first is needed."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from fmimaster.apart.anew import WITHOUT_CTRL_C, Kept, python_arguments
from fmimaster.apart.exit import Exit
from fmimaster.apart.server import KILL, REQUEST, START, ChannelEnd, Start
from fmimaster.apart.spawned import Spawned, spawned
from fmimaster.apart.streams import End, Waiting, pair, pipe, wait
from fmimaster.apart.watch import PATIENCE, REPORT
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

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables for the preloaded process: libraries must not start threads in it, because it is forked."""

_TOKEN_BYTES = 8
_TRIES = 2
"""How often a process is started, if the preloaded one has ended."""
_MOST_CHUNKS = 16
"""Of 64 kB, the size of a pipe: read at one time."""


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
        while self._exit is None and (self.pid == 0 or wait([self.report], 0.0)):
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
        wait([self.report], None)

    def close(self) -> None:
        """Give up the connections."""
        self.stream.close()
        self.output.close()
        os.close(self.report)


class _Preloaded:
    """The process from which others are forked."""

    def __init__(self) -> None:
        self._numbers = count()
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            control = theirs.fileno()
            arguments = python_arguments("fmimaster.apart.server", [str(control), *MODULES])
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                pass_fds=[control],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1")},
                **WITHOUT_CTRL_C,
            )

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

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
            self._process.wait(PATIENCE)

    def why_ended(self) -> str:
        """Why it has ended, in words."""
        with suppress(OSError):
            said = self._control.recv(1 << 16, socket.MSG_DONTWAIT).decode("utf-8", "replace")
            if said:
                return f"The process from which others are started has failed:\n{said}"
        return "The process from which others are started has ended."

    def end(self) -> None:
        """End it and all processes that were forked from it."""
        self._control.close()
        self.wait()

    def forget(self) -> None:
        """In a fork of the process that has started it: it belongs to that one."""
        self._control.close()
        self._process.returncode = 0  # no warning that it still runs


_KEPT = Kept[_Preloaded]()


def _preloaded() -> _Preloaded:
    with _KEPT.lock:
        if _KEPT.processes and _KEPT.processes[0].has_ended:
            _KEPT.processes.pop().end()
        if not _KEPT.processes:
            _KEPT.processes.append(_Preloaded())
        return _KEPT.processes[0]


def _started(descriptors: list[int]) -> tuple[_Preloaded, int]:
    """A new process: the preloaded one, and the number there. One that has ended is replaced."""
    for _ in range(_TRIES):
        preloaded = _preloaded()
        with suppress(ConnectionError):
            return preloaded, preloaded.start(descriptors)
        preloaded.wait()
    raise OptionError(preloaded.why_ended())


def _forked(_: Sequence[str], descriptors: Sequence[int]) -> _Forked:
    return _Forked(descriptors)


carry: Callable[[Sequence[str], Sequence[int]], _Forked | Spawned] = (
    _forked if sys.platform == "linux" else spawned
)
"""Starts a process."""
