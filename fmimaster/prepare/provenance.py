"""Metadata of a run: versions, files, settings and date, as JSON values."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from fmimaster.base.installation import installed_version
from fmimaster.configure.settings import Settings
from fmimaster.fmu.fingerprint import file_hash
from fmimaster.fmu.shared_library import FMI3
from fmimaster.prepare.prepared import Prepared
from fmimaster.system.description import Component
from fmimaster.system.model import DataType


def run_metadata(prepared: Prepared, settings: Settings) -> dict[str, Any]:
    """Metadata of a run that are known at its start.

    Returns
    -------
    dict
        ``"fmimaster"``, ``"python"``: versions; ``"platform"``; ``"started"``: date and time of the start (ISO 8601, UTC);
        ``"system"``: its path as it was given, or its name; ``"components"``: for each its ``"name"``, and ``"file"`` and
        ``"sha256"`` if it is a file; ``"start_time"`` and ``"stop_time"`` in s; ``"settings"``: those that differ from
        their defaults, as text if JSON has no such value; ``"notes"``: choices for settings that the user did not give;
        ``"clocks"``: columns that are clocks, if there are any.
        The run adds ``"end_time"`` in s, ``"steps"`` and ``"events"``, which are numbers, ``"wall_time"`` of the loop
        over time in s, and ``"warnings"``.
    """
    clocks = [c.name for c in prepared.plan.recorded if c.type is DataType.CLOCK]
    return {
        "fmimaster": installed_version(),
        "python": sys.version.split()[0],
        "platform": FMI3,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "system": _system(prepared, settings),
        "components": [
            _component(planned.name, made_from)
            for planned, made_from in zip(prepared.plan.instances, prepared.components, strict=True)
        ],
        "start_time": float(prepared.schedule.start),
        "stop_time": float(prepared.schedule.stop),
        "settings": {
            name: plain(value)
            for name, value in settings.changed().items()
            if name != "process"  # results do not depend on it
        },
        "notes": list(prepared.notes),
        **({"clocks": clocks} if clocks else {}),
    }


def plain(value: Any) -> Any:
    """A value as JSON; text for types that JSON does not have."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(entry) for entry in value]
    return str(value)


def _system(prepared: Prepared, settings: Settings) -> str:
    given = settings.system
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return prepared.description.system.name


def _component(name: str, component: Component) -> dict[str, str]:
    path, member = component.source.path, component.source.member
    facts = {"name": name}
    if path.is_file():
        facts["file"] = f"{path.name}/{member}" if member else path.name
        facts["sha256"] = file_hash(path)
    return facts
