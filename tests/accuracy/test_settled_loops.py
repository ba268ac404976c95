"""Loops that FMUs do not declare, or declare not to exist, are found at the start of a run and solved."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from misbehaving_fmu import Act, misbehaving
from python_fmu import PythonFmu
from same_runs import assert_same
from scipy.linalg import expm

from fmimaster import Results, Simulation, SystemBuilder
from fmimaster.base.errors import AccuracyWarning, CallError
from fmimaster.fmu.instance import StepAnswer
from fmimaster.run import Backend
from fmimaster.system.model import DataType

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

Simulate = Callable[..., Simulation]

ABSENT = {"dependencies": None, "dependenciesKind": None}
EMPTY = {"dependencies": "", "dependenciesKind": None}
NO_STATE = {"canGetAndSetFMUState": None, "canSerializeFMUState": None}


class Loop:
    """Units x' = -k x + u / 2 + e, y = 0.7 x + d u in a ring; the product of all d is the gain of the loop."""

    def __init__(
        self,
        folder: Path,
        version: str,
        gain: float,
        units: int,
        *,
        is_hidden: bool = False,
        **edited: Any,
    ) -> None:
        folder.mkdir(exist_ok=True)
        builder = SystemBuilder("loop")
        self.names, n = "abcdefghijkl"[:units], units
        d, x0 = [gain, *[1.0] * (n - 1)], [1.0 - k / 2 for k in range(n)]
        for k, name in enumerate(self.names):
            made = linear_fmu(
                folder / f"{name}-made.fmu",
                version,
                a=[[-1.0 - k]],
                b=[[0.5]],
                c=[[0.7]],
                d=[[d[k]]],
                e=[float(k == 0)],
                x0=[x0[k]],
                inputs=["u"],
                outputs=["y"],
            )
            fmu = edited_fmu(made, folder / f"{name}.fmu", **edited)
            if is_hidden:
                fmu = changed(fmu, folder / f"{name}-hidden.fmu", description=_hidden)
            builder.add(name, fmu)
        for k, name in enumerate(self.names):
            builder.connect(f"{name}.y", f"{self.names[(k + 1) % n]}.u")
        self.description = builder.build()
        links, e = np.roll(np.eye(n), 1, axis=0), np.eye(n)[:, :1]
        self._outputs = np.linalg.inv(np.eye(n) - np.diag(d) @ links) * 0.7
        a = np.diag([-1.0 - k for k in range(n)]) + 0.5 * links @ self._outputs
        self._matrix, self._x0 = np.block([[a, e], [np.zeros((1, n + 1))]]), np.array([*x0, 1.0])

    def simulate(self, **settings: Any) -> Results:
        return Simulation(self.description, stop_time=1, step_size=0.05, **settings).run()

    def error(self, results: Results) -> float:
        """Largest error of an output, relative to its largest value."""
        states = np.array([expm(self._matrix * t) @ self._x0 for t in results.time])[:, :-1]
        exact = states @ self._outputs.T
        found = np.column_stack([results[f"{name}.y"] for name in self.names])
        return float((np.abs(found - exact).max(0) / np.abs(exact).max(0)).max())


@pytest.mark.parametrize(
    ("version", "gain"), [("fmi2", -0.6), ("fmi3", -1.05), ("fmi2", -3.0), ("fmi3", 0.5)]
)
@pytest.mark.parametrize("unknowns", [ABSENT, EMPTY], ids=["not declared", "declared wrongly"])
def test_a_loop_that_is_not_declared_is_solved(
    tmp_path: Path, version: str, gain: float, unknowns: Any
) -> None:
    """Lines of the default coupling over such a loop, if it is left to them, grow to 1e12 and more."""
    loop = Loop(tmp_path, version, gain, 3 if gain == -1.05 else 2, unknowns={"y": unknowns})
    results = loop.simulate()
    assert loop.error(results) < 1e-3
    texts = results.statistics.notes if unknowns is ABSENT else results.statistics.warnings
    (text,) = [text for text in texts if "'y' on 'u' directly" in text]
    assert all(f"'{name}'" in text for name in loop.names)


def _hidden(text: str) -> str:
    """Outputs that are said to depend on nothing in Step Mode, but as they do in Initialization Mode."""
    root = ET.fromstring(text)
    paths = "ModelStructure/Outputs/Unknown", "ModelStructure/Output"
    for entry in (entry for path in paths for entry in root.iterfind(path)):
        entry.set("dependencies", "")
        entry.attrib.pop("dependenciesKind", None)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


@pytest.mark.parametrize(
    ("version", "gain", "units"), [("fmi2", -0.6, 2), ("fmi3", -2.0, 2), ("fmi3", -1.5, 8)]
)
def test_a_loop_that_is_hidden_in_step_mode_only_is_found_by_short_steps(
    tmp_path: Path, version: str, gain: float, units: int
) -> None:
    loop = Loop(tmp_path, version, gain, units, is_hidden=True)
    declared = Loop(tmp_path / "declared", version, gain, units).simulate()
    results = loop.simulate()
    assert loop.error(results) < (1e-3 if units == 2 else 1e-2)
    assert all((results[f"{n}.y"] == declared[f"{n}.y"]).all() for n in loop.names)
    (warning,) = [text for text in results.statistics.warnings if "'y' on 'u' directly" in text]
    assert ("'a', 'b', 'c', 'd' and 4 more" if units == 8 else "'a', 'b':") in warning


def test_repeated_runs_have_the_plan_that_the_start_of_the_first_one_asks_for(
    tmp_path: Path,
) -> None:
    """Start values are written to the places of the new plan, which has a loop more."""
    loop = Loop(tmp_path, "fmi3", -1.05, 2, unknowns={"y": ABSENT})
    made = Simulation(loop.description, stop_time=1, step_size=0.05, error_estimate=False)
    with made.repeated(["b.x1"]) as runs:
        for x in (2.0, 0.25, 2.0):
            found, expected = runs({"b.x1": x}), replace(made, start_values={"b.x1": x}).run()
            assert_same(found, expected)
            assert found["b.y"][0] != runs()["b.y"][0]


def test_executors_processes_and_checkpoints_settle_loops_alike(tmp_path: Path) -> None:
    loop = Loop(tmp_path, "fmi3", -1.05, 2, unknowns={"y": ABSENT})
    results = loop.simulate()
    kept = tmp_path / "checkpoint"
    others = [
        loop.simulate(backend=Backend.REFERENCE),
        loop.simulate(isolate=True),
        loop.simulate(process=True),
        loop.simulate(checkpoint=kept, checkpoint_interval=0.5),
        Simulation(loop.description, stop_time=1, step_size=0.05).run(resume_from=kept),
    ]
    with Simulation(loop.description, stop_time=1, step_size=0.05).start() as run:
        run.advance_to(0.5)
        run.advance_to(1)
        others.append(run.results)
    for other in others:
        assert all((other[f"{n}.y"] == results[f"{n}.y"]).all() for n in loop.names)


def test_the_option_is_not_changed_by_a_measurement(tmp_path: Path) -> None:
    loop = Loop(tmp_path, "fmi2", 0.5, 2, unknowns={"y": ABSENT})
    results = loop.simulate(loops="real")
    assert any("may not be a loop" in note for note in results.statistics.notes)
    assert loop.error(loop.simulate(loops="all")) < 1e-3 < loop.error(results)


def test_a_loop_of_fmus_that_cannot_go_back_is_held_with_a_warning(tmp_path: Path) -> None:
    """With held inputs a gain of 0.6 converges from step to step; with lines it grows to 1e12."""
    loop = Loop(tmp_path, "fmi2", -0.6, 2, unknowns={"y": ABSENT}, capabilities=NO_STATE)
    with pytest.warns(AccuracyWarning, match=r"loop of 'a.u', 'a.y', .* is not solved"):
        loop.simulate()
    results = loop.simulate(process=True, error_estimate=True)  # which judges the loop
    assert loop.error(results) < 0.5
    assert any("'a.u', 'a.y', 'b.u', 'b.y' is not solved" in t for t in results.statistics.notes)
    assert "coupling error about 0." in "\n".join(results.statistics.lines())  # by held inputs, too


# FMUs of other kinds --------------------------------------------------------------------------------------------------


RING = ["a.y -> b.u", "b.y -> a.u"]


def unit(factor: float, **more: Any) -> PythonFmu:
    """y = factor * u + 1, of which nothing is declared."""
    given = {"inputs": {"u": 0.0}, "outputs": {"y": lambda v: factor * v.u + 1.0}}
    return PythonFmu(**{**given, "undeclared": ["y"], **more})


def delayed(factor: float) -> PythonFmu:
    """y shows the input that the last step has used, and at the start its start value."""
    return unit(
        factor,
        states={"used": 0.0},
        outputs={"y": lambda v: factor * v.used + 1.0},
        step=lambda v, h: setattr(v, "used", v.u),
    )


def decaying(**more: Any) -> PythonFmu:
    """y is a state: x' = u - x."""
    return unit(
        1.0,
        **more,
        states={"x": 1.0},
        outputs={"y": lambda v: v.x},
        step=lambda v, h: setattr(v, "x", v.x + h * (v.u - v.x)),
    )


@pytest.mark.usefixtures("each_executor")
def test_outputs_that_react_in_steps_only_are_found_by_short_steps(simulation: Simulate) -> None:
    units = {"a": delayed(-2.0), "b": delayed(1.5)}
    results = simulation(units, RING, stop_time=0.3, step_size=0.1).run()
    assert results["a.y"][-1] == pytest.approx(-1 / 4, rel=1e-9)  # y = -2 (1.5 y + 1) + 1


@pytest.mark.usefixtures("each_executor")
def test_the_start_of_each_repeated_run_is_measured_anew(simulation: Simulate) -> None:
    """By the first value there is no loop; what short steps have shown then is forgotten."""

    def scaled(factor: float) -> PythonFmu:
        return unit(1.0, parameters={"k": 0.0}, outputs={"y": lambda v: v.k * factor * v.u + 1.0})

    units = {"a": scaled(-2.0), "b": scaled(1.5)}
    made = simulation(units, RING, stop_time=0.3, step_size=0.1, error_estimate=False)
    for values in ({"a.k": 1.0, "b.k": 1.0}, {"a.k": 0.0, "b.k": 0.5}):
        with made.repeated(values) as runs:
            for given in ({}, {}, values, values):
                assert_same(runs(given), replace(made, start_values=given).run())


@pytest.mark.usefixtures("each_executor")
def test_an_input_from_outside_of_a_loop_does_not_make_the_loop_an_assumption(
    simulation: Simulate,
) -> None:
    """Only inputs in cycles are measured; on the others the outputs may depend, and it makes no loop."""
    both = {"inputs": {"u": 0.0, "w": 0.0}}
    a = unit(1.0, **both, outputs={"y": lambda v: -2.0 * v.u + v.w})
    b = unit(1.0, **both, outputs={"y": lambda v: 1.5 * v.u + v.w})
    source = PythonFmu(outputs={"y": lambda v: 1.0})
    fed = [*RING, "source.y -> a.w", "source.y -> b.w"]
    made = simulation({"a": a, "b": b, "source": source}, fed, stop_time=0.3, step_size=0.1)
    results = made.run()
    assert results["a.y"][-1] == pytest.approx(-1 / 4, rel=1e-9)  # y = -2 (1.5 y + 1) + 1
    (note,) = [text for text in results.statistics.notes if "measured at the start" in text]
    assert "'a', 'b'; measured at the start: 'y' on 'u' directly" in note


@pytest.mark.measured
@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize("undeclared", [["y"], []], ids=["not declared", "declared wrongly"])
@pytest.mark.parametrize("gain", [-0.6, -2.0])
def test_a_loop_that_begins_later_is_not_wrong_in_silence(
    simulation: Simulate, gain: float, undeclared: list[str]
) -> None:
    """Valves that open at t = 0.5 s: nothing is to be seen at the start."""

    def valve(factor: float) -> PythonFmu:
        return unit(
            1.0,
            undeclared=undeclared,
            states={"x": 0.2},
            outputs={"y": lambda v: v.x + (factor * v.u if v.t > 0.5 else 0.0)},
            step=lambda v, h: setattr(v, "x", v.x + h * (1.0 + v.u / 2 - v.x)),
        )

    units = {"a": valve(gain), "b": valve(1.0)}
    with pytest.warns(AccuracyWarning) as told:
        simulation(units, RING, stop_time=2.0, step_size=0.1).run()
    words = ("coupling error of", "grew without bound", "grows without bound", "grows from")
    assert any(word in str(one.message) for one in told for word in words)


@pytest.mark.usefixtures("each_executor")
def test_a_loop_that_is_none_costs_no_second_start_and_no_note(simulation: Simulate) -> None:
    units = {"a": decaying(), "b": decaying()}
    results = simulation(units, RING, stop_time=0.3, step_size=0.1).run()
    assert [len(u.instances) for u in units.values()] == [1, 1]
    assert not any("loop" in text for text in results.statistics.notes)
    assert results.statistics.warnings == ()


@pytest.mark.usefixtures("each_executor")
def test_short_steps_have_discrete_inputs_too(simulation: Simulate) -> None:
    boolean: dict[str, Any] = {"attributes": {"is_on": {"type": DataType.BOOLEAN}}}
    units = {
        "a": decaying(inputs={"u": 0.0, "is_on": False}, **boolean),
        "b": decaying(),
        "switch": PythonFmu(outputs={"is_on": lambda v: True}, **boolean),
    }
    ring = [*RING, "switch.is_on -> a.is_on"]
    results = simulation(units, ring, stop_time=0.3, step_size=0.1).run()
    assert results.time[-1] == 0.3
    assert results.statistics.warnings == ()


def failing(v: Any) -> float:
    if v.u != 0.0:
        raise CallError("cannot", instance="a", function="GetFloat64", status="Error")
    return 1.0


def latched(v: Any) -> float:
    v.most = max(v.most, abs(v.u))
    return float(v.most)


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize(
    ("output", "reason"),
    [(failing, "with slightly changed inputs"), (latched, "do not return to their values")],
)
def test_an_fmu_that_cannot_be_measured_does_not_end_the_run(
    simulation: Simulate, output: Any, reason: str
) -> None:
    a = unit(1.0, states={"most": 0.0}, outputs={"y": output})
    b = unit(1.0, states={"x": 0.0}, outputs={"y": lambda v: v.x}, step=lambda v, h: None)
    results = simulation({"a": a, "b": b}, RING, stop_time=0.2, step_size=0.1).run()
    assert results.time[-1] == 0.2
    (warning,) = results.statistics.warnings
    assert "'a' depend directly on inputs was not found out" in warning
    assert reason in warning


def too_short(v: Any, h: float) -> None:
    if h < 0.01:
        raise CallError("cannot", instance="a", function="DoStep", status="Error")


def discarded(v: Any, h: float) -> StepAnswer | None:
    return StepAnswer(v.t, discarded=True) if h < 0.01 else None


def not_restored(counted: list[float]) -> Callable[[Any, float], None]:
    """The number of steps is no part of the FMU state, although the FMU says that it can get and set it."""
    return lambda v, h: counted.append(h)


@pytest.mark.usefixtures("each_executor")
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("fails", "with slightly changed inputs"),
        ("discards", ""),
        ("is not restored", "so the state is not restored"),
    ],
)
def test_an_fmu_that_cannot_do_short_steps_goes_on_as_without_them(
    simulation: Simulate, kind: str, said: str
) -> None:
    counted: list[float] = []
    step = {"fails": too_short, "discards": discarded, "is not restored": not_restored(counted)}
    a = unit(0.0, step=step[kind], outputs={"y": lambda v: 1.0 + len(counted)})
    b = unit(1.0, states={"x": 0.0}, outputs={"y": lambda v: v.x}, step=lambda v, h: None)
    made = simulation({"a": a, "b": b}, RING, stop_time=0.2, step_size=0.1)
    results = made.run()
    assert results.time[-1] == 0.2
    warnings = results.statistics.warnings
    assert [said in w and "of 'a' depend directly" in w for w in warnings] == [True] * bool(said)


@pytest.mark.skipif(os.name == "nt", reason="it is built by a compiler of POSIX")
@pytest.mark.parametrize(
    ("act", "settings"),
    [(("SetState", "crash"), {"process": True}), (("GetState", "return", 3), {})],
)
def test_an_fmu_whose_states_fail_goes_on_without_being_measured(
    tmp_path: Path, act: tuple[Any, ...], settings: Any
) -> None:
    """A crash ends the process of the run, which is then repeated."""
    states: Any = {
        "canGetAndSetFMUState": "true",
        "canHandleVariableCommunicationStepSize": "true",
    }
    builder = SystemBuilder("ring")
    for name, acts in (("a", [Act(*act)]), ("b", [])):
        made = misbehaving(tmp_path, "fmi3", *acts, name=name, **states)
        builder.add(name, edited_fmu(made, tmp_path / f"{name}-e.fmu", unknowns={"x": ABSENT}))
    builder.connect("a.x", "b.u")
    builder.connect("b.x", "a.u")
    ring = Simulation(builder.build(), stop_time=0.2, step_size=0.1, **settings)
    with pytest.warns(AccuracyWarning, match="SIGSEGV") if settings else nullcontext():
        results = ring.run()
    assert results.time[-1] == 0.2
    (warning,) = [w for w in results.statistics.warnings if "was not found out" in w]
    assert "Whether outputs of 'a'" in warning


def test_instances_of_an_fmu_whose_states_fail_are_left_out_together(tmp_path: Path) -> None:
    """Each start that fails makes all instances anew."""
    trace, states = tmp_path / "trace", {"canGetAndSetFMUstate": "true"}
    variable: Any = {**states, "canHandleVariableCommunicationStepSize": "true"}
    acts = Act("SetState", "return", 3)
    made = misbehaving(tmp_path, "fmi2", acts, trace=trace, **variable)
    fmu = edited_fmu(made, tmp_path / "edited.fmu", unknowns={"x": ABSENT})
    builder = SystemBuilder("ring")
    for name in "abc":
        builder.add(name, fmu)
    for source, target in ("ab", "bc", "ca"):
        builder.connect(f"{source}.x", f"{target}.u")
    results = Simulation(builder.build(), stop_time=0.2, step_size=0.1).run()
    assert "Whether outputs of 'a', 'b', 'c'" in results.statistics.warnings[0]
    assert (
        sum("Instantiate" in line for line in trace.read_text(encoding="utf-8").splitlines()) == 6
    )


@pytest.mark.usefixtures("each_executor")
def test_runs_that_name_their_methods_measure_nothing(simulation: Simulate) -> None:
    units = {"a": unit(0.5), "b": unit(0.5)}
    made = simulation(units, RING, stop_time=0.2, step_size=0.1, algorithm="Jacobi")
    named = replace(made, event_clock="none")
    assert made.prepare().programs.reactions
    assert not named.prepare().programs.reactions
    assert any("--loops all" in note for note in named.prepare().notes)


@pytest.mark.usefixtures("each_executor")
def test_a_measured_loop_whose_solution_fails_later_is_held_with_a_warning(
    simulation: Simulate,
) -> None:
    """From t = 0.15 s on, y = 1 + u * u for both: there is no real solution."""

    def late(v: Any) -> float:
        return float(0.1 * v.u if v.t < 0.15 else 1.0 + v.u * v.u)

    a = unit(1.0, outputs={"y": late})
    b = unit(1.0, outputs={"y": late})
    with pytest.warns(
        AccuracyWarning, match="was not solved .* repeated with held inputs in loops"
    ):
        results = simulation({"a": a, "b": b}, RING, stop_time=0.3, step_size=0.1).run()
    assert results.time[-1] == 0.3
