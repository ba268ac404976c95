"""Step doubling: each step as a whole and in two halves, which are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from pytest import approx
from python_fmu import PythonFmu
from quarter_car_units import SPLIT_A, SUSPENSION, split_a

from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Refreshed, Richardson, Waveform
from fmimaster.algorithms.modes import AlongLine
from fmimaster.algorithms.subsequence import Subsequence
from fmimaster.base.errors import OptionError, ProgramError
from fmimaster.fmu.instance import StepAnswer
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.layout import Group, Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.results.results import Results
from fmimaster.system.model import DataType, DependencyKind
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

LINE, PARABOLA = Polynomial(2, 0), Polynomial(3, 0)


def follower(**options: Any) -> PythonFmu:
    """x' = u with u as it goes on over the step, by Simpson's rule; y = x."""

    def step(v: Any, h: float) -> None:
        u = [v.course("u", v.t + part * h) for part in (0.0, 0.5, 1.0)]
        v.x += h * (u[0] + 4 * u[1] + u[2]) / 6

    options = {"provides_intermediate_update": True} | options
    return PythonFmu(
        inputs={"u": 0.0}, states={"x": 1.0}, outputs={"y": lambda v: v.x}, step=step, **options
    )


def ring(**options: Any) -> dict[str, PythonFmu]:
    return {"a": follower(**options), "b": follower()}


RING = ["a.y -> b.u", ("b.y -> a.u", {"factor": -1.0})]


@pytest.mark.parametrize(
    "base",
    [
        Jacobi(),
        Jacobi(LINE),
        Jacobi(PARABOLA),
        GaussSeidel(LINE),
        GaussSeidel(LINE, mode=AlongLine()),
        Waveform(Jacobi(LINE), restart_sweeps=2),
        Waveform(Jacobi(LINE), solver=LoopSolver()),
        Refreshed(Jacobi(LINE)),
    ],
    ids=str,
)
def test_the_halves_are_steps_of_half_the_size_bit_by_bit(
    simulate: Simulate, base: Algorithm
) -> None:
    """Also where inputs go through earlier points: the middle of each step is one of them."""
    doubled = simulate(ring(), RING, algorithm=Richardson(base), stop_time=2, step_size=0.25)
    halves = simulate(ring(), RING, algorithm=base, stop_time=2, step_size=0.125)
    assert doubled["a.y"].tolist() == halves["a.y"][::2].tolist()
    assert doubled["b.y"].tolist() == halves["b.y"][::2].tolist()


def direct(factor: float) -> PythonFmu:
    """x' = u and y = x + factor * u; takes no polynomials."""

    def step(v: Any, h: float) -> None:
        v.x += h * v.u

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 1.0},
        outputs={"y": lambda v: v.x + factor * v.u},
        depends={"y": ["u"]},
        partials={"y": {"u": factor}},
        dependency_kinds={"y": {"u": DependencyKind.CONSTANT}},
        step=step,
    )


@pytest.mark.parametrize(
    "base", [Jacobi(LINE), GaussSeidel(LINE), Refreshed(Jacobi(LINE))], ids=str
)
def test_outputs_by_means_are_corrected_at_the_end_of_each_half(
    simulate: Simulate, base: Algorithm
) -> None:
    units = {"a": direct(0.5), "b": follower(provides_intermediate_update=False)}
    doubled = simulate(units, RING, algorithm=Richardson(base), stop_time=2, step_size=0.25)
    halves = simulate(units, RING, algorithm=base, stop_time=2, step_size=0.125)
    assert doubled["a.y"].tolist() == halves["a.y"][::2].tolist()
    assert doubled["b.y"].tolist() == halves["b.y"][::2].tolist()


def test_three_steps_bring_an_fmu_two_halves_forward(simulate: Simulate) -> None:
    units = ring()
    simulate(units, RING, algorithm=Richardson(Jacobi()), stop_time=0.5, step_size=0.25)
    assert units["a"].instances[0].called(FmiCall.DO_STEP) == [
        (0.0, 0.25),
        (0.0, 0.125),
        (0.125, 0.125),
        (0.25, 0.25),
        (0.25, 0.125),
        (0.375, 0.125),
    ]


def test_energies_are_those_of_the_halves(simulate: Simulate) -> None:
    common: dict[str, Any] = {"stop_time": 0.25, "power_bonds": [SUSPENSION]}
    doubled = simulate(
        split_a(), SPLIT_A, algorithm=Richardson(Jacobi()), step_size="1/128", **common
    )
    halves = simulate(split_a(), SPLIT_A, algorithm=Jacobi(), step_size="1/256", **common)
    for signal in ("residual_energy", "transmitted_energy", "residual_power"):
        name = f"suspension.{signal}"
        assert doubled[name].tolist() == halves[name][::2].tolist()
    assert abs(doubled["suspension.residual_energy"][-1]) > 1.0


@dataclass(frozen=True, eq=False)
class _Difference(Hook):
    whole: int
    slot: int
    target: int
    name: ClassVar[str] = "difference"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        values = store.outputs[DataType.FLOAT64]
        then = store.buffers[self.whole][0][DataType.FLOAT64]
        values[self.target] = values[self.slot] - then[self.slot]
        return False


def difference(plan: Plan, whole: int) -> Hook:
    slot = plan.layout.slots[0, Group.OUTPUTS, "y"][1].start
    return _Difference(whole, slot, plan.layout.signals["difference"][1])


class _Signalling(Richardson):
    __slots__ = ()

    def signals(self) -> tuple[Signal, ...]:
        return (Signal("difference"),)


def test_the_comparison_sees_the_whole_step_and_the_halves(simulate: Simulate) -> None:
    algorithm = _Signalling(Jacobi(), (difference,))
    results = simulate(ring(), RING, algorithm=algorithm, stop_time=0.25, step_size=0.25)
    # a' = -b, b' = a from (1, 1), b held: whole 1 - 1/4; halves 1 - 1/8, and b = 1 + 1/8 then
    whole, halves = 0.75, 1 - 0.125 - 0.125 * 1.125
    assert results["a.y"][1] == halves
    assert results["difference"][1] == approx(halves - whole, rel=1e-15)


EVENT = 0.3


def stopping() -> PythonFmu:
    """Returns early at EVENT, once."""

    def step(v: Any, h: float) -> StepAnswer | None:
        if v.t < EVENT < v.t + h:
            v.x += EVENT - v.t
            return StepAnswer(EVENT, early=True, event=True)
        v.x += h
        return None

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 0.0},
        outputs={"y": lambda v: v.x},
        step=step,
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )


@pytest.mark.parametrize("base", [Jacobi(), Refreshed(Jacobi())], ids=str)
def test_both_halves_end_at_an_early_return(simulate: Simulate, base: Algorithm) -> None:
    for size in (0.25, 0.5):  # in the first half of a step, and in the second one
        results = simulate(
            {"a": stopping(), "b": follower()},
            ["a.y -> b.u", "b.y -> a.u"],
            algorithm=Richardson(base),
            stop_time=1,
            step_size=size,
            event_mode=True,
        )
        assert EVENT in results.time.tolist()
        assert results["a.y"].tolist() == approx(results.time.tolist(), abs=1e-15)


def test_an_fmu_that_cannot_go_back_is_named(simulate: Simulate) -> None:
    with pytest.raises(ProgramError) as refused:
        simulate(
            ring(can_get_and_set_fmu_state=False),
            RING,
            algorithm=Richardson(Jacobi()),
            stop_time=1,
            step_size=0.25,
        )
    assert str(refused.value).startswith(
        "'a' may have to go back when each step is done as a whole"
    )
    assert "canGetAndSetFMUState is false" in str(refused.value)


def test_a_base_that_cannot_go_back_is_refused(simulate: Simulate) -> None:
    with pytest.raises(OptionError, match="mode 'sub', which cannot go back"):
        simulate(
            ring(),
            RING,
            algorithm=Richardson(GaussSeidel(mode=Subsequence())),
            stop_time=1,
            step_size=0.25,
        )


class Alternating(Jacobi):
    """An algorithm of a user that takes turns."""

    def variants(self, plan: Plan) -> tuple[Algorithm, ...]:
        """Two ways of stepping."""
        return Jacobi(), Jacobi(LINE)


def test_a_base_that_changes_its_method_is_refused(simulate: Simulate) -> None:
    with pytest.raises(OptionError, match="not possible with Alternating, because it changes"):
        simulate(ring(), RING, algorithm=Richardson(Alternating()), stop_time=1, step_size=0.25)
