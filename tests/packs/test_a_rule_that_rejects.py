"""A step-size rule that rejects fits on a page: steps are undone in which an output changes too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from fmimaster import Backend, GaussSeidel, Polynomial, StepRule, SystemBuilder, simulate
from fmimaster.causes import STEP_SIZE, Cause, Kind
from fmimaster.control.estimators import Measured
from fmimaster.control.instant import Goal, Instant, TimeBase
from fmimaster.control.step_context import StepContext
from fmimaster.reference_files import reference_path


@dataclass(frozen=True, slots=True)
class ByChange(StepRule[float]):
    """Halve a step in which an output changes by more than ``most``, double it after a small change."""

    most: float = 0.05

    @property
    def rejects(self) -> bool:
        return True

    def begin(self, base: TimeBase, start: int) -> float:
        return float(self.exact_size)

    def propose(self, now: Instant, memory: float) -> Goal:
        return Goal(Instant(now.seconds + memory), STEP_SIZE)

    def error(self, tried: StepContext) -> float:
        before, now = tried.indicators.store.history[0][0], tried.indicators.store.outputs
        return max(float(abs(now[kind] - before[kind]).max()) for kind in now) / self.most

    def decide(
        self, memory: float, now: Instant, length: float, errors: Sequence[Measured]
    ) -> tuple[float, float | None]:
        error = errors[0].error
        if error > 1.0:
            return length / 2, length / 2
        return min(float(self.exact_size), 2 * length) if error < 0.25 else length, None


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST], ids=lambda b: b.value)
def test_steps_whose_error_is_too_large_are_undone_and_tried_again(backend: Backend) -> None:
    system = SystemBuilder("pair")
    system.add("a", reference_path("fmi2/Dahlquist.fmu"), {"k": 5.0})
    system.add("b", reference_path("fmi3/Dahlquist.fmu"), {"k": 0.5})
    system.connect("a.x", "b.u")
    rule, algorithm = ByChange(0.2), GaussSeidel(Polynomial(2, 0))
    r = simulate(system.build(), stop_time=4, step_size=rule, algorithm=algorithm, backend=backend)
    assert r.statistics is not None
    assert r.statistics.rejections == r.statistics.attempts - r.statistics.steps > 4
    assert all(abs(r[name][1:] - r[name][:-1]).max() <= 0.05 for name in r.names)
    assert r.steps[0].cause == Cause(Kind.ERROR)
    assert r.steps[0].size < 0.01 < 0.19 < max(s.size for s in r.steps)
