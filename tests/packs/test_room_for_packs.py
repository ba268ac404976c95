"""What the coming packs need: each is written here in a few lines, on the interfaces that a user has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import cos, exp, hypot, sin
from typing import Any

import pytest
from python_fmu import PythonFmu

import fmimaster.preparation
from fmimaster import (
    Algorithm,
    Aligned,
    AutomaticSequence,
    Check,
    EarlyReturn,
    Emitter,
    GaussSeidel,
    Jacobi,
    Plan,
    Polynomial,
    Predictive,
    Sequential,
    Simulation,
    SystemBuilder,
    Waveform,
    reference_path,
)
from fmimaster.algorithms import Initialization
from fmimaster.plan.layout import Group, Signal
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.results.results import Results
from fmimaster.run.choice import Backend, native_executor
from fmimaster.system.model import DataType

Simulate = Callable[..., Results]
LINE = Polynomial(2, 0, history=False)


@pytest.fixture(params=[Backend.REFERENCE, Backend.NATIVE], ids=["reference", "native"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param is Backend.NATIVE and native_executor() is None:
        pytest.skip("the kernel is not built")
    chosen: Backend = request.param
    return chosen


def pair(algorithm: Algorithm, steps: int, backend: Backend) -> float:
    """Error at t = 1 s of the pair a' = -a + 2 b, b' = -3 b - a from (1, 1)."""
    system = SystemBuilder("pair")
    for name, k in (("a", 1.0), ("b", 3.0)):
        system.add(name, reference_path("fmi3/Dahlquist.fmu"), {"k": k, "x": 1.0})
    system.connect("b.x", "a.u", factor=2.0)
    system.connect("a.x", "b.u", factor=-1.0)
    options: dict[str, Any] = {"stop_time": 1, "step_size": f"1/{steps}", "backend": backend}
    results = Simulation(system.build(), algorithm=algorithm, **options).run()
    a, b = exp(-2) * (cos(1) + 3 * sin(1)), exp(-2) * (cos(1) - 2 * sin(1))
    return hypot(results["a.x"][-1] - a, results["b.x"][-1] - b)


# Parts of a system ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts(Algorithm):
    """One algorithm for some instances, another one for all others, which come after them."""

    names: tuple[str, ...]
    first: Algorithm
    second: Algorithm

    def emit(self, plan: Plan, p: Emitter) -> None:
        chosen = [i for i in plan.trigger_sequence if plan.instances[i].name in self.names]
        others = [i for i in plan.trigger_sequence if i not in chosen]
        self.first.emit(replace(plan, trigger_sequence=tuple(chosen)), p)
        self.second.emit(replace(plan, trigger_sequence=tuple(others)), p)


def adder() -> PythonFmu:
    """Adds its input to its state in each step, whatever the length of the step."""

    def step(v: Any, h: float) -> None:
        v.x += v.u

    return PythonFmu(inputs={"u": 0.0}, states={"x": 1.0}, outputs={"y": lambda v: v.x}, step=step)


def test_two_parts_of_a_system_have_different_algorithms(
    simulate: Simulate, backend: Backend
) -> None:
    results = simulate(
        {name: adder() for name in "abcde"},
        ["a.y -> b.u", "b.y -> a.u", "c.y -> d.u", "d.y -> c.u", "b.y -> e.u"],
        algorithm=Parts(("a", "b"), Jacobi(), GaussSeidel()),
        stop_time=3,
        step_size=1,
        backend=backend,
    )
    # Jacobi: each takes the other one of before. Gauss-Seidel: d takes the new c, and e the new b
    assert results["a.y"].tolist() == results["b.y"].tolist() == [1, 2, 4, 8]
    assert results["c.y"].tolist() == [1, 2, 5, 13]
    assert results["d.y"].tolist() == [1, 3, 8, 21]
    assert results["e.y"].tolist() == [1, 3, 7, 15]


# Nested intervals -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Richardson(Algorithm):
    """One whole step of the base, and again in two halves, which are kept."""

    base: Algorithm

    @property
    def order(self) -> int:
        return self.base.order

    @property
    def handles_early_returns(self) -> bool:
        return self.base.handles_early_returns

    def emit(self, plan: Plan, p: Emitter) -> None:
        places, start = p.save(plan.members), p.keep()
        self.base.emit(plan, p)
        p.restore(places)
        p.recall(start)
        for half in (0.0, 0.5):
            with p.over(half, half + 0.5):
                self.base.emit(plan, p)


def test_halves_of_an_iterated_step_are_as_accurate_as_steps_of_half_the_size(
    backend: Backend,
) -> None:
    base = Waveform(Jacobi(LINE), sweeps=12, restart_sweeps=12)
    assert pair(Richardson(base), 10, backend) == pytest.approx(pair(base, 20, backend), rel=1e-3)
    assert pair(base, 10, backend) > 3 * pair(base, 20, backend)


# Signals of the run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum(Hook):
    """Adds the outputs of two instances up in a signal."""

    name: str
    outputs: tuple[int, ...]
    signal: int

    def __call__(self, store: ValueStore) -> bool:
        values = store.values[DataType.FLOAT64]
        values[self.signal] = sum(values[k] for k in self.outputs)
        return False


class Summing(Jacobi):
    """Jacobi that records the sum of all outputs."""

    __slots__ = ()

    def signals(self) -> tuple[Signal, ...]:
        return (Signal("total", "kg"),)

    def emit(self, plan: Plan, p: Emitter) -> None:
        super().emit(plan, p)
        slots = tuple(plan.layout.slots[i, Group.OUTPUTS, "y"][1].start for i in plan.members)
        p.call(Sum("sum of outputs", slots, plan.layout.signals["total"][1]))


@pytest.mark.parametrize("outputs", [(), ("total", "a.y")])
def test_a_hook_writes_a_signal_that_is_a_column_of_the_results(
    simulate: Simulate, backend: Backend, outputs: tuple[str, ...]
) -> None:
    results = simulate(
        {"a": adder(), "b": adder()},
        ["a.y -> b.u", "b.y -> a.u"],
        algorithm=Summing(),
        stop_time=3,
        step_size=1,
        output_variables=outputs,
        backend=backend,
    )
    assert results["total"].tolist() == [0.0, 4.0, 8.0, 16.0]
    assert results.units == {"total": "kg"}
    assert set(results.names) == ({"a.y", "total"} if outputs else {"a.y", "b.y", "total"})


@dataclass(frozen=True)
class Counter(Hook):
    """Counts in a signal how often it is called."""

    name: str
    signal: int

    def __call__(self, store: ValueStore) -> bool:
        store.values[DataType.FLOAT64][self.signal] += 1.0
        return False


class Converging(Jacobi):
    """Jacobi, repeated until the outputs have converged, with the number of all passes as a signal."""

    __slots__ = ()

    def signals(self) -> tuple[Signal, ...]:
        return (Signal("passes"),)

    def emit(self, plan: Plan, p: Emitter) -> None:
        places = p.save(plan.members)
        with p.repeat(least=1, most=5, tolerance=1e-9):
            p.restore(places)
            super().emit(plan, p)
            p.call(Counter("passes", plan.layout.signals["passes"][1]))


def test_an_iteration_converges_though_a_signal_changes_in_each_pass(
    simulate: Simulate, backend: Backend
) -> None:
    results = simulate(
        {"a": adder()}, algorithm=Converging(), stop_time=3, step_size=1, backend=backend
    )
    assert results["passes"].tolist() == [0.0, 2.0, 4.0, 6.0]


# Plan once, emit once -------------------------------------------------------------------------------------------------

TWO_MASS = reference_path("systems/two-mass-b1-mixed.ssp")


@pytest.mark.parametrize(
    ("algorithm", "clock", "attempts"),
    [
        (Jacobi(), None, 1),
        (Jacobi(Polynomial(2, 2)), Predictive(), 1),
        (AutomaticSequence(), Check(), 3),
        (Waveform(Aligned(Jacobi(Polynomial(2, 2)))), EarlyReturn(), 2),  # one without history
    ],
)
def test_a_plan_is_made_once_and_each_program_is_written_once(
    algorithm: Algorithm, clock: Any, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, int] = {}

    def count(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            made[name] = made.get(name, 0) + 1
            return function(*args, **options)

        monkeypatch.setattr(owner, name, call)

    for owner, name in (
        (fmimaster.preparation, "make_plan"),
        (fmimaster.preparation, "assemble"),
        (Initialization, "emit"),
        (Jacobi, "emit"),
        (Sequential, "emit"),
    ):
        count(owner, name)
    Simulation(TWO_MASS, algorithm=algorithm, event_clock=clock, step_size=0.1).prepare()
    assert made == {"make_plan": 1, "assemble": 1, "emit": 1 + attempts}


# Events inside a repeated step ----------------------------------------------------------------------------------------


def test_an_algorithm_that_tries_a_step_twice_around_early_returns_finds_twelve_events(
    backend: Backend,
) -> None:
    e2 = Waveform(Aligned(Jacobi(Polynomial(2, 2))), sweeps=2)
    path = reference_path("systems/two-mass-b3-fmi3.ssp")

    def run(algorithm: Algorithm) -> Results:
        options: dict[str, Any] = {"step_size": 0.2, "stop_time": 20, "backend": backend}
        return Simulation(path, algorithm=algorithm, event_clock=EarlyReturn(), **options).run()

    once, twice = run(e2), run(Richardson(e2))
    assert len(once.events) == len(twice.events) == 12
    assert [e.name for e in twice.events] == [e.name for e in once.events]
    times = [[e.time for e in r.events] for r in (once, twice)]
    assert times[1] == pytest.approx(times[0], abs=1e-3)
