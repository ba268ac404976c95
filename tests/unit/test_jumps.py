"""A jump of a continuous input at a known point is an event for an FMU in Event Mode (FMI 3.0, 4.1.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster import Results
from fmimaster.algorithms import Jacobi
from fmimaster.inputs.polynomial import LINEAR
from fmimaster.results import Kind
from fmimaster.run import Backend
from fmimaster.steps import PID, EmbeddedOrders, FixedStep, FreeStep
from fmimaster.steps.ramp import Ramp
from fmimaster.system.states import FmiCall

Simulate = Callable[..., Results]
Rows = Iterable[tuple[float, float]]

pytestmark = pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])


def reader(**capabilities: Any) -> PythonFmu:
    """y is the input as it was at the last event."""
    return PythonFmu(
        inputs={"u": 0.0},
        states={"seen": 0.0},
        outputs={"y": lambda v: v.seen},
        update=lambda v: setattr(v, "seen", v.u),
        has_event_mode=True,
        **capabilities,
    )


@pytest.fixture
def run(simulate: Simulate, tmp_path: Path, backend: Backend) -> Callable[..., Results]:
    """Simulates an FMU whose input follows these rows."""

    def run(unit: PythonFmu, rows: Rows, **settings: Any) -> Results:
        file = tmp_path / "input.csv"
        file.write_text("time,a.u\n" + "".join(f"{t!r},{u!r}\n" for t, u in rows), encoding="utf-8")
        options: dict[str, Any] = {"stop_time": 1, "step_size": "1/4", "event_mode": True}
        return simulate({"a": unit}, input=file, backend=backend, **options | settings)

    return run


# on the grid, off the grid, twice, and at the stop time
ROWS = [(0, 1), (0.25, 1), (0.25, 2), (0.6, 2), (0.6, 5), (0.75, 5), (0.75, 6), (1, 6), (1, 7)]


@pytest.mark.parametrize("rule", [FixedStep("1/4"), FreeStep("1/4")], ids=["grid", "free"])
def test_it_is_an_event_at_that_point(run: Callable[..., Results], rule: Any) -> None:
    unit = reader()
    results = run(unit, ROWS, step_size=rule)
    assert [(e.time, e.cause.kind) for e in results.events] == [
        (t, Kind.CHANGED_INPUT) for t in (0.25, 0.6, 0.75, 1.0)
    ]
    # the value from the right is set in Event Mode, before the update
    log = unit.instances[0].log
    entered = [k for k, (call, _) in enumerate(log) if call is FmiCall.ENTER_EVENT_MODE]
    assert [log[k + 1] for k in entered] == [
        (FmiCall.SET_INPUT, {"u": float(u)}) for u in (2, 5, 6, 7)
    ]
    assert {log[k + 2].call for k in entered} == {FmiCall.UPDATE_DISCRETE_STATES}
    # and there is a row before and after it
    assert results["a.y"][results.time == 0.6].tolist() == [2.0, 5.0]


def test_equal_rows_at_one_time_are_no_jump(run: Callable[..., Results]) -> None:
    unit = reader()
    results = run(unit, [(0, 1), (0.3, 2), (0.3, 2), (0.5, 2), (0.5, 2), (1, 4)])
    assert results.events == ()
    assert results.time.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert unit.instances[0].called(FmiCall.ENTER_EVENT_MODE) == []


def test_it_is_none_without_event_mode(run: Callable[..., Results]) -> None:
    unit = reader()
    results = run(unit, ROWS, event_mode=False)
    assert results.events == ()
    assert results.time.tolist() == [0, 0.25, 0.5, 0.6, 0.75, 1]


def test_who_cannot_vary_its_step_has_the_event_at_the_next_point(
    run: Callable[..., Results],
) -> None:
    unit = reader(can_handle_variable_communication_step_size=False)
    results = run(unit, [(0, 1), (0.3, 1), (0.3, 2), (0.5, 2), (0.5, 3)])
    assert [e.time for e in results.events] == [0.5]
    assert results["a.y"].tolist() == [1, 1, 1, 3, 3, 3]


def test_only_what_jumps_has_an_event(simulate: Simulate, tmp_path: Path, backend: Backend) -> None:
    file = tmp_path / "input.csv"
    file.write_text("time,a.u,b.u\n0,0,0\n0.5,1,1\n0.5,2,1\n", encoding="utf-8")
    units = {"a": reader(), "b": reader()}
    settings = {"stop_time": 1, "step_size": "1/4", "event_mode": True, "backend": backend}
    results = simulate(units, input=file, **settings)
    assert [(e.time, e.components) for e in results.events] == [(0.5, ("a",))]
    assert units["b"].instances[0].called(FmiCall.ENTER_EVENT_MODE) == []


def test_steps_of_different_sizes_meet_each_jump_also_without_event_mode(
    run: Callable[..., Results],
) -> None:
    unit = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: v.u})
    results = run(unit, ROWS, step_size=Ramp("1/4", first=0.3), event_mode=None)
    assert {0.25, 0.6, 0.75} <= set(results.time.tolist())


def integrator() -> PythonFmu:
    """y is the integral of the input, which is linear over each step."""

    def step(v: Any, h: float) -> None:
        v.x += h * (v.course("u", v.t) + v.course("u", v.t + h)) / 2

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 0.0},
        outputs={"y": lambda v: v.x},
        step=step,
        provides_intermediate_update=True,
    )


@pytest.mark.parametrize("time", [0.5, 0.6], ids=["on the grid", "off the grid"])
def test_an_input_is_not_extrapolated_over_a_jump(run: Callable[..., Results], time: float) -> None:
    """In the step after it, the value from the right is held."""
    rows = [(0, 0), (time, 0), (time, 1), (1, 1)]
    results = run(integrator(), rows, algorithm=Jacobi(LINEAR), event_mode=None)
    assert results["a.y"].tolist() == pytest.approx(
        [max(t - time, 0.0) for t in results.time.tolist()], abs=1e-15
    )
    assert results.time[-1] == 1.0


def test_step_size_control_begins_anew_at_a_jump(
    simulate: Simulate, tmp_path: Path, backend: Backend
) -> None:
    """energy.md 7: nothing moved before, so the controller had come to its largest step."""
    file = tmp_path / "input.csv"
    file.write_text("time,a.u\n0,0\n0.5,0\n0.5,1\n1,1\n", encoding="utf-8")
    results = simulate(
        {"a": integrator(), "b": integrator()},
        ["a.y -> b.u"],
        input=file,
        step_size=PID("0.1", (EmbeddedOrders(0.1),), smallest="0.001"),
        stop_time=1,
        backend=backend,
    )
    after = results.time > 0.5
    assert results["step_size"][results.time < 0.5][-1] == pytest.approx(0.1)
    assert results["step_size"][after][0] == pytest.approx(0.001)
