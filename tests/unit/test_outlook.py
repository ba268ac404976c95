"""Steps that are known ahead: they are the same, call by call, as where each is looked for alone."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from in_turn import in_turn
from python_fmu import PythonFmu

from fmimaster import reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.base.errors import OptionError
from fmimaster.fmu.instance import StepAnswer, UpdateAnswer
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import FIRST_ORDER
from fmimaster.instants.grid import Grid
from fmimaster.instants.instant import Goal, Instant, TimeBase
from fmimaster.record.causes import STEP_SIZE, Cause, Kind
from fmimaster.results.results import Results
from fmimaster.run import ways
from fmimaster.run.executor import Backend
from fmimaster.run.goal import Goals
from fmimaster.run.native.executor import NativeExecutor
from fmimaster.run.outlook import Lookout
from fmimaster.run.reference.executor import ReferenceExecutor
from fmimaster.run.ways import single
from fmimaster.steps import PredictorCorrector
from fmimaster.steps.halved import Halved
from fmimaster.steps.pid import PID
from fmimaster.steps.ramp import FreeStep, Ramp, Ramped
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.system.model import DataType, Variability

DISCRETE = {"type": DataType.INT32, "variability": Variability.DISCRETE}


@dataclass(frozen=True, slots=True)
class Wave(StepRule[int]):
    """Steps whose sizes and causes follow a wave; it remembers how many there were."""

    def begin(self, base: TimeBase, start: int) -> int:
        """None so far."""
        del base, start
        return 0

    def propose(self, now: Instant, memory: int) -> Goal:
        """The end of the next step."""
        size = float(self.exact_size) * (1.0 + 0.9 * math.sin(memory // 3))
        return Goal(Instant(now.seconds + size), Cause(Kind.STEP_SIZE if memory % 7 else Kind.RAMP))

    def decide(self, memory: int, now: Instant, length: float, errors: Any) -> tuple[int, None]:
        """One more."""
        del now, length
        assert not errors
        return memory + 1, None

    def restart(self, memory: int) -> int:
        """Half of them are forgotten."""
        return memory // 2


@dataclass(frozen=True, slots=True)
class Near(FreeStep):
    """Free steps, but short ones about 1 s: what is known of free steps is not known of these."""

    def propose(self, now: Instant, memory: Ramped) -> Goal:
        """The end of the next step."""
        if abs(now.seconds - 1.0) < 0.1:
            return Goal(Instant(now.seconds + 0.007), STEP_SIZE)
        return FreeStep.propose(self, now, memory)


@dataclass(frozen=True, slots=True)
class Failing(Wave):
    """The same, up to a time in s from which on it fails."""

    fails_at: float = inf

    def propose(self, now: Instant, memory: int) -> Goal:
        """The end of the next step."""
        if now.seconds >= self.fails_at:
            raise OptionError("no more steps")
        return Wave.propose(self, now, memory)


def source() -> PythonFmu:
    """y rises; n changes inside steps at 0.31 and 0.77 s, and r, a real number, at 1.1 s."""
    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 0.5},
        outputs={
            "y": lambda v: v.x,
            "n": lambda v: int(v.t > 0.31) + int(v.t > 0.77),
            "r": lambda v: float(v.t > 1.1),
        },
        attributes={"n": DISCRETE, "r": {"variability": Variability.DISCRETE}},
        step=lambda v, h: setattr(v, "x", v.x + h * (v.u - v.x)),
    )


def with_events(**more: Any) -> PythonFmu:
    """Counts its events: time events at 0.4 and 0.45 s, and one that it requests after 0.9 s."""

    def step(v: Any, h: float) -> StepAnswer | None:
        return StepAnswer(v.t + h, event=True) if v.t < 0.9 <= v.t + h else None

    def update(v: Any) -> UpdateAnswer:
        v.count, v.last = v.count + (v.t > v.last), v.t
        return UpdateAnswer(next_event_time=min((t for t in (0.4, 0.45) if t > v.t), default=inf))

    return PythonFmu(
        inputs={"n": 0, "r": 0.0, "u": 0.0, "w": 0.0},
        states={"count": 0.0, "last": 0.0},
        outputs={"y": lambda v: v.count + v.u},
        attributes={"n": DISCRETE, "r": {"variability": Variability.DISCRETE}},
        step=step,
        update=update,
        has_event_mode=True,
        **more,
    )


@dataclass(frozen=True)
class Run:
    """What a run has done."""

    calls: list[Any]
    results: Results | None
    """None if the rule has failed."""
    alone: int
    """How often a step was tried alone."""

    def is_that(self, other: Run) -> bool:
        """Whether both have done the same."""
        a, b = self.results, other.results
        if a is None or b is None:
            return a is b and self.calls == other.calls
        assert a.statistics is not None
        assert b.statistics is not None
        return (
            self.calls == other.calls
            and a.time.tolist() == b.time.tolist()
            and (a.events, a.steps) == (b.events, b.steps)
            and (a.statistics.steps, a.statistics.attempts)
            == (b.statistics.steps, b.statistics.attempts)
        )


FEW = 30
"""Steps that are tried alone, beside each event and before the stop time, of at least 80."""

CONTINUOUS, DISCRETE_TOO = ["a.y -> b.u"], ["a.y -> b.u", "a.n -> b.n", "a.r -> b.r"]


@pytest.fixture(params=[Backend.REFERENCE, Backend.NATIVE])
def run(
    request: pytest.FixtureRequest,
    simulation: Callable[..., Simulation],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Callable[..., Run]:
    """run(rule, connections, ahead=, **settings): two FMUs, of which one has events; an input of it jumps at 0.5 s."""
    file = tmp_path / "jump.csv"
    file.write_text("time,b.w\n0,0\n0.5,0\n0.5,2\n2,2\n", encoding="utf-8")
    steps_to = Lookout.steps_to

    def run(rule: Any, connections: list[str], *, ahead: bool, **settings: Any) -> Run:
        backend = settings.pop("backend", request.param)
        executor: Any = NativeExecutor if backend is Backend.NATIVE else ReferenceExecutor
        stepping = executor.stepping

        def counted(*arguments: Any) -> Any:
            step = stepping(*arguments)

            def one(begin: float, end: float) -> Any:
                alone.append(end)
                return step(begin, end)

            return one

        units = {"a": source(), "b": with_events()}
        alone = list[float]()
        options = {"stop_time": 2, "event_mode": True, "algorithm": Jacobi(), "input": file}
        with monkeypatch.context() as patch:
            patch.setattr(executor, "stepping", counted)
            patch.setattr(Lookout, "steps_to", steps_to if ahead else lambda *_: None)
            made = simulation(
                units, connections, step_size=rule, backend=backend, **options | settings
            )
            try:
                results = made.run()
            except OptionError:
                assert isinstance(rule, Failing)
                results = None
        return Run([unit.instances[0].log for unit in units.values()], results, len(alone))

    return run


RULES = {
    "grid": FixedStep("1/40"),
    "free": FreeStep("1/40"),
    "ramp": Ramp("1/40"),
    "slow ramp": Ramp("1/40", growth=1.01),
    "halved": Halved(times=tuple(k / 23 for k in range(40))),
    "near": Near("1/40"),
    "wave": Wave("1/40"),
    "failing": Failing("1/40", fails_at=1.3),
}


@pytest.mark.parametrize(
    ("name", "of_events"), in_turn(list(RULES), [(CONTINUOUS, 4), (DISCRETE_TOO, 7)])
)
def test_what_is_done_ahead_is_the_same_call_by_call(
    run: Callable[..., Run], name: str, of_events: tuple[list[str], int]
) -> None:
    connections, events = of_events
    one, other = (run(RULES[name], connections, ahead=ahead) for ahead in (False, True))
    assert other.is_that(one)
    assert one.results is None or len(one.results.events) == events
    assert other.alone <= FEW < one.alone or connections is DISCRETE_TOO


@pytest.mark.parametrize(
    "settings",
    [{"event_mode": False}, {"algorithm": GaussSeidel(FIRST_ORDER)}],
    ids=["no events", "first order"],
)
def test_so_it_is_without_events_and_with_polynomials(
    run: Callable[..., Run], settings: dict[str, Any]
) -> None:
    for rule in RULES["ramp"], RULES["wave"]:
        one, other = (run(rule, DISCRETE_TOO, ahead=ahead, **settings) for ahead in (False, True))
        assert other.is_that(one)
        assert other.alone <= FEW < one.alone or "algorithm" in settings


@pytest.mark.parametrize("run", [Backend.NATIVE], indirect=True)
def test_a_controller_in_c_stops_where_one_in_python_looks(run: Callable[..., Run]) -> None:
    rule = PID("1/40", smallest="1/200", estimators=(PredictorCorrector(tolerance=1e-3),))
    other = run(rule, DISCRETE_TOO, ahead=True)
    one = run(rule, DISCRETE_TOO, ahead=True, backend=Backend.REFERENCE)
    assert other.is_that(one)
    assert other.alone <= FEW < one.alone


@pytest.mark.parametrize("run", [Backend.NATIVE], indirect=True)
def test_discrete_inputs_are_watched_by_the_kernel(run: Callable[..., Run]) -> None:
    found = [run(rule, DISCRETE_TOO, ahead=True).alone for rule in RULES.values()]
    assert max(found) <= FEW


class OtherDecision(PID):
    """A controller whose twin in C is not of this."""

    def decide(self, *arguments: Any) -> tuple[Any, float | None]:
        """As ever."""
        return PID.decide(self, *arguments)


class OtherKnown(Near):
    """Says itself what is known ahead."""

    def ahead(self, memory: Ramped) -> None:
        """Nothing."""


def test_what_is_known_ahead_of_a_rule_is_not_known_of_a_subclass_that_proposes_or_decides() -> (
    None
):
    nothing: Any = None
    memory = Ramped(TimeBase.of([Fraction(1, 40)]), 1, 1 / 40, 1 / 40)
    assert FreeStep("1/40").ahead(memory) is not None
    assert Near("1/40").ahead(memory) is None
    assert OtherKnown.ahead is not StepRule.ahead
    decides = OtherDecision("1/40", smallest="1/200", estimators=(PredictorCorrector(),))
    assert decides.twin(nothing, nothing, nothing) is None


def test_a_rule_that_judges_each_step_is_asked_without_the_loop(
    simulation: Callable[..., Simulation], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = OtherDecision("1/40", smallest="1/200", estimators=(PredictorCorrector(tolerance=1e-3),))
    one_by_one: Any = (single,)
    find, found = Goals.find, list[Instant]()

    def counted(goals: Goals, until: Instant) -> Goal:
        found.append(until)
        return find(goals, until)

    monkeypatch.setattr(Goals, "find", counted)

    def run(known: Any) -> tuple[list[float], Any, int]:
        found.clear()
        with monkeypatch.context() as patch:
            patch.setattr(ways, "WAYS", known)
            units = {"a": source(), "b": source()}
            options: dict[str, Any] = {"stop_time": 4, "algorithm": Jacobi(), "event_clock": "none"}
            results = simulation(units, ["a.y -> b.u"], step_size=rule, **options).run()
        return results.time.tolist(), results.steps, len(found)

    times, steps, asked = run(ways.WAYS)
    assert (times, steps) == run(one_by_one)[:2]
    assert asked < 8 < 150 < len(times) <= len(found) + 1


@dataclass(frozen=True, slots=True)
class Judged(FixedStep):
    """A fixed step that is asked after each step, with its error."""

    @property
    def estimators(self) -> tuple[PredictorCorrector]:
        """One."""
        return (PredictorCorrector(),)

    def ahead(self, memory: Grid) -> Any:
        """Nothing is known ahead."""
        del memory


def test_python_is_called_for_nothing_but_the_rule_and_its_error_at_each_step() -> None:
    def calls(steps: int) -> Counter[str]:
        found = Counter[str]()

        def count(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and "fmimaster" in frame.f_code.co_filename:
                found[frame.f_code.co_name] += 1

        run = Simulation(
            reference_path("systems/quarter-car-b-fmi2.ssp"),
            algorithm=Jacobi(),
            step_size=Judged("1/1000"),
            stop_time=Fraction(steps, 1000),
            event_clock="none",
            error_estimate=False,
            backend=Backend.NATIVE,
        )
        threading.setprofile(count)
        try:
            run.run()
        finally:
            threading.setprofile(None)
        return found

    more = calls(6000)
    more.subtract(calls(1000))
    often = {name for name, n in more.items() if n > 500}
    assert often == {"propose", "after", "goal_at", "decide", "read_finite"}
    assert {more[name] for name in often} <= set(range(5000, 5050))
