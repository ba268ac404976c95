"""The loops of loops.md, section 4, as systems of reference FMUs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from loop_cases import CASES

from fmimaster.base.installation import reference_path
from fmimaster.system.builder import SystemBuilder

Parameters = Mapping[str, float]

_QUADRATIC: Parameters = {"c0": 0.75, "c1": 0.0, "c2": 0.25}

FUNCTIONS: Mapping[str, Mapping[str, Parameters]] = {
    "L3": {"a": {"function": 1}},
    "L4": {"a": {"c0": 3.0, "c1": 0.0, "c3": -1.0}},
    "L6a": {"a": {"c0": 1.0, "c1": 0.0, "c2": 1.0}},
    "L7a": {"a": _QUADRATIC},
    "L7b": {"a": _QUADRATIC},
    "L7c": {"a": _QUADRATIC},
    "L8": {"pump": {"c0": 10.0, "c1": 0.0, "c2": -1.0}, "pipe": {"function": 3}},
    "L9": {"a": {"function": 2, "c0": 1e5, "c1": -1e5}},
}
"""Case → unit → parameters of LoopFunction; all other units are affine, and LinearSystem without states."""


def loop_system(name: str, folder: Path, version: str) -> SystemBuilder:
    """The units of a case with their connections and start values; ``version`` is fmi2 or fmi3."""
    case, system = CASES[name], SystemBuilder(name)
    for unit_name, unit in case.units.items():
        path, parameters = folder / f"{unit_name}.fmu", FUNCTIONS.get(name, {}).get(unit_name)
        if parameters is None:
            zero = [0.0] * len(unit.start)
            linear_fmu(
                path,
                version,
                d=[unit.partials(*zero)],
                f=[unit.function(*zero)],
                inputs=["u"] if len(zero) == 1 else [f"u{k + 1}" for k in range(len(zero))],
                outputs=["y"],
            )
        else:
            nominal: Mapping[str, Any] = {"y": {"nominal": str(unit.nominal)}}
            edited_fmu(
                reference_path(f"{version}/LoopFunction.fmu"),
                path,
                variables={} if unit.nominal is None else nominal,
            )
        system.add(unit_name, path)
        for parameter, value in (parameters or {}).items():
            system.set(f"{unit_name}.{parameter}", value)
    for connection in case.connections:
        system.connect(*connection.split(" -> "))
    for variable, value in case.start.items():
        system.set(variable, value)
    return system
