"""Event clocks: when a state event is near, and whether it is now.

They read indicators, and their derivatives, from the outputs and the history in the value store, and keep no memory of
their own: a prediction is a pure function of what is in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import copysign, inf, sqrt
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.optimize import brentq

from fmimaster.control.instant import Goal, Instant
from fmimaster.errors import DescriptionError, OptionError, SimulationError
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan, Policy
from fmimaster.program.polynomial import NEAREST
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType, Scope

NONE: frozenset[int] = frozenset()


AGREEMENT = 1e-6
"""Indicators of an event's members may differ by so much, absolute or relative, whichever is more."""


class IndicatorSet(NamedTuple):
    """The indicators by which one member sees an event."""

    event: int
    """Index in the plan's events."""
    instance: int
    z: tuple[int, ...]
    """Slots of the indicators among the Float64 outputs."""
    pairs: tuple[tuple[int, int], ...]
    """The same, each with the slot of its time derivative; -1 if it has none."""
    nominals: tuple[float, ...]
    """Nominal values of the indicators."""


class Indicators:
    """The indicators of a plan in a value store."""

    def __init__(self, plan: Plan, store: ValueStore, history: int) -> None:
        self.plan = plan
        self.store = store
        self.history = history
        self.first: int | None = None
        """The instance whose inputs are extrapolated, while the others know its course; None if all are."""
        self.sets = [
            _indicator_set(plan, e, m.instance)
            for e, event in enumerate(plan.events)
            for m in event.members
        ]
        self.look_ahead = [
            (i, slot.start)
            for i, instance in enumerate(plan.instances)
            if (name := instance.model.look_ahead) is not None
            for slot in [plan.layout.slots.get((i, Group.OUTPUTS, name), (None, None))[1]]
            if slot is not None
        ]
        self._seen = [(s.event, s.z) for s in self.sets]
        self.pairs = [(s.event, s.pairs) for s in self.sets]
        """Of each set the event, and slots of indicators and derivatives: what is looked at in each step."""
        self._member = self.sets[0].instance if self.sets else 0
        self._slots = sorted({k for s in self.sets for k in s.z})
        self._outputs = store.outputs.get(DataType.FLOAT64, np.zeros(0))
        self._present: list[float] | None = None

    def renew(self) -> None:
        """The outputs have changed."""
        self._present = None

    def present(self) -> list[float]:
        """All Float64 outputs, as they were when they were asked for first since the last change."""
        if self._present is None:
            self._present = self._outputs.tolist()
        return self._present

    def previous(self, now: float, nearest: float) -> tuple[list[float], float] | None:
        """Float64 outputs at the newest accepted point that is farther than ``nearest`` away, and its time in s."""
        for values, read in self.store.history[1 : self.history]:
            time = read.item(self._member)
            if not time < inf:  # NaN: there is no history
                return None
            if now - time > nearest:
                return values[DataType.FLOAT64].tolist(), time
        return None

    def at(self, tolerance: float) -> frozenset[int]:
        """Events of which a member has all indicators at or below the tolerance."""
        values, found = self.present(), NONE
        for event, slots in self._seen:
            for k in slots:
                if values[k] > tolerance:
                    break
            else:
                found |= {event}
        return found

    def stopped_at(self, tolerance: float, instances: frozenset[int]) -> frozenset[int]:
        """Events at which these instances have stopped: all indicators are reached, up to the time by which an FMU may miss
        its event (tolerance in s, or relative to the nominal value)."""
        values, found = self.present(), NONE
        for s in self.sets:
            if s.instance not in instances:
                continue
            slopes = [abs(values[dz]) if dz >= 0 else 0.0 for _, dz in s.pairs]
            if all(
                values[z] <= tolerance * max(nominal, slope)
                for z, nominal, slope in zip(s.z, s.nominals, slopes, strict=True)
            ):
                found |= {s.event}
        return found

    def largest(self, event: int) -> float:
        """The smallest of its members' largest indicators: how deep the event is on by who sees it best."""
        values = self.present()
        return min(max(values[k] for k in s.z) for s in self.sets if s.event == event)

    def still_on(self, event: int) -> bool:
        """Whether all members have all indicators of the event at or below 0."""
        values = self.present()
        return all(values[k] <= 0.0 for s in self.sets if s.event == event for k in s.z)

    def check_finite(self, now: float) -> None:
        """Raise if an indicator is not a number."""
        values, total = self.present(), 0.0
        for k in self._slots:
            total += values[k]
        if total == total:  # NaN stays NaN in a sum
            return
        for s in self.sets:
            for k, indicator in zip(s.z, self.declaration(s).indicators, strict=True):
                if values[k] != values[k]:
                    raise SimulationError(
                        f"The event indicator '{self.plan.instances[s.instance].name}.{indicator.name}' is NaN at "
                        f"t = {now:.12g} s, so no event can be found. Check the FMU's inputs and parameters."
                    )

    def check_members_agree(self, event: int, now: float) -> None:
        """Raise if members see different values of an event's indicators where all inputs are those of now."""
        values = self.present()
        first, *others = [s for s in self.sets if s.event == event]
        for other in others:
            if len(other.z) != len(first.z):  # conditions in other words
                continue
            for n, (a, b) in enumerate(zip(first.z, other.z, strict=True)):
                x, y = values[a], values[b]
                if abs(x - y) > AGREEMENT * max(1.0, abs(x), abs(y)):
                    told = " but ".join(
                        f"'{self.plan.instances[s.instance].name}."
                        f"{self.declaration(s).indicators[n].name}' is {values[s.z[n]]:.12g}"
                        for s in (first, other)
                    )
                    raise SimulationError(
                        f"The members of the shared event '{self.plan.events[event].name}' disagree at t = {now:.12g} s: "
                        f"{told}, though both have the same inputs. They must judge the event by the same condition; "
                        "compare their parameters and the connections."
                    )

    def declaration(self, s: IndicatorSet) -> Any:
        """What the FMU says of the event."""
        event = self.plan.events[s.event]
        return next(m.declaration for m in event.members if m.instance == s.instance)


def _indicator_set(plan: Plan, event: int, instance: int) -> IndicatorSet:
    declaration = next(m.declaration for m in plan.events[event].members if m.instance == instance)

    def slot(name: str) -> int:
        return int(plan.layout.slots[instance, Group.OUTPUTS, name][1].start)

    pairs = tuple(
        (slot(i.name), -1 if i.derivative is None else slot(i.derivative))
        for i in declaration.indicators
    )
    model = plan.instances[instance].model
    variables = [model.variable(i.name) for i in declaration.indicators]
    nominals = tuple(1.0 if v is None else abs(v.nominal) for v in variables)
    return IndicatorSet(event, instance, tuple(z for z, _ in pairs), pairs, nominals)


class EventClock(Protocol):
    """Says when to stop for a state event."""

    @property
    def history(self) -> int:
        """How many accepted points it reads, the present one among them."""

    @property
    def policy(self) -> Policy:
        """What FMUs shall do at their own events."""

    @property
    def fires(self) -> bool:
        """Whether it lets events happen; if not, FMUs execute them by themselves."""

    @property
    def locates(self) -> float:
        """Length in s to which it brings the bracket around a change of discrete outputs; 0 if it does not."""

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """Stop earlier, and why; or fire right now. ``fired`` have happened at this very time."""

    def detect(self, indicators: Indicators, fired: frozenset[int]) -> frozenset[int]:
        """Events that are to be fired at this synchronous point."""


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Shorten steps towards a predicted event; FMUs execute their events by themselves.

    Parameters
    ----------
    safety : float
        Factor c on the time to the event.
    forecast : float
        Factor d on the last change of an indicator; 1 to 2.
    shortest : float
        Shortest step in s.
    in_fmu : bool
        Whether an FMU that computes it itself is asked, by the output that its manifest names.

    Source: Tischer et al., LookAhead.
    """

    safety: float = 0.9
    forecast: float = 2.0
    shortest: float = 2e-3
    in_fmu: bool = False
    history: ClassVar[int] = 2
    policy: ClassVar[Policy] = Policy.EXECUTE
    fires: ClassVar[bool] = False
    locates: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.safety < 1 or self.shortest <= 0 or self.forecast <= 0:
            raise OptionError(
                f"{self}: expected 0 < safety < 1, forecast > 0 and shortest > 0. The paper has 0.9, 2 and 0.002."
            )

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """The nearest predicted event, if it comes before the goal."""
        del fired
        found = self._nearest(now, indicators)
        if found is None or now.seconds + found[0] >= goal.end.seconds:
            return goal
        return Goal(Instant(now.seconds + found[0]), f"look-ahead to {found[1]}")

    def detect(self, indicators: Indicators, fired: frozenset[int]) -> frozenset[int]:
        """Nothing: FMUs find their events themselves."""
        del indicators, fired
        return frozenset()

    def _nearest(self, now: Instant, indicators: Indicators) -> tuple[float, str] | None:
        values, candidates = indicators.present(), list[tuple[float, str]]()
        with_indicators = {s.instance for s in indicators.sets}
        computing = {i for i, _ in indicators.look_ahead if self.in_fmu or i not in with_indicators}
        for i, slot in indicators.look_ahead:
            if i in computing and values[slot] > 0:
                name = indicators.plan.instances[i].name
                candidates.append((values[slot], f"an event of {name}"))
        previous = indicators.previous(now.seconds, 0.0)
        if previous is not None:
            before, time = previous
            for s in indicators.sets:
                if s.instance not in computing:
                    step = self.time_to_event(
                        [before[k] for k in s.z], [values[k] for k in s.z], now.seconds - time
                    )
                    if step > 0:
                        candidates.append((step, indicators.plan.events[s.event].name))
        return min(candidates, default=None)

    def time_to_event(self, before: Sequence[float], now: Sequence[float], dt: float) -> float:
        """Time in s to the event of one indicator set; -1 if none is predicted.

        Parameters
        ----------
        before, now : values of the indicators at the last two communication points
        dt : time between them in s
        """
        longest = -1.0
        for z_before, z in zip(before, now, strict=True):
            if z + self.forecast * (z - z_before) >= 0:
                return -1.0
            if z > 0:
                longest = max(longest, self.safety * dt * z / (z_before - z), self.shortest)
        return longest if longest >= self.shortest else -1.0


@dataclass(frozen=True, slots=True)
class Predictive:
    """Stop at predicted events and fire them in all members at once; no FMU is ever brought back ("PZ" in docs/events.md).

    Each indicator is extrapolated by the cubic through values and derivatives at the last two communication points.

    Parameters
    ----------
    approach : float
        Fraction of the time to an event that is stepped while it is far.
    near : float
        Below this time in s the step goes to the event itself.
    now : float
        Below this time in s the event is fired without a step.
    tolerance : float
        Indicators at or below it count as reached.
    """

    approach: float = 0.95
    near: float = 1e-3
    now: float = 1e-8
    tolerance: float = 1e-10
    history: ClassVar[int] = 3
    policy: ClassVar[Policy] = Policy.IGNORE
    fires: ClassVar[bool] = True
    locates: ClassVar[float] = 0.0

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """The first event that the extrapolations meet before the goal."""
        time, (end, _) = now.seconds, goal.end
        horizon = end - time
        second, third = horizon * horizon, horizon * horizon * horizon
        values = indicators.present()
        previous = indicators.previous(time, NEAREST * horizon)
        before, h = (previous[0], time - previous[1]) if previous else (values, 0.0)
        earliest, event = inf, -1
        for this, pairs in indicators.pairs:
            if this in fired:
                continue
            polynomials = []
            for z, dz in pairs:
                # this is done at each step for each set: without calls it takes half the time
                c0 = values[z]
                c1, c2, c3 = values[dz] if dz >= 0 else 0.0, 0.0, 0.0
                if h and dz >= 0:
                    b = (before[dz] - c1) / h
                    a = ((before[z] - c0) / h + c1) / h
                    c2, c3 = 3 * a + b, (b + 2 * a) / h
                elif h:
                    c1 = (c0 - before[z]) / h
                if (
                    c0 > 0
                ):  # Bernstein coefficients over the horizon bound the polynomial from below
                    b1, b2 = c1 * horizon, c2 * second
                    if (
                        c0 + b1 / 3 > 0
                        and c0 + (2 * b1 + b2) / 3 > 0
                        and c0 + b1 + b2 + c3 * third > 0
                    ):
                        break
                polynomials.append((c0, c1, c2, c3))
            else:
                tau = _first_time_all_reached(polynomials, horizon)
                if tau < earliest:
                    earliest, event = tau, this
        if event < 0:
            return goal
        name = indicators.plan.events[event].name
        if earliest <= self.now:
            return Goal(now, f"{name} now", frozenset({event}))
        length = self.approach * earliest if earliest > self.near else earliest
        if length >= horizon:
            return goal
        return Goal(Instant(now.seconds + length), f"{name} predicted")

    def detect(self, indicators: Indicators, fired: frozenset[int]) -> frozenset[int]:
        """Events whose indicators are all reached."""
        found = indicators.at(self.tolerance)
        return found - fired if found else found


Cubic = tuple[float, float, float, float]


def _first_time_all_reached(polynomials: Sequence[Cubic], horizon: float) -> float:
    """First time at which no polynomial is above 0; inf if there is none up to the horizon."""
    candidates = [0.0, *(r for p in polynomials for r in _falling_roots(p, horizon))]
    for s in sorted(candidates):
        if all(_value(p, s) <= 1e-12 * (1 + abs(p[1]) * horizon + abs(p[0])) for p in polynomials):
            return s
    return inf


def _falling_roots(p: Cubic, horizon: float) -> list[float]:
    """Where a polynomial comes down to 0 within the horizon: at most once in each piece between its extrema."""
    points = [0.0, *sorted(t for t in _extrema(p) if 0.0 < t < horizon), horizon]
    return [
        brentq(lambda s: _value(p, s), low, high, xtol=1e-15, rtol=1e-15)
        for low, high in pairwise(points)
        if _value(p, low) > 0.0 >= _value(p, high)
    ]


def _extrema(p: Cubic) -> list[float]:
    a, b, c = 3 * p[3], p[2], p[1]  # a t**2 + 2 b t + c = 0
    discriminant = b * b - a * c
    if discriminant < 0.0:
        return []
    q = -b - copysign(sqrt(discriminant), b)
    found = [q / a] if a else []
    return [*found, c / q] if q else found


def _value(p: Cubic, s: float) -> float:
    return p[0] + s * (p[1] + s * (p[2] + s * p[3]))


@dataclass(frozen=True, slots=True)
class EarlyReturn:
    """FMUs return early at their own events, announce them, and the importer lets them happen in all members at once.

    For an algorithm that brings the others back: ``Aligned`` or ``Waveform``, "E1" and "E2" in docs/events.md.
    """

    tolerance: float = 1e-9
    history: ClassVar[int] = 0
    policy: ClassVar[Policy] = Policy.ANNOUNCE
    fires: ClassVar[bool] = True
    locates: ClassVar[float] = 0.0

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """Nothing: FMUs stop by themselves."""
        del now, indicators, fired
        return goal

    def detect(self, indicators: Indicators, fired: frozenset[int]) -> frozenset[int]:
        """Nothing: FMUs say so themselves."""
        del indicators, fired
        return frozenset()


@dataclass(frozen=True, slots=True)
class Check:
    """Interrupt for a moment after each event, and fire what is on at synchronous points (Dejaco's steps III to V).

    For the algorithms ``Sequential`` and ``AutomaticSequence``, of which the first instance stops at its own events. Its
    inputs are extrapolated, so that shared events are judged by the other members.

    Parameters
    ----------
    interruption : float
        Length in s of the step after an event.

    Source: Dejaco and Benedikt (2017), steps III to V.
    """

    interruption: float = 1e-4
    history: ClassVar[int] = 0
    policy: ClassVar[Policy] = Policy.ANNOUNCE
    fires: ClassVar[bool] = True
    locates: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not self.interruption > 0:
            raise OptionError(f"{self}: expected a positive interruption in s, such as 1e-4.")

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """After an event, a short step."""
        del indicators
        end = now.seconds + self.interruption
        return Goal(Instant(end), "interruption") if fired and end < goal.end.seconds else goal

    def detect(self, indicators: Indicators, fired: frozenset[int]) -> frozenset[int]:
        """What is on, by members whose inputs are those of this very point."""
        events, first = indicators.plan.events, indicators.first
        values = indicators.present()
        return (
            frozenset(
                s.event
                for s in indicators.sets
                if (s.instance != first or events[s.event].scope is Scope.PRIVATE)
                and all(values[k] <= 0.0 for k in s.z)
            )
            - fired
        )


@dataclass(frozen=True, slots=True)
class Locate:
    """Go back and halve the step until a change of discrete outputs is bracketed; all instances then step to its end.

    For FMUs without Event Mode that change discrete outputs inside a step. All must be able to go back.

    Parameters
    ----------
    tolerance : float
        Length of the bracket in s.
    """

    tolerance: float = 1e-10
    history: ClassVar[int] = 0
    policy: ClassVar[Policy] = Policy.EXECUTE
    fires: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise OptionError(f"{self}: expected a positive tolerance in s, such as 1e-10.")

    @property
    def locates(self) -> float:
        """Length of the bracket in s."""
        return self.tolerance

    def clip(self, goal: Goal, now: Instant, indicators: Indicators, fired: frozenset[int]) -> Goal:
        """Nothing: events are found afterwards."""
        del now, indicators, fired
        return goal

    def detect(self, indicators: Indicators, fired: frozenset[int]) -> frozenset[int]:
        """Nothing: FMUs execute their events."""
        del indicators, fired
        return frozenset()


def refuse_what_cannot_be_done(plan: Plan, clock: EventClock) -> None:
    """Raise if an event clock has nothing to do in a system, or cannot do it.

    Raises
    ------
    DescriptionError
        If a shared event cannot be fired in each of its members.
    OptionError
        If no FMU has what the event clock needs.
    """
    name = type(clock).__name__
    if clock.locates:
        if not any(group is Group.DISCRETE for _, group in plan.routes):
            raise OptionError(
                f"The event clock {name} looks for changes of discrete outputs that are connected, and there are none. "
                "Leave it out, or use Predictive or LookAhead, if FMUs publish event indicators."
            )
        return
    for event in plan.events if clock.fires else ():
        missing = [m for m in event.members if m.trigger is None]
        if event.scope is Scope.SHARED and missing:
            names = " and ".join(f"'{plan.instances[m.instance].name}'" for m in missing)
            raise DescriptionError(
                f"The shared event '{event.name}' has no trigger in {names}, so an event clock cannot let it happen in all "
                "its members at once. Name a trigger in the FMU's manifest, or use LookAhead, with which FMUs execute "
                "their events themselves."
            )
        if event.scope is Scope.SHARED and len(event.members) < 2:
            raise DescriptionError(
                f"The event '{event.name}' is shared, but the system does not say with whom. Add a SharedEvent to the "
                "system description: builder.share_event(name, members...)."
            )
    stops = any(i.may_return_early for i in plan.instances)
    if clock.policy is Policy.ANNOUNCE and not stops:
        raise OptionError(
            f"The event clock {name} needs FMUs that stop at their events: by an early return (Event Mode and "
            "mightReturnEarlyFromDoStep), or by a discarded step, with a trigger and a policy in their manifest. There is "
            "none. Use Predictive or LookAhead, or leave the event clock out."
        )
    if not stops and not plan.events and not any(i.model.look_ahead for i in plan.instances):
        what = "that can be triggered" if clock.fires else "by its indicators"
        raise OptionError(
            f"The event clock {name} has nothing to do: no FMU publishes an event {what}. Leave it out, or add a manifest "
            "to the FMU that names indicators and triggers."
        )
