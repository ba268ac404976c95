"""Accuracy of a run of the two masses: position error and events, compared with the exact solution.

Events are read from the logs of the FMUs, so the score does not depend on the method that fired them. An event is
missed or false if no event of its kind is within 0.1 s of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.results.results import Results
from fmimaster.studies.demos.two_mass import ReferenceEvent, TwoMassReference

SHARED = frozenset({"collision"})
"""Kinds of events that must happen in both FMUs."""
TOGETHER = 0.01
"""[s] Largest time difference of two executions of the same shared event."""
MATCHING = 0.1
"""[s] Largest time difference of an event from the same event in the exact solution."""

_LOGGED = re.compile(r"^(?P<who>\S+) .*?Event '(?P<kind>\w+)' at t = (?P<time>\S+) s")


class Execution(NamedTuple):
    """An FMU has executed an event."""

    component: str
    kind: str
    time: float
    """[s]"""


class Found(NamedTuple):
    """An event of a run."""

    kind: str
    time: float
    """[s]"""
    one_sided: bool
    """Whether it is shared, but only one FMU has executed it."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a run."""

    e_rms: float
    """[m]"""
    e_max: float
    """[m]"""
    steps: int
    do_steps: int
    """Steps of single FMUs."""
    restores: int
    """Number of restored FMU states."""
    missed: int
    """Events of the exact solution that have not happened."""
    false: int
    """Events that the exact solution does not have."""
    one_sided: int


@contextmanager
def executions() -> Iterator[list[Execution]]:
    """The events that FMUs log inside this context; debug logging must be switched on."""
    found: dict[Execution, None] = {}  # a step that is repeated after an event logs the event again
    log = logging.getLogger("fmimaster")
    handler = _Collector(found)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    listed: list[Execution] = []
    try:
        yield listed
    finally:
        listed.extend(found)
        log.setLevel(level)
        log.removeHandler(handler)


class _Collector(logging.Handler):
    def __init__(self, found: dict[Execution, None]) -> None:
        super().__init__()
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        said = _LOGGED.match(record.getMessage())
        if said:
            self._found[Execution(said["who"], said["kind"], float(said["time"]))] = None


def events_of(executed: Iterable[Execution], together: float = TOGETHER) -> list[Found]:
    """Executions → events: those of a shared event in two FMUs within this time in s are one."""
    found: list[Found] = []
    alone: list[Execution] = []
    for one in sorted(executed, key=lambda e: e.time):
        if one.kind not in SHARED:
            found.append(Found(one.kind, one.time, False))
            continue
        partner = next(
            (
                a
                for a in alone
                if a.kind == one.kind
                and a.component != one.component
                and one.time - a.time <= together
            ),
            None,
        )
        if partner is None:
            alone.append(one)
        else:
            alone.remove(partner)
            found.append(Found(one.kind, partner.time, False))
    found += [Found(a.kind, a.time, True) for a in alone]
    return sorted(found, key=lambda e: e.time)


def compare_events(
    found: Sequence[Found], expected: Sequence[ReferenceEvent], matching: float = MATCHING
) -> tuple[int, int, int]:
    """Numbers of missed, false and one-sided events; each event is matched once, the nearest ones first.

    Events match if they are of the same kind and at most ``matching`` seconds apart.
    """
    pairs = sorted(
        (abs(f.time - e.time), i, k)
        for i, f in enumerate(found)
        for k, e in enumerate(expected)
        if f.kind == e.name and abs(f.time - e.time) <= matching
    )
    matched_found, matched_expected = set[int](), set[int]()
    for _, i, k in pairs:
        if i not in matched_found and k not in matched_expected:
            matched_found.add(i)
            matched_expected.add(k)
    return (
        len(expected) - len(matched_expected),
        len(found) - len(matched_found),
        sum(f.one_sided for f in found),
    )


def position_error(
    results: Results, exact: TwoMassReference
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``|x1 - x1_exact| + |x2 - x2_exact|`` in m at each communication point, and these points in s.

    For rows with the same time, the last one is used.
    """
    last = np.append(np.diff(results.time) > 0.0, True)
    times = results.time[last]
    states = exact(times)
    upper, lower = results["upper.x"][last], results["lower.x"][last]
    return np.abs(upper - states[:, 0]) + np.abs(lower - states[:, 2]), times


def score(
    results: Results,
    executed: Iterable[Execution],
    exact: TwoMassReference,
    *,
    together: float = TOGETHER,
    matching: float = MATCHING,
) -> Score:
    """The score of a run; the times as for :func:`events_of` and :func:`compare_events`."""
    error, _ = position_error(results, exact)
    stop = float(results.time[-1])
    expected = [e for e in exact.events if e.time <= stop]
    instances = results.statistics.instances
    return Score(
        float(np.sqrt(np.mean(error**2))),
        float(error.max()),
        results.statistics.steps,
        sum(i.calls for i in instances),
        sum(i.restores for i in instances),
        *compare_events(events_of(executed, together), expected, matching),
    )
