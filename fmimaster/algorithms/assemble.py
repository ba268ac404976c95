"""Plan and algorithm → the checked programs of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.changed_structure import ChangePrograms
from fmimaster.algorithms.event_update import Events
from fmimaster.algorithms.fmu_settings import FmuSettings, emit_settings, fmu_settings
from fmimaster.algorithms.initialization import Initialization
from fmimaster.algorithms.settling import Settling
from fmimaster.algorithms.solved import with_loops
from fmimaster.base.errors import OptionError, ProgramError
from fmimaster.inputs.given_inputs import given_inputs, unused_inputs
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.plan import Instances, Plan
from fmimaster.plan.policy import Policy, stops_at_events
from fmimaster.plan.step_groups import Loops
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.fits import wanted_derivatives
from fmimaster.program.hook import Hook, Hooks
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit
from fmimaster.program.instructions.outputs import Keep
from fmimaster.program.programs import Programs, Replay, Variant
from fmimaster.system.states import State

if TYPE_CHECKING:
    from fmimaster.algorithms.richardson import Comparison


def assemble(
    plan: Plan,
    algorithm: Algorithm,
    initialization: Initialization | None = None,
    *,
    history: int = 0,
    undoes: bool = False,
    loops: Loops = Loops.REAL,
    measures: Sequence[Hook] = (),
    comparisons: Sequence[Comparison] = (),
    inputs: Mapping[str, Polynomial] | None = None,
) -> Programs:
    """Write the programs of the algorithm, add the other programs of a run, and check all of them.

    The attempts are written first: they determine the needed history and the inputs that are polynomials.

    Parameters
    ----------
    history : int
        Number of accepted communication points that are needed in addition to those of the algorithm.
    undoes : bool
        Whether attempts may be undone.
    loops : Loops
        The algebraic loops to solve in Step Mode.
    measures : sequence of Hook
        Hooks that are called at the end of each step, at the start and at events.
    comparisons : sequence of Comparison
        For step doubling: the comparison of the two halves of a step with the whole step.
    inputs : names or globs of inputs → Polynomial
        Polynomials of single inputs over a step, instead of the polynomial of the algorithm.

    Raises
    ------
    ProgramError
        If a program violates FMI or is incomplete, or an instance lacks a capability that the algorithm needs.
    OptionError
        If a start value of the user contradicts a parameter that the run must set.
    """
    if any(i.may_return_early for i in plan.instances) and not algorithm.handles_early_returns:
        from fmimaster.algorithms.aligned import Aligned  # few runs need this and the imports below

        algorithm = algorithm.aligned(Aligned)
    initialization = initialization or Initialization()
    algorithm, hindrance = with_loops(plan, algorithm, initialization.settling.solver)
    if comparisons:
        from fmimaster.algorithms.richardson import doubled

        algorithm = doubled(algorithm, comparisons)
    _refuse_who_cannot_go_back(plan, algorithm.goes_back(plan), *algorithm.why_it_goes_back)
    if undoes:
        _refuse_who_cannot_go_back(plan, plan.members, *_UNDONE)
    undoes |= algorithm.undoes(plan)
    if undoes and not algorithm.can_go_back:
        raise OptionError(
            "A step may have to be undone, which GaussSeidel in the mode 'sub' does not allow. Use the mode 'lin', or a "
            "step-size rule that undoes no steps (FixedStep, Ramp)."
        )
    given = given_inputs(plan, inputs or {})
    p = Emitter(plan, measures=measures, given=given)
    variants, restart = algorithm.variants(plan), algorithm.restart()
    attempts = [
        _attempt(_plan_of_variant(plan, k) if len(variants) > 1 else plan, variant, p, undoes)
        for k, variant in enumerate(variants)
    ]
    again = None if restart is algorithm else _attempt(plan, restart, p, undoes)
    p.history = history = max(history * (1 + len(p.between)), p.wanted_history)
    p.derivatives = wanted_derivatives(plan, p.polynomial_inputs)
    every = [*attempts, *([] if again is None else [again])]
    for attempt in every:
        _check_attempt(attempt, undoes, history)

    first = {*attempts[0].polynomial_inputs, *(() if again is None else again.polynomial_inputs)}
    settings = [
        fmu_settings(plan, k, attempt.polynomial_inputs if k else first)
        for k, attempt in enumerate(attempts)
    ]
    initialize = _initialize(plan, initialization, p, settings[0])
    commit, renew, terminate = _common_programs(plan, p)
    replay = _replay(plan, p, algorithm.repeats(plan))
    whole = Program("replay", replay.twice.instructions + replay.back.instructions)
    check(whole, plan, begin=State.STEP_MODE, end=State.STEP_MODE, history=bool(p.history))

    notes, warnings = _loop_notes(attempts[0].program, plan, loops, hindrance)
    settling = initialization.settling
    told = [s if _differ(plan, settings) else None for s in settings]
    return Programs(
        initialize=initialize,
        variants=tuple(
            _variant(plan, p, *pair, settling) for pair in zip(attempts, told, strict=True)
        ),
        restart=None if again is None else _variant(plan, p, again, told[0], settling),
        commit=commit,
        renew=renew,
        terminate=terminate,
        resume=_resume(plan, p),
        n_places=p.n_places,
        n_buffers=p.n_buffers,
        history=history,
        hooks=p.hooks,
        change=ChangePrograms(
            plan,
            history,
            p.hooks,
            p.derivatives,
            settings[0],
            settling,
            p.measures,
            p.corrected,
        ),
        between=len(p.between),
        polynomial_inputs=frozenset(p.polynomial_inputs),
        held=frozenset(p.held),
        undoes=undoes,
        replay=replay,
        pattern=algorithm.pattern(),
        notes=(*settings[0].notes, *notes, *algorithm.notes(plan)),
        accuracy_warnings=(
            *warnings,
            *algorithm.accuracy_warnings(plan),
            *unused_inputs(plan, given, p.used),
        ),
    )


def _loop_notes(
    attempt: Program, plan: Plan, loops: Loops, hindrance: str
) -> tuple[list[str], list[str]]:
    """Notes and warnings about loops of Step Mode that are not solved."""
    if not plan.step_loops:
        return [], []
    from fmimaster.program.unsolved import loop_notes

    return loop_notes(attempt, plan, loops, hindrance)


def _replay(plan: Plan, p: Emitter, repeated: Sequence[int]) -> Replay:
    """The measurement whether these instances repeat a step exactly."""
    if not repeated:
        return Replay()
    from fmimaster.algorithms.replay import emit_replay

    return emit_replay(plan, p, repeated)


def _differ(plan: Plan, settings: Sequence[FmuSettings]) -> bool:
    """Whether parameters of FMUs differ between the variants of the algorithm."""
    return any(len(i.policies) > 1 for i in plan.instances) or any(
        values.values != settings[0].values for values in settings
    )


def _variant(
    plan: Plan, p: Emitter, attempt: _Attempt, values: FmuSettings | None, settling: Settling
) -> Variant:
    """A variant, with the program that sets these parameters before its steps."""
    tell = Program("tell", ())
    if values is not None:
        tell, ready = emit_settings(plan, p, values), State.STEP_MODE
        check(tell, plan, begin=ready, end=ready, history=bool(p.history))
    events = Events(
        plan, p.history, p.hooks, p.derivatives, attempt.event_hook, settling, p.measures
    )
    without = _AttemptsOfParts(
        attempt.plan, attempt.algorithm, p.history, p.hooks, p.derivatives, p.measures, p.given
    )
    return Variant(attempt.program, attempt.rollback, tell, events, attempt.leader, without)


@dataclass
class _AttemptsOfParts:
    """The attempts of a variant without some instances, written and checked on first use."""

    plan: Plan
    algorithm: Algorithm
    history: int
    hooks: Hooks
    derivatives: Mapping[int, int]
    measures: Sequence[Hook]
    given: Mapping[tuple[int, str], Polynomial]
    _known: dict[frozenset[int], Program] = field(default_factory=dict)

    def __call__(self, ahead: frozenset[int]) -> Program:
        """The attempt without these instances; see :class:`fmimaster.program.programs.PartPrograms`."""
        if ahead not in self._known:
            p = Emitter(
                self.plan,
                self.history,
                hooks=self.hooks,
                derivatives=self.derivatives,
                measures=self.measures,
                given=self.given,
            )
            sequence = tuple(i for i in self.plan.trigger_sequence if i not in ahead)
            part = replace(self.plan, trigger_sequence=sequence)
            attempt = _attempt(part, self.algorithm, p, undoes=False)
            _check_attempt(attempt, False, self.history)
            self._known[ahead] = attempt.program
        return self._known[ahead]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The program of one variant of an algorithm."""

    plan: Plan
    algorithm: Algorithm
    program: Program
    rollback: Program
    polynomial_inputs: frozenset[int]
    """Instances whose inputs are polynomials."""
    ends: Mapping[int, float]
    """The time to which it steps each instance, as a fraction of the interval."""
    under_way: Sequence[int]
    """Instances whose step began in an earlier interval."""
    event_hook: Hook | None
    leader: int | None


def _attempt(plan: Plan, algorithm: Algorithm, p: Emitter, undoes: bool) -> _Attempt:
    """The program of an attempt, and the one that undoes it."""
    places, buffer = {}, 0
    if undoes:
        places = p.save(plan.members)
        buffer = p.keep()
    algorithm.emit(plan, p)
    if not algorithm.measures_itself:
        p.measure()
    p.correct_means()
    attempt = p.program("attempt")
    begin = p.begin_buffer
    rollback = Program("rollback", ())
    if undoes:
        p.restore(places)
        p.recall(buffer)
        rollback = p.program("rollback")
    return _Attempt(
        plan,
        algorithm,
        attempt,
        rollback,
        frozenset(
            i.instance for i in attempt.instructions if isinstance(i, Fit) and not i.is_constant
        ),
        algorithm.ends(plan),
        algorithm.under_way(plan),
        None if begin is None else algorithm.event_hook(plan, begin),
        algorithm.leader(plan.step_order),
    )


def _check_attempt(attempt: _Attempt, undoes: bool, history: int) -> None:
    ready, plan = State.STEP_MODE, attempt.plan
    check(
        attempt.program,
        plan,
        begin=ready,
        end=ready,
        who=attempt.ends,
        under_way=attempt.under_way,
        history=bool(history),
    )
    if undoes:
        instructions = attempt.program.instructions + attempt.rollback.instructions
        both = Program("rollback", instructions)
        check(both, plan, begin=ready, end=ready, history=bool(history))


def _initialize(
    plan: Plan, initialization: Initialization, p: Emitter, settings: FmuSettings
) -> Program:
    initialization.emit(plan, p, settings)
    program = p.program("initialize")
    check(
        program,
        plan,
        begin=State.INSTANTIATED,
        end=State.STEP_MODE,
        history=bool(p.history),
    )
    return program


def _common_programs(plan: Plan, p: Emitter) -> tuple[Program, Program, Program]:
    """The programs that accept a step, clear the history, and end the run."""
    ready, history = State.STEP_MODE, bool(p.history)
    for buffer in p.between:
        p.remember(buffer)
    p.remember()
    p.sample()
    commit = p.program("commit")
    p.forget()
    p.remember()
    renew = p.program("renew")
    for i in range(len(plan.instances)):
        p.mode(i, State.TERMINATED)
    terminate = p.program("terminate")
    kept = tuple(Keep(buffer) for buffer in p.between)  # the points inside each attempt
    check(
        Program("commit", kept + commit.instructions),
        plan,
        begin=ready,
        end=ready,
        history=history,
    )
    check(terminate, plan, begin=ready, end=State.TERMINATED)
    return commit, renew, terminate


def _resume(plan: Plan, p: Emitter) -> Program:
    """What follows when all FMUs have taken other states."""
    for i in range(len(plan.instances)):
        p.get(i)
    with p.at_an_event():
        p.measure()
    p.forget()
    p.remember()
    p.sample()
    program = p.program("resume")
    check(program, plan, begin=State.STEP_MODE, end=State.STEP_MODE, history=bool(p.history))
    return program


def _plan_of_variant(plan: Plan, k: int) -> Plan:
    """The plan while a variant is in use: instances that ignore events do not stop at them.

    Raises
    ------
    OptionError
        If an instance that stops at its events in one variant cannot ignore them in another one.
    """
    for i in plan.instances:
        if (
            i.may_return_early
            and i.policy(k) is Policy.IGNORE
            and stops_at_events(i.model, i.policy(k))
        ):
            raise OptionError(
                f"'{i.name}' stops at its events when it steps first, and would also stop when another one steps first, "
                "because its manifest has no policy to ignore them. Use Sequential, and name the first component "
                "(--algorithm sequential)."
            )
    instances = Instances(
        replace(i, may_return_early=i.may_return_early and i.policy(k) is not Policy.IGNORE)
        for i in plan.instances
    )
    return replace(plan, instances=instances)


_UNDONE = ("a step is undone", "a step-size rule that undoes no steps (FixedStep, Ramp)")
"""The reason why all instances may have to go back, and an alternative."""


def _refuse_who_cannot_go_back(
    plan: Plan, instances: Iterable[int], when: str, instead: str
) -> None:
    able = [i.model.capabilities.can_get_and_set_fmu_state for i in plan.instances]
    unable = [plan.instances[i].name for i in instances if not able[i]]
    if unable:
        names = " and ".join(f"'{name}'" for name in unable)
        raise ProgramError(
            f"{names} may have to go back when {when}, but cannot get and set its FMU state "
            f"(canGetAndSetFMUState is false). Use {instead}, or an FMU that can."
        )
