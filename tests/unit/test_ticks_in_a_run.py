"""Clocks that tick, with all ways to choose steps; ticks that come late; and intervals that are not possible."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from python_fmu import PythonFmu

from fmimaster import CallError, OptionError, Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import SubSteps
from fmimaster.base.errors import AccuracyError, AccuracyWarning, SimulationError
from fmimaster.fmu.instance import UpdateAnswer
from fmimaster.run import Backend
from fmimaster.steps import PID, MultiRate, PredictorCorrector
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.model import DataType, Variability
from fmimaster.system.states import FmiCall

Simulate = Callable[..., Results]

TENTH = Fraction(1, 10)


def counter(
    kind: str = "constant",
    interval: Fraction | None = TENTH,
    shift: Fraction = Fraction(0),
    told: Callable[[Any], Fraction | float | None] | None = None,
    **options: Any,
) -> PythonFmu:
    """Counts the ticks of its clock ``tick``; ``told`` is the interval that it tells by its values."""

    def update(v: Any) -> UpdateAnswer | None:
        v.n += v.tick
        return None

    clock = ClockAttributes(IntervalVariability(kind), interval, shift=shift)
    return PythonFmu(
        inputs={"tick": False},
        states={"n": 0},
        outputs={"y": lambda v: v.n},
        update=update,
        intervals={} if told is None else {"tick": told},
        attributes={
            "tick": {"type": DataType.CLOCK, "clock": clock},
            "y": {"type": DataType.INT32, "variability": Variability.DISCRETE},
            "n": {"type": DataType.INT32, "variability": Variability.DISCRETE},
        },
        has_event_mode=True,
        **options,
    )


def steps(unit: PythonFmu) -> list[tuple[float, float]]:
    called: list[tuple[float, float]] = unit.instances[0].called(FmiCall.DO_STEP)
    return called


def ticks(results: Results) -> list[float]:
    """Where the number of ticks changes; one before the start is none."""
    y = np.concatenate(([0], results["a.y"]))
    return [float(t) for t in results.time[np.diff(y) > 0]]


# Ways to choose steps -------------------------------------------------------------------------------------------------


def test_a_tick_ends_a_step_and_the_grid_stays(simulate: Simulate, backend: Backend) -> None:
    unit = counter(interval=Fraction(3, 10))
    simulate({"a": unit}, stop_time=1, step_size="1/4", backend=backend)
    assert [t for t, _ in steps(unit)] == [0, 0.25, 0.3, 0.5, 0.6, 0.75, 0.9]


def test_fixed_steps_reach_a_tick_late(simulate: Simulate, backend: Backend) -> None:
    unit = counter(interval=Fraction(3, 10), can_handle_variable_communication_step_size=False)
    with pytest.warns(
        AccuracyWarning,
        match=r"'a\.tick' has seen 3 events late, first that at t = 0\.3 s, by at most 0\.2 s",
    ):
        results = simulate({"a": unit}, stop_time=1, step_size="1/4", backend=backend)
    assert steps(unit) == [(k / 4, 0.25) for k in range(4)]
    assert ticks(results) == [0, 0.5, 0.75, 1]
    [activations] = results.activations
    assert (activations.interval, activations.count) == (Fraction(3, 10), 4)  # when they were due


def test_and_strict_runs_refuse_it(simulate: Simulate) -> None:
    unit = counter(interval=Fraction(3, 10), can_handle_variable_communication_step_size=False)
    with pytest.raises(AccuracyError, match=r"'a\.tick' has seen"):
        simulate({"a": unit}, stop_time=1, step_size="1/4", strict=True)


def test_that_it_is_late_is_told_before_an_fmu_refuses_it(
    tmp_path: Path, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    """The FMU with the clock could stop at the tick; the other one cannot."""
    fixed = edited_fmu(
        reference_path("fmi3/Dahlquist.fmu"),
        tmp_path / "Fixed.fmu",
        capabilities={"canHandleVariableCommunicationStepSize": None},
    )
    system = SystemBuilder()
    system.add("plant", fixed)
    every_seventh = {"interval.counter": 1, "interval.resolution": 7}
    system.add("sampler", reference_path("fmi3/Sampler.fmu"), every_seventh)
    system.connect("plant.x", "sampler.u")
    with pytest.raises(CallError, match=r"'tick' is to tick at t = 0\.1428") as caught:
        Simulation(system, stop_time=1, step_size="1/10", backend=backend).run()
    assert caught.value.results is not None
    assert caught.value.results.time[-1] == 0.2
    assert "'sampler.tick' has seen the event at t = 0.142857142857 s late" in caplog.text


def test_fixed_steps_reach_ticks_on_their_grid_in_time(simulate: Simulate) -> None:
    unit = counter(interval=Fraction(1, 2), can_handle_variable_communication_step_size=False)
    results = simulate({"a": unit}, stop_time=1, step_size="1/4", strict=True)
    assert ticks(results) == [0, 0.5, 1]


def test_ticks_among_sub_steps(simulate: Simulate, backend: Backend) -> None:
    unit, other = counter(), PythonFmu(outputs={"y": lambda v: v.t})
    results = simulate(
        {"a": unit, "b": other},
        stop_time=1,
        step_size="1/4",
        algorithm=SubSteps(counts={"b": 2}),
        backend=backend,
    )
    assert results["a.y"][-1] == 11
    assert {t for t, _ in steps(unit)} == {
        k / 20 for k in (0, 2, 4, 5, 6, 8, 10, 12, 14, 15, 16, 18)
    }
    assert len(steps(other)) == 24


def test_multi_rate_is_refused(simulate: Simulate) -> None:
    units = {"a": counter(), "b": PythonFmu(outputs={"y": lambda v: v.t})}
    with pytest.raises(OptionError, match=r"The clock 'a\.tick' ticks at .* with MultiRate"):
        simulate(units, stop_time=1, step_size=MultiRate("1/10", {"b": "1/20"}))


def test_steps_that_a_controller_chooses_end_at_ticks(simulate: Simulate, backend: Backend) -> None:
    source = PythonFmu(outputs={"y": lambda v: v.t**2})
    sink = PythonFmu(inputs={"u": 0.0})
    results = simulate(
        {"a": counter(interval=Fraction(1, 3)), "b": source, "c": sink},
        ["b.y -> c.u"],
        stop_time=1,
        step_size=PID("1/10", smallest="1/1000", estimators=(PredictorCorrector(tolerance=1e-3),)),
        backend=backend,
    )
    assert ticks(results) == [0, 1 / 3, 2 / 3, 1]


# Intervals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fixed", "tunable"])
def test_a_periodic_clock_needs_an_interval(
    simulate: Simulate, kind: str, backend: Backend
) -> None:
    unit = counter(kind, None, told=lambda v: None)
    text = rf"The clock 'a\.tick' \({kind}\) has no interval: its model description declares none"
    with pytest.raises(SimulationError, match=text):
        simulate({"a": unit}, stop_time=1, step_size=1, backend=backend)


@pytest.mark.parametrize(
    ("kind", "interval", "expected"),
    [
        ("fixed", 0, "above 0"),
        ("tunable", -1, "above 0"),
        ("changing", -1, "of at least 0"),
        ("countdown", -1, "of at least 0"),
        ("changing", float("nan"), "of at least 0"),
        ("fixed", float("inf"), "above 0"),
    ],
)
def test_an_interval_that_is_not_possible(
    simulate: Simulate, kind: str, interval: float, expected: str, backend: Backend
) -> None:
    unit = counter(kind, None, told=lambda v: interval)
    text = rf"'a\.tick' \({kind}\) has the interval {interval:g} s at t = 0 s; expected a finite interval {expected}"
    with pytest.raises(SimulationError, match=text):
        simulate({"a": unit}, stop_time=1, step_size=1, backend=backend)


@pytest.mark.parametrize("kind", ["fixed", "tunable", "changing"])
def test_an_fmu_tells_the_interval(simulate: Simulate, kind: str, backend: Backend) -> None:
    unit = counter(kind, None, told=lambda v: Fraction(1, 4))
    results = simulate({"a": unit}, stop_time=1, step_size=1, backend=backend)
    first = [0.25] if kind == "changing" else [0, 0.25]
    assert ticks(results) == [*first, 0.5, 0.75, 1]


def test_a_fixed_clock_is_not_asked_again(simulate: Simulate, backend: Backend) -> None:
    unit = counter("fixed", None, told=lambda v: Fraction(1, 4 if v.n < 2 else 8))
    results = simulate({"a": unit}, stop_time=1, step_size=1, backend=backend)
    assert ticks(results) == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize("kind", ["tunable", "changing"])
def test_an_equal_interval_that_is_told_as_changed_changes_no_schedule(
    simulate: Simulate, kind: str, backend: Backend
) -> None:
    """The FMU tells 1/4 s at each event, and its other clock ticks each 1/10 s: else its clock would never tick."""

    def update(v: Any) -> None:
        v.n += v.tick

    clocks = {
        "tick": ClockAttributes(IntervalVariability(kind)),
        "beat": ClockAttributes(IntervalVariability.CONSTANT, TENTH),
    }
    whole: dict[str, Any] = {"type": DataType.INT32, "variability": Variability.DISCRETE}
    unit = PythonFmu(
        inputs={"tick": False, "beat": False},
        states={"n": 0},
        outputs={"y": lambda v: v.n},
        update=update,
        intervals={"tick": lambda v: Fraction(1, 4)},
        attributes={n: {"type": DataType.CLOCK, "clock": c} for n, c in clocks.items()}
        | {"y": whole, "n": whole},
        has_event_mode=True,
    )
    results = simulate({"a": unit}, stop_time=1, step_size=1, backend=backend)
    first = [0.25] if kind == "changing" else [0, 0.25]
    assert ticks(results) == [*first, 0.5, 0.75, 1]


# Events near ticks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", ["-1e-8", "0", "1e-8"])
@pytest.mark.parametrize("tolerance", [0, "1e-9", "1e-7"])
def test_a_time_event_near_a_tick_is_one_instant_with_it_on_request(
    simulate: Simulate, backend: Backend, tolerance: Any, offset: str
) -> None:
    """A time event at 1 s, and a tick 1e-8 s before it, at it, or after it."""
    tick = 1 + Fraction(offset)
    event = PythonFmu(
        outputs={"tick": lambda v: False, "y": lambda v: 0.0},
        attributes={"tick": {"type": DataType.CLOCK, "clock": ClockAttributes()}},
        update=lambda v: UpdateAnswer(next_event_time=1.0) if v.t < 1.0 else None,
        has_event_mode=True,
    )
    units = {"a": counter(interval=Fraction(10), shift=tick), "b": event}
    results = simulate(
        units,
        stop_time=2,
        step_size=2,
        backend=backend,
        event_merge_tolerance=tolerance,
        strict=True,
    )
    happened = sorted({e.time for e in results.events} | set(ticks(results)))
    both = sorted({1.0, float(tick)})
    assert happened == (both[-1:] if tolerance == "1e-7" else both)


def test_the_tolerance_is_not_negative(simulate: Simulate) -> None:
    with pytest.raises(OptionError, match="event_merge_tolerance: -1, expected 0 or"):
        simulate({"a": counter()}, stop_time=1, step_size=1, event_merge_tolerance=-1)
