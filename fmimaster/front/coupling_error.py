"""The error of the coupling: the estimate by two runs, of the columns by which a run is judged; and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite

import numpy as np

from fmimaster.base.text import count
from fmimaster.configure.settings import Settings
from fmimaster.front.accuracy_pair import Pair, column_of
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.plan.variables import Recorded
from fmimaster.record.causes import Kind
from fmimaster.results.results import NotComparableError, Results
from fmimaster.results.statistics import CouplingError, OutputError, share_in_words

WARNED_ABOVE = 0.05
"""Coupling error above which the results are less accurate than they should be."""

AIM = 0.01
"""Coupling error at which the step size of a warning aims; up to it, loops that are not solved do not matter."""

NOTHING = 1e-10
"""Largest value of an output, relative to the usual one, that may be an error of 0: of rounding, or since an event is
located within 1e-10 s. In the cradle, a ball at rest has 1.1e-12 with some steps, and 0 with others."""

BETWEEN = 1.5
"""Order of the error where it is 1 or 2."""

AT_REST = 0.01
"""Largest value of an output in the beginning of a run, in that of the whole run, that has no relative error there."""


def coupling_error(
    pair: Pair, recorded: Mapping[str, Recorded], order: float, *, of_fine: bool
) -> CouplingError:
    """The error of one of two runs.

    Parameters
    ----------
    recorded : name of a column → what it shows
    order : float
        As of :class:`Pair`.
    of_fine : bool
        Whether it is that of the second run.

    Raises
    ------
    NotComparableError
        If there is nothing to compare.
    """
    names = [name for name, column in recorded.items() if column.is_judged]
    if not names:
        raise NotComparableError("no continuous output is recorded")
    factor = 1.0 if of_fine else 2.0**order
    until = pair.until
    whole = {} if until is None else pair.coarse.select(names).expand().columns
    found = tuple(
        OutputError(d.name, d.relative * factor, d.largest / d.scale * factor, d.time)
        for d in replace(pair, names=names, order=order).differences()
        if d.scale > NOTHING * (recorded[column_of(d.name, recorded)].usual or 1.0)
        and (until is None or d.scale > AT_REST * np.abs(whole[d.name]).max())
    )
    if not found:
        raise NotComparableError(
            "all continuous outputs are 0, but for errors of rounding"
            if until is None
            else f"the run is long, and its outputs are at rest until t = {until:.3g} s"
        )
    if not all(isfinite(output.error) for output in found):
        raise NotComparableError("outputs are infinite or not a number")
    return CouplingError(
        found, _executed(pair.coarse, pair.fine, until), with_longer=of_fine, until=until
    )


def order_of(settings: Settings, *, holds_some: bool = False) -> float:
    """The power of the step size with which the error of the coupling decreases.

    It is 2 for inputs that follow a line or more. Held inputs have 1. So have events, whose errors decrease at
    least so fast: with 1 the estimate is the larger one, by a factor of 1.5. Where some inputs are held it may be 1 or 2:
    with :data:`BETWEEN` the estimate is right within a factor of 1.9 for both.
    """
    given: list[Polynomial] = [settings.algorithm_used.course, *settings.used.inputs.values()]
    clock = settings.clock_used
    is_held = any(course.is_constant for course in given)
    if is_held or (clock is not None and clock.fires):
        return 1.0
    return BETWEEN if holds_some else 2.0


def _executed(coarse: Results, fine: Results, until: float | None) -> tuple[int, int]:
    """Numbers of events; a discrete input may follow a continuous output, and then changes with each step.

    A run that writes its rows keeps the last events only: then all of them are counted, if both runs are whole. Events that
    one run has before the end of the fine run, and the other one may have a step behind it, are the same.
    """
    runs = coarse, fine
    if any(run.statistics.events > len(run.events) for run in runs):
        all_of_them = coarse.statistics.events, fine.statistics.events
        return all_of_them if until is None else (0, 0)
    times = [
        np.array([e.time for e in run.events if e.cause.kind is not Kind.CHANGED_INPUT])
        for run in runs
    ]
    if until is None:
        return len(times[0]), len(times[1])
    step = float(np.diff(fine.time).max())
    one, other = (int((at <= until).sum()) for at in times)
    before = [int((at <= until - 2.0 * step).sum()) for at in times]
    return (other, other) if before[0] <= other and before[1] <= one else (one, other)


def warnings_of(settings: Settings, size: float, found: CouplingError) -> Iterator[str]:
    """Why the results of a run with steps of this size in s are less accurate than they should be."""
    coarse, fine = found.events
    peak = max((output.largest for output in found.outputs), default=0.0)
    # a small error shows that one run has divided an event, or executed it at two points of time
    if coarse != fine and ((found.estimate or 0.0) > AIM or peak > WARNED_ABOVE):
        own, other = (fine, coarse) if found.with_longer else (coarse, fine)
        yield (
            f"with steps {found.other_steps} as long there are {count(other, 'event')} instead of {own}: events are "
            f"missed, or depend on the steps. Take smaller steps: step_size (--step-size){_or_a_clock(settings)}"
        )
    if found.worst is not None and found.worst.error > WARNED_ABOVE:
        shorter = size * (AIM / min(found.worst.error, 1.0)) ** (1.0 / order_of(settings))
        yield (
            f"the coupling error of '{found.worst.name}' is {share_in_words(found.worst.error)} of its largest value (root "
            f"mean square over time, {found.origin}). Take smaller steps: step_size "
            f"(--step-size), about {shorter:.1g} s{_or_a_clock(settings)}"
        )


def _or_a_clock(settings: Settings) -> str:
    is_open = settings.clock_used is None
    return (
        "; or an event clock, if FMUs have events: event_clock (--event-clock)" if is_open else ""
    )
