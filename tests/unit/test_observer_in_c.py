"""The watch over events that FMUs execute themselves: quiet just where, by its course in Python, none was to happen."""

from __future__ import annotations

import random
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from event_store import STEP
from python_fmu import Bench, PythonFmu

from fmimaster.events.look_ahead import LookAhead
from fmimaster.plan.policy import EventUse
from fmimaster.program.indicators import Indicators
from fmimaster.run.changes import Observer
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.steps.step_rule import FixedStep
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DataType

if native_executor() is None:
    pytest.skip("the kernel is not built", allow_module_level=True)

from fmimaster.kernel._kernel import ffi, lib

HISTORY = 5
SHOWN = {
    "by derivatives": ((Indicator("z", "dz"), Indicator("w", "dw")), None),
    "by values": ((Indicator("z"), Indicator("w")), None),
    "by a counter": ((Indicator("z"),), "n"),
}


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "n": {"type": DataType.INT32},
    "dz": {"derivative_of": "z"},
    "dw": {"derivative_of": "w"},
}


def unit(indicators: tuple[Indicator, ...], counter: str | None) -> PythonFmu:
    """Executes an event of its own."""
    return PythonFmu(
        outputs=dict.fromkeys(("z", "w", "dz", "dw"), lambda v: 0.0) | {"n": lambda v: 0},
        attributes=ATTRIBUTES,
        events=[EventDeclaration("hit", Scope.PRIVATE, indicators, announce=counter)],
    )


class Observed:
    """An observer in Python and its watch, on the store of a kernel."""

    def __init__(self, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Bench, "backend", Backend.NATIVE)
        self.bench = bench = Bench(
            {"a": unit(*SHOWN[shown])}, use=EventUse(watched=True), history=HISTORY
        )
        self.store, self.now = bench.executor.store, SimpleNamespace(seconds=0.0)
        loop: Any = SimpleNamespace(
            plan=bench.plan,
            clock=LookAhead(),
            indicators=Indicators(bench.plan, self.store, HISTORY, STEP),
            programs=SimpleNamespace(between=0, extrapolates=False),
            rule=FixedStep(STEP),
            executor=bench.executor,
            state=SimpleNamespace(time=self.now, executed=-inf),
        )
        self.indicators = loop.indicators
        self.observer = Observer(loop)
        twin = self.observer.watch()
        assert twin is not None
        assert twin.numbers["n"] == 1
        executor: Any = bench.executor
        self.kernel, self.watches = executor.kernel, executor.watches([twin])

    def put(self, time: float, values: Any, count: int) -> None:
        """Outputs as a step leaves them."""
        self.store.outputs[DataType.FLOAT64][:] = values
        self.store.outputs[DataType.INT32][:] = count
        self.store.read[:] = time

    def remember(self) -> None:
        """They come into the history."""
        lib.fm_remember(self.kernel, ffi.new("fm_instruction *", {"remember": {"buffer": -1}}))

    def is_quiet(self, begin: float, end: float) -> bool:
        watch = self.watches[0]
        return bool(watch.is_quiet(watch.self, self.kernel, begin, end, end + STEP))

    def was_due(self, end: float) -> bool:
        """As Python finds it, once the step is in the history."""
        self.remember()
        self.indicators.renew()
        self.now.seconds = end
        return any(self.observer._course(w).was_due for w in self.observer._watched)


@pytest.mark.parametrize("shown", SHOWN)
def test_the_watch_is_quiet_where_no_event_was_due(
    shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, observed = random.Random(7), Observed(shown, monkeypatch)
    cases, quiet = 400, 0
    for _ in range(cases):
        n = choose.randrange(1, HISTORY + 1)  # there are fewer points after an event
        times = np.cumsum([choose.choice([0.01, 0.5, 1.0]) * STEP for _ in range(n + 1)])
        h = times - times[-1]
        a, b, c = (
            choose.choice([1e-6, 1.0]) * np.array([[choose.uniform(*at)], [choose.uniform(*at)]])
            for at in ((-0.5, 0.5), (-5.0, 0.0), (-20.0, 20.0))
        )
        values = np.concatenate([a + b * h + c * h * h, b + 2 * c * h])
        if choose.random() < 0.2:  # it steps on a grid of its own
            values[:, -2] = values[:, -2 - (n > 1)]
        if choose.random() < 0.05:
            values[choose.randrange(4), choose.randrange(n + 1)] = np.nan
        count = choose.randrange(2)
        observed.store.forget()
        for k in range(n):
            observed.put(float(times[k]), values[:, k], count)
            observed.remember()
        observed.put(float(times[-1]), values[:, -1], choose.randrange(2))
        is_quiet = observed.is_quiet(float(times[-2]), float(times[-1]))
        assert is_quiet is not observed.was_due(float(times[-1]))
        quiet += is_quiet
    assert cases / 10 < quiet < 0.95 * cases
