"""Random systems with events of several kinds, and their exact solutions.

Every system has its own longest communication step, in which the phase of the fastest mode changes by 0.2 to 0.7 rad,
and is run at that step size and at all shorter ones. Systems are drawn until one has a suitable number of events and does
not depend on its start values so strongly that a change by 1e-4 shifts an event by more than half of its longest step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from exact_hybrid import CoupledSystem, Solution, solve
from hybrid_kinds import KINDS

SEED = 28
SIZES = (0.02, 0.05, 0.1, 0.2)
"""[s] Communication step sizes."""
VERSIONS = ("fmi2", "fmi3", "mixed", "me2", "me3")
"""FMI versions of the units; mixed: in turn; me: Model Exchange."""

_STEPS = 100
"""Longest steps until the end."""
_CHANGE = 1e-4
"""Relative change of the start values to measure the sensitivity of the events."""
_EVENTS = 3, 60
"""Least and largest number of executions."""
_SHORTEST_GAP = 0.3
"""Of the longest step: least time between two events of a unit."""


@dataclass(frozen=True)
class Case:
    """A system, how it is built, and its exact solution."""

    kind: str
    number: int
    system: CoupledSystem
    longest: float
    """[s] Largest step size."""
    version: str
    """One of ``VERSIONS``."""
    is_held: bool
    """Whether the FMUs hold their inputs; otherwise these can be polynomials."""
    stop_time: float
    """[s]"""
    exact: Solution

    @property
    def sizes(self) -> tuple[float, ...]:
        """Step sizes in s at which it is run."""
        return tuple(size for size in SIZES if size <= self.longest)

    @property
    def angle(self) -> float:
        """[rad] By which the fastest mode turns in the longest step."""
        return self.exact.fastest * self.longest


@cache
def random_case(kind: str, number: int, seed: int = SEED) -> Case:
    """The system of that kind and number, from 0. Longest step, version and inputs follow from the number."""
    longest = SIZES[-1 - number % len(SIZES)]
    version = VERSIONS[number % len(VERSIONS)]
    is_held = bool((number + number // len(SIZES)) % 2)
    chance = np.random.default_rng([seed, list(KINDS).index(kind), number])
    stop_time = _STEPS * longest
    while True:
        system = KINDS[kind](chance, chance.uniform(0.2, 0.7) / longest)
        exact = _suitable(system, stop_time, longest)
        if exact is not None:
            return Case(kind, number, system, longest, version, is_held, stop_time, exact)


def _suitable(system: CoupledSystem, stop_time: float, longest: float) -> Solution | None:
    """The exact solution, if the system is one that can be scored."""
    least, most = _EVENTS
    exact = solve(system, stop_time, longest / 50, most)
    if exact is None or not exact.is_clear or not least <= len(exact.events) <= most:
        return None
    times = np.array([e.time for e in exact.events])
    if times[-1] > stop_time - longest or _shortest_gap(exact) < _SHORTEST_GAP * longest:
        return None
    for sign in (-1.0, 1.0):
        other = solve(system.changed(sign * _CHANGE), stop_time, longest / 50, most)
        if other is None or [e[1:] for e in other.events] != [e[1:] for e in exact.events]:
            return None
        if np.abs(np.array([e.time for e in other.events]) - times).max() > longest / 2:
            return None
    return exact


def _shortest_gap(exact: Solution) -> float:
    """[s] The least time between two events of a unit."""
    gaps = [np.inf]
    for unit in {e.unit for e in exact.events}:
        gaps += list(np.diff([e.time for e in exact.events if e.unit == unit]))
    return float(min(gaps))
