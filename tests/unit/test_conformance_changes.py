"""What changed between two conformance runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fmimaster.base.errors import FileError
from fmimaster.commands.conformance import WORSE, compare
from fmimaster.conformance.changes import VerdictChange, VerdictChanges, changes
from fmimaster.conformance.curve import curves
from fmimaster.conformance.measures import measure
from fmimaster.conformance.verdict import (
    VERDICTS_FILE,
    ConformanceRun,
    Verdict,
    VerdictCause,
    VerdictOutcome,
    line_of,
)
from fmimaster.results.results import Results

TIME = np.linspace(0.0, 1.0, 101)


def verdict(name: str, factor: float = 1.0) -> Verdict:
    reference = Results(time=TIME, columns={"x": TIME})
    results = Results(time=TIME, columns={"x": factor * TIME})
    found = measure(results, reference, 0.0, 1.0)
    return Verdict(
        name=name,
        fmu=f"{name}.fmu",
        model=name,
        outcome=VerdictOutcome.PASSED if found.passed else VerdictOutcome.FAILED,
        cause=VerdictCause.NONE if found.passed else VerdictCause.DEVIATION,
        reason=found.problem,
        sha256="1",
        measures=found.measures,
        curves=curves(results, reference),
    )


def lost(name: str, cause: VerdictCause = VerdictCause.CRASH) -> Verdict:
    return Verdict(
        name=name,
        fmu=name,
        model=name,
        outcome=VerdictOutcome.FAILED,
        cause=cause,
        sha256="1",
        reason="!",
    )


def run(*verdicts: Verdict) -> ConformanceRun:
    return ConformanceRun(
        folder="/fmus",
        started="2026-11-22T21:00:00+00:00",
        version="1",
        platform="x86_64-linux",
        settings={},
        verdicts=verdicts,
    )


def effects(before: Verdict, now: Verdict) -> list[VerdictChange]:
    return [change.effect for change in changes(run(before), run(now)).changes]


@pytest.mark.parametrize(
    ("before", "now", "effect"),
    [
        (verdict("a"), lost("a"), [VerdictChange.WORSE]),
        (verdict("a", 2.0), verdict("a"), [VerdictChange.BETTER]),
        (lost("a"), lost("a", VerdictCause.DEADLINE), [VerdictChange.REASON]),
        (lost("a"), replace(lost("a"), reason="in other words"), []),
        (verdict("a"), verdict("a", 1.001), [VerdictChange.RESULTS]),
        (verdict("a"), verdict("a", 1.0 + 1e-7), []),  # a rounding error
        (verdict("a"), verdict("a"), []),
        (verdict("a"), verdict("b"), [VerdictChange.ADDED, VerdictChange.REMOVED]),
    ],
)
def test_each_effect(before: Verdict, now: Verdict, effect: list[VerdictChange]) -> None:
    assert effects(before, now) == effect


def example() -> VerdictChanges:
    return changes(
        run(verdict("broken"), verdict("same"), verdict("drifts"), verdict("gone")),
        run(
            lost("broken"),
            verdict("same"),
            replace(verdict("drifts", 1.1), sha256="2"),
            lost("new"),
        ),
    )


def test_the_page_lists_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert str(example()).splitlines()[4:] == [
        "verdict   before  now",
        "passed    4       2",
        "failed    0       2",
        "rejected  0       0",
        "",
        "Worse: 1 FMU",
        "  broken  passed → failed  !",
        "",
        "Other results: 1 FMU",
        "  drifts  passed  The FMU is another file. RMS of 'x' 0 % → 5.77 % of the range",
        "",
        "Only now: 1 FMU",
        "  new  failed  !",
        "",
        "Only before: 1 FMU",
        "  gone  passed",
        "",
        "No change: 1 FMU",
    ]


def kept(folder: Path, given: ConformanceRun) -> str:
    folder.mkdir()
    lines = [given.head(), *map(line_of, given.verdicts)]
    (folder / VERDICTS_FILE).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(folder)


def test_the_command_tells_by_its_status_that_something_is_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = example()
    before, now = kept(tmp_path / "old", found.before), kept(tmp_path / "new", found.now)
    assert compare(before, now, None, as_json=True) == WORSE
    facts = json.loads(capsys.readouterr().out)
    assert [(c["name"], c["effect"]) for c in facts["changes"]] == [
        ("broken", "worse"),
        ("drifts", "other results"),
        ("new", "only now"),
        ("gone", "only before"),
    ]
    assert compare(now, now, None, as_json=False) == 0
    assert "No change: 4 FMUs" in capsys.readouterr().out


def test_the_html_page_shows_both_runs_in_one_figure(tmp_path: Path) -> None:
    found = example()
    before, now = kept(tmp_path / "old", found.before), kept(tmp_path / "new", found.now)
    page = tmp_path / "changes.html"
    compare(before, now, str(page), as_json=True)
    text = page.read_text("utf-8")
    details = [
        json.loads(part)
        for part in re.findall(r'<script type="application/json">(.*)</script>', text)
    ]
    (drifts,) = [d for d in details if d["tables"]]
    assert [s["kind"] for s in drifts["plots"][0]["series"]] == ["reference", "old", "run"]


def test_a_folder_without_verdicts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Expected the output folder"):
        compare(str(tmp_path), str(tmp_path), None, as_json=False)
