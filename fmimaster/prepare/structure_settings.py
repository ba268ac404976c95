"""The settings for one structure of a system that changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from fmimaster.configure.settings import Settings
from fmimaster.system.description import SystemDescription


def settings_of_structure(
    settings: Settings, whole: SystemDescription, structure: SystemDescription
) -> Settings:
    """The settings for a structure of a system.

    Names of components that exist in no structure stay, and are errors.
    """
    present = dict(structure.components())
    absent = dict(whole.components()).keys() - present

    def is_there(name: str) -> bool:
        return not any(name == other or name.startswith(f"{other}.") for other in absent)

    def fits(glob: str) -> bool:
        """Whether a name or glob is not only that of absent components."""
        of_absent = any(fnmatchcase(name, glob) for name in absent)
        return not of_absent or any(fnmatchcase(name, glob) for name in present)

    chosen: dict[str, Any] = {
        "start_values": {n: v for n, v in settings.start_values.items() if is_there(n)},
        "steady_states": tuple(filter(is_there, settings.steady_states)),
    }
    if isinstance(settings.solver, Mapping):
        chosen["solver"] = {n: v for n, v in settings.solver.items() if fits(n)}
    if isinstance(settings.sequence, tuple | list):
        chosen["sequence"] = tuple(filter(is_there, settings.sequence))
    if isinstance(settings.isolate, Mapping):
        chosen["isolate"] = {n: where for n, where in settings.isolate.items() if fits(n)}
    if isinstance(settings.isolate, tuple | list):
        chosen["isolate"] = tuple(filter(fits, settings.isolate))
    return replace(settings, **chosen)
