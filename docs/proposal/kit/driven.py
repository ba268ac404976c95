"""An FMU that is brought to its events again and again, and the comparison of what it shows there.

Two values are the same if they differ by less than 1e-6 of the largest absolute value of that variable, or less than a
variable changes in the short time that lies between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fmu_under_test import Event, Fmu
from report import Report
from simulated import Experiment, Run, run

TOLERANCE = 1e-6
"""Relative to the largest absolute value of a variable: as near are the same values."""
SHORT = 1e-6
"""Steps of the experiment: a time in which nothing happens but an event."""
EXACT = 1e-12
"""Steps: events are located to this time."""
NEAR = 1e-3
"""Steps: how near to the event an FMU that stops at it has to stop, and how far before it a trigger is tried early."""
SLOPE = 1e-3
"""Relative: as near is a difference quotient over a thousandth of a step to the derivative."""
JUMP = 3.0
"""Changes by derivatives: an indicator that changes by more in a step has jumped."""
MOST_EVENTS = 20
Values = dict[str, float]


@dataclass
class Found:
    """An event at the time at which it is first on, and the triggers before it."""

    event: Event
    time: float
    before: tuple[tuple[float, Event], ...]


@dataclass
class Survey:
    """What a simulation up to the last event shows: sizes and rates of all values, and where events are."""

    found: dict[str, Found] = field(default_factory=dict)
    size: Values = field(default_factory=dict)
    rate: Values = field(default_factory=dict)

    def add(self, before: Values, after: Values, h: float) -> None:
        """Take a step into account."""
        for name, value in after.items():
            self.size[name] = max(self.size.get(name, 0.0), abs(value), abs(before[name]))
            self.rate[name] = max(self.rate.get(name, 0.0), abs(value - before[name]) / h)


class Driven:
    """An FMU, how it is brought to its events, and what was seen on the way."""

    def __init__(self, fmu: Fmu, experiment: Experiment, report: Report) -> None:
        self.fmu, self.experiment, self.report = fmu, experiment, report
        self.names = fmu.observed()
        self.h = experiment.step
        self.short = SHORT * self.h
        ignore, announce = fmu.policy_value("ignore"), fmu.policy_value("announce")
        self.quiet = announce if ignore is None else ignore
        self.survey = Survey()

    def allowed(self, name: str, time: float) -> float:
        """How far two values of a variable may differ that are so far apart in time."""
        s = self.survey
        return TOLERANCE * s.size.get(name, 1.0) + 3.0 * time * s.rate.get(name, 0.0) + 1e-300

    def differing(self, a: Values, b: Values, time: float) -> list[str]:
        """Variables whose values are not the same."""
        return [
            n
            for n in a
            if n in b
            and not abs(a[n] - b[n])
            <= self.allowed(n, time) + TOLERANCE * max(abs(a[n]), abs(b[n]))
        ]

    def is_on(self, event: Event, values: Values) -> bool:
        """Whether an event is on, as the text says, with the tolerance of this checker."""
        if event.active and not values[event.active]:
            return False
        at_zero = []
        for z, dz in zip(event.indicators, event.derivatives, strict=True):
            tolerance = self.allowed(z, self.short)
            if values[z] > tolerance:
                return False
            if values[z] >= -tolerance:
                at_zero.append(dz is None or values[dz] < -self.allowed(dz, self.short))
        return not at_zero or any(at_zero)

    @contextmanager
    def at(self, found: Found, policy: int | None, earlier: float = 0.0) -> Iterator[Run]:
        """A simulation that has come to an event, or to a time before it; its inputs are not set for the next step."""
        with run(self.fmu, self.experiment, policy) as instance:
            for time, event in found.before:
                instance.go_in_steps(time)
                if policy != self.fmu.policy_value("execute"):
                    instance.trigger(event)
            instance.go_in_steps(found.time - earlier)
            yield instance

    def find_events(self) -> None:
        """Find the first time of each event that has a trigger, with all others triggered on the way."""
        wanted = {e.name for e in self.fmu.events if e.trigger}
        before: list[tuple[float, Event]] = []
        while len(before) < MOST_EVENTS:
            found = self._next_event(tuple(before))
            if found is None:
                return
            self.survey.found.setdefault(found.event.name, found)
            if wanted <= set(self.survey.found):
                return
            before.append((found.time, found.event))

    def _next_event(self, before: tuple[tuple[float, Event], ...]) -> Found | None:
        triggered = [e for e in self.fmu.events if e.trigger]
        start = before[-1][0] if before else 0.0
        with self.at(Found(self.fmu.events[0], start, before), self.quiet) as r:
            values = r.read(self.names)
            was = {e.name: is_down(e, values) for e in triggered}
            while r.time < self.experiment.stop - self.short:
                begin, at_begin = r.time, values
                end = min((round(begin / self.h) + 1) * self.h, self.experiment.stop)
                stops = []
                r.set_inputs()
                stop = r.step(end if end - begin > self.short else end + self.h)
                if stop.at_event:
                    stops.append(stop)
                values = r.read(self.names)
                self.survey.add(at_begin, values, max(r.time - begin, self.short))
                now = {e.name: is_down(e, values) for e in triggered}
                hit = [e for e in triggered if now[e.name] and not was[e.name]]
                if stops and not hit:
                    hit = [e for e in triggered if self.is_on(e, values)]
                if hit:
                    return min(
                        (self._located(e, begin, r.time, before) for e in hit), key=lambda f: f.time
                    )
                if stop.at_event:
                    r.handle()
                elif self.quiet is not None:
                    self._not_by_itself(triggered, at_begin, values, begin, r.time)
                was = now
        return None

    def _not_by_itself(
        self, events: list[Event], before: Values, after: Values, begin: float, end: float
    ) -> None:
        """F15: indicators that a step was to bring below 0 have not jumped instead."""
        h = end - begin
        for event in events:
            pairs = [
                (z, dz) for z, dz in zip(event.indicators, event.derivatives, strict=True) if dz
            ]
            if len(pairs) < len(event.indicators) or any(
                before[z] + h * before[dz] > 0.0 for z, dz in pairs
            ):
                continue
            jumped = [
                z
                for z, dz in pairs
                if abs(after[z] - before[z]) > JUMP * h * max(abs(before[dz]), abs(after[dz]))
            ]
            told = (
                f"event '{event.name}': {', '.join(jumped)} jumps between t = {begin:.6g} s and {end:.6g} s: it is "
                "executed without a trigger"
            )
            self.report.judge("F15", not jumped, told)

    def _located(
        self, event: Event, begin: float, end: float, before: tuple[tuple[float, Event], ...]
    ) -> Found:
        """The time at which an event is first on, by bisection of a step that is done again and again."""
        low, high = begin, end
        with self.at(Found(event, begin, before), self.quiet) as r:
            state = r.binary.getFMUState() if self.fmu.saves_states else None
            while high - low > max(EXACT * self.h, 4e-16 * end):
                middle = low + (high - low) / 2
                if state is not None:
                    r.binary.setFMUState(state)
                    r.time = begin
                    r.go(middle)
                    values = r.read(event.indicators)
                else:
                    with self.at(Found(event, begin, before), self.quiet) as again:
                        again.go(middle)
                        values = again.read(event.indicators)
                low, high = (low, middle) if is_down(event, values) else (middle, high)
            if state is not None:
                r.binary.freeFMUState(state)
        return Found(event, high, before)

    def _names_of(self, event: Event) -> list[str]:
        """What shows an event: not what depends on other members too, which nobody triggers here."""
        if event.scope != "shared":
            return self.fmu.observed()
        told = {s for e in self.fmu.events for s in (e.trigger, *(name for _, name in e.payload))}
        told |= {e.contact["impulse"] for e in self.fmu.events if e.contact}
        given = {v.name for v in self.fmu.variables.values() if v.causality == "input"} - told
        names = []
        for name in self.fmu.observed():
            listed = self.fmu.dependencies(name)
            if (
                self.fmu.variables[name].causality == "output"
                and listed is not None
                and given.isdisjoint(listed)
            ):
                names.append(name)
        return names

    def _after(
        self, found: Found, policy: int | None, triggers: list[int], earlier: float = 0.0
    ) -> Values:
        """Values a short time after an event that was triggered, after so many short times, or not at all."""
        with self.at(found, policy, earlier) as r:
            start = r.time
            for number, wait in enumerate(triggers):
                if wait:
                    r.go(start + wait * self.short)
                if number == 0 or wait:
                    r.set_inputs()
                if number:
                    r.read(self.names)  # as an importer does: it passes right limits to other FMUs
                r.trigger(found.event)
            r.go(max(start, r.time) + self.short)
            return r.read(self.names)


def is_down(event: Event, values: Values) -> bool:
    """Whether all indicators have come down to 0, and the event can occur."""
    if event.active and event.active in values and not values[event.active]:
        return False
    return all(values[z] <= 0.0 for z in event.indicators)
