"""The score of a run of the two masses: which events count as one, as missed, as false; where the error is taken."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from command_line import reference

from fmimaster import AccuracyWarning, Results
from fmimaster.record.causes import Kind
from fmimaster.studies.demos.methods import METHODS, Method, MethodRun, errors, run_method
from fmimaster.studies.demos.scoring import (
    Execution,
    compare_events,
    events_of,
    executions,
    position_error,
)
from fmimaster.studies.demos.two_mass import ReferenceEvent, TwoMassReference

STATE = np.zeros(4)


def collision(component: str, time: float) -> Execution:
    return Execution(component, "collision", time)


def expected(*times: float) -> list[ReferenceEvent]:
    return [ReferenceEvent(t, "collision", STATE) for t in times]


def test_executions_of_a_shared_event_in_both_are_one() -> None:
    found = events_of([collision("lower", 1.004), collision("upper", 1.0)])
    assert found == [("collision", 1.0, False)]


def test_farther_apart_they_are_two_one_sided_events() -> None:
    found = events_of([collision("lower", 1.02), collision("upper", 1.0)])
    assert [e.one_sided for e in found] == [True, True]


def test_two_executions_in_one_component_are_never_one_event() -> None:
    found = events_of([collision("upper", 1.0), collision("upper", 1.001), collision("lower", 1.0)])
    assert [e.one_sided for e in found] == [False, True]


def test_a_private_event_has_one_side_only() -> None:
    assert events_of([Execution("upper", "ceiling", 1.0)]) == [("ceiling", 1.0, False)]


def test_events_are_matched_by_kind_and_time_and_once() -> None:
    found = events_of(
        [
            Execution("upper", "ceiling", 1.0),  # of another kind: false
            *(collision(c, t) for t in (2.09, 2.2, 3.0) for c in ("upper", "lower")),
        ]
    )
    # 1.0 is missed; 2.09 is nearer to 2.0 than to 2.15, which has 2.2; 3.0 fits
    assert compare_events(found, expected(1.0, 2.0, 2.15, 3.0)) == (1, 1, 0)
    assert compare_events([], expected(1.0)) == (1, 0, 0)


def test_the_error_is_taken_at_the_last_row_of_each_time() -> None:
    exact = TwoMassReference(1.0)
    x1, _, x2, _ = exact(np.array([0.0]))[0]
    table = Results(
        time=[0.0, 0.0], columns={"upper.x": [99.0, x1 + 1.0], "lower.x": [0.0, x2 - 2.0]}
    )
    error, times = position_error(table, exact)
    assert times == [0.0]
    assert error == pytest.approx([3.0])


def test_what_fmus_log_is_collected_once() -> None:
    log = logging.getLogger("fmimaster")
    level = log.level
    with executions() as found:
        for _ in range(2):  # a step that is repeated after a rollback
            log.info(
                "upper [OK] Event 'collision' at t = 0.25 s: the velocity 1 m/s becomes 2 m/s."
            )
        log.info("upper: something else")
    assert found == [collision("upper", 0.25)]
    assert log.level == level


# The papers' figures, and our goals -----------------------------------------------------------------------------------


def method(name: str, size: float, benchmark: str = "b3") -> Method:
    (one,) = (m for m in METHODS if (m.short, m.size, m.benchmark) == (name, size, benchmark))
    return one


def done(name: str, size: float, version: str, benchmark: str = "b3") -> MethodRun:
    reference("systems/two-mass-b3-mixed.ssp")
    return run_method(method(name, size, benchmark), version)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("version", ["fmi2", "fmi3", "mixed"])
@pytest.mark.parametrize(
    ("name", "size", "least", "most", "steps"),
    [
        ("plain Jacobi", 0.01, 0.06, 0.09, 2000),
        ("LookAhead", 0.08, 0.10, 0.14, 285),
        ("I-V", 0.1, 0.2, 0.5, 230),
        ("C5", 0.1, 0.0, 2e-4, 230),
        ("PZ", 0.1, 0.0, 2e-4, 262),
        ("E2", 0.2, 0.0, 2e-4, 110),
        ("E2", 0.08, 0.0, 3e-7, 260),
    ],
)
def test_methods_reach_what_the_papers_print_and_what_we_aim_at(
    version: str, name: str, size: float, least: float, most: float, steps: int
) -> None:
    score = done(name, size, version).score
    assert least <= score.e_rms <= most
    assert score.steps <= steps
    assert (score.missed, score.false, score.one_sided) == (0, 0, 0)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_without_a_clock_and_at_a_large_step_events_are_missed_and_false() -> None:
    score = done("plain Jacobi", 0.08, "mixed").score
    assert score.e_rms > 1
    assert score.missed > 0
    assert score.false > 0


def test_dejacos_figure_5_has_its_wrong_event_at_the_ceiling() -> None:
    with pytest.warns(AccuracyWarning, match="found late"):
        run = done("I-V", 0.3, "fmi3", "b1")
    assert [e for e in run.events if e.kind == "ceiling" and 0.85 < e.time < 0.95]
    assert -18 < run.results["lower.x"].min() < -16.5


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_what_fmus_log_and_what_results_carry_are_the_same_events(version: str) -> None:
    for name, size in (("PZ", 0.1), ("E2", 0.2), ("C5", 0.1)):
        run = done(name, size, version)
        logged = [(e.kind, e.time) for e in run.events]
        carried = [(e.name.rpartition(".")[2], e.time) for e in run.results.events]
        assert [kind for kind, _ in logged] == [kind for kind, _ in carried]
        assert [t for _, t in logged] == pytest.approx([t for _, t in carried], abs=1e-12)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_only_plain_jacobi_has_nothing_to_explain() -> None:
    steps = done("plain Jacobi", 0.01, "mixed").results.steps
    assert {s.cause.kind for s in steps} == {Kind.GRID, Kind.STOP_TIME}


def test_the_figure_with_and_without_look_ahead_has_it() -> None:
    runs = [run_method(m) for m in METHODS if m.benchmark == "b3" and m.short == "LookAhead"]
    with_and_without, all_methods = errors(runs).axes
    assert len(with_and_without.lines) == len(all_methods.lines) == 1
