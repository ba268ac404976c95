"""Plan and algorithm → the checked programs of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.event_update import Events
from fmimaster.algorithms.initialization import ChangeWriter, emit_initialization
from fmimaster.algorithms.settling import Settling
from fmimaster.algorithms.variants import (
    Attempt,
    AttemptsOfParts,
    FmuSettings,
    check_attempt,
    emit_settings,
    fmu_settings,
    plan_of_variant,
    quiet_programs,
    write_attempt,
)
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, ProgramError
from fmimaster.inputs.given_inputs import given_inputs, unused_inputs
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.step_groups import Loops
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.fits import wanted_derivatives
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.outputs import Keep
from fmimaster.program.programs import Programs, Reactions, Replay, ShortStepPrograms, Variant
from fmimaster.system.states import State

if TYPE_CHECKING:
    from fmimaster.algorithms.richardson import Comparison
    from fmimaster.program.input_errors import InputErrors
    from fmimaster.program.real_time import RealTime


@dataclass(frozen=True, slots=True)
class ProgramsRequest:
    """What a run asks of its programs."""

    settling: Settling = Settling()
    history: int = 0
    """Number of accepted communication points that are needed in addition to those of the algorithm."""
    undoes: bool = False
    """Whether attempts may be undone."""
    loops: Loops = Loops.REAL
    """The algebraic loops to solve in Step Mode."""
    measures: Sequence[Hook] = ()
    """Hooks that are called at the end of each step, at the start and at events."""
    comparisons: Sequence[Comparison] = ()
    """For step doubling: the comparison of the two halves of a step with the whole step."""
    checked_step: float = 0.0
    """Length in s of a usual step, if inputs are checked at the end of each step; 0 if not."""
    jumps: Collection[float] = ()
    """Times in s at which inputs of the system jump."""
    checks_held: bool = False
    """Whether inputs that are held over steps are checked, too."""
    inputs: Mapping[str, Polynomial] = field(default_factory=dict)
    """Names or globs of inputs → polynomials over a step, instead of the polynomial of the algorithm."""
    in_halves: bool = False
    """Whether FMUs that hold their inputs do each step in two halves, if they can."""
    is_chosen: bool = False
    """Whether the algorithm was chosen, not given: then no one expects more of it than the FMUs allow, and what they do not
    allow is a note, not a warning."""
    measured: Collection[int] = ()
    """Instances whose direct dependencies are measured at the start, if they decide about loops."""
    holds_in_loops: bool = False
    """Whether inputs in loops that are not solved are held, since extrapolation makes the error of a loop grow."""
    real_time_factor: float | None = None
    """Simulated seconds per second of wall time, for which each step waits; None if none does."""
    lateness_limit: float | None = None
    """Wall time in s by which a step may end after its time; None for any."""


def assemble(
    plan: Plan,
    algorithm: Algorithm,
    request: ProgramsRequest = ProgramsRequest(),  # noqa: B008
) -> Programs:
    """Write the programs of the algorithm, add the other programs of a run, and check all of them.

    The attempts are written first: they determine the needed history and the inputs that are polynomials.

    Raises
    ------
    ProgramError
        If a program violates FMI or is incomplete, or an instance lacks a capability that the algorithm needs.
    OptionError
        If a start value of the user contradicts a parameter that the run must set.
    """
    given = given_inputs(plan, request.inputs)
    draft = ProgramsDraft(plan, algorithm, request, request.history, request.undoes, given)
    for complete in PASSES:
        complete(draft)
    return draft.programs


@dataclass(slots=True)
class ProgramsDraft:
    """The programs of a run while they are made: what was asked for, and what each pass has added."""

    plan: Plan
    algorithm: Algorithm
    """With the wrappers that the plan needs."""
    request: ProgramsRequest
    history: int
    """Number of accepted communication points that are needed."""
    undoes: bool
    """Whether attempts may be undone."""
    given: Mapping[tuple[int, str], Polynomial]
    held: Mapping[tuple[int, str], Polynomial] = field(default_factory=dict)
    """Those of inputs in loops, if they are not given."""
    hindrance: str = ""
    """Why loops are not solved in Step Mode."""
    p: Emitter = field(init=False)
    attempts: Sequence[Attempt] = field(init=False)
    """One for each variant of the algorithm."""
    again: Attempt | None = field(init=False)
    """The attempt of steps without history, if it is another one."""
    settings: Sequence[FmuSettings] = field(init=False)
    """Parameters of FMUs that the run sets, for each variant."""
    errors: InputErrors | None = None
    """Checks the inputs."""
    pace: RealTime | None = None
    """Waits for the wall clock."""
    reactions: Sequence[Reactions] = ()
    short_steps: ShortStepPrograms | None = None
    initialize: Program = field(init=False)
    commit: Program = field(init=False)
    renew: Program = field(init=False)
    terminate: Program = field(init=False)
    replay: Replay = field(init=False)
    programs: Programs = field(init=False)


def wrap_algorithm(draft: ProgramsDraft) -> None:
    """Wrappers for early returns, for loops that are solved in Step Mode, and for step doubling."""
    plan, algorithm = draft.plan, draft.algorithm
    if any(i.may_return_early for i in plan.instances) and not algorithm.handles_early_returns:
        from fmimaster.algorithms.wrapper import Aligned  # few runs need this and the imports below

        algorithm = algorithm.aligned(Aligned)
    if plan.step_groups or plan.settled:
        from fmimaster.algorithms.step_loops import with_loops

        algorithm, draft.hindrance = with_loops(plan, algorithm, draft.request.settling.solver)
    if draft.request.comparisons:
        from fmimaster.algorithms.richardson import doubled

        algorithm = doubled(algorithm, draft.request.comparisons)
    draft.algorithm = algorithm


def refuse_what_cannot_go_back(draft: ProgramsDraft) -> None:
    """Whether steps are undone or repeated, and whether all FMUs concerned can do that."""
    plan, algorithm = draft.plan, draft.algorithm
    _refuse_who_cannot_go_back(plan, algorithm.goes_back(plan), *algorithm.why_it_goes_back)
    if draft.undoes:
        _refuse_who_cannot_go_back(plan, plan.members, *_UNDONE)
    draft.undoes |= algorithm.undoes(plan)
    if draft.undoes and not algorithm.can_go_back:
        raise OptionError(
            "A step may have to be undone, which GaussSeidel in the mode 'sub' does not allow. Use the mode 'lin', or a "
            "step-size rule that undoes no steps (FixedStep, Ramp)."
        )


def write_attempts(draft: ProgramsDraft) -> None:
    """The attempts of all variants: they determine the needed history and the inputs that are polynomials."""
    plan, algorithm, undoes = draft.plan, draft.algorithm, draft.undoes
    request, given = draft.request, draft.given
    if request.holds_in_loops and plan.step_loops:
        from fmimaster.algorithms.step_loops import held_in_loops  # few systems have loops

        solved = [] if draft.hindrance else [{*plan.settled}, *map(set, plan.step_groups)]
        draft.held = held_in_loops(plan, solved, request.measured)
        given = {**draft.held, **given}
    draft.p = p = Emitter(plan, measures=request.measures, given=given, in_halves=request.in_halves)
    variants, restart = algorithm.variants(plan), algorithm.restart()
    draft.attempts = [
        write_attempt(plan_of_variant(plan, k) if len(variants) > 1 else plan, variant, p, undoes)
        for k, variant in enumerate(variants)
    ]
    draft.again = None if restart is algorithm else write_attempt(plan, restart, p, undoes)
    p.history = draft.history = max(draft.history * (1 + len(p.between)), p.wanted_history)
    p.derivatives = wanted_derivatives(plan, p.polynomial_inputs)
    for attempt in (*draft.attempts, *([] if draft.again is None else [draft.again])):
        check_attempt(attempt, undoes, draft.history)


def set_parameters(draft: ProgramsDraft) -> None:
    """Parameters of FMUs that depend on the variant of the algorithm."""
    attempts, again = draft.attempts, draft.again
    first = {*attempts[0].polynomial_inputs, *(() if again is None else again.polynomial_inputs)}
    draft.settings = [
        fmu_settings(draft.plan, k, attempt.polynomial_inputs if k else first)
        for k, attempt in enumerate(attempts)
    ]


def write_other_programs(draft: ProgramsDraft) -> None:
    """The start, accepted steps, a history that is cleared, the end, and the replay of a step."""
    plan, p = draft.plan, draft.p
    draft.initialize, draft.reactions = _initialize(
        plan, p, draft.settings[0], draft.request.settling, draft.request.measured
    )
    draft.short_steps = _short_steps(draft)
    if step := draft.request.checked_step:
        from fmimaster.program.input_errors import input_errors  # only with an event clock

        again = [] if draft.again is None else [draft.again]
        programs = [attempt.program for attempt in (*draft.attempts, *again)]
        jumps, with_held = draft.request.jumps, draft.request.checks_held
        draft.errors = input_errors(plan, programs, step, jumps, with_held=with_held)
    if (factor := draft.request.real_time_factor) is not None:
        from fmimaster.program.real_time import RealTime  # few runs

        draft.pace = RealTime(factor, draft.request.lateness_limit)
    draft.commit, draft.renew, draft.terminate = _common_programs(plan, p, draft.errors, draft.pace)
    draft.replay = _replay(plan, p, draft.algorithm.repeats(plan))
    instructions = draft.replay.twice.instructions + draft.replay.back.instructions
    ready = State.STEP_MODE
    check(Program("replay", instructions), plan, begin=ready, end=ready, history=bool(p.history))


def complete_programs(draft: ProgramsDraft) -> None:
    """The programs with their notes and warnings."""
    plan, p, algorithm, settings = draft.plan, draft.p, draft.algorithm, draft.settings
    notes, warnings, pending = _loop_notes(draft)
    settling, is_chosen = draft.request.settling, draft.request.is_chosen
    limits = algorithm.accuracy_warnings(plan)
    told = [s if _differ(plan, settings) else None for s in settings]
    again = draft.again
    draft.programs = Programs(
        initialize=draft.initialize,
        variants=tuple(
            _variant(plan, p, *pair, settling) for pair in zip(draft.attempts, told, strict=True)
        ),
        restart=None if again is None else _variant(plan, p, again, told[0], settling),
        commit=draft.commit,
        renew=draft.renew,
        terminate=draft.terminate,
        resume=_resume(plan, p),
        n_places=p.n_places,
        n_buffers=p.n_buffers,
        history=draft.history,
        hooks=p.hooks,
        change=ChangeWriter(p, settings[0], settling),
        between=len(p.between),
        polynomial_inputs=frozenset(p.polynomial_inputs),
        held=frozenset(p.held),
        held_in_loops=frozenset(draft.held.keys() - draft.given.keys()),
        undoes=draft.undoes,
        errors=draft.errors,
        pace=draft.pace,
        replay=draft.replay,
        reactions=draft.reactions,
        short_steps=draft.short_steps,
        pending=tuple(pending),
        forces=_forces(plan, p),
        quiet=quiet_programs(plan, p, p.polynomial_inputs),
        pattern=algorithm.pattern(),
        notes=(*settings[0].notes, *notes, *algorithm.notes(plan), *(limits if is_chosen else ())),
        accuracy_warnings=(
            *warnings,
            *(() if is_chosen else limits),
            *unused_inputs(plan, draft.given, p.used),
        ),
        unsolved=tuple(warnings),
    )


PASSES: Sequence[Callable[[ProgramsDraft], None]] = (
    wrap_algorithm,
    refuse_what_cannot_go_back,
    write_attempts,
    set_parameters,
    write_other_programs,
    complete_programs,
)
"""What completes a draft, in order."""


def _short_steps(draft: ProgramsDraft) -> ShortStepPrograms | None:
    """The short steps of instances that are measured; places and a buffer that steps use are free before the first one."""
    if not draft.reactions:
        return None
    from fmimaster.algorithms.reactions import ShortStepWriter  # only where loops are possible

    p = draft.p
    p.n_places, p.n_buffers = max(p.n_places, len(draft.reactions)), max(p.n_buffers, 1)
    return ShortStepWriter(p)


def _loop_notes(draft: ProgramsDraft) -> tuple[list[str], list[str], list[str]]:
    """Notes and warnings about loops of Step Mode that are not solved, and notes about those that may be none."""
    if not draft.plan.step_loops:
        return [], [], []
    from fmimaster.program.listing import loop_notes

    request = draft.request
    program = draft.attempts[0].program
    return loop_notes(program, draft.plan, request.loops, draft.hindrance, request.measured)


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
    plan: Plan, p: Emitter, attempt: Attempt, values: FmuSettings | None, settling: Settling
) -> Variant:
    """A variant, with the program that sets these parameters before its steps."""
    tell = Program("tell", ())
    if values is not None:
        tell, ready = emit_settings(plan, p, values), State.STEP_MODE
        check(tell, plan, begin=ready, end=ready, history=bool(p.history))
    events = Events(p, attempt.event_hook, settling)
    without = AttemptsOfParts(attempt.plan, attempt.algorithm, p)
    return Variant(attempt.program, attempt.rollback, tell, events, attempt.leader, without)


def _initialize(
    plan: Plan,
    p: Emitter,
    settings: FmuSettings,
    settling: Settling,
    measured: Collection[int],
) -> tuple[Program, Sequence[Reactions]]:
    """The program of the start, and what it measures."""
    reactions = emit_initialization(plan, p, settings, settling, measured)
    program = p.program("initialize")
    check(
        program,
        plan,
        begin=State.INSTANTIATED,
        end=State.STEP_MODE,
        history=bool(p.history),
    )
    return program, reactions


def _common_programs(
    plan: Plan, p: Emitter, errors: InputErrors | None, pace: RealTime | None
) -> tuple[Program, Program, Program]:
    """The programs that accept a step, clear the history, and end the run."""
    ready, history = State.STEP_MODE, bool(p.history)
    if errors is not None:
        p.call(errors)
    for buffer in p.between:
        p.remember(buffer)
    p.remember()
    p.sample()
    if pace is not None:
        p.call(pace)
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


def _forces(plan: Plan, p: Emitter) -> Program:
    for i in range(len(plan.instances)):
        p.set(i, Group.FORCES)
    program, ready = p.program("forces"), State.STEP_MODE
    check(program, plan, begin=ready, end=ready, history=bool(p.history))
    return program


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
