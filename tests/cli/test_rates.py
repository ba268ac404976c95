"""Step sizes of components, sub-steps, half the step, and the largest stable step on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import PLAIN, Outcome, reference

from fmimaster.commands import simulate

CAR = reference("systems/quarter-car-b-fmi2.ssp")
Run = Callable[..., Outcome]


def test_a_component_steps_on_a_grid_of_its_own(run: Run, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    grids = ("--step-size", "1/30", "--component-step-size", "wheel", "1/100")
    outcome = run("simulate", CAR, *grids, "--stop-time", "0.1", "--output-file", str(rows))
    assert outcome.status == 0
    time = np.loadtxt(rows, delimiter=",", skiprows=1)[:, 0]
    assert time.tolist() == sorted({k / 100 for k in range(11)} | {1 / 30, 2 / 30})


def test_the_plan_shows_the_step_size_of_each_component(run: Run) -> None:
    grids = ("--step-size", "1/50", "--component-step-size", "wheel", "1/200")
    facts = json.loads(run("plan", CAR, "--json", "--programs", *grids).out)
    assert {c["name"]: c["stepSize"] for c in facts["components"]} == {
        "chassis": 0.02,
        "wheel": 0.005,
    }
    assert {c["late"] for c in facts["connections"]} == {"up to 0.02 s late"}
    assert "attempt 1" in facts["programs"]
    page = run("plan", CAR, *grids).out
    assert "step 0.005 s" in page
    assert "'wheel' has a new value every 0.005 s" in page


def test_sub_steps_of_a_component(run: Run) -> None:
    outcome = run(
        "simulate", CAR, "--step-size", "1/500", "--stop-time", "0.1", "--sub-steps", "wheel", "4"
    )
    assert "50 steps" in outcome.err
    assert any(line.split()[:2] == ["wheel", "200"] for line in outcome.err.splitlines())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--sub-steps", "wheel", "2.5"),
            "--sub-steps wheel 2.5: expected a whole number, 1 or more.",
        ),
        (("--sub-steps", "whel", "2"), "there is no component 'whel'. Did you mean 'wheel'?"),
        (
            ("--component-step-size", "whel", "1"),
            "there is no component 'whel'. Did you mean 'wheel'?",
        ),
        (
            ("--component-step-size", "wheel", "0"),
            "the step size of 'wheel' is 0 s, expected a positive",
        ),
        (
            ("--component-step-size", "wheel", "1/100", "--step-rule", "free"),
            "--component-step-size and --step-rule free exclude each other",
        ),
        (("--check-step", "--output-interval", "0.1"), "Leave --output-interval out."),
        (("--check-step", "--accuracy", "0.01"), "Leave --check-step out."),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, options: tuple[str, ...], message: str) -> None:
    outcome = run("simulate", CAR, "--step-size", "1/50", *options)
    assert outcome.status != 0
    assert message in outcome.err


def test_half_the_step_is_compared(run: Run) -> None:
    outcome = run("simulate", CAR, "--step-size", "1/500", "--stop-time", "0.2", "--check-step")
    lines = outcome.err.splitlines()
    table = lines[lines.index("with steps half as long:") + 1 :]
    assert table[0].split()[:2] == ["output", "unit"]
    assert {line.split()[0] for line in table[1:3]} == {"chassis.force", "wheel.velocity"}


@pytest.mark.filterwarnings("ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning")
def test_a_run_that_diverges_is_told_the_largest_stable_step(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """energy.md 4: split B is stable up to 11.230 ms."""
    monkeypatch.setattr(simulate, "LEAST_SECONDS", 60.0)  # under load, too
    outcome = run("simulate", CAR, *PLAIN, "--step-size", "0.02", "--stop-time", "2")
    assert "grows from t = 0 s to the end of the run" in outcome.err
    assert "note: looking for the largest stable step size, for at most 60 s" in outcome.err
    assert "note: the coupling is stable with steps of at most 0.011230" in outcome.err


@pytest.mark.filterwarnings("ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning")
def test_a_quiet_run_that_diverges_looks_for_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("fmimaster.studies.stability.advisor.largest_stable_step", looked)
    outcome = run("simulate", CAR, *PLAIN, "--step-size", "0.02", "--stop-time", "2", "--quiet")
    assert outcome.status == 0
    assert "note:" not in outcome.err


@pytest.mark.filterwarnings("ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning")
def test_the_search_for_a_stable_step_can_be_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fmimaster.studies.stability.advisor.largest_stable_step", ended)
    outcome = run("simulate", CAR, *PLAIN, "--step-size", "0.02", "--stop-time", "2")
    assert outcome.status == 0
    assert "note: the search was ended" in outcome.err


@pytest.mark.filterwarnings("ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning")
def test_a_model_that_grows_by_itself_is_not_said_to_need_smaller_steps(run: Run) -> None:
    """x' = x: nothing is coupled."""
    model = (reference("fmi3/Dahlquist.fmu"), "--start-value", "k", "-1", "--stop-time", "10")
    outcome = run("simulate", *model, "--step-size", "0.01")
    assert "grows from t = 0 s to the end of the run" in outcome.err
    assert "no largest stable step size was found" in outcome.err
    assert "use smaller steps" not in outcome.err
