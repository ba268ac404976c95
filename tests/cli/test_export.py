"""``fmimaster export``: a system as an FMU that runs without Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from command_line import Outcome, reference

Run = Callable[..., Outcome]


def test_it_says_what_was_written(run: Run, tmp_path: Path) -> None:
    car, file = reference("systems/quarter-car-a-fmi3.ssp"), tmp_path / "car.fmu"
    given = ("export", car, "--output-file", file, "--start-value", "wheel.kc=20000")
    found = run(*given, "--fmi-version", "2")
    assert found.status == 0
    lines = found.out.splitlines()
    assert lines[0].startswith(f"{file}: FMI 2.0 Co-Simulation, ")
    assert lines[2] == "  internal step 0.001 s; communication steps must be multiples of it"
    assert lines[3] == "  1 input, 2 outputs, 15 start values"
    again = run(*given, "--json")
    assert again.status == 0
    facts = json.loads(again.out)
    assert (facts["fmiVersion"], facts["stepSize"], facts["outputs"]) == (3, 0.001, 2)
    assert facts["bytes"] == file.stat().st_size


def test_all_reasons_are_in_the_error(run: Run, tmp_path: Path) -> None:
    system = reference("systems/thermostat-fmi3.ssp")
    found = run("export", system, "--output-file", tmp_path / "x.fmu")
    assert found.status == 2
    assert found.err.count("\n  - ") == 4
    assert not [*tmp_path.iterdir()]
