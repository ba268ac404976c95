"""The checkpoints of a run: when they are written, what they contain, and how a run continues from one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from struct import Struct
from struct import error as StructError  # noqa: N812 (it is a class)
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from fmimaster.base.codec import (
    Decoder,
    Encoder,
    NotPlainError,
    UnknownContentError,
    as_bytes,
    from_bytes,
)
from fmimaster.base.errors import CallError, FileError, FmimasterError
from fmimaster.configure.checkpoint_interval import CheckpointInterval
from fmimaster.fmu.journal import Noted
from fmimaster.fmu.journaled import Journaled, Noise
from fmimaster.record.plain_data import (
    add_steps_from_bytes,
    steps_as_bytes,
)
from fmimaster.results.kept_rows import Block
from fmimaster.run.loop import StructureHistory
from fmimaster.session.checkpoint_file import (
    CheckpointFile,
    Record,
    RowLog,
    damaged,
    records,
    remove_others,
    rows_path,
)
from fmimaster.session.origin import (
    RunOrigin,
    check_is_of_run,
    put_back,
    snapshot,
)
from fmimaster.session.run_statistics import SessionParts

log = logging.getLogger("fmimaster")

_NO_SENSE = LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StructError
"""Errors of content that no checkpoint has."""

_CALLS = Struct("<IQ")
"""Head of the content of CALLS: number of the instance, and how many bytes of its entries stay before these."""


class Checkpoints:
    """Writes checkpoints of a session, and lets it continue from one.

    Parameters
    ----------
    path : Path
    resumed : CheckpointFile or None
        The checkpoint from which the run continues.
    guarded : Path or None
        The file of results that the checkpoint names: replaced only if it has rows of this run.
    """

    def __init__(
        self,
        path: Path,
        interval: CheckpointInterval,
        origin: RunOrigin,
        resumed: CheckpointFile | None = None,
        guarded: Path | None = None,
    ) -> None:
        self._path = path
        self._interval = interval
        self._origin = origin
        self._resumed = resumed
        self._guarded = guarded
        self._session: SessionParts
        self.earlier_seconds = 0.0
        """Wall time in s of the loop before the checkpoint from which the run continues."""
        self._log: RowLog | None = None
        """None before the run, and after a failure to write."""
        self._journaled: dict[int, tuple[Journaled, int]] = {}
        """Number → instances whose calls are noted, and the length of the entries of their initialization."""
        self._events_noted = self._steps_noted = 0
        self._last = (0.0, 0.0)
        """Time of the run and wall time of the last checkpoint, in s."""

    # What the session calls

    @property
    def is_resumed(self) -> bool:
        """Whether the run continues from a checkpoint."""
        return self._resumed is not None

    def structure(self) -> StructureHistory:
        """What had changed at the checkpoint from which the run continues; no change for a new run."""
        if self._resumed is None:
            return StructureHistory()
        state = _state_of(self._path, self._resumed, self._origin.modules)
        try:
            history = state["state"]["structure"]
            if not isinstance(history.changed_at, Fraction | None):
                raise TypeError("the time of a change is no number")
            return StructureHistory(frozenset(history.happened), changed_at=history.changed_at)
        except _NO_SENSE as error:
            raise damaged(self._path, error) from error

    def attach(self, session: SessionParts) -> None:
        """Belong to a session, before it initializes its instances."""
        self._session = session
        session.rows.is_held = self._resumed is not None

    def begin(self, goes_on: bool) -> bool:
        """After the initialization: continue from the checkpoint, or write the first one. Returns whether the run goes
        on."""
        session = self._session
        for i, instance in session.noted.items():
            if _can_serialize(instance):
                instance.stop_noting()
            else:
                self._journaled[i] = instance, len(instance.journal.entries)
        if self._resumed is not None:
            self._continue(self._resumed)
            goes_on = not session.has_ended
        else:
            self._log = self._made(lambda: RowLog.new(self._path))
        session.rows.recorder.also = self._note_rows
        session.facts.before_removal = self._note_facts
        session.rows.is_held = False
        if self._resumed is None:
            self.take()
            if self._log is not None:
                remove_others(self._path, self._log.path)
        self._last = session.state.time.seconds, perf_counter()
        return goes_on

    def look(self, *, is_last: bool = False) -> None:
        """Write a checkpoint if one is due, or if the run will end now; between two steps."""
        time, wall = self._session.state.time.seconds, perf_counter()
        if self._log is not None and (
            is_last or self._interval.is_over(time - self._last[0], wall - self._last[1])
        ):
            self.take()

    def take(self) -> None:
        """Write a checkpoint; between two steps. If that fails, the run continues without further checkpoints."""
        session = self._session
        if self._log is None or session.has_ended:
            return
        try:
            session.rows.settled(self._write)
        except (FileError, NotPlainError, CallError) as error:
            self._failed(error)
        self._last = session.state.time.seconds, perf_counter()

    def close(self) -> None:
        """No more is written."""
        if self._log is not None:
            self._made(self._log.close)
            self._log = None

    # Writing

    def _write(self) -> None:
        session, origin = self._session, self._origin
        assert self._log is not None
        self._note_facts()
        self._note_calls()
        encoder = Encoder(origin.modules | _modules_of(session))
        encoder.parts = list(origin.parts)
        state = snapshot(session)
        state["instances"] = [self._instance(i) for i in range(len(session.instances))]
        text = encoder.text(state)
        if self._log is None:  # it could not be written
            return
        CheckpointFile(
            session.state.time.seconds,
            origin.fingerprint,
            self._log.identity,
            self._log.settle(),
            origin.settings,
            origin.not_written,
            origin.output_file,
            tuple(instance.name for instance, _ in self._journaled.values()),
            text,
            encoder.parts,
        ).write(self._path)

    def _instance(self, i: int) -> bytes | list[Noted]:
        """The serialized state of an instance, or the variables of its noted calls."""
        instance = self._session.instances[i]
        state = None if i in self._journaled else instance.serialized()
        if instance.is_dropped:  # perhaps by the last call
            raise NotPlainError(f"'{instance.name}' was dropped and has no state")
        return list(self._journaled[i][0].journal.noted) if state is None else state

    def _note_rows(self, times: NDArray[Any], block: Block) -> None:
        self._append(Record.ROWS, as_bytes([times, dict(block)]))

    def _note_facts(self) -> None:
        """Append the events and the entries of steps that are new."""
        events, steps = self._session.state.event_log, self._session.state.step_log
        new = events.events[self._events_noted - events.handed_on :]
        if new:
            self._append(Record.EVENTS, as_bytes(list(new)))
            self._events_noted += len(new)
        first = self._steps_noted - steps.handed_on
        if steps.ended > first:
            self._append(Record.STEPS, steps_as_bytes(steps.part(first, steps.ended)))
            self._steps_noted = steps.handed_on + steps.ended

    def _note_calls(self) -> None:
        for i, (instance, begin) in self._journaled.items():
            journal = instance.journal
            same = max(journal.unchanged, begin)
            content = _CALLS.pack(i, same - begin) + journal.entries[same:]
            self._append(Record.CALLS, bytes(content))
            journal.unchanged = len(journal.entries)

    def _append(self, kind: Record, content: bytes) -> None:
        if self._log is not None:
            row_log = self._log
            self._made(lambda: row_log.append(kind, content))

    def _made(self, act: Callable[[], Any]) -> Any:
        """The result of a function that writes; None if that fails."""
        try:
            return act()
        except FileError as error:
            self._failed(error)
            return None

    def _failed(self, error: Exception) -> None:
        row_log, self._log = self._log, None
        if row_log is not None:
            with suppress(FileError):
                row_log.close()
        log.warning(
            "No more checkpoints are written: %s. The run continues.", str(error).rstrip(".")
        )

    # Continuing

    def _continue(self, resumed: CheckpointFile) -> None:
        """Bring the session, which is initialized, to the state of a checkpoint."""
        session = self._session
        row_log = rows_path(self._path, resumed.identity)
        state = _state_of(self._path, resumed, self._origin.modules | _modules_of(session))
        first = None
        for kind, content in records(row_log, resumed.identity, resumed.length):
            if first is None and kind is Record.ROWS:
                first = content  # a damaged file is refused before a results file is replaced
        try:
            if self._guarded is not None:
                rows = None if first is None else from_bytes(first)
                check_is_of_run(self._guarded, session.rows.recorder.as_table(rows))
            put_back(session, state)
            entries = self._take_records(row_log, resumed)
            add_steps_from_bytes(session.state.step_log, state["last steps"])
            self._take_instances(state["instances"], entries)
            self.earlier_seconds = float(state["seconds"])
        except (*_NO_SENSE, UnknownContentError) as error:
            raise damaged(self._path, error) from error
        log.info("The run continues from '%s' at t = %.12g s.", self._path, resumed.time)
        self._log = self._made(lambda: RowLog(row_log, resumed.identity, resumed.length))

    def _take_records(self, path: Path, resumed: CheckpointFile) -> dict[int, bytearray]:
        """Take up rows, events and steps; returns the entries of the noted calls of each instance."""
        session = self._session
        events, steps = session.state.event_log, session.state.step_log
        events.events.clear()
        entries: dict[int, bytearray] = {}
        for kind, content in records(path, resumed.identity, resumed.length):
            match kind:
                case Record.ROWS:
                    session.rows.recorder.add_again(*from_bytes(content))
                case Record.EVENTS:
                    events.events.extend(from_bytes(content))
                case Record.STEPS:
                    add_steps_from_bytes(steps, content)
                case Record.CALLS:
                    i, same = _CALLS.unpack_from(content)
                    known = entries.setdefault(i, bytearray())
                    known[same:] = content[_CALLS.size :]
            session.facts.hand_on()
        self._events_noted, self._steps_noted = events.count, steps.handed_on + len(steps)
        return entries

    def _take_instances(
        self,
        saved: Sequence[bytes | list[Noted]],
        entries: dict[int, bytearray],
    ) -> None:
        found = list(self._session.state.warnings)
        for i, (instance, its) in enumerate(zip(self._session.instances, saved, strict=True)):
            if isinstance(its, bytes):
                instance.deserialize(its)
                continue
            if i not in self._session.noted:
                raise TypeError(f"the state of '{instance.name}' is missing")
            noted = self._session.noted[i]
            noise = noted.repeat(its, bytes(entries.get(i, b"")))
            noted.journal.unchanged = len(noted.journal.entries)
            log.info("The calls of '%s' were repeated: %s.", instance.name, noise)
            if not noise.is_exact:
                found.append(_inexact(instance.name, noise))
        self._session.state.warnings = tuple(dict.fromkeys(found))


def _state_of(path: Path, resumed: CheckpointFile, modules: frozenset[str]) -> dict[str, Any]:
    """The state in a checkpoint.

    Raises
    ------
    FileError
        If it cannot be understood.
    """
    try:
        state = Decoder(resumed.parts, modules).value(resumed.state)
        if not isinstance(state, dict):
            raise FileError("it has no state")
        return state
    except FileError as error:
        raise damaged(path, error) from None


def _modules_of(session: SessionParts) -> frozenset[str]:
    return frozenset({type(session.state.memory).__module__})


def _can_serialize(instance: Journaled) -> bool:
    """Whether the state of an instance can be written after all: that of a component in Python, if it is plain data."""
    if instance.model.instantiation_token:
        return False
    try:
        instance.serialized()
    except FmimasterError:
        return False
    return True


def _inexact(name: str, noise: Noise) -> str:
    return (
        f"'{name}' cannot write its state, so its calls were repeated to continue the run, and it did not give the same "
        f"values: {noise}"
    )
