"""A conformance run over a folder of good and bad FMUs: a verdict for each, resumed, and in all forms."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import changed
from misbehaving_fmu import Act, misbehaving
from processes import CRASHED

from fmimaster import reference_path
from fmimaster.base.errors import FileError, Interrupted, OptionError
from fmimaster.base.installation import installed_version
from fmimaster.cards import FmuCard
from fmimaster.cards.card import keep_card
from fmimaster.conformance.cases import NOT_COMPLIANT
from fmimaster.conformance.measures import ConformanceLimits
from fmimaster.conformance.run import check_conformance
from fmimaster.conformance.verdict import (
    VERDICTS_FILE,
    ConformanceRun,
    Verdict,
    VerdictCause,
    VerdictOutcome,
)
from fmimaster.conformance.verdict_files import write_verdicts_csv
from fmimaster.conformance.workers import ConformanceProgress
from fmimaster.fmu.shared_library import FMI3
from fmimaster.results.results import Results
from fmimaster.system.archive import file_hash
from fmimaster.system.declarations import Interface

DEADLINE = 10.0
"""In s; the FMU that hangs takes as long. Others take 0.1 s, and more where the machine is loaded."""

TIMES = np.linspace(0.0, 2.0, 21)


@dataclass(frozen=True)
class Finished:
    """A run, what it was told, and where."""

    run: ConformanceRun
    folder: Path
    output: Path
    told: tuple[ConformanceProgress, ...]

    def __getitem__(self, name: str) -> Verdict:
        [found] = [v for v in self.run.verdicts if v.name.rpartition("/")[2] == name]
        return found


def decay(folder: Path, name: str, factor: float, column: str = "x", times: bool = True) -> Path:
    """Dahlquist (x' = -x) in the layout of the cross-check, with its exact solution times a factor."""
    place = folder / "fmus/2.0/cs/linux64/Tool/1.0" / name
    place.mkdir(parents=True)
    shutil.copy(reference_path("fmi2/Dahlquist.fmu"), place / f"{name}.fmu")
    reference = Results(time=TIMES, columns={column: factor * np.exp(-TIMES)})
    reference.write(place / f"{name}_ref.csv")
    if times:
        text = "StartTime,0\nStopTime,2\nStepSize,0.001\nRelTol,1e-6\n"
        (place / f"{name}_ref.opt").write_text(text, encoding="utf-8")
    return place


def good_and_bad(folder: Path) -> Path:
    decay(folder, "Exact", 1.0)
    decay(folder, "Deviating", 1.5)
    decay(folder, "Other", 1.0, column="velocity")
    (decay(folder, "Options", 1.0) / "Options_ref.opt").write_text(
        "StopTime,soon\n", encoding="utf-8"
    )
    (decay(folder, "Rules", 1.0) / NOT_COMPLIANT).touch()
    (decay(folder, "Signals", 1.0) / "Signals_in.csv").write_text(
        '"time","u"\nzero,1\n', encoding="utf-8"
    )
    plain = folder / "plain"
    plain.mkdir()
    shutil.copy(reference_path("fmi3/Feedthrough.fmu"), plain)
    shutil.copy(reference_path("fmi3/Faulty.fmu"), plain / "Crash.fmu")
    misbehaving(plain, "fmi3", Act("DoStep", "hang", since=0.5), name="Hang")
    misbehaving(plain, "fmi2", Act("DoStep", "return", 3, since=0.5), name="Error")
    misbehaving(plain, "fmi3", Act("DoStep", "print", "hello"), name="Talkative")
    misbehaving(plain, "fmi3", Act("Instantiate", "return", 3), name="Null")
    misbehaving(plain, "fmi3", Act("DoStep", "nan", since=0.5), name="NotANumber")
    misbehaving(plain, "fmi3", Act("DoStep", "terminate", since=0.5), name="Terminates")
    steps = "".join(f"{0.1 * k},{k}\n" for k in range(7))
    (plain / "Terminates_ref.csv").write_text(f'"time","n"\n{steps}', encoding="utf-8")
    (plain / "Terminates_ref.opt").write_text(
        "StartTime,0\nStopTime,1\nStepSize,0.1\n", encoding="utf-8"
    )
    (plain / "Torn.fmu").write_bytes(b"PK torn")
    changed(
        reference_path("fmi2/Dahlquist.fmu"),
        plain / "Elsewhere.fmu",
        name=lambda name: name.replace("binaries/", "binaries/not-"),
        description=lambda text: text.replace('startTime="0"', 'startTime="5"'),
    )
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = good_and_bad(tmp_path_factory.mktemp("fmus"))
    output = tmp_path_factory.mktemp("output")
    told: list[ConformanceProgress] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAULTY_FAULT", "9")  # writes to the address 0
        patch.setenv("FAULTY_CALL", "DoStep")
        run = check_conformance(
            folder,
            output_folder=output,
            workers=2,
            deadline=DEADLINE,
            interfaces=["CoSimulation"],
            progress=told.append,
        )
    return Finished(run, folder, output, tuple(told))


@pytest.mark.parametrize(
    ("name", "outcome", "cause", "reason"),
    [
        ("Exact", VerdictOutcome.PASSED, VerdictCause.NONE, ""),
        ("Feedthrough", VerdictOutcome.PASSED, VerdictCause.NONE, ""),
        ("Talkative", VerdictOutcome.PASSED, VerdictCause.NONE, ""),
        ("NotANumber", VerdictOutcome.PASSED, VerdictCause.NONE, ""),
        ("Terminates", VerdictOutcome.PASSED, VerdictCause.NONE, ""),
        ("Deviating", VerdictOutcome.FAILED, VerdictCause.DEVIATION, "'x'"),
        ("Crash", VerdictOutcome.FAILED, VerdictCause.CRASH, f"was ended by {CRASHED}"),
        ("Hang", VerdictOutcome.FAILED, VerdictCause.DEADLINE, "did not end within 10 s"),
        (
            "Error",
            VerdictOutcome.FAILED,
            VerdictCause.ERROR,
            "fmi2DoStep of 'Error' returned fmi2Error at t = 0.5",
        ),
        ("Null", VerdictOutcome.REJECTED, VerdictCause.LIBRARY, "The FMU cannot be instantiated"),
        ("Elsewhere", VerdictOutcome.REJECTED, VerdictCause.LIBRARY, "no binary for this platform"),
        ("Torn", VerdictOutcome.REJECTED, VerdictCause.REFUSED, "damaged or incomplete"),
        ("Other", VerdictOutcome.REJECTED, VerdictCause.REFERENCE, "velocity"),
        ("Options", VerdictOutcome.REJECTED, VerdictCause.REFERENCE, "'Options_ref.opt', line 1"),
        ("Signals", VerdictOutcome.REJECTED, VerdictCause.REFERENCE, "'Signals_in.csv'"),
        ("Rules", VerdictOutcome.REJECTED, VerdictCause.RULES, NOT_COMPLIANT),
    ],
)
def test_each_fmu_has_its_verdict(
    finished: Finished, name: str, outcome: VerdictOutcome, cause: VerdictCause, reason: str
) -> None:
    verdict = finished[name]
    assert (verdict.outcome, verdict.cause) == (outcome, cause), verdict.reason
    assert reason in verdict.reason
    assert bool(verdict.reason) is (outcome is not VerdictOutcome.PASSED)
    assert str(finished.folder) not in verdict.reason


def test_no_fmu_is_left_out(finished: Finished) -> None:
    assert len(finished.run.verdicts) == 16
    assert not finished.run.has_passed


def test_the_run_has_the_times_of_the_options(finished: Finished) -> None:
    exact = finished["Exact"]
    assert (exact.start_time, exact.stop_time, exact.step_size) == (0.0, 2.0, 0.001)
    assert exact.rows == 2001
    [measure] = exact.measures
    # the reference has a row each 0.1 s: a chord deviates by at most h^2 / 8 times the second derivative
    assert measure.deviation.largest < 0.1**2 / 8.0
    assert [curve.name for curve in exact.curves] == ["x"]


def test_results_and_log_of_a_crash_are_kept(finished: Finished) -> None:
    folder = finished.output / finished["Crash"].results
    assert (folder / "failed").is_file()
    assert CRASHED in (folder / "README.md").read_text(encoding="utf-8")
    assert (folder / "log.txt").is_file()


def test_what_an_fmu_prints_is_in_its_log(finished: Finished) -> None:
    log = finished.output / finished["Talkative"].results / "log.txt"
    assert "hello" in log.read_text(encoding="utf-8")


def test_a_value_that_is_no_number_is_a_note(finished: Finished) -> None:
    assert "no finite numbers: x" in " ".join(finished["NotANumber"].notes)


def test_an_fmu_may_end_the_run_where_its_reference_ends(finished: Finished) -> None:
    verdict = finished["Terminates"]
    assert verdict.measures
    assert "the FMU has ended the run at t = 0.6 s" in " ".join(verdict.notes)


def test_results_of_an_fmu_with_a_wrong_reference_are_kept(finished: Finished) -> None:
    verdict = finished["Other"]
    assert verdict.rows == 2001
    assert Results.read(finished.output / verdict.results / "Other_out.csv").rows == 2001


def test_the_tree_is_that_of_the_cross_check_rules(finished: Finished) -> None:
    exact = finished["Exact"]
    before, after = exact.results.split("/fmimaster/")
    assert before.startswith("results/2.0/cs/")
    assert after.endswith("/Tool/1.0/Exact")
    names = {path.name for path in (finished.output / exact.results).iterdir()}
    assert {"passed", "Exact_out.csv", "log.txt"} <= names
    assert not names & {"failed", "rejected", "README.md"}


def test_the_verdicts_are_in_a_csv_file(finished: Finished) -> None:
    with (finished.output / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [v.name for v in finished.run.verdicts]
    of = {row["name"].rpartition("/")[2]: row for row in rows}
    assert of["Hang"]["cause"] == "deadline"
    assert of["Deviating"]["variable"] == "x"
    assert float(of["Deviating"]["outside band"]) > 0.5


def test_no_cell_of_the_csv_file_is_a_formula(finished: Finished, tmp_path: Path) -> None:
    verdict = replace(
        finished["Exact"], exporter='=HYPERLINK("http://a")', reason=" @SUM(1)", start_time=-1.0
    )
    write_verdicts_csv(replace(finished.run, verdicts=(verdict,)), tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        [row] = csv.DictReader(file)
    assert row["exporter"].startswith("'=")
    assert row["reason"].startswith("' @")
    assert row["start time"] == "-1.0"


def test_the_verdicts_are_in_a_junit_file(finished: Finished) -> None:
    [suite] = ElementTree.parse(finished.output / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("16", "4", "7")
    assert suite.get("errors") == "0"
    [crash] = [case for case in suite if (case.get("name") or "").endswith("/Crash")]
    assert [child.tag for child in crash] == ["failure", "system-out"]
    assert crash[0].get("type") == "crash"


def test_pages_and_verdicts_have_the_same_ends_of_lines_on_every_system(finished: Finished) -> None:
    suffixes = (".md", ".xml", ".html", ".jsonl")
    written = [file for file in finished.output.rglob("*") if file.suffix in suffixes]
    assert {file.suffix for file in written} >= {".md", ".xml", ".html"}
    assert all(b"\r" not in file.read_bytes() for file in written)


def test_the_verdicts_can_be_read_again(finished: Finished) -> None:
    assert ConformanceRun.read(finished.output) == finished.run


def test_the_progress_counts_up_to_all_fmus(finished: Finished) -> None:
    assert [p.done for p in finished.told] == list(range(17))
    assert {p.total for p in finished.told} == {16}
    assert finished.told[0].verdict is None
    assert all(len(p.running) <= 2 for p in finished.told)


def test_an_interrupted_file_is_gone_on_with(finished: Finished, tmp_path: Path) -> None:
    output = tmp_path / "output"
    shutil.copytree(finished.output, output)
    file = output / VERDICTS_FILE
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    [cut] = [line for line in lines if '/Exact"' in line]
    file.write_text("".join(line for line in lines if line != cut) + cut[:100], encoding="utf-8")
    told: list[ConformanceProgress] = []
    run = check_conformance(
        finished.folder, output_folder=output, interfaces=["CoSimulation"], progress=told.append
    )
    assert [p.verdict.model for p in told if p.verdict is not None] == ["Exact"]
    assert told[0].kept == 15
    assert len(run.verdicts) == 16
    assert run.started == finished.run.started


def test_only_what_has_changed_runs_again(tmp_path: Path, runs: Callable[..., list[str]]) -> None:
    folder = tmp_path / "fmus"
    one, two = decay(folder, "One", 1.0), decay(folder, "Two", 1.5)
    assert runs(folder) == ["One", "Two"]
    assert runs(folder) == []
    assert runs(folder, retry=True) == ["Two"]
    later = os.stat(one / "One_ref.csv").st_mtime + 10.0
    os.utime(one / "One_ref.csv", (later, later))
    assert runs(folder) == ["One"]
    shutil.copy(reference_path("fmi2/Faulty.fmu"), two / "Two.fmu")
    assert "Two" in runs(folder)
    assert runs(folder, again=True, only=["*/One"]) == ["One"]
    with pytest.raises(OptionError, match=r"verdicts of another run .*relativeRms.*--again"):
        runs(folder, limits=ConformanceLimits(relative_rms=0.5))


def test_cards_are_made_for_verdicts_of_earlier_runs_as_well(
    tmp_path: Path, runs: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fmu = decay(tmp_path / "fmus", "A", 1.0) / "A.fmu"
    assert runs(tmp_path / "fmus") == ["A"]
    known = FmuCard(  # as if it had been measured before, which takes some seconds
        fmu=str(fmu),
        sha256=file_hash(fmu),
        model_name="A",
        fmi_version="2.0",
        interface="CoSimulation",
        generation_tool="",
        platform=FMI3,
        fmimaster=installed_version(),
        made="2026-11-22T00:00:00+00:00",
        declared={},
        declared_feedthrough={},
        declared_feedthrough_at_start={},
    )
    keep_card(known, Interface.CO_SIMULATION)
    assert runs(tmp_path / "fmus", cards=True) == []
    [file] = (tmp_path / "output").rglob("card.json")
    assert file.with_name("passed").is_file()
    assert FmuCard.read(file) == known


def test_no_card_is_tried_of_an_fmu_that_cannot_run(
    tmp_path: Path, runs: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "fmus"
    folder.mkdir()
    changed(
        reference_path("fmi2/Dahlquist.fmu"),
        folder / "Elsewhere.fmu",
        name=lambda name: name.replace("binaries/", "binaries/not-"),
    )
    assert set(runs(folder, cards=True)) == {"Elsewhere"}
    assert not caplog.records


@pytest.fixture
def runs(tmp_path: Path) -> Callable[..., list[str]]:
    """runs(folder, ...): the names of the FMUs that ran."""

    def run(folder: Path, **settings: object) -> list[str]:
        told: list[ConformanceProgress] = []
        check_conformance(
            folder,
            output_folder=tmp_path / "output",
            workers=1,
            progress=told.append,
            **settings,  # type: ignore[arg-type]
        )
        return [p.verdict.model for p in told if p.verdict is not None]

    return run


def test_ctrl_c_keeps_the_verdicts_and_ends_the_processes(tmp_path: Path) -> None:
    folder = tmp_path / "fmus"
    decay(folder, "A", 1.0)
    misbehaving(folder, "fmi3", Act("DoStep", "hang"), name="hang")
    output = tmp_path / "output"

    def interrupt(progress: ConformanceProgress) -> None:
        if progress.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="1 of 2 FMUs have a verdict; the same command continues"):
        check_conformance(
            folder, output_folder=output, workers=2, deadline=1000.0, progress=interrupt
        )
    assert [v.model for v in ConformanceRun.read(output).verdicts] == ["A"]
    assert (output / "junit.xml").is_file()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "The number of workers is 0; expected 1 or more"),
        ({"deadline": 0}, "The deadline is 0 s; expected a positive number"),
        ({"deadline": float("nan")}, "The deadline is nan s"),
        ({"memory_limit": 0}, "The memory limit is 0 bytes"),
        ({"interfaces": ["Cosim"]}, "The interface is 'Cosim'"),
        ({"only": ["*Dalquist*"]}, "No FMU has a name that matches"),
        ({"solver": "cvod"}, "cvod"),
    ],
)
def test_an_argument_without_meaning_is_an_error(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    decay(tmp_path / "fmus", "A", 1.0)
    with pytest.raises(OptionError, match=message):
        check_conformance(tmp_path / "fmus", output_folder=tmp_path / "output", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: it is not JSON"),
        ("[]\n", "line 1: expected a JSON object"),
        ('{"fmimasterConformance": 99}\n', "not a file of verdicts that this version can read"),
        ('{"fmimasterConformance": 1}\n', "line 1: 'folder' is missing"),
        ('{"fmimasterConformance": 1}\n{"name": "a"}\n', "line 2: it is not a verdict"),
    ],
)
def test_a_foreign_file_of_verdicts_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / VERDICTS_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message):
        ConformanceRun.read(tmp_path)


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Expected the output folder"):
        ConformanceRun.read(tmp_path)
