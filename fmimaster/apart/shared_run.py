"""What a run in a process of its own shares with the process that waits for it: memory that survives any end of the run.

The run writes into it where it is: the struct of the kernel, its instructions, the rows that were not passed on yet, and
some numbers. The process that waits may have it at another address, so it translates each address that it reads there. Rows
that nothing else keeps go to a file without a name, the *spool*. Nothing of this is executed or unpickled by the process
that waits. This module imports little, because a command that starts itself again does so at once.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ctypes import addressof, c_char
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("fmimaster")

SIZE = 256 * 2**20
"""Bytes of the mapping: address space, of which the system gives a page when it is used first."""

_ALIGNED = 64
_NUMBERS, _NOTE, _HEAD = 0, 1024, 4096
"""Where the numbers, the note, and everything else begin."""
_MOST_NOTE = 1024
"""Bytes of a note."""

ROWS, EVENTS, FACTS, PART = b"r", b"e", b"f", b"p"
"""Kinds of records in the spool; the last is the name of an incomplete file of the run."""


ENDING = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if name in signal.Signals.__members__
)
"""Signals that end a command, and keep its rows; Windows has no SIGHUP, and only Windows has SIGBREAK (Ctrl-Break)."""


class SharedNumber(IntEnum):
    """Numbers that both processes read; the run writes them."""

    DONE = 0
    """Whether the command has ended, with the status that follows."""
    STATUS = auto()
    PHASE = auto()
    BASE = auto()
    """Address of the mapping in the process of the run."""
    MEMORY_LIMIT = auto()
    """Bytes that the process of the run may take; 0 without a limit."""
    NOTES = auto()
    """How many notes there were."""
    KERNEL = auto()
    """Address of the struct of the kernel; 0 without one."""
    NAMES = auto()
    """Address of the names of the instances, and how many bytes they have."""
    SIZE_OF_NAMES = auto()
    BLOCK = auto()
    """Address of the rows that are not passed on yet, and how many there is room for."""
    CAPACITY = auto()
    COUNT = auto()
    """How many rows of the block are filled, if the kernel does not count them."""
    PASSED = auto()
    """How many of them were passed on."""
    FILE_SIZE = auto()
    """Bytes of the results file up to the last row that was passed on."""
    RECORDED = auto()
    """How many rows were kept or written."""
    SPOOLED = auto()
    """Bytes of complete records in the spool."""
    IS_CHANGING = auto()
    """Whether the next three numbers replace PASSED, FILE_SIZE and RECORDED: all of them do, or none."""
    NEXT_PASSED = auto()
    NEXT_FILE_SIZE = auto()
    NEXT_RECORDED = auto()


class CommandPhase(IntEnum):
    """How far the command is."""

    PREPARING = 0
    RUNNING = auto()
    COMPLETE = auto()
    """All rows were recorded, and the files are complete; FMUs are terminated and freed."""
    MEASURING = auto()
    """So far, and a hidden run is done in the same process, because it cannot be forked."""
    DELIVERED = auto()
    """The results of the command were written; it does further runs."""
    ADVISING = auto()
    """Only advice is missing."""


class Called(NamedTuple):
    """An instance that a run calls."""

    name: str
    fmi: str
    """Prefix of its functions: ``"fmi2"`` or ``"fmi3"``; empty if it is no FMU."""
    is_isolated: bool
    """Whether it is in yet another process, which holds the limit of its calls."""


class SharedRun:
    """The memory of one command and its run, or of a command with many runs.

    Parameters
    ----------
    spool : int or None
        Descriptor of the file for rows, events and facts; without one none of them are kept.
    memory : mmap
        Zeros that another process maps too; without it they are shared with processes that are forked from this one.
    """

    def __init__(
        self,
        spool: int | None = None,
        *,
        memory: mmap.mmap | None = None,
    ) -> None:
        self.is_forked = memory is None
        """Whether the process of the run is forked from the one that waits; then it can fork too."""
        self.map = mmap.mmap(-1, SIZE) if memory is None else memory
        self.address = addressof(c_char.from_buffer(self.map))
        whole, size = memoryview(self.map), 8 * len(SharedNumber)
        self.numbers = whole[_NUMBERS : _NUMBERS + size].cast("q")
        self.numbers[SharedNumber.BASE] = self.address
        behind = whole[_NUMBERS + size : _NUMBERS + size + 24].cast("d")
        self.last = behind[:2]
        """Time in s of the last row that was passed on, and its next value."""
        self._call_timeout = behind[2:]
        self.keeps_rows, self.spools_rows = spool is not None, False
        """Whether rows are kept, and whether they go to the spool: not if they are in a text file."""
        self.spool = -1 if spool is None else spool
        self._is_full = False
        self.keeps_each_row = False
        """Whether rows are passed on one by one: their columns are known in the process of the run only."""
        self._used = _HEAD
        self._sizes = dict[int, int]()
        """Address → size of what was taken."""
        self._free = dict[int, list[int]]()
        """Size → addresses of what was given back."""

    # In the process of the run

    def take(self, size: int) -> int:
        """Address of so many bytes; 0 if there are no more."""
        size = -(-size // _ALIGNED) * _ALIGNED
        if free := self._free.get(size):
            return free.pop()
        if self._used + size > SIZE:
            return 0
        at, self._used = self.address + self._used, self._used + size
        self._sizes[at] = size
        return at

    def give_back(self, address: int) -> None:
        """Something that was taken is not needed any longer."""
        if size := self._sizes.get(address, 0):
            self._free.setdefault(size, []).append(address)

    def call(self, instances: Sequence[Called]) -> None:
        """These are called from now on; the kernel has their numbers."""
        content = json.dumps(instances).encode()
        self.give_back(self[SharedNumber.NAMES])
        self.numbers[SharedNumber.SIZE_OF_NAMES] = 0
        if address := self.take(len(content)):
            self.at(address, len(content))[:] = content
            self.numbers[SharedNumber.NAMES] = address
            self.numbers[SharedNumber.SIZE_OF_NAMES] = len(content)

    def note(self, text: str) -> None:
        """The call that Python makes; empty after it."""
        content = text.encode("utf-8", "replace")[: _MOST_NOTE - 1]
        self.map[_NOTE : _NOTE + len(content) + 1] = content + b"\0"
        self.numbers[SharedNumber.NOTES] += 1

    def limit(self, call_timeout: float | None, memory_limit: int | None) -> None:
        """The limits of the process, in s and in bytes; None without a limit."""
        self._call_timeout[0] = call_timeout or 0.0
        self.numbers[SharedNumber.MEMORY_LIMIT] = memory_limit or 0

    def begin(self) -> None:
        """A run begins, whose rows replace those of the one before."""
        if self[SharedNumber.PHASE] in (CommandPhase.PREPARING, CommandPhase.COMPLETE):
            self.numbers[SharedNumber.PHASE] = CommandPhase.RUNNING
        self.numbers[SharedNumber.KERNEL] = self.numbers[SharedNumber.BLOCK] = 0
        for number in (
            SharedNumber.COUNT,
            SharedNumber.PASSED,
            SharedNumber.FILE_SIZE,
            SharedNumber.RECORDED,
            SharedNumber.SPOOLED,
        ):
            self.numbers[number] = 0
        os.lseek(self.spool, 0, os.SEEK_SET)

    def put(self, kind: bytes, content: bytes) -> None:
        """Append a record to the spool; it counts when it is complete. A command whose spool is full goes on without it."""
        if self._is_full:
            return
        left = memoryview(kind + len(content).to_bytes(8, "little") + content)
        size = len(left)
        try:
            while left:
                left = left[os.write(self.spool, left) :]
        except OSError as error:
            if not is_command:  # else another program gets its results from there
                raise
            self._is_full = True
            log.warning(
                "Rows are kept in memory only, because the disk of the results takes no more: %s. If an FMU ends the "
                "process of the run, they are lost. Make room there before the run ends.",
                error.strerror,
            )
            return
        self.numbers[SharedNumber.SPOOLED] += size

    def put_rows(self, times: NDArray[np.float64], block: Mapping[Any, NDArray[Any]]) -> None:
        """Append rows to the spool, unless they are in a text file."""
        from fmimaster.base.codec import as_bytes  # it imports numpy

        if self.spools_rows:
            self.put(ROWS, as_bytes([times, dict(block)]))

    def passed_on(self, rows: int, last: float, committed: tuple[int, int]) -> None:
        """So many rows of the block were passed on, up to this time in s.

        Parameters
        ----------
        committed
            Bytes of the results file, and how many rows were kept or written.
        """
        numbers = self.numbers
        numbers[SharedNumber.NEXT_FILE_SIZE], numbers[SharedNumber.NEXT_RECORDED] = committed
        numbers[SharedNumber.NEXT_PASSED] = numbers[SharedNumber.PASSED] + rows
        self.last[1] = last
        numbers[SharedNumber.IS_CHANGING] = 1
        self.complete_change()

    def complete_change(self) -> None:
        """Complete the change that :meth:`passed_on` has begun, if there is one: its process may be ended at any time."""
        numbers = self.numbers
        if numbers[SharedNumber.IS_CHANGING]:
            numbers[SharedNumber.PASSED] = numbers[SharedNumber.NEXT_PASSED]
            numbers[SharedNumber.FILE_SIZE] = numbers[SharedNumber.NEXT_FILE_SIZE]
            numbers[SharedNumber.RECORDED] = numbers[SharedNumber.NEXT_RECORDED]
            self.last[0] = self.last[1]
            numbers[SharedNumber.IS_CHANGING] = 0

    # In the process that waits

    def __getitem__(self, number: SharedNumber) -> int:
        return self.numbers[number]

    @property
    def call_timeout(self) -> float | None:
        """Wall time in s after which a call is ended; None without a limit."""
        return self._call_timeout[0] or None

    @property
    def called(self) -> Sequence[Called]:
        """The instances that are called; empty if the process has damaged their names."""
        address, size = self[SharedNumber.NAMES], self[SharedNumber.SIZE_OF_NAMES]
        if not (0 < size < SIZE and self.here(address, size)):
            return ()
        try:
            found = [Called(*entry) for entry in json.loads(bytes(self.at(address, size)))]
        except (ValueError, TypeError, RecursionError):
            return ()
        return [one for one in found if isinstance(one.name, str) and isinstance(one.fmi, str)]

    @property
    def note_now(self) -> str:
        """The call that Python makes in the run; empty if it makes none."""
        content = bytes(self.map[_NOTE : _NOTE + _MOST_NOTE])
        return content.split(b"\0", 1)[0].decode("utf-8", "replace")

    def here(self, address: int, size: int = 1) -> int:
        """Where bytes are in this process whose address the run has written; 0 if they are not in the mapping."""
        first = address - self[SharedNumber.BASE]
        return self.address + first if _HEAD <= first <= SIZE - size else 0

    def at(self, address: int, size: int) -> memoryview:
        """Bytes of the mapping, by the address that the run has written."""
        first = address - self[SharedNumber.BASE]
        return memoryview(self.map)[first : first + size]

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """The complete records of the spool.

        Raises
        ------
        UnknownContentError
            Behind the records before a place where there is none.
        """
        from fmimaster.base.codec import UnknownContentError  # it imports numpy

        at, end = 0, self[SharedNumber.SPOOLED]
        while at + 9 <= end:
            head = _read(self.spool, at, 9)
            size = int.from_bytes(head[1:], "little")
            if len(head) < 9 or at + 9 + size > end:
                raise UnknownContentError("lengths of records that do not fit")
            yield head[:1], _read(self.spool, at + 9, size)
            at += 9 + size


current: SharedRun | None = None
"""Of this process, if it is the process of a run or of a command with runs."""

is_command = False
"""Whether this process is a command, whose rest the process of its run does."""


@contextmanager
def only_calls() -> Iterator[None]:
    """A context in which a hidden run of a command notes its calls, and no rows."""
    assert current is not None
    phase, keeps_rows = current[SharedNumber.PHASE], current.keeps_rows
    if phase == CommandPhase.COMPLETE:
        current.numbers[SharedNumber.BLOCK] = 0  # all of them were passed on
        current.numbers[SharedNumber.PHASE] = CommandPhase.MEASURING
    current.keeps_rows = False
    try:
        yield
    finally:
        current.keeps_rows = keeps_rows
        current.numbers[SharedNumber.PHASE] = phase


def keeper_of_rows() -> SharedRun | None:
    """What keeps the rows of the run of this process; None if nothing has to."""
    return current if current is not None and current.keeps_rows else None


def marks(n: int) -> NDArray[np.uint8]:
    """So many zeros, in the process of a run where the process that waits for it can read them."""
    import numpy as np

    address = current.take(n) if current is not None and n else 0
    if current is None or not address:
        return np.zeros(n, np.uint8)
    found = np.frombuffer(current.at(address, n), np.uint8)
    found[:] = 0
    return found


def noted(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """A function whose calls are noted, in the process of a run."""
    if (shared := current) is None:
        return function

    def call(*arguments: Any) -> Any:
        shared.note(text)
        try:
            return function(*arguments)
        finally:
            shared.note("")

    return call


def first_words(call: str) -> str:
    """A call at the beginning of a sentence."""
    return call[:1].upper() + call[1:] if call.startswith(("the ", "a ")) else f"The call {call}"


def finish(status: int) -> None:
    """In the process of a run: its command has ended with this status, whatever happens while the process ends."""
    if current is not None:
        flush_streams()
        current.numbers[SharedNumber.STATUS] = status
        current.numbers[SharedNumber.DONE] = 1


def flush_streams() -> None:
    """Write what Python has buffered of the standard output and standard error; nothing if they are closed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _read(descriptor: int, at: int, size: int) -> bytes:
    os.lseek(descriptor, at, os.SEEK_SET)  # the run has ended: nothing else moves in the file
    parts = []
    while size and (part := os.read(descriptor, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
