"""What the coming packs need: each is written here in a few lines, on the interfaces that a user has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from python_fmu import PythonFmu

import fmimaster.algorithms.assemble
import fmimaster.prepare.preparation
from fmimaster import Simulation, reference_path
from fmimaster.algorithms import (
    Algorithm,
    Aligned,
    AutomaticSequence,
    Emitter,
    GaussSeidel,
    Jacobi,
    Plan,
    Sequential,
    Waveform,
)
from fmimaster.events import Check, EarlyReturn, Predictive
from fmimaster.inputs import Polynomial
from fmimaster.plan.layout import Group, Signal
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.results.results import Results
from fmimaster.run.executor import Backend
from fmimaster.system.model import DataType

Simulate = Callable[..., Results]
LINE = Polynomial(2, 0, history=False)


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
        (fmimaster.prepare.preparation, "make_plan"),
        (fmimaster.prepare.preparation, "assemble"),
        (fmimaster.algorithms.assemble, "emit_initialization"),
        (Jacobi, "emit"),
        (Sequential, "emit"),
    ):
        count(owner, name)
    Simulation(TWO_MASS, algorithm=algorithm, event_clock=clock, step_size=0.1).prepare()
    assert made == {"make_plan": 1, "assemble": 1, "emit_initialization": 1, "emit": attempts}
