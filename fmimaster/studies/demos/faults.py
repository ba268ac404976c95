"""Two coupled FMUs, one of which crashes or hangs: what a run does by each policy."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.base.errors import SimulationError
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.studies.demos.stage import Stage, write_files
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import SystemDescription

OUTPUTS = ("motor.x", "pump.x")
CRASH, HANG = 9, 13
"""Values of the parameter ``fault`` of the FMU ``Faulty``."""
FAULT_TIME = 3.0
"""[s]"""
STOP_TIME = 5.0
"""[s]"""
DEADLINE = 0.5
"""[s] For a call, in wall time."""


@dataclass(frozen=True)
class FaultCase:
    """A fault of the pump, and what the run does."""

    title: str
    fault: int
    is_once: bool
    """Whether the fault is in the first call only, and not in that of a new process."""
    policy: str
    settings: Mapping[str, Any]


CASES = (
    FaultCase("no fault", 0, False, "stop", {}),
    FaultCase("crash, once", CRASH, True, "restart", {}),
    FaultCase("hang, always", HANG, False, "stop", {"call_timeout": DEADLINE}),
    FaultCase("hang, always", HANG, False, "drop", {"call_timeout": DEADLINE}),
)


@dataclass(frozen=True)
class CaseRun:
    """How a case has ended."""

    case: FaultCase
    results: Results
    error: str
    """The message of a run that has stopped; empty for a completed one."""


def system(version: str, case: FaultCase, marker: Path) -> SystemDescription:
    """A motor and a pump, x' = -k x + u, each fed by the x of the other; the pump has the fault."""
    faults = {"fault": case.fault, "faultTime": FAULT_TIME}
    builder = SystemBuilder("motor and pump")
    builder.add("motor", reference_path(f"{version}/Dahlquist.fmu"), {"x": 2.0, "k": 2.0})
    marked = {"marker": str(marker)} if case.is_once else {}
    builder.add("pump", reference_path(f"{version}/Faulty.fmu"), {**faults, **marked})
    builder.connect("motor.x", "pump.u")
    builder.connect("pump.x", "motor.u")
    return builder.build()


def run_case(case: FaultCase, version: str) -> CaseRun:
    """Simulate it. The log has what happens to the pump."""
    with tempfile.TemporaryDirectory(prefix="fmimaster-") as folder:
        simulation = Simulation(
            system(version, case, Path(folder, "has-crashed")),
            stop_time=STOP_TIME,
            step_size="1/10",
            on_fault=case.policy,
            isolate=True,
            error_estimate=False,
            **case.settings,
        )
        try:
            return CaseRun(case, simulation.run(), "")
        except SimulationError as error:
            return CaseRun(case, error.results, str(error))


def table(runs: Sequence[CaseRun]) -> list[tuple[str, ...]]:
    """The runs side by side; the first is the undisturbed one."""
    expected = runs[0].results
    rows: list[tuple[str, ...]] = [
        ("fault of the pump at t = 3 s", "on_fault", "ends at", "rows", "equal to the first run")
    ]
    for run in runs:
        found = run.results
        equal = np.logical_and.reduce(
            [found[name] == expected[name][: found.rows] for name in OUTPUTS]
        )
        rows.append(
            (
                run.case.title,
                run.case.policy,
                f"{found.time[-1]:g} s",
                str(found.rows),
                str(int(equal.sum())),
            )
        )
    return rows


def show(stage: Stage) -> None:
    """Run all cases."""
    runs = []
    for case in CASES:
        stage.tell([f"{case.title}, on_fault={case.policy}:"])
        runs.append(run_case(case, stage.version))
        stage.tell([f"  {runs[-1].error or 'completed'}"])
    stage.print(table(runs))
    stage.tell(write_files(stage, "faults", runs[-1].results, " of the last run", {}))
