"""What an FMU shows without a trigger: indicators, modes, a forecast, its own events, jumps of inputs."""

from __future__ import annotations

from typing import Any

from driven import SLOPE, Driven, Values
from fmu_under_test import Event
from simulated import Run, run


class ContinuousChecks(Driven):
    """Checks that need no trigger."""

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
                self.report.judge("M6", after[z] - after[z] == 0.0, f"{where} is {after[z]}")
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
                is_right = any(abs(quotient - middle) <= allowed for quotient in quotients)
                self.report.judge("F18", is_right, told)

    def modes(self) -> None:
        """F20: what says whether an event can occur changes at events only."""
        names = [e.active for e in self.fmu.events if e.active]
        if not names:
            return
        if any(e.trigger is None for e in self.fmu.events):
            self.report.skip(
                "F20", "the FMU executes events by itself, at times that are not known"
            )
            return
        end = min([self.experiment.stop, *(f.time for f in self.survey.found.values())])
        with run(self.fmu, self.experiment, self.quiet) as r:
            before = r.read(names)
            while r.time < end - self.h:
                r.go_in_steps(r.time + self.h)
                now = r.read(names)
                changed = [n for n in names if now[n] != before[n]]
                told = f"{', '.join(changed)} changes before t = {r.time:.6g} s, where no event has occurred"
                self.report.judge("F20", not changed, told)
                before = now

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
                self.report.judge("F4", not (was_on and now_on), told)
                before, was_on = after, now_on
        return reached

    def _grid_step(self, r: Run) -> list[Any]:
        h = self.h
        return r.go((round(r.time / h) + 1) * h)

    def jump(self) -> None:
        """F19: an event that an input makes occur at a communication point."""
        jump = self.experiment.jump
        if jump is None:
            if any(e.scope == "coupled" for e in self.fmu.events):
                self.report.skip("F19", "the experiment has no 'jump'")
            return
        [event] = [e for e in self.fmu.events if e.name == jump["event"]]
        at = f"event '{event.name}', which an input makes occur at t = {jump['at']:g} s"
        results = {}
        for name, policy in (("quiet", self.quiet), ("own", None)):
            with run(self.fmu, self.experiment, policy) as r:
                r.go_in_steps(jump["at"])
                for n, value in jump["set"].items():
                    r.set(n, value)
                r.go(r.time + self.short, inputs=False)
                results[name] = r.read(self.names)
        if self.quiet is not None and not self.is_on(event, results["quiet"]):
            self.report.skip("F19", f"{at}: it is not on after the jump")
            return
        told = f"{at}, is not executed at the start of the next step"
        self.report.judge("F19", not self.is_on(event, results["own"]), told)


def _passes(event: Event, before: Values, h: float, expected: list[float]) -> bool:
    """Whether an event lies in a step, by the derivatives at its start."""
    for z, dz, slowest in zip(event.indicators, event.derivatives, expected, strict=True):
        foreseen = before[z] + h * before[dz] if dz else slowest
        if foreseen > 0.0:
            return False
    return True
