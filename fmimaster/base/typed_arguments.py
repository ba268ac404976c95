"""Arguments of another type than the declared one are refused where they are given, not where they are used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache, wraps
from itertools import chain, repeat
from numbers import Integral, Real
from reprlib import repr as short
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from fmimaster.base.errors import OptionError

P = ParamSpec("P")
R = TypeVar("R")
_WORDS: Mapping[Any, str] = {
    float: "a number",
    int: "a whole number",
    bool: "True or False",
    str: "a text",
    type(None): "None",
}


class TypedArguments:
    """A dataclass whose fields get values of their declared types only.

    Classes that derive from it and have an ``__init__`` of their own are not checked.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # who checks types, checks those of __init__

        def __new__(cls, *given, **named):
            """Check what is given.

            Raises
            ------
            OptionError
                For a value of another type.
            """
            if (given or named) and "__dataclass_fields__" in vars(cls):
                names, hints = _of_fields(cls)
                for name, value in (*zip(names, given, strict=False), *named.items()):
                    expect(value, hints.get(name, Any), cls.__name__, name)
            return object.__new__(cls)


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """A method whose arguments are of their declared types; others raise an OptionError."""
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount]
    has_more = bool(code.co_flags & 0x04)  # *members
    more = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if has_more else None
    hints: dict[str, Any] = {}
    fitting = set[tuple[Any, ...]]()
    """Types of arguments that fit whatever the values are."""

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> R:
        key = (*map(type, given[1:]), *named, *map(type, named.values()))
        if key not in fitting:  # a system can have 10^5 connections
            hints.update(hints or get_type_hints(function))
            positions: Iterable[str] = names if more is None else chain(names, repeat(more))
            every = (*zip(positions, given[1:], strict=False), *named.items())
            for name, value in every:
                expect(value, hints.get(name, Any), function.__name__, name)
            if not any(_names_entries(hints.get(name, Any)) for name, _ in every):
                fitting.add(key)
        return function(*given, **named)

    return checked


@cache
def _of_fields(kind: Any) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Names of the fields in the order of arguments, and the types."""
    names = tuple(f.name for f in fields(kind) if f.init and not f.kw_only)
    try:
        return names, get_type_hints(kind)
    except NameError:  # of a user's class whose module imports a type for type checkers only
        return names, {}


def expect(value: object, hint: Any, where: str, name: str) -> None:
    """Raise unless a value has this type.

    Parameters
    ----------
    where, name
        The class or method and its argument, for the message.

    Raises
    ------
    OptionError
    """
    if _fits(value, hint):
        return
    for one in _alternatives(hint):
        for key, entry, kind in _entries(value, one):
            expect(entry, kind, where, f"{name}[{key!r}]")
    if isinstance(value, type) and any(
        isinstance(kind, type) and issubclass(value, kind) for kind in _alternatives(hint)
    ):
        what = f"{value.__name__} is a class. Give an object: {value.__name__}()"
        raise OptionError(f"{where}: {name}: {what}.")
    raise OptionError(f"{where}: {name}={short(value)}, expected {_in_words(hint)}.")


def _fits(value: object, hint: Any) -> bool:
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    kind, inside = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, one) for one in inside)
    if kind is Literal:  # which of them it is, the class checks
        return isinstance(value, tuple(type(one) for one in inside))
    if not isinstance(kind, type):
        return True
    if not (inside and issubclass(kind, Collection)):
        return isinstance(value, kind)
    if not _is_collection(value, kind):
        return False
    return all(_fits(entry, one) for _, entry, one in _entries(value, hint))


def _is_collection(value: object, kind: type) -> bool:
    """Whether a value can stand for such a collection: a list for a tuple, for example."""
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping)
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _entries(value: Any, hint: Any) -> Iterator[tuple[object, object, Any]]:
    """Key, value and type of each entry of a collection."""
    kind, inside = get_origin(hint), get_args(hint)
    if not (
        isinstance(kind, type) and issubclass(kind, Collection) and _is_collection(value, kind)
    ):
        return
    if issubclass(kind, Mapping):
        yield from ((key, entry, inside[1]) for key, entry in value.items())
    else:
        fixed = kind is tuple and inside[-1] is not Ellipsis
        kinds = inside if fixed else repeat(inside[0])
        yield from (
            (k, entry, one) for k, (entry, one) in enumerate(zip(value, kinds, strict=False))
        )


def _names_entries(hint: Any) -> bool:
    """Whether a type says of which types the entries of a collection are."""
    return any(get_args(one) and get_origin(one) is not Literal for one in _alternatives(hint))


def _alternatives(hint: Any) -> Iterable[Any]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _in_words(hint: Any) -> str:
    every = _alternatives(hint)
    words = [_one_in_words(one) for one in every if one is not int or float not in every]
    return " or ".join(dict.fromkeys(words))


def _one_in_words(hint: Any) -> str:
    if hint in _WORDS:
        return _WORDS[hint]
    kind = get_origin(hint) or hint
    if kind is Literal:
        return " or ".join(repr(one) for one in get_args(hint))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(str(one) for one in kind)
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return "a mapping"
    if kind is not hint and isinstance(kind, type) and issubclass(kind, Collection):
        return f"a sequence (each {_in_words(get_args(hint)[0])})"
    name = str(getattr(kind, "__name__", kind))
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
