"""Events with a trigger: what an FMU shows before and after. Requirements F2, F8, F9, F10, F12, M10."""

from __future__ import annotations

from driven import NEAR, Driven, Found, Values
from fmu_under_test import EndlessStops, Event
from simulated import Options

FAR = 3.0
"""Largest absolute values: so far from its usual value is a payload that nobody expects."""
JUMPS = (5, -3)
"""Changes of a counter that trigger once."""


class TriggerChecks(Driven):
    """Checks of the triggers of one event."""

    def executed(self, found: Found, at: str) -> tuple[Values, Values] | None:
        """F9, F2: what an event changes, without and with a trigger; None if that is nothing."""
        event, report = found.event, self.report
        self.compared = set(self._names_of(event))
        without = self.after(found, self.quiet, [])
        once = self.after(found, self.quiet, [0])
        changed = self.differing(once, without, 2 * self.short)
        report.judge("F9", bool(changed), f"{at}: a trigger changes no output and no indicator")
        if not changed:
            return None
        if event.scope != "shared":
            told = f"{at}: it is still on after it was executed. If it cannot occur then, it must be off (F20)"
            is_off = not self.is_on(event, once)
            report.judge("F2", is_off, told)
            if event.active and not is_off:
                report.skip("F20", f"whether '{event.active}' is right after it, see F2")
        return without, once

    def triggers(self, found: Found, without: Values, once: Values, at: str) -> None:
        """All that is to be seen of the triggers of an event."""
        self._early(found, at)
        self._payloads(found, without, at)
        self._right_limits(found, once, at)
        self._once_more(found, without, once, at)
        self._counter(found, once, without, at)
        self._counter_in_event_mode(found, once, at)

    def _early(self, found: Found, at: str) -> None:
        """F9 with each policy, before the event."""
        for earlier in (NEAR * self.h, self.h):
            if not found.free > earlier + self.short:
                continue
            seen: list[Values] = []
            for name in ("ignore", "announce"):
                policy = self.fmu.policy_value(name)
                if policy is None:
                    continue
                try:
                    early = self.after(found, policy, [0], earlier)
                    without = self.after(found, policy, [], earlier)
                except EndlessStops:  # it stops as long as the event is on: it has not executed it
                    continue
                changed = self.differing(early, without, 2 * self.short)
                told = f"{at}, policy {name}: a trigger {earlier:.1g} s before it is not executed"
                self.report.judge("F9", bool(changed), told)
                seen = seen or ([early, without] if changed else [])
            execute = self.fmu.policy_value("execute")
            if seen and execute is not None:
                self._early_by_execute(found, execute, earlier, seen, at)

    def _early_by_execute(
        self, found: Found, policy: int, earlier: float, quiet: list[Values], at: str
    ) -> None:
        """F9 with the policy execute, where the FMU executes nothing else by itself after the trigger."""
        expected, without = quiet
        if any(self.is_on(e, expected) or self.is_on(e, without) for e in self.fmu.events):
            return
        early = self.after(found, policy, [0], earlier)
        is_right = not self.differing(early, expected, 2 * self.short)
        told = f"{at}, policy execute: a trigger {earlier:.1g} s before it is not executed"
        if not is_right and not self.differing(early, without, 2 * self.short):
            self.report.fail("F9", told)

    def _payloads(self, found: Found, without: Values, at: str) -> None:
        """F9: a trigger with another payload does something else."""
        for _, name in found.event.payload:
            value = self._payload_of(found, name)
            results = [
                self.after(found, self.quiet, [0], payload={name: v}) for v in _others(value)
            ]
            changed = any(self.differing(other, results[0], 0.0) for other in results[1:])
            told = f"{at}: the payload '{name}' has no effect on what a trigger does"
            self.report.judge("F9", changed, told)
            if changed and found.event.scope == "shared":
                self._any_payload(found, name, without, at)

    def _any_payload(self, found: Found, name: str, without: Values, at: str) -> None:
        """F9: a payload with which members part or meet as fast as never before does something too."""
        value = self._payload_of(found, name)
        [output] = [o for o, given in found.event.payload if given == name][:1]
        far = FAR * max(self.survey.size.get(output, 0.0), abs(value), 1e-3)
        for given in (value - far, value + far):
            result = self.after(found, self.quiet, [0], payload={name: given})
            told = f"{at}: with the payload '{name}' = {given:.6g} a trigger changes nothing: it is not executed"
            is_right = bool(self.differing(result, without, 2 * self.short))
            self.report.judge("F9", is_right, told)

    def _payload_of(self, found: Found, name: str) -> float:
        """The value that a payload has in the experiment."""
        value = self.experiment.payload.get(name)
        if not isinstance(value, str):
            return float(self.fmu.variables[name].start or 0.0) if value is None else value
        with self.at(found, self.quiet) as r:
            return r.get(value)

    def _right_limits(self, found: Found, once: Values, at: str) -> None:
        """F12 and M10 without Event Mode; F10 where an event is executed once more in the step after Event Mode."""
        event = found.event
        if not self.fmu.event_mode and not event.without_step:
            return
        with self.at(found, self.quiet) as r:
            r.set_inputs()
            if not self.fmu.event_mode:
                r.set_payload(event)
            left = r.read(self.names)
            r.trigger(event)
            right = r.read(self.names)
        later = self.differing(right, once, 2 * self.short)
        if self.fmu.event_mode:
            told = f"{at}: {', '.join(later)} change once more in the step after Event Mode"
            self.report.judge("F10", not later, told)
            self._clock_as_dependency(found, at)
            return
        self._listed(event.trigger or "", self.differing(right, left, 0.0), at)
        for _, name in event.payload:
            for value in _others(self._payload_of(found, name))[1:]:
                with self.at(found, self.quiet, payload={name: value}) as r:
                    r.set_inputs()
                    r.trigger(event)
                    self._listed(name, self.differing(r.read(self.names), right, 0.0), at)
        knowns = {event.trigger, *(name for _, name in event.payload)}
        wrong = [n for n in later if (d := self._depends_on(n)) is None or not knowns.isdisjoint(d)]
        wrong = [n for n in wrong if self.fmu.variables[n].causality == "output"]
        told = f"{at}: {', '.join(wrong)} are no right limits as soon as it is triggered"
        if wrong and self.differing(right, left, 0.0):
            told += "; they change once more in the next step"
        self.report.judge("F12", not wrong, told)

    def _depends_on(self, output: str) -> list[str] | None:
        return self.fmu.dependencies(output)

    def _listed(self, known: str, changed: list[str], at: str) -> None:
        """M10: outputs that a trigger or a payload changes list it as a dependency."""
        unlisted = [
            n
            for n in changed
            if self.fmu.variables[n].causality == "output"
            and (d := self.fmu.dependencies(n)) is not None
            and known not in d
        ]
        told = f"{at}: {', '.join(unlisted)} change when '{known}' is set, but ModelStructure does not list this dependency"
        self.report.judge("M10", not unlisted, told)

    def _clock_as_dependency(self, found: Found, at: str) -> None:
        """M10: outputs that a Clock changes before fmi3UpdateDiscreteStates list it."""
        if not self.fmu.is_clock(found.event.trigger):
            return
        with self.at(found, self.quiet) as r:
            r.binary.enterEventMode()
            left = r.read(self.names)
            r.set(found.event.trigger or "", 1)
            changed = self.differing(r.read(self.names), left, 0.0)
            r.update()
            r.binary.enterStepMode()
        if changed:
            self._listed(found.event.trigger or "", changed, at)

    def _once_more(self, found: Found, without: Values, once: Values, at: str) -> None:
        """F10: a second trigger at the same instant does what it does a short time later."""
        event, what = found.event, "F10"
        if not (self.fmu.event_mode or event.without_step):
            why = "a second trigger at one instant: right limits cannot be read between"
        elif self.fmu.version.startswith(("0.1.", "0.2.")):
            why = f"a manifest of version {self.fmu.version} may ignore a second trigger"
        elif event.active and not once[event.active]:
            why = f"a second trigger at one instant: event '{event.name}' is off after it"
        else:
            second = self.after(found, self.quiet, [0, 0])
            later = self.after(found, self.quiet, [0, 1])
            wrong = self.differing(second, later, 3 * self.short)
            told = f"{at}: a second trigger at the same instant is not executed as the first: {', '.join(wrong)} differ"
            self.report.judge(what, not wrong, told)
            if event.scope != "shared" and not self.differing(second, once, 3 * self.short):
                self._refused(found, without, once, at)
            return
        self.report.skip(what, why)

    def _refused(self, found: Found, without: Values, once: Values, at: str) -> None:
        """F10: a second trigger that changes nothing changes nothing a step later either, though outputs have moved."""
        steps = self.h / self.short
        with self.at(found, self.quiet) as r:
            r.set_inputs()
            r.trigger(found.event)
            r.go(found.time + self.h)
            r.go(r.time + self.short)
            moved = r.read(self.names)
        if any(self.is_on(e, moved) for e in self.fmu.events) or self.is_off(found.event, moved):
            return
        jumped = {n: once[n] for n in self.differing(once, without, 2 * self.short)}
        later = self.after(found, self.quiet, [0, steps])
        if self.differing(jumped, {n: moved[n] for n in jumped}, 0.0):
            told = (
                f"{at}: a second trigger changes nothing, neither at the same instant nor {self.h:g} s later, with an "
                "indicator above zero: the FMU refuses it, or its reset changes nothing then"
            )
            self.report.judge("F10", bool(self.differing(later, moved, 2 * self.short)), told)

    def _counter(self, found: Found, once: Values, without: Values, at: str) -> None:
        """F8: any change of a counter triggers, and the FMU state has what was seen last."""
        event = found.event
        if self.fmu.is_clock(event.trigger):
            return
        for by in JUMPS:
            with self.at(found, self.quiet) as r:
                start = r.time
                r.set_inputs()
                r.trigger(event, by=by)
                r.go(start + self.short)
                wrong = self.differing(r.read(self.names), once, 2 * self.short)
            told = f"{at}: a counter that changes by {by} does not trigger once as one that goes up by 1"
            self.report.judge("F8", not wrong, told)
        if not self.fmu.saves_states:
            why = "whether the count is in the FMU state: the FMU cannot save its state"
            self.report.skip("F8", why)
            return
        with self.at(found, self.quiet) as r:
            start, state = r.time, r.binary.getFMUState()
            counts = dict(r.counts)
            for triggers, expected in ((True, once), (True, once), (False, without)):
                r.restore(state, start)
                r.counts = dict(counts)
                r.set_inputs()
                if triggers:
                    r.trigger(event)
                r.go(start + self.short)
                wrong = self.differing(r.read(self.names), expected, 2 * self.short)
                what = "is not executed once" if triggers else "is executed without a trigger"
                told = f"{at}: after the FMU state was restored it {what}: the count seen last is no part of the state"
                self.report.judge("F8", not wrong, told)
            r.binary.freeFMUState(state)

    def _counter_in_event_mode(self, found: Found, once: Values, at: str) -> None:
        """F8: a counter triggers in Event Mode too."""
        is_counter = not self.fmu.is_clock(found.event.trigger)
        if not is_counter or self.fmu.event_mode or not self.fmu.has_event_mode:
            return
        options = Options(event_mode=True)
        second = self.after(found, self.quiet, [0], options=options)
        wrong = self.differing(second, once, 2 * self.short)
        told = f"{at}: a counter that is set in Event Mode does not trigger once: {', '.join(wrong)} differ"
        self.report.judge("F8", not wrong, told)

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


def _others(value: float) -> tuple[float, ...]:
    """A payload, a larger and a smaller one."""
    more = 0.5 * max(abs(value), 1.0)
    return value, value + more, value - more
