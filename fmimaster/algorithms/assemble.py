"""Plan and algorithm → the checked programs of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fmimaster.algorithms.initialization import Initialization
from fmimaster.plan.plan import Plan
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions import Program
from fmimaster.system.states import State


class Algorithm(Protocol):
    """A co-simulation algorithm: writes the program of one attempt at one step."""

    @property
    def order(self) -> int:
        """Order of the error over an interval of fixed length, for smooth systems."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write how all instances get from the begin of the interval to its end."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one run, and what they need of an executor."""

    initialize: Program
    attempt: Program
    commit: Program
    terminate: Program
    n_places: int
    n_buffers: int
    history: int


def assemble(
    plan: Plan, algorithm: Algorithm, initialization: Initialization | None = None
) -> Programs:
    """Let the algorithm write its program, add the others that a run needs, and check them all.

    Raises
    ------
    ProgramError
        If a program breaks FMI or forgets something.
    """
    trial = Emitter(plan)
    algorithm.emit(plan, trial)
    history = trial.wanted_history

    p = Emitter(plan, history)
    (initialization or Initialization()).emit(plan, p)
    initialize = p.program("initialize")
    algorithm.emit(plan, p)
    attempt = p.program("attempt")
    p.remember()
    p.sample()
    commit = p.program("commit")
    for i in range(len(plan.instances)):
        p.mode(i, State.TERMINATED)
    terminate = p.program("terminate")

    ready, done = State.STEP_MODE, State.TERMINATED
    check(initialize, plan, begin=State.INSTANTIATED, end=ready, steps=False, history=history)
    check(attempt, plan, begin=ready, end=ready, steps=True, history=history)
    check(commit, plan, begin=ready, end=ready, steps=False, history=history)
    check(terminate, plan, begin=ready, end=done, steps=False)
    return Programs(initialize, attempt, commit, terminate, p.n_places, p.n_buffers, history)
