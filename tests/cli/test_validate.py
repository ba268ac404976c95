"""``fmimaster validate``: findings on the terminal and as JSON; the exit status is 1 for errors only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, changed, reference, system

Run = Callable[..., Outcome]


@pytest.fixture
def upper() -> Path:
    return reference("fmi2/TwoMassUpper.fmu")


def test_without_findings_the_status_is_0(run: Run) -> None:
    outcome = run("validate", reference("systems/two-mass-b1-fmi3.ssp"))
    assert (outcome.status, outcome.out) == (0, "0 errors, 0 warnings, 0 notes\n")


def test_warnings_do_not_change_the_status(run: Run, upper: Path, tmp_path: Path) -> None:
    path = changed(
        upper, tmp_path / "a.fmu", description=lambda t: t.replace('start="-8.8"', "", 1)
    )
    outcome = run("validate", path)
    assert outcome.status == 0
    assert outcome.out.startswith("warning: a.fmu/modelDescription.xml: ")
    assert "\n0 errors, 1 warning, " in outcome.out


def test_an_fmu_that_cannot_run_on_this_machine_is_an_error(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    path = changed(
        upper, tmp_path / "a.fmu", name=lambda n: re.sub("^binaries/[^/]*", "binaries/win32", n)
    )
    outcome = run("validate", path)
    assert outcome.status == 1
    assert "has no binary for this platform" in " ".join(outcome.out.split())


def test_errors_do(run: Run, upper: Path, tmp_path: Path) -> None:
    outcome = run("validate", system(tmp_path, {"a": upper}, ["a.x -> a.y"]))
    assert outcome.status == 1
    assert (
        f"error: {tmp_path / 'system.ssd'}: Connection 'a.x -> a.y': component 'a' has no"
        in outcome.out
    )
    assert outcome.out.endswith("\n1 error, 0 warnings, 0 notes\n")


def test_a_missing_file_is_a_finding_too(run: Run, tmp_path: Path) -> None:
    outcome = run("validate", tmp_path / "a.fmu")
    assert outcome.status == 1
    assert "does not exist" in outcome.out


def test_the_json_is_stable(run: Run, upper: Path, tmp_path: Path) -> None:
    path = system(tmp_path, {"a": upper}, ["a.x -> a.y"])
    outcome = run("validate", path, "--json")
    assert outcome.status == 1
    [finding] = json.loads(outcome.out)
    assert list(finding) == ["place", "severity", "what", "advice"]
    assert finding["place"] == str(path)
    assert finding["severity"] == "error"
    assert finding["what"].startswith("Connection 'a.x -> a.y'")


def test_findings_of_one_kind_are_cut_with_a_count(run: Run, upper: Path, tmp_path: Path) -> None:
    def without_starts(text: str) -> str:
        return re.sub(r'<Real start="[^"]*"', "<Real", text)

    path = changed(upper, tmp_path / "a.fmu", description=without_starts)
    lines = run("validate", path).out.splitlines()
    starts = [line for line in lines if "has no start value" in line]
    assert len(starts) == 5
    after = lines[lines.index(starts[-1]) + 1]
    told = re.fullmatch(
        r"warning: a\.fmu/modelDescription\.xml: \.\.\. and (\d+) more of this kind \(all with --all\)",
        after,
    )
    assert told
    whole = run("validate", path, "--all").out
    assert whole.count("has no start value") == 5 + int(told[1])
    assert f"{5 + int(told[1])} warnings" in lines[-1]
    assert len(json.loads(run("validate", path, "--json").out)) > 5 + int(told[1])


def test_a_file_is_named_once_in_a_finding_and_lines_fit_the_terminal(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    path = system(tmp_path, {"a": upper})
    path.write_text(
        path.read_text(encoding="utf-8").replace("<ssd:Elements", "<ssd:Elments"), encoding="utf-8"
    )
    outcome = run("validate", path, columns=80)
    assert outcome.status == 1
    assert outcome.out.count(str(path)) == 1
    # a path is not broken
    assert [
        line for line in outcome.out.splitlines() if len(line) > 80 and str(path) not in line
    ] == []
