"""Events, steps and activations as plain data, as lines of JSON hold them, and as bytes for checkpoints; and back.

What is read is checked value by value, because a file may be damaged.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import isfinite, isnan, nan
from typing import Any, NoReturn

import numpy as np

from fmimaster.base.codec import Decoder, Encoder, joined, separated
from fmimaster.record.causes import Activations, Cause, Event, Kind, Steps
from fmimaster.record.step_series import LARGEST, RepeatedSteps, StepColumns, StepSeries

_LARGE = 2**63
"""No run has so many steps; it is a float, too."""

_INFINITIES = {"inf": float("inf"), "-inf": float("-inf")}
_SCOPES = {"shared": True, "private": False}
_KINDS = {kind.name.lower(): kind for kind in Kind}


def event_facts(e: Event) -> dict[str, Any]:
    """An event as plain data: the keys are part of the interface, tests/cli/test_steps.py holds them."""
    return {
        "time": e.time,
        "index": e.index,
        "name": e.name,
        "scope": e.scope,
        "components": list(e.components),
        "cause": _cause_facts(e.cause),
        "left": plain_values(e.left),
        "right": plain_values(e.right),
    }


def event_of(read: Any) -> Event:
    """An event, from :func:`event_facts`.

    Raises
    ------
    ValueError, KeyError
        If a value has a wrong type or is missing.
    """
    e = object_of(read)
    return Event(
        _time(e["time"]),
        _whole(e["index"], least=0),
        text_of(e["name"]),
        _one_of(_SCOPES, e["scope"]),
        texts_of(e["components"]),
        _cause(e["cause"]),
        _values(e["left"]),
        _values(e["right"]),
    )


def step_facts(s: Steps | RepeatedSteps) -> dict[str, Any]:
    """Steps as plain data, likewise; entries that repeat as those of one repetition."""
    if isinstance(s, RepeatedSteps):
        return {
            "begin": s.begin,
            "end": s.end,
            "entries": s.entries,
            "period": s.period,
            "resolution": s.resolution,
            "repeated": [
                {"tick": tick, "share": share, "count": count, "cause": _cause_facts(cause)}
                for tick, share, count, cause in zip(
                    s.ticks, s.shares, s.counts, s.causes, strict=True
                )
            ],
        }
    return {
        "begin": s.begin,
        "end": s.end,
        "size": s.size,
        "count": s.count,
        "cause": _cause_facts(s.cause),
    }


def steps_of(read: Any) -> Iterable[Steps]:
    """An entry, or many that repeat, likewise."""
    s = object_of(read)
    if "repeated" in s:
        return StepSeries([_repeated(s)])
    begin, end = _time(s["begin"]), _time(s["end"])
    return (Steps(begin, end, _cause(s["cause"]), _whole(s["count"], least=1)),)


def _repeated(s: Mapping[str, Any]) -> RepeatedSteps:
    entries, period, resolution = (
        _whole(s[name], least=1) for name in ("entries", "period", "resolution")
    )
    pattern = [object_of(one) for one in list_of(s["repeated"])]
    found = RepeatedSteps(
        _time(s["begin"]),
        entries,
        period,
        resolution,
        tuple(_whole(one["tick"], least=1 - LARGEST) for one in pattern),
        tuple(_time(one["share"]) for one in pattern),
        tuple(_cause(one["cause"]) for one in pattern),
        tuple(_whole(one["count"], least=1) for one in pattern),
    )
    if not pattern or entries > found.most or found.end != _time(s["end"]):
        _fail("entries that repeat until their end", s)
    return found


def activation_facts(a: Activations) -> dict[str, Any]:
    """Activations as plain data, likewise; times are exact as text, such as ``"1/10"``."""
    return {
        "clock": a.clock,
        "first": str(a.first),
        "last": str(a.last),
        "count": a.count,
        "interval": None if a.interval is None else str(a.interval),
    }


def activations_of(read: Any) -> Activations:
    """Activations, likewise."""
    a = object_of(read)
    interval = None if a["interval"] is None else _exact(a["interval"])
    first, last = _exact(a["first"]), _exact(a["last"])
    return Activations(text_of(a["clock"]), first, last, _whole(a["count"], least=1), interval)


def _exact(read: Any) -> Fraction:
    """A time as a fraction, which is a text: ``"1/10"``."""
    parts = text_of(read).split("/")
    if (
        len(parts) > 2
        or not all(part.lstrip("-").isdecimal() for part in parts)
        or parts[1:] == ["0"]
    ):
        _fail("a fraction", read)
    return Fraction(*map(int, parts))


def _cause_facts(cause: Cause) -> dict[str, Any]:
    return {"kind": cause.kind.name.lower(), "who": list(cause.who)}


def _cause(read: Any) -> Cause:
    read = object_of(read)
    return Cause(_one_of(_KINDS, read["kind"]), texts_of(read["who"]))


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by their names as plain data."""
    return {name: _json(value) for name, value in values.items()}


def _json(value: Any) -> Any:
    """JSON has no NaN, no infinity and no bytes: null, an object with its name, and hexadecimal text stand for them."""
    if isinstance(value, list | tuple):
        return [_json(v) for v in value]
    if isinstance(value, Mapping):
        return plain_values(value)
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else {"float": str(value)}
    return value.hex() if isinstance(value, bytes) else value


def _values(read: Any) -> dict[str, Any]:
    return {name: _value(value) for name, value in object_of(read).items()}


def _value(read: Any) -> Any:
    """A number, a text, or a list of such; null and an object stand for what JSON lacks."""
    if isinstance(read, list):
        return [_value(v) for v in read]
    if isinstance(read, dict):
        return _one_of(_INFINITIES, read["float"])
    return nan if read is None else read


# Content of records ----------------------------------------------------------------------------------------------------


def steps_as_bytes(entries: StepColumns) -> bytes:
    """Entries of a step log as the content of a record."""
    causes = list(dict.fromkeys(entries.causes))
    numbers = {cause: k for k, cause in enumerate(causes)}
    chosen = np.array([numbers[cause] for cause in entries.causes], np.int64)
    columns = entries.begins, entries.ends, entries.counts
    text = Encoder().text(causes)
    return joined([text.encode(), chosen.tobytes(), *(column.tobytes() for column in columns)])


def add_steps_from_bytes(entries: StepColumns, content: bytes) -> None:
    """Add the entries of :func:`steps_as_bytes`."""
    text, chosen, begins, ends, counts = separated(content)
    causes = Decoder([]).value(text.decode())
    entries.extend(
        np.frombuffer(begins),
        np.frombuffer(ends),
        [causes[k] for k in np.frombuffer(chosen, np.int64).tolist()],
        np.frombuffer(counts, np.int64),
    )


# Checks ----------------------------------------------------------------------------------------------------------------


def _time(read: Any) -> float:
    time = float(read) if isinstance(read, int | float) and not isinstance(read, bool) else nan
    if not isfinite(time):
        _fail("a time", read)
    return time


def _whole(read: Any, *, least: int) -> int:
    if not isinstance(read, int) or isinstance(read, bool) or not least <= read < _LARGE:
        _fail(f"an integer of at least {least}", read)
    return read


def text_of(read: Any) -> str:
    """A value that must be a text."""
    return read if isinstance(read, str) else _fail("a text", read)


def texts_of(read: Any) -> tuple[str, ...]:
    """A value that must be a list of texts."""
    return tuple(map(text_of, list_of(read)))


def list_of(read: Any) -> list[Any]:
    """A value that must be a list."""
    return read if isinstance(read, list) else _fail("a list", read)


def object_of(read: Any) -> dict[str, Any]:
    """A value that must be an object."""
    return read if isinstance(read, dict) else _fail("an object", read)


def _one_of(known: Mapping[str, Any], read: Any) -> Any:
    return (
        known[read]
        if isinstance(read, str) and read in known
        else _fail(f"one of {', '.join(known)}", read)
    )


def _fail(expected: str, read: object) -> NoReturn:
    raise ValueError(f"expected {expected}, not {reprlib.repr(read)}")
