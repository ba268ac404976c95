"""The plan: what is computed from a description before an FMU is loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from python_fmu import PythonFmu, describe, plan_of

from fmimaster.algorithms import Jacobi
from fmimaster.algorithms.assemble import assemble
from fmimaster.base.errors import OptionError
from fmimaster.plan.layout import Group
from fmimaster.plan.make import PlanRequest, make_plan
from fmimaster.plan.plan import Plan
from fmimaster.system.model import Causality, DataType, Initial, Transformation, Variability
from fmimaster.system.resolve import resolve


def source(**options: Any) -> PythonFmu:
    return PythonFmu(states={"x": 0.0}, outputs={"y": lambda v: v.x}, **options)


def sink(**options: Any) -> PythonFmu:
    return PythonFmu(inputs={"u": 0.0}, outputs={"z": lambda v: v.u}, **options)


def group(plan: Plan, instance: int, which: Group) -> list[str]:
    return [v.name for s in plan.layout.segments(instance, which) for v in s.variables]


# Groups ---------------------------------------------------------------------------------------------------------------


def test_instances_keep_the_order_of_the_description() -> None:
    plan = plan_of({"b": source(), "a": sink()})
    assert [instance.name for instance in plan.instances] == ["b", "a"]


def test_connected_continuous_inputs_are_told_from_all_others() -> None:
    target = PythonFmu(
        inputs={"u": 0.0, "d": 0.0, "n": 0, "f": 0.0, "open": 0.0},
        attributes={
            "d": {"variability": Variability.DISCRETE},
            "n": {"type": DataType.INT32},
            "f": {"type": DataType.FLOAT32},
        },
    )
    feeds = PythonFmu(
        outputs={"y": lambda v: 0.0, "n": lambda v: 0}, attributes={"n": {"type": DataType.INT32}}
    )
    connections = ["s.y -> t.u", "s.y -> t.d", "s.n -> t.n", "s.y -> t.f"]
    plan = plan_of({"s": feeds, "t": target}, connections)
    assert group(plan, 1, Group.CONTINUOUS) == ["u"]
    # a polynomial is for Float64 only: Float32 is held, as a discrete input
    assert sorted(group(plan, 1, Group.DISCRETE)) == ["d", "f", "n"]


def test_start_values_are_grouped_by_when_they_can_be_set() -> None:
    unit = PythonFmu(
        parameters={"size": 2, "p": 1.0},
        inputs={"u": 0.0, "open": 0.0},
        states={"x": 0.0, "guess": 0.0},
        attributes={
            "size": {"type": DataType.UINT64, "causality": Causality.STRUCTURAL_PARAMETER},
            "guess": {"initial": Initial.APPROX},
        },
    )
    names = ("size", "p", "u", "open", "x", "guess")
    plan = plan_of({"s": source(), "t": unit}, ["s.y -> t.u"], {f"t.{n}": 3 for n in names})
    assert group(plan, 1, Group.STRUCTURAL) == ["size"]
    assert sorted(group(plan, 1, Group.START)) == ["guess", "open", "p", "u", "x"]
    # a guess is not to be set again, and a connected input gets its value from the connection
    assert sorted(group(plan, 1, Group.INITIAL)) == ["open", "p", "x"]


def test_only_what_is_fed_on_or_recorded_is_read() -> None:
    unit = PythonFmu(outputs={"y": lambda v: 0.0, "z": lambda v: 0.0, "w": lambda v: 0.0})
    plan = plan_of({"s": unit, "t": sink()}, ["s.y -> t.u"], outputs=["s.z"])
    assert group(plan, 0, Group.OUTPUTS) == ["y", "z"]


def derivatives(order: str) -> Plan:
    """A source with outputs in this order, a = der(v), v = der(x); only x is wanted."""
    attributes = {"v": {"derivative_of": "x"}, "a": {"derivative_of": "v"}}
    unit = PythonFmu(outputs=dict.fromkeys(order, lambda v: 0.0), attributes=attributes)
    return plan_of({"s": unit, "t": sink()}, ["s.x -> t.u"], outputs=["t.z"])


@pytest.mark.parametrize("order", ["xva", "avx", "vax"])
def test_derivatives_of_what_feeds_others_are_read_too_whatever_their_order(order: str) -> None:
    plan = derivatives(order)
    assert set(group(plan, 0, Group.OUTPUTS)) == {"x", "v", "a"}
    (route,) = plan.routes[1, Group.CONTINUOUS]
    slots = [plan.layout.slots[0, Group.OUTPUTS, name][1] for name in ("v", "a")]
    assert route.derivatives == tuple(slots)


def test_a_circle_of_derivatives_comes_to_an_end() -> None:
    attributes = {"v": {"derivative_of": "x"}, "x": {"derivative_of": "v"}}
    unit = PythonFmu(outputs=dict.fromkeys("xv", lambda v: 0.0), attributes=attributes)
    plan = plan_of({"s": unit, "t": sink()}, ["s.x -> t.u"])
    (route,) = plan.routes[1, Group.CONTINUOUS]
    assert len(route.derivatives) == 2


# Wires ----------------------------------------------------------------------------------------------------------------


def test_a_wire_leads_from_the_slot_of_the_output_to_that_of_the_input() -> None:
    plan = plan_of({"s": source(), "t": sink()}, [("s.y -> t.u", {"factor": 2.0, "offset": 1.0})])
    (route,) = plan.routes[1, Group.CONTINUOUS]
    assert (route.source_type, route.source) == plan.layout.slots[0, Group.OUTPUTS, "y"]
    assert (route.target_type, route.target) == plan.layout.slots[1, Group.CONTINUOUS, "u"]
    assert route.transformation == Transformation(2.0, 1.0)


def test_wires_of_a_group_are_in_the_order_of_its_slots() -> None:
    target = PythonFmu(inputs={"a": 0.0, "b": 0.0, "c": 0.0})
    connections = ["s.y -> t.c", "s.y -> t.a", "s.y -> t.b"]
    plan = plan_of({"s": source(), "t": target}, connections)
    routes = plan.routes[1, Group.CONTINUOUS]
    assert [w.link.input.name for w in routes] == ["a", "b", "c"]
    assert [w.target.start for w in routes] == sorted(w.target.start for w in routes)


def test_an_instance_without_connections_has_no_inputs() -> None:
    plan = plan_of({"s": source(), "t": sink()}, ["s.y -> t.u"])
    assert [plan.has_inputs(i) for i in (0, 1)] == [False, True]


# Loops and orders -----------------------------------------------------------------------------------------------------


def test_a_state_that_starts_from_an_input_closes_a_loop_at_initialization_only() -> None:  # I1
    a = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, initial_depends={"y": ["u"]})
    b = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, depends={"y": ["u"]})
    plan = plan_of({"a": a, "b": b}, ["b.y -> a.u", "a.y -> b.u"])
    assert len(plan.initial_loops) == 1
    assert plan.step_loops == ()


# What is recorded -----------------------------------------------------------------------------------------------------


def recorded(plan: Plan) -> list[str]:
    return [column.name for column in plan.recorded]


def test_all_outputs_are_recorded_if_nothing_else_is_said() -> None:
    assert recorded(plan_of({"s": source(), "t": sink()})) == ["s.y", "t.z"]


def test_other_variables_are_recorded_if_their_names_are_given() -> None:
    assert recorded(plan_of({"s": source(), "t": sink()}, outputs=["t.u", "s.*"])) == [
        "s.x",
        "s.y",
        "t.u",
    ]


def test_brackets_belong_to_a_name() -> None:
    unit = PythonFmu(outputs={"x[1]": lambda v: 0.0, "x1": lambda v: 0.0})
    assert recorded(plan_of({"s": unit}, outputs=["s.x[1]"])) == ["s.x[1]"]
    assert recorded(plan_of({"s": unit}, outputs=["s.x[*"])) == ["s.x[1]"]


def test_a_glob_that_fits_nothing_is_refused_with_a_suggestion() -> None:
    with pytest.raises(OptionError, match=r"'s\.yy' fits no variable\. Did you mean 's\.y'\?"):
        plan_of({"s": source()}, outputs=["s.y", "s.yy"])


def test_binaries_are_recorded() -> None:
    unit = PythonFmu(outputs={"b": lambda v: b""}, attributes={"b": {"type": DataType.BINARY}})
    assert recorded(plan_of({"s": unit})) == ["s.b"]


def test_where_nothing_is_recorded_a_note_names_the_option() -> None:
    unit = PythonFmu(states={"x": 1.0})
    note = "only time is recorded: .*--output-variable"
    assert re.match(note, plan_of({"s": unit}).notes[-1])
    assert plan_of({"s": unit}, outputs=["s.x"]).notes == ()


# Large systems --------------------------------------------------------------------------------------------------------


def work(n: int, **options: Any) -> int:
    """How many Python calls, and steps of generators, the plan and the programs of a ring of n instances take."""
    unit = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0}, **options)
    units = {f"i{k}": unit for k in range(n)}
    connections = [f"i{k}.y -> i{(k + 1) % n}.u" for k in range(n)]
    resolved = resolve(describe(units, connections), dict.fromkeys(units, unit.model))
    names = [f"i{k}.y" for k in range(n)]
    return calls(lambda: assemble(make_plan(resolved, PlanRequest(outputs=names)), Jacobi()))


def calls(work: Callable[[], object]) -> int:
    """How many Python calls, and steps of generators, some work takes."""
    made = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal made
        made += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.parametrize("options", [{}, {"depends": {"y": ["u"]}}, {"has_event_mode": True}])
def test_the_work_of_planning_grows_with_the_size_of_the_system_and_no_faster(
    options: dict[str, Any],
) -> None:
    assert work(120, **options) < 2.2 * work(60, **options)


@pytest.mark.parametrize("variability", [Variability.CONTINUOUS, Variability.DISCRETE])
def test_the_work_of_planning_grows_with_the_number_of_variables_and_no_faster(
    variability: Variability,
) -> None:
    def planning(n: int) -> int:
        names = [f"y{k}" for k in range(n)]
        attributes = {name: {"variability": variability} for name in names}
        unit = PythonFmu(outputs=dict.fromkeys(names, lambda v: 0.0), attributes=attributes)
        resolved = resolve(describe({"s": unit}), {"s": unit.model})
        return calls(lambda: make_plan(resolved, PlanRequest()))

    assert planning(400) < 2.2 * planning(200)


def test_fmus_that_need_another_program_are_named() -> None:
    units = {name: PythonFmu(needs_execution_tool=name != "b") for name in "abc"}
    note = "another program to run (needsExecutionTool): it must be installed, with its licence"
    assert f"'a', 'c' need {note}" in plan_of(units).notes
    assert f"'a' needs {note}" in plan_of({"a": units["a"]}).notes
    assert not any("needsExecutionTool" in n for n in plan_of({"b": units["b"]}).notes)
