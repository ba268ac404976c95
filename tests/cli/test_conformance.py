"""``fmimaster conformance``: progress, summary, exit status; two runs compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from fmimaster import reference_path

Run = Callable[..., Outcome]


@pytest.fixture
def fmus(tmp_path: Path) -> Path:
    """A folder with an FMU that passes and one that cannot be read."""
    folder = tmp_path / "fmus"
    folder.mkdir()
    shutil.copy(reference_path("fmi3/LinearSystem.fmu"), folder)
    (folder / "torn.fmu").write_bytes(b"PK")
    return folder


def deviating(folder: Path) -> None:
    """Put a reference beside the FMU that it does not meet."""
    rows = "".join(f"{0.1 * k:.1f},{1000 * k}\n" for k in range(11))
    (folder / "LinearSystem_ref.csv").write_text(f'"time","y1"\n{rows}', encoding="utf-8")


def test_the_summary_names_what_has_not_passed(run: Run, fmus: Path, tmp_path: Path) -> None:
    outcome = run("conformance", fmus, "--output-folder", tmp_path / "out", "--workers", "1")
    assert outcome.status == 0, outcome.err
    assert "rejected: torn: " in outcome.err
    assert "\nRejected\n  torn: " in outcome.out
    assert (
        "2 verdicts: 1 passed (0 of them compared with a reference), 0 failed, 1 rejected; causes: 1 refused"
        in outcome.out
    )
    assert f"report: {tmp_path / 'out/report.html'}" in outcome.out
    again = run("conformance", fmus, "--output-folder", tmp_path / "out", columns=80)
    assert "kept from an earlier run: 2 verdicts" in again.err
    lines = [line for line in again.out.splitlines() if not line.startswith("report: ")]
    assert all(len(line) <= 80 for line in lines)


def test_an_fmu_that_fails_is_the_exit_status_and_can_be_run_again(
    run: Run, fmus: Path, tmp_path: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    assert run("conformance", fmus, "--output-folder", old, "--json").status == 0
    deviating(fmus)
    failed = run("conformance", fmus, "--output-folder", new, "--only", "Lin*", "--json")
    assert failed.status == 1
    [verdict] = json.loads(failed.out)
    assert (verdict["outcome"], verdict["cause"]) == ("failed", "deviation")
    assert "curves" not in verdict
    compared = run("conformance", "--compare", old, new)
    assert compared.status == 1
    assert "LinearSystem" in compared.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "b"], "Expected one folder with FMUs, not 2: a and b."),
        (["--compare", "a"], "--compare needs the output folders of two runs, OLD and NEW"),
        (["nowhere"], "'nowhere' does not exist. Expected a folder with FMUs."),
        (["--compare", "a", "b"], "'a' does not exist. Expected the output folder"),
    ],
)
def test_arguments_without_meaning_are_errors(run: Run, arguments: list[str], message: str) -> None:
    outcome = run("conformance", *arguments)
    assert outcome.status == 2
    assert message in outcome.err


@pytest.mark.parametrize("option", [("--workers", "0"), ("--deadline", "0")])
def test_no_worker_and_no_time_are_errors(
    run: Run, fmus: Path, tmp_path: Path, option: tuple[str, str]
) -> None:
    outcome = run("conformance", fmus, "--output-folder", tmp_path / "out", *option)
    assert outcome.status == 2
    assert "expected" in outcome.err
    assert not (tmp_path / "out").exists()
