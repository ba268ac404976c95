"""Algebraic loops in Step Mode: solved by going back and stepping again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from loop_cases import CASES, MORE, MOST_SWEEPS, LoopCase
from python_fmu import Bench, PythonFmu

from fmimaster import AccuracyError, AccuracyWarning, Simulation
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Waveform
from fmimaster.algorithms.settling import Settling
from fmimaster.base.errors import LoopError
from fmimaster.events.event_clock import EarlyReturn
from fmimaster.fmu.instance import StepAnswer
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.step_groups import Loops
from fmimaster.run.rows import Counted
from fmimaster.steps.locate import Locate
from fmimaster.system.model import DataType
from fmimaster.system.states import FmiCall

EXACT = LoopSolver(relative=1e-10)
"""The tolerances of the reference runs."""


def units_of(case: LoopCase) -> dict[str, PythonFmu]:
    """The units of a case without state. Before the first step an output has the start value of the input that it feeds,
    so that the loop is not solved yet."""
    pairs = [c.split(" -> ") for c in case.connections]
    fed = {target: source for source, target in pairs}
    start = {source: case.start.get(target, 0.0) for target, source in fed.items()}
    units = {}
    for name, unit in case.units.items():
        inputs = ["u"] if len(unit.start) == 1 else [f"u{k + 1}" for k in range(len(unit.start))]

        def output(v: Any, unit: Any = unit, inputs: Any = inputs, name: str = name) -> float:
            if v.t == 0:
                return start[f"{name}.y"]
            return unit.function(*(getattr(v, u) for u in inputs))  # type: ignore[no-any-return]

        units[name] = PythonFmu(
            inputs=dict.fromkeys(inputs, 0.0),
            outputs={"y": output},
            depends={"y": inputs},
            initial_depends={"y": ()},
            attributes={"y": {"nominal": unit.nominal or 1.0, "has_nominal": bool(unit.nominal)}},
        )
    return units


def stepped(case: LoopCase, algorithm: Algorithm | None = None) -> Bench:
    """The units of a case, after initialization."""
    b = Bench(
        units_of(case),
        case.connections,
        case.start,
        algorithm=algorithm or Jacobi(),
        settling=Settling(EXACT),
    )
    b.initialize()
    return b


def sweeps(b: Bench) -> int:
    """How often each instance was stepped, the same number for all."""
    (count,) = set(b.counted(Counted.STEPS).values())
    return count


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.solution])
def test_loops_are_solved_in_one_step(name: str) -> None:
    """loops.md 7.2, L1 to L9 in Step Mode with rollback: values, and sweeps within 1.5 times the reference runs."""
    case = CASES[name]
    b = stepped(case)
    assert b.run(b.programs.attempt, 0.0, 0.1).stopped is None
    for output, value in case.solution.items():
        assert b.value(output) == pytest.approx(value, rel=1e-8)
    assert sweeps(b) <= MORE * case.sweeps


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.reason])
def test_loops_without_solution_fail_with_their_class(name: str) -> None:
    """loops.md 7.2, L6a and L6b in Step Mode with rollback: the class, at most 200 sweeps, and the best attempt."""
    case = CASES[name]
    b = stepped(case)
    with pytest.raises(LoopError) as failed:
        b.run(b.programs.attempt, 0.0, 0.1)
    assert failed.value.reason == case.reason
    assert failed.value.sweeps == sweeps(b) <= MOST_SWEEPS
    assert failed.value.time == 0.1
    assert failed.value.loop == ("a.u", "a.y", "b.u", "b.y")
    if name == "L6a":
        assert list(failed.value.values.values()) == pytest.approx([0.5], abs=1e-3)
        assert list(failed.value.residuals.values()) == pytest.approx([0.75], abs=1e-6)


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("name", ["L2", "L5", "L9"])
def test_values_do_not_depend_on_the_order_of_listing(name: str) -> None:
    """loops.md 7.4, in Step Mode: the same values to the last bit."""
    case, random, found = CASES[name], Random(1), set()
    for _ in range(6):
        units, connections = list(units_of(case).items()), list(case.connections)
        random.shuffle(units)
        random.shuffle(connections)
        b = Bench(dict(units), connections, case.start)
        b.initialize()
        b.run(b.programs.attempt, 0.0, 0.1)
        found.add(tuple(float(b.value(f"{n}.y")).hex() for n in sorted(case.units)))
    assert len(found) == 1


def row(factors: Mapping[str, float], offset: float) -> PythonFmu:
    """y = offset + the sum of factors times inputs; 0 before the first step."""
    return PythonFmu(
        inputs=dict.fromkeys(factors, 0.0),
        outputs={
            "y": lambda v: v.t and offset + sum(f * getattr(v, u) for u, f in factors.items())
        },
        depends={"y": tuple(factors)},
        initial_depends={"y": ()},
    )


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("seed", range(4))
def test_random_affine_loops_are_solved_in_any_order_of_listing(seed: int) -> None:
    """loops.md 7.4, in Step Mode: several loops that share units are one group, and all bits stay."""
    random = np.random.default_rng(seed)
    n = 6
    matrix = random.normal(size=(n, n)) * (random.random((n, n)) < 0.35)
    offset = random.normal(size=n)
    names = [f"u{k}" for k in range(n)]
    links = [(j, i) for i in range(n) for j in range(n) if matrix[i, j]]
    found = set()
    for _ in range(4):
        units = {
            names[i]: row({names[j]: matrix[i, j] for j in range(n) if (j, i) in links}, offset[i])
            for i in random.permutation(n)
        }
        random.shuffle(links)
        connections = [f"{names[j]}.y -> {names[i]}.{names[j]}" for j, i in links]
        b = Bench(units, connections, settling=Settling(EXACT))
        b.initialize()
        for k in range(n):  # units outside of loops see new values from step to step
            b.run(b.programs.attempt, 0.1 * k, 0.1 * (k + 1))
        values = [float(b.value(f"{name}.y")) for name in names]
        assert values == pytest.approx(np.linalg.solve(np.eye(n) - matrix, offset), rel=1e-7)
        found.add(tuple(value.hex() for value in values))
    assert len(found) == 1


def test_nothing_is_read_between_setting_and_stepping() -> None:
    """loops.md 2: in Step Mode FMI forbids to read after setting without a step."""
    b = stepped(CASES["L1"])
    b.run(b.programs.attempt, 0.0, 0.1)
    for instance in b.instances.values():
        calls = [c for c, _ in instance.log]
        at = calls.index(FmiCall.DO_STEP)
        for before, after in zip(calls[at - 1 :], calls[at:], strict=False):
            assert not (before is FmiCall.SET_INPUT and after is FmiCall.GET)


# Where loops are solved -----------------------------------------------------------------------------------------------


def source(rate: float = 1.0) -> PythonFmu:
    """y = 1 + rate t."""
    return PythonFmu(outputs={"y": lambda v: 1.0 + rate * v.t})


def affine(gain: float, offset: float = 0.0, **more: Any) -> PythonFmu:
    """y = gain u + w + offset."""
    return PythonFmu(
        inputs={"u": 0.0, "w": 0.0},
        outputs={"y": lambda v: gain * v.u + v.w + offset},
        depends={"y": ["u", "w"]},
        **more,
    )


def integrator(**more: Any) -> PythonFmu:
    """x' = u."""

    def step(v: Any, h: float) -> None:
        v.x += h * (v.course("u", v.t) + v.course("u", v.t + h)) / 2

    return PythonFmu(
        inputs={"u": 0.0}, states={"x": 0.0}, outputs={"y": lambda v: v.x}, step=step, **more
    )


BESIDE = ["s.y -> a.w", "a.y -> b.u", "b.y -> a.u", "a.y -> i.u"]


def beside(**more: Any) -> dict[str, PythonFmu]:
    """A loop of a and b, between a source and an integrator."""
    return {"i": integrator(), "a": affine(-2.0, **more), "b": affine(1.5), "s": source()}


Simulate = Callable[..., Simulation]


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("algorithm", [Jacobi(), GaussSeidel()], ids=["jacobi", "gauss-seidel"])
def test_units_outside_of_the_loop_keep_their_algorithm(
    simulation: Simulate, algorithm: Algorithm
) -> None:
    run = simulation(beside(), BESIDE, algorithm=algorithm, stop_time=1, step_size=0.1).run()
    a = (1.0 + run.time) / 4
    assert run["a.y"] == pytest.approx(a, rel=1e-9)
    held = a[:-1] if isinstance(algorithm, Jacobi) else a[1:]
    assert run["i.y"][-1] == pytest.approx(0.1 * sum(held), rel=1e-9)
    calls = {i.name: i.calls for i in run.statistics.instances}
    assert calls["i"] == calls["s"] == 10
    assert calls["a"] == calls["b"] > 10


def test_a_group_steps_together_where_its_first_member_stands(simulation: Simulate) -> None:
    prepared = simulation(beside(), BESIDE, algorithm=GaussSeidel(), stop_time=1, step_size=0.1)
    plan = prepared.prepare().plan
    assert [{plan.instances[i].name for i in group} for group in plan.step_groups] == [{"a", "b"}]


@pytest.mark.usefixtures("each_executor")
def test_sweeps_contain_the_solution_of_the_loop() -> None:
    """A Waveform without tolerance solves the loop in each of its sweeps."""
    case = CASES["L5"]
    b = stepped(case, Waveform(GaussSeidel(), sweeps=2))
    b.run(b.programs.attempt, 0.0, 0.1)
    for output, value in case.solution.items():
        assert b.value(output) == pytest.approx(value, rel=1e-8)


# Loops that are not solved --------------------------------------------------------------------------------------------


STUCK = {"can_get_and_set_fmu_state": False}


def test_a_unit_without_rollback_is_a_warning_that_names_the_input(simulation: Simulate) -> None:
    """loops.md 7.5: the run continues."""
    made = simulation(
        beside(**STUCK), BESIDE, algorithm=GaussSeidel(), stop_time=0.2, step_size=0.1
    )
    with pytest.warns(AccuracyWarning) as warned:
        results = made.run()
    (text,) = {str(w.message) for w in warned}
    assert "'a.u', 'a.y', 'b.u', 'b.y' is not solved in Step Mode" in text
    assert "'a' cannot get and set its FMU state (canGetAndSetFMUState is false)" in text
    assert "Instead the input 'a.u' is 1 step late (held)." in text
    assert results.statistics.warnings == (text,)
    assert len(results.time) == 3


def test_a_unit_without_rollback_is_an_error_with_strict(simulation: Simulate) -> None:
    """loops.md 7.5: nothing is simulated."""
    units = beside(**STUCK)
    made = simulation(units, BESIDE, stop_time=0.2, step_size=0.1, strict=True)
    with pytest.raises(AccuracyError, match=r"'a' cannot get and set its FMU state") as refused:
        made.run()
    assert refused.value.results is None
    assert units["a"].instances == []


def test_with_rollback_strict_has_nothing_to_refuse(simulation: Simulate) -> None:
    simulation(beside(), BESIDE, stop_time=0.2, step_size=0.1, strict=True).run()


ASSUMED: Mapping[str, Any] = {"undeclared": ["y"]}


def test_an_assumed_loop_is_left_with_a_note(simulation: Simulate) -> None:
    made = simulation(beside(**ASSUMED), BESIDE, stop_time=0.2, step_size=0.1)
    assert not any("loop" in n for n in made.prepare().notes)  # it is found out at the start
    page = " ".join(str(made.plan()).split())
    assert "it may not exist; the run measures that at its start" in page
    prepared = replace(made, loops=Loops.REAL).prepare()
    assert prepared.accuracy_warnings == ()
    (note,) = (n for n in prepared.notes if "loop" in n)
    assert "may not be a loop: 'a' does not declare on which inputs its outputs depend" in note
    assert "loops=Loops.ALL (--loops all)" in note


@pytest.mark.usefixtures("each_executor")
def test_an_assumed_loop_is_solved_on_request(simulation: Simulate) -> None:
    units = beside(**ASSUMED)
    made = simulation(units, BESIDE, stop_time=0.2, step_size=0.1, loops=Loops.ALL)
    assert not any("loop" in n for n in made.prepare().notes)
    assert made.run()["a.y"][-1] == pytest.approx(1.2 / 4, rel=1e-9)


def test_no_loop_is_solved_if_the_settings_say_so(simulation: Simulate) -> None:
    made = simulation(beside(), BESIDE, stop_time=0.2, step_size=0.1, loops=Loops.NONE)
    prepared = made.prepare()
    assert prepared.plan.step_groups == ()
    (note,) = (n for n in prepared.notes if "loop" in n)
    assert "as the settings say (loops)" in note


# Whether FMUs repeat a step exactly -----------------------------------------------------------------------------------


def drifting() -> PythonFmu:
    """y = -2 u + w + 1e-6 n, n: how often it was stepped, which is no part of its state."""
    steps = [0]

    def step(v: Any, h: float) -> None:
        steps[0] += 1

    return PythonFmu(
        inputs={"u": 0.0, "w": 0.0},
        outputs={"y": lambda v: -2.0 * v.u + v.w + 1e-6 * steps[0]},
        depends={"y": ["u", "w"]},
        step=step,
    )


@pytest.mark.usefixtures("each_executor")
def test_an_fmu_that_does_not_repeat_a_step_exactly_is_found_before_the_first_step(
    simulation: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    """real-fmus.md 15: get/set state is measured before a method relies on it, and a warning says so."""
    units, solver = {**beside(), "a": drifting()}, LoopSolver(relative=1e-4)
    made = simulation(units, BESIDE, stop_time=0.2, step_size=0.1, loop_solver=solver)
    with pytest.warns(
        AccuracyWarning, match=r"'a' does not repeat a step exactly.*'y' differs by 1e-06"
    ):
        results = made.run()
    assert len(results.time) == 3
    assert "'a' does not repeat a step exactly" in caplog.messages[0]
    (warning,) = results.statistics.warnings
    assert "'y' differs by 1e-06 (relative)" in warning


@pytest.mark.usefixtures("each_executor")
def test_with_strict_such_an_fmu_is_refused(simulation: Simulate) -> None:
    units, solver = {**beside(), "a": drifting()}, LoopSolver(relative=1e-4)
    made = simulation(units, BESIDE, stop_time=0.2, step_size=0.1, loop_solver=solver, strict=True)
    with pytest.raises(AccuracyError, match="does not repeat a step exactly") as refused:
        made.run()
    assert len(refused.value.results.time) == 3


@pytest.mark.usefixtures("each_executor")
def test_the_measurement_leaves_nothing_behind(simulation: Simulate) -> None:
    units = beside()
    results = simulation(units, BESIDE, stop_time=0.2, step_size=0.1).run()
    steps = {n: len(u.instances[0].called(FmiCall.DO_STEP)) for n, u in units.items()}
    calls = {i.name: i.calls for i in results.statistics.instances}
    assert steps == {n: count + (3 if n in "ab" else 0) for n, count in calls.items()}
    assert results["a.y"] == pytest.approx((1.0 + results.time) / 4, rel=1e-9)


def test_nothing_is_measured_where_nothing_relies_on_it(simulation: Simulate) -> None:
    units = beside()
    simulation(units, BESIDE, stop_time=0.2, step_size=0.1, loops=Loops.NONE).run()
    assert units["a"].instances[0].called(FmiCall.SET_FMU_STATE) == []


# Beside what else changes steps ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_executor")
def test_steps_with_a_loop_can_be_undone(simulation: Simulate) -> None:
    """A rule that locates changes of discrete outputs undoes steps, the solution of the loop included."""
    integer = {"type": DataType.INT32}
    units = {
        **beside(),
        "n": PythonFmu(outputs={"n": lambda v: int(v.t > 0.333)}, attributes={"n": integer}),
        "m": PythonFmu(inputs={"n": 0}, attributes={"n": integer}),
    }
    made = simulation(units, [*BESIDE, "n.n -> m.n"], stop_time=1, step_size=Locate("0.1"))
    results = made.run()
    assert results.statistics.rejections > 0
    (time,) = results.time[np.flatnonzero(np.diff(results["n.n"])) + 1]
    assert time == pytest.approx(0.333, abs=1e-3)
    assert results["a.y"] == pytest.approx((1.0 + results.time) / 4, rel=1e-7)


def test_where_fmus_stop_at_events_a_loop_is_a_warning(simulation: Simulate) -> None:
    def step(v: Any, h: float) -> StepAnswer | None:
        return None

    stopping = PythonFmu(
        outputs={"y": lambda v: 1.0 + v.t},
        step=step,
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )
    units = {**beside(), "s": stopping}
    made = simulation(units, BESIDE, stop_time=0.2, step_size=0.1, event_clock=EarlyReturn())
    (warning,) = made.prepare().accuracy_warnings
    assert (
        "'s' ends steps at its events, but a loop of others would be solved at another time"
        in warning
    )
    assert "Use Waveform(Aligned(GaussSeidel(Polynomial(2, 0))), solver=LoopSolver())" in warning


@pytest.mark.usefixtures("each_executor")
def test_an_fmu_that_ignores_derivatives_of_its_inputs_is_found(simulation: Simulate) -> None:
    """With lines it computes with the inputs at the start of the step, and the loop would be wrong without a sign of it."""
    ignoring = affine(-2.0, max_input_derivative_order=1)
    units = {**beside(), "a": ignoring}
    made = simulation(units, BESIDE, stop_time=0.2, step_size=0.1, algorithm="Jacobi")
    assert made.run()["a.y"][-1] == pytest.approx(
        1.2 / 4, rel=1e-9
    )  # held inputs need no derivatives

    lines = replace(made, algorithm=GaussSeidel(Polynomial(2, 0)))
    with pytest.warns(
        AccuracyWarning, match=r"'a' accepts derivatives of its inputs .* but ignores them"
    ):
        assert lines.run()["a.y"][-1] != pytest.approx(1.2 / 4, rel=1e-2)


@pytest.mark.usefixtures("each_executor")
def test_an_fmu_that_follows_its_inputs_solves_the_loop_with_lines(simulation: Simulate) -> None:
    following = PythonFmu(
        inputs={"u": 0.0, "w": 0.0},
        outputs={"y": lambda v: -2.0 * v.course("u", v.t) + v.course("w", v.t)},
        depends={"y": ["u", "w"]},
        max_input_derivative_order=1,
    )
    units = {**beside(), "a": following}
    algorithm = GaussSeidel(Polynomial(2, 0))
    made = simulation(units, BESIDE, algorithm=algorithm, stop_time=0.2, step_size=0.1, strict=True)
    assert made.run()["a.y"][-1] == pytest.approx(1.2 / 4, rel=1e-9)


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("undeclared", [(), ("y1", "y2")], ids=["G1", "G3"])
def test_a_loop_that_is_only_assumed_gives_the_values_of_no_loop(
    simulation: Simulate, undeclared: tuple[str, ...]
) -> None:
    """loops.md 1, G1 and G3, in Step Mode: y1 = 2 u1, y = 3 u, y2 = u2 + 1; u1 = 1 + t."""
    a = PythonFmu(
        inputs={"u1": 0.0, "u2": 0.0},
        outputs={"y1": lambda v: 2 * v.u1, "y2": lambda v: v.u2 + 1},
        depends={"y1": ["u1"], "y2": ["u2"]},
        undeclared=undeclared,
    )
    b = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 3 * v.u}, depends={"y": ["u"]})
    connections = ["s.y -> a.u1", "a.y1 -> b.u", "b.y -> a.u2"]
    made = simulation(
        {"a": a, "b": b, "s": source()},
        connections,
        algorithm=GaussSeidel(),
        loops=Loops.ALL,
        stop_time=0.2,
        step_size=0.1,
    )
    results = made.run()
    u1 = 1 + results.time
    assert results["a.y1"] == pytest.approx(2 * u1, rel=1e-12)
    if undeclared:  # solved; without a loop the last output is late by a step
        assert results["b.y"] == pytest.approx(6 * u1, rel=1e-12)
        assert results["a.y2"] == pytest.approx(6 * u1 + 1, rel=1e-12)
    else:
        assert not made.prepare().plan.step_groups
