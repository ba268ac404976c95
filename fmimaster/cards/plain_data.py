"""Dataclasses of plain values as JSON, and back with a check of each type."""

from __future__ import annotations

import collections.abc
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from fmimaster.system.model import attribute_name


def to_json(value: Any) -> Any:
    """A dataclass, mapping, tuple or plain value as JSON; fields get keys such as ``startSeconds``."""
    if is_dataclass(value):
        return {attribute_name(f.name): to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [to_json(entry) for entry in value]
    return value.value if isinstance(value, Enum) else value


def from_json(kind: Any, value: Any, where: str = "") -> Any:
    """The value of a type that :func:`to_json` has made JSON of.

    Parameters
    ----------
    kind
        A dataclass, ``Mapping[str, T]``, ``tuple[T, ...]``, ``T | None``, a plain type or Any.
    where
        Key of the value, for messages.

    Raises
    ------
    ValueError
        If the value has another type, or a key is missing or not known.
    """
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else from_json(_without_none(arguments), value, where)
    if origin is collections.abc.Mapping:
        entries = _expect(dict, value, where)
        return {name: from_json(arguments[1], v, f"{where}.{name}") for name, v in entries.items()}
    if origin is tuple:
        return tuple(from_json(arguments[0], v, where) for v in _expect(list, value, where))
    if kind is float and type(value) is int:
        return float(value)
    return _expect(kind, value, where)


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    known = {attribute_name(f.name): f for f in fields(kind)}
    entries = _expect(dict, value, where)
    if strange := next((name for name in entries if name not in known), None):
        raise ValueError(f"the key '{where}{strange}' is not known")
    for name, f in known.items():
        if name not in entries and f.default is MISSING and f.default_factory is MISSING:
            raise ValueError(f"the key '{where}{name}' is missing")
    types = _types(kind)
    return kind(
        **{
            known[name].name: from_json(types[known[name].name], entry, f"{where}{name}.")
            for name, entry in entries.items()
        }
    )


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _without_none(arguments: tuple[Any, ...]) -> Any:
    [kind] = [a for a in arguments if a is not NoneType]
    return kind


def _expect(kind: type, value: Any, where: str) -> Any:
    if type(value) is not kind:  # a Boolean is no number
        raise ValueError(
            f"'{where.rstrip('.')}' is a {type(value).__name__}, not a {kind.__name__}"
        )
    return value
