"""The public names of a room, each imported at its first use (PEP 562).

A room is imported with each of its modules: ``import fmimaster.steps.pid`` executes ``fmimaster/steps/__init__.py`` first.
So this file imports nothing. It lists each public name once, for type checkers and editors::

    if TYPE_CHECKING:
        from fmimaster.steps.pid import PID as PID
    else:
        __getattr__, __dir__ = public_names(__name__)

``as PID`` means for type checkers that the name is public. At run time the same lines are read as text when the first
name is used, so there is no second list.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any

_RENAMED: Mapping[str, str] = {
    "END": "AtEnd",
    "HELD": "Corrected",
    "Held": "Corrected",
    "LINE": "LINEAR",
    "Linear": "AlongLine",
    "MID": "AtMiddle",
    "SUBSEQUENCE": "Subsequence",
}
"""Old name → new name. All other names are only in another room."""

MOVED: Mapping[str, tuple[str, ...]] = {
    "steps, events, loops and instants": ("control",),
    "base": (
        "attributes",
        "errors",
        "garbage",
        "given_path",
        "optional",
        "reference_files",
        "text",
        "version",
        "visible",
    ),
    "commands": ("cli",),
    "configure": (
        "input_signals",
        "input_values",
        "named",
        "requirements",
        "settings",
    ),
    "front and prepare": ("accuracy",),
    "front": ("simulation", "validation"),
    "prepare": ("preparation", "provenance"),
    "record": ("causes",),
    "studies": ("demos", "optimization", "stability"),
}
"""Rooms → modules and rooms at the top of release 0.2.0 whose contents they have now."""


def new_place(name: str, public: Mapping[str, Mapping[str, str]]) -> str:
    """Where a name of the top is now, as a sentence; empty if there never was such a name.

    ``public``: room → its public names, each with the module that defines it.
    """
    for rooms, modules in MOVED.items():
        if name in modules:
            return f"What was in fmimaster.{name} is now in {rooms} of fmimaster."
    new = _RENAMED.get(name, name)
    is_or_is_now = f"'{name}' is" if new == name else f"'{name}' is now '{new}', which is"
    for room, places in public.items():
        if places.get(new, room) != room:
            also = ", and the mode of GaussSeidel is now AlongLine()" if name == "LINEAR" else ""
            return f"{is_or_is_now} in {room}: from {room} import {new}{also}."
    return ""


def at_place(place: str) -> Any:
    """What stands at a place, ``"module:name"`` below fmimaster; the module is imported now."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(f"fmimaster.{module}"))


def public_names(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a room."""

    def get(name: str) -> Any:
        if name == "__all__":  # what `from room import *` imports
            return [public for public in places(room) if not public.startswith("_")]
        module = places(room).get(name)
        if module is None:
            raise _missing(room, name)
        if module == room:  # a room in this room
            return import_module(f"{room}.{name}")
        found = getattr(import_module(module), name)
        setattr(sys.modules[room], name, found)  # the next use does not come here
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[room]), *places(room)})

    return get, names


@cache
def places(room: str) -> Mapping[str, str]:
    """Public name of a room → the module that defines it; for a room in this room, the room itself."""
    # only who uses a public name needs them: a command imports from the modules that define names
    import ast
    from pkgutil import get_data

    text = get_data(room, "__init__.py") or b""
    return {
        name.name: line.module
        for block in ast.parse(text).body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom) and line.module is not None
        for name in line.names
    }


def rooms(room: str) -> Iterator[str]:
    """The rooms with public names: this one, and those in it."""
    yield room
    for name, module in places(room).items():
        if module == room:
            yield from rooms(f"{room}.{name}")


def _missing(room: str, name: str) -> Exception:
    if room == "fmimaster":
        place = new_place(name, {one: places(one) for one in rooms(room)})
        if place:
            # `from fmimaster import PID` would replace the message of an AttributeError by its own
            return ImportError(f"fmimaster has no name '{name}'. {place}", name=room)
    return AttributeError(f"module '{room}' has no attribute '{name}'")
