"""What an FMU shows without a trigger: indicators, modes, a forecast, its own events, jumps of inputs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from driven import SLOPE, Driven, Found, Values
from fmu_under_test import Event, StopsUntilTriggered
from simulated import Options, Run, run

LATE = 0.02
"""Steps: how late an event may be that the FMU executes itself at the start of a step."""
DIRECT = 0.5
"""Part of an effect after ten times the time: what has as much of it at once is direct."""


class ContinuousChecks(Driven):
    """Checks that need no trigger."""

    def states(self) -> None:
        """F17: setting an FMU state restores the outputs; F8: nothing is triggered by the start value of a counter."""
        observed = Options(observed=self.names)
        with run(self.fmu, self.experiment, self.quiet, options=observed) as r:
            before = r.read(self.names)
            self.finite(before, 0.0)
            self.survey.add(before, before, self.h)
            for event in self.fmu.events:
                self._not_in_initialization(event, r.initial, before)
            state = r.binary.getFMUState() if self.fmu.saves_states else None
            r.go(self.short)
            after = r.read(self.names)
            slopes = {dz: abs(before[dz]) for e in self.fmu.events for dz in e.derivatives if dz}
            for event in self.fmu.events:
                if event.trigger is None or self.fmu.is_clock(event.trigger):
                    continue
                jumped = [
                    z
                    for z, dz in zip(event.indicators, event.derivatives, strict=True)
                    if dz
                    and abs(after[z] - before[z])
                    > self.allowed(z, 0.0) + 10 * self.short * slopes[dz]
                ]
                told = (
                    f"event '{event.name}': {', '.join(jumped)} jumps in the first step without a trigger. The value of "
                    f"'{event.trigger}' seen last does not start with its start value"
                )
                self.report.judge("F8", not jumped or self.is_on(event, before), told)
            if state is None:
                return
            r.go_in_steps(5 * self.h)
            r.restore(state, 0.0)
            r.binary.freeFMUState(state)
            wrong = self.differing(r.read(self.names), before, 0.0)
        if wrong:
            told = f"setting an FMU state does not restore {', '.join(wrong)}. States are not used in other checks"
            self.report.fail("F17", told)
            self.fmu.saves_states = False

    def dependencies(self) -> None:
        """M14: inputs on which indicators depend directly are listed; F17 for shared events, because FMI says so."""
        signals = {s for e in self.fmu.events for s in (e.trigger, *(n for _, n in e.payload))}
        given = [
            v.name
            for v in self.fmu.variables.values()
            if v.causality == "input" and v.variability == "continuous" and not v.dimensions
            and v.name not in signals
        ]  # fmt: skip
        for event in self.fmu.events:
            unlisted = {}
            for z in event.indicators:
                listed = self.fmu.dependencies(z)
                if listed is not None:
                    unlisted[z] = [n for n in given if n not in listed]
            for name in sorted({n for names in unlisted.values() for n in names}):
                told = [z for z in unlisted if name in unlisted[z]]
                wrong = self._moved_at_once(told, name)
                what = f"event '{event.name}': {', '.join(wrong)} depends directly on '{name}'"
                why = (
                    "is private" if event.scope == "private" else "ModelStructure does not list it"
                )
                requirement = "F17" if event.scope == "shared" else "M14"
                self.report.judge(requirement, not wrong, f"{what}, but {why}")

    def _moved_at_once(self, names: list[str], given: str) -> list[str]:
        """Variables that an input changes after a short step as much as after a ten times longer one."""
        effects = []
        for end in (self.short, 10 * self.short):
            values = []
            for more in (0.0, 1e-3):
                with run(self.fmu, self.experiment, self.quiet) as r:
                    r.go_in_steps(self.h)
                    r.set_inputs()
                    value = r.get(given)
                    r.set(given, value + more * max(abs(value), 1.0))
                    r.go(r.time + end, inputs=False)
                    values.append(r.read(names))
            effects.append({n: abs(values[1][n] - values[0][n]) for n in names})
        soon, late = effects
        return [n for n in names if soon[n] > max(DIRECT * late[n], 1e-9 * self.survey.size[n])]

    def indicators(self) -> None:
        """F1, F18, M6: values and derivatives of indicators, and reading them."""
        end = min([self.experiment.stop, *(f.time for f in self.survey.found.values())])
        for k in range(10):
            self._slopes(end * (k + 0.5) / 11)
        ends: list[Values] = []
        for times in (0, 3):
            with run(self.fmu, self.experiment, self.quiet) as r:
                while r.time < end - self.h:
                    r.go_in_steps(r.time + self.h)
                    for _ in range(times):
                        r.read(self.names)
                ends.append(r.read(self.names))
                counts = [e.announce for e in self.fmu.events if e.announce]
                shown = [n for n in (*self.names, *counts) if not self.fmu.is_clock(n)]
                first, second = r.read(shown), r.read(shown)
                wrong = [n for n in shown if first[n] != second[n]]
                told = f"'{', '.join(wrong)}' is another value when it is read once more"
                self.report.judge("F1", not wrong, told)
        changed = [n for n in self.names if ends[0][n] != ends[1][n]]
        self.report.judge("F1", not changed, f"reading outputs changes {', '.join(changed)}")

    def _at_end(self, start: float, *ends: float, held: bool = False) -> Values | None:
        """Values after steps from `start` to these times; inputs are set before each, or keep their first values.

        None if the FMU stops at an event.
        """
        with run(self.fmu, self.experiment, self.quiet) as r:
            r.go_in_steps(start)
            r.set_inputs()
            for number, end in enumerate(ends):
                if number and held:
                    r.set_inputs(start)
                elif number:
                    r.set_inputs()
                if r.step(end).at_event:
                    return None
            return r.read(self.names)

    def _slopes(self, time: float) -> None:
        """Compare indicators and derivatives shortly after a point with those a thousandth of a step later."""
        h = 1e-3 * self.h
        soon, after = self._at_end(time, time + self.short), self._at_end(time, time + h)
        split = [
            self._at_end(time, time + h - self.short, time + h, held=held) for held in (False, True)
        ]
        if soon is None or after is None or None in split:
            return
        for event in self.fmu.events:
            for z, dz in zip(event.indicators, event.derivatives, strict=True):
                where = f"event '{event.name}': '{z}' at t = {time:.6g} s"
                jump = min(abs(other[z] - after[z]) for other in split if other is not None)
                size = self.survey.size.get(z, 0.0)
                moved = h * self.survey.rate.get(z, 0.0)
                told = f"{where} after one step is {after[z]:.9g}, but another value after two steps to the same time"
                is_right = jump <= 0.1 * moved + 1e-9 * size
                self.report.judge("F1", is_right, told)
                if dz is None or not is_right:
                    continue
                scale = max(abs(after[dz]), abs(soon[dz]), self.survey.rate.get(z, 0.0))
                allowed = SLOPE * scale + 1e-13 * size / h
                # in one step, or with the inputs set anew: an FMU may hold an input of which it knows the derivative
                quotients = [(v[z] - soon[z]) / (h - self.short) for v in (after, split[0]) if v]
                middle = (after[dz] + soon[dz]) / 2
                told = f"{where} changes by {quotients[0]:.6g} per s, but '{dz}' is {middle:.6g}"
                if abs(quotients[0] + middle) <= allowed:
                    told += ". One of them has the wrong sign: an indicator is positive before its event, and falls to 0"
                is_right = any(abs(quotient - middle) <= allowed for quotient in quotients)
                self.report.judge("F18", is_right, told)

    def modes(self) -> None:
        """F20: what says whether an event can occur changes at events only; no event is executed that is off."""
        names = [e.active for e in self.fmu.events if e.active]
        if not names:
            return
        for name, step in self.survey.off.items():
            wrong = self._executed_though_off(step)
            told = (
                f"event '{name}': '{step.event.active}' is false where its indicators reach 0, at t = {step.time:.9g} s, "
                f"but the FMU executes it by itself: {', '.join(wrong)} differ"
            )
            self.report.judge("F20", not wrong, told)
        if any(e.trigger is None for e in self.fmu.events):
            self.report.skip(
                "F20", "the FMU executes events by itself, at times that are not known"
            )
            return
        with run(self.fmu, self.experiment, self.quiet) as r:
            before = r.read(names)
            end = min([self.experiment.stop, *(f.time for f in self.survey.found.values())])
            while r.time < end - self.h:
                r.go_in_steps(r.time + self.h)
                now = r.read(names)
                changed = [n for n in names if now[n] != before[n]]
                told = f"{', '.join(changed)} changes before t = {r.time:.6g} s, where no event has occurred"
                self.report.judge("F20", not changed, told)
                before = now

    def _executed_though_off(self, step: Found) -> list[str]:
        """What differs two steps after a point if the FMU executes its events itself, and did not before."""
        execute = self.fmu.policy_value("execute")
        if execute is None or self.quiet is None:
            return []
        shown: list[tuple[Values, Values]] = []
        for policy in (execute, self.quiet):
            with self.at(replace(step, time=step.begin), policy) as r:
                before = r.read(self.names)
                r.go_in_steps(step.time + 2 * self.h)
                shown.append((before, r.read(self.names)))
        (before, after), (quiet_before, quiet_after) = shown
        if self.differing(before, quiet_before, self.short):
            return []
        if any(self.is_on(e, quiet_after) for e in self.fmu.events):
            return []
        return self.differing(after, quiet_after, self.short)

    def forecast(self) -> None:
        """F13: the forecast is a number, and belongs to the state."""
        name = self.fmu.look_ahead
        if not name:
            return
        with run(self.fmu, self.experiment, None) as r:
            for k in range(1, 50):
                r.go_in_steps(k * self.h)
                value = r.get(name)
                self.report.judge("F13", value == value, f"'{name}' is NaN at t = {r.time:.6g} s")
            if self.fmu.saves_states:
                state = r.binary.getFMUState()
                saved, time = r.get(name), r.time
                r.go_in_steps(r.time + self.h)
                r.binary.setFMUState(state)
                r.binary.freeFMUState(state)
                told = f"'{name}' is {r.get(name):.6g} after the state of t = {time:.6g} s was set, it was {saved:.6g}"
                self.report.judge("F13", r.get(name) == saved, told)

    def own(self, event: Event) -> bool:
        """F4 and F2 of an event that the FMU executes itself. Whether it was reached."""
        reached, was_on = False, False
        with run(self.fmu, self.experiment, None) as r:
            before = r.read(self.names)
            while r.time < self.experiment.stop - self.short:
                begin = r.time
                stops = self._grid_step(r)
                r.set_inputs()
                after = r.read(self.names)
                self.finite(after, r.time)
                self.survey.add(before, after, r.time - begin)
                now_on = self.is_on(event, after)
                expected = [
                    before[z] + (r.time - begin) * self.survey.rate[z] * -1
                    for z in event.indicators
                ]
                reached = (
                    reached
                    or bool(stops)
                    or now_on
                    or _passes(event, before, r.time - begin, expected)
                )
                told = f"event '{event.name}' is on at t = {begin:.6g} s and at {r.time:.6g} s: it is not executed"
                if event.scope == "shared":
                    self.report.skip("F4", f"event '{event.name}' is shared, and has no trigger")
                else:
                    self.report.judge("F4", not (was_on and now_on), told)
                before, was_on = after, now_on
        return reached

    def _grid_step(self, r: Run) -> list[Any]:
        h = self.h
        return r.go((round(r.time / h) + 1) * h)

    def jump(self) -> None:
        """F19: an event that an input makes occur at a communication point; F15: not in Initialization Mode."""
        jump = self.experiment.jump
        if jump is None:
            if any(e.scope == "coupled" for e in self.fmu.events):
                self.report.skip("F19", "the experiment has no 'jump'")
            return
        [event] = [e for e in self.fmu.events if e.name == jump["event"]]
        at = f"event '{event.name}', which an input makes occur at t = {jump['at']:g} s"
        with suppress(StopsUntilTriggered):  # that it stops shows that the event is on
            if self.quiet is not None and not self.is_on(event, self._jumped(self.quiet, jump)):
                self.report.skip("F19", f"{at}: it is not on after the jump")
                return
        told = f"{at}, is not executed at the start of the next step"
        is_on = self.is_on(event, self._jumped(None, jump))
        self.report.judge("F19", not is_on, told)
        if not is_on and event.trigger and event.scope != "shared":
            self._executed_at_start(event, jump, at)
        if self.fmu.event_mode:
            told = f"{at}, in Event Mode: it is not executed in fmi3UpdateDiscreteStates"
            is_on = self.is_on(event, self._jumped(None, jump, in_event_mode=True))
            self.report.judge("F19", not is_on, told)
        announce = self.fmu.policy_value("announce")
        if announce is not None and self.stops_at_events:
            self._stops_at_once(event, announce, jump, at)
        options = Options(inputs=jump["set"], observed=self.names)
        with run(self.fmu, self.experiment, self.quiet, options=options) as r:
            self._not_in_initialization(event, r.initial, r.read(self.names))

    def _jumped(self, policy: int | None, jump: Any, in_event_mode: bool = False) -> Values:
        """Values a short time after the jump, or right after Event Mode in which inputs were set."""
        with self.at(self.to(jump["at"]), policy) as r:
            if in_event_mode:
                r.binary.enterEventMode()
            for name, value in jump["set"].items():
                r.set(name, value)
            if in_event_mode:
                r.update()
                values = r.read(self.names)
                r.binary.enterStepMode()
                return values
            r.go(r.time + self.short, inputs=False)
            return r.read(self.names)

    def _executed_at_start(self, event: Event, jump: Any, at: str) -> None:
        """F19: in a longer step too the FMU executes it at the start, as if it were triggered there."""
        results: list[Values] = []
        for policy in (self.quiet, None):
            with self.at(self.to(jump["at"]), policy) as r:
                for name, value in jump["set"].items():
                    r.set(name, value)
                if policy is not None:
                    r.trigger(event)
                r.go(r.time + self.h, inputs=False)
                results.append(r.read(self.names))
        triggered, itself = results
        if self.quiet is None or any(self.is_on(e, triggered) for e in self.fmu.events):
            return
        wrong = self.differing(itself, triggered, LATE * self.h)
        told = f"{at}: in a step of {self.h:g} s the FMU does not execute it at the start: {', '.join(wrong)} differ"
        self.report.judge("F19", not wrong, told)

    def _stops_at_once(self, event: Event, announce: int, jump: Any, at: str) -> None:
        """F19: an FMU that stops at events stops with a step of length zero."""
        with self.at(self.to(jump["at"]), announce) as r:
            start = r.time
            for name, value in jump["set"].items():
                r.set(name, value)
            stop = r.step(start + self.short)
        told = f"{at}, policy announce: the FMU does not stop with a step of length zero"
        is_right = (stop.at_event or stop.early) and stop.time - start < 0.1 * self.short
        self.report.judge("F19", is_right, told)
        if self.fmu.event_mode and stop.early:
            told = f"{at}: eventHandlingNeeded is false after a step of length zero"
            self.report.judge("F19", stop.at_event, told)

    def _not_in_initialization(self, event: Event, before: Values, after: Values) -> None:
        """F15: an event that is on in Initialization Mode is not executed there."""
        if self.quiet is not None and event.trigger and self.is_on(event, before):
            wrong = self.differing(after, before, 0.0)
            told = f"event '{event.name}' is on in Initialization Mode, and is executed there: {', '.join(wrong)} change"
            self.report.judge("F15", not wrong, told)


def _passes(event: Event, before: Values, h: float, expected: list[float]) -> bool:
    """Whether an event lies in a step, by the derivatives at its start."""
    for z, dz, slowest in zip(event.indicators, event.derivatives, expected, strict=True):
        foreseen = before[z] + h * before[dz] if dz else slowest
        if foreseen > 0.0:
            return False
    return True
