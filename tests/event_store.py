"""Event indicators over a value store in which tests put numbers by name: no run, no FMU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from python_fmu import PythonFmu, plan_of

from fmimaster.events.event_clock import EventClock
from fmimaster.instants.instant import Goal, Instant
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import EventUse
from fmimaster.program.indicators import Indicators
from fmimaster.record.causes import GRID
from fmimaster.run.executor import make_store
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DataType

STEP = 0.1
"""[s] A usual step."""

NOTHING: frozenset[int] = frozenset()


USE = EventUse(watched=True, event_mode=True)


def plan(
    events: Mapping[str, Sequence[str]],
    *,
    slopes: bool = True,
    triggered: bool = True,
    tolerance: float | None = None,
    members: Sequence[str] = ("a",),
) -> Plan:
    """Instances with these private events, each with its indicators, and their derivatives."""
    made = units(events, slopes=slopes, triggered=triggered, tolerance=tolerance, members=members)
    return plan_of(made, use=USE)


def units(
    events: Mapping[str, Sequence[str]],
    *,
    slopes: bool = True,
    triggered: bool = True,
    tolerance: float | None = None,
    members: Sequence[str] = ("a",),
    **more: Any,
) -> Mapping[str, PythonFmu]:
    """The FMUs of such a plan."""

    def unit() -> PythonFmu:
        indicators = [z for names in events.values() for z in names]
        names = [*indicators, *(f"d{z}" for z in indicators)]
        triggers = {f"fire {name}": False for name in events} if triggered else {}
        return PythonFmu(
            inputs=triggers,
            outputs=dict.fromkeys(names, lambda v: 0.0),
            attributes={f"d{z}": {"derivative_of": z} for z in indicators}
            | {name: {"type": DataType.CLOCK} for name in triggers},
            events=[
                EventDeclaration(
                    name,
                    Scope.PRIVATE,
                    tuple(Indicator(z, f"d{z}" if slopes else None, tolerance) for z in found),
                    trigger=f"fire {name}" if triggered else None,
                )
                for name, found in events.items()
            ],
            has_event_mode=True,
            **more,
        )

    return {name: unit() for name in members}


class Seen:
    """Indicators over a store in which values are put by name."""

    def __init__(self, made: Plan, history: int = 3) -> None:
        self.plan = made
        self.store = make_store(made, 0, history)
        for _, read in self.store.history:
            read[:] = float("nan")
        self.indicators = Indicators(made, self.store, history, STEP)

    def put(self, values: Mapping[str, float], time: float = 0.0) -> None:
        for name, value in values.items():
            i, output = ("a", name) if "." not in name else name.split(".")
            index = [instance.name for instance in self.plan.instances].index(i)
            _, slot = self.plan.layout.slots[index, Group.OUTPUTS, output]
            self.store.values[DataType.FLOAT64][slot] = value
        self.store.read[:] = time
        self.indicators.renew()

    def remember(self) -> None:
        self.store.remember()

    def clip(
        self, clock: EventClock, now: float, end: float, fired: frozenset[int] = NOTHING
    ) -> Goal:
        return clock.clip(Goal(Instant(end), GRID), Instant(now), self.indicators, fired)
