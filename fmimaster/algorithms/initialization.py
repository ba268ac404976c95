"""The program from instantiated FMUs to a complete exchange of values at the start time, and that of a changed structure.

When the structure changes, instances join, and all values agree with the new connections.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from fmimaster.algorithms.event_update import emit_updates
from fmimaster.algorithms.settling import Settling, measure_partials
from fmimaster.algorithms.variants import FmuSettings, can_be_set_in_initialization_mode
from fmimaster.base.data import dataclass
from fmimaster.plan.corrections import Means
from fmimaster.plan.events import concerned, reached_by_events
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import FunctionHook
from fmimaster.program.instructions.base import Program
from fmimaster.program.programs import ChangedStructure, Reactions
from fmimaster.program.store import ValueStore
from fmimaster.system.states import State


def _emit_start_values(
    plan: Plan, p: Emitter, instances: Collection[int], settings: FmuSettings
) -> None:
    """Write the way from Instantiated to Initialization Mode.

    Start values are set before Initialization Mode and again inside it, because some FMUs lose the first values.

    Parameters
    ----------
    settings
        Parameters that the run must set, besides the start values of the user.
    """
    chosen = settings.instances.intersection(instances)
    if chosen:
        p.call(settings)
    for i in instances:
        if plan.layout.segments(i, Group.STRUCTURAL):
            p.mode(i, State.CONFIGURATION_MODE)
            p.set(i, Group.STRUCTURAL)
            p.mode(i, State.INSTANTIATED)
        p.set(i, Group.START)
        if i in chosen:
            p.set(i, Group.SETTINGS)
    for i in instances:
        p.mode(i, State.INITIALIZATION_MODE)
        p.set(i, Group.INITIAL)
        if i in chosen and can_be_set_in_initialization_mode(plan, i):
            p.set(i, Group.SETTINGS)


def _emit_clock_intervals(p: Emitter, instances: Collection[int]) -> None:
    """Write the intervals of the clocks of instances with Event Mode, in Initialization Mode."""
    for i in instances:
        p.set_intervals(i)
        p.get_intervals(i)


def emit_initialization(
    plan: Plan,
    p: Emitter,
    settings: FmuSettings,
    settling: Settling,
    measured: Collection[int] = (),
) -> Sequence[Reactions]:
    """Write the program from Instantiated to Step Mode.

    Start values, Initialization Mode, a complete exchange along the dependencies, the first row.

    Parameters
    ----------
    settings
        Parameters that the run must set, besides the start values of the user.
    measured
        Instances whose direct dependencies are measured, if they decide about loops.

    Returns
    -------
    What is measured.
    """
    reactions: Sequence[Reactions] = ()
    instances = range(len(plan.instances))
    _emit_start_values(plan, p, instances, settings)
    with p.at_an_event():
        left = settling.at_the_start(plan, p)
        others = [i for i in instances if i not in left]
        if {*measured} & {*others} and len(plan.links):
            from fmimaster.algorithms.reactions import emit_reactions  # few runs need it

            reactions = emit_reactions(plan, p, {*measured} & {*others})
        measure_partials(plan, p, others)
    modes = {i: None for i in instances if plan.instances[i].event_mode}
    _emit_clock_intervals(p, modes)
    for i in others:
        p.mode(i, State.EVENT_MODE if i in modes else State.STEP_MODE)
    if modes:
        emit_updates(plan, p, modes, settling, rows=False)
        for i in modes:
            p.mode(i, State.STEP_MODE)
    for i in instances:
        p.get(i)
    with p.at_an_event():
        p.measure()
    p.sample()
    p.remember()
    return reactions


@dataclass(frozen=True)
class ChangeWriter:
    """Writes and checks the programs of a change; see :data:`fmimaster.program.programs.ChangePrograms`."""

    emitter: Emitter = field(compare=False)
    """That of the run."""
    settings: FmuSettings
    """Of instances that join."""
    settling: Settling

    def __call__(self, new: frozenset[int], changed: frozenset[int]) -> ChangedStructure:
        """The programs of a change."""
        p = self.emitter.another()
        plan = p.plan
        who = _affected(plan, new, changed)
        _emit_left_limits(plan, p, who)
        left = p.program("before the change")
        _emit_right_limits(plan, p, who, self.settings, self.settling)
        right = p.program("change")
        check(
            Program("change", left.instructions + right.instructions),
            plan,
            begin=State.STEP_MODE,
            end=State.STEP_MODE,
            history=bool(p.history),
            others=dict.fromkeys(new, State.INSTANTIATED),
        )
        return ChangedStructure(left, right, who.modes, who.corrected, who.late)


@dataclass(frozen=True, slots=True)
class _Affected:
    """The instances that a change of the structure affects."""

    new: tuple[int, ...]
    """They are initialized."""
    modes: tuple[int, ...]
    """Others with Event Mode, in which they get their inputs."""
    corrected: tuple[int, ...]
    """Others whose outputs depend linearly on inputs: they are corrected by directional derivatives."""
    late: tuple[int, ...]
    """Others with changed inputs: their outputs show that after their next step."""


def _affected(plan: Plan, new: Collection[int], changed: Collection[int]) -> _Affected:
    """What a change affects, by the capabilities of the FMUs.

    Parameters
    ----------
    new, changed
        Instances that join, and others with inputs from other sources than before.
    """
    modes = [instance.event_mode for instance in plan.instances]
    in_loops = {i for visit in plan.step_visits if visit.loop for i in visit.instances}
    correctable = {
        i
        for i, c in plan.corrections.items()
        if c.is_linear and c.means is Means.DIRECTIONAL_DERIVATIVES and not modes[i]
    } - in_loops
    shows = [mode or i in correctable for i, mode in enumerate(modes)]
    reached = reached_by_events(plan.triggers, plan.links, shows)
    others = [i for i in concerned(frozenset({*new, *changed}), reached) if i not in new]
    sources = {*new, *others}
    fed = {*changed, *(k.target for i in sources for k in plan.links.out_of_instance.get(i, ()))}
    return _Affected(
        tuple(sorted(new)),
        tuple(i for i in others if modes[i]),
        tuple(i for i in others if i in correctable),
        tuple(i for i in sorted(fed.difference(new)) if not shows[i]),
    )


def _emit_left_limits(plan: Plan, p: Emitter, who: _Affected) -> None:
    """Write what comes before values of the user may be set: the outputs of all that exist, then Event Mode."""
    for i in range(len(plan.instances)):
        if i not in who.new:
            p.get(i)
    for i in who.modes:
        p.mode(i, State.EVENT_MODE)


def _emit_right_limits(
    plan: Plan, p: Emitter, who: _Affected, settings: FmuSettings, settling: Settling
) -> None:
    """Write how instances join and the others get their inputs, in the order of dataflow; then rows."""
    _emit_start_values(plan, p, who.new, settings)
    with p.at_an_event():
        settling.at_a_change(plan, p, {*who.new, *who.modes}, who.corrected)
        measure_partials(plan, p, who.new)
    joined = [i for i in who.new if plan.instances[i].event_mode]
    _emit_clock_intervals(p, joined)
    for i in who.new:
        p.mode(i, State.EVENT_MODE if i in joined else State.STEP_MODE)
        p.get(i)
    for i in who.late:
        p.move(i)
    p.call(_recorded_inputs(plan, (*who.corrected, *who.late)))
    modes = sorted({*who.modes, *joined})
    if modes:
        emit_updates(plan, p, modes, settling)
        for i in modes:
            p.mode(i, State.STEP_MODE)
    else:
        with p.at_an_event():
            p.measure()
        p.sample()
    p.forget()
    p.remember()


def _recorded_inputs(plan: Plan, instances: Collection[int]) -> FunctionHook:
    """Inputs that are recorded ← the inputs in the store, of instances from which nothing may be read in Step Mode."""
    slots = plan.layout.slots
    pairs = [
        (kind, slot, slots[i, Group.OUTPUTS, name][1])
        for i in instances
        for group in (Group.CONTINUOUS, Group.DISCRETE)
        for segment in plan.layout.segments(i, group)
        for kind, name, slot in ((segment.type, *pair) for pair in segment.slots().items())
        if (i, Group.OUTPUTS, name) in slots
    ]

    def copy(store: ValueStore) -> None:
        for kind, source, target in pairs:
            store.values[kind][target] = store.values[kind][source]

    return FunctionHook("recorded inputs", copy)
