"""Contacts at rest: bodies that touch and stay have no event, until the gap or its slope leaves 0.

Inputs inside a step are extrapolated. In an FMU that looks for its own events, bodies at rest then meet by the error of the
extrapolation, again and again. So the FMUs of such bodies are set to ignore their events, and the event clock predicts
those of their other events that no FMU announces.
"""

from __future__ import annotations

from fmimaster.run.loop import Loop, LoopPart
from fmimaster.system.declarations import Scope


class Rests(LoopPart):
    """Finds contacts at rest, and sets the policy of their members."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        events = loop.plan.events
        fires = loop.clock is not None and loop.clock.fires
        self._sets = [
            s
            for s in loop.indicators.sets
            if fires and s.is_triggered and events[s.event].scope is Scope.SHARED
        ]
        silences = loop.clock is not None and loop.clock.silences
        self._policies = loop.programs.quiet if silences else {}

    @property
    def quiet(self) -> frozenset[int]:
        """Instances that ignore their own events at present."""
        members = (i for e in self._state.resting for i in self._plan.events[e].instances)
        return frozenset(i for i in members if i in self._policies)

    def look(self) -> None:
        """Find the contacts that are at rest at this point."""
        if not self._sets:
            return
        before, now = self.quiet, self._state.time.seconds
        self._state.resting = self._indicators.resting = self._resting()
        after = self.quiet
        programs = [self._policies[i].ignore for i in sorted(after - before)]
        programs += [self._policies[i].announce for i in sorted(before - after)]
        for program in programs:
            self._executor.run(program, now, now)
        if programs:
            self._indicators.renew()

    def _resting(self) -> frozenset[int]:
        """Shared events whose indicators and slopes are 0 for all members that know the present values of the others; some
        member must know them, unless a force holds the contact."""
        found, moving = set[int](), set[int]()
        values, outdated = self._indicators.present(), self._indicators.outdated
        for s in self._sets:
            if s.number in outdated or s.event in moving:
                continue
            (found if self._indicators.rests(s, values) else moving).add(s.event)
        return frozenset(found - moving) | self._state.touching
