"""The one loop over time: where each step begins and ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from python_fmu import PythonFmu, plan_of

from fmimaster.base.errors import CallError, ConvergenceError
from fmimaster.instants.instant import Instant, TimeBase, exact
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.steps import Step
from fmimaster.program.programs import Programs, Variant
from fmimaster.run.executor import Halt, Outcome, Reason, Repeated
from fmimaster.run.loop import Loop, RunState, Timeline
from fmimaster.run.stepper import Stepper
from fmimaster.steps.step_rule import FixedStep

NOTHING = Program("nothing", ())
NO_EVENTS: Any = lambda *_: NOTHING  # noqa: E731
VARIANT = Variant(
    Program("attempt", (Step(0, 1.0),)),
    NOTHING,
    NOTHING,
    NO_EVENTS,
    None,
    lambda ahead: NOTHING,
)
PROGRAMS = Programs(
    initialize=NOTHING,
    variants=(VARIANT,),
    restart=None,
    commit=Program("commit", ()),
    renew=NOTHING,
    terminate=NOTHING,
    n_places=0,
    n_buffers=0,
    history=0,
    hooks=(),
    change=NO_EVENTS,
)


class Executor:
    """Notes all attempts and commits; does at most so many quiet steps at once."""

    def __init__(self, most: int = 3, outcome: dict[float, Outcome] | None = None) -> None:
        self.most = most
        self.outcomes = outcome or {}
        self.rows = SimpleNamespace(capacity=1000)
        self.store = SimpleNamespace(outputs={}, values={}, largest=np.zeros(0))
        self.next_events = np.full(1, np.inf)
        self.registers = SimpleNamespace(at=np.full(1, 0.25))
        self.attempts: list[tuple[float, float]] = []
        self.commits: list[float] = []

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        if program is PROGRAMS.commit:
            assert begin == end
            self.commits.append(end)
            return Outcome(end)
        if program.name == "read":
            return Outcome(end)
        self.attempts.append((begin, end))
        return self.outcomes.get(begin, Outcome(end))

    def stepping(
        self, attempt: Program, commit: Program
    ) -> Callable[[float, float], Outcome | None]:
        def step(begin: float, end: float) -> Outcome | None:
            outcome = self.run(attempt, begin, end)
            if outcome != Outcome(end):
                return outcome
            self.run(commit, end, end)
            return None

        return step

    @staticmethod
    def outcome(happened: Outcome) -> Outcome:
        return happened

    def repeat(
        self,
        attempts: Sequence[Program],
        commit: Program,
        times: Sequence[float],
        watches: None,
        events: None,
    ) -> Repeated:
        (attempt,) = attempts
        assert watches is None
        assert events is None
        for k in range(len(times) - 1):
            outcome = self.run(attempt, times[k], times[k + 1])
            quiet = not (outcome.stopped or outcome.terminate)
            if not quiet or k + 2 == len(times) or k + 1 == self.most:
                return Repeated(k, outcome)
            self.run(commit, times[k + 1], times[k + 1])
        raise AssertionError


def stepped(
    step: Any,
    stop: Any,
    *,
    start: Any = 0,
    points: Sequence[Any] = (),
    names: Sequence[str] = ("pump",),
    **options: Any,
) -> tuple[Stepper, Executor]:
    """A stepper that has reached its stop time, and the executor with its log."""
    times = [exact(t) for t in (start, stop, step, *points)]
    base = TimeBase.of(times)

    def instant(time: Fraction) -> Instant:
        return base.instant(base.ticks(time))

    executor = Executor(**options)
    plan: Plan = plan_of({name: PythonFmu() for name in names})
    rule = FixedStep(times[2])
    memory = rule.begin(base, base.ticks(times[0]))
    state = RunState(instant(times[0]), Timeline.of(map(instant, times[3:])), memory)
    stepper = Stepper(Loop(plan, PROGRAMS, executor, rule, base, state))  # type: ignore[arg-type]
    stepper.begin()
    list(stepper.advance(instant(times[1])))
    return stepper, executor


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_each_step_begins_where_the_last_one_ended(most: int) -> None:
    _, executor = stepped(0.1, 1, most=most)
    tenths = [k / 10 for k in range(11)]
    assert executor.attempts == list(itertools.pairwise(tenths))
    assert executor.commits == tenths[1:]


def test_a_step_that_does_not_divide_the_span_ends_with_a_shorter_one_exactly_at_the_stop() -> None:
    stepper, executor = stepped(0.3, 1)
    assert executor.attempts == [(0.0, 0.3), (0.3, 0.6), (0.6, 0.9), (0.9, 1.0)]
    assert stepper.state.time.seconds == 1.0


def test_a_step_that_divides_the_span_has_no_sliver_at_the_end() -> None:
    _, executor = stepped("1/60", "1/10")
    assert [end for _, end in executor.attempts] == [k / 60 for k in range(1, 7)]


def test_after_an_imposed_point_the_next_step_goes_to_the_next_grid_point() -> None:
    _, executor = stepped(0.1, 0.4, points=[0.25])
    assert [end for _, end in executor.attempts] == [0.1, 0.2, 0.25, 0.3, 0.4]


def test_imposed_points_between_two_grid_points_are_all_met() -> None:
    _, executor = stepped(0.1, 0.2, points=[0.11, "1/8", 0.15])
    assert [end for _, end in executor.attempts] == [0.1, 0.11, 0.125, 0.15, 0.2]


def test_two_instants_with_the_same_double_make_no_step() -> None:
    stepper, executor = stepped(0.1, 0.3, points=["0.20000000000000000001"])
    assert executor.attempts == [(0.0, 0.1), (0.1, 0.2), (0.2, 0.3)]
    assert executor.commits == [0.1, 0.2, 0.3]
    assert stepper.state.steps == 3


def test_steps_are_counted_as_they_are_committed() -> None:
    stepper, executor = stepped(0.1, 1, most=4)
    assert (stepper.state.steps, stepper.state.attempts) == (10, 10)
    assert len(executor.commits) == 10


def test_an_fmu_that_ends_the_simulation_ends_the_loop_where_it_stands() -> None:
    stepper, executor = stepped(0.1, 1, outcome={0.2: Outcome(0.25, terminate=True)})
    assert executor.attempts[-1] == (0.2, 0.3)
    assert executor.commits == [0.1, 0.2, 0.25]
    assert stepper.state.time == Instant(0.25)
    assert str(stepper.state.step_log.causes[-1]) == "pump ended the run"


def test_where_others_are_ahead_of_an_fmu_that_ends_the_simulation_nothing_is_committed() -> None:
    ended = {0.2: Outcome(0.25, terminate=True)}
    stepper, executor = stepped(0.1, 1, outcome=ended, names=["pump", "tank"])
    assert executor.commits == [0.1, 0.2]
    assert stepper.state.time.seconds == 0.2


def test_an_fmu_that_ends_the_simulation_without_any_step_gives_no_second_row() -> None:
    _, executor = stepped(0.1, 1, outcome={0.2: Outcome(0.2, terminate=True)})
    assert executor.commits == [0.1, 0.2]


@pytest.mark.parametrize(
    ("step", "reached", "is_advised"),
    [("0.1", 0.0, True), ("0.1", 0.05, False), ("1/8", 0.0, False), ("1/3", 0.0, True)],
)
def test_an_exact_step_size_is_advised_where_an_fmu_refuses_a_whole_inexact_step(
    step: str, reached: float, is_advised: bool
) -> None:
    end = float(Fraction(step))
    discarded = Outcome(end, stopped=Halt(Reason.DISCARDED, 0, 0, reached))
    with pytest.raises(CallError, match="Use a smaller step size") as caught:
        stepped(step, 1, outcome={0.0: discarded})
    assert ("such as 0.25 or 0.5 s" in str(caught.value)) is is_advised


def test_a_discarded_step_is_an_error_that_names_instance_step_and_time_reached() -> None:
    discarded = Outcome(0.25, stopped=Halt(Reason.DISCARDED, 0, 0, 0.25))
    with pytest.raises(CallError) as caught:
        stepped(0.1, 1, outcome={0.2: discarded})
    assert "'pump' was discarded at t = 0.2 s (step 0.1 s); it reached t = 0.25 s" in str(
        caught.value
    )
    assert "Use a smaller step size" in str(caught.value)
    error = caught.value
    assert (error.instance, error.function, error.status) == ("pump", "DoStep", "Discard")
    assert error.time == 0.2


def test_an_iteration_that_does_not_converge_is_an_error_that_says_how_far_it_was() -> None:
    stopped = Outcome(0.2, stopped=Halt(Reason.NOT_CONVERGED, -1, 0, 0.2, change=0.125))
    with pytest.raises(ConvergenceError, match=r"from t = 0\.2 s .* still change by 0\.125"):
        stepped(0.1, 1, outcome={0.2: stopped})
