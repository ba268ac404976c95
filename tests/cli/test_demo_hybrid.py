"""``fmimaster demo hybrid``: traces of discrete-event units, of the thermostat, and of superdense time."""

from __future__ import annotations

import csv
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

from command_line import Outcome, reference

from fmimaster.results.csv import read_csv
from fmimaster.results.results import Results
from fmimaster.studies.demos import hybrid

DATA = Path(__file__).parents[1] / "data"


def test_no_axes_of_a_figure_lie_on_others() -> None:
    reference("fmi3/TrafficLight.fmu")
    figure = hybrid._traffic_figure(hybrid._run_traffic())
    figure.draw_without_rendering()
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_the_axis_of_switches_is_that_of_the_run() -> None:
    off = Results(time=[0.0, 60.0], columns={"room.x": [20.0, 0.0], "controller.q": [0.0, 0.0]})
    run = hybrid.VariantRun(hybrid.VARIANTS[0], off, ())
    *_, count = hybrid._thermostat_figure([run]).axes
    assert count.get_xlim() == (0.0, 60.0)


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
        with (DATA / f"hybrid_devs_traffic{name}.csv").open(encoding="utf-8") as file:
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
