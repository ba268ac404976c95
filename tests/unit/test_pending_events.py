"""An FMU that has requested an event enters Event Mode before it steps on, also between the parts of a step."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster.algorithms import (
    Algorithm,
    Aligned,
    AutomaticSequence,
    GaussSeidel,
    Jacobi,
    Refreshed,
    Richardson,
    Sequential,
    SubSteps,
    Waveform,
)
from fmimaster.algorithms.modes import AlongLine, Corrected
from fmimaster.algorithms.subsequence import Subsequence
from fmimaster.base.errors import AccuracyWarning, OptionError, ProgramError, SimulationError
from fmimaster.events import Check, EarlyReturn, LookAhead, Predictive
from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.inputs import NEPCE, Polynomial
from fmimaster.instants.instant import Goal, Instant
from fmimaster.loops import LoopSolver
from fmimaster.record.causes import GRID, Kind
from fmimaster.results.results import Results
from fmimaster.steps import EmbeddedOrders, PredictorCorrector
from fmimaster.steps.doubling_errors import StepDoubling
from fmimaster.steps.locate import Locate
from fmimaster.steps.multi_rate import MultiRate
from fmimaster.steps.pid import PID
from fmimaster.steps.ramp import FreeStep, Ramp
from fmimaster.steps.step_rule import FixedStep
from fmimaster.system import Port, PowerBond
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DataType, Variability
from fmimaster.system.states import FmiCall

# the guard around each FMU refuses a step while an event is pending
pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

DISCRETE = {"type": DataType.INT32, "variability": Variability.DISCRETE}


def requesting(*times: float, **options: Any) -> PythonFmu:
    """x' = u; requests an event at the end of each step that reaches one of these times; ``n`` counts its events."""

    def step(v: Any, h: float) -> StepAnswer | None:
        end = v.t + h
        v.x += h * v.u
        v.is_due = any(v.t < time <= end for time in times)
        return StepAnswer(end, event=True) if v.is_due else None

    def update(v: Any) -> None:
        v.count += v.is_due
        v.is_due = False

    return PythonFmu(
        inputs={"u": 1.0},
        states={"x": 0.0, "count": 0, "is_due": False},
        outputs={"y": lambda v: v.x, "n": lambda v: v.count},
        step=step,
        update=update,
        attributes={"n": DISCRETE, "count": DISCRETE, "is_due": DISCRETE},
        **{"has_event_mode": True, **options},
    )


def plain(**options: Any) -> PythonFmu:
    """x' = 1."""

    def step(v: Any, h: float) -> None:
        v.x += h

    return PythonFmu(
        inputs={"u": 0.0}, states={"x": 0.0}, outputs={"y": lambda v: v.x}, step=step, **options
    )


RING = ["a.y -> b.u", "b.y -> a.u"]
WITH_SUB_STEPS: dict[str, Any] = {
    "algorithm": SubSteps(counts={"a": 4}),
    "event_mode": True,
    "stop_time": 1,
    "step_size": 0.8,
}


def requested(results: Results) -> list[float]:
    """Times at which an FMU has requested an event."""
    return [event.time for event in results.events if event.cause.kind is Kind.REQUESTED]


@pytest.mark.parametrize(
    "base",
    [
        Jacobi(),
        GaussSeidel(),
        GaussSeidel(mode=AlongLine()),
        GaussSeidel(mode=Corrected()),
        Waveform(Jacobi(), tolerance=1e-6),
    ],
    ids=["jacobi", "end", "lin", "held", "waveform"],
)
def test_a_half_of_step_doubling_ends_at_an_event(simulate: Simulate, base: Algorithm) -> None:
    """The step from 0 to 0.4 ends in its middle, as by an early return; the events at 0.4 and 0.8 end no step."""
    units = {"a": requesting(0.1, 0.35, 0.7), "b": plain()}
    algorithm = Richardson(base)
    results = simulate(
        units, RING, algorithm=algorithm, event_mode=True, stop_time=1, step_size=0.4
    )
    assert requested(results) == pytest.approx([0.2, 0.4, 0.8])
    assert results["a.n"].tolist()[-1] == 3
    assert results["b.y"].tolist() == pytest.approx(results.time.tolist())


def test_steps_that_are_doubled_for_their_errors_end_at_events(simulate: Simulate) -> None:
    units = {"a": requesting(0.1, 0.3, 0.7), "b": plain()}
    rule = PID(0.2, (StepDoubling(0.01),), smallest=0.001)
    results = simulate(units, RING, step_size=rule, event_mode=True, stop_time=1)
    assert results["a.n"].tolist()[-1] == 3


def test_sub_steps_end_at_an_event(simulate: Simulate) -> None:
    """The slower component goes back to the end of the sub-step."""
    units = {"a": requesting(0.3), "b": plain()}
    results = simulate(units, RING, **WITH_SUB_STEPS)
    assert requested(results) == pytest.approx([0.4])
    assert results["a.n"].tolist()[-1] == 1
    assert results["b.y"].tolist() == pytest.approx(results.time.tolist())


def test_a_component_that_cannot_go_back_stays_ahead_of_the_event(simulate: Simulate) -> None:
    units = {"a": requesting(0.3), "b": plain(can_get_and_set_fmu_state=False)}
    with pytest.warns(AccuracyWarning, match="'b' has seen the event at t = 0.4 s late"):
        results = simulate(units, RING, **WITH_SUB_STEPS)
    assert results["a.n"].tolist()[-1] == 1


def test_an_event_of_an_instance_that_is_ahead_is_not_lost(simulate: Simulate) -> None:
    """The slower one requests its event at the end of the step, the faster one has its own before that."""
    units = {
        "a": requesting(0.3),
        "b": requesting(0.7, can_get_and_set_fmu_state=False),
    }
    with pytest.warns(AccuracyWarning, match="late"):
        results = simulate(units, RING, **WITH_SUB_STEPS)
    assert results["a.n"].tolist()[-1] == 1
    assert results["b.n"].tolist()[-1] == 1
    (late,) = [e for e in results.events if "b" in e.components]
    assert late.time == pytest.approx(0.8)
    assert late.cause.kind is Kind.SEEN_LATE


def test_gauss_seidel_divides_no_step_of_an_fmu_with_event_mode(simulate: Simulate) -> None:
    """Its outputs depend directly on inputs, so the mode would divide its steps."""
    unit = requesting(0.3)
    unit.outputs["y"] = lambda v: v.x + v.u
    options: dict[str, Any] = {"event_mode": True, "stop_time": 1, "step_size": 0.4}
    with pytest.raises(OptionError, match=r"'b' may have an event between them.*mode 'lin'"):
        simulate(
            {"a": plain(), "b": unit},
            ["a.y -> b.u"],
            algorithm=GaussSeidel(mode=Subsequence()),
            **options,
        )
    depending = requesting(0.3, depends={"y": ["u"]})
    depending.outputs["y"] = lambda v: v.x + v.u
    with pytest.warns(AccuracyWarning, match="its step cannot be divided"):
        simulate(
            {"a": plain(), "b": depending},
            ["a.y -> b.u"],
            algorithm=GaussSeidel(mode=Corrected()),
            **options,
        )
    assert [h for _, h in depending.instances[-1].called(FmiCall.DO_STEP)] == pytest.approx(
        [0.4, 0.4, 0.2]
    )


@pytest.mark.parametrize("at_start", [True, False])
def test_an_fmu_that_ends_the_run_in_event_mode_gets_no_more_calls_but_terminate(
    simulate: Simulate, at_start: bool
) -> None:
    """Also not if it requests another update; the row of the event has what it shows there."""
    unit = requesting(0.3)

    def update(v: Any) -> UpdateAnswer:
        ends = at_start or v.is_due
        v.count += 10 if ends else 0
        return UpdateAnswer(wants_update=ends, terminate=ends)

    unit.update = update
    other = plain(has_event_mode=True)
    results = simulate({"a": unit, "b": other}, RING, event_mode=True, stop_time=1, step_size=0.4)
    assert results.time[-1] == (0.0 if at_start else 0.4)
    assert results["a.n"].tolist()[-1] == 10
    log = [call for call, _ in unit.instances[-1].log]
    assert log[log.index(FmiCall.UPDATE_DISCRETE_STATES, -5) + 1 :] == [
        FmiCall.GET,
        FmiCall.GET,
        FmiCall.TERMINATE,
    ]
    assert other.instances[-1].called(FmiCall.TERMINATE) == [()]


def test_short_steps_after_events_do_not_follow_each_other_for_ever(simulate: Simulate) -> None:
    """Each step changes a discrete input, which is an event. After it a short step makes the outputs of 'b' known, and
    changes the discrete input too."""
    discrete = {"type": DataType.FLOAT64, "variability": Variability.DISCRETE}

    def step(v: Any, h: float) -> None:
        v.x += h * (1 + v.u)

    units = {
        "a": PythonFmu(
            inputs={"u": 0.0},
            outputs={"y": lambda v: v.u},
            depends={"y": ["u"]},
            attributes={"u": discrete, "y": discrete},
            has_event_mode=True,
        ),
        "b": PythonFmu(
            inputs={"u": 0.0},
            states={"x": 0.0},
            outputs={"y": lambda v: v.x},
            depends={"y": ["u"]},
            step=step,
        ),
    }
    results = simulate(units, RING, event_mode=True, step_size=0.1, stop_time=1)
    assert results.statistics.steps < 25
    assert results["a.y"].tolist()[-1] == results["b.y"].tolist()[-1]


def test_an_fmu_that_ends_the_run_in_an_iteration_is_not_stepped_again(simulate: Simulate) -> None:
    """Its step is not repeated with better inputs: only Terminate may follow."""

    def step(v: Any, h: float) -> StepAnswer | None:
        v.x += h * v.u
        end = v.t + h
        return StepAnswer(end - h / 2, terminate=True) if end > 0.5 else None

    unit = PythonFmu(
        inputs={"u": 0.0},
        states={"x": 1.0},
        outputs={"y": lambda v: v.x},
        step=step,
    )
    results = simulate(
        {"a": unit, "b": plain()}, RING, algorithm=Waveform(Jacobi()), stop_time=1, step_size=0.4
    )
    assert results.time.tolist() == [0.0, 0.4]  # the other one is ahead of it
    assert [t for t, _ in unit.instances[-1].called(FmiCall.DO_STEP)].count(0.4) == 1
    log = [call for call, _ in unit.instances[-1].log]
    assert FmiCall.SET_FMU_STATE not in log[len(log) - log[::-1].index(FmiCall.DO_STEP) :]


# All forms of control -------------------------------------------------------------------------------------------------

BOND = PowerBond("bond", (Port("a", "u", "y", "in"), Port("b", "u", "y", "out")), 1.0, 1e-3)


def controlled(*estimators: Any) -> PID:
    return PID(0.2, estimators, smallest=0.001)


STEPS: dict[str, Any] = {
    "fixed": 0.2,
    "free": FreeStep(0.2),
    "ramp": Ramp(0.2),
    "locate": Locate(0.2),
    "predictor": controlled(PredictorCorrector(0.01)),
    "orders": controlled(EmbeddedOrders(0.01)),
    "doubling": controlled(StepDoubling(0.01)),
    "ecco": PID.ecco(0.2, 0.001),
    "rates": MultiRate("0.2", {"a": "0.05"}),
}
ALGORITHMS: dict[str, Algorithm] = {
    "jacobi": Jacobi(),
    "corrected": Jacobi(NEPCE),
    "held": GaussSeidel(mode=Corrected()),
    "sub": GaussSeidel(mode=Subsequence()),
    "refreshed": Refreshed(Jacobi()),
    "waveform": Waveform(Jacobi()),
    "solved": Waveform(Jacobi(), solver=LoopSolver()),
    "richardson": Richardson(Jacobi()),
    "sub-steps": SubSteps(counts={"a": 4}),
    "sub-steps of others": SubSteps(counts={"b": 4}),
    "halves of sub-steps": Richardson(SubSteps(counts={"a": 4})),
    "sequential": Sequential(first="c"),
    "automatic": AutomaticSequence(),
}
CLOCKS: dict[str, Any] = {
    "none": None,
    "early return": EarlyReturn(),
    "check": Check(),
    "predictive": Predictive(),
    "look-ahead": LookAhead(),
}
USUAL = ("fixed", "jacobi", "none")
FORMS = [
    *((step, "jacobi", clock) for step in STEPS for clock in ("none", "predictive")),
    *(("fixed", algorithm, clock) for algorithm in ALGORITHMS for clock in ("none", "predictive")),
    *(("fixed", "jacobi", clock) for clock in CLOCKS),
    ("fixed", "sequential", "check"),
    ("locate", "sub-steps", "none"),
]


def falling(**options: Any) -> PythonFmu:
    """x falls by 1 per second from 0.5, and begins anew when the counter ``hit`` changes."""

    def execute(v: Any) -> None:
        if v.hit != v.seen:
            v.x, v.seen = 0.5, v.hit

    def step(v: Any, h: float) -> None:
        execute(v)
        v.x -= h

    event = EventDeclaration("hit", Scope.PRIVATE, (Indicator("z", "dz"),), trigger="hit")
    return PythonFmu(
        inputs={"hit": 0},
        states={"x": 0.5, "seen": 0},
        outputs={"z": lambda v: v.x, "dz": lambda v: -1.0},
        attributes={"hit": DISCRETE, "dz": {"derivative_of": "z"}},
        step=step,
        update=execute,
        events=[event],
        **options,
    )


REFUSED = (
    "Locate locates changes of connected discrete outputs, and there are no such outputs",
    "with MultiRate they end",  # its components have their steps at different times
    "divides each step into parts, but 'a' may have an event between them",
    "undone, which GaussSeidel in the mode 'sub' does not allow",
    "(Sequential|AutomaticSequence) lets an FMU stop at its events, and needs the event clock Check",
    "Check is for algorithms in which one FMU finds events for the others",
    "Step doubling is not possible with SubSteps where FMUs may return early",
)
WITHOUT_STATES = (*REFUSED, r"may have to go back when .* cannot get and set its FMU state")


@pytest.mark.filterwarnings("ignore::fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("goes_back", [True, False], ids=["with states", "without"])
@pytest.mark.parametrize(("step", "algorithm", "clock"), dict.fromkeys(FORMS))
def test_each_form_of_control_executes_all_events_or_is_refused(
    simulate: Simulate, step: str, algorithm: str, clock: str, goes_back: bool
) -> None:
    """No part of a step follows an event that is pending: the guard would refuse it."""
    can = {"can_get_and_set_fmu_state": goes_back}
    early = {"has_event_mode": True, "might_return_early_from_do_step": True}
    units = {"a": requesting(0.11, 0.33, 0.71, **can), "b": plain(**can)}
    units["c"] = falling(**can, **early)
    settings = {
        "step_size": STEPS[step],
        "algorithm": ALGORITHMS[algorithm],
        "event_clock": CLOCKS[clock],
        "power_bonds": [BOND] * (step == "ecco"),
    }
    connections = ["a.y -> b.u", "a.n -> c.hit"] if step == "locate" else RING
    try:
        results = simulate(units, connections, event_mode=True, stop_time=1, **settings)
    except (OptionError, ProgramError) as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        expected = REFUSED if goes_back else WITHOUT_STATES
        assert re.search("|".join(expected), refused), refused
        return
    assert results["a.n"].tolist()[-1] == 3


class Still(FixedStep):
    """Has no steps with a length from 0.4 s on."""

    def propose(self, now: Instant, memory: Any) -> Goal:
        return Goal(now, GRID) if now.seconds > 0.39 else FixedStep.propose(self, now, memory)


def test_steps_without_a_length_end_the_run_with_an_error(simulate: Simulate) -> None:
    with pytest.raises(SimulationError, match=r"does not advance beyond t = 0\.4"):
        simulate({"a": plain(), "b": plain()}, RING, step_size=Still(0.2), stop_time=1)


def test_a_stop_with_held_inputs_is_tried_again_with_shorter_steps(simulation: Any) -> None:
    """1 - t - t^2 is 0 at 0.618 s. The FMU holds its input at the mean of each step, and stopped at 0.6 s."""

    def faster(v: Any, h: float) -> None:
        v.y = (v.t + h) ** 2

    def fall(v: Any, h: float) -> StepAnswer | None:
        left = 1.0 - v.x - v.u
        if v.n == 0 and left < h - 1e-12:
            v.x += max(left, 0.0)
            return StepAnswer(v.t + max(left, 0.0), early=True, event=True)
        v.x += h
        return None

    event = EventDeclaration(
        "hit", Scope.COUPLED, (Indicator("z", "dz"),), None, "go", right_limits_without_step=True
    )
    able: Any = {"can_get_and_set_fmu_state": True}
    table = PythonFmu(states={"y": 0.0}, outputs={"y": lambda v: v.y}, step=faster, **able)
    body = PythonFmu(
        inputs={"u": 0.0, "go": False},
        states={"x": 0.0, "n": 0},
        outputs={"z": lambda v: 1.0 if v.n else 1.0 - v.x - v.u, "dz": lambda v: -1.0},
        depends={"z": ["u"]},
        partials={"z": {"u": -1.0}},
        attributes={"go": {"type": DataType.CLOCK}, "n": {"type": DataType.INT32}},
        step=fall,
        update=lambda v: setattr(v, "n", v.n + int(v.go)),
        events=[event],
        has_event_mode=True,
        might_return_early_from_do_step=True,
        **able,
    )
    prepared = simulation(
        {"table": table, "body": body},
        ["table.y -> body.u"],
        algorithm=Aligned(Jacobi(Polynomial(3, 0))),
        event_clock=EarlyReturn(),
        step_size=FreeStep(0.2),
        stop_time=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # it may still be half a short step early
        [hit] = prepared.run().events
    assert hit.time == pytest.approx(0.6180340, abs=0.2 / 16)
