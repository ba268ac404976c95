"""``fmimaster resume``: the command that continues a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from command_line import Outcome

from fmimaster import reference_path

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
