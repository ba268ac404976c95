"""Algebraic loops in Event Mode: loops.md 7.2, each case of its section 4, when the functions appear at an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from loop_cases import CASES, MORE, MOST_SWEEPS, LoopCase, Unit, names_of
from pytest import approx
from python_fmu import PythonFmu

from fmimaster.base.errors import LoopError
from fmimaster.fmu.instance import UpdateAnswer
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.step_groups import Loops
from fmimaster.results.results import Results
from fmimaster.system.model import DataType

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

CLOSE = 1e-8
"""loops.md, section 4."""

EVENT = 0.5
"""Time of the event in s."""


def fmu_of(unit: Unit, before: float, *, derivatives: bool) -> PythonFmu:
    """Gives a constant until the event, then the function of its inputs."""
    names = names_of(unit)

    def update(v: Any) -> UpdateAnswer:
        v.on = v.on or v.t >= EVENT
        return UpdateAnswer(next_event_time=EVENT if v.t < EVENT else float("inf"))

    def value(v: Any) -> float:
        return unit.function(*(getattr(v, name) for name in names)) if v.on else before

    def partial_of(k: int) -> Callable[[Any], float]:
        return lambda v: unit.partials(*(getattr(v, n) for n in names))[k] if v.on else 0.0

    nominal = {} if unit.nominal is None else {"nominal": unit.nominal, "has_nominal": True}
    return PythonFmu(
        inputs=dict.fromkeys(names, before),
        states={"on": False},
        outputs={"y": value},
        depends={"y": names},
        attributes={"y": nominal},
        update=update,
        has_event_mode=True,
        partials={"y": {name: partial_of(k) for k, name in enumerate(names)}}
        if derivatives
        else None,
    )


def simulated(simulate: Simulate, case: LoopCase, *, derivatives: bool = False) -> Results:
    start = next(iter(case.start.values()), 0.0)
    units = {name: fmu_of(u, start, derivatives=derivatives) for name, u in case.units.items()}
    return simulate(
        units,
        case.connections,
        case.start,
        stop_time=1.0,
        step_size=0.25,
        event_mode=True,
        loops=Loops.NONE,
        loop_solver=LoopSolver(relative=1e-10),
    )


@pytest.mark.filterwarnings("ignore:.*solution not unique")  # L6c with derivatives
@pytest.mark.parametrize("derivatives", [False, True])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.solution])
def test_a_loop_that_appears_at_an_event_is_solved_there(
    simulate: Simulate, name: str, derivatives: bool
) -> None:
    """loops.md 7.2, L1 to L9 in Event Mode, from the values before the event."""
    case = CASES[name]
    results = simulated(simulate, case, derivatives=derivatives)
    after = np.flatnonzero(results.time == EVENT)[-1]
    for output, value in case.solution.items():
        assert results[output][after] == approx(value, rel=CLOSE)
    (loop,) = results.statistics.loops
    measured = 2 if case.sweeps == 1 else 0  # once, where the values before already solve the loop
    assert loop.most_sweeps <= MORE * case.sweeps + measured


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.reason])
def test_a_loop_without_solution_ends_the_run_at_the_event(simulate: Simulate, name: str) -> None:
    """loops.md 7.2, L6a and L6b in Event Mode: the class, and what was computed until then."""
    with pytest.raises(LoopError) as caught:
        simulated(simulate, CASES[name])
    assert caught.value.reason == CASES[name].reason
    assert caught.value.sweeps <= MOST_SWEEPS
    assert caught.value.time == EVENT
    assert caught.value.results is not None
    assert caught.value.results.time[-1] == EVENT


@pytest.mark.parametrize("gain", [-50.0, 0.99])
def test_a_loop_of_single_precision_settles_at_an_event(simulate: Simulate, gain: float) -> None:
    """As closely as its rounding allows, and not in ever new updates."""
    single = {name: {"type": DataType.FLOAT32} for name in "uy"}

    def update(v: Any) -> UpdateAnswer:
        v.on = v.on or v.t >= EVENT
        return UpdateAnswer(next_event_time=EVENT if v.t < EVENT else float("inf"))

    def output(of: Callable[[float], float]) -> Callable[[Any], float]:
        return lambda v: of(v.u) if v.on else 0.0

    units = {
        name: PythonFmu(
            inputs={"u": 0.0},
            states={"on": False},
            outputs={"y": output(f)},
            depends={"y": ["u"]},
            attributes=single,
            update=update,
            has_event_mode=True,
        )
        for name, f in {"a": lambda u: gain * u + 1.2, "b": lambda u: u}.items()
    }
    results = simulate(
        units, ["a.y -> b.u", "b.y -> a.u"], stop_time=1.0, step_size=0.25, event_mode=True
    )
    assert results["b.y"][-1] == approx(1.2 / (1 - gain), rel=1e-4)
    assert np.count_nonzero(results.time == EVENT) <= 4  # left limit, event, what follows from it


def test_what_is_left_of_a_loop_among_those_in_event_mode_is_solved(simulate: Simulate) -> None:
    """a = 1 - 3 b + c, b = a, where c = 2 a has no Event Mode: its value stays, while plain sweeps of a and b diverge."""

    def update(v: Any) -> UpdateAnswer:
        v.on = v.on or v.t >= EVENT
        return UpdateAnswer(next_event_time=EVENT if v.t < EVENT else float("inf"))

    events: dict[str, Any] = {"update": update, "has_event_mode": True}
    units = {
        "a": PythonFmu(
            inputs={"b": 0.0, "c": 0.0},
            states={"on": False},
            outputs={"y": lambda v: 1 - 3 * v.b + v.c if v.on else 0.0},
            depends={"y": ["b", "c"]},
            **events,
        ),
        "b": PythonFmu(
            inputs={"a": 0.0},
            states={"on": False},
            outputs={"y": lambda v: v.a},
            depends={"y": ["a"]},
            **events,
        ),
        "c": PythonFmu(inputs={"a": 0.0}, outputs={"y": lambda v: 2 * v.a}, depends={"y": ["a"]}),
    }
    results = simulate(
        units,
        ["b.y -> a.b", "c.y -> a.c", "a.y -> b.a", "a.y -> c.a"],
        stop_time=EVENT,
        step_size=0.25,
        event_mode=True,
        loops=Loops.NONE,
    )
    assert results["a.y"][-1] == approx(0.25, rel=1e-7)
    assert results["b.y"][-1] == approx(0.25, rel=1e-7)
    assert results["c.y"][-1] == 0.0
