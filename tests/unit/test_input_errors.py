"""Inputs that are predicted are compared with their sources: too long steps are undone, or the run warns."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fmimaster import AccuracyWarning, Results, Simulation, SystemBuilder, reference_path, resume
from fmimaster.algorithms import Aligned, Jacobi, Waveform
from fmimaster.events import EarlyReturn, Predictive
from fmimaster.inputs import Polynomial
from fmimaster.record.causes import Kind
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor
from fmimaster.steps import FreeStep, Ramp
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.read import read_system

QUINTIC = Jacobi(Polynomial(2, 2))
E2 = Waveform(Aligned(QUINTIC), sweeps=2)
SEQUENCE = "c c c u c c u c c c c c"
"""Collisions and impacts of the upper mass on the ceiling, within 20 s; hybrid.md."""
LONG = 0.5
"""[s] A step in which the fastest mode turns by more than 1 rad."""
WARNING = re.compile(
    r"Steps are too long for the prediction of inputs: (?P<what>.*) differed from its source by (?P<part>\S+) % of its "
    r"range \(limit: 0.1 %\)\. Events may be missing, wrong or late\. Take steps of about (?P<better>\S+) s\."
)


def two_masses(**settings: Any) -> Simulation:
    given = {"algorithm": QUINTIC, "event_clock": Predictive(), "stop_time": 20, **settings}
    return Simulation(reference_path("systems/two-mass-b3-fmi3.ssp"), **given)


def sequence(results: Results) -> str:
    return " ".join(event.name.split(".")[-1][0] for event in results.events)


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST], ids=lambda b: b.value)
def test_steps_that_are_too_long_are_undone_and_said(backend: Backend) -> None:
    with pytest.warns(AccuracyWarning, match="were undone, in which"):
        results = two_masses(step_size=LONG, backend=backend).run()
    assert sequence(results) == SEQUENCE.replace("u", "c")  # upper.ceiling
    assert results.statistics.rejections > 20
    assert Kind.ERROR in {steps.cause.kind for steps in results.steps}


@pytest.mark.filterwarnings("ignore:the event 'collision' was found late")
def test_they_were_wrong_and_are_said_where_states_cannot_be_had() -> None:
    clock = Predictive(go_back=False)
    with pytest.warns(AccuracyWarning, match="at t = .* s the input '.*' differed") as told:
        results = two_masses(step_size=LONG, event_clock=clock).run()
    found = next(m for w in told if (m := WARNING.fullmatch(str(w.message))))
    assert 0.1 < float(found["part"]) < 100
    assert 0.1 < float(found["better"]) < LONG
    assert results.statistics.rejections == 0
    better = two_masses(step_size=float(found["better"]), event_clock=clock).run()  # no warning
    assert sequence(better) == SEQUENCE.replace("u", "c")


@pytest.mark.parametrize(
    ("algorithm", "clock", "rule"),
    [
        (QUINTIC, Predictive(), Ramp(0.1)),
        (QUINTIC, EarlyReturn(), Ramp(0.1)),
        (E2, EarlyReturn(), FreeStep(0.2)),
    ],
    ids=["PZ", "E1", "E2"],
)
def test_steps_that_are_short_enough_are_not_undone(
    algorithm: Any, clock: Any, rule: StepRule[Any]
) -> None:
    results = two_masses(algorithm=algorithm, step_size=rule, event_clock=clock).run()
    assert results.statistics.warnings == ()
    assert Kind.ERROR not in {steps.cause.kind for steps in results.steps}


def test_early_return_begins_short_where_inputs_are_extrapolated() -> None:
    """With whole steps after each event the error was 0.0027 of the distance of the masses, and the run warns now."""
    usual = two_masses(step_size=0.2, event_clock=EarlyReturn()).run()
    assert usual.statistics.warnings == ()
    assert Kind.RAMP in {steps.cause.kind for steps in usual.steps}
    with pytest.warns(AccuracyWarning, match="prediction of inputs"):
        two_masses(step_size=FreeStep(0.2), event_clock=EarlyReturn()).run()
    for algorithm in (E2, Jacobi()):  # sweeps correct the step; held inputs have no history
        rule = two_masses(
            algorithm=algorithm, step_size=0.2, event_clock=EarlyReturn(), stop_time=1
        )
        with rule.start() as run:
            run.advance_to(1)
        assert Kind.RAMP not in {steps.cause.kind for steps in run.results.steps}


@pytest.mark.filterwarnings("ignore:the event 'collision' was found late")
@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST], ids=lambda b: b.value)
@pytest.mark.parametrize("step", [0.1, LONG])
def test_an_input_file_that_jumps_hides_no_other_error(
    step: float, backend: Backend, tmp_path: Path
) -> None:
    """The jump itself is none."""
    table = tmp_path / "u.csv"
    table.write_text(
        "time,other.Float64_continuous_input\n0,0\n2.53,1\n2.53,5\n20,6\n", encoding="utf-8"
    )
    masses = read_system(reference_path("systems/two-mass-b3-fmi3.ssp"))
    other = SystemBuilder()
    other.add("other", reference_path("fmi3/Feedthrough.fmu"))
    elements = (*masses.system.components, *other.build().system.components)
    both = replace(masses, system=replace(masses.system, components=elements))
    run = Simulation(
        both,
        algorithm=QUINTIC,
        step_size=step,
        event_clock=Predictive(go_back=False),
        stop_time=5,
        input=table,
        backend=backend,
    )
    if step == LONG:
        with pytest.warns(AccuracyWarning, match="the input '(upper|lower).u_x' differed"):
            run.run()
    else:
        assert run.run().statistics.warnings == ()


@pytest.mark.parametrize("method", ["PZ", "E2"])
def test_both_executors_undo_the_same_steps(method: str) -> None:
    if native_executor() is None:
        pytest.skip("the kernel is not built")
    more = {} if method == "PZ" else {"algorithm": E2, "event_clock": EarlyReturn()}
    found = []
    for backend in (Backend.REFERENCE, Backend.NATIVE):
        with pytest.warns(AccuracyWarning, match="prediction of inputs"):
            found.append(two_masses(step_size=0.9, stop_time=8, backend=backend, **more).run())
    one, other = found
    assert one.statistics.warnings == other.statistics.warnings
    assert one.statistics.attempts == other.statistics.attempts > one.statistics.steps
    for name in one:
        assert one[name].tolist() == other[name].tolist()


@pytest.mark.filterwarnings("ignore:the event 'collision' was found late")
def test_a_run_that_goes_on_from_a_checkpoint_knows_what_it_has_found(tmp_path: Path) -> None:
    settings = {"step_size": LONG, "event_clock": Predictive(go_back=False), "stop_time": 8.1}
    path = tmp_path / "run.checkpoint"
    with (
        pytest.warns(AccuracyWarning, match="prediction of inputs") as before,
        two_masses(**settings, checkpoint=path).start() as run,
    ):
        run.advance_to(8)
    with pytest.warns(AccuracyWarning, match="prediction of inputs") as after:
        resume(path)
    found, later = (
        [str(w.message) for w in told if WARNING.fullmatch(str(w.message))]
        for told in (before, after)
    )
    assert found == later
