"""Which instances are solved together in Step Mode."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from python_fmu import PythonFmu, plan_of

from fmimaster.plan.plan import Plan
from fmimaster.plan.step_groups import Loops, step_groups

CASES = {
    case["name"].partition("_")[0]: case
    for case in json.loads(
        (Path(__file__).parents[1] / "data" / "loops_graph_cases.json").read_text(encoding="utf-8")
    )
}


def plan_of_case(name: str) -> Plan:
    """Dependencies that are null in the case are undeclared."""
    units = {}
    for unit, said in CASES[name]["units"].items():
        declared = {y: on for y, on in said["outputs"].items() if on is not None}
        units[unit] = PythonFmu(
            inputs=dict.fromkeys(said["inputs"], 0.0),
            outputs=dict.fromkeys(said["outputs"], lambda v: 0.0),
            depends=declared,
            undeclared=said["outputs"].keys() - declared.keys(),
        )
    return plan_of(units, [f"{a} -> {b}" for a, b in CASES[name]["connections"]])


def direct(undeclared: Iterable[str] = (), **capabilities: Any) -> PythonFmu:
    """A unit whose output depends directly on its input."""
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: v.u},
        depends={"y": ["u"]},
        undeclared=undeclared,
        **capabilities,
    )


def groups(plan: Plan, loops: Loops) -> list[str]:
    """The groups by the names of their members."""
    found = step_groups([i.model for i in plan.instances], plan.links, loops)
    return [" ".join(plan.instances[i].name for i in group) for group in found]


@pytest.mark.parametrize(
    ("name", "real", "every"),
    [
        ("G1", [], []),
        ("G2", ["A B"], ["A B"]),
        ("G3", [], ["A B"]),
        ("G4", [], []),
        ("G5", ["A B C"], ["A B C"]),
    ],
)
def test_groups_of_the_structural_cases(name: str, real: list[str], every: list[str]) -> None:
    """loops.md 7.1, in Step Mode: loops that share a unit are one group, since a unit steps as a whole."""
    plan = plan_of_case(name)
    assert groups(plan, Loops.REAL) == real
    assert groups(plan, Loops.ALL) == every
    assert groups(plan, Loops.NONE) == []


RING = ["a.y -> b.u", "b.y -> c.u", "c.y -> a.u"]


def test_a_loop_is_broken_at_an_instance_that_cannot_go_back() -> None:
    stuck = direct(can_get_and_set_fmu_state=False)
    plan = plan_of({"a": direct(), "b": direct(), "c": stuck}, RING)
    assert groups(plan, Loops.ALL) == []


def test_what_is_left_of_a_loop_without_such_an_instance_is_solved() -> None:
    both = PythonFmu(
        inputs={"u": 0.0, "w": 0.0}, outputs={"y": lambda v: v.u}, depends={"y": ["u", "w"]}
    )
    stuck = direct(can_get_and_set_fmu_state=False)
    connections = ["a.y -> b.u", "b.y -> a.u", "a.y -> c.u", "c.y -> a.w"]
    plan = plan_of({"a": both, "b": direct(), "c": stuck}, connections)
    assert groups(plan, Loops.REAL) == ["a b"]


def test_an_instance_that_feeds_itself_is_a_group() -> None:
    plan = plan_of({"a": direct(), "b": direct()}, ["a.y -> a.u", "a.y -> b.u"])
    assert groups(plan, Loops.REAL) == ["a"]


def test_groups_do_not_depend_on_the_order_of_listing() -> None:
    """loops.md 7.4."""
    units = {name: direct() for name in "abcdef"}
    rings = ["a.y -> b.u", "b.y -> a.u", "c.y -> d.u", "d.y -> c.u", "d.y -> e.u", "e.y -> f.u"]
    expected = {frozenset("ab"), frozenset("cd")}
    for names in ("abcdef", "fedcba", "dbface"):
        plan = plan_of({n: units[n] for n in names}, rings)
        assert {frozenset(g.split()) for g in groups(plan, Loops.REAL)} == expected
