"""The one loop over time: it decides, programs do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmimaster.control.instant import Goal, Instant
from fmimaster.control.step_size import Grid
from fmimaster.errors import CallError, ConvergenceError, SimulationError
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import Program, Step
from fmimaster.program.outcome import Outcome, Reason, Stop
from fmimaster.run.executor import Executor
from fmimaster.run.timeline import Timeline


@dataclass(frozen=True, slots=True)
class StepPrograms:
    """The programs that the loop runs."""

    attempt: Program
    commit: Program


@dataclass
class RunState:
    """All that changes in Python during a run."""

    time: Instant
    timeline: Timeline
    attempts: int = 0
    steps: int = 0


class Stepper:
    """Brings all instances of a plan from instant to instant.

    Each end of a step is the earliest instant that anyone asks for, with a reason. A quiet stretch of the grid is left
    to the executor, which comes back with an attempt that is not yet committed.
    """

    def __init__(
        self, plan: Plan, programs: StepPrograms, executor: Executor, grid: Grid, state: RunState
    ) -> None:
        self.plan = plan
        self.programs = programs
        self.executor = executor
        self.grid = grid
        self.state = state

    def advance(self, until: Instant) -> Iterator[Outcome]:
        """Step until an instant is reached or an FMU ends the run; yields after each stretch of committed steps.

        Raises
        ------
        SimulationError
            If a step was discarded or did not converge: nothing can be done about it with a fixed step.
        """
        s = self.state
        while s.time < until:
            goal = self.goal(s.time, until)
            if goal.end.seconds > s.time.seconds:  # FMI: a step has a positive length
                goal, outcome = self.attempt(goal, until)
                if outcome.stopped is not None:
                    raise self.failure(outcome.stopped, goal)
                end = goal.end if outcome.end == goal.end.seconds else Instant(outcome.end)
                # if an FMU has ended the run within the step, the others are ahead of it: no row belongs to all
                together = end == goal.end or len(self.plan.instances) == 1
                if together and end.seconds > s.time.seconds:
                    self.executor.run(self.programs.commit, end.seconds, end.seconds)
                    s.time, s.steps = end, s.steps + 1
            else:
                outcome = Outcome(s.time.seconds)
                s.time = goal.end
            yield outcome
            if outcome.terminate:
                return

    def goal(self, now: Instant, until: Instant) -> Goal:
        """The earliest instant after now that anyone asks for, with the reason."""
        goal = self.grid.propose(now)
        point = self.state.timeline.after(now)
        if point <= goal.end:
            goal = Goal(point, "imposed point")
        if until <= goal.end:
            goal = Goal(until, "stop time")
        return goal

    def attempt(self, goal: Goal, until: Instant) -> tuple[Goal, Outcome]:
        """Try one step, or as many as the quiet grid allows; returns the goal of the last one, not yet committed."""
        s = self.state
        times: Sequence[float] | NDArray[np.float64] = [s.time.seconds, goal.end.seconds]
        if goal.reason == self.grid.reason:
            last = min(until, s.timeline.after(s.time))
            between = self.grid.seconds_between(goal.end, last, self.executor.rows.capacity)
            if len(between):
                times = np.concatenate([times, between])
        done, outcome = self.executor.repeat(self.programs.attempt, self.programs.commit, times)
        s.steps += done
        s.attempts += done + 1
        if done:
            first = goal.end
            s.time = first if done == 1 else self.grid.point_after(first, done - 2)
            goal = Goal(self.grid.point_after(first, done - 1), self.grid.reason)
        return goal, outcome

    def failure(self, stop: Stop, goal: Goal) -> SimulationError:
        """The error for an attempt that stopped, in words."""
        begin, size = self.state.time.seconds, goal.end.seconds - self.state.time.seconds
        if stop.reason is Reason.NOT_CONVERGED:
            return ConvergenceError(
                f"An iteration did not come to rest in the step from t = {begin:.12g} s (size {size:.6g} s): outputs "
                f"still change by {stop.change:.3g} (relative). Use a smaller step size.",
                time=begin,
            )
        name = self.plan.instances[stop.instance].name
        assert isinstance(self.programs.attempt.instructions[stop.instruction], Step)
        said = "".join(f"\n  {name}: {message}" for message in stop.messages[-5:])
        return CallError(
            f"DoStep of '{name}' was discarded at t = {begin:.12g} s (step {size:.6g} s); it came to "
            f"t = {stop.time:.12g} s. A fixed step cannot be made smaller during the run. Use a smaller step size."
            + (f" The FMU says:{said}" if said else ""),
            instance=name,
            function="DoStep",
            status="Discard",
            messages=stop.messages,
            time=begin,
        )
