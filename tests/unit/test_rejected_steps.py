"""Step-size rules that reject: what a step is tried with, and how it ends if it is never accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf, nan

import pytest
from python_fmu import PythonFmu

from fmimaster import Results, SimulationError
from fmimaster.fmu.instance import StepAnswer
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Instant
from fmimaster.steps import FixedStep
from fmimaster.steps.estimator import Measured
from fmimaster.steps.step_rule import StepContext
from fmimaster.system.model import DataType
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]


def decaying() -> PythonFmu:
    def step(v: object, h: float) -> None:
        v.x *= exp(-h)  # type: ignore[attr-defined]

    return PythonFmu(states={"x": 1.0}, outputs={"y": lambda v: v.x}, step=step)


@dataclass(frozen=True, slots=True)
class Rejecting(FixedStep):
    """Tries a step again with a length that is ``factor`` times the last one, as long as the error is above 1."""

    always: float = inf
    factor: float = 0.5

    @property
    def rejects(self) -> bool:
        return True

    def error(self, tried: StepContext) -> float:
        return self.always

    def decide(
        self, memory: Grid, now: Instant, length: float, errors: Sequence[Measured]
    ) -> tuple[Grid, float | None]:
        return memory, None if errors[0].error <= 1.0 else self.factor * length


@pytest.mark.parametrize("error", [inf, nan, 2.0])
def test_a_step_that_is_never_accepted_ends_the_run(simulate: Simulate, error: float) -> None:
    with pytest.raises(SimulationError, match=r"The step from t = 0 s was rejected \d+ times"):
        simulate({"a": decaying()}, stop_time=1, step_size=Rejecting(0.2, always=error))


@pytest.mark.parametrize("factor", [0.0, -1.0, nan, 1.0, 2.0])
def test_a_length_with_which_a_step_cannot_be_tried_again_ends_the_run(
    simulate: Simulate, factor: float
) -> None:
    unit = decaying()
    with pytest.raises(SimulationError, match="was rejected"):
        simulate({"a": unit}, stop_time=1, step_size=Rejecting(0.2, factor=factor))
    assert max(t + h for t, h in unit.instances[0].called(FmiCall.DO_STEP)) == 0.2


@dataclass(frozen=True, slots=True)
class Small(Rejecting):
    """Rejects steps in which y falls by more than 0.1, as the indicators of the plan have it."""

    def error(self, tried: StepContext) -> float:
        before = tried.indicators.store.history[0][0][DataType.FLOAT64][0]
        assert (
            tried.indicators.present() == tried.indicators.store.outputs[DataType.FLOAT64].tolist()
        )
        return float(before - tried.indicators.present()[0]) / 0.1


def test_a_rule_sees_the_outputs_of_the_try_that_it_judges(simulate: Simulate) -> None:
    from fmimaster.algorithms import GaussSeidel
    from fmimaster.inputs import Polynomial

    units = {"a": decaying(), "b": PythonFmu(inputs={"u": 0.0}, provides_intermediate_update=True)}
    results = simulate(
        units,
        ["a.y -> b.u"],
        stop_time=1,
        step_size=Small(0.5),
        algorithm=GaussSeidel(Polynomial(2, 0)),
    )
    assert results.statistics.rejections > 2
    assert abs(results["a.y"][1:] - results["a.y"][:-1]).max() <= 0.1
    assert results["a.y"] == pytest.approx([exp(-t) for t in results.time], rel=1e-12)


def test_an_fmu_that_ends_the_run_in_a_step_ends_it(simulate: Simulate) -> None:
    def step(v: object, h: float) -> StepAnswer | None:
        return StepAnswer(0.5, terminate=True)

    unit = PythonFmu(outputs={"y": lambda v: 0.0}, step=step)
    results = simulate({"a": unit}, stop_time=2, step_size=Rejecting(1.0))
    assert results.time.tolist() == [0.0, 0.5]


def test_steps_begin_at_the_start_time(simulate: Simulate) -> None:
    results = simulate({"a": decaying()}, start_time=5, stop_time=6, step_size="0.1")
    assert results.steps[0].begin == 5.0
    assert results.steps[0].size == pytest.approx(0.1)
