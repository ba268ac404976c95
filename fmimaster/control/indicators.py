"""The event indicators of a plan, read from the outputs and the history in the value store."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from fmimaster.errors import SimulationError
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

NONE: frozenset[int] = frozenset()
"""No events."""


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
        """The instance whose inputs are extrapolated, while the others have its polynomials; None if all are."""
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
        """All Float64 outputs, as they were when first requested after the last change."""
        present = self._present
        if present is None:
            present = self._present = self._outputs.tolist()
        return present

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
        """The smallest of its members' largest indicators: how far below 0 they are for the lowest member."""
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
                        f"{told}, though both have the same inputs. They must use the same condition for the event; "
                        "compare their parameters and the connections."
                    )

    def declaration(self, s: IndicatorSet) -> Any:
        """The declaration of the event by the FMU."""
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
