"""Data classes that cost little to import.

The standard library writes and compiles up to six methods for each; a command imports more than 200 of them, and compiled
for a third of its time. Here the constructor is made when it is called first; comparison, hash and text need no code.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from dataclasses import dataclass as of_library
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind: Any = None, /, **options: Any) -> Any:
        """As of the standard library, with ``init``, ``repr``, ``eq``, ``frozen``, ``slots`` and ``kw_only``."""
        return _made(kind) if kind else lambda kind: _made(kind, **options)


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
    own = {name for name, value in kind.__dict__.items() if value is not None}
    options = {"frozen": frozen, "slots": slots, "kw_only": kw_only}
    kind = of_library(init=False, repr=False, eq=False, **options)(kind)
    methods: dict[str, Any] = {}
    if init:
        methods["__init__"] = _Constructor(kind, frozen)
    if repr:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"], methods["__hash__"] = _equality(kind)
        if not frozen:
            methods["__hash__"] = None
    for name, method in methods.items():
        if name not in own:
            setattr(kind, name, method)
    return kind


class _Constructor:
    """``__init__`` of a class, which is made when it is asked for."""

    def __init__(self, kind: Any, frozen: bool) -> None:
        self._kind, self._frozen = kind, frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        kind = self._kind
        kind.__init__ = method = _constructor(kind, self._frozen)
        return method.__get__(instance, owner)


_DEFAULT = object()
"""In place of an argument: what the factory of the field makes."""


def _constructor(kind: Any, frozen: bool) -> Any:
    names = {"_DEFAULT": _DEFAULT, "_set": object.__setattr__}
    arguments: dict[bool, list[str]] = {False: ["self"], True: []}
    lines = []
    for k, field in enumerate(fields(kind)):
        name = value = field.name
        default = ""
        if field.default_factory is not MISSING:
            names[f"_make{k}"], default = field.default_factory, "=_DEFAULT"
            value = f"_make{k}() if {name} is _DEFAULT else {name}" if field.init else f"_make{k}()"
        elif field.default is not MISSING:
            names[f"_default{k}"], default = field.default, f"=_default{k}"
            value = name if field.init else f"_default{k}"
        elif not field.init:
            continue
        if field.init:
            arguments[bool(field.kw_only)].append(name + default)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    by_name = ["*", *arguments[True]] if arguments[True] else []
    head = f"def __init__({', '.join(arguments[False] + by_name)}):"
    exec("\n ".join([head, *(lines or ["pass"])]), names)
    method: Any = names["__init__"]
    method.__qualname__, method.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    method.__annotations__ = {f.name: f.type for f in fields(kind) if f.init} | {"return": None}
    return method


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equality(kind: Any) -> tuple[Any, Any]:
    """``__eq__`` and ``__hash__``."""
    compared = _getter([f.name for f in fields(kind) if f.compare])
    hashed = _getter([f.name for f in fields(kind) if (f.compare if f.hash is None else f.hash)])

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if type(self) is type(other) else NotImplemented

    return equal, lambda self: hash(hashed(self))


def _getter(names: list[str]) -> Any:
    """Of the tuple of these values."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)
