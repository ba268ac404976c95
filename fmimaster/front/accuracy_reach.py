"""Repeats runs with shorter steps until the estimated error is below a given accuracy.

The error is measured by runs with halved steps, not derived from a tolerance: a controller measures what one step adds,
but neither the FMUs' own errors nor the sum over all steps. So the choice of a controller changes the cost only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import log2
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import Interrupted, OptionError, SimulationError
from fmimaster.base.text import listed
from fmimaster.configure.settings import Settings
from fmimaster.front.accuracy_pair import Difference, Pair, column_of, half
from fmimaster.plan.plan import Plan
from fmimaster.plan.power_bonds import BondSignal
from fmimaster.prepare.accuracy_choice import Choice
from fmimaster.results.recorder import output_intervals
from fmimaster.results.results import Results
from fmimaster.steps.doubling_errors import PowerResidual
from fmimaster.steps.prediction_errors import EmbeddedOrders
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.model import Variability

Array = NDArray[np.float64]

LEAST_CHANGES = 5
"""With fewer changes of an output, nothing is known about the time between them."""

LONGER = 1.5
"""Ratio of the time between two changes to the communication step from which on an output is held."""

REGULAR = 0.8
"""Fraction of the times between two changes that must be equal, up to a communication step. Outputs that rest for some
time, for example in saturation, change irregularly."""

ROUNDING = 1e-12
"""Largest relative difference between two runs that is due to rounding."""

_NAMES = 4
"""Most names in a sentence."""


@dataclass(frozen=True, slots=True)
class OwnSteps:
    """What halving the communication steps shows about the FMUs' own steps, as sentences.

    Attributes
    ----------
    limits : tuple of str
        Own steps that are longer than the communication steps: outputs are held between them, so that shorter
        communication steps change nothing.
    unseen : tuple of str
        Errors of the FMUs' own solvers, which the estimate does not contain.
    """

    limits: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @classmethod
    def of(cls, pair: Pair) -> OwnSteps:
        """From the judged outputs of the last two runs."""
        columns = pair.fine.select(list(pair.names)).expand().columns
        time = pair.fine.time
        held = {n: own for n, v in columns.items() if (own := _held_for(time, v)) is not None}
        smooth = {n for n, v in columns.items() if n not in held and np.ptp(v) > 0.0}
        return cls(tuple(_held(held)), tuple(_equal(pair, smooth)))


def _held(held: Mapping[str, float]) -> Iterator[str]:
    """Outputs that are held, by the time between their changes."""
    for own in sorted({f"{time:.3g}" for time in held.values()}, key=float):
        names = [f"'{name}'" for name, time in held.items() if f"{time:.3g}" == own]
        change, its = (
            ("changes", "its FMU has") if len(names) == 1 else ("change", "their FMUs have")
        )
        yield (
            f"{listed(names, _NAMES)} {change} only every {own} s: {its} own steps, which are longer than the "
            "communication steps. Their error is not measured, and shorter communication steps do not reduce it; shorten "
            "them by a parameter of the FMU, if it has one"
        )


def _equal(pair: Pair, smooth: Collection[str]) -> Iterator[str]:
    """Outputs that change over time, but not with the communication steps."""
    equal = [
        f"'{d.name}'" for d in pair.differences() if d.relative <= ROUNDING and d.name in smooth
    ]
    if equal:
        do, which = ("does", "its FMU's") if len(equal) == 1 else ("do", "their FMUs'")
        yield (
            f"{listed(sorted(equal), _NAMES)} {do} not depend on the communication steps; the error of {which} own solver "
            "is not in the estimate"
        )


def _held_for(time: Array, values: Array) -> float | None:
    """The time in s between two changes of an output, if it is held over several communication steps; otherwise None."""
    present = ~np.ma.getmaskarray(values)
    time, values = time[present], np.ma.getdata(values)[present]
    changed = np.flatnonzero(np.diff(values)) + 1
    steps = np.diff(time)
    if len(changed) < LEAST_CHANGES or not (steps > 0.0).any():
        return None
    step = float(np.median(steps[steps > 0.0]))
    between = np.diff(time[changed])
    own = float(np.median(between))
    near = np.abs(between - own) <= 1.01 * step  # it ends at a communication point
    return own if own >= LONGER * step and near.mean() >= REGULAR else None


AnySettings = TypeVar("AnySettings", bound=Settings)

RUNS = 3
"""Number of runs of an attempt: one with the controller, and two in which each step of the run before is halved."""

MOST_TRIES = 8
"""Largest number of attempts; an error that is still too large does not depend on the steps."""

MOST_SLOW = 2
"""Number of attempts with almost no decrease of the error after which there is no further attempt."""

MOST_FAILED = 3
"""Number of failed attempts after which the steps are not the cause of the failures."""

FAILED_LINES = 2
"""Number of failed attempts with inputs on lines after which inputs are held."""

MOST_ROWS = 500_000
"""Largest number of rows of a run; otherwise steps could be shortened without end."""

AIM = 0.7
"""The next attempt aims at this fraction of the accuracy, because an estimate by larger steps is not exact."""

SHORTEST, LONGEST = 0.05, 0.7
"""Limits of the factor by which steps become shorter from attempt to attempt."""

AFTER_FAILURE = 0.25
"""The factor after a failed run, for example a run whose outputs became infinite."""

ORDERS = (0.5, 1.5)
"""Limits of the order of the error. An error of order 2 is estimated 1.6 times too large; an error of order 1 that
decreases faster by accident is not estimated much too small."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The results and their accuracy."""

    results: Results
    """Results of the last run, in which each step of the controller is halved twice."""
    worst: Difference
    """Of the output with the largest error relative to its scale."""
    order: float
    """The power of the step size with which this error decreases, measured in the runs."""
    accuracy: float
    runs: int
    """Number of simulations."""
    own_steps: OwnSteps = OwnSteps()
    """Whether the FMUs' own steps limit the accuracy."""

    @property
    def is_enough(self) -> bool:
        """Whether the error is at most the accuracy."""
        return self.worst.relative <= self.accuracy


def common(choices: Sequence[Choice]) -> Choice:
    """One choice for all structures of a system: that of the structure that allows least."""

    def demands(choice: Choice) -> int:
        kinds = [type(None), EmbeddedOrders, PowerResidual]
        return kinds.index(type(choice.estimator))

    least = min(choices, key=demands)
    return replace(
        least,
        degree=min(c.degree for c in choices),
        rejects=least.rejects and all(c.rejects for c in choices),
        own_steps=tuple(dict.fromkeys(text for c in choices for text in c.own_steps)),
    )


def judged_columns(structures: Sequence[Plan]) -> dict[str, float]:
    """Columns of the results by which an error is measured, and the magnitude that is usual for each: powers of bonds, and
    all recorded continuous outputs and states (:attr:`Recorded.is_judged`); of all structures of the system."""
    found = {name: usual for plan in structures for name, usual in _judged_columns(plan)}
    discrete = dict.fromkeys(name for plan in structures for name in _discrete_numbers(plan))
    if discrete and not found:
        raise OptionError(
            "An accuracy is measured by continuous outputs, and all recorded ones are declared discrete (variability): "
            f"{listed(discrete)}. Leave accuracy (--accuracy) out, and use --check-step."
        )
    return found


def _judged_columns(plan: Plan) -> Iterator[tuple[str, float]]:
    signals = {c.variable for c in plan.recorded if c.is_signal}
    for bond in plan.power_bonds:
        name = f"{bond.name}.{BondSignal.POWER.name.lower()}"
        if name in signals:
            yield name, bond.scale or 1.0
    yield from ((c.name, c.usual or 1.0) for c in plan.recorded if c.is_judged)


def _discrete_numbers(plan: Plan) -> list[str]:
    """Recorded floating-point outputs that are declared discrete, as some tools do with all outputs."""
    return [
        f"'{c.name}'"
        for c in plan.recorded
        if c.instance is not None
        and (variable := plan.instances[c.instance].model.variable(c.variable)) is not None
        and variable.type.is_float
        and variable.variability is Variability.DISCRETE
    ]


def reach(
    settings: AnySettings,
    choice: Choice,
    size: Fraction,
    usual: Mapping[str, float],
    run: Callable[[AnySettings], Results],
) -> Reached:
    """Shorten the steps until the estimated error of each output is at most the accuracy.

    Inputs that were chosen are held if outputs grow without bound with lines: also shorter steps do not end that in a loop
    whose dependencies the FMUs do not declare.

    Each attempt has three runs: one with the controller, one in which each of its steps is halved, and one in which
    those steps are halved. All three give the order of the error; the last two give its estimate (:class:`Pair`): root
    mean square over time, relative to the largest absolute value of the output.

    Parameters
    ----------
    size : Fraction
        Largest step size of the first run in s.
    usual : name → float
        The columns by which the error is measured, and the magnitude that is usual for each. Values that are only rounding
        errors beside it have no relative error.
    run : Settings → Results
        Simulates.

    Raises
    ------
    OptionError
        If there are no such columns.
    SimulationError
        If runs with shorter steps also fail. Interrupted is raised immediately.
    """
    if not usual:
        raise OptionError(
            "An accuracy is given, but no continuous output is recorded to measure it. Record one: "
            "output_variables (--output-variable)."
        )
    factor, runs, slow, failed = 1.0, 0, 0, 0
    for _ in range(MOST_TRIES):
        runs += RUNS
        single = replace(settings, **choice.changes(size, factor), output_interval=None)
        try:
            pair = _halved_twice(single, usual, run)
        except Interrupted:
            raise
        except SimulationError:
            failed += 1
            if failed == FAILED_LINES and (held := choice.held()) is not None:
                choice, factor, failed = held, 1.0, 0
                continue
            if failed == MOST_FAILED:
                raise
            factor *= AFTER_FAILURE
            continue
        if pair.explodes and (held := choice.held()) is not None:
            choice, factor, slow = held, 1.0, 0
            continue
        worst = _worst(pair, usual)
        if worst.relative <= choice.accuracy:
            break
        wanted = (AIM * choice.accuracy / worst.relative) ** (1.0 / pair.order)
        shorter = min(max(SHORTEST, wanted), LONGEST)  # NaN, too
        slow = slow + 1 if pair.order <= ORDERS[0] else 0
        if slow == MOST_SLOW or pair.fine.rows > MOST_ROWS * shorter:
            break
        factor *= shorter
    thinned = _thinned(pair.fine, settings.output_interval)
    own = OwnSteps.of(pair)
    found = Reached(thinned, worst, pair.order, choice.accuracy, runs, own)
    notes = (
        *choice.notes,
        str(choice),
        *own.limits,
        *choice.own_steps,
        *own.unseen,
        in_words(found),
    )
    return replace(found, results=_noted(found.results, *notes))


def in_words(reached: Reached) -> str:
    """The error of the results in words, for the end of a run."""
    worst = reached.worst
    unit = f" {worst.unit}" if worst.unit else ""
    slow = reached.order <= ORDERS[0] and not reached.is_enough
    why = (
        ". It hardly decreases with the steps: the FMUs' own steps limit it"
        if reached.own_steps.limits
        else ". It hardly decreases with the steps: the outputs jump or have events. Use an event clock if FMUs publish "
        "their events (--event-clock predictive)"
    )
    many = f"smaller steps would give more than {MOST_ROWS:,} rows"
    tried = f"the steps were shortened {MOST_TRIES - 1} times"
    end = (
        ""
        if reached.is_enough
        else f". It ended here because {tried if reached.runs >= RUNS * MOST_TRIES else many}"
    )
    return (
        f"accuracy {reached.accuracy:g} {_judgement(reached)}: the error is about "
        f"{worst.relative:.2g} of the largest value in '{worst.name}' (root mean square), at most "
        f"{worst.largest:.3g}{unit} at t = {worst.time:.6g} s, estimated by halving all steps "
        f"(order {reached.order:.2g}); {reached.runs} simulations"
        f"{why if slow else end}"
    )


def _judgement(reached: Reached) -> str:
    if not reached.is_enough:
        return "not reached"
    if reached.own_steps.limits:
        return "not confirmed"
    # steps change nothing: all error that there may be is that of the FMUs' own solvers
    return "reached by the coupling alone" if reached.worst.relative <= ROUNDING else "reached"


def _halved_twice(
    single: AnySettings, usual: Mapping[str, float], run: Callable[[AnySettings], Results]
) -> Pair:
    """The second and the third of three runs, each with steps half as long as the one before."""
    runs = [run(single)]
    for _ in range(RUNS - 1):
        rule = single.step_size
        assert isinstance(rule, StepRule)
        single = replace(single, step_size=half(rule, runs[-1]))
        runs.append(run(single))
    first, second, third = runs
    pair = Pair(second, third, [*usual])
    before = {d.name: d.rms for d in Pair(first, second, [*usual]).differences()}
    return replace(pair, order=_observed_order(before, _worst(pair, usual)))


def _worst(pair: Pair, usual: Mapping[str, float]) -> Difference:
    """The largest relative difference of a column whose values are more than rounding errors; if none is, the largest."""
    found = pair.differences()
    return next(
        (d for d in found if d.scale > ROUNDING * usual[column_of(d.name, usual)]), found[-1]
    )


def _observed_order(before: Mapping[str, float], worst: Difference) -> float:
    """The power of the step size with which the largest error of all columns decreases; ``before``: the rms of each."""
    rms = before.get(worst.name, 0.0)
    if not (rms > 0.0 and worst.rms > 0.0):  # NaN, too
        return ORDERS[0]
    return min(max(ORDERS[0], log2(rms / worst.rms)), ORDERS[1])


def _noted(results: Results, *notes: str) -> Results:
    """The results with further notes, and with their number of rows in the statistics."""
    statistics = results.statistics
    statistics = replace(statistics, rows=results.rows, notes=(*statistics.notes, *notes))
    return replace(results, statistics=statistics)


def _thinned(results: Results, interval: float | None) -> Results:
    """The rows of a run with an output interval: the first at or after each multiple, and the last one."""
    if interval is None:
        return results
    index = output_intervals(results.time, float(results.time[0]), interval)
    kept = np.flatnonzero(np.concatenate([[True], np.diff(index) > 0]))
    rows = np.union1d(kept, [results.rows - 1])
    return replace(
        results,
        time=results.time[rows],
        index=results.index[rows],
        columns={name: values[rows] for name, values in results.columns.items()},
    )
