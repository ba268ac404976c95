"""Events with a trigger: what an FMU shows before and after, with each policy. Requirements F2, F5, F8 to F17, M10."""

from __future__ import annotations

from typing import Any

from driven import NEAR, Driven, Found, Values
from fmu_under_test import Event
from simulated import EndlessStops, Run

BEFORE = 10.0
"""Short times before an event at which a step over it begins: inputs that are held hardly change until then."""


class TriggerChecks(Driven):
    """Checks of one event with a trigger."""

    def triggered(self, found: Found) -> None:
        """All that is to be seen of an event with a trigger."""
        event, report = found.event, self.report
        at = f"event '{event.name}' at t = {found.time:.9g} s"
        self.names = self._names_of(event)
        without = self._after(found, self.quiet, [])
        once = self._after(found, self.quiet, [0])
        changed = self.differing(once, without, 2 * self.short)
        report.judge("F9", bool(changed), f"{at}: a trigger changes no output and no indicator")
        if not changed:
            return
        if event.scope != "shared":
            told = f"{at}: it is still on after it was executed"
            report.judge("F2", not self.is_on(event, once), told)
        self._every_policy(found, once, at)
        self._right_limits(found, once, at)
        if not (self.fmu.event_mode or event.without_step):
            report.skip(
                "F10", "a second trigger at one instant: right limits cannot be read between"
            )
        elif self.fmu.version.startswith(("0.1.", "0.2.")):
            report.skip(
                "F10", f"a manifest of version {self.fmu.version} may ignore a second trigger"
            )
        else:
            self._once_more(found, at)
        self._counter(found, once, without, at)
        self._not_triggered(found, without, at)

    def _every_policy(self, found: Found, once: Values, at: str) -> None:
        """F9 with each policy, also a little before the event; F10 where the FMU has located it itself."""
        little = NEAR * self.h
        for name in ("execute", "announce", "ignore"):
            policy = self.fmu.policy_value(name)
            if policy is None:
                continue
            try:
                early = self._after(found, policy, [0], little)
                without = self._after(found, policy, [], little)
            except EndlessStops:  # it stops as long as the event is on: it has not executed it
                continue
            changed = self.differing(early, without, 2 * self.short)
            told = f"{at}, policy {name}: a trigger {little:.1g} s before it is not executed"
            self.report.judge("F9", bool(changed), told)
        policy = self.fmu.policy_value("announce")
        if policy is None:
            return
        with self.at(found, policy, BEFORE * self.short) as r:
            r.set_inputs()
            counter = self._counts(r, found.event)
            stop = r.step(found.time + self.h / 10)
            if not (stop.at_event or stop.early):
                return
            self._stopped(r, found, stop, counter, at)
            announced = not self.fmu.event_mode or self._triggered_in_event_mode(r, found.event)
            told = f"{at}: the Clock '{found.event.announce}' is not active in Event Mode"
            if found.event.announce and self.fmu.event_mode:
                self.report.judge("F5", announced, told)
            if not self.fmu.event_mode:
                r.set_inputs()
                r.trigger(found.event)
            r.go(stop.time + self.short)
            wrong = self.differing(r.read(self.names), once, 2 * NEAR * self.h)
            told = f"{at}: located by the FMU and triggered, {', '.join(wrong)} differ from those after a trigger alone"
            self.report.judge("F10", not wrong, told)

    def _triggered_in_event_mode(self, r: Run, event: Event) -> bool:
        return r.handle(event)

    def _counts(self, r: Run, event: Event) -> float | None:
        if event.announce is None or self.fmu.variables[event.announce].type == "Clock":
            return None
        return r.get(event.announce)

    def _stopped(self, r: Run, found: Found, stop: Any, counter: float | None, at: str) -> None:
        """F5: where an FMU stops, and what it announces."""
        told = f"{at}: the FMU stops at {stop.time:.9g} s"
        self.report.judge("F5", abs(stop.time - found.time) <= NEAR * self.h, told)
        with self.at(found, self.quiet) as left:
            expected = left.read(self.names)
        wrong = self.differing(r.read(self.names), expected, 2 * NEAR * self.h)
        told = f"{at}: where the FMU stops, {', '.join(wrong)} are no left limits"
        self.report.judge("F5", not wrong, told)
        if counter is not None:
            counted = self._counts(r, found.event)
            told = f"{at}: '{found.event.announce}' goes from {counter:g} to {counted:g}"
            self.report.judge("F5", counted == counter + 1, told)
        if self.fmu.event_mode and stop.early:
            told = f"{at}: eventHandlingNeeded is false after an early return"
            self.report.judge("F5", stop.at_event, told)

    def _right_limits(self, found: Found, once: Values, at: str) -> None:
        """F12 and M10 without Event Mode; F10 where an event is executed once more in the step after Event Mode."""
        event = found.event
        with self.at(found, self.quiet) as r:
            r.set_inputs()
            left = r.read(self.names)
            r.trigger(event)
            if not self.fmu.event_mode and not event.without_step:
                return
            right = r.read(self.names)
        later = self.differing(right, once, 2 * self.short)
        if self.fmu.event_mode:
            told = f"{at}: {', '.join(later)} change once more in the step after Event Mode"
            self.report.judge("F10", not later, told)
            return
        knowns = {event.trigger, *(name for _, name in event.payload)}
        listed = {
            n: (d := self.fmu.dependencies(n)) is None or not knowns.isdisjoint(d)
            for n in self.names
            if self.fmu.variables[n].causality == "output"
        }
        unlisted = [n for n in self.differing(right, left, 0.0) if not listed.get(n, True)]
        told = (
            f"{at}: {', '.join(unlisted)} change when the trigger or a payload is set, but ModelStructure does not list "
            "these as dependencies"
        )
        self.report.judge("M10", not unlisted, told)
        wrong = [n for n in later if listed.get(n)]
        unchanged = not self.differing(right, left, 0.0)
        told = f"{at}: {', '.join(wrong)} are no right limits as soon as it is triggered"
        if wrong and not unchanged:
            told += "; they change once more in the next step"
        self.report.judge("F12", not wrong, told)

    def _once_more(self, found: Found, at: str) -> None:
        """F10: a second trigger at the same instant does what it does a short time later."""
        second = self._after(found, self.quiet, [0, 0])
        later = self._after(found, self.quiet, [0, 1])
        wrong = self.differing(second, later, 3 * self.short)
        told = f"{at}: a second trigger at the same instant is not executed once as the first: {', '.join(wrong)} differ"
        self.report.judge("F10", not wrong, told)

    def _counter(self, found: Found, once: Values, without: Values, at: str) -> None:
        """F8: any change of a counter triggers, and the FMU state has what was seen last."""
        event = found.event
        if self.fmu.variables[event.trigger or ""].type == "Clock":
            return
        with self.at(found, self.quiet) as r:
            start = r.time
            r.set_inputs()
            r.trigger(event, by=5)
            r.go(start + self.short)
            wrong = self.differing(r.read(self.names), once, 2 * self.short)
        told = f"{at}: a counter that goes up by 5 does not trigger once as one that goes up by 1"
        self.report.judge("F8", not wrong, told)
        if not self.fmu.saves_states:
            self.report.skip(
                "F8", "whether the count is in the FMU state: the FMU cannot save its state"
            )
            return
        with self.at(found, self.quiet) as r:
            start, state = r.time, r.binary.getFMUState()
            counts = dict(r.counts)
            for triggers, expected in ((True, once), (True, once), (False, without)):
                r.binary.setFMUState(state)
                r.time, r.counts = start, dict(counts)
                r.set_inputs()
                if triggers:
                    r.trigger(event)
                r.go(start + self.short)
                wrong = self.differing(r.read(self.names), expected, 2 * self.short)
                what = "is not executed once" if triggers else "is executed without a trigger"
                told = f"{at}: after the FMU state was restored it {what}: the count seen last is no part of the state"
                self.report.judge("F8", not wrong, told)
            r.binary.freeFMUState(state)

    def _not_triggered(self, found: Found, without: Values, at: str) -> None:
        """F15: with announce and ignore it does not happen by itself; F17: with execute it does."""
        over = {}
        for name in ("execute", "announce", "ignore"):
            policy = self.fmu.policy_value(name)
            if policy is None:
                continue
            try:
                with self.at(found, policy, BEFORE * self.short) as r:
                    counter = self._counts(r, found.event)
                    r.go(found.time)
                    r.go(found.time + self.short)
                    over[name] = r.read(self.names)
                    counted = self._counts(r, found.event)
            except EndlessStops:  # likewise
                continue
            if name == "ignore":
                told = f"{at}, policy ignore: '{found.event.announce}' announces it"
                self.report.judge("F15", counted == counter, told)
            if name != "execute":
                wrong = self.differing(over[name], without, BEFORE * self.short)
                told = f"{at}, policy {name}: it is executed without a trigger: {', '.join(wrong)} jump"
                self.report.judge("F15", not wrong, told)
        if "execute" in over and self.quiet is not None:
            changed = self.differing(over["execute"], without, BEFORE * self.short)
            told = f"{at}: with the start value of the policy the FMU does not execute it"
            self.report.judge("F17", bool(changed), told)
            told_all = all(name in self.experiment.payload for _, name in found.event.payload)
            if told_all and changed and not found.before:
                once = self._after(found, self.quiet, [0])
                wrong = self.differing(over["execute"], once, BEFORE * self.short)
                told = f"{at}: a trigger does not do once what the FMU does by itself: {', '.join(wrong)} differ"
                self.report.judge("F10", not wrong, told)
