"""``fmimaster resume``: the command that continues a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from fmimaster import FileError, Results, Simulation, SystemBuilder, reference_path, resume

BALL = str(reference_path("fmi3/BouncingBall.fmu"))


def test_the_command_continues_a_run_of_simulate(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    rows, file = tmp_path / "rows.csv", tmp_path / "ball.checkpoint"
    given = ("--stop-time", "2", "--step-size", "0.1", "--checkpoint", str(file))
    assert run("simulate", BALL, *given, "--output-file", str(rows)).status == 0
    whole = rows.read_bytes()
    rows.unlink()
    found = run("resume", str(file))
    assert (found.status, found.out) == (0, "")
    assert f"21 rows written to {rows}" in found.err
    assert rows.read_bytes() == whole


def test_the_same_command_replaces_its_checkpoint(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = tmp_path / "ball.checkpoint"
    given = ("--stop-time", "0.2", "--step-size", "0.1", "--checkpoint", str(file))
    assert run("simulate", BALL, *given).status == 0
    first = file.read_bytes()
    assert run("simulate", BALL, *given).status == 0
    assert file.read_bytes() != first


def test_it_prints_the_ranges_or_json_without_a_file(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = tmp_path / "ball.checkpoint"
    given = ("--stop-time", "2", "--step-size", "0.1", "--checkpoint", str(file))
    expected = run("simulate", BALL, *given).out
    assert run("resume", str(file)).out == expected
    facts = json.loads(run("resume", str(file), "--json").out)
    assert facts["statistics"]["steps"] == 20


def test_its_errors_are_clear(run: Callable[..., Outcome], tmp_path: Path) -> None:
    found = run("resume", str(tmp_path / "none.checkpoint"))
    assert found.status == 2
    assert "There is no checkpoint" in found.err
    found = run("simulate", BALL, "--stop-time", "1", "--checkpoint-interval", "1")
    assert found.status == 2
    assert "--checkpoint-interval needs --checkpoint" in found.err
    found = run("simulate", BALL, "--checkpoint", str(tmp_path / "x"), "--checkpoint-interval", "0")
    assert found.status == 2
    assert "expected a positive number in s" in found.err


# A checkpoint of another person ---------------------------------------------------------------------------------------

MINE = "export PATH\n"


def of_a_stranger(folder: Path, mine: Path, rows: str = "rows.csv") -> Path:
    """A checkpoint in a folder, whose settings name files of the user that the run writes."""
    theirs = SystemBuilder()
    theirs.add("x\nrm -r *\n", BALL)
    simulation = Simulation(
        theirs,
        stop_time=1,
        step_size="0.1",
        checkpoint=folder / "a.checkpoint",
        fmi_log_file=mine / ".profile",
        final_fmu_state=mine / "notes.txt",
    )
    with simulation.start(output_file=mine / rows) as run:
        run.advance_to(0.5)
    for name in (".profile", "notes.txt", rows):
        (mine / name).write_text(MINE, encoding="utf-8")
    return folder / "a.checkpoint"


def test_a_foreign_checkpoint_changes_no_file_of_the_user(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    there, mine = tmp_path / "there", tmp_path / "mine"
    there.mkdir()
    mine.mkdir()
    found = run("resume", str(of_a_stranger(there, mine)))
    assert found.status == 0, found.err
    assert {
        file.read_text(encoding="utf-8") for file in mine.iterdir() if file.suffix != ".json"
    } == {MINE}
    assert Results.read(there / "rows.csv").time[-1] == 1.0
    assert (there / "a.checkpoint.states").stat().st_size
    calls = (there / "a.checkpoint.calls.log").read_text(encoding="utf-8").splitlines()
    assert not [line for line in calls if line.startswith("rm")]


@pytest.mark.parametrize(
    ("content", "refused"), [(MINE, True), ('"time","h"\n0,7\n', True), ("", False)]
)
def test_a_file_beside_the_checkpoint_is_replaced_only_if_it_has_rows_of_the_run(
    content: str, refused: bool, run: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = of_a_stranger(tmp_path, tmp_path)
    (tmp_path / "rows.csv").write_text(content, encoding="utf-8")
    found = run("resume", str(file))
    assert (found.status == 2) is refused, found.err
    assert ("does not begin with the rows of this run" in found.err) is refused
    assert ((tmp_path / "rows.csv").read_text(encoding="utf-8") == content) is refused


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a privilege of Windows")
@pytest.mark.parametrize(
    "name",
    [
        *("rows.csv", "rows.csv.json", "rows.intermediate.x.csv"),
        *("a.checkpoint.states", "a.checkpoint.calls.log"),
    ],
)
def test_a_link_beside_the_checkpoint_is_not_followed(
    name: str, run: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = of_a_stranger(tmp_path, tmp_path)
    (tmp_path / "rows.csv").unlink()
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "new")
    found = run("resume", str(file))
    assert (found.status, (tmp_path / "new").exists()) == (2, False)
    assert "it is a link" in found.err


@pytest.mark.parametrize("suffix", ["parquet", "h5", "mat"])
def test_results_in_a_binary_file_are_of_the_run_too(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip({"parquet": "pyarrow", "h5": "h5py", "mat": "scipy"}[suffix])
    rows = tmp_path / f"rows.{suffix}"
    simulation = Simulation(BALL, stop_time=1, step_size="0.1", checkpoint=tmp_path / "a")
    with simulation.start(output_file=rows) as ended:
        ended.advance_to(0.5)
    resume(tmp_path / "a")
    assert Results.read(rows).time[-1] == 1.0
    Simulation(BALL, start_time=0.5, stop_time=1, step_size="0.1").run().write(rows)
    with pytest.raises(FileError, match="does not begin with the rows"):
        resume(tmp_path / "a")


def test_the_user_says_where_the_files_of_a_resumed_run_go(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    file, rows = of_a_stranger(tmp_path, tmp_path), tmp_path / "rows.csv"
    rows.unlink()
    calls, states = tmp_path / "calls", tmp_path / "states"
    places = ("--fmi-log-file", str(calls), "--final-fmu-state-file", str(states))
    assert run("resume", str(file), "--output-file", str(rows), *places).status == 0
    assert all(place.stat().st_size for place in (rows, calls, states))
