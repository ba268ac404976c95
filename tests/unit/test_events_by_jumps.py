"""Events at which no FMU stops: an input that jumps switches them on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster import AccuracyWarning
from fmimaster.events.event_clock import EarlyReturn, EventClock
from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.run.executor import Backend
from fmimaster.system.declarations import EventDeclaration, EventPolicy, Indicator, Scope
from fmimaster.system.model import DataType, Variability

pytestmark = pytest.mark.filterwarnings(  # its input is a table, whose values are held
    "ignore:.*inputs that are held:fmimaster.base.errors.AccuracyWarning"
)


def limited(*, event_mode: bool) -> PythonFmu:
    """Its event is on if the input has come up to a limit, which the event lifts by 1."""

    def execute(v: Any) -> None:
        v.limit += v.hit - v.seen
        v.seen = v.hit

    def shown(v: Any) -> float:
        return float(v.limit + (0 if event_mode else v.hit - v.seen) - v.u)

    return PythonFmu(
        inputs={"u": 0.0, "hit": 0},
        parameters={"policy": 0},
        states={"limit": 0.5, "seen": 0},
        outputs={"z": shown, "count": lambda v: v.limit - 0.5},
        depends={"z": ["u"]},
        attributes={
            "hit": {"type": DataType.INT32, "variability": Variability.DISCRETE},
            "policy": {"type": DataType.INT32, "variability": Variability.TUNABLE},
        },
        step=lambda v, h: execute(v),
        update=execute,
        events=[
            EventDeclaration(
                "hit",
                Scope.PRIVATE,
                (Indicator("z"),),
                trigger="hit",
                right_limits_without_step=not event_mode,
            )
        ],
        event_policy=EventPolicy("policy", execute=0, announce=1, ignore=2),
        has_event_mode=event_mode,
        might_return_early_from_do_step=event_mode,
    )


BACKENDS = pytest.mark.parametrize(
    "backend", [Backend.REFERENCE, Backend.FASTEST], ids=["reference", "native"]
)
JUMPS = pytest.mark.parametrize("jump", [0.5, 0.53], ids=["on the grid", "between"])


@pytest.fixture
def run(simulation: Callable[..., Simulation], tmp_path: Path) -> Callable[..., Results]:
    """run(unit, jump, **settings): the input rises to 1 at a time in s."""

    def run(unit: PythonFmu, jump: float, **settings: Any) -> Results:
        file = tmp_path / "u.csv"
        file.write_text(f"time,a.u\n0,0\n{jump},0\n{jump},1\n2,1\n", encoding="utf-8")
        settings |= {"step_size": 0.1, "stop_time": 1.0, "input": file}
        return simulation({"a": unit}, **settings).run()

    return run


@BACKENDS
@JUMPS
@pytest.mark.parametrize("clock", [EarlyReturn(), Predictive()], ids=["E1", "PZ"])
def test_an_input_that_jumps_switches_an_event_on(
    run: Callable[..., Results], backend: Backend, clock: EventClock, jump: float
) -> None:
    """The FMU enters Event Mode for the jump; its event follows at the same instant, in time."""
    results = run(limited(event_mode=True), jump, backend=backend, event_clock=clock)
    assert [(e.name, e.time) for e in results.events] == [("event of a", jump), ("a.hit", jump)]
    assert results["a.count"][-1] == 1


@BACKENDS
@pytest.mark.parametrize(
    ("clock", "after", "jump"),
    [(EarlyReturn(), 0.1, 0.5), (EarlyReturn(), 0.1, 0.53), (Predictive(), 1e-3, 0.5)],
)
def test_without_event_mode_an_input_that_jumps_shows_in_the_step_after_it(
    run: Callable[..., Results], backend: Backend, clock: EventClock, after: float, jump: float
) -> None:
    """Without Event Mode an FMU takes its inputs with a step: the event is late by that step, and that is told."""
    with pytest.warns(AccuracyWarning, match=r"'a\.hit' was found late once"):
        results = run(limited(event_mode=False), jump, backend=backend, event_clock=clock)
    assert [e.name for e in results.events] == ["a.hit"]
    assert jump < results.events[0].time <= jump + after + 1e-12
    assert results["a.count"][-1] == 1


@BACKENDS
def test_an_indicator_that_is_corrected_for_a_jump_shows_the_event_at_once(
    run: Callable[..., Results], backend: Backend
) -> None:
    """In a short step the measured partial derivative is not judged by the jump, so that the correction is used."""
    results = run(limited(event_mode=False), 0.53, backend=backend, event_clock=Predictive())
    assert [(e.name, e.time) for e in results.events] == [("a.hit", 0.53)]
    assert results["a.count"][-1] == 1
