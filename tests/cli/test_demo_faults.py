"""``fmimaster demo faults``: a crash survived by a restart, a hang ended by a deadline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from command_line import Outcome, reference
from processes import CRASHED

from fmimaster.results.csv import read_csv


def test_the_demo_shows_what_each_policy_does(run: Callable[..., Outcome], tmp_path: Path) -> None:
    reference("fmi3/Faulty.fmu")
    outcome = run("demo", "faults", "--output-directory", tmp_path, columns=100)
    assert outcome.status == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 100
    rows = outcome.out.strip().splitlines()[-4:]
    assert [row.split()[-4:] for row in rows] == [
        ["5", "s", "51", "51"],
        ["5", "s", "51", "51"],
        ["3", "s", "31", "31"],
        ["5", "s", "51", "31"],
    ]
    log = outcome.err.splitlines()
    started = next(k for k, line in enumerate(log) if "It is started again (1 of 3)." in line)
    assert f"was ended by {CRASHED}, in fmi3DoStep at t = 3 s" in log[started]
    assert "all 80 values that were read again are equal" in log[started + 1]
    assert any("did not answer within 0.5 s" in line for line in log[started + 2 :])
    assert read_csv(tmp_path / "faults.csv")["pump.dropped"].tolist() == [0.0] * 31 + [1.0] * 20
