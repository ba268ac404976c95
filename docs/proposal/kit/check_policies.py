"""What an FMU does at its events by itself, with each policy. Requirements F1, F5, F10, F15, F17, M11."""

from __future__ import annotations

from driven import NEAR, Driven, Found, Values
from fmu_under_test import Event, StopsUntilTriggered
from simulated import Options, Run, Stop, run

BEFORE = 10.0
"""Short times before an event at which a step over it begins: inputs that are held hardly change until then."""
INSTANT = 0.02
"""Steps: how late an event may be that an FMU executes itself inside a step."""


class PolicyChecks(Driven):
    """Checks of one event that has a trigger, where the importer does not trigger it."""

    def policies(self, found: Found, without: Values, once: Values, at: str) -> None:
        """All that is to be seen of the policies."""
        self._start_value()
        if not found.at_start and found.event.announce:
            self._announced(found, once, at)
            self._quiet_clock(found, at)
        self._not_triggered(found, without, once, at)

    def _start_value(self) -> None:
        """M11: the FMU starts with the value of execute."""
        execute = self.fmu.policy_value("execute")
        if self.fmu.policy and execute is not None:
            name = self.fmu.policy["parameter"]
            with run(self.fmu, self.experiment, None) as r:
                value = r.get(name)
            told = f"'{name}' is {value:g} in a new instance, but execute is {execute}"
            self.report.judge("M11", value == execute, told)

    def _announced(self, found: Found, once: Values, at: str) -> None:
        """F5 where the FMU stops at an event with the policy announce, and F10 where it is then triggered."""
        policy, event = self.fmu.policy_value("announce"), found.event
        if policy is None:
            return
        with self.at(found, policy, BEFORE * self.short) as r:
            r.set_inputs()
            counter = self._count(r, event)
            stop = r.step(found.time + self.h / 10)
            if not (stop.at_event or stop.early):
                why = f"with the policy announce the FMU does not stop at event '{event.name}'"
                self.report.skip("F5", why)
                return
            self.stops_at_events = True
            self._stopped(r, found, stop, counter, at)
            if self.fmu.event_mode:
                self._triggered_where_it_stops(r, event, at)
            else:
                r.set_inputs()
                r.trigger(event)
            r.go(stop.time + self.short)
            wrong = self.differing(r.read(self.names), once, 2 * NEAR * self.h)
            told = f"{at}: located by the FMU and triggered, {', '.join(wrong)} differ from those after a trigger alone"
            self.report.judge("F10", not wrong, told)

    def _triggered_where_it_stops(self, r: Run, event: Event, at: str) -> None:
        announced = r.handle(event)
        if not self.fmu.is_clock(event.announce):
            return
        told = f"{at}: the Clock '{event.announce}' is not active in Event Mode"
        self.report.judge("F5", announced, told)

    def _quiet_clock(self, found: Found, at: str) -> None:
        """F5: a Clock that announces is not active where no event is, nor after the discrete states were updated."""
        policy, name = self.fmu.policy_value("announce"), found.event.announce or ""
        if policy is None or not self.fmu.event_mode or not self.fmu.is_clock(name):
            return
        earlier = min(self.h, 0.5 * found.free)
        with self.at(found, policy, earlier) as r:
            r.binary.enterEventMode()
            told = f"{at}: the Clock '{name}' is active {earlier:.3g} s before it"
            self.report.judge("F5", not r.get(name), told)
            r.update()
            r.binary.enterStepMode()
        with self.at(found, policy, BEFORE * self.short) as r:
            r.set_inputs()
            if r.step(found.time + self.h / 10).at_event:
                r.binary.enterEventMode()
                r.update()
                told = f"{at}: the Clock '{name}' is active after fmi3UpdateDiscreteStates"
                self.report.judge("F5", not r.get(name), told)
                r.binary.enterStepMode()

    def _count(self, r: Run, event: Event) -> float | None:
        """The present value of a counter that announces."""
        if event.announce is None or self.fmu.is_clock(event.announce):
            return None
        return r.get(event.announce)

    def _stopped(self, r: Run, found: Found, stop: Stop, counter: float | None, at: str) -> None:
        """F5: where an FMU stops, and what it announces."""
        told = f"{at}: the FMU stops at {stop.time:.9g} s"
        self.report.judge("F5", abs(stop.time - found.time) <= NEAR * self.h, told)
        with self.at(found, self.quiet, BEFORE * self.short) as left:
            start = left.time
            left.set_inputs()  # those that the FMU has where it stops
            left.go(max(stop.time, start + self.short), inputs=False)
            expected = left.read(self.names)
        if self.fmu.event_mode and stop.early:
            told = f"{at}: eventHandlingNeeded is false after an early return"
            self.report.judge("F5", stop.at_event, told)
        if not (self.fmu.is_fmi3 or stop.time > start):
            return  # FMI 2.0: the state before the step of length zero is set again, and outputs are those before it
        wrong = self.differing(r.read(self.names), expected, 2 * NEAR * self.h)
        told = f"{at}: where the FMU stops, {', '.join(wrong)} are no left limits"
        self.report.judge("F5", not wrong, told)
        if counter is not None:
            counted = self._count(r, found.event)
            told = f"{at}: '{found.event.announce}' goes from {counter:g} to {counted:g}"
            self.report.judge("F5", counted == counter + 1, told)

    def _not_triggered(self, found: Found, without: Values, once: Values, at: str) -> None:
        """F15: with announce and ignore it does not happen by itself; F17: without a policy it does."""
        runs = [("announce", Options()), ("ignore", Options())]
        if self.fmu.is_fmi3 and self.fmu.can.mightReturnEarlyFromDoStep:
            runs.append(("announce", Options(early_return=False)))
        for name, options in runs:
            policy = self.fmu.policy_value(name)
            if policy is None:
                continue
            try:
                _, after, counts = self._over(found, policy, options)
            except StopsUntilTriggered:  # it has not executed it
                continue
            what = f"{at}, policy {name}" + ("" if options.early_return else ", no early return")
            if name == "ignore":
                told = f"{what}: '{found.event.announce}' announces it"
                self.report.judge("F15", counts[0] == counts[1], told)
            wrong = self.differing(after, without, BEFORE * self.short)
            told = f"{what}: it is executed without a trigger: {', '.join(wrong)} jump"
            self.report.judge("F15", not wrong, told)
        if self.quiet is not None and not found.at_start:
            self._by_itself(found, without, once, at)

    def _over(
        self, found: Found, policy: int | None, options: Options
    ) -> tuple[Values, Values, list[float | None]]:
        """Values a little before an event and a short time after it, and counts, if nobody triggers it."""
        with self.at(found, policy, BEFORE * self.short, options) as r:
            before, counts = r.read(self.names), [self._count(r, found.event)]
            r.go(found.time)
            r.go(found.time + self.short)
            return before, r.read(self.names), [*counts, self._count(r, found.event)]

    def _by_itself(self, found: Found, without: Values, once: Values, at: str) -> None:
        """F17, F5, F1, F10: what an FMU does whose policy nobody has set."""
        before, after, (counted, then) = self._over(found, None, Options())
        own_copies = any(event.scope == "shared" for _, event in found.before)
        with self.at(found, self.quiet, BEFORE * self.short) as r:
            early = self.differing(before, r.read(self.names), self.short)
        at_start = any(time == 0.0 for time, _ in found.before)
        if early and (own_copies or at_start or "F17" in self.report.broken):
            return  # its own copies may know less than payloads, and it need not execute what is on at the start
        told = (
            f"{at}: the FMU itself has executed it before its indicators reach 0, by {', '.join(early)}: they are not "
            "those of the present point"
        )
        self.report.judge("F1", not early, told)
        if early:
            return
        changed = self.differing(after, without, BEFORE * self.short)
        told = f"{at}: with the start value of the policy the FMU does not execute it"
        self.report.judge("F17", bool(changed), told)
        if not changed:
            return
        if counted is not None:
            told = f"{at}: the FMU has executed it, and '{found.event.announce}' goes from {counted:g} to {then:g}"
            self.report.judge("F5", then == counted + 1, told)
        told_all = all(
            isinstance(self.experiment.payload.get(n), str) for _, n in found.event.payload
        )
        if own_copies or (found.event.scope == "shared" and not told_all):
            return  # its own copy of the event may know less than a payload
        wrong = self.differing(after, once, BEFORE * self.short)
        told = f"{at}: a trigger does not do once what the FMU does by itself: {', '.join(wrong)} differ"
        self.report.judge("F10", not wrong, told)
        if not wrong:
            self._inside_of_a_step(found, at)

    def _inside_of_a_step(self, found: Found, at: str) -> None:
        """F17: an event inside of a step is executed where it is, and again after an FMU state was restored."""
        end = found.time + self.h / 4
        step = Found(found.event, found.begin, found.begin, found.before)
        expected: list[Values] = []
        for inputs in (False, True):  # an FMU may hold an input, or know how it moves
            with self.at(step, self.quiet) as r:
                r.set_inputs()
                r.go(found.time, inputs=False)
                r.trigger(found.event)
                r.go(end, inputs=inputs)
                expected.append(r.read(self.names))
        if any(self.is_on(e, values) for e in self.fmu.events for values in expected):
            return
        with self.at(step, None) as r:
            state = r.binary.getFMUState() if self.fmu.saves_states else None
            for number in range(1 if state is None else 2):
                if number:
                    r.restore(state, found.begin)
                r.set_inputs()
                r.go(end, inputs=False)
                values = r.read(self.names)
                one, other = (self.differing(values, e, INSTANT * self.h) for e in expected)
                wrong = [n for n in one if n in other]
                told = f"{at}: executed by the FMU inside of a step, {', '.join(wrong)} are not as after a trigger there"
                if number:
                    told = f"{at}: after the FMU state was restored it is not executed again: {', '.join(wrong)} differ"
                self.report.judge("F17", not wrong, told)
                if wrong:
                    break
            if state is not None:
                r.binary.freeFMUState(state)
