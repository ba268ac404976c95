"""Where the watch in C is quiet, event clocks find nothing: at the end of a step, in it, and before the end of the next."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from event_store import NOTHING, STEP, USE, units
from python_fmu import Bench

from fmimaster.causes import GRID
from fmimaster.control.event_clock import EarlyReturn, EventClock
from fmimaster.control.indicators import Indicators
from fmimaster.control.instant import Goal, Instant
from fmimaster.control.look_ahead import LookAhead
from fmimaster.control.predictive import Predictive
from fmimaster.control.watch import watch_data
from fmimaster.run.choice import Backend, native_executor
from fmimaster.system.model import DataType

if native_executor() is None:
    pytest.skip("the kernel is not built", allow_module_level=True)

from fmimaster.kernel._kernel import lib

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
        able = {"can_get_and_set_fmu_state": True, "might_return_early_from_do_step": True}
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
        lib.fm_remember(self.executor.kernel, -1)

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


def some_motion(choose: random.Random, n: int, unit: float) -> list[Any]:
    """Values at successive steps that are nearly smooth; first the indicators, then their derivatives."""
    a, b, c = (
        np.array([choose.uniform(low, 1.0) for _ in range(n // 2)]) * scale
        for low, scale in ((-0.2, 1.0), (-1.0, 1.0 / STEP), (-1.0, 0.3 / STEP**2))
    )
    noise = choose.choice([0.0, 0.0, 1e-3, 0.3])
    found = []
    for k in range(-HISTORY - 1, 1):
        t = k * STEP
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
    n, cases = len(watched.indicators.present()), 600
    for case in range(cases):
        *before, now = some_motion(choose, n, unit=choose.choice([1e-6, 1.0, 1e6]))
        watched.store.largest[:] = 0.0
        watched.store.forget()
        for k, values in enumerate(before):
            if k >= case % HISTORY:  # there are fewer points after an event
                watched.put(values, k * STEP)
                watched.remember()
        begin, end = (len(before) - 1) * STEP, len(before) * STEP
        watched.put(now, end)
        is_quiet = watched.is_quiet(begin, end, end + STEP)
        largest = watched.store.largest.copy()
        finds = watched.finds(begin, end, end + STEP)
        assert not (is_quiet and finds)
        if is_quiet:
            assert largest.tobytes() == watched.store.largest.tobytes()
            quiet += 1
    assert quiet > cases / 10
