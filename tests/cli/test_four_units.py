"""``fmimaster demo four-units``: all sequences of the four units of Holzinger and Benedikt."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, reference

from fmimaster.results.csv import read_csv
from fmimaster.results.results import Results
from fmimaster.studies.demos import four_units
from fmimaster.studies.demos.four_units import SequenceRun

DATA = Path(__file__).parents[1] / "data"


def published() -> dict[str, dict[str, str]]:
    with (DATA / "seq_paper_24.csv").open(encoding="utf-8") as stream:
        return {row["sequence"]: row for row in csv.DictReader(stream)}


def test_all_24_objectives_in_three_weightings_are_those_of_the_paper() -> None:
    """sequence.md 7.2."""
    rows = published()
    for order in four_units.ORDERS:
        row, cost = rows.pop("".join(name[1] for name in order)), four_units.objective(order)
        expected = [float(row[f"obj_{kind}"]) for kind in ("count", "feedthrough", "advanced")]
        assert [cost.count, cost.feed_through, cost.advanced] == pytest.approx(expected, abs=1e-12)
    assert not rows


def test_the_monolithic_solution_passes_the_published_points() -> None:
    """sequence.md 2.3: y11 and y12 at 0.05 s and at the end; printed with eight digits."""
    y = four_units.monolithic()
    assert list(y[500, :2]) == pytest.approx([10.983999, -9.7861305], rel=5e-8)
    assert list(y[-1, :2]) == pytest.approx([9.9329042, 0.0601096], rel=1e-6)


def test_the_figure_marks_the_place_of_the_sequence_with_the_smallest_error() -> None:
    best = 5
    none = Results(time=[], columns={})
    runs = [
        SequenceRun(order, four_units.objective(order), abs(k - best) + 0.1, 0.1, none)
        for k, order in enumerate(four_units.ORDERS)
    ]
    (axes,) = four_units.objectives(runs).axes
    (mark,) = axes.patches
    ends = mark.get_extents().transformed(axes.transData.inverted()).intervalx
    assert ends.tolist() == pytest.approx([best - 0.5, best + 0.5])
    assert axes.get_xticklabels()[best].get_text() == "".join(runs[best].order)


def test_the_demo_prints_all_sequences_and_names_the_published_one(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    reference("systems/four-units-fmi3.ssp")
    outcome = run("demo", "four-units", "--output-directory", tmp_path, columns=100)
    assert outcome.status == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 100
    rows = [line.split() for line in outcome.out.splitlines() if line.startswith("S")]
    assert len(rows) == 24
    for row in rows:
        expected = published()["".join(name[1] for name in row[:4])]
        # printed with five digits behind the point
        assert float(row[7]) == pytest.approx(float(expected["lin_all"]), abs=6e-6)
        assert float(row[9]) == pytest.approx(float(expected["lin_S1"]), abs=6e-6)
    assert "The sequence S3 S4 S1 S2 has the smallest error, 0.01807, as published." in outcome.err
    assert read_csv(tmp_path / "four-units.csv").rows > 100
    assert f"{tmp_path / 'four-units'}.csv" in outcome.err
    figures = {"four-units.png", "four-units-objective.png"}
    assert {path.name for path in tmp_path.iterdir()} == {
        "four-units.csv",
        "four-units.csv.json",
        *figures,
    }
    for figure in figures:
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")
        assert f"figure written to {tmp_path / figure}" in outcome.err
