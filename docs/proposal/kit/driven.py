"""An FMU that is brought to its events again and again, and the comparison of what it shows there.

Two values are the same if they differ by less than 1e-6 of the largest absolute value of that variable, or less than a
variable changes in the short time that lies between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite

from fmu_under_test import Event, Fmu
from report import Report
from simulated import USUAL, Experiment, Options, Run, Stop, run

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
MOST_JUMPS = 3
"""Of an indicator: so many suspicious steps are looked at closely."""
Values = dict[str, float]


@dataclass
class Found:
    """An event at the time at which it is first on, the begin of the step to it, and the triggers before it."""

    event: Event
    time: float
    begin: float
    before: tuple[tuple[float, Event], ...]

    @property
    def at_start(self) -> bool:
        """Whether it is on after initialization, so that it has not been reached from above."""
        return self.time == 0.0

    @property
    def free(self) -> float:
        """How long nothing else happens before it."""
        return self.time - (self.before[-1][0] if self.before else 0.0)


@dataclass
class Survey:
    """What a simulation up to the last event shows: sizes and rates of all values, and where events are."""

    found: dict[str, Found] = field(default_factory=dict)
    chain: tuple[tuple[float, Event], ...] = ()
    """All events that were triggered on the way."""
    off: dict[str, Found] = field(default_factory=dict)
    """Events whose indicators reach 0 while `active` is false."""
    slope: Values = field(default_factory=dict)
    """Of indicators, in the last step."""
    looked: dict[str, int] = field(default_factory=dict)
    """How many suspicious steps of an indicator were looked at closely."""
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
        self.compared = set(self.names)
        """What shows the event that is checked."""
        self.h = experiment.step
        self.short = SHORT * self.h
        ignore, announce = fmu.policy_value("ignore"), fmu.policy_value("announce")
        self.quiet = announce if ignore is None else ignore
        self.survey = Survey()
        self.stops_at_events = False
        """Whether it has stopped at one."""

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
            and n in self.compared
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

    def finite(self, values: Values, time: float) -> None:
        """M6: indicators and derivatives are numbers, or nothing else can be checked."""
        for event in self.fmu.events:
            for name in (*event.indicators, *event.derivatives):
                if name and not isfinite(values[name]):
                    told = f"event '{event.name}': '{name}' is {values[name]} at t = {time:.9g} s. No event is checked"
                    self.report.fail("M6", told)
                    raise Unusable
        self.report.judge("M6", True, "")

    def is_off(self, event: Event, values: Values) -> bool:
        """Whether an event cannot occur in the present mode, by `active` or by an indicator that is held."""
        if event.active:
            return not values[event.active]
        pairs = zip(event.indicators, event.derivatives, strict=True)
        return any(values[z] > 0.0 and dz and values[dz] == 0.0 for z, dz in pairs)

    @contextmanager
    def at(
        self, found: Found, policy: int | None, earlier: float = 0.0, options: Options = USUAL,
        payload: Mapping[str, float | str] | None = None,
    ) -> Iterator[Run]:  # fmt: skip
        """A simulation that has come to an event, or to a time before it; its inputs are not set for the next step."""
        experiment = self.experiment
        if payload is not None:
            experiment = replace(experiment, payload=dict(experiment.payload) | dict(payload))
        executes = policy is None or policy == self.fmu.policy_value("execute")
        with run(self.fmu, experiment, policy, options=options) as instance:
            for time, event in found.before:
                instance.go_in_steps(time)
                if not (executes and self.fmu.policy):
                    instance.trigger(event)
            instance.go_in_steps(found.time - earlier)
            yield instance

    def to(self, time: float) -> Found:
        """As an event at this time: the triggers that belong before it."""
        before = tuple(pair for pair in self.survey.chain if pair[0] < time)
        return Found(self.fmu.events[0], time, time, before)

    def find_events(self) -> None:
        """Find the first time of each event that has a trigger, with all others triggered on the way."""
        wanted = {e.name for e in self.fmu.events if e.trigger}
        survey, until = self.survey, self.experiment.jump["at"] if self.experiment.jump else 0.0
        while len(survey.chain) < MOST_EVENTS:
            found = self._next_event(survey.chain)
            if found is None:
                return
            name = found.event.name
            if name not in survey.found or survey.found[name].at_start:
                survey.found[name] = found
            reached = {n for n, f in survey.found.items() if not f.at_start}
            survey.chain += ((found.time, found.event),)
            if wanted <= reached and found.time >= until:
                return

    def _next_event(self, before: tuple[tuple[float, Event], ...]) -> Found | None:
        triggered = [e for e in self.fmu.events if e.trigger]
        start = before[-1][0] if before else 0.0
        with self.at(Found(self.fmu.events[0], start, start, before), self.quiet) as r:
            values = r.read(self.names)
            self.finite(values, r.time)
            self.survey.add(values, values, self.h)
            if not before:
                for event in triggered:
                    if self.is_on(event, values):
                        return Found(event, 0.0, 0.0, ())
            while r.time < self.experiment.stop - self.short:
                begin, at_begin = r.time, values
                end = min((round(begin / self.h) + 1) * self.h, self.experiment.stop)
                r.set_inputs()
                stop = r.step(end if end - begin > self.short else end + self.h)
                values = r.read(self.names)
                self.finite(values, r.time)
                self.survey.add(at_begin, values, max(r.time - begin, self.short))
                if hit := self._occurring(triggered, at_begin, values, stop):
                    located = [self._located(e, begin, r.time, before) for e in hit]
                    return min(located, key=lambda f: f.time)
                if stop.at_event:
                    r.handle()
                    continue
                step = Found(triggered[0], r.time, begin, before)
                for event in triggered:
                    if is_down(event, values, True) and not is_down(event, at_begin, True):
                        self.survey.off.setdefault(event.name, replace(step, event=event))
                if self.quiet is not None and self._not_by_itself(
                    triggered, at_begin, values, step
                ):
                    self._continuous(at_begin, values, step)
        return None

    def _occurring(
        self, events: list[Event], before: Values, after: Values, stop: Stop
    ) -> list[Event]:
        """Events that have come on in a step."""
        hit = [e for e in events if is_down(e, after) and not is_down(e, before)]
        if stop.at_event and not hit:
            hit = [e for e in events if self.is_on(e, after)]
        return hit

    def _continuous(self, before: Values, after: Values, step: Found) -> None:
        """M6: an indicator that changes much in a step has not jumped there, after the begin of the step."""
        h = step.time - step.begin
        if not h > 2 * self.short:
            return
        for event in self.fmu.events:
            for z, dz in zip(event.indicators, event.derivatives, strict=True):
                change = abs(after[z] - before[z])
                last = self.survey.slope.get(z, change / h)
                self.survey.slope[z] = change / h
                slope = max(abs(before[dz]), abs(after[dz])) if dz else last
                if change <= JUMP * h * slope + self.allowed(z, 0.0):
                    continue
                self.survey.looked[z] = self.survey.looked.get(z, 0) + 1
                if self.survey.looked[z] > MOST_JUMPS:
                    continue
                jump, at = self._largest_jump(z, step)
                is_free = not step.before or step.before[-1][0] < step.begin
                # nor at the start of the step, if no input is set
                if is_free and abs(jump) <= 0.5 * change:
                    jump, at = self._jump_at_begin(z, step) - before[z], step.begin
                told = f"event '{event.name}': '{z}' jumps by {jump:.6g} at t = {at:.9g} s, where no event is on"
                self.report.judge("M6", abs(jump) <= 0.5 * change, told)

    def _largest_jump(self, name: str, step: Found) -> tuple[float, float]:
        """The change of a variable in the shortest part of a step that has most of it, and where that is."""
        low, high = step.begin + self.short, step.time
        at_low, at_high = (self._after_step([name], step, t)[name] for t in (low, high))
        while high - low > self.short:
            middle = low + (high - low) / 2
            value = self._after_step([name], step, middle)[name]
            if abs(value - at_low) > abs(at_high - value):
                high, at_high = middle, value
            else:
                low, at_low = middle, value
        return at_high - at_low, high

    def _jump_at_begin(self, name: str, step: Found) -> float:
        """The value of a variable right after the begin of a step, with the inputs of the step before."""
        with self.at(replace(step, time=step.begin), self.quiet) as r:
            r.step(step.begin + self.short)
            return r.get(name)

    def _after_step(self, names: list[str], step: Found, end: float) -> Values:
        """Values of variables after a single step to a time."""
        with self.at(replace(step, time=step.begin), self.quiet) as r:
            r.set_inputs()
            r.step(end)
            return r.read(names)

    def _not_by_itself(
        self, events: list[Event], before: Values, after: Values, step: Found
    ) -> bool:
        """F15: indicators that a step was to bring below 0 have not jumped instead."""
        h, is_right = step.time - step.begin, True
        for event in events:
            pairs = [
                (z, dz) for z, dz in zip(event.indicators, event.derivatives, strict=True) if dz
            ]
            if len(pairs) < len(event.indicators) or any(
                before[z] + h * before[dz] > 0.0 for z, dz in pairs
            ):
                continue
            if self.is_off(event, before):
                continue
            allowed = {
                z: JUMP * h * max(abs(before[dz]), abs(after[dz])) + self.allowed(z, 0.0)
                for z, dz in pairs
            }
            jumped = [z for z, _ in pairs if abs(after[z] - before[z]) > allowed[z]]
            if jumped:  # or inputs that were set for the step have moved them
                soon = self._after_step(jumped, step, step.begin + self.short)
                jumped = [z for z in jumped if abs(after[z] - soon[z]) > allowed[z]]
            told = (
                f"event '{event.name}': {', '.join(jumped)} jumps between t = {step.begin:.6g} s and {step.time:.6g} s: "
                "it is executed without a trigger"
            )
            self.report.judge("F15", not jumped, told)
            is_right = is_right and not jumped
        return is_right

    def _located(
        self, event: Event, begin: float, end: float, before: tuple[tuple[float, Event], ...]
    ) -> Found:
        """The time at which an event is first on, by bisection of a step that is done again and again."""
        low, high = begin, end
        with self.at(Found(event, begin, begin, before), self.quiet) as r:
            state = r.binary.getFMUState() if self.fmu.saves_states else None
            while high - low > max(EXACT * self.h, 4e-16 * end):
                middle = low + (high - low) / 2
                if state is not None:
                    r.restore(state, begin)
                    r.go(middle)
                    values = r.read(event.indicators)
                else:
                    with self.at(Found(event, begin, begin, before), self.quiet) as again:
                        again.go(middle)
                        values = again.read(event.indicators)
                low, high = (low, middle) if is_down(event, values) else (middle, high)
            if state is not None:
                r.binary.freeFMUState(state)
        return Found(event, high, begin, before)

    def after(
        self, found: Found, policy: int | None, triggers: list[float], earlier: float = 0.0,
        payload: Mapping[str, float | str] | None = None, options: Options = USUAL,
    ) -> Values:  # fmt: skip
        """Values a short time after an event that was triggered at these short times, or not at all."""
        with self.at(found, policy, earlier, options, payload) as r:
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


class Unusable(Exception):
    """The FMU has a fault with which nothing else can be checked. It was reported."""


def is_down(event: Event, values: Values, in_any_mode: bool = False) -> bool:
    """Whether all indicators have come down to 0, and the event can occur."""
    can_occur = event.active is None or event.active not in values or values[event.active]
    if not (can_occur or in_any_mode):
        return False
    return all(values[z] <= 0.0 for z in event.indicators)
