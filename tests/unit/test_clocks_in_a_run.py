"""FMUs with clocks: their Event Mode is used, clocked variables are set with their clocks only, and what does not tick is
named."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from python_fmu import PythonFmu, plan_of

from fmimaster import DescriptionError, Results
from fmimaster.base.errors import AccuracyWarning
from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.run import Backend
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.model import DataType, Variability
from fmimaster.system.states import FmiCall

Simulate = Callable[..., Results]

CLOCK: dict[str, Any] = {"type": DataType.CLOCK, "clock": ClockAttributes()}


def every(kind: IntervalVariability) -> dict[str, Any]:
    return {"type": DataType.CLOCK, "clock": ClockAttributes(kind, Fraction(1, 10))}


def clocked(clock: str) -> dict[str, Any]:
    return {"variability": Variability.DISCRETE, "clocks": (clock,)}


def ticking(**options: Any) -> PythonFmu:
    """Announces by its clock that t has passed 0.4, at the end of the step, and then counts."""

    def step(v: Any, h: float) -> StepAnswer | None:
        v.waits = v.t < 0.4 <= v.t + h
        return StepAnswer(v.t + h, event=True) if v.waits else None

    def update(v: Any) -> None:
        v.n, v.waits = v.n + v.waits, False

    return PythonFmu(
        inputs={"u": 0.0},
        states={"n": 0.0, "waits": False},
        outputs={"tick": lambda v: v.waits, "y": lambda v: v.n},
        step=step,
        update=update,
        attributes={"tick": CLOCK, "waits": {"type": DataType.BOOLEAN}},
        has_event_mode=True,
        **options,
    )


# Event Mode -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("asked", [None, True, False])
def test_the_event_mode_of_an_fmu_with_clocks_is_used(
    simulate: Simulate, asked: bool | None, backend: Backend
) -> None:
    unit = ticking()
    settings = {"stop_time": 1, "step_size": 0.25, "event_mode": asked, "backend": backend}
    results = simulate({"a": unit}, **settings)
    # at the start, and where the FMU requests it
    log = [call for call, _ in unit.instances[0].log if call is not FmiCall.GET]
    event = [FmiCall.UPDATE_DISCRETE_STATES] * 2 + [FmiCall.ENTER_STEP_MODE]
    assert log[:5] == [FmiCall.ENTER_INITIALIZATION_MODE, FmiCall.EXIT_TO_EVENT_MODE, *event]
    assert log[5:] == [
        *[FmiCall.DO_STEP] * 2,
        *[FmiCall.ENTER_EVENT_MODE, *event],
        *[FmiCall.DO_STEP] * 2,
        FmiCall.TERMINATE,
    ]
    assert [e.time for e in results.events] == [0.5]
    assert results["a.y"].tolist() == [0, 0, 0, 1, 1, 1]


def test_that_it_was_declined_is_noted(simulate: Simulate) -> None:
    results = simulate({"a": ticking()}, stop_time=1, step_size=1, event_mode=False)
    assert results.statistics.notes == (
        "the Event Mode of 'a' is used nevertheless, because it has clocks (FMI 3.0, 2.3.1)",
    )


def test_the_event_mode_of_other_fmus_is_not_used() -> None:
    without = PythonFmu(outputs={"y": lambda v: 0.0}, has_event_mode=True)
    plan = plan_of({"a": ticking(), "b": without})
    assert [i.event_mode for i in plan.instances] == [True, False]
    assert not any(i.may_return_early for i in plan.instances)


def test_the_time_event_of_an_fmu_comes_at_the_next_point_if_steps_cannot_vary(
    simulate: Simulate,
) -> None:
    unit = PythonFmu(
        outputs={"tick": lambda v: False, "y": lambda v: 0.0},
        attributes={"tick": CLOCK},
        update=lambda v: UpdateAnswer(next_event_time=0.3) if v.t < 0.3 else None,
        has_event_mode=True,
        can_handle_variable_communication_step_size=False,
    )
    with pytest.warns(
        AccuracyWarning, match=r"'a' has seen the event at t = 0\.3 s late, by 0\.2 s"
    ):
        results = simulate({"a": unit}, stop_time=1, step_size="1/4")
    assert [e.time for e in results.events] == [0.5]
    assert unit.instances[0].called(FmiCall.DO_STEP) == [(k / 4, 0.25) for k in range(4)]


def test_an_event_makes_no_short_step_where_steps_cannot_vary(simulate: Simulate) -> None:
    """Outputs of another FMU that depend on what has changed wait for the next point."""
    fixed: dict[str, Any] = {"can_handle_variable_communication_step_size": False}
    other = PythonFmu(
        inputs={"u": 0.0}, outputs={"y": lambda v: v.u}, depends={"y": ["u"]}, **fixed
    )
    sink = PythonFmu(inputs={"u": 0.0})
    units = {"a": ticking(), "b": other, "c": sink}
    results = simulate(units, ["a.y -> b.u", "b.y -> c.u"], stop_time=1, step_size="1/4")
    assert [e.time for e in results.events] == [0.5]
    assert other.instances[0].called(FmiCall.DO_STEP) == [(k / 4, 0.25) for k in range(4)]


# What does not tick ---------------------------------------------------------------------------------------------------


def test_clocks_without_event_mode_are_named() -> None:
    unit = PythonFmu(outputs={"tick": lambda v: False}, attributes={"tick": CLOCK})
    assert plan_of({"a": unit}).warnings == (
        "'a' has clocks, but no Event Mode (hasEventMode is false): they do not tick",
    )


def test_a_clock_that_cannot_tick_is_not_connected() -> None:
    units = {
        "a": ticking(),
        "b": PythonFmu(inputs={"go": False}, attributes={"go": CLOCK}),
    }
    with pytest.raises(DescriptionError, match=r"The clock 'b\.go' .* has no Event Mode"):
        plan_of(units, ["a.tick -> b.go"])


# Clocked variables ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_a_clocked_input_without_its_clock_is_never_set(
    simulate: Simulate, backend: Backend
) -> None:
    reader = PythonFmu(
        inputs={"go": False, "w": 0.0, "u": 0.0},
        attributes={"go": CLOCK, "w": clocked("go")},
        has_event_mode=True,
    )
    source = PythonFmu(outputs={"y": lambda v: v.t})
    results = simulate(
        {"a": source, "b": reader},
        ["a.y -> b.w", "a.y -> b.u"],
        stop_time=1,
        step_size=0.5,
        algorithm="Jacobi",
        backend=backend,
    )
    assert reader.instances[0].was_set("w") == []
    assert reader.instances[0].was_set("u")[-1] == 0.5
    assert results.statistics.warnings == (
        "the connection 'a.y -> b.w' has no effect: the input is set together with its clock only, and nothing "
        "activates 'go'",
    )


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_with_its_clock_it_is_set_in_event_mode_only(simulate: Simulate, backend: Backend) -> None:
    reader = PythonFmu(
        inputs={"go": False, "w": 0.0},
        attributes={"go": CLOCK, "w": clocked("go")},
        has_event_mode=True,
    )
    simulate(
        {"a": ticking(), "b": reader},
        ["a.tick -> b.go", "a.y -> b.w"],
        stop_time=1,
        step_size=0.25,
        backend=backend,
    )
    log = reader.instances[0].log
    at = [k for k, logged in enumerate(log) if isinstance(logged.what, dict) and "w" in logged.what]
    assert [log[k].call for k in at] == [FmiCall.SET_INPUT]
    modes = [c for c, _ in log[: at[0]] if c in (FmiCall.ENTER_EVENT_MODE, FmiCall.ENTER_STEP_MODE)]
    assert modes[-1] is FmiCall.ENTER_EVENT_MODE


def test_clocked_outputs_are_recorded_and_clocks_on_request() -> None:
    unit = PythonFmu(
        inputs={"go": False, "w": 0.0},
        outputs={"tick": lambda v: False, "y": lambda v: 0.0, "z": lambda v: 0.0},
        attributes={"go": CLOCK, "w": clocked("go"), "tick": CLOCK, "y": clocked("tick")},
        has_event_mode=True,
    )
    plan = plan_of({"a": unit})
    assert [c.name for c in plan.recorded] == ["a.y", "a.z"]
    assert plan.recorded[0].present is not None
    plan = plan_of({"a": unit}, start_values={"a.go": 0.1}, outputs=["a.*"])
    shown = {c.name: (c.type, c.present is not None) for c in plan.recorded}
    assert shown["a.go"] == shown["a.tick"] == (DataType.CLOCK, False)
    assert shown["a.w"] == shown["a.y"] == (DataType.FLOAT64, True)
