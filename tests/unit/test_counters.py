"""Triggers that count, with Event Mode and without it (proposal, requirement I20)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.run.executor import Backend
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DataType, Variability


def falling(*, event_mode: bool, start: int = 0) -> PythonFmu:
    """x falls by 1 per second from 0.5, and begins anew when the counter ``hit`` changes."""

    def is_triggered(v: Any) -> bool:
        return bool(v.hit != v.seen)

    def now(v: Any) -> float:
        return 0.5 if is_triggered(v) and not event_mode else v.x

    def execute(v: Any) -> None:
        if is_triggered(v):
            v.x, v.seen = 0.5, v.hit

    def step(v: Any, h: float) -> None:
        execute(v)
        v.x -= h

    event = EventDeclaration(
        "hit",
        Scope.PRIVATE,
        (Indicator("z", "dz"),),
        trigger="hit",
        right_limits_without_step=not event_mode,
    )
    return PythonFmu(
        inputs={"hit": start},
        states={"x": 0.5, "seen": start},
        outputs={"z": now, "dz": lambda v: -1.0},
        attributes={
            "hit": {"type": DataType.INT32, "variability": Variability.DISCRETE},
            "dz": {"derivative_of": "z"},
        },
        step=step,
        update=execute,
        events=[event],
        has_event_mode=event_mode,
    )


@pytest.mark.parametrize(
    "backend", [Backend.REFERENCE, Backend.FASTEST], ids=["reference", "native"]
)
@pytest.mark.parametrize("event_mode", [True, False], ids=["Event Mode", "no Event Mode"])
@pytest.mark.parametrize("start", [0, 41, 2**31 - 2], ids=["0", "41", "nearly the largest"])
def test_a_counter_triggers_events(
    simulation: Callable[..., Simulation], backend: Backend, event_mode: bool, start: int
) -> None:
    unit = falling(event_mode=event_mode, start=start)
    results: Results = simulation(
        {"a": unit}, backend=backend, event_clock=Predictive(), step_size=0.2, stop_time=1.7
    ).run()
    assert [e.time for e in results.events] == pytest.approx([0.5, 1.0, 1.5], abs=1e-9)
    assert results["a.z"][-1] == pytest.approx(0.3, abs=1e-9)
    counted = (start + 3 + 2**31) % 2**32 - 2**31
    assert unit.instances[0].was_set("hit")[-1] == counted
