"""``fmimaster plan``: order, loops, delays, conversions and programs, before anything is loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import PLAIN, Outcome, changed, reference, system

Run = Callable[..., Outcome]


@pytest.fixture
def two_mass() -> Path:
    return reference("systems/two-mass-b3-mixed.ssp")


@pytest.fixture
def feedthrough() -> Path:
    return reference("fmi3/Feedthrough.fmu")


def words(outcome: Outcome) -> list[str]:
    assert outcome.status == 0, outcome.err
    return [" ".join(line.split()) for line in outcome.out.splitlines()]


def test_each_connection_is_told_with_its_delay_and_why(run: Run, two_mass: Path) -> None:
    jacobi = words(run("plan", two_mass, *PLAIN, "--programs"))
    why = "'upper' is set (0) before 'lower' steps (6): value of the last communication point"
    assert f"upper.u_x <- lower.x 1 step late, held: {why}" in jacobi
    gauss_seidel = words(run("plan", two_mass, "--algorithm", "gauss-seidel"))
    why = "'lower' steps before 'upper' is set"
    assert f"upper.u_x <- lower.x not late, held: {why}" in gauss_seidel
    assert not any(line.startswith("Program") for line in gauss_seidel)


def test_order_times_and_programs_are_told(run: Run, two_mass: Path) -> None:
    lines = words(run("plan", two_mass, *PLAIN, "--stop-time", "5", "--programs"))
    assert lines[0] == "two-mass, Jacobi"
    for expected in (
        "start 0 s from the system",
        "stop 5 s from the settings",
        "upper TwoMassUpper FMI 2.0 no tolerance",
        "1. lower",
        "2. upper",
        "Program 'initialize'",
        "Program 'attempt'",
        "0 MOVE upper continuous u_x <- lower.x; u_v <- lower.v; u_a <- lower.a",
        "5 STEP upper to 1",
        "Program 'commit'",
        "Program 'terminate'",
    ):
        assert expected in lines


def test_times_that_nobody_said_are_explained_by_notes(run: Run) -> None:
    lines = words(run("plan", reference("fmi3/Dahlquist.fmu")))
    assert "stop 10 s see the notes" in lines
    assert "stop time 10 s from the default experiment of 'Dahlquist'" in lines


def test_conversions_are_told(run: Run, two_mass: Path, feedthrough: Path, tmp_path: Path) -> None:
    fmu = reference("fmi2/TwoMassUpper.fmu")
    path = system(tmp_path, {"a": fmu, "b": feedthrough}, ["a.x -> b.Float32_continuous_input"])
    lines = words(run("plan", path))
    expected = "Float64 to Float32, rounded; m (m) to no unit, not compared: passed unchanged"
    assert f"b.Float32_continuous_input <- a.x {expected}" in lines


def test_loops_are_told_and_whether_they_are_assumed(
    run: Run, feedthrough: Path, tmp_path: Path
) -> None:
    fmu = changed(
        feedthrough,
        tmp_path / "a.fmu",
        description=lambda t: re.sub(r' dependencies(Kind)?="[^"]*"', "", t),
    )
    out, into = "Float64_continuous_output", "Float64_continuous_input"
    routes = [f"a.{out} -> b.{into}", f"b.{out} -> a.{into}"]
    real = json.loads(
        run(
            "plan", system(tmp_path / "r", {"a": feedthrough, "b": feedthrough}, routes), "--json"
        ).out
    )
    assumed = json.loads(
        run("plan", system(tmp_path / "s", {"a": fmu, "b": fmu}, routes), "--json").out
    )
    for kind in ("initialLoops", "stepLoops"):
        assert [loop["assumed"] for loop in real[kind]] == [False]
        assert [loop["assumed"] for loop in assumed[kind]] == [True]
    assert set(real["stepLoops"][0]["variables"]) == {
        f"a.{out}",
        f"b.{out}",
        f"a.{into}",
        f"b.{into}",
    }


def test_a_table_is_a_component_like_any_other(run: Run, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text('"time","Int32_input"\n0,1\n0.55,3\n', encoding="utf-8")
    path = reference("fmi3/Feedthrough.fmu")
    facts = json.loads(run("plan", path, "--input-file", tmp_path / "u.csv", "--json").out)
    assert [c["target"] for c in facts["connections"]] == ["Feedthrough.Int32_input"]
    assert facts["times"]["points"] == [0.55]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "tolerance 0.0001 from the FMU"),
        (("--tolerance", "1e-6"), "tolerance 1e-06 from the settings"),
        (("--tolerance", "none"), "no tolerance from the settings"),
    ],
)
def test_it_shows_the_tolerance_and_where_it_is_from(
    run: Run, tmp_path: Path, options: tuple[str, ...], text: str
) -> None:
    path = changed(
        reference("fmi3/Dahlquist.fmu"),
        tmp_path / "a.fmu",
        description=lambda t: t.replace(
            "<DefaultExperiment", '<DefaultExperiment tolerance="1e-4"'
        ),
    )
    assert text in run("plan", path, *options).out


def test_a_tolerance_that_is_no_number_is_refused(run: Run) -> None:
    outcome = run("plan", reference("fmi3/Dahlquist.fmu"), "--tolerance", "tight")
    assert "expected a positive number, or none" in outcome.error


def test_no_library_is_needed(run: Run, tmp_path: Path) -> None:
    path = changed(
        reference("fmi2/Dahlquist.fmu"),
        tmp_path / "a.fmu",
        name=lambda n: "" if n.startswith("binaries/") else n,
    )
    assert run("plan", path).status == 0


def test_the_json_is_stable(run: Run, two_mass: Path) -> None:
    facts = json.loads(run("plan", two_mass, *PLAIN, "--json", "--programs").out)
    assert list(facts) == [
        "system",
        "algorithm",
        "eventClock",
        "times",
        "components",
        "order",
        "sequence",
        "initialLoops",
        "stepLoops",
        "constraints",
        "powerBonds",
        "possible",
        "connections",
        "clocks",
        "events",
        "triggers",
        "warnings",
        "notes",
        "programs",
        "structures",
    ]
    assert facts["times"] == {
        "start": 0.0,
        "stop": 20.0,
        "step": 0.01,
        "rule": "grid:size=0.01",
        "origins": {"start": "system", "stop": "system", "step": "system"},
        "points": [],
        "control": None,
    }
    assert facts["components"][0] == {
        "name": "upper",
        "modelName": "TwoMassUpper",
        "fmiVersion": "2.0",
        "stepSize": 0.01,
        "tolerance": None,
        "toleranceOrigin": None,
        "priority": None,
        "settings": None,
    }
    assert facts["connections"][0] == {
        "target": "upper.u_x",
        "source": "lower.x",
        "sourceComponent": "lower",
        "targetComponent": "upper",
        "fresh": False,
        "delay": 1.0,
        "why": "'upper' is set (0) before 'lower' steps (6): value of the last communication point",
        "late": "1 step late",
        "course": "held",
        "factor": 1.0,
        "offset": 0.0,
        "notes": [],
    }
    names = ["initialize", "attempt", "commit", "event of 'lower'", "terminate"]
    assert list(facts["programs"]) == names
    assert facts["programs"]["commit"] == ["0 SAMPLE"]


# Events ---------------------------------------------------------------------------------------------------------------


def test_shared_and_private_events_are_shown_with_what_triggers_them(
    run: Run, two_mass: Path
) -> None:
    lines = words(run("plan", two_mass, "--event-clock", "predictive"))
    for expected in (
        "collision shared",
        "in upper collision.z[1], collision.z[2] announced by collision.out, fired by collision.in",
        "upper.ceiling private, also concerns lower",
        "lower.collision.in <- the event clock (collision) with lower.collision.w <- upper.v",
        "upper.ceiling.in <- the event clock (upper.ceiling)",
    ):
        assert expected in lines
    own = words(run("plan", two_mass, "--event-clock", "look-ahead"))
    member = "collision.z[1], collision.z[2] announced by collision.out, executed by the FMU itself"
    assert f"in lower {member}" in own
    assert "upper.ceiling.in <- nothing" in own


def test_the_program_of_each_event_is_shown(run: Run, two_mass: Path) -> None:
    lines = words(run("plan", two_mass, "--event-clock", "predictive", "--programs"))
    first = lines.index("Program of the event 'collision'")
    assert lines[first + 2 : first + 4] == [
        "1 TICK trigger 0 upper.collision.in becomes active",
        "2 TICK trigger 1 lower.collision.in becomes active",
    ]
    assert "Program of the event of 'lower'" in lines  # of FMI 3.0, which may request one
    assert "Program of the event of 'upper'" not in lines


def test_clock_connections_are_shown(run: Run, tmp_path: Path) -> None:
    upper, lower = reference("fmi3/TwoMassUpper.fmu"), reference("fmi3/TwoMassLower.fmu")
    route = ["a.ceiling.out -> b.floor.in"]
    lines = words(run("plan", system(tmp_path, {"a": upper, "b": lower}, route), "--programs"))
    assert "b.floor.in <- a.ceiling.out" in lines
    first = lines.index("Program of the event of 'a'")
    program = lines[first : lines.index("", first)]
    move = "MOVE b triggers floor.in <- a.ceiling.out"
    assert any(line.partition(" ")[2] == move for line in program)


def test_the_json_of_events_is_stable(run: Run, two_mass: Path) -> None:
    facts = json.loads(
        run("plan", two_mass, "--event-clock", "predictive", "--json", "--programs").out
    )
    assert facts["events"][1] == {
        "name": "upper.ceiling",
        "scope": "private",
        "members": [
            {
                "component": "upper",
                "indicators": ["ceiling.z[1]", "ceiling.z[2]"],
                "announcedBy": "ceiling.out",
                "trigger": "ceiling.in",
                "executedByFmu": False,
            }
        ],
        "concerns": ["upper", "lower"],
    }
    assert facts["triggers"][0] == {
        "target": "upper.collision.in",
        "kind": "counter",
        "event": "collision",
        "fired": True,
        "sources": [],
        "isTimeBased": False,
        "payload": [{"target": "upper.collision.w", "source": "lower.v"}],
    }
    assert "event 'collision'" in facts["programs"]
    silent = json.loads(run("plan", reference("fmi3/Dahlquist.fmu"), "--json").out)
    assert (silent["events"], silent["triggers"]) == ([], [])
