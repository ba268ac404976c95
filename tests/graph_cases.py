"""The structural cases of loops.md, as systems of FMUs in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from python_fmu import PythonFmu, plan_of

from fmimaster.plan.plan import Plan

CASES: dict[str, Any] = {
    case["name"].partition("_")[0]: case
    for case in json.loads(
        (Path(__file__).parent / "data" / "loops_graph_cases.json").read_text(encoding="utf-8")
    )
}


def units_of(case: Mapping[str, Any]) -> dict[str, PythonFmu]:
    """The units of a case; dependencies that are null are undeclared."""
    units = {}
    for name, unit in case["units"].items():
        said = {y: on for y, on in unit["outputs"].items() if on is not None}
        units[name] = PythonFmu(
            inputs=dict.fromkeys(unit["inputs"], 0.0),
            outputs=dict.fromkeys(unit["outputs"], lambda v: 0.0),
            depends=said,
            undeclared=unit["outputs"].keys() - said.keys(),
        )
    return units


def plan_of_case(case: Mapping[str, Any]) -> Plan:
    return plan_of(units_of(case), [f"{a} -> {b}" for a, b in case["connections"]])
