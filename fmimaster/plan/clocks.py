"""Clocks: those that tick in a run, and which of them tick together; connections that cannot work are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, OptionError
from fmimaster.base.text import listed
from fmimaster.plan.events import Trigger
from fmimaster.plan.policy import EventUse
from fmimaster.plan.variables import Chosen
from fmimaster.system.clocks import ClockAttributes, IntervalVariability, common_divisor
from fmimaster.system.model import Causality, DataType, Model, Variable
from fmimaster.system.resolved import Link, ResolvedComponent, ResolvedSystem


def without_clocked_links(system: ResolvedSystem, triggers: Iterable[Trigger]) -> ResolvedSystem:
    """The system without connections to inputs whose clocks are never activated: they may be set only with their
    clocks."""
    with_clock = {(t.instance, name) for t in triggers for name in t.names}
    kept = tuple(k for k in system.links if not _is_still(k, with_clock))
    return system if len(kept) == len(system.links) else replace(system, links=kept)


def _is_still(link: Link, with_clock: Collection[tuple[int, str]]) -> bool:
    return bool(link.input.clocks) and (link.target, link.input.name) not in with_clock


def refuse_without_event_mode(system: ResolvedSystem, triggers: Iterable[Trigger]) -> None:
    """Refuse connected clocks of FMUs that have no Event Mode: they cannot tick.

    Raises
    ------
    DescriptionError
    """
    for trigger in triggers:
        for i, name in ((trigger.instance, trigger.name), *trigger.clocks):
            component = system.components[i]
            variable = component.model.variable(name)
            is_clock = variable is not None and variable.type is DataType.CLOCK
            if is_clock and not component.model.capabilities.has_event_mode:
                raise DescriptionError(
                    f"The clock '{component.name}.{name}' is connected or belongs to an event, but the FMU has no Event "
                    "Mode (hasEventMode is false), and clocks tick in Event Mode only. Leave it out."
                )


def clock_warnings(system: ResolvedSystem, links: Sequence[Link]) -> Iterator[str]:
    """Warnings: clocks that do not tick, and connections without effect because of them.

    Parameters
    ----------
    system
        With all its connections.
    links
        Those of them that are computed.
    """
    for component in system.components:
        if component.model.has_clocks and not component.model.capabilities.has_event_mode:
            yield f"'{component.name}' has clocks, but no Event Mode (hasEventMode is false): they do not tick"
    used = {(k.target, k.input.name) for k in links}
    dropped = [k for k in system.links if (k.target, k.input.name) not in used]
    for link in dropped:
        source, target = (system.components[i].name for i in (link.source, link.target))
        yield (
            f"the connection '{source}.{link.output.name} -> {target}.{link.input.name}' has no effect: the input is "
            f"set together with its clock only, and nothing activates {listed(repr(c) for c in link.input.clocks)}"
        )


def clock_notes(components: Sequence[ResolvedComponent], use: EventUse) -> Iterator[str]:
    """Notes: Event Mode that is used although it was switched off."""
    for component in components:
        model = component.model
        if use.event_mode is False and model.has_clocks and model.capabilities.has_event_mode:
            yield (
                f"the Event Mode of '{component.name}' is used nevertheless, because it has clocks (FMI 3.0, 2.3.1)"
            )


class Clock(NamedTuple):
    """A clock of a component."""

    instance: int
    name: str


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The ticks of a clock that no other clock drives."""

    origin: Clock
    is_output: bool
    """Whether the FMU makes it active, at its own events."""
    is_periodic: bool = False
    interval: Fraction | None = None
    """In s; None if it is not known before the run."""
    shift: Fraction = Fraction(0)

    def meets(self, other: Rhythm) -> bool | None:
        """Whether the two tick at some instants together: True for a known reason, None if perhaps by chance.

        Clocks of one FMU may belong together. Periodic clocks meet at multiples of both intervals, or never.
        To meet by chance, as an event and a tick do, is no error: such systems are meaningful.
        """
        if self.origin == other.origin:
            return True
        if self.origin.instance == other.origin.instance and (self.is_output or other.is_output):
            return True
        if not (self.is_periodic and other.is_periodic):
            return None
        if self.interval is None or other.interval is None:
            return True
        common = common_divisor(self.interval, other.interval)
        return (self.shift - other.shift) % common == 0


class Rhythms:
    """The rhythms of all clocks of a system.

    Parameters
    ----------
    components, links
        Of the resolved system.
    """

    def __init__(self, components: Sequence[ResolvedComponent], links: Sequence[Link]) -> None:
        self._components = components
        self.driver: Mapping[Clock, Clock] = {
            Clock(k.target, k.input.name): Clock(k.source, k.output.name)
            for k in links
            if k.input.type is DataType.CLOCK
        }
        """Connected input clock → the clock that makes it active."""
        self._triggers = {
            Clock(i, event.trigger)
            for i, c in enumerate(components)
            for event in c.model.events
            if event.trigger is not None
        }

    def of(self, clock: Clock) -> frozenset[Rhythm]:
        """The rhythms with which a clock ticks; empty if it cannot tick.

        An output clock that is clocked itself ticks with the rhythms of its clocks, besides its own.
        """
        passed = set[Clock]()
        while clock in self.driver and clock not in passed:
            passed.add(clock)
            clock = self.driver[clock]
        variable = self._variable(clock)
        attributes = variable.clock or ClockAttributes()
        if variable.causality is not Causality.INPUT:
            own = Rhythm(clock, is_output=True)
            if not variable.clocks:
                return frozenset({own})
            around = self.of_clocks(clock.instance, variable)
            return frozenset({own, *around}) if around else frozenset()
        if attributes.is_time_based:
            kind = attributes.interval_variability
            is_periodic = attributes.is_periodic or kind is IntervalVariability.TRIGGERED
            return frozenset(
                {Rhythm(clock, False, is_periodic, attributes.interval, attributes.shift)}
            )
        return frozenset({Rhythm(clock, False)} if clock in self._triggers else ())

    def of_clocks(self, instance: int, variable: Variable) -> frozenset[Rhythm]:
        """The rhythms of all clocks of a clocked variable."""
        return frozenset().union(
            *(self.of(Clock(instance, name)) for name in variable.clocks if name != variable.name)
        )

    def _variable(self, clock: Clock) -> Variable:
        found = self._components[clock.instance].model.variable(clock.name)
        assert found is not None
        return found


def check_clocks(system: ResolvedSystem) -> None:
    """Refuse clocks without interval, clocks with two drivers, and connections of clocked variables that never have a
    value at the same instant.

    Raises
    ------
    DescriptionError
    """
    components = system.components
    for c in components:
        _check_intervals(c.name, c.model)
    rhythms = Rhythms(components, system.links)
    for link in system.links:
        if link.input.type is DataType.CLOCK:
            _check_driver(link, components)
        elif link.output.clocks:
            _check_ticks_together(link, components, rhythms)


def only_ticking(
    system: ResolvedSystem, chosen: Sequence[Chosen], globs: Sequence[str]
) -> tuple[list[Chosen], list[str]]:
    """The variables to record without those whose clocks cannot tick, and a note about these.

    Parameters
    ----------
    globs
        Names of variables to record, as the user gives them.

    Raises
    ------
    OptionError
        If the user has named such a variable.
    """
    if not any(c.model.has_clocks for c in system.components):
        return list(chosen), []
    rhythms = Rhythms(system.components, system.links)
    kept, silent = [], []
    for entry in chosen:
        clocks = _clocks_of(system, entry)
        if not clocks or any(rhythms.of(clock) for clock in clocks):
            kept.append(entry)
            continue
        names = listed(repr(clock.name) for clock in clocks)
        if entry.name in globs:
            raise OptionError(
                f"Output variable '{entry.name}' has no value, because nothing makes {names} active. Connect the clock, "
                "give it an interval as its start value, or leave the variable out."
            )
        silent.append(f"'{entry.name}' ({names})")
    if not silent:
        return kept, []
    what = (
        "variables have no values and are not recorded, because nothing makes their clocks active"
    )
    return kept, [f"{what}: {listed(silent)}"]


def _clocks_of(system: ResolvedSystem, entry: Chosen) -> list[Clock]:
    """The clocks without which a variable has no value; a clock is its own."""
    if entry.instance is None:
        return []
    variable = system.components[entry.instance].model.variable(entry.variable)
    assert variable is not None
    names = (entry.variable,) if variable.type is DataType.CLOCK else variable.clocks
    return [Clock(entry.instance, name) for name in names]


def _check_intervals(component: str, model: Model) -> None:
    for variable in model.with_causality(Causality.INPUT):
        clock = variable.clock
        if (
            clock is not None
            and clock.interval_variability is IntervalVariability.CONSTANT
            and clock.interval is None
        ):
            raise DescriptionError(
                f"The clock '{component}.{variable.name}' is constant (intervalVariability), but the FMU declares no "
                "interval. Expected intervalDecimal, or intervalCounter and resolution, in its model description."
            )


def _text(link: Link, components: Sequence[ResolvedComponent]) -> tuple[str, str, str]:
    """The connection, its source and its target, for messages."""
    source = f"{components[link.source].name}.{link.output.name}"
    target = f"{components[link.target].name}.{link.input.name}"
    return f"Connection '{source} -> {target}'", f"'{source}'", f"'{target}'"


def _check_driver(link: Link, components: Sequence[ResolvedComponent]) -> None:
    clock = link.input.clock
    if clock is None or not clock.is_time_based:
        return
    text, _, target = _text(link, components)
    kind = clock.interval_variability
    if kind is IntervalVariability.TRIGGERED:
        raise DescriptionError(
            f"{text}: the clock {target} has a start value too, so it ticks every {clock.interval} s. A clock can have one "
            "driver only: remove the connection or the interval."
        )
    raise DescriptionError(
        f"{text}: the clock {target} ticks by time (intervalVariability={kind.value}), so nothing else can make it "
        "active. Connect a triggered input clock, or remove the connection."
    )


def _check_ticks_together(
    link: Link, components: Sequence[ResolvedComponent], rhythms: Rhythms
) -> None:
    """Refuse a connection between clocked variables whose clocks do not tick together."""
    text, source, target = _text(link, components)
    given = rhythms.of_clocks(link.source, link.output)
    taken = rhythms.of_clocks(link.target, link.input)
    for name, variable, found in ((source, link.output, given), (target, link.input, taken)):
        if variable.clocks and not found:
            what = listed(repr(c) for c in variable.clocks)
            raise DescriptionError(
                f"{text}: {name} has a value only while its clock ticks, and nothing makes {what} active. Connect the "
                "clock, or give it an interval as its start value."
            )
    if not link.input.clocks:
        return  # it holds the value in between
    meetings = {a.meets(b) for a in given for b in taken}
    if True not in meetings and None not in meetings:
        raise DescriptionError(
            f"{text}: {_both(link, components)}, and the two never tick together. Connect the clock of the source to the "
            "clock of the input, or the value to an input without clock, which holds it in between."
        )


def _both(link: Link, components: Sequence[ResolvedComponent]) -> str:
    """The clocks of both ends of a connection, as a clause."""
    _, source, target = _text(link, components)
    clocks = [listed(repr(c) for c in v.clocks) for v in (link.output, link.input)]
    return (
        f"{source} has a value while {clocks[0]} ticks, {target} takes one while {clocks[1]} ticks"
    )


def clock_differences(system: ResolvedSystem) -> Iterator[str]:
    """Warnings about connections of clocked variables whose clocks tick together only by chance."""
    components, rhythms = system.components, Rhythms(system.components, system.links)
    for link in system.links:
        if not (link.input.clocks and link.output.clocks):
            continue
        given = rhythms.of_clocks(link.source, link.output)
        taken = rhythms.of_clocks(link.target, link.input)
        if not any(a.meets(b) for a in given for b in taken):
            text, _, _ = _text(link, components)
            yield (
                f"{text.replace('Connection', 'the connection')} passes a value only at instants at which both clocks "
                f"happen to tick: {_both(link, components)}, and neither drives the other"
            )
