"""Exact solution of coupled systems that are linear in each mode: the FMUs of ``fmus/hybrid_writer.py``.

All units in their modes are one linear system. Its solution is a matrix exponential, and the time of an event is a
bracket of 1e-13 s. All events of one instant are executed by the left limits of that instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from hybrid_system import Event, Form, HybridSystem, Transition
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.optimize import brentq

Array = NDArray[np.float64]

WIDTH = 1e-13
"""[s] The bracket of an event."""
TOGETHER = 1e-10
"""[s] Events as near to each other as this are of one instant."""
ON = 1e-9
"""[s] An event that would occur within this time after others is of their instant; what rises from 0 is not."""
MOST_ROUNDS = 20
"""Events of one instant that cause each other."""
_SAMPLES = 64
"""Points of a block, between which indicators are compared."""


class Execution(NamedTuple):
    """A unit has executed an event."""

    time: float
    """[s]"""
    unit: str
    event: str


@dataclass(frozen=True)
class CoupledSystem:
    """Units, their connections, and the events that they share."""

    units: Mapping[str, HybridSystem]
    connections: Mapping[str, str]
    """"unit.input" → "unit.output"."""
    shared: Mapping[str, tuple[tuple[str, str], ...]]
    """Name → (unit, event) of each member."""
    booleans: Mapping[str, str] = field(default_factory=dict)
    """Outputs that are 0 or 1 → Boolean outputs of the same value."""

    def changed(self, relative: float) -> CoupledSystem:
        """The same system with other start values: each changed by that part of itself, to both sides in turn."""
        units, sign = {}, 1.0
        for name, system in self.units.items():
            states = {}
            for state, start in system.states.items():
                states[state] = start * (1 + sign * relative)
                sign = -sign
            units[name] = replace(system, states=states)
        return replace(self, units=units)


@dataclass(frozen=True)
class Solution:
    """An exact solution."""

    events: tuple[Execution, ...]
    final: Mapping[str, float]
    """ "unit.state" → value at the end."""
    ranges: Mapping[str, float]
    """ "unit.state" → largest value minus smallest one."""
    is_clear: bool
    """No event was on at the start or has caused another one at its instant, and no two were of one instant."""
    fastest: float
    """[rad/s] Largest absolute value of an eigenvalue in any mode."""
    stretches: tuple[Stretch, ...] = field(repr=False, compare=False)
    """One from the start on, and one from each instant with events."""


class Stretch(NamedTuple):
    """A stretch of time without events."""

    begin: float
    """[s]"""
    regime: Regime
    start: Array
    """All states and 1, after the events at its begin."""


class _Possible(NamedTuple):
    """An event that can happen in the present modes."""

    members: tuple[tuple[str, Event, Transition], ...]
    indicators: Array
    """Rows: forms of all states and 1."""


class Regime:
    """The system in one combination of modes, as one matrix of all states and 1."""

    def __init__(self, system: CoupledSystem, modes: Mapping[str, int]) -> None:
        self._system, self._modes = system, modes
        self._offsets = offsets(system)
        self.size = sum(len(u.states) for u in system.units.values()) + 1
        self._inputs = self._solved_inputs()
        self.matrix = np.zeros((self.size, self.size))
        for name, unit in system.units.items():
            mode = unit.modes[modes[name]]
            for k, state in enumerate(unit.states):
                self.matrix[self._offsets[name] + k] = self.row(name, mode.rates.get(state, {}))
        self.possible = self._possible()

    def row(self, name: str, form: Form) -> Array:
        """A form of a unit as one of all states and 1."""
        row = np.zeros(self.size)
        states = list(self._system.units[name].states)
        for variable, factor in form.items():
            if variable == "1":
                row[-1] += factor
            elif variable in states:
                row[self._offsets[name] + states.index(variable)] += factor
            else:
                row += factor * self._inputs[f"{name}.{variable}"]
        return row

    def output(self, name: str, output: str) -> Array:
        """An output of a unit as a form of all states and 1."""
        mode = self._system.units[name].modes[self._modes[name]]
        return self.row(name, mode.outputs.get(output, {}))

    def _solved_inputs(self) -> dict[str, Array]:
        """Each input as a form of all states and 1: outputs may depend directly on inputs."""
        names = [f"{u}.{i}" for u, s in self._system.units.items() for i in s.input_names if i]
        direct, constant = np.zeros((len(names), len(names))), np.zeros((len(names), self.size))
        for k, name in enumerate(names):
            source = self._system.connections.get(name)
            if source is None:
                unit, variable = name.split(".")
                constant[k, -1] = self._system.units[unit].inputs.get(variable, 0.0)
                continue
            unit, output = source.split(".")
            system = self._system.units[unit]
            states = list(system.states)
            form = system.modes[self._modes[unit]].outputs.get(output, {})
            for variable, factor in form.items():
                if variable == "1":
                    constant[k, -1] += factor
                elif variable in states:
                    constant[k, self._offsets[unit] + states.index(variable)] += factor
                else:
                    direct[k, names.index(f"{unit}.{variable}")] += factor
        solved = np.linalg.solve(np.eye(len(names)) - direct, constant)
        return dict(zip(names, solved, strict=True))

    def _possible(self) -> list[_Possible]:
        groups = list(self._system.shared.values())
        taken = {member for members in groups for member in members}
        for name, unit in self._system.units.items():
            groups += [((name, e.name),) for e in unit.events if (name, e.name) not in taken]
        possible = []
        for group in groups:
            found = [self._transition(unit, event) for unit, event in group]
            members = tuple(member for member in found if member is not None)
            if len(members) == len(group):
                first, _, transition = members[0]
                rows = np.array([self.row(first, form) for form in transition.indicators])
                possible.append(_Possible(members, rows))
        return possible

    def _transition(self, name: str, event: str) -> tuple[str, Event, Transition] | None:
        [found] = [e for e in self._system.units[name].events if e.name == event]
        transition = found.transitions.get(self._modes[name])
        return None if transition is None else (name, found, transition)

    def largest(self, event: _Possible, x: Array) -> float:
        """The largest of its indicators."""
        return float((event.indicators @ x).max())

    def after(self, x: Array, h: float) -> Array:
        """The states after a time."""
        moved: Array = expm(self.matrix * h) @ x
        return moved

    @cached_property
    def fastest(self) -> float:
        """[rad/s] Largest absolute value of an eigenvalue."""
        return float(np.abs(np.linalg.eigvals(self.matrix[:-1, :-1])).max(initial=0.0))

    def powers(self, h: float) -> Array:
        """The matrices that lead to each point of a block of steps."""
        one = expm(self.matrix * h)
        made = [one]
        for _ in range(_SAMPLES - 1):
            made.append(one @ made[-1])
        return np.array(made)


def offsets(system: CoupledSystem) -> dict[str, int]:
    """Where the states of each unit begin."""
    found, begin = {}, 0
    for name, unit in system.units.items():
        found[name] = begin
        begin += len(unit.states)
    return found


def solve(
    system: CoupledSystem, stop_time: float, sample: float, most: int = 1000
) -> Solution | None:
    """The solution until the stop time; None if it has more events than `most`.

    `sample` in s: indicators that are below 0 for a shorter time are not seen.
    """
    return _Solver(system, stop_time, sample).run(most)


class _Solver:
    def __init__(self, system: CoupledSystem, stop_time: float, sample: float) -> None:
        self.system, self.stop_time, self.sample = system, stop_time, sample
        self.modes = {name: unit.start_mode for name, unit in system.units.items()}
        states = [start for unit in system.units.values() for start in unit.states.values()]
        self.x: Array = np.array([*states, 1.0])
        self.time = 0.0
        self.events: list[Execution] = []
        self.low, self.high = self.x.copy(), self.x.copy()
        self.is_clear = True
        self._regimes: dict[tuple[int, ...], tuple[Regime, Array]] = {}

    def run(self, most: int) -> Solution | None:
        regime, _ = self._regime()
        self.is_clear = all(regime.largest(event, self.x) > 0.0 for event in regime.possible)
        stretches = [Stretch(0.0, regime, self.x)]
        while self.time < self.stop_time:
            if not self._to_event():
                break
            self._execute()
            stretches.append(Stretch(self.time, self._regime()[0], self.x))
            if len(self.events) > most:
                return None
        names = [f"{u}.{s}" for u, system in self.system.units.items() for s in system.states]
        ranges = self.high - self.low
        return Solution(
            tuple(self.events),
            dict(zip(names, map(float, self.x[:-1]), strict=True)),
            dict(zip(names, map(float, ranges[:-1]), strict=True)),
            self.is_clear,
            max(regime.fastest for regime, _ in self._regimes.values()),
            tuple(stretches),
        )

    def _regime(self) -> tuple[Regime, Array]:
        key = tuple(self.modes.values())
        if key not in self._regimes:
            regime = Regime(self.system, dict(self.modes))
            self._regimes[key] = regime, regime.powers(self.sample)
        return self._regimes[key]

    def _to_event(self) -> bool:
        """Go to the next event and return True, or to the stop time and return False."""
        regime, powers = self._regime()
        while self.time < self.stop_time:
            points = np.vstack([self.x, powers @ self.x])
            values = [(points @ e.indicators.T).max(axis=1) for e in regime.possible]
            crossing = _SAMPLES
            for z in values:
                crossings = np.flatnonzero((z[:-1] > 0.0) & (z[1:] <= 0.0))
                crossing = min(crossing, *crossings) if len(crossings) else crossing
            count = min(crossing, int((self.stop_time - self.time) / self.sample))
            self._seen(points[: count + 1])
            self.time, self.x = self.time + count * self.sample, points[count]
            if count == _SAMPLES:
                continue
            h = min(self.sample, self.stop_time - self.time)
            first = min((self._located(regime, e, h) for e in regime.possible), default=np.inf)
            h, is_event = (first, True) if first <= h else (h, False)
            self.time, self.x = self.time + h, regime.after(self.x, h)
            self._seen(self.x[None])
            if is_event or count < crossing:
                return is_event
        return False

    def _seen(self, points: Array) -> None:
        self.low = np.minimum(self.low, points.min(axis=0))
        self.high = np.maximum(self.high, points.max(axis=0))

    def _located(self, regime: Regime, event: _Possible, h: float) -> float:
        """Time until the event, if it is within `h`; else infinite."""

        def largest(after: float) -> float:
            return regime.largest(event, regime.after(self.x, after))

        if regime.largest(event, self.x) <= 0.0 or largest(h) > 0.0:
            return np.inf
        found = float(brentq(largest, 0.0, h, xtol=WIDTH / 4))
        while largest(found) > 0.0:  # the end of the bracket at which it has occurred
            found += WIDTH
        return min(found, h)

    def _execute(self) -> None:
        """All events of this instant."""
        regime, _ = self._regime()
        ahead = regime.after(self.x, TOGETHER)
        due = [e for e in regime.possible if regime.largest(e, ahead) <= 0.0]
        for number in range(MOST_ROUNDS):
            self.is_clear = self.is_clear and number == 0 and len(due) == 1
            self._reset(regime, due)
            regime, _ = self._regime()
            ahead = regime.after(self.x, ON)
            due = [e for e in regime.possible if regime.largest(e, ahead) <= 0.0]
            if not due:
                return
        self.is_clear = False

    def _reset(self, regime: Regime, due: Sequence[_Possible]) -> None:
        left, starts = self.x, offsets(self.system)
        right = left.copy()
        for event in due:
            for name, which, transition in event.members:
                states = list(self.system.units[name].states)
                for state, form in transition.reset.items():
                    right[starts[name] + states.index(state)] = regime.row(name, form) @ left
                self.modes[name] = transition.next
                self.events.append(Execution(self.time, name, which.name))
        self.x = right
        self._seen(right[None])
