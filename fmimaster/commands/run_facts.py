"""A run as plain data, for ``simulate --json``: the keys are part of the interface, docs/command-line.md lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np

from fmimaster.base.errors import SimulationError
from fmimaster.commands.text import json_key
from fmimaster.results.columns import values_of
from fmimaster.results.comparison import Comparison
from fmimaster.results.results import Results


def run_facts(
    system: str,
    results: Results,
    files: Mapping[str, str | None],
    comparison: Comparison | None = None,
    error: SimulationError | None = None,
) -> dict[str, Any]:
    """The system, the ranges of the variables, the files, the statistics, a comparison, and the error.

    Parameters
    ----------
    files
        Kind of file → path of the written file.
    comparison
        With a reference, if there was one.
    error
        The error that ended the run.
    """
    times = results["time"]
    statistics = results.statistics
    return {
        "system": system,
        "startTime": float(times[0]) if len(times) else None,
        "endTime": float(times[-1]) if len(times) else None,
        "rows": results.rows,
        "variables": _variables(results),
        "files": dict(files),
        "statistics": {
            json_key(f.name): _plain(getattr(statistics, f.name))
            for f in fields(statistics)
            if f.name not in ("warnings", "notes", "rows")
        },
        "comparison": _compared(comparison),
        "metadata": {json_key(name): value for name, value in results.metadata.items()},
        "warnings": list(statistics.warnings),
        "notes": list(statistics.notes),
        "error": None
        if error is None
        else {"kind": type(error).__name__, "message": str(error), "time": _plain(error.time)},
    }


def _compared(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {"isWithin": comparison.is_within, **_plain(comparison)}


def _variables(results: Results) -> list[dict[str, Any]]:
    """Each column with its unit, its first, last, smallest and largest value, and in how many rows it has one."""
    table = results.expand()
    found = []
    for name, column in table.columns.items():
        values = values_of(column)
        ordered = len(values) and values.dtype.kind != "O"
        found.append(
            {
                "name": name,
                "unit": table.units.get(name),
                "first": _plain(values[0]) if len(values) else None,
                "last": _plain(values[-1]) if len(values) else None,
                "smallest": _plain(np.min(values)) if ordered else None,
                "largest": _plain(np.max(values)) if ordered else None,
                "present": len(values),
            }
        )
    return found


def _plain(value: Any) -> Any:
    """A value as JSON; a number that JSON does not have is null."""
    if is_dataclass(value):
        return {json_key(f.name): _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and not isfinite(value) else value
