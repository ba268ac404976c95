"""Where names and modules are now that the package offered at its top before."""

from __future__ import annotations

from collections.abc import Mapping

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
        "files",
        "free_memory",
        "garbage",
        "given_path",
        "optional",
        "own_folder",
        "reference_files",
        "text",
        "typed_arguments",
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
        "structure_settings",
    ),
    "front and prepare": ("accuracy",),
    "front": ("resumption", "simulation", "validation"),
    "prepare": ("isolation", "preparation", "provenance", "structures"),
    "record": ("causes", "repeated_steps", "step_series"),
    "session": ("checkpoint",),
    "studies": ("demos", "optimization", "stability"),
}
"""Rooms → modules and rooms at the top whose contents they have now."""


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
