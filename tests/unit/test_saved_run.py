"""Value store, registers and FMU states are all that an executor needs to go on from the middle of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from python_fmu import MOST_PLACES, Bench, PythonFmu, parse

from fmimaster.algorithms import Algorithm, Aligned, GaussSeidel, Jacobi, Waveform
from fmimaster.fmu.instance import StepAnswer
from fmimaster.inputs.polynomial import FIRST_ORDER, Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.policy import EventUse, Policy
from fmimaster.run.choice import choose_executor
from fmimaster.run.executor import Executor, InitialTimes
from fmimaster.run.rows import Counted
from fmimaster.system.description import Port, PowerBond
from fmimaster.system.model import DataType

pytestmark = pytest.mark.usefixtures("each_executor")

BOND = PowerBond("bond", (Port("a", "u", "y", "in"), Port("b", "u", "y", "out")), 1.0, 1e-3)
"""What it remembers from step to step goes on too."""
SAVED = (MOST_PLACES - 2, MOST_PLACES - 1)
"""Places that no algorithm here uses."""

ALGORITHMS = [
    GaussSeidel(),
    GaussSeidel(Polynomial(3, 0)),
    Jacobi(FIRST_ORDER),
    Jacobi(Polynomial(2, 1, mean=True)),
    GaussSeidel(Polynomial(3, 1, adaptive=True)),
    Waveform(Aligned(Jacobi(Polynomial(2, 1)))),
    Waveform(Aligned(GaussSeidel(Polynomial(2, 0))), solver=LoopSolver()),
]


def follower(**more: Any) -> PythonFmu:
    """x follows u, whose course over the step it takes; returns early at 0.55 s."""

    def step(v: Any, h: float) -> StepAnswer | None:
        end = v.t + h
        early = v.t < 0.55 < end
        h = 0.55 - v.t if early else h
        v.x += h * (v.course("u", v.t + h / 2) - v.x)
        return StepAnswer(0.55, early=True, event=True) if early else None

    return PythonFmu(
        inputs={"u": 0.0, "n": 0},
        states=more,
        outputs={"y": lambda v: v.x, "dy": lambda v: v.u - v.x, "n_out": lambda v: int(9 * v.x)},
        attributes={
            "dy": {"derivative_of": "y"},
            "n": {"type": DataType.INT32},
            "n_out": {"type": DataType.INT32},
        },
        step=step,
        has_event_mode=True,
        might_return_early_from_do_step=True,
        provides_intermediate_update=True,
    )


def bench(algorithm: Algorithm) -> Bench:
    b = Bench(
        {"a": follower(x=1.0), "b": follower(x=-0.3)},
        ["a.y -> b.u", "b.y -> a.u", "a.n_out -> b.n", "b.n_out -> a.n"],
        algorithm=algorithm,
        use=EventUse(policy=Policy.ANNOUNCE, early_return=True, event_mode=True),
        power_bonds=[BOND],
    )
    b.initialize()
    return b


def another_executor(b: Bench) -> Executor:
    """A new one for the same instances."""
    return choose_executor(b.plan, b.backend)(
        b.plan,
        list(b.instances.values()),
        InitialTimes(0.0, 1.0),
        n_places=MOST_PLACES,
        n_buffers=b.programs.n_buffers,
        history=b.programs.history,
        hooks=b.programs.hooks,
    )


def on(b: Bench, executor: Executor, first: int, last: int) -> list[bytes]:
    """Do the steps of a tenth from one point to another; all outputs after each as bytes."""
    variant, found = b.programs.variants[0], []
    for k in range(first, last):
        end = begin = k / 10
        while end < (k + 1) / 10:
            outcome = executor.run(variant.attempt, begin, (k + 1) / 10)
            end = begin = outcome.end
            executor.run(b.programs.commit, end, end)
            if outcome.event_requests:
                executor.run(variant.event(outcome.event_requests, (), True), end, end)
        found.append(b"".join(a.tobytes() for a in executor.store.outputs.values()))
        found.append(np.array(executor.registers.calls[Counted.STEPS]).tobytes())
    return found


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize("middle", [3, 6])
def test_a_run_goes_on_from_its_middle_with_the_same_bits(
    algorithm: Algorithm, middle: int
) -> None:
    b = bench(algorithm)
    on(b, b.executor, 0, middle)
    save = parse("\n".join(f"SAVE {i} {place}" for i, place in enumerate(SAVED)), b.plan)
    b.executor.run(save, middle / 10, middle / 10)
    store, registers = b.executor.store.copy(), b.executor.registers.copy()
    expected = on(b, b.executor, middle, 10)

    restore = parse("\n".join(f"RESTORE {i} {place}" for i, place in enumerate(SAVED)), b.plan)
    for executor in (b.executor, another_executor(b)):
        b.executor.run(restore, middle / 10, middle / 10)
        executor.store.restore(store)
        executor.registers.restore(registers)
        assert on(b, executor, middle, 10) == expected


def test_a_copy_does_not_change_with_the_run() -> None:
    b = bench(GaussSeidel(Polynomial(3, 0)))
    on(b, b.executor, 0, 2)
    copies = (*b.executor.store.copy(), *b.executor.registers.copy())
    before = [array.tobytes() for array in copies]
    on(b, b.executor, 2, 4)
    assert [array.tobytes() for array in copies] == before
