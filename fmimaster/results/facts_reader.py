"""A document of facts → events, steps, units and metadata, each value checked: the file may be damaged."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from io import BytesIO, TextIOWrapper
from itertools import chain
from math import isfinite, nan
from pathlib import Path
from typing import Any, NoReturn, TextIO

from fmimaster.base.files import MOST_IN_MEMORY, lines_of, open_file, parsed_json
from fmimaster.record.causes import Activations, Cause, Event, Kind, Steps
from fmimaster.record.step_series import LARGEST, RepeatedSteps, StepSeries

FORMAT = "fmimaster results 1"
"""The format that is written and read."""

_INFINITIES = {"inf": float("inf"), "-inf": float("-inf")}
_LARGE = 2**63
"""No run has so many steps; it is a float, too."""
_SCOPES = {"shared": True, "private": False}
_KINDS = {kind.name.lower(): kind for kind in Kind}


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
    return map(_event, _entries(document, "events", EVENTS))


def steps_in(document: Document) -> Iterator[Steps]:
    """The steps in a document; raises as :func:`events_in`."""
    return chain.from_iterable(map(_steps, _entries(document, "steps", STEPS)))


def activations_in(document: Document) -> Iterator[Activations]:
    """The activations of clocks in a document, none if it is of a version without them; raises as :func:`events_in`."""
    return map(_activations, _entries(document, "activations", ACTIVATIONS, is_optional=True))


def units_in(document: Document) -> dict[str, str]:
    """The units in a document; raises as :func:`events_in`."""
    return {name: _text(unit) for name, unit in _line(document, "units", UNITS).items()}


def metadata_in(document: Document) -> dict[str, Any]:
    """The metadata in a document; raises as :func:`events_in`."""
    found = dict(_line(document, "metadata", METADATA))
    _texts(found.get("clocks", []))  # a figure looks for columns in it; all else is only shown
    return found


def _entries(
    document: Document, key: str, begin: str, *, is_optional: bool = False
) -> Iterator[Any]:
    with _opened(document) as stream:
        if stream.readline(len(BEGIN) + 2).strip() != BEGIN:
            stream.seek(0)
            entries = _object(_whole_document(stream))
            yield from _list(entries[key] if key in entries or not is_optional else [])
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
            return _object(_object(_whole_document(stream))[key])
        for line in lines_of(stream, "the facts of a run"):
            if line.startswith(begin):
                return _object(parsed_json(line.removeprefix(begin).strip().removesuffix(",")))
    raise ValueError("it ends in the middle")


def _whole_document(stream: TextIO) -> Any:
    text = stream.read(MOST_IN_MEMORY)
    if len(text) == MOST_IN_MEMORY:
        raise ValueError(f"it has more than {MOST_IN_MEMORY:,} characters")
    return parsed_json(text)


def _opened(document: Document) -> TextIO:
    stream = BytesIO(document) if isinstance(document, bytes) else open_file(document)
    return TextIOWrapper(stream, encoding="utf-8", newline="\n")


def _event(read: Any) -> Event:
    e = _object(read)
    return Event(
        _time(e["time"]),
        _whole(e["index"], least=0),
        _text(e["name"]),
        _one_of(_SCOPES, e["scope"]),
        _texts(e["components"]),
        _cause(e["cause"]),
        _values(e["left"]),
        _values(e["right"]),
    )


def _steps(read: Any) -> Iterable[Steps]:
    """An entry, or many that repeat."""
    s = _object(read)
    if "repeated" in s:
        return StepSeries([_repeated(s)])
    begin, end = _time(s["begin"]), _time(s["end"])
    return (Steps(begin, end, _cause(s["cause"]), _whole(s["count"], least=1)),)


def _repeated(s: Mapping[str, Any]) -> RepeatedSteps:
    entries, period, resolution = (
        _whole(s[name], least=1) for name in ("entries", "period", "resolution")
    )
    pattern = [_object(one) for one in _list(s["repeated"])]
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


def _activations(read: Any) -> Activations:
    a = _object(read)
    interval = None if a["interval"] is None else _exact(a["interval"])
    first, last = _exact(a["first"]), _exact(a["last"])
    return Activations(_text(a["clock"]), first, last, _whole(a["count"], least=1), interval)


def _exact(read: Any) -> Fraction:
    """A time as a fraction, which is a text: ``"1/10"``."""
    parts = _text(read).split("/")
    if (
        len(parts) > 2
        or not all(part.lstrip("-").isdecimal() for part in parts)
        or parts[1:] == ["0"]
    ):
        _fail("a fraction", read)
    return Fraction(*map(int, parts))


def _cause(read: Any) -> Cause:
    read = _object(read)
    return Cause(_one_of(_KINDS, read["kind"]), _texts(read["who"]))


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
    if not isinstance(read, int) or isinstance(read, bool) or not least <= read < _LARGE:
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
