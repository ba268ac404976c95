"""The PID controller in C decides as the one in Python, to the bit; and a run that it controls is the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, nan
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from python_fmu import PythonFmu

from fmimaster import Results, Simulation, SimulationError
from fmimaster.fmu.instance import StepAnswer
from fmimaster.instants.instant import Instant, TimeBase
from fmimaster.plan.plan import Plan
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor
from fmimaster.steps import PID, EmbeddedOrders, PredictorCorrector
from fmimaster.steps.estimator import Estimator, Measured
from fmimaster.steps.pid_memory import MANY, Controlled
from fmimaster.system.model import DataType

if native_executor() is None:
    pytest.skip("the kernel is not built", allow_module_level=True)

from fmimaster.kernel._kernel import lib

from fmimaster.run.native.lending import Lender, lend_data

Simulate = Callable[..., Results]


@dataclass(frozen=True)
class First(Estimator):
    name: ClassVar[str] = "first"

    def order(self, degree: int) -> int:
        return 2

    def sources(self, plan: Plan) -> tuple[str, ...]:
        return "a", "b", "c"


@dataclass(frozen=True)
class Second(Estimator):
    name: ClassVar[str] = "second"

    def order(self, degree: int) -> int:
        return 1


PLACES = {"first": 3, "first.worst": 0, "second": 1, "second.worst": 2}
PLAN: Any = SimpleNamespace(
    layout=SimpleNamespace(signals={name: (DataType.FLOAT64, k) for name, k in PLACES.items()})
)

RULES = {
    "ECCO": PID(0.01, (First(),), smallest=1e-4),
    "two that reject": PID(0.01, (First(), Second()), smallest=1e-4, reject_above=2.0),
    "all exponents": PID(
        0.02, (Second(), First()), smallest=1e-3, first=5e-3, k2=0.3, k3=0.15, a1=-0.2, a2=0.1
    ),
    "one size": PID(0.01, (First(),), smallest=0.01),
}


def some_error(random_: random.Random, is_large: bool) -> float:
    if is_large:
        return random_.uniform(20.0, 200.0)
    kind = random_.random()
    if kind < 0.05:
        return 0.0
    if kind < 0.07:
        return random_.choice([inf, nan, 1e-310])
    if kind < 0.4:
        return float(10.0 ** random_.uniform(-12, 8))
    return random_.uniform(0.3, 1.6)


def same(memory: Controlled) -> Controlled:
    return memory._replace(errors=list(memory.errors))


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_decisions_in_c_are_those_in_python_to_the_bit(rule: PID) -> None:
    choose = random.Random(11)
    values = np.zeros(4)
    store: Any = SimpleNamespace(values={DataType.FLOAT64: values})
    memory = rule.begin(TimeBase(10_000), 0)
    twin = rule.twin(memory, PLAN, store)
    context: Any = None
    data = lend_data(Lender(None, PLAN, store, objects=context), context, twin.data, "fm_pid_data")
    accepted, most_stuck = 0, 0
    twin.put(memory)
    for k in range(6000):
        is_large = k % 1500 >= 1200  # the smallest step is too large for long
        if k % 500 == 0:
            memory = rule.restart(memory)._replace(stuck=None if k % 1000 else memory.stuck)
            twin.put(memory)
        measured = []
        for estimator in rule.estimators:
            names = estimator.names(PLAN)
            worst, error = choose.randrange(len(names)), some_error(choose, is_large)
            values[PLACES[estimator.name]] = error
            values[PLACES[estimator.worst]] = worst
            measured.append(Measured(error, names[worst]))
        length = memory.size * choose.choice([1.0, 1.0, 1.0 - 1e-12, 0.3])
        before, now = same(twin.take()), Instant(0.1 * k)
        assert before == same(memory)
        if not lib.fm_pid_accepts(data, now.seconds, length):
            assert same(twin.take()) == before
            if all(m.error < inf for m in measured):
                try:
                    assert rule.decide(memory, now, length, measured)[1] is not None
                except OverflowError:
                    pass
                else:
                    continue
                assert min(m.error for m in measured) < 1e-200
            continue
        memory, again = rule.decide(memory, now, length, measured)
        assert again is None
        accepted += 1
        most_stuck = max(most_stuck, 0 if memory.stuck is None else memory.stuck.steps)
    assert accepted > 2000
    assert most_stuck == MANY or rule.reject_above is not None


# Runs -----------------------------------------------------------------------------------------------------------------


def mass(fails_after: float = inf) -> PythonFmu:
    def step(v: Any, h: float) -> StepAnswer | None:
        if v.t >= fails_after:
            return StepAnswer(v.t, discarded=True)
        v.v += h * v.force
        return None

    return PythonFmu(
        inputs={"force": 0.0},
        states={"v": 1.0},
        outputs={"velocity": lambda v: v.v},
        step=step,
    )


def spring(is_number_until: float = inf) -> PythonFmu:
    def step(v: Any, h: float) -> None:
        v.x += h * v.velocity

    return PythonFmu(
        inputs={"velocity": 0.0},
        states={"x": 0.0},
        outputs={"force": lambda v: -40.0 * v.x if v.t < is_number_until else nan},
        step=step,
    )


RULE = PID(0.1, (PredictorCorrector(0.2), EmbeddedOrders(0.2)), smallest=0.001)
LINKS = ["spring.force -> mass.force", "mass.velocity -> spring.velocity"]


@pytest.mark.parametrize("reject_above", [None, 1.0])
@pytest.mark.parametrize("broken", ["", "is discarded", "fails", "is no number"])
def test_a_run_is_the_same_on_both_executors(
    simulation: Callable[..., Simulation], reject_above: float | None, broken: str
) -> None:
    def run(backend: Backend) -> Results:
        units = {
            "mass": mass(3.1 if broken == "is discarded" else inf),
            "spring": spring(3.1 if broken == "is no number" else inf),
        }
        units["spring"].fails_at = 1000 if broken == "fails" else None
        rule = replace(RULE, reject_above=reject_above)
        given = simulation(
            units,
            LINKS,
            stop_time=5,
            step_size=rule,
            allow_nan=True,
            backend=backend,
        )
        if not broken:
            return given.run()
        with pytest.raises(SimulationError) as caught:
            given.run()
        results: Results | None = caught.value.results
        assert results is not None
        return results

    expected, found = run(Backend.REFERENCE), run(Backend.NATIVE)
    assert found.time.tobytes() == expected.time.tobytes()
    assert all(found[n].tobytes() == expected[n].tobytes() for n in expected.names)
    assert found.steps == expected.steps
    one, other = found.statistics, expected.statistics
    assert one is not None
    assert other is not None
    assert (one.steps, one.attempts) == (other.steps, other.attempts)
    assert one.steps > 200
    assert reject_above is None or one.attempts > one.steps + 1


def test_no_sliver_is_left_before_the_stop_time(simulation: Callable[..., Simulation]) -> None:
    rule = PID(0.1, RULE.estimators, smallest=0.03, most=1.0)  # all steps have the smallest size
    stop = 0.15 + 2e-11
    given = simulation(
        {"mass": mass(), "spring": spring()},
        LINKS,
        stop_time=stop,
        step_size=rule,
        backend=Backend.NATIVE,
    )
    assert given.run().time.tolist() == pytest.approx([0.0, 0.03, 0.06, 0.09, 0.12, stop])


def test_python_does_not_decide_on_steps_of_the_kernel(
    simulation: Callable[..., Simulation], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    decide = PID.decide

    def counted(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return decide(*arguments)

    monkeypatch.setattr(PID, "decide", counted)
    given = simulation(
        {"mass": mass(), "spring": spring()},
        LINKS,
        stop_time=5,
        step_size=RULE,
        backend=Backend.NATIVE,
    )
    results = given.run()
    assert results.statistics is not None
    assert results.statistics.steps > 100
    assert asked < 10  # when rows are handed on, or another thread asks
