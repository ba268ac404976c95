"""Values as plain data, and back as exactly the type that is expected: what a process with foreign code sends.

Nothing in the data names a class or a function that is called, but for exceptions, whose names are looked up in two fixed
places. So a process that is not trusted can send wrong values, but it runs nothing here.
"""

from __future__ import annotations

import builtins
import collections.abc
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.codec import UnknownContentError, joined, separated
from fmimaster.base.errors import FmimasterError, SimulationError


class DamagedError(Exception):
    """Bytes that are no message, or a message that is not what was expected."""


# Values as bytes


def encoded(value: Any) -> bytes:
    """A value as bytes: dataclasses, containers, arrays, numbers and text."""
    parts: list[bytes] = []
    # text of FMUs and names of files may have characters that UTF-8 cannot have
    text = json.dumps(_plain(value, parts), ensure_ascii=False).encode("utf-8", "replace")
    return joined([text, *parts])


def _plain(value: Any, parts: list[bytes]) -> Any:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), _part(value.tobytes(), parts)]
    if isinstance(value, bytes | bytearray):
        return _part(value, parts)
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), parts) for f in fields(value)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _plain(v, parts) for key, v in value.items()}
        return [[_plain(key, parts), _plain(v, parts)] for key, v in value.items()]
    if isinstance(value, Sequence | set | frozenset):
        return [_plain(v, parts) for v in value]
    raise TypeError(f"A value of {type(value).__name__} cannot be sent to another process.")


def _part(content: bytes | bytearray, parts: list[bytes]) -> int:
    parts.append(bytes(content))
    return len(parts)


# Values from bytes


def decoded(kind: Any, content: bytes) -> Any:
    """The value of a type that :func:`encoded` has made bytes of.

    Parameters
    ----------
    kind
        As in an annotation: a dataclass, ``tuple``, ``list``, ``dict`` and ``Mapping`` with their arguments, an Enum, an
        array, ``T | None``, a number, text or bytes; ``Any`` for what JSON can hold.

    Raises
    ------
    DamagedError
        If it has another type.
    """
    try:
        text, *parts = separated(content)
        return _value(kind, json.loads(text.decode()), parts)
    except DamagedError:
        raise
    except UnknownContentError as error:
        raise DamagedError(str(error)) from error
    except Exception as error:  # of whatever a stranger has written
        raise DamagedError(f"{type(error).__name__}: {error}") from error


def _value(kind: Any, data: Any, parts: list[bytes]) -> Any:
    if kind is Any:
        return data
    if kind is None or kind is NoneType:
        return _expect(NoneType, data)
    if isinstance(kind, type) and is_dataclass(kind):
        types = _types(kind)
        if sorted(_expect(dict, data)) != sorted(types):
            raise DamagedError(f"other fields than those of {kind.__name__}")
        return kind(**{name: _value(types[name], v, parts) for name, v in data.items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is not None:
        return _generic(kind, origin, arguments, data, parts)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind[_expect(str, data)]
    if kind is Fraction:
        numerator, _, denominator = _expect(str, data).partition("/")
        return Fraction(int(numerator), int(denominator or 1))
    if kind is bytes:
        return parts[_expect(int, data) - 1]
    if kind is float and type(data) is int:
        return float(data)
    return _expect(kind, data)


def _generic(kind: Any, origin: Any, arguments: Any, data: Any, parts: list[bytes]) -> Any:
    if origin is UnionType:
        [some] = [a for a in arguments if a is not NoneType]
        return None if data is None else _value(some, data, parts)
    if origin is np.ndarray:
        return _array(arguments[1], data, parts)
    if origin in (dict, collections.abc.Mapping):
        key, entry = arguments
        pairs = _expect(dict, data).items() if key is str else _expect(list, data)
        return {_value(key, k, parts): _value(entry, v, parts) for k, v in pairs}
    entries = _expect(list, data)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(_value(a, v, parts) for a, v in zip(arguments, entries, strict=True))
    if origin in (tuple, list, frozenset):
        return origin(_value(arguments[0], v, parts) for v in entries)
    raise DamagedError(f"{kind} is not known")


def _array(dtype: Any, data: Any, parts: list[bytes]) -> NDArray[Any]:
    (expected,) = get_args(dtype)
    name, shape, part = _expect(list, data)
    if np.dtype(_expect(str, name)) != np.dtype(expected):
        raise DamagedError("an array of another type")
    content = parts[_expect(int, part) - 1]
    found: NDArray[Any] = np.frombuffer(content, expected).copy()
    return found.reshape([_expect(int, n) for n in shape])


@cache
def _types(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _expect(kind: Any, data: Any) -> Any:
    if type(data) is not kind:  # a Boolean is no number
        raise DamagedError(f"a {type(data).__name__} where a {kind.__name__} was expected")
    if kind is str:
        data.encode()  # a lone surrogate could not be written to any file
    return data


# Exceptions

_ATTRIBUTES: Mapping[str, Any] = {
    "time": float | None,
    "instance": str,
    "function": str,
    "status": str,
    "messages": tuple[str, ...],
    "problems": tuple[str, ...],
    "how": str,
    "signal": str,
}
"""Attributes of exceptions that are sent."""
_NOT_SENT = frozenset(["AccuracyError", "ColumnError", "ConstraintError", "LoopError", "ZenoError"])
"""Exceptions with further attributes: they arrive as their base."""


def plain_error(error: BaseException) -> bytes:
    """An exception as bytes."""
    kind = next(k for k in type(error).__mro__ if k.__name__ not in _NOT_SENT)
    ours = issubclass(kind, FmimasterError)
    given = {name: v for name, v in vars(error).items() if name in _ATTRIBUTES} if ours else {}
    text = str(error.args[0]) if ours and error.args else str(error)
    return encoded([kind.__name__, text, given])


def error_of(content: bytes) -> Exception:
    """The exception of :func:`plain_error`; a RuntimeError if its class is neither one of fmimaster nor of Python.

    Raises
    ------
    DamagedError
    """
    name, text, given = decoded(tuple[str, str, Any], content)
    ours = vars(sys.modules[FmimasterError.__module__]).get(name)
    if isinstance(ours, type) and issubclass(ours, FmimasterError):
        return _own_error(ours, text, given)
    kind = vars(builtins).get(name)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(text)
        except TypeError:
            pass  # it is made of more than a text
    return RuntimeError(f"{name}: {text}")


def _own_error(kind: type[FmimasterError], text: str, given: Any) -> FmimasterError:
    error = kind.__new__(kind)
    error.args = (text,)
    attributes: dict[str, Any] = {"results": None} if issubclass(kind, SimulationError) else {}
    for name, data in _expect(dict, given).items():
        if name not in _ATTRIBUTES:
            raise DamagedError(f"an error with '{name}'")
        attributes[name] = _value(_ATTRIBUTES[name], data, [])
    vars(error).update(attributes)
    return error
