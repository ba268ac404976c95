"""Recorded verdicts of public FMUs, and what differs from them in a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from misbehaving_fmu import Act, misbehaving

from fmimaster.base.errors import FileError
from fmimaster.commands.cli import main
from fmimaster.conformance.recorded import (
    Departure,
    Departures,
    departures,
    read_recorded,
    write_recorded,
)
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictCause, VerdictOutcome

PUBLIC = Path(__file__).parents[2] / "conformance" / "public-fmus.csv"


def passed(name: str, seconds: float = 0.1) -> Verdict:
    return Verdict(
        name=name,
        fmu=f"{name}.fmu",
        outcome=VerdictOutcome.PASSED,
        interface="CoSimulation",
        sha256=f"hash of {name}",
        exporter="Tool, new",
        seconds=seconds,
    )


def crashed(name: str, reason: str = "It was ended by SIGSEGV.") -> Verdict:
    outcome, cause = VerdictOutcome.FAILED, VerdictCause.CRASH
    return replace(passed(name), outcome=outcome, cause=cause, reason=reason)


def run(*verdicts: Verdict) -> ConformanceRun:
    return ConformanceRun(
        folder="/fmus",
        started="2026-11-23T15:00:00+00:00",
        version="1",
        platform="x86_64-linux",
        settings={},
        verdicts=verdicts,
    )


def differing(folder: Path, before: ConformanceRun, now: ConformanceRun) -> Departures:
    write_recorded(before, folder / "verdicts.csv")
    return departures(read_recorded(folder / "verdicts.csv"), now)


@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        (passed("a"), passed("a", 1.0), []),  # short times are noise
        (crashed("a"), crashed("a", "In other words, with a comma."), []),
        (passed("a"), replace(passed("a"), name="elsewhere/a"), []),
        (passed("a"), crashed("a"), [Departure.OTHER]),
        (crashed("a"), passed("a"), [Departure.OTHER]),
        (crashed("a"), replace(crashed("a"), cause=VerdictCause.DEADLINE), [Departure.OTHER]),
        (passed("a", 1.0), passed("a", 6.0), [Departure.SLOWER]),
        (passed("a", 6.0), passed("a", 1.0), []),
        (passed("a"), passed("b"), [Departure.NEW, Departure.MISSING]),
    ],
)
def test_each_kind_of_difference_is_told(
    tmp_path: Path, before: Verdict, now: Verdict, kinds: list[Departure]
) -> None:
    found = differing(tmp_path, run(before), run(now))
    assert [kind for kind, _, _ in found.found] == kinds
    assert found.as_recorded == (not kinds)
    assert bool(found) is bool(kinds)


def test_a_difference_names_both_verdicts_and_another_file(tmp_path: Path) -> None:
    now = replace(crashed("a"), sha256="another")
    text = str(differing(tmp_path, run(passed("a"), passed("b")), run(now, passed("b"))))
    assert "Another verdict: 1 FMU\n" in text
    assert "a: the FMU is another file; passed → failed (crash): It was ended by SIGSEGV." in text
    assert text.endswith("As recorded: 1 FMU")


def test_nothing_is_missing_if_only_some_fmus_were_run(tmp_path: Path) -> None:
    write_recorded(run(passed("a"), passed("b")), tmp_path / "verdicts.csv")
    found = departures(read_recorded(tmp_path / "verdicts.csv"), run(passed("a")), is_whole=False)
    assert not found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no recorded verdicts"),
        ("name,verdict\n", "Expected a file that 'fmimaster conformance"),
        ("{head}a,,,,good,,0,\n", "'good' is not a valid VerdictOutcome"),
        ("{head}a,b\n", "a row that is no recorded verdict"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "verdicts.csv"
    write_recorded(run(), file)
    file.write_text(text.format(head=file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(FileError, match=message):
        read_recorded(file)


def test_the_command_records_and_then_tells_an_fmu_that_has_got_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fmus = tmp_path / "fmus"
    fmus.mkdir()
    misbehaving(fmus, "fmi2")
    command = ["conformance", "fmus", "--workers", "1", "--verdicts", "known.csv"]
    assert main([*command, "--record"]) == 0
    misbehaving(fmus, "fmi2", Act("DoStep", "return", 3))
    assert main(command) == 1
    assert "passed → failed (error)" in capsys.readouterr().out


def test_the_recorded_verdicts_of_public_fmus_can_be_read_and_name_no_place_of_a_machine() -> None:
    recorded = read_recorded(PUBLIC)
    assert len({(r.name, r.interface) for r in recorded}) == len(recorded)
    assert all(len(r.sha256) == 64 for r in recorded)
    assert all(r.reason for r in recorded if r.verdict is not VerdictOutcome.PASSED)
    assert not [r.name for r in recorded if "'/" in r.reason or r.name.startswith("/")]
