"""``fmimaster simulate --reference-file``: deviations, exit status, figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, reference

Run = Callable[..., Outcome]
STEP = ("--stop-time", "1", "--step-size", "0.1", "--output-variable", "x")


@pytest.fixture
def dahlquist() -> Path:
    return reference("fmi3/Dahlquist.fmu")


@pytest.fixture
def coarse(run: Run, dahlquist: Path, tmp_path: Path) -> Path:
    """Results of Dahlquist.fmu with k = 1, of an input that is held: those of the file are exact."""
    run("simulate", dahlquist, *STEP, "--output-file", tmp_path / "coarse.csv")
    return tmp_path / "coarse.csv"


def test_results_within_the_tolerance_have_status_0(
    run: Run, dahlquist: Path, coarse: Path
) -> None:
    outcome = run("simulate", dahlquist, *STEP, "--reference-file", coarse)
    assert outcome.status == 0
    head, row, last = outcome.out.splitlines()
    assert head.split("  ")[0] == "variable"
    assert row.split() == ["x", "0", "0", "%", "0", "0", "s"]
    assert last.endswith("1 variable within the tolerance of 1 %")


def test_results_beyond_the_tolerance_have_status_1(
    run: Run, dahlquist: Path, coarse: Path
) -> None:
    other = ("--start-value", "k=1.1")
    outcome = run("simulate", dahlquist, *STEP, *other, "--reference-file", coarse)
    assert outcome.status == 1
    assert outcome.out.splitlines()[1].endswith("beyond")
    wide = ("--reference-tolerance", "0.1")
    assert run("simulate", dahlquist, *STEP, *other, "--reference-file", coarse, *wide).status == 0


def test_the_reference_is_drawn_below_the_results(
    run: Run, dahlquist: Path, coarse: Path, tmp_path: Path
) -> None:
    figure = tmp_path / "figure.svg"
    run("simulate", dahlquist, *STEP, "--reference-file", coarse, "--plot", figure)
    assert "<!-- reference -->" in figure.read_text(encoding="utf-8")


def test_the_table_is_not_mixed_with_rows_on_the_standard_output(
    run: Run, dahlquist: Path, coarse: Path
) -> None:
    outcome = run("simulate", dahlquist, *STEP, "--reference-file", coarse, "--output-file", "-")
    assert len(outcome.out.splitlines()) == 12
    assert "within the tolerance" in outcome.err


def test_the_figure_is_shown_at_the_end(
    run: Run, dahlquist: Path, coarse: Path, windows: Path
) -> None:
    outcome = run("simulate", dahlquist, *STEP, "--reference-file", coarse, "--show-plot")
    assert outcome.status == 0
    assert [p.name for p in windows.iterdir()] == ["1.png"]


def test_a_reference_that_is_not_there_is_refused_before_the_run(
    run: Run, dahlquist: Path, tmp_path: Path
) -> None:
    outcome = run("simulate", dahlquist, *STEP, "--reference-file", tmp_path / "nowhere.csv")
    assert "nowhere.csv' does not exist" in outcome.error
    assert "steps" not in outcome.err


def test_the_reference_is_not_overwritten(run: Run, dahlquist: Path, coarse: Path) -> None:
    files = ("--reference-file", coarse, "--output-file", coarse)
    assert "would" in run("simulate", dahlquist, *STEP, *files).error


def test_a_tolerance_without_a_reference_is_refused(run: Run) -> None:
    outcome = run("simulate", reference("fmi3/Dahlquist.fmu"), "--reference-tolerance", "0.1")
    assert "--reference-tolerance needs --reference-file" in outcome.error
