"""Data classes that cost little to import.

The standard library looks at each field, and writes and compiles up to six methods; a command imports more than 200 data
classes, and spent a third of its time on that. Here all of it is made when it is used first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from dataclasses import dataclass as of_library
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind: Any = None, /, **options: Any) -> Any:
        """As of the standard library, with ``init``, ``repr``, ``eq``, ``frozen``, ``slots`` and ``kw_only``."""
        return _made(kind) if kind else lambda kind: _made(kind, **options)


@of_library(init=False, repr=False, eq=False)
class _Changing:
    """With a text: without one, the library would write the signature into it, which takes some ms."""

    value: int


@of_library(init=False, repr=False, eq=False, frozen=True)
class _Frozen:
    """The same."""

    value: int


def _made(
    kind: Any,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    own = vars(kind)
    given = {
        name: (of, own.get(name, MISSING))
        for name, of in own.get("__annotations__", {}).items()
        if not of.startswith("ClassVar")
    }
    sample: Any = _Frozen if frozen else _Changing
    added: dict[str, Any] = {
        "__dataclass_fields__": _Later(partial(_fields, given=given, kw_only=kw_only)),
        "__dataclass_params__": sample.__dataclass_params__,
        "__match_args__": _Later(_by_position),
    }
    methods: dict[str, Any] = {}
    if init:
        methods["__init__"] = _Later(partial(_constructor, frozen=frozen))
    if repr:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _Later(_equality)
        methods["__hash__"] = _Later(_hash) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    added |= {name: method for name, method in methods.items() if own.get(name) is None}
    return _with_slots(kind, given, added) if slots else _changed(kind, given, added)


class _Later:
    """An attribute of a class, which is made when it is asked for."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, kind: Any, name: str) -> None:
        self._kind, self._name = kind, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        value = self._make(self._kind)
        setattr(self._kind, self._name, value)
        return value.__get__(instance, owner) if callable(value) else value


def _with_slots(kind: Any, given: Mapping[str, Any], added: dict[str, Any]) -> Any:
    """The class again: slots are there from the beginning."""
    inherited = {name for base in kind.__mro__[1:] for name in vars(base).get("__slots__", ())}
    left = {*given, "__dict__", "__weakref__"}
    names = {name: value for name, value in vars(kind).items() if name not in left}
    names["__slots__"] = tuple(name for name in _names(given) if name not in inherited)
    names["__qualname__"] = kind.__qualname__
    return type(kind)(kind.__name__, kind.__bases__, names | added)


def _changed(kind: Any, given: Mapping[str, Any], added: Mapping[str, Any]) -> Any:
    for name, (_, value) in given.items():
        if isinstance(value, Field):
            if value.default is MISSING:
                delattr(kind, name)
            else:
                setattr(kind, name, value.default)
    for name, value in added.items():
        setattr(kind, name, value)
        if isinstance(value, _Later):
            value.__set_name__(kind, name)
    return kind


def _names(given: Mapping[str, tuple[str, Any]]) -> list[str]:
    return [name for name, (of, _) in given.items() if of != "KW_ONLY"]


def _fields(kind: Any, given: Mapping[str, tuple[str, Any]], kw_only: bool) -> dict[str, Any]:
    """Name → field, with those of the bases."""
    found: dict[str, Any] = {}
    for base in kind.__mro__[:0:-1]:
        found |= getattr(base, "__dataclass_fields__", {})
    for name, (of, value) in given.items():
        if of == "KW_ONLY":
            kw_only = True
            continue
        one: Any = value if isinstance(value, Field) else field(default=value)
        one.name, one.type, one._field_type = name, of, _FIELD_TYPE
        if one.kw_only is MISSING:
            one.kw_only = kw_only
        found[name] = one
    return found


_FIELD_TYPE = fields(_Changing)[0]._field_type  # type: ignore[attr-defined]


def _by_position(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.init and not f.kw_only)


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    if _is_kept(type(self), name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_kept(type(self), name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_kept(kind: Any, name: str) -> bool:
    """Whether an attribute does not change: all of a data class, fields of a class that is derived from one."""
    return "__dataclass_fields__" in vars(kind) or name in kind.__dataclass_fields__


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


_DEFAULT = object()
"""In place of an argument: what the factory of the field makes."""

_MANY = 5
"""Fewest fields for which it is worth it to change the class of an instance while it is made."""


def _constructor(kind: Any, frozen: bool) -> Any:
    names = {"_DEFAULT": _DEFAULT, "_set": object.__setattr__}
    arguments: dict[bool, list[str]] = {False: ["self"], True: []}
    values: dict[str, str] = {}
    for k, one in enumerate(fields(kind)):
        name = value = one.name
        default = ""
        if one.default_factory is not MISSING:
            names[f"_make{k}"], default = one.default_factory, "=_DEFAULT"
            value = f"_make{k}() if {name} is _DEFAULT else {name}" if one.init else f"_make{k}()"
        elif one.default is not MISSING:
            names[f"_default{k}"], default = one.default, f"=_default{k}"
            value = name if one.init else f"_default{k}"
        elif not one.init:
            continue
        if one.init:
            arguments[bool(one.kw_only)].append(name + default)
        values[name] = value
    has_layout_of_its_own = "__slots__" in vars(kind) and kind.__bases__ == (object,)
    if not frozen:
        lines = _assigned(values)
    elif has_layout_of_its_own and len(values) >= _MANY:
        names |= {"_kind": kind, "_open": type("_Open", (), {"__slots__": kind.__slots__})}
        lines = [
            "if self.__class__ is _kind:",
            " _set(self, '__class__', _open)",  # its attributes are set in a tenth of the time
            *(" " + line for line in _assigned(values)),
            " self.__class__ = _kind",
            "else:",  # a derived class has another layout
            f" for _item in {{{', '.join(f'{n!r}: {v}' for n, v in values.items())}}}.items():",
            "  _set(self, *_item)",
        ]
    else:
        lines = [f"_set(self, {name!r}, {value})" for name, value in values.items()]
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    by_name = ["*", *arguments[True]] if arguments[True] else []
    head = f"def __init__({', '.join(arguments[False] + by_name)}):"
    exec("\n ".join([head, *(lines or ["pass"])]), names)
    method: Any = names["__init__"]
    method.__qualname__, method.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    method.__annotations__ = {f.name: f.type for f in fields(kind) if f.init} | {"return": None}
    return method


def _assigned(values: Mapping[str, str]) -> list[str]:
    return [f"self.{name} = {value}" for name, value in values.items()]


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equality(kind: Any) -> Any:
    compared = _getter([f.name for f in fields(kind) if f.compare])

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if type(self) is type(other) else NotImplemented

    return equal


def _hash(kind: Any) -> Any:
    hashed = _getter([f.name for f in fields(kind) if (f.compare if f.hash is None else f.hash)])
    return lambda self: hash(hashed(self))


def _getter(names: list[str]) -> Any:
    """Of the tuple of these values."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)
