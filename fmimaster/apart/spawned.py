"""Processes that are started anew for each function or FMU, where they are not forked: on Windows and macOS.

A new one imports for a second before it can begin, so one waits ready for the next function.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from time import monotonic

from fmimaster.apart.anew import (
    WITHOUT_CTRL_C,
    Kept,
    NewProcess,
    passed,
    python_arguments,
    received,
)
from fmimaster.apart.exit import Exit
from fmimaster.apart.server import Channel, import_first, run_started
from fmimaster.apart.streams import Waiting, pair, pipe

_STARTED = b"!"
"""What a new process writes when it has imported."""
_LONGEST_START = 120.0
"""[s] Wall time in which a new process imports."""
_LOOK = 1.0
"""[s] After so much wall time it is looked at again: the system may have failed to tell that it has written."""

_LOG = logging.getLogger("fmimaster")


class Spawned:
    """A process that was started anew.

    Parameters
    ----------
    modules
        What it imports at once.

    Attributes
    ----------
    stream, output : End
        To its channel, and from its standard output and standard error.
    report : int
        What can be waited for until it has ended: a descriptor, on Windows a handle.
    pid : int
        Its number in the system.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self.stream, theirs = pair()
        self.output, output = pipe()
        try:
            self._process = NewProcess(
                python_arguments("fmimaster.apart.spawned", modules),
                [theirs],
                {},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **WITHOUT_CTRL_C,
            )
        except BaseException:
            self.stream.close()
            self.output.close()
            raise
        finally:
            os.close(theirs)
            os.close(output)
        self.pid, self.report = self._process.pid, self._process.report
        self._has_started = self._is_over = False

    def give(self, descriptors: Sequence[int]) -> None:
        """Let the process have these descriptors as well."""
        self._process.give(self.stream, descriptors)

    def wait_for_start(self) -> None:
        """Wait until it has imported what it needs, or has ended. One that hangs as it starts is ended, with a warning."""
        waiting = Waiting(self.report, self.stream)
        until = monotonic() + _LONGEST_START
        while not self._has_started and self.ended() is None:
            waiting.ready(_LOOK)
            self._has_started = bool(self.stream.read(len(_STARTED)))
            if monotonic() > until and not self._has_started:
                _LOG.warning(
                    "A new process of Python has not begun within %g s, and is ended.",
                    _LONGEST_START,
                )
                self.kill()

    def ended(self) -> Exit | None:
        """How it has ended; None if it runs."""
        code = self._process.poll()
        if code is None:
            return None
        if not self._is_over:
            self._is_over = True
            self._process.kill()  # what it has started
        return Exit(code)

    def kill(self) -> None:
        """End it and all that it has started, and wait for that."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Give up all that belongs to it here; it ends then if it has not."""
        self.stream.close()
        self.output.close()
        self._process.close()

    def end(self) -> None:
        """End it before it was used."""
        self.kill()
        self.close()

    def forget(self) -> None:
        """In a fork of the process that has started it: it belongs to that one."""
        self._process.returncode = 0  # no warning that it still runs
        self.close()


def main(*modules: str) -> None:
    """In the new process: import, and run what it is started for."""
    faulthandler.disable()
    [channel] = passed()
    sys.stdout.reconfigure(  # type: ignore[union-attr]
        encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=True
    )
    import_first(modules)
    os.write(channel, _STARTED)
    run_started(Channel(channel), received(channel))


_READY = Kept[Spawned]()
"""The process that waits for the next function."""


def spawned(modules: Sequence[str], descriptors: Sequence[int]) -> Spawned:
    """A process that imports these modules, or has imported them already, and gets these descriptors."""
    with _READY.lock:
        found = _READY.processes.pop() if _READY.processes else Spawned(modules)
        if found.ended() is not None:  # somebody has ended it
            found.close()
            found = Spawned(modules)
        _READY.processes.append(Spawned(modules))
    found.give(descriptors)
    return found
