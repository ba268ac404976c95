"""The settings of one of several structures of a system: without the names of components that do not exist in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from fmimaster.configure.settings import Settings


def settings_of_structure(
    settings: Settings, every: Collection[str], present: Collection[str]
) -> Settings:
    """The settings for a structure.

    Parameters
    ----------
    every, present
        Names of the components of all structures, and of this one. Names that are in neither stay, and are errors.
    """
    absent = set(every).difference(present)

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
    if isinstance(settings.isolate, tuple | list):
        chosen["isolate"] = tuple(filter(fits, settings.isolate))
    return replace(settings, **chosen)
