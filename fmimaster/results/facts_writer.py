"""The facts of a table, written as a document: events and steps during a run or at its end, units, metadata.

The document is beside a CSV file, and inside of files of the other formats. It is JSON with a line for each event and
each step, so that it can be written and read piece by piece.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from fmimaster.base.errors import FileError
from fmimaster.base.files import put_in_place, reason_of
from fmimaster.base.text import visible_json
from fmimaster.record.causes import Activations, Event, Steps, needs_explanation
from fmimaster.record.plain_data import activation_facts, event_facts, plain_values, step_facts
from fmimaster.record.step_series import StepSeries
from fmimaster.results.facts import (
    ACTIVATIONS,
    BEGIN,
    BETWEEN,
    END,
    EVENTS,
    METADATA,
    STEPS,
    UNITS,
    is_document,
)
from fmimaster.results.table import Table

_COPIED_AT_ONCE = 2**20
"""So many bytes of the steps are copied at one time."""


class FactsWriter:
    """Writes the facts of a run: events as they come, steps into a temporary file that is appended at the end.

    An older file is replaced when the first entries are written, and an incomplete file is removed.

    Parameters
    ----------
    path : Path
        The file of the document; in a file of another format only until the end.
    embed
        Takes the complete document into the file of the table; then the file of the document is removed.

    Raises
    ------
    FileError
        From each method, if the file cannot be written, and from all later calls: the content written before is lost.
    """

    def __init__(self, path: Path, embed: Callable[[bytes], None] | None = None) -> None:
        self.path = path
        self._embed = embed
        self._file: FileIO | None = None
        self._steps: FileIO | None = None
        self._events_taken = 0
        self._steps_taken = 0
        self._failure: FileError | None = None

    @property
    def has_written(self) -> bool:
        """Whether there was an entry."""
        return self._file is not None

    def take(self, events: Sequence[Event], steps: Sequence[Steps]) -> None:
        """Append entries to both lists."""
        try:
            file, beside = self._opened()
            folded = steps.folded() if isinstance(steps, StepSeries) else steps
            of_steps = [line(step_facts(s)) for s in folded]
            _append(file, self._events_taken, [line(event_facts(e)) for e in events])
            _append(beside, self._steps_taken, of_steps)
            self._events_taken += len(events)
            self._steps_taken += len(of_steps)
        except OSError as error:
            raise self._failed(error) from error

    def finish(
        self,
        events: Sequence[Event],
        steps: Sequence[Steps],
        activations: Sequence[Activations],
        units: Mapping[str, str],
        metadata: Mapping[str, Any],
    ) -> None:
        """Append the last entries and complete the document."""
        self.take(events, steps)
        try:
            file, beside = self._opened()
            _write(file, f"\n{BETWEEN}\n{STEPS}\n".encode())
            beside.seek(0)
            while part := beside.read(_COPIED_AT_ONCE):
                _write(file, part)
            _write(
                file,
                "".join(
                    f"{line}\n" for line in ("", BETWEEN, *_ends(activations, units, metadata))
                ).encode(),
            )
            self._close()
            if self._embed is not None:
                self._embed(self.path.read_bytes())
                self.path.unlink()
        except OSError as error:
            raise self._failed(error) from error

    def remove_older(self) -> None:
        """Remove the file that belongs to an earlier table of that name."""
        try:
            if not self.has_written and self.path.is_file() and is_document(self.path):
                self.path.unlink()
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Remove an incomplete document."""
        if self.has_written:
            self._close()
            with suppress(OSError):
                self.path.unlink()

    def _opened(self) -> tuple[FileIO, FileIO]:
        if self._failure is not None:
            raise self._failure
        if self._file is None or self._steps is None:
            # without buffers: an error occurs here and not when the file is closed
            self._file = FileIO(self.path, "w")
            self._steps = TemporaryFile(buffering=0, dir=self.path.parent)  # noqa: SIM115 (until the end)
            _write(self._file, f"{BEGIN}\n{EVENTS}\n".encode())
        return self._file, self._steps

    def _close(self) -> None:
        for stream in (self._file, self._steps):
            if stream is not None:
                stream.close()
        self._file = self._steps = None
        self._events_taken = self._steps_taken = 0

    def _failed(self, error: OSError) -> FileError:
        self._close()
        if self.path.is_file():
            with suppress(OSError):
                self.path.unlink()
        self._failure = FileError(f"'{self.path}' cannot be written: {reason_of(error)}.")
        return self._failure


def write_facts(writer: FactsWriter, table: Table) -> None:
    """Write the facts of a table, if it has any; those of an earlier table with that name are removed."""
    finish_facts(writer, table.events, table.steps, table)


def finish_facts(
    writer: FactsWriter, events: Sequence[Event], steps: Sequence[Steps], table: Table
) -> None:
    """Complete a document, which the writer may have begun, by the last events and steps, and by units and metadata."""
    has_facts = (
        table.units or table.metadata or table.activations or needs_explanation(events, steps)
    )
    if writer.has_written or has_facts:
        # formats without arrays have the units of the elements
        units = {**table.units, **table.expand().units}
        writer.finish(events, steps, table.activations, units, table.metadata)
    else:
        writer.remove_older()


def replace_metadata(path: Path, metadata: Mapping[str, Any]) -> None:
    """Replace the metadata of a complete document."""
    part = path.with_name(f"{path.name}.part")
    try:
        with (
            path.open(encoding="utf-8", newline="") as old,
            part.open("w", encoding="utf-8", newline="") as new,
        ):
            for text in old:
                is_it = text.startswith(METADATA)
                new.write(f"{METADATA}{line(plain_values(metadata))}\n" if is_it else text)
        put_in_place(part, path)
    finally:
        part.unlink(missing_ok=True)


def _append(file: FileIO, before: int, entries: Sequence[str]) -> None:
    """Append to a list that has so many entries."""
    if entries:
        _write(file, ((",\n" if before else "") + ",\n".join(entries)).encode())


def _write(file: FileIO, text: bytes) -> None:
    left = memoryview(text)
    while left:
        left = left[file.write(left) :]


def lines(
    events: Iterable[Event],
    steps: Iterable[Steps],
    activations: Iterable[Activations],
    units: Mapping[str, str],
    metadata: Mapping[str, Any],
    *,
    only_ascii: bool = False,
) -> Iterator[str]:
    """The lines of the document."""
    yield BEGIN
    yield EVENTS
    yield from _separated(line(event_facts(e), only_ascii) for e in events)
    yield BETWEEN
    yield STEPS
    yield from _separated(line(step_facts(s), only_ascii) for s in steps)
    yield BETWEEN
    yield from _ends(activations, units, metadata, only_ascii)


def _ends(
    activations: Iterable[Activations],
    units: Mapping[str, str],
    metadata: Mapping[str, Any],
    only_ascii: bool = False,
) -> tuple[str, ...]:
    """The last lines of the document."""
    return (
        ACTIVATIONS,
        *_separated(line(activation_facts(a), only_ascii) for a in activations),
        BETWEEN,
        f"{UNITS}{line(units, only_ascii)},",
        f"{METADATA}{line(plain_values(metadata), only_ascii)}",
        END,
    )


def _separated(entries: Iterable[str]) -> Iterator[str]:
    """Each but the last with a comma."""
    before = None
    for entry in entries:
        if before is not None:
            yield f"{before},"
        before = entry
    if before is not None:
        yield before


def line(entry: Mapping[str, Any], only_ascii: bool = False) -> str:
    """An entry as a line of JSON."""
    return visible_json(json.dumps(dict(entry), ensure_ascii=only_ascii, allow_nan=False))
