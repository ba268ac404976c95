"""Events where something else happens too: other events, the end of the run, the limits of doubles."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, nan
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster import Results, reference_path
from fmimaster import simulate as simulate_file
from fmimaster.algorithms import Algorithm, Jacobi, Waveform
from fmimaster.base.errors import SimulationError
from fmimaster.events.event_clock import EarlyReturn
from fmimaster.events.predictive import Predictive
from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.run.executor import Backend
from fmimaster.steps.locate import Locate
from fmimaster.system.model import DataType
from fmimaster.system.states import FmiCall

Simulate = Callable[..., Results]

EVENT_MODE: Any = {"has_event_mode": True, "might_return_early_from_do_step": True}
INTEGER = {"type": DataType.INT32}
each = pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST])


def named(time: float, **answer: Any) -> Callable[[Any], UpdateAnswer]:
    """Names the time of its only event; counts it."""

    def update(v: Any) -> UpdateAnswer:
        v.n = float(v.t >= time)
        return UpdateAnswer(next_event_time=inf if v.n else time, **answer if v.n else {})

    return update


def counter(update: Callable[[Any], UpdateAnswer]) -> PythonFmu:
    return PythonFmu(states={"n": 0.0}, outputs={"y": lambda v: v.n}, update=update, **EVENT_MODE)


def returning(time: float) -> PythonFmu:
    """Returns early at a time, in whatever step that is."""

    def step(v: Any, h: float) -> StepAnswer | None:
        early = v.t < time < v.t + h
        return StepAnswer(time, early=True, event=True) if early else None

    return PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: v.t}, step=step, **EVENT_MODE)


@each
def test_an_fmu_can_end_the_run_at_an_event(simulate: Simulate, backend: Backend) -> None:
    unit = counter(named(0.5, terminate=True))
    rows = simulate({"a": unit}, stop_time=1, step_size="0.1", event_mode=True, backend=backend)
    assert rows.time[-1] == 0.5
    assert len(unit.instances[0].called(FmiCall.DO_STEP)) == 5


@each
def test_an_fmu_can_end_the_run_before_it_begins(simulate: Simulate, backend: Backend) -> None:
    unit = counter(lambda v: UpdateAnswer(terminate=True))
    rows = simulate({"a": unit}, stop_time=1, step_size="0.1", event_mode=True, backend=backend)
    assert rows.time.tolist() == [0.0]


@each
def test_the_time_of_the_next_event_cannot_be_nan(simulate: Simulate, backend: Backend) -> None:
    units = {"a": counter(lambda v: UpdateAnswer(next_event_time=nan)), "b": counter(named(0.55))}
    with pytest.raises(SimulationError, match=r"UpdateDiscreteStates of a returned NaN"):
        simulate(units, stop_time=1, step_size="0.1", event_mode=True, backend=backend)


@each
@pytest.mark.parametrize("time", [0.3, 0.5, 0.6])
def test_an_event_on_the_grid_makes_outputs_elsewhere_old_and_the_run_goes_on(
    simulate: Simulate, backend: Backend, time: float
) -> None:
    units = {
        "a": counter(named(time)),
        "b": PythonFmu(inputs={"u": 0.0}, outputs={"z": lambda v: 2 * v.u}, depends={"z": ["u"]}),
        "c": PythonFmu(inputs={"u": 0.0}, outputs={"w": lambda v: v.u}),
    }
    links = ["a.y -> b.u", "b.z -> c.u"]
    options: dict[str, Any] = {"stop_time": 1, "step_size": "0.1", "event_mode": True}
    rows = simulate(units, links, backend=backend, **options)
    assert rows.time[-1] == 1.0
    assert rows["c.w"][-1] == 2.0


@each
def test_of_two_early_returns_only_the_earlier_one_is_an_event_then(
    simulate: Simulate, backend: Backend
) -> None:
    units = {"a": returning(0.37), "b": returning(0.33)}
    options: dict[str, Any] = {"stop_time": 1, "step_size": "0.1", "event_clock": EarlyReturn()}
    rows = simulate(units, backend=backend, **options)
    found = [(e.time, e.components) for e in rows.events]
    assert found == [(0.33, ("b",)), (0.37, ("a",))]


@each
def test_who_returns_earlier_still_when_it_is_brought_back_brings_all_back(
    simulate: Simulate, backend: Backend
) -> None:
    def only_in_a_short_step(v: Any, h: float) -> StepAnswer | None:
        seen = v.t < 0.3 < v.t + h <= 0.7
        return StepAnswer(0.3, early=True, event=True) if seen else None

    late = PythonFmu(outputs={"y": lambda v: v.t}, step=only_in_a_short_step, **EVENT_MODE)
    options: dict[str, Any] = {"stop_time": 1, "step_size": "1", "event_clock": EarlyReturn()}
    rows = simulate({"late": late, "a": returning(0.6)}, backend=backend, **options)
    assert rows["a.y"].tolist() == rows["late.y"].tolist() == rows.time.tolist()
    assert [e.time for e in rows.events][:2] == [0.3, 0.6]


@each
@pytest.mark.parametrize("algorithm", [Jacobi(), Waveform(Jacobi())], ids=["jacobi", "waveform"])
def test_a_change_is_located_from_the_begin_of_its_own_step(
    simulate: Simulate, backend: Backend, algorithm: Algorithm
) -> None:
    """An algorithm with another program for the first step goes back to the begin of the step, not of the run."""

    def decay(v: Any, h: float) -> None:
        v.x *= exp(-h)

    switch = PythonFmu(
        states={"x": 1.0},
        outputs={"q": lambda v: int(v.t >= 0.537), "y": lambda v: v.x},
        step=decay,
        attributes={"q": INTEGER},
    )
    reader = PythonFmu(inputs={"u": 0}, attributes={"u": INTEGER})
    rows = simulate(
        {"a": switch, "b": reader},
        ["a.q -> b.u"],
        stop_time=1,
        step_size=Locate("0.1", tolerance=1e-3),
        algorithm=algorithm,
        backend=backend,
    )
    assert rows["a.y"] == pytest.approx([exp(-t) for t in rows.time], rel=1e-12)
    assert 0.537 in [pytest.approx(t, abs=1e-3) for t in rows.time]


@each
def test_locating_ends_where_doubles_cannot_tell_times_apart(
    simulate: Simulate, backend: Backend
) -> None:
    switch = PythonFmu(outputs={"q": lambda v: int(v.t >= 1e6 + 0.5)}, attributes={"q": INTEGER})
    reader = PythonFmu(inputs={"u": 0}, attributes={"u": INTEGER})
    rows = simulate(
        {"a": switch, "b": reader},
        ["a.q -> b.u"],
        start_time=1_000_000,
        stop_time=1_000_001,
        step_size=Locate("0.3"),
        backend=backend,
    )
    assert [e.time for e in rows.events] == pytest.approx([1e6 + 0.5], rel=1e-15)


@pytest.mark.parametrize("inputs", [Polynomial(3, 1), Polynomial(2, 1)], ids=str)
def test_events_forget_polynomials_of_any_size(inputs: Polynomial) -> None:
    """After an event inputs go on along fewer points: the kernel's room for them is that of the largest."""
    runs = [
        simulate_file(
            reference_path("systems/two-mass-b3-mixed.ssp"),
            algorithm=Jacobi(inputs),
            step_size=0.05,
            stop_time=6,
            event_clock=Predictive(),
            backend=backend,
        )
        for backend in (Backend.REFERENCE, Backend.FASTEST)
    ]
    assert len(runs[0].events) == 5
    assert all((runs[0][name] == runs[1][name]).all() for name in runs[0].names)
