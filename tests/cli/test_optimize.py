"""``fmimaster optimize`` on the four units."""

from __future__ import annotations

import itertools
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome, command, reference

from fmimaster import Interrupted, Results, Simulation, SimulationError, read_system
from fmimaster.commands.plan import comparison_page
from fmimaster.studies.optimization.runs import digest

SHORT = ("--stop-time", "0.02", "--step-size", "1/1000", "--no-progress")
FEW = ("--json", "--verify", "0")
CHOSEN = ("S3", "S4", "S1", "S2")


@pytest.fixture
def optimize(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run(*arguments: object) -> Outcome:
        system = reference("systems/four-units-fmi3.ssp")
        return command(capfd, "optimize", system, *SHORT, *arguments)

    return run


def test_the_page_has_the_sequence_and_the_options_and_the_copy_sets_it(
    optimize: Callable[..., Outcome], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copy = tmp_path / "better.ssp"
    outcome = optimize("--write", copy)
    assert outcome.status == 0
    assert f"Sequence\n  {', '.join(CHOSEN)}\n" in outcome.out
    assert "predicted" in outcome.out
    assert f"--algorithm GaussSeidel:mode=lin --sequence {','.join(CHOSEN)}" in outcome.out
    assert read_system(copy).sequence == CHOSEN
    assert f"Sequence of stepping\n  {', '.join(CHOSEN)}\n" in command(capfd, "info", copy).out
    plan = command(capfd, "plan", copy, "--algorithm", "gauss-seidel", "--json", *SHORT[:4])
    assert json.loads(plan.out)["order"] == list(CHOSEN)


def test_a_copy_of_a_description_says_where_its_component_paths_lead(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Into the folder of the system: a copy there needs no word."""
    folder = tmp_path / "units"
    with zipfile.ZipFile(reference("systems/four-units-fmi3.ssp")) as archive:
        archive.extractall(folder)
    system = ("optimize", folder / "SystemStructure.ssd", *SHORT, "--verify", "0", "--write")
    told = "its component paths are relative to its folder: move it to"
    assert told not in command(capfd, *system, folder / "better.ssd").err
    assert f"{told} {folder}" in " ".join(command(capfd, *system, tmp_path / "c.ssd").err.split())


def test_the_options_have_the_settings_of_the_algorithm(optimize: Callable[..., Outcome]) -> None:
    found = json.loads(
        optimize("--json", "--mode", "lin:sub_steps=7", "--inputs", "linear", "--verify", "0").out
    )
    algorithm = "GaussSeidel:inputs=linear,mode=lin:sub_steps=7"
    assert found["options"][:-1] == ["--algorithm", algorithm, "--sequence"]


def test_inputs_by_name_stay_what_they_are(optimize: Callable[..., Outcome]) -> None:
    found = json.loads(optimize("--algorithm", "gauss-seidel", "--inputs", "adaptive", *FEW).out)
    assert found["options"][1] == "GaussSeidel:inputs=adaptive"


def test_a_bounded_number_of_levels_has_no_sequence(optimize: Callable[..., Outcome]) -> None:
    outcome = optimize("--most-levels", "2")
    assert outcome.status != 0
    assert "Leave most_levels out." in outcome.err


def test_the_answer_as_json(optimize: Callable[..., Outcome]) -> None:
    found = json.loads(optimize("--json").out)
    assert found["sequence"] == list(CHOSEN)
    assert not found["ranksNoise"]
    first = found["candidates"][0]
    assert first["sequence"] == list(CHOSEN)
    assert 0 < first["error"] < found["candidates"][-1]["error"]
    assert first["predictedError"] == pytest.approx(first["error"], rel=0.2)
    assert {(w["source"], w["target"]) for w in found["weights"]} >= {("S4", "S1"), ("S1", "S2")}


def test_errors_as_large_as_the_outputs_are_said_to_be_noise(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With steps of 50 ms all sequences diverge; the first one had an error of 1 and was recommended."""
    system = reference("systems/four-units-fmi3.ssp")
    run = ("optimize", system, "--stop-time", "0.3", "--step-size", "1/20", "--verify", "0")
    kept = ("--keep-runs", tmp_path / "runs")
    outcome = command(capfd, *run, *kept, "--json")
    assert json.loads(outcome.out)["ranksNoise"]
    assert "the order of the sequences is noise" in outcome.err
    assert "the order of the sequences is noise" in command(capfd, *run, *kept).out


@pytest.mark.parametrize("method", ["propagated", "fuzzy"])
def test_methods_by_weights(optimize: Callable[..., Outcome], method: str) -> None:
    found = json.loads(optimize("--json", "--method", method).out)
    assert found["sequence"] == list(CHOSEN)
    assert found["cost"] < found["baseCost"] or found["base"] == found["sequence"]


def test_a_copy_over_the_system_or_in_no_folder_is_refused_before_any_run(
    optimize: Callable[..., Outcome], tmp_path: Path
) -> None:
    assert (
        "is the system itself"
        in optimize("--write", reference("systems/four-units-fmi3.ssp")).error
    )
    assert "ends with .ssp" in optimize("--write", tmp_path / "a.ssd").error
    assert "folder does not exist" in optimize("--write", tmp_path / "no" / "a.ssp").error


def test_runs_that_are_kept_are_not_made_again(
    optimize: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled search loses nothing that was computed: issue 10, Command."""
    whole, made = json.loads(optimize(*FEW).out), 0
    run = Simulation.run

    def cancelled(self: Simulation, *arguments: Any, **more: Any) -> Results:
        nonlocal made
        made += 1
        if made == 7:
            raise Interrupted("Interrupted.")
        return run(self, *arguments, **more)

    monkeypatch.setattr(Simulation, "run", cancelled)
    outcome = optimize(*FEW, "--keep-runs", tmp_path / "runs")
    assert outcome.status == 130
    assert "the search was stopped; result of the runs so far:" in outcome.err
    assert "Connections about which nothing is known" in outcome.err
    again = json.loads(optimize(*FEW, "--keep-runs", tmp_path / "runs").out)
    assert again == whole
    done = made
    assert json.loads(optimize(*FEW, "--keep-runs", tmp_path / "runs").out) == whole
    assert made == done
    (tmp_path / "runs" / "run-0002.csv").unlink()
    for _ in range(2):  # it is made again, in the place of no other one
        assert json.loads(optimize(*FEW, "--keep-runs", tmp_path / "runs").out) == whole
    assert made == done + 1


def test_kept_runs_of_other_settings_are_refused(
    optimize: Callable[..., Outcome], tmp_path: Path
) -> None:
    optimize("--keep-runs", tmp_path / "runs", "--method", "signature", "--verify", "0")
    for same_rows in (("--backend", "reference"), ("--threads", "2")):
        kept = optimize("--keep-runs", tmp_path / "runs", *same_rows, "--verify", "0")
        assert kept.status == 0
    message = optimize("--keep-runs", tmp_path / "runs", "--start-value", "S2.r", "5").error
    assert "have other settings (start_values)" in message
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "a.txt").touch()
    assert "contains other files" in optimize("--keep-runs", tmp_path / "else").error


def test_kept_runs_belong_to_the_content_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "unpacked").mkdir()
    files = tmp_path / "a.fmu", tmp_path / "unpacked" / "b.xml"
    places, found = (files[0], tmp_path / "unpacked"), set[str]()
    for content in ("ab", "bb", "ba"):
        for file, text in zip(files, content, strict=True):
            file.write_text(text, encoding="utf-8")
        found.add(digest(places))
    assert len(found) == 3
    assert digest(places) in found


def test_a_run_that_fails_costs_one_connection_only(
    optimize: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, made = Simulation.run, 0

    def fails_once(self: Simulation, *arguments: Any, **more: Any) -> Results:
        nonlocal made
        made += 1
        if made == 3:
            raise SimulationError("It diverged.")
        return run(self, *arguments, **more)

    monkeypatch.setattr(Simulation, "run", fails_once)
    outcome = optimize(*FEW)
    assert outcome.status == 0
    found = json.loads(outcome.out)
    assert len(found["unknown"]) == 1
    assert found["failures"] == ["It diverged."]
    assert "failed: It diverged." in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "fuzy"), "There is no method 'fuzy'. Did you mean 'fuzzy'?"),
        (
            ("--method", "fuzzy", "--verify", "3"),
            "the method fuzzy does not simulate predicted sequences",
        ),
        (("--micro-step", "S1", "1"), "the method signature needs no micro steps"),
        (("--method", "fuzzy", "--micro-step", "S9", "1"), "there is no component 'S9'"),
        (("--method", "fuzzy", "--micro-step", "S1", "x"), "--micro-step x: expected a number"),
        (("--method", "propagated", "--keep-runs", "runs"), "for the signature method only"),
        (("--algorithm", "jacobi"), "algorithm GaussSeidel (gauss-seidel), not for Jacobi, whose"),
        (("--sweeps", "2"), "not for Waveform, whose"),
        (("--step-rule", "ramp"), "the step rule is Ramp. Leave the step rule out (--step-rule)"),
        (("--output-variable", "none*"), "none*"),
    ],
)
def test_what_means_nothing_is_refused(
    optimize: Callable[..., Outcome], arguments: tuple[str, ...], message: str
) -> None:
    assert message in optimize(*arguments).error


def test_a_component_with_a_clock_cannot_be_simulated_alone(
    capfd: pytest.CaptureFixture[str],
) -> None:
    system = reference("systems/thermostat-fmi3.ssp")
    message = command(capfd, "optimize", system, "--method", "fuzzy", "--step-size", "0.5").error
    assert "'controller' cannot be simulated alone" in message
    assert "--method signature" in message


def test_a_single_fmu_has_no_sequence(capfd: pytest.CaptureFixture[str]) -> None:
    message = command(capfd, "optimize", reference("fmi3/Dahlquist.fmu")).error
    assert "There is nothing to optimize" in message


def test_plan_compares_compromises_of_cost_and_speed_if_there_are_threads(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """sequence.md 3: the compromise of the makespan, with measured run times, and the cost."""
    system = reference("systems/four-units-fmi3.ssp")
    outcome = command(capfd, "plan", system, "--compare", "--json", "--threads", "2", *SHORT[:4])
    compared = json.loads(outcome.out)["comparison"]
    first, *others = compared["compromises"]
    assert first["levels"] == [["S3"], ["S4"], ["S1"], ["S2"]]
    assert first["cost"] == pytest.approx(0.03)
    assert others
    for one, faster in itertools.pairwise(compared["compromises"]):
        assert one["cost"] < faster["cost"]
        assert one["seconds"] > faster["seconds"] > 0
    lines = comparison_page(compared)
    assert "Compromises of stale inputs and speed on 2 threads, as measured" in lines
    assert any(line.split()[:4] == ["S3;", "S4;", "S1;", "S2"] for line in lines)


def test_plan_compares_sequences_by_prediction_and_simulation(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 10, ``plan --compare``."""
    system = reference("systems/four-units-fmi2.ssp")
    outcome = command(capfd, "plan", system, "--compare", "--json", *SHORT[:4])
    compared = json.loads(outcome.out)["comparison"]
    monkeypatch.setenv("COLUMNS", "100")
    lines = comparison_page(compared)
    assert lines[1] == "Sequences compared (GaussSeidel:mode=lin)"
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("  S") for line in lines) == len(compared["sequences"])
    rows = compared["sequences"]
    by_method = {method: row for row in rows for method in row["methods"]}
    assert by_method["settings"] is by_method["automatic"]
    assert by_method["settings"]["difference"] == 0
    assert by_method["signature"] is rows[0]
    assert by_method["count"]["staleInputs"] == 2
    assert by_method["automatic"]["feedThroughCost"] == pytest.approx(0.03)
    for row in rows:
        assert row["predictedError"] == pytest.approx(row["error"], rel=0.2)
        assert row["predictedDifference"] == pytest.approx(row["difference"], rel=0.2)
