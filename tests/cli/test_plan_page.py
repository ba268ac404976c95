"""The page of ``fmimaster plan``: sequence and its cost, stale inputs, levels, loops and their treatment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome, declared_fmu, reference, system
from python_fmu import PythonFmu, plan_of

from fmimaster.front.simulation import Simulation
from fmimaster.pages.plan_loops import initial_loops
from fmimaster.system.model import DependencyKind

Run = Callable[..., Outcome]

RING = ("A.y -> B.u", "B.y -> A.u")
"""Two components that feed each other."""


def words(outcome: Outcome) -> list[str]:
    assert outcome.status == 0, outcome.err
    return [" ".join(line.split()) for line in outcome.out.splitlines()]


def ring(folder: Path, able: Mapping[str, bool], declared: bool = True) -> Path:
    """Two FMUs whose outputs depend on their inputs, in a ring."""
    fmus = {
        name: declared_fmu(
            folder / f"{name}.fmu",
            ["u"],
            {"y": ["u"] if declared else None},
            f'canGetAndSetFMUstate="{str(can).lower()}"',
        )
        for name, can in able.items()
    }
    return system(folder / "s", fmus, RING)


def plan(run: Run, path: Path, *options: str) -> tuple[list[str], dict[str, Any]]:
    """The page, and the same as data."""
    arguments = ("plan", path, "--step-size", "0.1", *options)
    return words(run(*arguments)), json.loads(run(*arguments, "--json").out)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """source → both of left and right → sink; left's output depends on its input directly."""
    fmus = {
        "sink": declared_fmu(tmp_path / "sink.fmu", ["a", "b"], {"y": []}),
        "left": declared_fmu(tmp_path / "left.fmu", ["u"], {"y": ["u"]}),
        "right": declared_fmu(tmp_path / "right.fmu", ["u"], {"y": []}),
        "source": declared_fmu(tmp_path / "source.fmu", [], {"y": []}),
    }
    routes = [
        "source.y -> left.u",
        "source.y -> right.u",
        "left.y -> sink.a",
        "right.y -> sink.b",
    ]
    return system(tmp_path / "s", fmus, routes)


def test_the_sequence_is_shown_with_levels_and_what_each_uses(run: Run, chain: Path) -> None:
    page, facts = plan(run, chain, "--algorithm", "GaussSeidel")
    assert facts["sequence"]["levels"] == [["source"], ["left", "right"], ["sink"]]
    assert "4. sink level 3 uses new values of left and right" in page
    assert "level 2 left, right" in page
    assert "Stale inputs: 0 of 4" in page
    assert facts["sequence"]["cost"] == 0


def test_if_all_inputs_are_stale_the_page_says_that_the_order_has_no_influence(
    run: Run, chain: Path
) -> None:
    page, facts = plan(run, chain, "--algorithm", "Jacobi")
    assert facts["sequence"]["levels"] == [facts["order"]]
    assert "Stale inputs: 4 of 4" in page
    start = "All components start from the same communication point,"
    assert f"{start} so their order has no influence." in page
    assert not any("--algorithm" in line for line in page)  # it was named, so no other is advised


def test_stale_inputs_have_a_weight_and_name_the_outputs_that_they_delay(
    run: Run, tmp_path: Path
) -> None:
    fmus = {
        "A": declared_fmu(tmp_path / "A.fmu", ["u", "v"], {"y": ["v"], "z": []}),
        "B": declared_fmu(tmp_path / "B.fmu", ["u"], {"y": []}),
    }
    path = system(tmp_path / "s", fmus, ["A.y -> B.u", "B.y -> A.u", "B.y -> A.v"])
    page, facts = plan(run, path, "--algorithm", "Jacobi")
    stale = {s["target"]: s for s in facts["sequence"]["stale"]}
    assert (stale["A.v"]["weight"], stale["A.v"]["delays"]) == (1, ["A.y"])
    assert (stale["A.u"]["weight"], stale["A.u"]["delays"]) == (0.01, [])
    assert facts["sequence"]["cost"] == pytest.approx(1.02, rel=1e-12)
    assert "Stale inputs: 3 of 3" in page


def test_a_stale_input_of_a_component_with_discrete_outputs_weighs_more_for_a_reason(
    run: Run,
) -> None:
    options = ("--algorithm", "gauss-seidel", "--sequence", "controller,room")
    page = run("plan", reference("systems/thermostat-fmi3.ssp"), *options).out
    reason = "weight 10:  no output depends on it directly, but discrete outputs change late because of it"
    assert f"controller.x  <-  room.x  1 step late,  {reason}" in page


@pytest.mark.parametrize(("mode", "leads"), [("end", True), ("mid", False), ("lin", False)])
def test_it_warns_of_the_cost_where_fresh_inputs_are_held_at_the_end(
    run: Run, mode: str, leads: bool
) -> None:
    """sequence.md 2.3: the objective must not be used in mode end."""
    path = reference("systems/four-units-fmi3.ssp")
    page, facts = plan(run, path, "--algorithm", "GaussSeidel", "--mode", mode)
    assert facts["sequence"]["leading"] == (["S1.u11", "S2.u21", "S4.u42"] if leads else [])
    assert any("half a step early" in line for line in page) is leads


def test_a_real_loop_that_can_be_solved_is_told_with_the_way_and_the_reason(
    run: Run, tmp_path: Path
) -> None:
    page, facts = plan(run, ring(tmp_path, {"A": True, "B": True}), "--algorithm", "GaussSeidel")
    for kind in ("initialLoops", "stepLoops"):
        (loop,) = facts[kind]
        assert (loop["assumed"], loop["components"]) == (False, ["A", "B"])
        assert loop["treatment"].startswith("solved ")
    assert "1. A.y -> B.u -> B.y -> A.u -> A.y" in page
    assert "real: each output depends directly on the input before it" in page
    assert facts["possible"] == []


def test_a_loop_with_an_fmu_that_cannot_go_back_names_it_and_the_late_input(
    run: Run, tmp_path: Path
) -> None:
    page, facts = plan(run, ring(tmp_path, {"A": True, "B": False}), "--algorithm", "GaussSeidel")
    reason = "because B cannot save and restore its state"
    assert f"not solved: A.u is late, {reason}" in page
    possible = "If 'B' could save and restore the state (canGetAndSetFMUState), loop 1 of Step Mode"
    assert facts["possible"][0] == f"{possible} could be solved in each step."


def test_an_assumed_loop_names_the_fmus_that_declare_nothing(run: Run, tmp_path: Path) -> None:
    path = ring(tmp_path, {"A": True, "B": True}, declared=False)
    page, facts = plan(run, path, "--algorithm", "GaussSeidel")
    assert "assumed: 'A' and 'B' do not declare on which inputs their outputs depend" in page
    assert "1. loop 1 at initialization" in page  # the same one is described once
    assert facts["stepLoops"][0]["undeclared"] == ["A", "B"]
    why = "it may not exist; the run measures that at its start, and solves the loop if it exists"
    assert (facts["stepLoops"][0]["why"], facts["possible"]) == (why, [])


def test_components_that_are_solved_together_are_one_unit_of_their_level(
    run: Run, tmp_path: Path
) -> None:
    fmus = {n: declared_fmu(tmp_path / f"{n}.fmu", ["u"], {"y": ["u"]}) for n in "ABC"}
    path = system(tmp_path / "s", fmus, RING)
    page, facts = plan(run, path, "--algorithm", "GaussSeidel")
    assert facts["sequence"]["together"] == [["A", "B"]]
    assert "level 1 A + B, C" in page
    assert "A and B step together, repeatedly." in page


def test_a_loop_that_branches_is_a_list_of_variables(run: Run, tmp_path: Path) -> None:
    fmus = {
        "A": declared_fmu(tmp_path / "A.fmu", ["u", "v"], {"y": ["u", "v"]}),
        "B": declared_fmu(tmp_path / "B.fmu", ["u"], {"y": ["u"], "z": ["u"]}),
    }
    path = system(tmp_path / "s", fmus, ["A.y -> B.u", "B.y -> A.u", "B.z -> A.v"])
    page, facts = plan(run, path)
    assert facts["stepLoops"][0]["path"] == []
    assert "1. A.u, A.v, A.y, B.u, B.y, B.z" in page


def test_a_table_is_no_component_that_steps_late(run: Run, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text('"time","u"\n0,1\n1,2\n', encoding="utf-8")
    options = ("--input-file", str(tmp_path / "u.csv"))
    page, _ = plan(run, reference("fmi3/Dahlquist.fmu"), *options)
    assert any(line.startswith("Sequence of stepping") for line in page)


def test_levels_that_are_chosen_stand_before_those_that_use_their_values(run: Run) -> None:
    """The bound on levels is none on the sequence: S4 comes last in it, and steps first."""
    path = reference("systems/four-units-fmi2.ssp")
    lines, facts = plan(run, path, "--most-levels", "3", "--sequence", "upstream")
    level_of = {name: k for k, level in enumerate(facts["sequence"]["levels"]) for name in level}
    fresh = [c for c in facts["connections"] if c["fresh"]]
    assert len(fresh) == 3
    assert all(level_of[c["sourceComponent"]] < level_of[c["targetComponent"]] for c in fresh)
    assert facts["order"][0] == "S4"
    assert "Sequence of stepping, chosen by the algorithm, by levels" in lines
    assert "1. S4 level 1" in lines


@pytest.mark.parametrize(
    ("derive", "treatment"),
    [(True, "solved in one Newton step for a.y"), (False, "solved by iteration for a.y")],
)
def test_a_linear_loop_takes_one_newton_step_if_its_fmus_give_derivatives(
    derive: bool, treatment: str
) -> None:
    units = {
        name: PythonFmu(
            inputs={"u": 0.0},
            outputs={"y": lambda v: v.u},
            depends={"y": ["u"]},
            partials={"y": {"u": 1.0}} if derive else None,
        )
        for name in "ab"
    }
    for unit in units.values():
        kinds = {"y": {"u": DependencyKind.CONSTANT}}
        unit.model = replace(unit.model, initial_dependency_kinds=kinds)
    (loop,) = initial_loops(plan_of(units, ["a.y -> b.u", "b.y -> a.u"]))
    assert loop["treatment"] == treatment


# The page -------------------------------------------------------------------------------------------------------------

WIDTHS = 80, 100
"""Columns of usual terminals."""


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize(
    "options",
    [(), ("--algorithm", "GaussSeidel"), ("--event-clock", "predictive", "--programs")],
    ids=lambda o: " ".join(o),
)
def test_the_page_fits_the_terminal(run: Run, options: tuple[str, ...], columns: int) -> None:
    two_mass = reference("systems/two-mass-b1-mixed.ssp")
    outcome = run("plan", two_mass, *options, columns=columns)
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert [line for line in lines if len(line) > columns] == []
    whole = run("plan", two_mass, *options).out
    assert sorted(outcome.out.split()) == sorted(whole.split())  # nothing is cut


def test_the_page_in_python_is_that_of_the_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    two_mass = reference("systems/two-mass-b1-mixed.ssp")
    plan = Simulation(two_mass).plan()
    assert f"{plan}\n" == run("plan", two_mass, columns=100).out
    assert plan.facts == json.loads(run("plan", two_mass, "--json").out)
    assert "Program" not in str(plan)
    assert "Program 'attempt'" in str(Simulation(two_mass).plan(programs=True))
