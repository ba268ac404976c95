"""``fmimaster demo quarter-car``: the tables of Sadjina et al. (2017), other schemes at the same cost, and figures."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Outcome, reference
from pytest import approx

from fmimaster.results.csv import read_csv
from fmimaster.studies.demos import quarter_car as runs
from fmimaster.studies.demos import quarter_car_schemes
from fmimaster.studies.demos.quarter_car_schemes import SCHEMES

TABLES = Path(__file__).parents[1] / "data" / "energy_tables.csv"
CONTROL = {runs.CONSTANT: "constant", runs.ECCO: "ecco", runs.PREDICTED: "pc"}
FIGURES = ("", "-figure-4", "-figure-7", "-figure-8", "-figure-10")
PRINTED = ("printed_dt_ms", "printed_P12_W", "printed_err_W", "printed_res_J")


def table_row(row: runs.PaperRow) -> dict[str, str]:
    """What the data has for a row of the demo."""
    kind, split = row.case.split()
    with TABLES.open(encoding="utf-8") as stream:
        [found] = [
            r
            for r in csv.DictReader(stream)
            if (r["algorithm"], r["case"], r["split"]) == (CONTROL[row.control], kind, split)
            and int(r["micro_S2"]) == row.wheel_steps
            and (float(r["tolerance"]) if r["tolerance"] else None) == row.tolerance
        ]
    return found


def test_all_rows_of_the_tables_are_there_as_they_are_printed() -> None:
    """energy.md 4."""
    assert len({(*row.printed, row.case, row.control) for row in runs.ROWS}) == 16
    for row in runs.ROWS:
        found = table_row(row)
        assert row.tables.replace(", ", "/") == found["table"]
        assert list(map(float, row.printed)) == [float(found[name]) for name in PRINTED]


@pytest.mark.parametrize("row", runs.ROWS[:2], ids=lambda row: row.control)
def test_a_row_is_measured(row: runs.PaperRow) -> None:
    """energy.md 9.1: Table 3. The others: tests/accuracy."""
    reference("fmi2/QuarterCarWheelA.fmu")
    found, measures = table_row(row), row.run("fmi2").measures
    assert measures.steps == approx(int(found["steps"]), rel=5e-3)
    assert measures.power_error == approx(float(found["err_W"]), rel=1e-2)
    assert measures.residual_energy == approx(float(found["res_J"]), rel=1e-2)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few schemes, and 50 ms of each simulation: the whole demo takes about a minute."""
    reference("fmi3/QuarterCarWheelA.fmu")
    monkeypatch.setattr(runs, "ROWS", runs.ROWS[:6])
    some = ("held, constant step", "linear, two runs")
    monkeypatch.setattr(quarter_car_schemes, "SCHEMES", [s for s in SCHEMES if s.name in some])
    monkeypatch.setattr(quarter_car_schemes, "STEPS_OF_DIAGRAM", (runs.COMMON,))
    monkeypatch.setattr(runs, "STEPS_OF_FIGURE_4", runs.STEPS_OF_FIGURE_4[-2:])
    for name, case in runs.CASES.items():
        monkeypatch.setitem(runs.CASES, name, replace(case, car=replace(case.car, stop=0.05)))


@pytest.mark.usefixtures("short")
def test_the_demo_prints_tables_and_draws_figures(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    outcome = run("demo", "quarter-car", "--output-directory", tmp_path, columns=100)
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 100
    header = next(k for k, line in enumerate(lines) if line.startswith("table "))
    for row, line in zip(runs.ROWS, lines[header + 2 :], strict=False):
        cells = line.split("  ")
        assert line.startswith(row.tables)
        assert {row.case, row.control} <= {cell.strip() for cell in cells}
        assert all(printed in line.split() for printed in row.printed)
    shown = quarter_car_schemes.SCHEMES
    headers = [k for k, line in enumerate(lines) if line.startswith("scheme  ")]
    for k, schemes in zip(headers, (shown, [s for s in shown if s.is_drawn]), strict=True):
        names = [line.split("  ")[0] for line in lines[k + 2 : k + 2 + len(schemes)]]
        assert names == [scheme.name for scheme in schemes]
    assert read_csv(tmp_path / "quarter-car.csv").rows > 20
    for figure in FIGURES:
        path = tmp_path / f"quarter-car{figure}.png"
        assert path.read_bytes().startswith(b"\x89PNG")
        assert f"figure written to {path}" in outcome.err
