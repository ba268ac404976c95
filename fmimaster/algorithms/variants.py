"""The variants of an algorithm: their attempts, undone and checked, and parameters of FMUs that depend on the variant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import named
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Instances, Plan
from fmimaster.plan.policy import Policy, settings, stops_at_events
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit
from fmimaster.program.programs import Quiet
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType, Initial, Model
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
    assumed = [i for i in sorted(p.means) if plan.is_corrected_as_if_linear(i)]
    if assumed:
        from fmimaster.algorithms.assumed_partials import correct_and_check  # few runs need it

        correct_and_check(plan, p, assumed)
    else:
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
    emitter: Emitter = field(compare=False)
    """That of the run."""
    _known: dict[frozenset[int], Program] = field(default_factory=dict)

    def __call__(self, ahead: frozenset[int]) -> Program:
        """The attempt without these instances; see :data:`fmimaster.program.programs.PartPrograms`."""
        if ahead not in self._known:
            sequence = tuple(i for i in self.plan.trigger_sequence if i not in ahead)
            part = replace(self.plan, trigger_sequence=sequence)
            p = self.emitter.another(self.plan)
            attempt = write_attempt(part, self.algorithm, p, undoes=False)
            check_attempt(attempt, False, p.history)
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


_REASONS = {
    Policy.EXECUTE: "the FMU executes its events itself",
    Policy.ANNOUNCE: "the FMU stops at its events, and the importer fires them",
    Policy.IGNORE: "the FMU steps over its events, and the importer fires them",
}
_POLYNOMIALS = "inputs are polynomials"
_CONTACTS = "the run determines impulses and forces of contacts"


@dataclass(frozen=True, slots=True)
class FmuSettings(Hook):
    """The values of the group SETTINGS of all instances in one variant; as a hook it writes them into the value store."""

    name: str
    values: tuple[tuple[DataType, slice, int], ...]
    instances: frozenset[int]
    """Instances whose values must change after the start."""
    notes: tuple[str, ...]

    def __call__(self, store: ValueStore) -> bool:
        """Write them."""
        for kind, slot, value in self.values:
            store.values[kind][slot] = value
        return False


def fmu_settings(plan: Plan, k: int, polynomial_inputs: Collection[int]) -> FmuSettings:
    """The settings of a variant.

    Parameters
    ----------
    k : int
        Number of the variant.
    polynomial_inputs
        Instances whose inputs are polynomials.

    Raises
    ------
    OptionError
        If a start value of the user contradicts them.
    """
    values, instances = [], set()
    names = dict[tuple[int, str], list[str]]()
    for i, planned in enumerate(plan.instances):
        policy, fitted = planned.policy(k), i in polynomial_inputs
        if len(planned.policies) > 1 or policy is not Policy.EXECUTE or fitted:
            wanted = settings(planned.model, policy, fitted)
        else:
            wanted = {}
        for segment in plan.layout.segments(i, Group.SETTINGS):
            for name, slot in segment.slots().items():
                value, given = wanted.get(name), planned.start_values.get(name)
                values.append((segment.type, slot, _value(plan, i, name, value)))
                if k > 0 or value is None:
                    continue
                text = f"{planned.name}.{name}"
                if given is None:
                    instances.add(i)
                    own = planned.model.event_policy
                    is_policy = own is not None and own.parameter == name
                    is_law = name in _laws(planned.model)
                    others = _CONTACTS if is_law else _POLYNOMIALS
                    reason = _REASONS[policy] if is_policy else others
                    names.setdefault((value, reason), []).append(f"'{text}'")
                elif int(given[0]) != value:
                    raise OptionError(
                        f"The start value {int(given[0])} of '{text}' contradicts the event clock or the algorithm, which "
                        f"needs {value}. Leave the start value out."
                    )
    notes = (
        f"{named(those)} {'are' if len(those) > 1 else 'is'} set to {value}: {reason}"
        for (value, reason), those in names.items()
    )
    return FmuSettings(f"settings {k}", tuple(values), frozenset(instances), tuple(notes))


def _laws(model: Model) -> set[str]:
    """The parameters that select who determines impulses and forces of contacts."""
    contacts = (e.contact for e in model.events)
    return {c.parameter for c in contacts if c is not None and c.parameter is not None}


def _value(plan: Plan, i: int, name: str, value: int | None) -> int:
    """The value that is set: the required one, otherwise that of the user, otherwise that of the FMU."""
    if value is not None:
        return value
    planned = plan.instances[i]
    variable = planned.model.variable(name)
    assert variable is not None
    return int((planned.start_values.get(name) or variable.start or (0,))[0])


def can_be_set_in_initialization_mode(plan: Plan, i: int) -> bool:
    """Whether the settings of an instance can be set inside Initialization Mode too."""
    segments = plan.layout.segments(i, Group.SETTINGS)
    return all(v.initial is Initial.EXACT for s in segments for v in s.variables)


def quiet_programs(plan: Plan, p: Emitter, polynomial_inputs: Collection[int]) -> dict[int, Quiet]:
    """The programs that set single instances to ignore their own events, and to announce them again.

    They are for those that stop at their events in all steps, and that have a policy for both.

    Parameters
    ----------
    polynomial_inputs
        Instances whose inputs are polynomials.
    """
    found = {}
    for i, planned in enumerate(plan.instances):
        own = planned.model.event_policy
        if not planned.may_return_early or planned.policies != (Policy.ANNOUNCE,):
            continue
        if own is not None and own.ignore is not None:
            ignore, announce = (
                _told(plan, p, i, policy, polynomial_inputs)
                for policy in (Policy.IGNORE, Policy.ANNOUNCE)
            )
            found[i] = Quiet(ignore, announce)
    return found


def _told(
    plan: Plan, p: Emitter, i: int, policy: Policy, polynomial_inputs: Collection[int]
) -> Program:
    """The program that sets the policy of one instance."""
    instances = list(plan.instances)
    instances[i] = replace(instances[i], policies=(policy,))
    values = fmu_settings(replace(plan, instances=Instances(instances)), 1, polynomial_inputs)
    own = {
        (s.type, slot.start)
        for s in plan.layout.segments(i, Group.SETTINGS)
        for slot in s.slots().values()
    }
    values = replace(
        values,
        name=f"{policy.value} {i}",
        values=tuple(v for v in values.values if (v[0], v[1].start) in own),
    )
    program, ready = emit_settings(plan, p, values, [i]), State.STEP_MODE
    check(program, plan, begin=ready, end=ready, history=bool(p.history))
    return program


def emit_settings(
    plan: Plan, p: Emitter, values: FmuSettings, instances: Iterable[int] | None = None
) -> Program:
    """The program that sets the settings of a variant during the run, in all FMUs or in those of these instances."""
    p.call(values)
    for i in range(len(plan.instances)) if instances is None else instances:
        planned = plan.instances[i]
        if planned.event_mode:
            p.mode(i, State.EVENT_MODE)
        p.set(i, Group.SETTINGS)
        if planned.event_mode:  # outputs are read again, so they must belong to the present inputs
            with p.at_an_event():
                p.move(i)
                p.set_inputs(i)
            p.update(i)
            p.get(i)
            p.mode(i, State.STEP_MODE)
    return p.program("tell")
