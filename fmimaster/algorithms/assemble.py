"""Plan and algorithm → the checked programs of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.aligned import Aligned
from fmimaster.algorithms.event_update import emit_event
from fmimaster.algorithms.initialization import Initialization
from fmimaster.errors import ProgramError
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan, Policy, tuned_parameters
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook, Hook
from fmimaster.program.instructions import Fit, Program
from fmimaster.program.programs import Programs, Variant
from fmimaster.program.store import ValueStore
from fmimaster.system.states import State


@dataclass
class Events:
    """The program of each combination of instances and triggers; written and checked when it is first asked for."""

    plan: Plan
    history: int
    hooks: list[Hook]
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
            check(program, self.plan, begin=ready, end=ready, history=bool(self.history))
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
    if any(i.may_return_early for i in plan.instances) and not algorithm.handles_early_returns:
        algorithm = Aligned(algorithm)
    back = plan.members if undoes else algorithm.goes_back(plan)
    _refuse_who_cannot_go_back(plan, back)
    ways = algorithm.variants(plan)
    again = algorithm.restart()
    trial = Emitter(plan)
    for way in ways:
        way.emit(plan, trial)
    if again is not algorithm:
        again.emit(plan, trial)
    history = max(history, trial.wanted_history)
    derivatives, begin = trial.wanted_derivatives(), trial.wanted_begin

    ready, done = State.STEP_MODE, State.TERMINATED
    whole = dict.fromkeys(range(len(plan.instances)), 1.0)
    p = Emitter(plan, history, derivatives=derivatives)
    (initialization or Initialization()).emit(plan, p)
    initialize = p.program("initialize")
    check(initialize, plan, begin=State.INSTANTIATED, end=ready, history=bool(history))

    def written(k: int, way: Algorithm) -> Variant:
        used = _plan_of_variant(plan, k) if len(ways) > 1 else plan
        attempt, rollback = _attempt(used, way, p, undoes, begin)
        check(attempt, used, begin=ready, end=ready, who=whole, history=bool(history))
        if undoes:
            both = Program("rollback", attempt.instructions + rollback.instructions)
            check(both, used, begin=ready, end=ready, history=bool(history))
        hook = None
        if p.begin_buffer is not None:
            hook = way.event_hook(plan, p.begin_buffer)
        tell = _tell(plan, k, attempt, p) if len(ways) > 1 else Program("tell", ())
        events = Events(plan, history, p.hooks, derivatives, hook)
        return Variant(attempt, rollback, tell, events, way.leader(plan.step_order))

    all_ways = tuple(written(k, way) for k, way in enumerate(ways))
    restart = None if again is algorithm else written(0, again)
    p.remember()
    p.sample()
    commit = p.program("commit")
    p.forget()
    p.remember()
    renew = p.program("renew")
    for i in range(len(plan.instances)):
        p.mode(i, State.TERMINATED)
    terminate = p.program("terminate")
    check(commit, plan, begin=ready, end=ready, history=bool(history))
    check(terminate, plan, begin=ready, end=done)
    return Programs(
        initialize=initialize,
        variants=all_ways,
        restart=restart,
        commit=commit,
        renew=renew,
        terminate=terminate,
        n_places=p.n_places,
        n_buffers=p.n_buffers,
        history=history,
        hooks=p.hooks,
    )


def _plan_of_variant(plan: Plan, k: int) -> Plan:
    """The plan while a variant is in use: instances that ignore events do not stop at them."""
    instances = tuple(
        replace(i, may_return_early=i.may_return_early and i.policies[k] is not Policy.IGNORE)
        for i in plan.instances
    )
    return replace(plan, instances=instances)


def _tell(plan: Plan, k: int, attempt: Program, p: Emitter) -> Program:
    """The program that sets the parameters of all FMUs for a variant."""
    fitted = {f.instance for f in attempt.instructions if isinstance(f, Fit)}
    values = []
    for i, planned in enumerate(plan.instances):
        asked = tuned_parameters(planned.model, planned.policies[k], i in fitted)
        for name, value in asked.items():
            kind, slot = plan.layout.slots[i, Group.TUNED, name]
            if value is None:
                variable = planned.model.variable(name)
                assert variable is not None
                value = (variable.start or (0,))[0]  # as the FMU starts
            values.append((kind, slot, value))

    def put(store: ValueStore) -> None:
        for kind, slot, value in values:
            store.values[kind][slot] = value

    p.call(FunctionHook("tuned parameters", put))
    for i, planned in enumerate(plan.instances):
        if planned.event_mode:
            p.mode(i, State.EVENT_MODE)
        p.set(i, Group.TUNED)
        if (
            planned.event_mode
        ):  # outputs are read again, so that they must know the inputs as they are now
            with p.at_an_event():
                p.move(i)
                p.set_inputs(i)
            p.update(i)
            p.get(i)
            p.mode(i, State.STEP_MODE)
    program = p.program("tell")
    ready = State.STEP_MODE
    check(program, plan, begin=ready, end=ready, history=bool(p.history))
    return program


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
