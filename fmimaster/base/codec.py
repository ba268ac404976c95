"""Values as JSON and arrays, and back, without executing anything from the file.

Python's pickle executes code that a file names. Here a file names only classes of fmimaster and, if the caller permits
it, of modules that the caller has imported; their objects are made without a call of their methods.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FileError
from fmimaster.base.files import parsed_json

_PACKAGE = __name__.partition(".")[0]
_PLAIN = type(None), bool, int, float, str
_SIZE = "<u8"
"""Type of the lengths in front of the members of :func:`joined`."""


class NotPlainError(Exception):
    """A value that cannot be written, such as a function."""


class UnknownContentError(FileError):
    """Content that an Encoder does not write; who reads the file adds its name."""


class Encoder:
    """Makes JSON from values; their bytes and arrays are collected.

    Parameters
    ----------
    modules
        Modules whose objects may be written, besides those of fmimaster.
    is_strict : bool
        Whether a container that is in two places is refused: it would become two containers.

    Attributes
    ----------
    parts : list of bytes
        What JSON cannot hold, by the numbers in it.
    """

    def __init__(self, modules: Collection[str] = (), *, is_strict: bool = False) -> None:
        self.parts: list[bytes] = []
        self._modules = modules
        self._is_strict = is_strict
        self._mutable: dict[int, Any] = {}
        """Containers and objects that were written, by identity; they are kept, so that no other gets their identity."""

    def text(self, value: Any) -> str:
        """A value as a text of JSON.

        Raises
        ------
        NotPlainError
        """
        try:
            return json.dumps(self(value), ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            raise NotPlainError("objects that contain themselves") from None

    def __call__(self, value: Any) -> Any:
        """A value as data of JSON: an object of JSON has one key, which tells what it is.

        Raises
        ------
        NotPlainError
            For functions, classes, and objects of other modules.
        """
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is list:
            self._once(value)
            return [self(v) for v in value]
        simple = _ENCODE.get(kind)
        if simple is not None:
            return simple(self, value)
        if isinstance(value, Enum):
            return {"enum": [self._name(kind), value.name]}
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return {"named": [self._name(kind), [self(v) for v in value]]}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return {"number": self._array(np.asarray(value))["array"]}
        if isinstance(value, PurePath):
            return {"path": str(Path(value).absolute())}
        return self._object(value)

    def part(self, content: bytes) -> int:
        """Number of bytes that are stored beside the JSON."""
        self.parts.append(content)
        return len(self.parts) - 1

    def _once(self, value: Any) -> None:
        if not self._is_strict:
            return
        if id(value) in self._mutable:
            raise NotPlainError(f"the same {type(value).__name__} is in two places")
        self._mutable[id(value)] = value

    def _array(self, value: NDArray[Any]) -> dict[str, Any]:
        self._once(value)
        if value.dtype == object:
            return {"objects": [list(value.shape), [self(v) for v in value.ravel().tolist()]]}
        if value.dtype.kind not in "?biufcU":
            raise NotPlainError(f"an array of {value.dtype}")
        content = np.ascontiguousarray(value).tobytes()
        return {"array": [value.dtype.str, list(value.shape), self.part(content)]}

    def _object(self, value: Any) -> dict[str, Any]:
        name = self._name(type(value))
        self._once(value)
        fields = dict(getattr(value, "__dict__", {}))
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                    fields[slot] = getattr(value, slot)
        return {"object": [name, {n: self(v) for n, v in fields.items()}]}

    def _name(self, kind: type) -> str:
        module = kind.__module__
        if not _is_ours(module) and module not in self._modules:
            raise NotPlainError(f"an object of {module}.{kind.__qualname__}")
        return f"{module}:{kind.__qualname__}"


class Decoder:
    """Makes the values from the JSON and the bytes of an :class:`Encoder`.

    Parameters
    ----------
    parts : sequence of bytes
    modules
        Imported modules of the caller whose classes may be named in the file.
    """

    def __init__(self, parts: list[bytes], modules: Collection[str] = ()) -> None:
        self._parts = parts
        self._modules = modules
        self._taken: set[int] = set()

    def value(self, text: str) -> Any:
        """The value of a text.

        Raises
        ------
        FileError
            If it is not what an Encoder writes.
        """
        try:
            return self(parsed_json(text))
        except FileError:
            raise
        except Exception as error:
            raise UnknownContentError(
                f"unknown content ({type(error).__name__}: {error})"
            ) from error

    def __call__(self, data: Any) -> Any:
        """The value of data of JSON."""
        if isinstance(data, list):
            return [self(v) for v in data]
        if not isinstance(data, dict):
            return data
        ((kind, content),) = data.items()
        return _DECODE[kind](self, content)

    def part(self, number: int) -> bytes:
        """Bytes that are stored beside the JSON."""
        if number in self._taken:  # a small file could ask for large values any number of times
            raise UnknownContentError("bytes that are in two places")
        self._taken.add(number)
        return self._parts[number]

    def class_of(self, name: str) -> Any:
        """A class by its name.

        Raises
        ------
        FileError
            If it is no class of fmimaster, or of a module that the caller permits.
        """
        module, _, path = name.partition(":")
        if _is_ours(module):
            found: Any = import_module(module)
        elif module in self._modules and module in sys.modules:
            found = sys.modules[module]
        else:
            raise UnknownContentError(f"an object of '{module}', which is not a part of fmimaster")
        for part in path.split("."):
            found = getattr(found, part)
        if not isinstance(found, type) or found.__module__ != module:
            raise UnknownContentError(f"'{name}', which is not a class of fmimaster")
        return found

    def _object(self, content: Any) -> Any:
        name, given = content
        kind = self.class_of(name)
        if lacking := _fields_of(kind) - given.keys():
            raise UnknownContentError(f"an object of '{name}' without '{min(lacking)}'")
        value = object.__new__(kind)
        for field, entry in given.items():
            object.__setattr__(value, field, self(entry))
        return value


def _fields_of(kind: type) -> set[str]:
    return {f.name for f in fields(kind)} if is_dataclass(kind) else set()


def _is_ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")


def _array(decoder: Decoder, content: Any) -> NDArray[Any]:
    dtype, shape, part = content
    kind = np.dtype(dtype)
    if kind.kind not in "?biufcU":
        raise UnknownContentError(f"an array of {kind}")
    found: NDArray[Any] = np.frombuffer(decoder.part(part), kind).reshape(shape).copy()
    return found


def _objects(decoder: Decoder, content: Any) -> NDArray[Any]:
    shape, values = content
    found = np.empty(len(values), object)
    found[:] = [decoder(v) for v in values]
    shaped: NDArray[Any] = found.reshape(shape)
    return shaped


def _fraction(_: Decoder, text: Any) -> Fraction:
    """Without an exponent, which would be a number of any length."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator or "1"))


def _numbers(decoder: Decoder, content: Any) -> array[Any]:
    code, part = content
    found = array(code)
    found.frombytes(decoder.part(part))
    return found


def _named(decoder: Decoder, content: Any) -> Any:
    kind, values = decoder.class_of(content[0]), [decoder(v) for v in content[1]]
    if not issubclass(kind, tuple):
        raise UnknownContentError(f"'{content[0]}', which is no tuple")
    return tuple.__new__(kind, values)


def _pairs(coder: Callable[[Any], Any], pairs: Any) -> list[list[Any]]:
    return [[coder(key), coder(value)] for key, value in pairs]


def _container(key: str) -> Callable[[Encoder, Any], Any]:
    def encode(encoder: Encoder, value: Any) -> Any:
        return {key: [encoder(v) for v in value]}

    return encode


def _mapping(key: str) -> Callable[[Encoder, Any], Any]:
    def encode(encoder: Encoder, value: Mapping[Any, Any]) -> Any:
        encoder._once(value)
        return {key: _pairs(encoder, value.items())}

    return encode


def _deque(encoder: Encoder, value: deque[Any]) -> Any:
    encoder._once(value)
    return {"deque": [value.maxlen, [encoder(v) for v in value]]}


_ENCODE: Mapping[type, Callable[[Encoder, Any], Any]] = {
    tuple: _container("tuple"),
    set: _container("set"),
    frozenset: _container("frozenset"),
    dict: _mapping("dict"),
    MappingProxyType: _mapping("mapping"),
    deque: _deque,
    array: lambda e, v: {"numbers": [v.typecode, e.part(v.tobytes())]},
    Fraction: lambda e, v: {"fraction": str(v)},
    bytes: lambda e, v: {"bytes": e.part(v)},
    bytearray: lambda e, v: {"bytearray": e.part(bytes(v))},
}

_DECODE: Mapping[str, Callable[[Decoder, Any], Any]] = {
    "tuple": lambda d, c: tuple(d(v) for v in c),
    "set": lambda d, c: {d(v) for v in c},
    "frozenset": lambda d, c: frozenset(d(v) for v in c),
    "dict": lambda d, c: dict(_pairs(d, c)),
    "mapping": lambda d, c: MappingProxyType(dict(_pairs(d, c))),
    "deque": lambda d, c: deque((d(v) for v in c[1]), maxlen=c[0]),
    "numbers": _numbers,
    "fraction": _fraction,
    "bytes": lambda d, c: d.part(c),
    "bytearray": lambda d, c: bytearray(d.part(c)),
    "enum": lambda d, c: d.class_of(c[0])[c[1]],
    "named": _named,
    "array": _array,
    "objects": _objects,
    "number": lambda d, c: _array(d, c)[()],
    "path": lambda d, c: Path(c),
    "object": Decoder._object,
}


def joined(parts: list[bytes]) -> bytes:
    """Several parts as one: their lengths, then their bytes."""
    lengths = np.array([len(parts), *map(len, parts)], _SIZE)
    return lengths.tobytes() + b"".join(parts)


def separated(content: bytes) -> list[bytes]:
    """The parts of :func:`joined`.

    Raises
    ------
    UnknownContentError
        If the lengths do not fit the content.
    """
    size = np.dtype(_SIZE).itemsize
    n = int(np.frombuffer(content[:size], _SIZE)[0]) if len(content) >= size else -1
    if not 0 <= n <= len(content) // size - 1:
        raise UnknownContentError("lengths of parts that do not fit")
    lengths = np.frombuffer(content[size : size * (n + 1)], _SIZE)
    ends = [size * (n + 1), *(size * (n + 1) + np.cumsum(lengths)).tolist()]
    if ends[-1] != len(content):
        raise UnknownContentError("lengths of parts that do not fit")
    return [content[a:b] for a, b in pairwise(ends)]


def as_bytes(value: Any, modules: Collection[str] = (), *, is_strict: bool = False) -> bytes:
    """A value as bytes; the arguments are those of :class:`Encoder`.

    Raises
    ------
    NotPlainError
    """
    encoder = Encoder(modules, is_strict=is_strict)
    text = encoder.text(value)
    return joined([text.encode(), *encoder.parts])


def from_bytes(content: bytes, modules: Collection[str] = ()) -> Any:
    """The value of :func:`as_bytes`; the arguments are those of :class:`Decoder`.

    Raises
    ------
    FileError
    """
    text, *parts = separated(content)
    return Decoder(parts, modules).value(text.decode())
