"""Single FMUs give the same results here and under fmpy, and fmpy runs systems with events unedited."""

from __future__ import annotations

from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.ssp.simulation import simulate_ssp

from fmimaster import reference_path, simulate
from fmimaster.studies.demos.two_mass import TwoMassReference

STEP = 1 / 64
"""A power of two, so that both tools have the same communication points bit by bit."""


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("model", ["TwoMassUpper", "TwoMassLower", "Dahlquist", "Feedthrough"])
def test_all_outputs_are_equal(version: str, model: str) -> None:
    path = reference_path(f"{version}/{model}.fmu")
    ours = simulate(path, start_time=0, stop_time=2, step_size=STEP)
    theirs = fmpy.simulate_fmu(
        str(path),
        start_time=0,
        stop_time=2,
        output_interval=STEP,
        output=[n for n in ours.names if ours[n].dtype != object],
    )
    assert np.array_equal(ours.time, theirs["time"])
    recorded = [n for n in ours.names if ours[n].dtype != object]  # fmpy records no text
    assert len(recorded) >= 2
    for name in recorded:
        assert np.array_equal(ours[name], theirs[name]), name


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_an_input_file_is_taken_alike(version: str, tmp_path: Path) -> None:
    path = reference_path(f"{version}/Dahlquist.fmu")
    table = tmp_path / "u.csv"
    table.write_text(
        "time,u\n0,0\n0.5,1\n0.7,3\n0.7,-1\n1.5,2\n", encoding="utf-8"
    )  # a jump between two points
    ours = simulate(path, stop_time=2, step_size=STEP, input=table)
    theirs = fmpy.simulate_fmu(
        str(path), start_time=0, stop_time=2, output_interval=STEP, input=fmpy.read_csv(str(table))
    )
    assert 0.7 in ours.time  # the jump is a communication point in both
    assert np.array_equal(ours.time, theirs["time"])
    assert ours["x"] == pytest.approx(theirs["x"], rel=0, abs=1e-14)


def test_another_importer_runs_the_unedited_system_with_events_inside_the_fmus() -> None:
    """fmpy knows nothing of shared events or manifests: FMUs start with the policy to execute their events themselves."""
    rows = simulate_ssp(
        str(reference_path("systems/two-mass-b3-fmi2.ssp")), stop_time=2.0, step_size=0.001
    )
    reference = TwoMassReference(2.0)
    assert [e.name for e in reference.events] == ["collision", "collision"]
    for mass in ("upper", "lower"):
        jumps = rows["time"][1:][np.abs(np.diff(rows[f"{mass}.v"])) > 5.0]  # m/s in a millisecond
        assert jumps == pytest.approx([e.time for e in reference.events], abs=0.01)
    exact = reference(rows["time"])
    # inputs are held, and late by a step: an error of first order
    assert np.abs(rows["upper.x"] - exact[:, 0]).max() < 0.1
