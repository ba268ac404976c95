"""The handling of FMUs' events in a run, and the parameters that prepare FMUs for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum

from fmimaster.base.data import dataclass
from fmimaster.base.text import listed
from fmimaster.system.declarations import EventDeclaration, Interface, Scope
from fmimaster.system.model import Causality, DataType, Model


class Policy(Enum):
    """Behaviour of FMUs at their own events, if the importer can choose it."""

    EXECUTE = "execute"
    """They execute them, inside a step or in Event Mode."""
    ANNOUNCE = "announce"
    """They stop there, and the importer fires them."""
    IGNORE = "ignore"
    """They step over them, and the importer fires them."""


@dataclass(frozen=True, slots=True)
class EventUse:
    """How a run uses the events of its FMUs."""

    watched: bool = False
    """Whether indicators are read."""
    fires: bool = False
    """Whether the importer fires events. FMUs then execute their private events without a trigger themselves."""
    policy: Policy = Policy.EXECUTE
    """For all instances, where there are no policies by instance."""
    policies: tuple[Mapping[int, Policy], ...] = ()
    """For each variant of the algorithm, by instance."""
    early_return: bool | None = None
    """Whether FMUs may end a step at their events; None: if Event Mode is used for clock connections."""
    event_mode: bool | None = None
    """Whether Event Mode is used; None: where the policy requires it. FMUs with clocks use it always."""
    requests: bool = False
    """Whether FMUs are requested to end steps before events, in Intermediate Update Mode."""
    refreshes: bool = False
    """Whether FMUs without own events also use Event Mode, to read outputs again with new inputs."""

    @property
    def corrects(self) -> bool:
        """Whether indicators are corrected for held inputs wherever this is possible: the importer finds the events."""
        return self.fires and self.policy is Policy.IGNORE and not self.policies

    def policies_of(self, instance: int) -> tuple[Policy, ...]:
        """The policy of one instance in each variant of the algorithm; a single one if there are no variants."""
        return tuple(p.get(instance, Policy.EXECUTE) for p in self.policies) or (self.policy,)


def stops_at_events(model: Model, policy: Policy) -> bool:
    """Whether an instance with this policy may end a step at its own event, if early return is allowed."""
    chosen = model.event_policy
    if chosen is not None and chosen.ignore is not None and policy is Policy.IGNORE:
        return False
    if model.capabilities.has_event_mode:
        return model.capabilities.might_return_early_from_do_step
    return chosen is not None and policy is Policy.ANNOUNCE


def stops_inside(model: Model, event: EventDeclaration) -> bool:
    """Whether an FMU can be requested to end a step before this event: in Intermediate Update Mode all indicators and their
    derivatives can be read there."""
    can = model.capabilities
    names = [name for i in event.indicators for name in (i.name, i.derivative)]
    read = (None if name is None else model.variable(name) for name in names)
    return (
        can.has_event_mode
        and can.provides_intermediate_update
        and can.can_return_early_after_intermediate_update
        and model.interface is Interface.CO_SIMULATION
        and bool(names)
        and all(v is not None and v.intermediate_update for v in read)
    )


def settings(
    model: Model, policy: Policy = Policy.EXECUTE, polynomial_inputs: bool = False
) -> dict[str, int | None]:
    """Parameters for a policy, for contacts whose impulses the run determines, and for inputs that come as coefficients;
    None for the value with which the FMU starts."""
    found: dict[str, int | None] = {}
    if (p := model.event_policy) is not None:
        values = {
            Policy.EXECUTE: p.execute,
            Policy.ANNOUNCE: p.announce,
            Policy.IGNORE: p.ignore,
        }
        found[p.parameter] = values[policy]
    for event in model.events:
        if event.contact is not None and event.contact.parameter is not None:
            found[event.contact.parameter] = event.contact.value
    for polynomial in model.input_polynomials:
        if polynomial.parameter is not None:
            found[polynomial.parameter] = polynomial.value if polynomial_inputs else None
    return found


def has_settings(model: Model, policies: Sequence[Policy]) -> bool:
    """Whether a run can need other values of these parameters than those with which the FMU starts."""
    return {*policies} != {Policy.EXECUTE} or bool(model.input_polynomials)


# The table of docs/events.md, "My FMU has …" --------------------------------------------------------------------------

MOST_NAMED = 4
"""Events and components that a reason names."""


class TableRow(Enum):
    """A row of the table, as pages name it."""

    PREDICTIVE = "Predictive"
    LOCATE = "Locate"
    EARLY_RETURN = "EarlyReturn"
    LOOK_AHEAD = "LookAhead"
    EVENT_MODE = "Event Mode"
    NONE = "no event clock"


def row_of(model: Model, connected: Collection[str] | None = None) -> tuple[TableRow, str]:
    """The row that fits an FMU whose events affect others, and the reason as a clause.

    Parameters
    ----------
    connected
        The outputs that others use; None for all.
    """
    can, events = model.capabilities, model.events
    jumping = [
        v
        for v in model.with_causality(Causality.OUTPUT)
        if (v.type is DataType.BOOLEAN or v.type.is_integer or v.type.is_float)
        and not v.is_continuous
        and not v.clocks
        and v.name not in {e.announce for e in events}
        and (connected is None or v.name in connected)
    ]
    # FMUs of other tools declare numbers as discrete that change in each step
    discrete = [v.name for v in jumping if not v.type.is_float]
    lone = [e.name for e in events if e.scope is Scope.SHARED and e.trigger is None]
    if lone:
        return TableRow.LOOK_AHEAD, f"its shared events have no trigger: {named(lone)}"
    if any(e.trigger for e in events):
        return TableRow.PREDICTIVE, "its events have indicators and triggers"
    if discrete and undoes_events(model) and not model.has_clocks:
        return TableRow.LOCATE, f"its events change discrete outputs: {named(discrete)}"
    if events:
        return TableRow.PREDICTIVE, "its events have indicators"
    if stops_itself(model):
        return TableRow.EARLY_RETURN, "it stops at its events"
    if can.has_event_mode and jumping and model.interface is Interface.CO_SIMULATION:
        return TableRow.EVENT_MODE, "it has Event Mode, in which its discrete outputs change"
    return TableRow.NONE, "it declares no event that can be found"


def undoes_events(model: Model) -> bool:
    """Whether steps of an FMU can be undone, also those in which it has executed events."""
    can = model.capabilities
    return can.can_get_and_set_fmu_state and not can.copies_states


def stops_itself(model: Model) -> bool:
    """Whether an FMU ends steps at its own events."""
    is_exchange = model.interface is Interface.MODEL_EXCHANGE
    jumps = any(not v.is_continuous for v in model.with_causality(Causality.OUTPUT))
    # a run that ticks clocks knows their times
    ticks = any(v.clock is not None and v.clock.is_time_based for v in model.variables)
    has_events = bool(model.events or model.n_event_indicators or (jumps and not ticks))
    return stops_at_events(model, Policy.ANNOUNCE) and (has_events or not is_exchange)


def named(names: Iterable[str]) -> str:
    """The first of some names, each once."""
    return listed(dict.fromkeys(f"'{name}'" for name in names), MOST_NAMED)
