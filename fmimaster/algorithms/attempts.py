"""The attempts of an algorithm: written, undone, checked; and those without instances that are ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.base.errors import OptionError
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.plan import Instances, Plan
from fmimaster.plan.policy import Policy, stops_at_events
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook, Hooks
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit
from fmimaster.system.states import State


@dataclass(frozen=True, slots=True)
class Attempt:
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


def write_attempt(plan: Plan, algorithm: Algorithm, p: Emitter, undoes: bool) -> Attempt:
    """The program of an attempt, and the one that undoes it."""
    places, buffer = {}, 0
    if undoes:
        places = p.save(plan.members)
        buffer = p.keep()
    algorithm.emit(plan, p)
    if not algorithm.measures_itself:
        # before outputs are corrected and inputs set: only here are both the inputs and the outputs of the step available
        p.measure()
    p.correct_means()
    attempt = p.program("attempt")
    begin = p.begin_buffer
    rollback = Program("rollback", ())
    if undoes:
        p.restore(places)
        p.recall(buffer)
        rollback = p.program("rollback")
    return Attempt(
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


def check_attempt(attempt: Attempt, undoes: bool, history: int) -> None:
    """Check an attempt, and what undoes it.

    Raises
    ------
    ProgramError
    """
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


@dataclass
class AttemptsOfParts:
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
            attempt = write_attempt(part, self.algorithm, p, undoes=False)
            check_attempt(attempt, False, self.history)
            self._known[ahead] = attempt.program
        return self._known[ahead]


def plan_of_variant(plan: Plan, k: int) -> Plan:
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
