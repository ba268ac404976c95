"""What the commands show of power bonds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from command_line import Outcome, reference

Run = Callable[..., Outcome]

SYSTEM = reference("systems/quarter-car-a-fmi3.ssp")
SECTION = """
Power bonds
  suspension  chassis.force * velocity enters,  wheel.velocity * force enters;  scale 750 J, tolerance 2.8e-06
"""


@pytest.mark.parametrize("command", ["plan", "info"])
def test_plan_and_info_show_bonds(run: Run, command: str) -> None:
    assert SECTION in run(command, SYSTEM).out
    assert "Power bonds" not in run(command, reference("systems/four-units-fmi3.ssp")).out
    (bond,) = json.loads(run(command, SYSTEM, "--json").out)["powerBonds"]
    assert bond == {
        "name": "suspension",
        "ports": [
            {"component": "chassis", "input": "force", "output": "velocity", "power": "in"},
            {"component": "wheel", "input": "velocity", "output": "force", "power": "in"},
        ],
        "scale": 750.0,
        "tolerance": 2.8e-6,
    }


def test_the_summary_of_a_run_has_a_line_for_each_bond_the_worst_one_first(run: Run) -> None:
    """energy.md 7: mean |dP|/2, residual energy, share of E0, largest residual power and its time."""
    err = run("simulate", reference("systems/seat-chain-fmi3.ssp"), "--stop-time", "0.5").err
    names = re.findall(
        r"^(seat_suspension|suspension) +\S+ W +\S+ J +\S+% +\S+ W +\S+ s +0 J$", err, re.M
    )
    assert names == ["suspension", "seat_suspension"]
    assert "mean error  residual energy" in err
