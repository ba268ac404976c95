"""``fmimaster plot`` and ``fmimaster demo``: files where they were asked for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome, reference

from fmimaster.results.csv import read_csv
from fmimaster.results.results import Results
from fmimaster.studies.demos.catalogue import DEMOS
from fmimaster.studies.demos.methods import METHODS

Run = Callable[..., Outcome]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    results = Results(time=[0.0, 1.0], columns={"a.x": [0.0, 1.0], "a.v": [1.0, 1.0]})
    results.write(tmp_path / "result.csv")
    return tmp_path / "result.csv"


@pytest.mark.skipif(sys.platform != "win32", reason="other shells expand patterns themselves")
def test_a_pattern_of_files_is_expanded(run: Run, table: Path, tmp_path: Path) -> None:
    table.rename(tmp_path / "a.csv")
    shutil.copy(tmp_path / "a.csv", tmp_path / "b.csv")
    outcome = run("plot", tmp_path / "*.csv", "--output-file", tmp_path / "all.svg")
    assert outcome.status == 0, outcome.err
    figure = (tmp_path / "all.svg").read_text(encoding="utf-8")
    assert "<!-- a -->" in figure
    assert "<!-- b -->" in figure


def test_the_figure_stands_beside_the_table(run: Run, table: Path) -> None:
    outcome = run("plot", table)
    figure = table.with_suffix(".png")
    assert outcome.out == f"figure written to {figure}\n"
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_or_where_it_is_wanted(run: Run, table: Path, tmp_path: Path) -> None:
    run(
        "plot",
        table,
        "--output-file",
        tmp_path / "b.svg",
        "--title",
        "A title",
        "--communication-points",
    )
    text = (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "<!-- A title -->" in text
    assert "<!-- communication points -->" in text


def test_variables_are_chosen_by_globs(run: Run, table: Path, tmp_path: Path) -> None:
    run("plot", table, "--variable", "*.x", "--output-file", tmp_path / "b.svg")
    text = (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "<!-- a.x -->" in text
    assert "<!-- a.v -->" not in text


def test_several_tables_are_told_apart_by_their_names(
    run: Run, table: Path, tmp_path: Path
) -> None:
    other = table.with_name("other.csv")
    other.write_bytes(table.read_bytes())
    run("plot", table, other, "--output-file", tmp_path / "b.svg")
    text = (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "<!-- result -->" in text
    assert "<!-- other -->" in text


def test_a_variable_that_is_not_there_is_suggested(run: Run, table: Path) -> None:
    assert "Did you mean 'a.x'?" in run("plot", table, "--variable", "a.X").error


def test_a_table_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    assert "does not exist" in run("plot", tmp_path / "a.csv").error


def test_a_system_is_no_table(run: Run, tmp_path: Path) -> None:
    system = tmp_path / "two-mass.ssp"
    system.write_bytes(b"PK\x03\x04\xff")
    message = run("plot", system).error
    assert "is a system or an FMU, not results" in message
    assert f"fmimaster simulate '{system}' --output-file results.csv" in message
    system.unlink()
    assert "does not exist" in run("plot", system).error


def test_what_is_no_text_is_no_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"time\n\xff")
    assert "is not a CSV file: it is not text in UTF-8." in run("plot", tmp_path / "a.bin").error


def test_a_figure_is_shown_in_a_window_instead_of_written(
    run: Run, table: Path, windows: Path
) -> None:
    assert run("plot", table, "--show-plot").out == ""
    assert [p.name for p in windows.iterdir()] == ["1.png"]
    assert not table.with_suffix(".png").exists()


def test_a_figure_is_shown_and_written(run: Run, table: Path, windows: Path) -> None:
    figure = table.with_name("shown.pdf")
    run("plot", table, "--show-plot", "--output-file", figure)
    assert figure.exists()
    assert [p.name for p in windows.iterdir()] == ["1.png"]


def test_without_a_screen_there_is_no_window(run: Run, table: Path, pyplot: Any) -> None:
    pyplot.switch_backend("agg")
    message = run("plot", table, "--show-plot").error
    assert message.startswith("There is no window for a figure: matplotlib uses its backend 'agg'")
    assert message.endswith("Write the figure to a file.\n")


# Demo -----------------------------------------------------------------------------------------------------------------


def test_demos_are_listed(run: Run) -> None:
    outcome = run("demo")
    assert outcome.status == 0
    assert [line.split()[0] for line in outcome.out.splitlines()] == [d.name for d in DEMOS]


def test_an_unknown_demo_is_suggested(run: Run) -> None:
    message = run("demo", "tow-mass").error
    assert "There is no demo 'tow-mass'. Did you mean 'two-mass'?" in message


OTHERS = ("two-mass", "four-units", "quarter-car", "hybrid", "faults", "files")


@pytest.mark.parametrize("name", [d.name for d in DEMOS if d.name not in OTHERS])
def test_a_demo_writes_a_table_and_a_figure(run: Run, tmp_path: Path, name: str) -> None:
    """Not those that have tests of their own, and not `files`, which runs nothing."""
    reference("systems/two-mass-b3-mixed.ssp")
    folder = tmp_path / "new" / "folder"
    outcome = run("demo", name, "--output-directory", folder)
    assert outcome.status == 0, outcome.err
    assert read_csv(folder / f"{name}.csv").rows > 30
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"{folder / name}.csv" in outcome.err
    assert f"figure written to {folder / name}.png" in outcome.err


@pytest.mark.parametrize("version", [pytest.param("fmi2", marks=pytest.mark.thorough), "fmi3"])
def test_the_two_masses_compare_methods_with_the_papers(
    run: Run, tmp_path: Path, version: str
) -> None:
    reference("systems/two-mass-b3-mixed.ssp")
    files = ("--output-directory", tmp_path)
    outcome = run("demo", "two-mass", "--fmus", version, *files, columns=100)
    late = "events checked (I-V)', H = 0.3 s: the event 'collision' was found late"
    assert late in outcome.err
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 100
    errors, costs = (k for k, line in enumerate(lines) if line.startswith("method"))
    assert lines[errors].split()[-2:] == ["paper:", "earlier:"]
    names = [f"{m.words} ({m.short})" for m in METHODS]
    for table in (errors, costs):
        rows = lines[table + 2 : table + 2 + len(METHODS)]
        assert [row.partition("  ")[0] for row in rows] == names
    assert {p.name for p in tmp_path.iterdir()} == {
        "two-mass.csv",
        "two-mass.csv.json",
        "two-mass.png",
        "two-mass-trajectories.png",
        "two-mass-error.png",
        "two-mass-steps.png",
    }
    assert read_csv(tmp_path / "two-mass.csv").rows > 30
    assert f"{tmp_path / 'two-mass'}.csv" in outcome.err
    for figure in tmp_path.glob("*.png"):
        assert figure.read_bytes().startswith(b"\x89PNG")
        assert f"figure written to {figure}" in outcome.err


def test_a_version_that_a_demo_does_not_have_is_told(run: Run) -> None:
    assert "Did you mean 'fmi3'" in run("demo", "two-mass", "--fmus", "fmi33").error
    assert "only one version" in run("demo", "dahlquist", "--fmus", "fmi2").error


def test_a_folder_that_cannot_be_made_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert (
        "cannot be created"
        in run("demo", "dahlquist", "--output-directory", tmp_path / "file").error
    )
