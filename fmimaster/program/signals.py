"""Signals of a run: marks of rows in which an instance takes no part any more, and extrapolation errors of connections.

As signals of the run they are in each format of results, and a step that is undone restores them. Masked outputs would hide
the values that are held. An extrapolation error is the difference of an input over a step from its source signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.inputs.polynomial import evaluate
from fmimaster.plan.layout import Group, Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType
from fmimaster.system.resolved import Link


def mark_name(instance: str) -> str:
    """The name of the signal, and of its column in the results."""
    return f"{instance}.dropped"


def mark_signals(instances: Iterable[str]) -> tuple[Signal, ...]:
    """A signal for each of these instances: 0, or 1 in rows in which it does not take part."""
    return tuple(Signal(mark_name(name), is_mark=True) for name in instances)


def mark_slots(plan: Plan) -> Mapping[int, int]:
    """Instance → the slot of its mark."""
    signals = plan.layout.signals
    named = {i: mark_name(planned.name) for i, planned in enumerate(plan.instances)}
    return {i: signals[name][1] for i, name in named.items() if name in signals}


def marks_of_events(plan: Plan) -> list[list[int]]:
    """For each event the slots of the marks of its members."""
    slots = mark_slots(plan)
    return [
        [slots[m.instance] for m in event.members if m.instance in slots] for event in plan.events
    ]


def marks(plan: Plan, store: ValueStore) -> Mapping[int, Callable[[], None]]:
    """Instance → a function that sets its mark. All marks are cleared."""
    found = {}
    for i, slot in mark_slots(plan).items():
        values = store.values[DataType.FLOAT64]
        values[slot] = 0.0
        found[i] = partial(values.__setitem__, slot, 1.0)
    return found


# Extrapolation errors -------------------------------------------------------------------------------------------------

_TIME = "extrapolation.time"
"""Signal with the time of the last point, which is not recorded."""


def can_be_measured(link: Link) -> bool:
    """Whether the error of a connection is measured: of a scalar Float64 output to such an input."""
    ends = link.output, link.input
    return all(v.type is DataType.FLOAT64 and v.size == 1 for v in ends)


def error_name(component: str, name: str) -> str:
    """The signal with the error of an input."""
    return f"{component}.{name}.extrapolation_error"


def extrapolation_signals(names: Sequence[str], links: Sequence[Link]) -> tuple[Signal, ...]:
    """The error of each connection that can be measured, in the unit of the input, in the order of names."""
    found = sorted(
        (error_name(names[k.target], k.input.name), _unit(k)) for k in links if can_be_measured(k)
    )
    remembered = [Signal(f"{name}.before", is_recorded=False) for name, _ in found]
    if not found:
        return ()
    return (
        *(Signal(name, unit) for name, unit in found),
        *remembered,
        Signal(_TIME, is_recorded=False),
    )


def _unit(link: Link) -> str:
    return "" if link.input.unit is None else link.input.unit.name


class _Connection(NamedTuple):
    """A connection in the value store: indices into the Float64 values."""

    instance: int
    """To which it leads."""
    input: int
    column: int
    """Of the input among the polynomials of the instance; -1 if it is always held."""
    highest: int | None
    """As of Model.highest_order."""
    output: int
    factor: float
    offset: float
    error: int
    before: int


class _Connections(NamedTuple):
    """All that are measured, and the slot of the time of the last point."""

    every: tuple[_Connection, ...]
    time: int

    def remember(self, store: ValueStore) -> None:
        """Remember the signals and the time, for the next step."""
        values = store.values[DataType.FLOAT64]
        values[self.time] = _reached(store)
        for c in self.every:
            values[c.before] = c.factor * values.item(c.output) + c.offset


@dataclass(frozen=True, slots=True, eq=False)
class _Remembered(Hook):
    """Stores the start values of the next step; at an instant, errors are 0."""

    connections: _Connections
    is_instant: bool
    name: ClassVar[str] = "signals at the start of the next step"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Remember it."""
        self.connections.remember(store)
        if self.is_instant:
            for c in self.connections.every:
                store.values[DataType.FLOAT64][c.error] = 0.0
        return False


@dataclass(frozen=True, slots=True, eq=False)
class ExtrapolationErrors(Hook):
    """The error of each input over the step → signals.

    Within a step, the signal is the straight line between the outputs of the source at its start and at its end, and
    the input is the straight line between the values of the FMU there. The error is the root mean square of their
    difference over the step: ``sqrt((e0 ** 2 + e0 e1 + e1 ** 2) / 3)`` with the differences at both ends. For a held
    input that is the change of the output over the step by ``sqrt(3)``.

    Source: fmimaster; the extrapolation error of docs/trigger-sequence.md ("propagated weights"), measured in the run.
    """

    connections: _Connections
    refreshed: _Remembered
    """The next step starts from the new outputs."""
    at_instant: _Remembered
    """No time has passed: there is no error."""
    name: ClassVar[str] = "extrapolation errors"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Write them."""
        values, (every, time) = store.values[DataType.FLOAT64], self.connections
        begin, end = values.item(time), _reached(store)
        for c in every:
            signal = c.factor * values.item(c.output) + c.offset
            e0 = _input(c, store, begin) - values.item(c.before)
            e1 = _input(c, store, end) - signal
            values[c.error] = sqrt((e0 * e0 + e0 * e1 + e1 * e1) / 3.0)
        self.connections.remember(store)
        return False


def extrapolation_measures(plan: Plan) -> tuple[Hook, ...]:
    """The hooks that measure the errors of the connections of a plan; empty if it has no signals for them."""
    if _TIME not in plan.layout.signals:
        return ()
    every = tuple(_placed(plan, link) for link in plan.links if can_be_measured(link))
    connections = _Connections(every, plan.layout.signals[_TIME][1])
    instants = (_Remembered(connections, is_instant) for is_instant in (False, True))
    return (ExtrapolationErrors(connections, *instants),)


def _placed(plan: Plan, link: Link) -> _Connection:
    i, name = link.target, error_name(plan.instances[link.target].name, link.input.name)
    slots, signals = plan.layout.slots, plan.layout.signals
    is_fitted = (i, Group.CONTINUOUS, link.input.name) in slots
    group = Group.CONTINUOUS if is_fitted else Group.DISCRETE
    into = slots[i, group, link.input.name][1].start
    return _Connection(
        i,
        into,
        into - plan.layout.segments(i, group)[0].start if is_fitted else -1,
        plan.instances[i].model.highest_order,
        slots[link.source, Group.OUTPUTS, link.output.name][1].start,
        link.transformation.factor,
        link.transformation.offset,
        signals[name][1],
        signals[f"{name}.before"][1],
    )


def _reached(store: ValueStore) -> float:
    """The time in s at which outputs were read last; an instance that only takes inputs is never read."""
    return float(np.nanmax(store.read))


def _input(c: _Connection, store: ValueStore, time: float) -> float:
    """The input that the FMU had at a time in the step."""
    degree = store.courses.degree.item(c.instance)
    if c.column < 0 or degree < 0:
        return float(store.values[DataType.FLOAT64].item(c.input))
    taken = degree if c.highest is None else min(degree, c.highest)
    coefficients = store.courses.coefficients[c.instance][: taken + 1, c.column : c.column + 1]
    return float(evaluate(coefficients, time - store.courses.centre.item(c.instance))[0])
