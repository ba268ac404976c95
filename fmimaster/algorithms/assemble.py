"""Plan and algorithm → the checked programs of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fmimaster.algorithms.aligned import Aligned, go_back
from fmimaster.algorithms.event_update import Hook, emit_event
from fmimaster.algorithms.initialization import Initialization
from fmimaster.algorithms.protocol import Algorithm
from fmimaster.errors import ProgramError
from fmimaster.plan.layout import ValueStore
from fmimaster.plan.plan import Plan
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions import Program
from fmimaster.system.states import State


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one run, and what they need of an executor."""

    initialize: Program
    attempt: Program
    restart: Program
    """The attempt at a step without history; the same as ``attempt`` for most algorithms."""
    commit: Program
    rollback: Program
    """Undoes an attempt; empty if none can be undone."""
    renew: Program
    """Forgets the history but for the present point."""
    terminate: Program
    event: Events
    n_places: int
    n_buffers: int
    history: int
    hooks: list[Callable[[ValueStore], None]]
    """What CALL calls."""


@dataclass
class Events:
    """The program of each combination of instances and triggers; written and checked when it is first asked for."""

    plan: Plan
    history: int
    hooks: list[Callable[[ValueStore], None]]
    derivatives: Mapping[int, int]
    hook: Hook | None = None
    _known: dict[tuple[tuple[int, ...], tuple[int, ...], bool], Program] = field(
        default_factory=dict
    )

    def __call__(
        self, instances: tuple[int, ...], fired: tuple[int, ...], early: bool = False
    ) -> Program:
        """The program of an event.

        Parameters
        ----------
        instances
            Whom it concerns.
        fired
            Triggers that become active.
        early
            Whether an early return is the cause, for algorithms to which that makes a difference.
        """
        key = instances, fired, early
        if key not in self._known:
            p = Emitter(self.plan, self.history, hooks=self.hooks, derivatives=self.derivatives)
            emit_event(self.plan, p, instances, fired, self.hook if early else None)
            program = p.program("event")
            ready = State.STEP_MODE
            check(program, self.plan, begin=ready, end=ready, steps=False, history=self.history)
            self._known[key] = program
        return self._known[key]


def assemble(
    plan: Plan,
    algorithm: Algorithm,
    initialization: Initialization | None = None,
    *,
    history: int = 0,
    undoes: bool = False,
) -> Programs:
    """Let the algorithm write its program, add the others that a run needs, and check them all.

    Parameters
    ----------
    history : int
        How many accepted points are wanted besides what the algorithm wants.
    undoes : bool
        Whether attempts may be undone.

    Raises
    ------
    ProgramError
        If a program breaks FMI or forgets something, or an instance cannot do what the algorithm needs.
    """
    if any(i.stops for i in plan.instances) and not getattr(algorithm, "aligns", False):
        algorithm = Aligned(algorithm)
    if undoes:
        back = list(range(len(plan.instances)))
    elif hasattr(algorithm, "goes_back"):
        back = algorithm.goes_back(plan)
    else:
        back = go_back(plan)
    _refuse_who_cannot_go_back(plan, back)
    again = algorithm.restart() if hasattr(algorithm, "restart") else algorithm
    trial = Emitter(plan)
    algorithm.emit(plan, trial)
    again.emit(plan, trial)
    history = max(history, trial.wanted_history)

    derivatives = trial.wanted_derivatives()
    p = Emitter(plan, history, derivatives=derivatives)
    (initialization or Initialization()).emit(plan, p)
    initialize = p.program("initialize")
    attempt, rollback = _attempt(plan, algorithm, p, undoes, trial.wanted_begin)
    restart = attempt
    if again is not algorithm:
        restart, rollback = _attempt(plan, again, p, undoes, trial.wanted_begin)
    p.remember()
    p.sample()
    commit = p.program("commit")
    p.forget()
    p.remember()
    renew = p.program("renew")
    for i in range(len(plan.instances)):
        p.mode(i, State.TERMINATED)
    terminate = p.program("terminate")

    ready, done = State.STEP_MODE, State.TERMINATED
    check(initialize, plan, begin=State.INSTANTIATED, end=ready, steps=False, history=history)
    check(attempt, plan, begin=ready, end=ready, steps=True, history=history)
    if again is not algorithm:
        check(restart, plan, begin=ready, end=ready, steps=True, history=history)
    check(commit, plan, begin=ready, end=ready, steps=False, history=history)
    check(terminate, plan, begin=ready, end=done, steps=False)
    hook = None
    if hasattr(algorithm, "event_hook") and p.begin_buffer is not None:
        hook = algorithm.event_hook(plan, p.begin_buffer)
    event = Events(plan, history, p.hooks, derivatives, hook)
    return Programs(
        initialize,
        attempt,
        restart,
        commit,
        rollback,
        renew,
        terminate,
        event,
        p.n_places,
        p.n_buffers,
        history,
        p.hooks,
    )


def _attempt(
    plan: Plan, algorithm: Algorithm, p: Emitter, undoes: bool, begin: bool
) -> tuple[Program, Program]:
    """The program of an attempt, and the one that undoes it."""
    places = p.save(range(len(plan.instances))) if undoes else {}
    buffer = p.keep_begin() if begin or undoes else None
    algorithm.emit(plan, p)
    attempt = p.program("attempt")
    if not undoes or buffer is None:
        return attempt, Program("rollback", ())
    p.restore(places)
    p.recall(buffer)
    return attempt, p.program("rollback")


def _refuse_who_cannot_go_back(plan: Plan, instances: Iterable[int]) -> None:
    able = [i.model.capabilities.can_get_and_set_fmu_state for i in plan.instances]
    unable = [plan.instances[i].name for i in instances if not able[i]]
    if unable:
        names = " and ".join(f"'{name}'" for name in unable)
        raise ProgramError(
            f"{names} may have to go back when an FMU stops at an event, but cannot get and set its FMU state "
            "(canGetAndSetFMUState is false). Use an event clock that needs no going back (LookAhead, Predictive), or an "
            "FMU that can."
        )
