"""Algorithms inside each other around events: an event is neither stepped over nor requested by a try that was undone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from python_fmu import Bench, PythonFmu

from fmimaster.algorithms import Algorithm, Aligned, GaussSeidel, Jacobi, Waveform
from fmimaster.base.errors import OptionError
from fmimaster.fmu.instance import StepAnswer
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import EventUse, Policy
from fmimaster.program.emitter import Emitter
from fmimaster.run.executor import Outcome

pytestmark = pytest.mark.usefixtures("each_executor")

EVENT = 0.3


@dataclass(frozen=True, slots=True)
class Halves(Algorithm):
    """The base twice, over each half of the interval."""

    base: Algorithm

    @property
    def handles_early_returns(self) -> bool:
        """As the base."""
        return self.base.handles_early_returns

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        for half in (0.0, 0.5):
            with p.over(half, half + 0.5):
                self.base.emit(plan, p)


@dataclass(frozen=True, slots=True)
class Doubled(Algorithm):
    """One whole step, undone, and two halves of it."""

    base: Algorithm

    @property
    def handles_early_returns(self) -> bool:
        """As the base."""
        return self.base.handles_early_returns

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(range(len(plan.instances)))
        begin = p.keep()
        self.base.emit(plan, p)
        p.restore(places)
        p.recall(begin)
        Halves(self.base).emit(plan, p)


def integrate(v: Any, h: float) -> None:
    v.x += h


def falling(shortest: float) -> PythonFmu:
    """Returns early at EVENT and requests an event, but not in steps that are shorter than this."""

    def step(v: Any, h: float) -> StepAnswer | None:
        if h > shortest and v.t < EVENT < v.t + h:
            integrate(v, EVENT - v.t)
            return StepAnswer(EVENT, early=True, event=True)
        integrate(v, h)
        return None

    return ramp(step, has_event_mode=True, might_return_early_from_do_step=True)


def ramp(step: Callable[[Any, float], StepAnswer | None], **more: Any) -> PythonFmu:
    outputs = {"y": lambda v: v.x}
    more |= {"max_input_derivative_order": 1}  # sweeps need inputs that follow a polynomial
    return PythonFmu(inputs={"u": 0.0}, states={"x": 0.0}, outputs=outputs, step=step, **more)


def run(algorithm: Algorithm, shortest: float = 0.0) -> tuple[Outcome, list[float]]:
    """Outcome of one attempt, and the times at which both instances stand."""
    b = Bench(
        {"falling": falling(shortest), "other": ramp(integrate)},
        ["falling.y -> other.u", "other.y -> falling.u"],
        algorithm=algorithm,
        use=EventUse(policy=Policy.ANNOUNCE, early_return=True, event_mode=True),
    )
    b.initialize()
    outcome = b.run(b.programs.variants[0].attempt, 0.0, 1.0)
    return outcome, [i.values.t for i in b.instances.values()]


WAVEFORM = Waveform(Aligned(Jacobi(Polynomial(2, 0))))


@pytest.mark.parametrize("algorithm", [WAVEFORM, Halves(WAVEFORM), Doubled(WAVEFORM)], ids=str)
def test_no_instance_is_stepped_over_the_event(algorithm: Algorithm) -> None:
    assert run(algorithm) == (Outcome(EVENT, event_requests=(0,)), [EVENT, EVENT])


def test_a_try_that_was_undone_requests_nothing() -> None:
    """The whole step ends early, the halves do not."""
    assert run(Doubled(WAVEFORM), shortest=0.5) == (Outcome(1.0), [1.0, 1.0])


# A solver around early returns ----------------------------------------------------------------------------------------


def crossing(level: float) -> PythonFmu:
    """x' = u, with u linear over a step; returns early where x falls to a level."""

    def step(v: Any, h: float) -> StepAnswer | None:
        t, x, (u0, u1) = v.t, v.x, (v.course("u", v.t), v.course("u", v.t + h))

        def after(s: float) -> float:
            return float(x + u0 * s + (u1 - u0) / h * s * s / 2)

        if x > level + 1e-9 and after(h) < level:
            low, high = 0.0, h
            for _ in range(60):
                low, high = (
                    ((low + high) / 2, high)
                    if after((low + high) / 2) > level
                    else (low, (low + high) / 2)
                )
            v.x = after(high)
            return StepAnswer(t + high, early=True, event=True)
        v.x = after(h)
        return None

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 1.0},
        outputs={"y": lambda v: v.x},
        step=step,
        has_event_mode=True,
        might_return_early_from_do_step=True,
        max_input_derivative_order=1,
    )


def test_a_solver_converges_together_with_the_time_of_the_event() -> None:
    """x' = y, y = -x implicitly over the step: x falls to 0.9 where x (1 + s / 2) = 1 - s / 2."""
    follower = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: -v.course("u", v.t)},
        depends={"y": ["u"]},
        max_input_derivative_order=1,
    )
    b = Bench(
        {"x": crossing(0.9), "y": follower},
        ["x.y -> y.u", "y.y -> x.u"],
        algorithm=Waveform(
            Aligned(GaussSeidel(Polynomial(2, 0))),
            solver=LoopSolver(relative=1e-12, absolute=1e-12),
        ),
        use=EventUse(policy=Policy.ANNOUNCE, early_return=True, event_mode=True),
    )
    b.initialize()
    outcome = b.run(b.programs.variants[0].attempt, 0.0, 1.0)
    assert outcome.end == pytest.approx(0.2 / 1.9, abs=1e-9)
    assert outcome.event_requests == (0,)
    assert b.value("x.y") == pytest.approx(0.9, abs=1e-9)
    assert b.value("y.y") == pytest.approx(-0.9, abs=1e-9)


def test_corrections_are_not_bounded_where_instances_stop_at_events() -> None:
    with pytest.raises(OptionError, match="the time of an event must converge"):
        run(Waveform(Aligned(Jacobi(Polynomial(2, 0))), tolerance=1e-6, corrections=2))
