"""The content of a file of facts → events and steps, each value checked: the file may be damaged."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from math import isfinite, nan
from typing import Any, NoReturn

from fmimaster.causes import Cause, Event, Kind, Steps

EVENTS_2 = "fmimaster events 2"
"""The format that is written and read."""

_INFINITIES = {"inf": float("inf"), "-inf": float("-inf")}
_SCOPES = {"shared": True, "private": False}


def read_events(facts: Any) -> tuple[Event, ...]:
    """The events of a file.

    Raises
    ------
    ValueError, KeyError
        If a value has a wrong type, or is missing.
    """
    return tuple(
        Event(
            _time(e["time"]),
            _whole(e["index"], least=0),
            _text(e["name"]),
            _one_of(_SCOPES, e["scope"]),
            _texts(e["components"]),
            _cause(e["cause"]),
            _values(e["left"]),
            _values(e["right"]),
        )
        for e in map(_object, _list(_object(facts)["events"]))
    )


def read_steps(facts: Any) -> tuple[Steps, ...]:
    """The steps of a file; raises as :func:`read_events`."""
    return tuple(
        Steps(_time(s["begin"]), _time(s["end"]), _cause(s["cause"]), _whole(s["count"], least=1))
        for s in map(_object, _list(_object(facts)["steps"]))
    )


def _cause(read: Any) -> Cause:
    read = _object(read)
    kinds = {kind.name.lower(): kind for kind in Kind}
    return Cause(_one_of(kinds, read["kind"]), _texts(read["who"]))


def _values(read: Any) -> dict[str, Any]:
    return {name: _value(value) for name, value in _object(read).items()}


def _value(read: Any) -> Any:
    """A number, a text, or a list of such; null and an object stand for what JSON lacks."""
    if isinstance(read, list):
        return [_value(v) for v in read]
    if isinstance(read, dict):
        return _one_of(_INFINITIES, read["float"])
    return nan if read is None else read


def _time(read: Any) -> float:
    time = float(read) if isinstance(read, int | float) and not isinstance(read, bool) else nan
    if not isfinite(time):
        _fail("a time", read)
    return time


def _whole(read: Any, *, least: int) -> int:
    if not isinstance(read, int) or isinstance(read, bool) or read < least:
        _fail(f"an integer of at least {least}", read)
    return read


def _text(read: Any) -> str:
    return read if isinstance(read, str) else _fail("a text", read)


def _texts(read: Any) -> tuple[str, ...]:
    return tuple(map(_text, _list(read)))


def _list(read: Any) -> list[Any]:
    return read if isinstance(read, list) else _fail("a list", read)


def _object(read: Any) -> dict[str, Any]:
    return read if isinstance(read, dict) else _fail("an object", read)


def _one_of(known: Mapping[str, Any], read: Any) -> Any:
    return (
        known[read]
        if isinstance(read, str) and read in known
        else _fail(f"one of {', '.join(known)}", read)
    )


def _fail(expected: str, read: object) -> NoReturn:
    raise ValueError(f"expected {expected}, not {reprlib.repr(read)}")
