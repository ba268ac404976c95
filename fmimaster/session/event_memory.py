"""What a run remembers about events besides its FMUs, for a run that begins with their states: clocks, time events, values.

As JSON. Times are exact, as [numerator, denominator] in s: another run may count in other units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import inf, isinf
from typing import Any

import numpy as np

from fmimaster.base.errors import FileError
from fmimaster.instants.calendar import Calendar, Period
from fmimaster.plan.dataflow import is_held
from fmimaster.plan.layout import Route
from fmimaster.plan.plan import Plan
from fmimaster.run.executor import Executor
from fmimaster.system.clocks import Qualifier
from fmimaster.system.model import DataType


def remembered(plan: Plan, executor: Executor, calendar: Calendar) -> dict[str, Any]:
    """The memory of a run; empty if there is nothing to remember."""
    names = {k: f"{plan.instances[t.instance].name}.{t.name}" for k, t in enumerate(plan.triggers)}
    clocks = {names[k]: _clock(calendar, k) for k in calendar.next}
    events = {
        instance.name: float(time)
        for instance, time in zip(plan.instances, executor.next_events, strict=True)
        if not isinf(time)
    }
    held = {
        name: _plain(route, executor.store.values[route.source_type][route.source])
        for name, route in _held(plan)
    }
    memory = {"clocks": clocks, "nextEvents": events, "held": held}
    return memory if any(memory.values()) or has_calendar(plan) else {}


def has_calendar(plan: Plan) -> bool:
    """Whether a clock ticks by time."""
    return any(trigger.clock is not None for trigger in plan.triggers)


def recall(memory: Any, plan: Plan, executor: Executor, calendar: Calendar, time: float) -> None:
    """Go on with the memory of another run of this system.

    Parameters
    ----------
    memory
        From a file: anything.
    time : float
        The present time in s.

    Raises
    ------
    FileError, ValueError, TypeError, LookupError
        If it is no such memory.
    """
    numbers = {
        f"{plan.instances[t.instance].name}.{t.name}": k for k, t in enumerate(plan.triggers)
    }
    clocks = dict(memory["clocks"])
    if strange := sorted(clocks.keys() - numbers.keys()):
        raise FileError(f"The FMU states have other clocks than the system: {', '.join(strange)}.")
    for name, entry in clocks.items():
        _put(calendar, numbers[name], entry, Fraction(time))
    for intervals in executor.store.intervals.values():
        intervals.qualifier[:] = Qualifier.UNCHANGED  # what was told belongs to the initialization
    events = {str(name): float(at) for name, at in dict(memory["nextEvents"]).items()}
    executor.next_events[:] = [events.get(instance.name, inf) for instance in plan.instances]
    held = dict(memory["held"])
    for name, route in _held(plan):
        if name in held:
            place = executor.store.values[route.source_type][route.source]
            place[:] = _values(route, held[name], len(place))


def _clock(calendar: Calendar, k: int) -> Mapping[str, Any]:
    """A clock that ticks again."""

    def seconds(ticks: Any) -> list[int]:
        return list((Fraction(ticks) / calendar.resolution).as_integer_ratio())

    found: dict[str, Any] = {"next": seconds(calendar.exact(calendar.next[k]))}
    if (period := calendar.periods.get(k)) is not None:
        found["interval"] = seconds(period.interval)
    if (told := calendar.told.get(k)) is not None:
        found["told"] = seconds(told)
    return found


def _put(calendar: Calendar, k: int, entry: Any, time: Fraction) -> None:
    def ticks(name: str) -> Any:
        numerator, denominator = entry[name]
        return calendar.in_base(Fraction(int(numerator), int(denominator)))

    first = ticks("next")
    if Fraction(first) / calendar.resolution < time:
        raise ValueError("a clock whose next tick is over")
    calendar.put(k, first)
    if "interval" in entry:
        if (interval := ticks("interval")) <= 0:
            raise ValueError("a clock without a positive interval")
        calendar.periods[k] = Period(first, interval)
    if "told" in entry:
        calendar.told[k] = ticks("told")


def _held(plan: Plan) -> Iterator[tuple[str, Route]]:
    """Clocked outputs whose last values are held by inputs, by name."""
    for routes in plan.routes.values():
        for route in routes:
            if is_held(route.link):
                source = plan.instances[route.link.source].name
                yield f"{source}.{route.link.output.name}", route


def _plain(route: Route, values: Any) -> list[Any]:
    return [v.hex() if isinstance(v, bytes) else v for v in values.tolist()]


def _values(route: Route, given: Any, size: int) -> list[Any]:
    if not isinstance(given, list) or len(given) != size:
        raise ValueError("held values of another shape")
    if route.source_type is DataType.BINARY:
        return [bytes.fromhex(v) for v in given]
    if route.source_type is DataType.STRING:
        return [str(v) for v in given]
    return np.array(given, route.source_type.dtype).tolist()  # type: ignore[no-any-return]
