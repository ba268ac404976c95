"""A document of facts → events, steps, units and metadata, each value checked: the file may be damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from fmimaster.base.files import MOST_IN_MEMORY, lines_of, open_file, parsed_json
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


def events_in(document: Document) -> Iterator[Event]:
    """The events in a document.

    Raises
    ------
    ValueError, KeyError
        If the document is damaged, a value has a wrong type, or is missing.
    """
    return map(event_of, _entries(document, "events", EVENTS))


def steps_in(document: Document) -> Iterator[Steps]:
    """The steps in a document; raises as :func:`events_in`."""
    return chain.from_iterable(map(steps_of, _entries(document, "steps", STEPS)))


def activations_in(document: Document) -> Iterator[Activations]:
    """The activations of clocks in a document, none if it is of a version without them; raises as :func:`events_in`."""
    return map(activations_of, _entries(document, "activations", ACTIVATIONS, is_optional=True))


def units_in(document: Document) -> dict[str, str]:
    """The units in a document; raises as :func:`events_in`."""
    return {name: text_of(unit) for name, unit in _line(document, "units", UNITS).items()}


def metadata_in(document: Document) -> dict[str, Any]:
    """The metadata in a document; raises as :func:`events_in`."""
    found = dict(_line(document, "metadata", METADATA))
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
    text = stream.read(MOST_IN_MEMORY)
    if len(text) == MOST_IN_MEMORY:
        raise ValueError(f"it has more than {MOST_IN_MEMORY:,} characters")
    return parsed_json(text)


def _opened(document: Document) -> TextIO:
    stream = BytesIO(document) if isinstance(document, bytes) else open_file(document)
    return TextIOWrapper(stream, encoding="utf-8", newline="\n")
