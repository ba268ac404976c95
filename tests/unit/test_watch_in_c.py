"""Where the watch in C is quiet, event clocks find nothing: at the end of a step, in it, and before the end of the next."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from event_store import NOTHING, STEP, USE, units
from numpy.typing import NDArray
from python_fmu import Bench

from fmimaster.algorithms import Algorithm, Aligned, Jacobi, Waveform
from fmimaster.base.installation import reference_path
from fmimaster.events.event_clock import EarlyReturn, EventClock, Towards, Watch, watch_data
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import APPROACH, NEAR, NOW, Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.instants.instant import Goal, Instant
from fmimaster.plan.plan import Plan
from fmimaster.program.indicators import Indicators
from fmimaster.record.causes import GRID, Cause, Kind
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.system.model import DataType

if native_executor() is None:
    pytest.skip("the kernel is not built", allow_module_level=True)

from fmimaster.kernel._kernel import ffi, lib

HISTORY = 4

KINDS: dict[str, dict[str, Any]] = {
    "with derivatives": {"slopes": True, "triggered": True},
    "without derivatives": {"slopes": False, "triggered": True},
    "of the FMU": {"slopes": True, "triggered": False},
    "with a tolerance": {"slopes": True, "triggered": True, "tolerance": 0.1},
}


class Watched:
    """Indicators in the store of a kernel, and a clock that looks at them."""

    def __init__(self, clock: EventClock, monkeypatch: pytest.MonkeyPatch, **kind: Any) -> None:
        monkeypatch.setattr(Bench, "backend", Backend.NATIVE)
        able: dict[str, Any] = {
            "can_get_and_set_fmu_state": True,
            "might_return_early_from_do_step": True,
        }
        made = units({"hit": ["z", "w"], "pass": ["x"]}, **kind, **able)
        self.clock = clock
        self.bench = bench = Bench(made, use=USE, history=HISTORY)
        self.executor: Any = bench.executor
        self.store = self.executor.store
        self.indicators = Indicators(bench.plan, self.store, HISTORY, STEP)
        data = watch_data(clock, self.indicators)
        assert data is not None
        self.watches: Any = self.executor.watches([data])

    def put(self, values: Any, time: float) -> None:
        """All Float64 outputs, as a step leaves them."""
        self.store.outputs[DataType.FLOAT64][:] = values
        self.store.read[:] = time

    def remember(self) -> None:
        """The kernel's history is of the outputs as they are."""
        lib.fm_remember(
            self.executor.kernel, ffi.new("fm_instruction *", {"remember": {"buffer": -1}})
        )

    def is_quiet(self, begin: float, end: float, following: float) -> bool:
        watch = self.watches[0]
        return bool(watch.is_quiet(watch.self, self.executor.kernel, begin, end, following))

    def finds(self, begin: float, end: float, following: float) -> bool:
        """Whether the clock finds anything, asked as the stepper asks it; and the step is in the history."""
        self.indicators.renew(is_tried=True)
        passed = self.clock.undoes(self.bench.plan) and self.clock.passed(
            self.indicators, begin, end, 0
        )
        self.remember()
        self.indicators.renew()
        found = self.clock.detect(self.indicators)
        goal = Goal(Instant(following), GRID)
        clipped = self.clock.clip(goal, Instant(end), self.indicators, NOTHING)
        return bool(passed or found or clipped is not goal)


QUINTIC = Jacobi(Polynomial(2, 2))


@pytest.mark.parametrize(
    ("clock", "algorithm"),
    [
        (Predictive(), QUINTIC),
        (LookAhead(), QUINTIC),
        (EarlyReturn(), Waveform(Aligned(QUINTIC), sweeps=2)),
    ],
)
def test_between_events_a_clock_is_not_called(
    clock: EventClock, algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    kind: Any = type(clock)
    clip = kind.clip

    def counted(self: EventClock, *arguments: Any) -> Goal:
        nonlocal calls
        calls += 1
        found: Goal = clip(self, *arguments)
        return found

    monkeypatch.setattr(kind, "clip", counted)
    run = Simulation(
        reference_path("systems/two-mass-b3-fmi3.ssp"),
        algorithm=algorithm,
        event_clock=clock,
        step_size="1/1000",
        stop_time=2,
    )
    results = run.run()
    assert results.statistics is not None
    assert len(results.events) == 2
    assert results.statistics.steps >= 2000
    assert calls < results.statistics.steps / 10


class Other(Predictive):
    def detect(self, indicators: Indicators) -> frozenset[int]:
        return NOTHING


class OtherWatched(Other):
    def watch(self, plan: Plan) -> Watch:
        return Watch(predicts=True)


def test_the_watch_of_a_clock_is_not_that_of_a_subclass_with_other_methods() -> None:
    plan: Any = None
    steps = Towards(APPROACH, NEAR, NOW)
    assert Predictive(go_back=False).watch(plan) == Watch(True, True, towards=steps)
    assert Other().watch(plan) is None
    assert OtherWatched().watch(plan) == Watch(predicts=True)


def some_motion(
    choose: random.Random, n: int, unit: float, times: Sequence[float]
) -> list[NDArray[np.float64]]:
    """Values at times in s that are nearly smooth, or jump; first the indicators, then their derivatives."""
    touching = choose.choice([1e-13, 1.0, 1.0, 1.0])
    a, b, c = (
        touching * scale * np.array([choose.uniform(*limits) for _ in range(n // 2)])
        for limits, scale in (
            ((-0.2, 1.0), 1.0),
            ((-1.0, 1.0), 1.0 / STEP),
            ((-1.0, 3.0), 1.0 / STEP**2),
        )
    )
    noise = choose.choice([0.0, 0.0, 1e-3, 0.3])
    found = []
    for t in (time - times[-1] for time in times):
        z, dz = a + b * t + c * t * t, b + 2 * c * t
        rough = np.array([1 + choose.gauss(0.0, noise) for _ in range(n)])
        found.append(unit * np.concatenate([z, dz]) * rough)
    return found


@pytest.mark.parametrize("clock", [Predictive(), EarlyReturn(), LookAhead(shortest=1e-3)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_finds_nothing_where_the_watch_is_quiet(
    clock: EventClock, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, quiet = random.Random(3), 0
    watched = Watched(clock, monkeypatch, **KINDS[kind])
    n, cases = len(watched.indicators.present()), 300
    for case in range(cases):
        lengths = [choose.choice([0.01, 0.5, 1.0, 1.0]) * STEP for _ in range(HISTORY + 2)]
        *times, end, following = np.cumsum(lengths).tolist()
        unit = choose.choice([1e-6, 1.0, 1e6])
        *before, now = some_motion(choose, n, unit, [*times, end])
        watched.store.largest[:] = unit * choose.random()
        watched.store.forget()
        for time, values in zip(times, before, strict=True):
            if time >= times[case % HISTORY]:  # there are fewer points after an event
                watched.put(values, time)
                watched.remember()
        watched.put(now, end)
        before_it = watched.store.largest.copy()
        is_quiet = watched.is_quiet(times[-1], end, following)
        largest = watched.store.largest.copy()
        watched.store.largest[:] = before_it
        assert not (watched.finds(times[-1], end, following) and is_quiet)
        if is_quiet:
            assert largest.tobytes() == watched.store.largest.tobytes()
            quiet += 1
    assert quiet > cases / 10


def clipped_in_c(watched: Watched, begin: float, end: float) -> tuple[float, int] | None:
    """The end of a step and the code of its cause by the watch; None if it leaves that to Python."""
    watch, found, code = watched.watches[0], ffi.new("double *", end), ffi.new("int64_t *", -1)
    if not watch.clips(watch.self, watched.executor.kernel, begin, found, code):
        return None
    return found[0], code[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_watch_lets_a_step_end_where_the_clock_does(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, known, clips = random.Random(5), 0, 0
    watched = Watched(Predictive(), monkeypatch, **KINDS[kind])
    n, cases = len(watched.indicators.present()), 300
    for case in range(cases):
        lengths = [choose.choice([0.01, 0.5, 1.0, 1.0]) * STEP for _ in range(HISTORY + 1)]
        *times, following = np.cumsum(lengths).tolist()
        motion = some_motion(choose, n, choose.choice([1e-6, 1.0, 1e6]), times)
        watched.store.largest[:] = 0.0
        watched.store.forget()
        for time, values in zip(times, motion, strict=True):
            if time >= times[case % HISTORY]:
                watched.put(values, time)
                watched.remember()
                watched.indicators.renew()
                watched.indicators.present()
        goal, now = Goal(Instant(following), GRID), Instant(times[-1])
        clipped = watched.clock.clip(goal, now, watched.indicators, NOTHING)
        found = clipped_in_c(watched, times[-1], following)
        if found is not None:
            known += 1
            names = [event.name for event in watched.bench.plan.events]
            cause = GRID if found[1] < 0 else Cause(Kind.PREDICTED, (names[found[1]],))
            clips += found[1] >= 0
            assert (found[0], cause) == (clipped.end.seconds, clipped.cause)
            assert not clipped.fire
    assert known > cases / 10
    assert clips > cases / 10 or not KINDS[kind]["triggered"]
