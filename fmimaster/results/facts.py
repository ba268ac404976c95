"""The facts that a CSV file cannot hold, in a JSON file beside it: events and causes of steps.

``results.csv`` has ``results.events.json`` beside it, if there is an event or a cause to report.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from fmimaster.causes import Cause, Event, Steps, needs_explanation
from fmimaster.errors import FileError
from fmimaster.given_path import given_path
from fmimaster.results.facts_reader import EVENTS_2, read_events, read_steps
from fmimaster.visible import visible_json

SUFFIX = ".events.json"
_ANY_FORMAT = "fmimaster events "
_HEAD = 100
"""So many characters of a file tell whether it is one of ours, however large it is."""


def facts_path(table: str | os.PathLike[str]) -> Path:
    """Where the facts of a table are."""
    path = given_path(table)
    if not path.name:
        raise FileError(f"'{table}' is a folder. Give the CSV file in it.")
    if path.name.endswith(SUFFIX):
        return path
    return path.with_name((path.stem if path.suffix.lower() == ".csv" else path.name) + SUFFIX)


def facts(events: Sequence[Event], steps: Sequence[Steps]) -> dict[str, Any]:
    """All as plain data: the keys are part of the interface, tests/cli/test_steps.py holds them."""
    return {
        "format": EVENTS_2,
        "events": [
            {
                "time": e.time,
                "index": e.index,
                "name": e.name,
                "scope": e.scope,
                "components": list(e.components),
                "cause": _cause(e.cause),
                "left": _plain(e.left),
                "right": _plain(e.right),
            }
            for e in events
        ],
        "steps": [
            {
                "begin": s.begin,
                "end": s.end,
                "size": s.size,
                "count": s.count,
                "cause": _cause(s.cause),
            }
            for s in steps
        ],
    }


def write_facts(
    table: str | os.PathLike[str], events: Sequence[Event], steps: Sequence[Steps]
) -> None:
    """Write the facts of a table beside it; those of an earlier table of that name do not stay."""
    path = facts_path(table)
    if not Path(table).is_file() or Path(table).parent == Path("/dev"):  # /dev/stdout
        return
    try:
        if needs_explanation(events, steps):
            text = json.dumps(facts(events, steps), indent=1, ensure_ascii=False, allow_nan=False)
            _write_whole(path, visible_json(text) + "\n")
        elif path.is_file() and _ANY_FORMAT in _head(path):
            path.unlink()
    except OSError as error:
        raise FileError(f"'{path}' cannot be written: {error.strerror or error}.") from error


def read_facts(table: str | os.PathLike[str]) -> tuple[tuple[Event, ...], tuple[Steps, ...]]:
    """Events and steps of a table; none if there is no file of facts beside it.

    Raises
    ------
    FileError
        If it cannot be read, or is something else.
    """
    path = facts_path(table)
    try:
        if not path.is_file():
            return (), ()
        if EVENTS_2 not in (head := _head(path)):
            raise ValueError(f"it begins with {head[:40]!r}, not with the format '{EVENTS_2}'")
        read = json.loads(path.read_text(encoding="utf-8"))
        return read_events(read), read_steps(read)
    except OSError as error:
        raise FileError(f"'{path}' cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, OverflowError, RecursionError, MemoryError) as error:
        why = (
            f"it lacks {error}" if isinstance(error, KeyError) else str(error) or "it is too large"
        )
        raise FileError(
            f"'{path}' does not hold the events and steps of a run ({why}). Simulate again, or move the file away."
        ) from error


def _head(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return stream.read(_HEAD)


def _write_whole(path: Path, text: str) -> None:
    """Write all of a text; of a part there would be no use."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        if path.is_file():
            with suppress(OSError):
                path.unlink()
        raise


def _cause(cause: Cause) -> dict[str, Any]:
    return {"kind": cause.kind.name.lower(), "who": list(cause.who)}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _json(value) for name, value in values.items()}


def _json(value: Any) -> Any:
    """JSON has no NaN, no infinity and no bytes: null, an object with its name, and hexadecimal text stand for them."""
    if isinstance(value, list):
        return [_json(v) for v in value]
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else {"float": str(value)}
    return value.hex() if isinstance(value, bytes) else value
