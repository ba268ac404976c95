"""Event clocks and step rules on the command line, and ``fmimaster steps``, which explains what they did."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command_line import PLAIN, Outcome, reference

from fmimaster import Results, Simulation
from fmimaster.algorithms import Aligned, AutomaticSequence, Jacobi, Refreshed, Sequential, Waveform
from fmimaster.commands import settings
from fmimaster.commands.cli import _parser
from fmimaster.events.event_clock import Check, EarlyReturn
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.inputs import ADAPTIVE, Polynomial
from fmimaster.loops import Loops, LoopSolver
from fmimaster.record.causes import Activations, Cause, Event, Kind, Steps
from fmimaster.results.facts_writer import lines
from fmimaster.steps import StepDoubling
from fmimaster.steps.locate import Locate
from fmimaster.steps.pid import PID
from fmimaster.steps.ramp import FreeStep, Ramp
from fmimaster.steps.step_rule import FixedStep

Run = Callable[..., Outcome]


@pytest.fixture
def two_mass() -> Path:
    return reference("systems/two-mass-b1-fmi3.ssp")


def simulation(*options: str) -> Simulation:
    """What these options of simulate mean."""
    return settings.simulation(_parser().parse_args(["simulate", "a.ssp", *options]))


@pytest.mark.parametrize(
    ("options", "algorithm"),
    [
        (["--refresh"], Refreshed(Jacobi())),
        (["--refresh-linearized"], Refreshed(Jacobi(), linearized=True)),
        (["--refresh", "--inputs", "2,0"], Refreshed(Jacobi(Polynomial(2, 0)))),
    ],
)
def test_outputs_are_refreshed_by_an_option(options: list[str], algorithm: Refreshed) -> None:
    assert simulation(*options).algorithm == algorithm


def test_step_doubling_is_a_step_rule_with_the_settings_of_its_estimator() -> None:
    rule = simulation("--step-rule", "step-doubling:relative=1e-4,safety=0.9").step_size
    estimators = (StepDoubling(relative=1e-4),)
    assert rule == PID(estimators=estimators, safety=0.9, reject_above=1.0)


# Options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("look-ahead", LookAhead()),
        ("LookAhead:safety=0.8,in_fmu=true", LookAhead(safety=0.8, in_fmu=True)),
        ("predictive:near=1e-4", Predictive(near=1e-4)),
        ("early-return", EarlyReturn()),
        ("check:interruption=1e-3", Check(1e-3)),
    ],
)
def test_event_clocks_are_chosen_by_name(text: str, clock: object) -> None:
    assert simulation("--event-clock", text).event_clock == clock


@pytest.mark.parametrize(
    ("rule", "step"),
    [
        ("grid", FixedStep("0.1")),
        ("free", FreeStep("0.1")),
        ("ramp", Ramp("0.1")),
        ("ramp:first=0.5", Ramp("0.1", first=0.5)),
        ("locate:tolerance=1e-6", Locate("0.1", tolerance=1e-6)),
    ],
)
def test_a_step_rule_can_be_asked_for(rule: str, step: object) -> None:
    assert simulation("--step-size", "0.1", "--step-rule", rule).step_size == step


def test_sweeps_wrap_the_algorithm() -> None:
    assert simulation("--inputs", "2,2", "--sweeps", "3").algorithm == Waveform(
        Aligned(Jacobi(Polynomial(2, 2))), sweeps=3
    )


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("1:tolerance=1e-6", {"sweeps": 1, "tolerance": 1e-6}),
        ("2:tolerance=1e-6,corrections=3", {"sweeps": 2, "tolerance": 1e-6, "corrections": 3}),
        ("solver", {"solver": LoopSolver()}),
        ("solver:relative=1e-6, bounded=3", {"solver": LoopSolver(relative=1e-6, bounded=3)}),
    ],
)
def test_sweeps_converge_on_request(text: str, settings: dict[str, Any]) -> None:
    wanted = Waveform(Aligned(Jacobi(ADAPTIVE)), **settings)
    assert simulation("--sweeps", text).algorithm == wanted


def test_which_loops_are_solved_can_be_said() -> None:
    assert simulation().loops is None
    assert simulation("--loops", "all").loops is Loops.ALL
    assert simulation("--loop-tolerance", "1e-6").loop_solver == LoopSolver(relative=1e-6)
    assert simulation("--strict").strict


def test_dejacos_algorithms_are_offered_with_their_extrapolation() -> None:
    assert simulation("--algorithm", "sequential").algorithm == Sequential()
    quintic = simulation("--algorithm", "automatic-sequence", "--inputs", "2,2")
    assert quintic.algorithm == AutomaticSequence(extrapolation=Polynomial(2, 2))


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ([], None),
        (["--event-mode"], True),
        (["--event-mode-used"], True),  # as fmusim calls it
        (["--no-event-mode"], False),
    ],
)
def test_event_mode_can_be_asked_for_or_declined(options: list[str], mode: bool | None) -> None:
    assert simulation(*options).event_mode is mode


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--event-clock", "predictve"], "no event clock 'predictve'. Did you mean 'predictive'?"),
        (["--event-clock", "look-ahead:safty=1"], "no setting 'safty'. Did you mean 'safety'?"),
        (["--step-rule", "locate:tolerance=small"], "expected a number, such as 1e-10"),
        (["--event-clock", "look-ahead:in_fmu=1"], "expected true or false"),
        (["--step-rule", "rampe", "--step-size", "1"], "Did you mean 'ramp'?"),
        (["--sweeps", "0"], "expected 1 or more"),
        (["--sweeps", "solver:relatve=1"], "no setting 'relatve'. Did you mean 'relative'?"),
        (["--sweeps", "2:corrections=few"], "corrections=few: expected a whole number, such as 3"),
        (["--sweeps", "2:corrections=-1"], "corrections=-1: expected a whole number"),
        (["--sweeps", "2:tolerance=-1"], "tolerance=-1.0, expected a positive number"),
        (["--loops", "reel"], "Did you mean 'real'? There are real, all, none."),
    ],
)
def test_nonsense_is_told(run: Run, two_mass: Path, options: list[str], message: str) -> None:
    assert message in run("simulate", two_mass, *options).error


def test_fmus_with_clocks_use_event_mode_though_it_is_declined(run: Run, two_mass: Path) -> None:
    plan = run("plan", two_mass, "--event-clock", "predictive", "--no-event-mode").out
    assert "the Event Mode of 'upper' is used nevertheless, because it has clocks" in plan


def test_the_plan_names_the_event_clock(run: Run, two_mass: Path) -> None:
    options = ("--event-clock", "predictive", "--step-size", "0.1")
    first = run("plan", two_mass, *options).out.splitlines()[0]
    assert first == "two-mass, Jacobi:inputs=adaptive, predictive"
    assert json.loads(run("plan", two_mass, *PLAIN, "--json").out)["eventClock"] is None


# Steps ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(run: Run, two_mass: Path, tmp_path: Path) -> Path:
    """One collision, found by prediction."""
    file = tmp_path / "run.csv"
    clock = ("--event-clock", "predictive", "--step-size", "0.1", "--inputs", "2,2")
    done = run("simulate", two_mass, *clock, "--stop-time", "1", "--output-file", file)
    assert f"rows written to {file} and run.csv.json" in done.err
    return file


def test_steps_and_events_are_shown_in_their_order(run: Run, table: Path) -> None:
    shown = run("steps", table).out.splitlines()
    assert shown[0] == "17 steps, 1 event"
    rows = [line.split(None, 3) for line in shown[shown.index("") + 2 :]]
    assert rows[0] == ["0.0125", "0.0125", "1", "ramp"]
    assert rows[3][2:] == ["4", "step size"]  # a quiet stretch is one line
    assert rows[6][3] == "collision predicted"
    assert rows[7][1:3] == ["event", "*"]
    assert rows[7][3].startswith(
        "collision, shared by upper and lower, detected: upper.v -11.4347 -> 11.1946, "
        "lower.v 7.42304 -> -7.66313, "
    )
    assert rows[-1][2:] == ["1", "stop time"]


def test_an_event_stands_between_steps_that_are_alike(run: Run, tmp_path: Path) -> None:
    who = ("a",)
    event = Event(0.3, 1, "a.z", False, who, Cause(Kind.DETECTED), {"z": 1.0}, {"z": 2.0})
    steps = [Steps(0.0, 1.0, Cause(Kind.STEP_SIZE), 10)]
    table = tmp_path / "run.csv"
    table.write_text('"time"\n0\n', encoding="utf-8")
    (tmp_path / "run.csv.json").write_text(
        "\n".join(lines([event, replace(event, index=2)], steps, [], {}, {})), encoding="utf-8"
    )
    rows = run("steps", table).out.splitlines()
    assert rows[0] == "10 steps, 2 events"
    assert [row.split()[:3:2] for row in rows[-4:]] == [
        ["0.3", "3"],
        ["0.3", "*"],
        ["0.3", "row"],
        ["1", "7"],
    ]


def test_a_plain_run_has_steps_too(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "quiet.csv"
    run("simulate", reference("fmi3/Dahlquist.fmu"), "--stop-time", "1", "--output-file", table)
    assert run("steps", table).out.splitlines() == [
        "10 steps, no events",
        "  All steps ended on the grid of the step size, 0.1 s.",
    ]


def test_activations_of_clocks_are_shown_as_stretches(run: Run, tmp_path: Path) -> None:
    tenth = Fraction(1, 10)
    late = [Activations("b.late", Fraction(k), Fraction(k), 1, Fraction(0)) for k in range(7)]
    activations = [
        Activations("a.tick", Fraction(0), 2 * tenth, 3, tenth),
        Activations("a.tick", Fraction(7, 20), Fraction(0.7), 9, None),
        *late,
        Activations("c.zero", Fraction(1), Fraction(1), 2, Fraction(0)),
    ]
    table = tmp_path / "run.csv"
    table.write_text('"time"\n0\n', encoding="utf-8")
    steps = [Steps(0.0, 1.0, Cause(Kind.STEP_SIZE), 10)]
    (tmp_path / "run.csv.json").write_text(
        "\n".join(lines([], steps, activations, {}, {})), encoding="utf-8"
    )
    shown = [line.split() for line in run("steps", table).out.splitlines()[3:14]]
    assert shown[1:3] == [
        ["a.tick", "0", "1/10", "1/5", "3"],
        ["7/20", "irregular", "0.7", "9"],
    ]
    assert shown[3:9:5] == [["b.late", "0", "once", "0", "1"], ["5", "…", "6", "2"]]
    assert shown[9] == ["c.zero", "1", "in", "one", "instant", "1", "2"]
    told = json.loads(run("steps", table, "--json").out)["activations"]
    assert told[0] == {
        "clock": "a.tick",
        "first": "0",
        "last": "1/5",
        "count": 3,
        "interval": "1/10",
    }
    assert told[1]["interval"] is None
    assert len(told) == len(activations)
    assert Results.read(table).activations == tuple(activations)


def test_the_json_is_stable(run: Run, table: Path) -> None:
    told = json.loads(run("steps", table, "--json").out)
    assert list(told) == ["format", "events", "steps", "activations", "units", "metadata"]
    assert list(told["events"][0]) == [
        "time",
        "index",
        "name",
        "scope",
        "components",
        "cause",
        "left",
        "right",
    ]
    assert list(told["steps"][0]) == ["begin", "end", "size", "count", "cause"]
    stored = json.loads((table.parent / "run.csv.json").read_text(encoding="utf-8"))
    metadata = told.pop("metadata")
    assert {"startTime", "stopTime", "endTime", "wallTime"} <= metadata.keys()
    assert list(metadata.values()) == list(stored.pop("metadata").values())
    assert told == stored


def test_the_same_facts_come_with_the_table(table: Path) -> None:
    results = Results.read(table)
    assert [e.name for e in results.events] == ["collision"]
    assert sum(s.count for s in results.steps) == 17


def test_a_table_and_facts_that_an_editor_of_windows_has_saved_are_read(
    run: Run, table: Path
) -> None:
    """With the mark of UTF-8, and with CRLF."""
    before = run("steps", table).out
    for path in (table, Path(f"{table}.json")):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert run("steps", table).out == before


def test_a_streamed_table_and_one_with_a_figure_have_the_same_facts(
    run: Run, two_mass: Path, table: Path
) -> None:
    kept = table.with_name("kept.csv")
    clock = ("--event-clock", "predictive", "--step-size", "0.1", "--inputs", "2,2")
    files = ("--output-file", kept, "--plot", kept.with_suffix(".svg"))
    run("simulate", two_mass, *clock, "--stop-time", "1", *files)
    assert run("steps", kept).out == run("steps", table).out
    assert "<!-- shared events -->" in kept.with_suffix(".svg").read_text(encoding="utf-8")


def test_a_table_without_facts_is_told_as_such(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("time\n0\n", encoding="utf-8")
    assert "There is no 'other.csv.json' beside" in run("steps", file).error


def test_a_table_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    assert "does not exist" in run("steps", tmp_path / "no.csv").error


def test_facts_that_are_damaged_are_told(run: Run, table: Path) -> None:
    table.with_name("run.csv.json").write_text("{", encoding="utf-8")
    assert "does not hold the events and steps of a run" in run("steps", table).error
