"""The facts that a CSV file cannot hold, in a JSON file beside it: events and causes of steps.

``results.csv`` has ``results.events.json`` beside it, if there is an event or a cause to report.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

from fmimaster.causes import Cause, Event, Kind, Steps, needs_explanation
from fmimaster.errors import FileError

SUFFIX = ".events.json"
_FORMAT, _ANY_FORMAT = "fmimaster events 2", "fmimaster events "


def facts_path(table: str | os.PathLike[str]) -> Path:
    """Where the facts of a table are."""
    path = Path(table)
    if path.name.endswith(SUFFIX):
        return path
    return path.with_name((path.stem if path.suffix.lower() == ".csv" else path.name) + SUFFIX)


def facts(events: Sequence[Event], steps: Sequence[Steps]) -> dict[str, Any]:
    """All as plain data: the keys are part of the interface, tests/cli/test_steps.py holds them."""
    return {
        "format": _FORMAT,
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
            path.write_text(text + "\n", encoding="utf-8")
        elif (
            path.is_file()
            and _ANY_FORMAT in path.read_text(encoding="utf-8", errors="replace")[:100]
        ):
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
    if not path.is_file():
        return (), ()
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        if read["format"] != _FORMAT:
            raise ValueError(f"its format is {read['format']!r}")
        return (
            tuple(
                Event(
                    float(e["time"]),
                    int(e["index"]),
                    e["name"],
                    e["scope"] == "shared",
                    tuple(e["components"]),
                    _read_cause(e["cause"]),
                    _values(e["left"]),
                    _values(e["right"]),
                )
                for e in read["events"]
            ),
            tuple(
                Steps(float(s["begin"]), float(s["end"]), _read_cause(s["cause"]), int(s["count"]))
                for s in read["steps"]
            ),
        )
    except OSError as error:
        raise FileError(f"'{path}' cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(
            f"'{path}' does not hold the events and steps of a run ({error}). Simulate again, or move the file away."
        ) from error


def _cause(cause: Cause) -> dict[str, Any]:
    return {"kind": cause.kind.name.lower(), "who": list(cause.who)}


def _read_cause(read: Mapping[str, Any]) -> Cause:
    return Cause(Kind[read["kind"].upper()], tuple(read["who"]))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _json(value) for name, value in values.items()}


def _json(value: Any) -> Any:
    """JSON has no infinity, no NaN and no bytes."""
    if isinstance(value, list):
        return [_json(v) for v in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: nan if value is None else value for name, value in values.items()}
