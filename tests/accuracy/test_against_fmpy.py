"""Single FMUs give the same results here and under fmpy."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest

from fmimaster import reference_path, simulate

STEP = 1 / 64
"""A power of two, so that both tools have the same communication points bit by bit."""


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("model", ["TwoMassUpper", "TwoMassLower", "Dahlquist", "Feedthrough"])
def test_all_outputs_are_equal(version: str, model: str) -> None:
    path = reference_path(f"{version}/{model}.fmu")
    ours = simulate(path, start_time=0, stop_time=2, step_size=STEP)
    theirs = fmpy.simulate_fmu(
        str(path), start_time=0, stop_time=2, output_interval=STEP, output=list(ours.names)
    )
    assert np.array_equal(ours.time, theirs["time"])
    recorded = [n for n in ours.names if n != "String_output"]  # fmpy records no text
    assert len(recorded) >= 2
    for name in recorded:
        assert np.array_equal(ours[name], theirs[name]), name


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_an_input_file_is_taken_alike(version: str, tmp_path: Path) -> None:
    path = reference_path(f"{version}/Dahlquist.fmu")
    table = tmp_path / "u.csv"
    table.write_text("time,u\n0,0\n0.5,1\n0.7,3\n0.7,-1\n1.5,2\n")  # a jump between two points
    ours = simulate(path, stop_time=2, step_size=STEP, input_file=table)
    theirs = fmpy.simulate_fmu(
        str(path), start_time=0, stop_time=2, output_interval=STEP, input=fmpy.read_csv(str(table))
    )
    assert 0.7 in ours.time  # the jump is a communication point in both
    assert np.array_equal(ours.time, theirs["time"])
    assert ours["x"] == pytest.approx(theirs["x"], rel=0, abs=1e-14)
