"""Events that accumulate are told from events that are only fast."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_fmu import PythonFmu

from fmimaster.base.errors import SimulationError, ZenoError
from fmimaster.events.predictive import Predictive
from fmimaster.events.zeno import MOST_IN_A_STEP, MOST_MICROSTEPS, EventHistory, accumulation
from fmimaster.fmu.instance import UpdateAnswer
from fmimaster.results.results import Results
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DataType

STEP = 0.1
"""[s] Of a usual step: gaps below 1e-6 s are short."""


def bounces(count: int, ratio: float = 0.7) -> list[float]:
    """hybrid.md 5: t(1) = sqrt(2 / g), and gaps of 2 * 0.7^k t(1)."""
    first = (2 / 9.81) ** 0.5
    gaps = (2 * ratio**k * first for k in range(1, count))
    return list(accumulate(gaps, initial=first))


def test_the_bouncing_ball_is_told_at_bounce_40_with_its_limit() -> None:
    times = bounces(60)
    told = [k for k in range(1, 61) if accumulation(times[:k], STEP) is not None]
    assert told[0] == 40
    assert accumulation(times[:40], STEP) == pytest.approx(2.558633965586, abs=1e-8)


@given(st.floats(0.05, 0.9), st.floats(-100, 100))
def test_the_limit_is_that_of_the_geometric_series(ratio: float, start: float) -> None:
    gaps = [1e-6 * ratio**k for k in range(1, 10)]
    limit = accumulation([start, *accumulate(gaps, initial=start)][1:], STEP)
    # 1e-14 is a bit of the start, and the last ratio carries it into the limit
    if ratio**9 * 1e-6 > 1e-11 * max(1, abs(start)):
        assert limit == pytest.approx(start + 1e-6 * ratio / (1 - ratio), abs=1e-8)


@pytest.mark.parametrize("period", [1e-7, 1e-9, 1.0])
def test_a_fast_clock_is_no_accumulation(period: float) -> None:
    assert accumulation([k * period for k in range(100)], STEP) is None


def test_events_at_one_time_are_no_accumulation() -> None:
    assert accumulation([1.0] * 20, STEP) is None


def test_gaps_that_shrink_but_are_long_are_no_accumulation() -> None:
    assert accumulation(bounces(30), STEP) is None


def test_gaps_that_hardly_shrink_are_no_accumulation() -> None:
    times = list(accumulate(1e-7 * 0.96**k for k in range(20)))
    assert accumulation(times, STEP) is None


def test_one_gap_that_grows_ends_the_suspicion() -> None:
    gaps = [1e-7 * 0.5**k for k in range(9)]
    gaps[4] = 3e-7
    assert accumulation(list(accumulate(gaps, initial=0.0)), STEP) is None


@pytest.mark.parametrize(
    ("unit", "bounce"), [(1e-6, 33), (1.0, 40), (1e6, 40)], ids=["us", "s", "Ms"]
)
def test_the_same_motion_in_another_unit_of_time_accumulates_at_the_same_event(
    unit: float, bounce: int
) -> None:
    """But where 1 us is no short time: there 1e-4 of a step is."""
    times = [unit * t for t in bounces(60)]
    told = [k for k in range(1, 61) if accumulation(times[:k], unit * STEP) is not None]
    assert told[0] == bounce
    found = accumulation(times[:bounce], unit * STEP)
    assert found == pytest.approx(unit * 2.558633965586, rel=1e-8)


@pytest.mark.parametrize("step", [0.01, 0.02, 0.1])
def test_usual_steps_do_not_change_the_bounce(step: float) -> None:
    times = bounces(60)
    told = [k for k in range(1, 61) if accumulation(times[:k], step) is not None]
    assert told[0] == 40


@pytest.mark.parametrize("start", [0.0, 1e9])
def test_fast_events_of_a_run_with_short_steps_are_no_accumulation(start: float) -> None:
    """A switching frequency that rises from 1 to 3 MHz, late in a run too."""
    times = list(accumulate((1e-6 * 0.9**k for k in range(10)), initial=start))
    assert accumulation(times, 1e-6) is None


def test_kinds_of_events_are_told_apart() -> None:
    history = EventHistory()
    times = bounces(40)
    assert all(history.add(k % 2, t, STEP) is None for k, t in enumerate(times))
    assert [history.add("one", t, STEP) is not None for t in times].index(True) == 39


def test_too_many_events_at_one_time() -> None:
    history = EventHistory()
    assert not any(history.too_many_at(1.0, 0.0) for _ in range(MOST_MICROSTEPS))
    assert history.too_many_at(1.0, 0.0)
    assert not history.too_many_at(2.0, 0.0)


@pytest.mark.parametrize(("gap", "is_creeping"), [(1e-13, True), (0.9e-10, True), (1.1e-10, False)])
def test_events_that_creep_are_at_one_time(gap: float, is_creeping: bool) -> None:
    history, near = EventHistory(), 1e-10
    found = [history.too_many_at(1.0 + k * gap, near) for k in range(3 * MOST_MICROSTEPS)]
    assert any(found) is is_creeping


def test_a_run_that_goes_back_begins_to_count_anew() -> None:
    history = EventHistory()
    assert not any(history.too_many_at(2.0, 1e-9) for _ in range(MOST_MICROSTEPS))
    assert not history.too_many_at(1.0, 1e-9)


Simulate = Callable[..., Results]


def ticking(period: Callable[[int], float]) -> PythonFmu:
    """Time events; the period is that from event k on."""

    def update(v: Any) -> UpdateAnswer:
        while v.due <= v.t:
            v.due, v.k = v.due + period(int(v.k)), v.k + 1
        return UpdateAnswer(next_event_time=v.due)

    return PythonFmu(
        states={"k": 0.0, "due": 0.0},
        outputs={"y": lambda v: v.k},
        update=update,
        has_event_mode=True,
    )


def test_a_clock_of_a_tenth_of_a_microsecond_runs(simulate: Simulate) -> None:
    unit = ticking(lambda k: 1e-7)
    results = simulate({"clock": unit}, event_mode=True, step_size=1e-5, stop_time=1e-5)
    assert results["clock.y"][-1] == pytest.approx(100, abs=1)


def test_time_events_that_accumulate_are_told(simulate: Simulate) -> None:
    unit = ticking(lambda k: 0.5**k)
    with pytest.raises(ZenoError, match="zeno: events of clock: events accumulate at t = 2 s") as e:
        simulate({"clock": unit}, event_mode=True, step_size=1, stop_time=3)
    assert e.value.limit == pytest.approx(2.0, abs=1e-6)


def test_a_time_event_that_names_the_present_time_for_ever_is_told(simulate: Simulate) -> None:
    unit = PythonFmu(update=lambda v: UpdateAnswer(next_event_time=v.t), has_event_mode=True)
    with pytest.raises(
        SimulationError, match=r"illegitimate: events at t = 0 s do not end: 'clock'"
    ):
        simulate({"clock": unit}, event_mode=True, step_size=1, stop_time=3)


# More events than time can outrun -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "is_too_dense"), [(3e-5, True), (4e-5, False)])
def test_a_rate_is_judged_by_a_usual_step(gap: float, is_too_dense: bool) -> None:
    history = EventHistory()
    times = [1 + k * gap for k in range(3 * MOST_IN_A_STEP)]
    found = [history.too_dense("a", time, STEP) for time in times]
    assert any(found) == is_too_dense
    assert history.too_dense("b", times[-1], STEP) is None


def test_events_that_creep_end_with_a_message_that_names_them_and_the_mode(
    simulation: Callable[..., Any],
) -> None:
    """Each event lets the next one come a microsecond later."""

    def update(v: Any) -> None:
        if v.again:
            v.x, v.mode = 1e-6, 1 - v.mode

    def step(v: Any, h: float) -> None:
        v.x -= h

    event = EventDeclaration("slip", Scope.PRIVATE, (Indicator("z", "dz"),), None, "again", ())
    unit = PythonFmu(
        inputs={"again": False},
        states={"x": 0.5, "mode": 0},
        outputs={"z": lambda v: v.x, "dz": lambda v: -1.0, "sticks": lambda v: v.mode},
        attributes={
            "again": {"type": DataType.CLOCK},
            "dz": {"derivative_of": "z"},
            "sticks": {"type": DataType.INT32},
        },
        step=step,
        update=update,
        events=[event],
        has_event_mode=True,
    )
    run = simulation({"mass": unit}, [], event_clock=Predictive(), step_size=0.1, stop_time=1)
    with pytest.raises(SimulationError, match="creeping: 'mass' has had 3001 events") as caught:
        run.run()
    message = str(caught.value)
    assert "one each 1e-06 s" in message
    assert "The last ones: 'mass.slip'. Now: mass.z = " in message
    assert "mass.sticks = " in message
    assert caught.value.results.time[-1] == pytest.approx(0.503, abs=1e-4)
