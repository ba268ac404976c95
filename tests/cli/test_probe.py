"""``fmimaster probe``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from command_line import Outcome, reference

from fmimaster.cards import FmuCard

Run = Callable[..., Outcome]

BALL = "fmi3/BouncingBall.fmu"


def test_the_page_says_what_was_measured(run: Run) -> None:
    page = run("probe", reference(BALL))
    assert page.status == 0
    assert page.out.startswith("Card of BouncingBall.fmu\n")
    assert "none between what is declared and what was seen" in page.out


def test_json_and_file_are_the_same_card(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ball.json"
    answer = json.loads(run("probe", reference(BALL), "--json", "--output-file", file).out)
    assert answer["differences"] == []
    assert FmuCard.from_json(answer, "the output") == FmuCard.read(file)


def test_a_run_uses_the_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ball.json"
    run("probe", reference(BALL), "--output-file", file)
    assert run("simulate", reference(BALL), "--card", file, "--card", "cached").status == 0
    refused = run("simulate", reference("fmi2/Dahlquist.fmu"), "--card", file)
    assert refused.status == 2
    assert "belongs to 'BouncingBall.fmu'" in refused.err


def test_a_deadline_of_zero_is_refused(run: Run) -> None:
    refused = run("probe", reference(BALL), "--deadline", "0")
    assert refused.status == 2
    assert "deadline: 0.0, expected a number of seconds greater than 0" in refused.err
