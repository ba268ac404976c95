"""The facts of a table besides its rows, read: events, causes of steps, units and metadata of the run.

A CSV file cannot hold them: ``results.csv`` has ``results.csv.json`` beside it. Files of the other formats hold the same
document. Each value in it is checked: the file may be damaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, TypeVar

from fmimaster.base.errors import FileError
from fmimaster.base.files import (
    MOST_IN_MEMORY,
    given_path,
    lines_of,
    open_file,
    parsed_json,
    reason_of,
)
from fmimaster.record.causes import Activations, Event, Steps
from fmimaster.record.plain_data import (
    activations_of,
    event_of,
    list_of,
    object_of,
    steps_of,
    text_of,
    texts_of,
)
from fmimaster.results.table import Table

SUFFIX = ".json"
_Read = TypeVar("_Read")
_ANY_FORMAT = "fmimaster results "
_HEAD = 100
"""Characters of a file that are read to recognize a document of facts."""

_PART = 1 << 20
"""Characters that are read at one time."""
FORMAT = "fmimaster results 1"
"""The format that is written and read."""

BEGIN = f'{{"format": "{FORMAT}",'
EVENTS = '"events": ['
STEPS = '"steps": ['
ACTIVATIONS = '"activations": ['
BETWEEN = "],"
UNITS = '"units": '
METADATA = '"metadata": '
END = "}"
"""Lines of the document as it is written, between which each entry is a line: it can be read piece by piece. Units and
metadata are a line each. A document with other lines is read as a whole."""

Document = Path | bytes
"""A file, or its content."""


def facts_path(table: str | os.PathLike[str]) -> Path:
    """Path of the file with the facts of a CSV file."""
    path = given_path(table)
    if not path.name:
        raise FileError(f"'{table}' is a folder. Give the CSV file in it.")
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def may_have_facts(table: str | os.PathLike[str]) -> bool:
    """Whether a file of facts can be beside a table: it is a file, not a device such as /dev/stdout."""
    return Path(table).is_file() and Path(table).parent != Path("/dev")


def is_document(path: Path) -> bool:
    """Whether a file is a document of facts, of any version of fmimaster."""
    return _ANY_FORMAT in _head_of(path)


def _head_of(path: Path) -> str:
    """The first characters of a file."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        return stream.read(_HEAD)


class Facts:
    """The facts of a table, read from their document in each iteration, because they may be many.

    Parameters
    ----------
    path : Path
        The file of the document, or the file that holds it.
    document : bytes, optional
        The document, if the file holds more than that; empty if the file has none.

    Raises
    ------
    FileError
        During an iteration, if the document cannot be read or is another file.
    """

    def __init__(self, path: Path, document: bytes | None = None) -> None:
        self.path = path
        self._document = document

    @property
    def exist(self) -> bool:
        """Whether there is a document."""
        return self.path.is_file() if self._document is None else bool(self._document)

    def events(self) -> Iterator[Event]:
        """The events, in their order; none if there is no document."""
        return self._read(lambda document: map(event_of, _entries(document, "events", EVENTS)))

    def steps(self) -> Iterator[Steps]:
        """The steps, likewise."""
        return self._read(
            lambda document: chain.from_iterable(map(steps_of, _entries(document, "steps", STEPS)))
        )

    def activations(self) -> Iterator[Activations]:
        """The activations of clocks, likewise; none if the document is of a version without them."""
        return self._read(
            lambda document: map(
                activations_of, _entries(document, "activations", ACTIVATIONS, is_optional=True)
            )
        )

    def units(self) -> dict[str, str]:
        """Units of columns, of arrays also of their elements; none if there is no document."""
        return dict(
            self._read(
                lambda document: (
                    (name, text_of(unit)) for name, unit in _line(document, "units", UNITS).items()
                )
            )
        )

    def metadata(self) -> dict[str, Any]:
        """The metadata of the run; empty if there is no document."""
        return dict(self._read(lambda document: iter(_metadata(document).items())))

    def added_to(self, table: Table) -> dict[str, Any]:
        """Changes of a table that was read without them, as arguments for ``replace``."""
        units = {name: unit for name, unit in self.units().items() if name in table.columns}
        return {
            "events": tuple(self.events()),
            "steps": tuple(self.steps()),
            "activations": tuple(self.activations()),
            "units": {**table.units, **units},
            "metadata": self.metadata(),
        }

    def _read(self, entries: Callable[[Document], Iterator[_Read]]) -> Iterator[_Read]:
        path = self.path
        try:
            if not self.exist:
                return
            head = _head_of(path) if self._document is None else FORMAT
            if FORMAT not in head:
                raise ValueError(f"it begins with {head[:40]!r}, not with the format '{FORMAT}'")
            yield from entries(path if self._document is None else self._document)
        except OSError as error:
            raise FileError(f"'{path}' cannot be read: {reason_of(error)}.") from error
        except (ValueError, KeyError, OverflowError, RecursionError, MemoryError) as error:
            why = (
                f"it lacks {error}"
                if isinstance(error, KeyError)
                else str(error) or "it is too large"
            )
            raise FileError(
                f"'{path}' does not hold the events and steps of a run ({why}). Simulate again, or move the file away."
            ) from error


def _metadata(document: Document) -> Mapping[str, Any]:
    found = _line(document, "metadata", METADATA)
    texts_of(found.get("clocks", []))  # a figure looks for columns in it; all else is only shown
    return found


def _entries(
    document: Document, key: str, begin: str, *, is_optional: bool = False
) -> Iterator[Any]:
    with _opened(document) as stream:
        if stream.readline(len(BEGIN) + 2).strip() != BEGIN:
            stream.seek(0)
            entries = object_of(_whole_document(stream))
            yield from list_of(entries[key] if key in entries or not is_optional else [])
            return
        lines = (line.strip() for line in lines_of(stream, "the facts of a run"))
        for line in lines:
            if line == begin:
                break
        for line in lines:
            if line == BETWEEN:
                return
            if line:
                yield parsed_json(line.removesuffix(","))
        if is_optional:
            return
    raise ValueError("it ends in the middle")


def _line(document: Document, key: str, begin: str) -> Mapping[str, Any]:
    """An object that is a line of its own."""
    with _opened(document) as stream:
        if stream.readline(len(BEGIN) + 2).strip() != BEGIN:
            stream.seek(0)
            return object_of(object_of(_whole_document(stream))[key])
        for line in lines_of(stream, "the facts of a run"):
            if line.startswith(begin):
                return object_of(parsed_json(line.removeprefix(begin).strip().removesuffix(",")))
    raise ValueError("it ends in the middle")


def _whole_document(stream: TextIO) -> Any:
    parts, most = [], MOST_IN_MEMORY
    while part := stream.read(_PART):  # the memory for all that may come would be taken at once
        parts.append(part)
        most -= len(part)
        if most <= 0:
            raise ValueError(f"it has more than {MOST_IN_MEMORY:,} characters")
    return parsed_json("".join(parts))


def _opened(document: Document) -> TextIO:
    stream = BytesIO(document) if isinstance(document, bytes) else open_file(document)
    return TextIOWrapper(stream, encoding="utf-8-sig", newline="\n")
