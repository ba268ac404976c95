"""``fmimaster demo hybrid``: traces of discrete-event units, of the thermostat, and of superdense time."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from command_line import Outcome, reference

from fmimaster.results.csv import read_csv

DATA = Path(__file__).parents[1] / "data"


def test_the_demo_prints_all_traces_and_draws_them(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    reference("fmi3/TrafficLight.fmu")
    outcome = run("demo", "hybrid", "--output-directory", tmp_path, columns=120)
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 120
    traces = ["", "_tie_light_first", "_tie_police_first"]
    for name in traces:
        with (DATA / f"hybrid_devs_traffic{name}.csv").open() as file:
            for row in csv.DictReader(file):
                assert " ".join(value for value in row.values() if value) in [
                    " ".join(line.split()) for line in lines
                ]
    switches = [
        line for line in lines if "FMI 3.0" in line or line.startswith(("Event Mode", "on "))
    ]
    assert "  40  " in switches[0]
    assert "  36  " in next(line for line in switches if line.startswith("on the grid, Gauss"))
    assert any(line.startswith("SD10") for line in lines)
    assert read_csv(tmp_path / "hybrid.csv").rows > 30
    assert f"{tmp_path / 'hybrid'}.csv" in outcome.err
    figures = {"hybrid.png", "hybrid-traffic.png", "hybrid-thermostat.png"}
    assert {path.name for path in tmp_path.iterdir()} == {
        *("hybrid.csv", "hybrid.csv.json"),
        *figures,
    }
    for figure in figures:
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")
        assert f"figure written to {tmp_path / figure}" in outcome.err
