"""The error of the coupling, estimated by a second run with half the steps that nobody else sees."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu

from fmimaster import (
    AccuracyError,
    AccuracyWarning,
    PythonComponent,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.algorithms.modes import AlongLine
from fmimaster.events import Predictive
from fmimaster.front import attempts, single_run
from fmimaster.front.accuracy_pair import Pair
from fmimaster.front.coupling_error import coupling_error, warnings_of
from fmimaster.inputs.polynomial import LINEAR
from fmimaster.results.results import NotComparableError
from fmimaster.results.statistics import CouplingError, OutputError
from fmimaster.session import keepers
from fmimaster.steps import PID
from fmimaster.studies.demos.quarter_car import LINEAR_CAR

pytestmark = pytest.mark.measured

CAR = reference_path("systems/quarter-car-b-fmi2.ssp")
HELD: dict[str, Any] = {"algorithm": Jacobi(), "stop_time": 1, "step_size": "1/1000"}
RULE = PID.ecco(1e-3)
LINES: dict[str, Any] = {**HELD, "algorithm": GaussSeidel(LINEAR, mode=AlongLine())}


def error_of(results: Results) -> float:
    """The true error of the velocity, relative to its largest value."""
    exact = LINEAR_CAR.solution()(results.time)[3]
    apart = results["wheel.velocity"] - exact
    return float(np.sqrt(np.mean(apart**2)) / np.abs(exact).max())


@pytest.mark.parametrize(("settings", "within"), [(HELD, 0.1), (LINES, 0.4)])
def test_the_estimate_is_the_error_of_the_first_run(
    settings: dict[str, Any], within: float
) -> None:
    results = Simulation(CAR, **settings).run()
    found = results.statistics.coupling_error
    assert found is not None
    assert {o.name for o in found.outputs} == {"wheel.velocity", "chassis.force"}
    (velocity,) = (o.error for o in found.outputs if o.name == "wheel.velocity")
    assert velocity == pytest.approx(error_of(results), rel=within)
    assert found.estimate == found.outputs[0].error >= found.outputs[-1].error
    assert results.metadata["coupling_error"]["wheel.velocity"] == velocity


def test_the_results_are_those_of_the_first_run() -> None:
    with_it, without = (Simulation(CAR, **HELD, error_estimate=e).run() for e in (None, False))
    assert without.statistics.coupling_error is None
    assert "coupling_error" not in without.metadata
    assert with_it.time.tobytes() == without.time.tobytes()
    assert all(with_it[name].tobytes() == without[name].tobytes() for name in without)
    assert with_it.statistics.steps == without.statistics.steps == 1000


def test_a_component_alone_has_no_such_error() -> None:
    alone = Simulation(reference_path("fmi3/Dahlquist.fmu"), stop_time=1).run()
    assert alone.statistics.coupling_error is None


def test_a_large_error_is_a_warning_with_a_remedy_and_an_error_if_strict() -> None:
    coarse = Simulation(CAR, **{**HELD, "step_size": "1/160"})
    with pytest.warns(AccuracyWarning, match=r"of 'wheel.velocity' is about .*--step-size") as told:
        results = coarse.run()
    assert results.statistics.warnings[-1] == str(told[-1].message)
    assert results.metadata["warnings"] == list(results.statistics.warnings)
    with pytest.raises(AccuracyError, match="coupling error of") as error:
        Simulation(CAR, **{**HELD, "step_size": "1/160"}, strict=True).run()
    assert error.value.results.statistics.coupling_error is not None


def test_the_second_run_writes_and_logs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fmimaster")
    files = {"fmi_log_file": "calls.log", "final_fmu_state": "end.states"}
    seen = []
    for estimate in (False, None):
        caplog.clear()
        folder = tmp_path / str(estimate)
        folder.mkdir()
        paths = {name: folder / file for name, file in files.items()}
        settings = {**HELD, **paths, "debug_logging": True, "error_estimate": estimate}
        Simulation(CAR, **{**settings, "step_size": "1/500"}).run(output_file=folder / "a.csv")
        calls = (folder / "calls.log").read_text(encoding="utf-8").count("DoStep")
        names = sorted(file.name for file in folder.iterdir())
        seen.append((calls, names, len(caplog.records), caplog.messages.count("ended")))
    assert seen[0] == seen[1]


def test_a_file_that_was_written_during_the_run_has_the_number(tmp_path: Path) -> None:
    settings = {**HELD, "stop_time": 4}
    kept = Simulation(CAR, **settings).run().metadata["coupling_error"]
    for file in (tmp_path / "a.csv", tmp_path / "a.mat"):
        results = Simulation(CAR, **settings).run(output_file=file)
        assert results.metadata["coupling_error"] == kept
        assert Results.read(file).metadata["coupling_error"] == kept
        assert Results.read(file).rows == 4001
    assert (
        json.loads((tmp_path / "a.csv.json").read_text(encoding="utf-8"))["units"]["chassis.force"]
        == "N"
    )


def integrator(
    shortest: float = 0.0, longest: float = 10.0, *, can_go_back: bool = True
) -> PythonComponent:
    """Integrates its input by Euler's method, in steps of the right length."""

    def step(unit: Any, t: float, h: float) -> None:
        if h < shortest:
            raise ValueError("these steps are too short")
        if h > longest:
            raise ValueError("these steps are too long")
        unit.y = unit.y + h * unit.u

    return PythonComponent(
        inputs={"u": 0.0}, outputs={"y": 1.0}, step=step, can_go_back=can_go_back
    )


def pair(first: PythonComponent) -> SystemBuilder:
    system = SystemBuilder("pair")
    system.add("a", first)
    system.add("b", integrator())
    system.connect("a.y", "b.u", factor=-1.0)
    system.connect("b.y", "a.u")
    return system


def test_what_acts_outside_of_the_run_is_not_repeated_unasked() -> None:
    settings: dict[str, Any] = {**HELD, "step_size": "1/100"}
    acting = pair(integrator(can_go_back=False))
    unasked = Simulation(acting, **settings).run().statistics.coupling_error
    assert unasked is not None
    assert "'a' acts outside of the run (can_go_back is False)" in str(unasked)
    for system, estimate in ((acting, True), (pair(integrator()), None)):
        run = Simulation(system, **settings, error_estimate=estimate)
        found = run.run().statistics.coupling_error
        assert found is not None
        # of Euler's method for an oscillation: about h / 2 of the amplitude at t = 1 s
        assert found.estimate == pytest.approx(0.0045, rel=0.5)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"step_size": RULE, "bond_tolerance": 1, "output_interval": 0.1}, "only some of the comm"),
        ({"output_variables": ["chassis.mc"]}, "no continuous output is recorded"),
    ],
)
def test_why_it_is_not_measured(settings: dict[str, Any], reason: str) -> None:
    results = Simulation(CAR, **{**HELD, **settings}).run()
    found = results.statistics.coupling_error
    assert found is not None
    assert found.estimate is None
    assert f"coupling error not measured: {reason}" in results.statistics.lines()[-1]
    assert reason in results.metadata["coupling_error"]


def test_a_run_that_ends_at_its_stop_time_up_to_rounding_is_measured() -> None:
    """Events shift the ends of steps by less than a step can have; here the step size does."""
    results = Simulation(CAR, **{**HELD, "step_size": "0.000999999999999"}).run()
    found = results.statistics.coupling_error
    assert results.time[-1] < 1
    assert found is not None
    assert found.estimate == pytest.approx(error_of(results), rel=0.1)
    assert found.until is None


def test_an_output_that_is_0_but_for_rounding_has_no_relative_error() -> None:
    resting = SystemBuilder("resting")
    resting.add("a", PythonComponent(inputs={"u": 0.0}, outputs={"y": 0.0}, step=almost_rest))
    resting.add("b", PythonComponent(inputs={"u": 0.0}, outputs={"y": 0.0}, step=almost_rest))
    resting.connect("a.y", "b.u")
    found = Simulation(resting, stop_time=1, step_size=0.1).run().statistics.coupling_error
    assert found is not None
    assert found.reason == "all continuous outputs are 0, but for errors of rounding"


def almost_rest(unit: Any, t: float, h: float) -> None:
    unit.y = 2e-12 * h


def test_a_run_that_is_too_long_is_measured_only_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(attempts, "BEGINNING_STEPS", 1e12)
    unasked = Simulation(CAR, **HELD).run().statistics.coupling_error
    asked = Simulation(CAR, **HELD, error_estimate=True).run().statistics.coupling_error
    assert unasked is not None
    assert asked is not None
    assert unasked.reason.startswith("the run took ")
    assert unasked.reason.endswith("--check-step (error_estimate=True) measures it")
    assert asked.until is None
    assert asked.estimate is not None


def slow_integrator() -> PythonComponent:
    """Euler's method, and a short sleep in each step."""

    def step(unit: Any, t: float, h: float) -> None:
        sleep(1e-4)
        unit.y = unit.y + h * unit.u

    return PythonComponent(inputs={"u": 0.0}, outputs={"y": 1.0}, step=step)


def test_of_a_long_run_the_beginning_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(attempts, "BEGINNING_SECONDS", 0.02)
    system = pair(slow_integrator())
    settings: dict[str, Any] = {**HELD, "stop_time": 8, "step_size": "1/100"}
    results = Simulation(system, **settings).run()
    found = results.statistics.coupling_error
    assert found is not None
    assert found.until is not None
    assert 0.1 < found.until < 7.9
    assert f"until t = {found.until:.3g} s; --error-estimate measures all" in str(found)
    assert results.metadata["coupling_error_until"] == found.until
    until = {"step_size": "1/200", "stop_time": found.until, "error_estimate": False}
    second = Simulation(system, **{**settings, **until}).run()
    (worst, _) = Pair(results, second, ["a.y", "b.y"]).differences()
    assert found.estimate == pytest.approx(2 * worst.relative, rel=1e-9)


def test_a_long_run_that_may_be_whole_in_time_is_measured_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "MOST_SECONDS", 0.0)
    found = Simulation(CAR, **HELD).run().statistics.coupling_error
    assert found is not None
    assert found.until is None
    assert found.estimate is not None


@pytest.mark.parametrize("asked", [None, True])
def test_of_a_run_with_a_large_file_the_beginning_is_done_once_more(
    asked: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_run, "MOST_VALUES", 0)
    monkeypatch.setattr(
        keepers, "OLDEST", 0.05
    )  # rows are written now and then, also in a short run
    monkeypatch.setattr(attempts, "BEGINNING_SECONDS", 0.02)
    settings: dict[str, Any] = {**HELD, "stop_time": 4}
    system = pair(integrator() if asked else slow_integrator())
    file = tmp_path / "a.csv"
    run = Simulation(system, **settings, error_estimate=asked)
    found = run.run(output_file=file).statistics.coupling_error
    assert found is not None
    assert found.estimate is not None
    assert Results.read(file).rows == 4001
    if asked:
        assert found == replace(run, strict=True).run().statistics.coupling_error
    else:
        assert found.until is not None
        assert found.until < 3.9


MASSES = Simulation(
    reference_path("systems/two-mass-b1-fmi3.ssp"),
    step_size=0.1,
    stop_time=8,
    event_clock=Predictive(),
    error_estimate=False,
)


@pytest.mark.parametrize("after", [-1e-3, 1e-3, 0.5])
def test_an_event_at_the_end_of_the_measured_part_is_in_both_runs(after: float) -> None:
    whole = MASSES.run()
    last = whole.events[-1].time
    short = replace(MASSES, step_size=0.05, stop_time=last + after).run()
    recorded = {c.name: c for c in MASSES.prepare().plan.recorded}
    few = replace(short, events=short.events[:2], statistics=replace(short.statistics, events=2))
    events = [
        coupling_error(Pair(whole, run, ["*"]), recorded, 1.0, of_fine=False).events
        for run in (short, few)
    ]
    assert events[0][0] == events[0][1] == len(short.events)
    assert events[1] == (len(whole.events) - (after < 0.0), 2)


def test_outputs_that_are_at_rest_in_the_measured_part_have_no_error() -> None:
    recorded = {c.name: c for c in Simulation(CAR, **HELD).prepare().plan.recorded}
    time = np.linspace(0.0, 2.0, 21)
    moving = np.where(time > 1.5, 1.0, 1e-3)
    whole = Results(time=time, columns=dict.fromkeys(recorded, moving))
    short = Results(time=time[:11], columns=dict.fromkeys(recorded, 2.0 * moving[:11]))
    names = ["wheel.velocity", "chassis.force"]
    with pytest.raises(NotComparableError, match="its outputs are at rest until t = 1 s"):
        coupling_error(Pair(whole, short, names), recorded, 1.0, of_fine=False)


def test_a_second_run_that_fails_loses_nothing() -> None:
    results = Simulation(pair(integrator(0.009, 0.011)), **{**HELD, "step_size": "1/100"}).run()
    found = results.statistics.coupling_error
    assert results.rows == 101
    assert found is not None
    assert found.reason.startswith("the second run has failed (")
    assert "these steps are too long" in found.reason


def test_where_half_the_steps_are_refused_the_second_run_has_twice_the_steps() -> None:
    """The steps of a controller may be multiples of its sample time only."""
    settings = {**HELD, "step_size": "1/100"}
    found = Simulation(pair(integrator(0.009)), **settings).run().statistics.coupling_error
    free = Simulation(pair(integrator()), **settings).run().statistics.coupling_error
    assert found is not None
    assert free is not None
    assert found.with_longer
    assert not free.with_longer
    assert found.estimate == pytest.approx(free.estimate, rel=0.1)


def test_what_grows_faster_with_shorter_steps_has_no_number() -> None:
    """The difference of both runs is that of the second one: it would be 7 %, whatever the first one is."""
    system = SystemBuilder("loop")
    system.add("a", looped(-1.5, can_go_back=False))
    system.add("b", looped(-1.5, can_go_back=False))
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    with pytest.warns(AccuracyWarning):
        results = Simulation(system, **{**HELD, "step_size": "1/20"}, error_estimate=True).run()
    found = results.statistics.coupling_error
    assert found is not None
    assert found.reason == "an output grows without bound, faster with shorter steps"


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ((("a", 0.01, 0.3, 0.1), ("b", 0.005, 0.4, 0.2)), "at t = 0.2 s in b), most in a ("),
        ((("a", 0.01, 0.04, 0.1),), "of the largest value, most in a ("),
        ((("a", 0.1, 0.3, 0.1),), "of the largest value, most in a ("),
    ],
)
def test_a_short_error_that_is_much_larger_is_printed_beside_the_root_mean_square(
    outputs: tuple[tuple[str, float, float, float], ...], expected: str
) -> None:
    found = CouplingError(tuple(OutputError(*output) for output in outputs))
    assert expected in str(found)
    assert ("root mean square" in str(found)) is (len(outputs) > 1)
    assert "root mean square" not in str(replace(found, events=(1, 1)))


def looped(gain: float, *, can_go_back: bool = True) -> PythonComponent:
    """x' = -x + u / 2 + 1, y = x + gain u, solved exactly while u is constant."""

    def step(unit: Any, t: float, h: float) -> None:
        unit.x = unit.x - np.expm1(-h) * (unit.u / 2 + 1.0 - unit.x)

    def output(unit: Any, t: float) -> None:
        unit.y = unit.x + gain * unit.u

    return PythonComponent(
        inputs={"u": 0.0},
        outputs={"y": 0.0},
        states={"x": 0.0},
        step=step,
        output=output,
        dependencies={"y": ["u"]},
        can_go_back=can_go_back,
    )


def test_the_second_run_holds_the_inputs_of_loops_that_are_not_solved() -> None:
    """Also if the user has chosen the loops, but not the algorithm."""
    ring = SystemBuilder("ring")
    ring.add("a", looped(-0.7))
    ring.add("b", looped(1.0))
    ring.connect("a.y", "b.u")
    ring.connect("b.y", "a.u")
    first, second = (
        Simulation(ring, stop_time=2, step_size=size, loops="none").run() for size in (0.02, 0.01)
    )
    (worst, _) = Pair(first, second, ["*.y"]).differences()
    found = first.statistics.coupling_error
    assert found is not None
    assert found.estimate == pytest.approx(2 * worst.relative, rel=1e-12)


def test_the_line_names_the_steps_of_the_other_run() -> None:
    outputs = (OutputError("a.y", 1e-3),)
    assert "with steps half as long" in str(CouplingError(outputs))
    chosen = Simulation(pair(integrator()), stop_time=1).run()
    assert chosen.statistics.coupling_error is not None
    assert str(chosen.statistics.coupling_error).endswith(
        "(estimated by a second run with steps twice as long)"
    )


def test_events_that_fmus_execute_at_the_ends_of_long_steps_are_a_warning() -> None:
    balls = reference_path("systems/two-mass-b1-fmi3.ssp")
    plain = Simulation(balls, step_size=0.2, stop_time=4, algorithm="Jacobi", event_clock="none")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = plain.run()
    assert results.statistics.coupling_error is not None
    assert any("coupling error of" in str(w.message) for w in told)


def test_another_number_of_events_is_a_warning_where_outputs_differ() -> None:
    settings = Simulation(CAR, **HELD)
    differs = (OutputError("a.y", 0.02),)
    (told,) = warnings_of(settings, 0.1, CouplingError(differs, (3, 4)))
    assert told.startswith("with steps half as long there are 4 events instead of 3: ")
    assert "--step-size" in told
    longer = CouplingError((OutputError("a.y", 1e-3, 0.06, 1.0),), (3, 4), with_longer=True)
    (told,) = warnings_of(settings, 0.1, longer)
    assert told.startswith("with steps twice as long there are 3 events instead of 4: ")
    for outputs, events in ((differs, (3, 3)), ((OutputError("a.y", 1e-3, 0.04),), (3, 4))):
        assert not [*warnings_of(settings, 0.1, CouplingError(outputs, events))]


@pytest.mark.parametrize(("step_size", "is_right"), [("1/50", True), ("2", False)])
def test_a_loop_that_is_not_solved_is_a_warning_only_where_it_matters(
    step_size: str, is_right: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, gain in {"a": 1.0, "b": -0.6}.items():
        linear: dict[str, Any] = {"a": [[-1.0]], "b": [[-gain]], "c": [[1.0]], "x0": [1.0]}
        linear_fmu(tmp_path / f"{name}.fmu", "fmi2", **linear, d=[[gain]])
    edited_fmu(tmp_path / "b.fmu", tmp_path / "c.fmu", capabilities={"canGetAndSetFMUstate": None})
    system = SystemBuilder("loop")
    system.add("a", tmp_path / "a.fmu")
    system.add("b", tmp_path / "c.fmu")
    system.connect("a.y1", "b.u1")
    system.connect("b.y1", "a.u1")
    made = Simulation(system, stop_time=6, step_size=step_size)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        statistics = made.run().statistics
    of_loops = [text for text in statistics.warnings if "is not solved in Step Mode" in text]
    assert statistics.coupling_error is not None
    assert ((statistics.coupling_error.estimate or 0) < 0.05) is is_right
    assert bool(of_loops) is not is_right
    assert [str(w.message) for w in warned if "is not solved" in str(w.message)] == of_loops
    assert [r.message for r in caplog.records if "is not solved" in r.message] == of_loops
    assert any("is not solved in Step Mode" in note for note in statistics.notes) is is_right


def test_events_that_may_be_wrong_are_a_warning_only_where_it_matters() -> None:
    """The masses at steps of 0.3 s: many steps are undone, and the collisions are right."""
    masses = reference_path("systems/two-mass-b3-mixed.ssp")
    made = Simulation(masses, stop_time=5, step_size=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        alone = replace(made, error_estimate=False).run().statistics
    judged = replace(made, error_estimate=True).run().statistics
    assert any("too long for the prediction of inputs" in text for text in alone.suspected)
    assert {*alone.suspected} <= {*alone.warnings}
    assert judged.warnings == ()
    assert {*alone.suspected} <= {*judged.notes}
