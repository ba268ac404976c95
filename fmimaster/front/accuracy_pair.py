"""Two runs, the second with half the step size: an error estimate, and values extrapolated to the step size 0."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.instants.grid import rounding
from fmimaster.results.columns import has_mask
from fmimaster.results.results import Results
from fmimaster.steps.halved import Halved
from fmimaster.steps.step_rule import StepRule

Array = NDArray[np.float64]

GROWN = 0.9
"""Difference of two runs, as a fraction of the largest value of the second one, that shows a value at least 10 times larger
there."""

MOST_APART = 0.01
"""Largest sum of the differences of times of events in both runs, as a fraction of their length, that is no error of
outputs: each event has moved a little."""

STEEPEST = 3.0
"""Largest slope of a column at a row, in those of the steps beside it: a jump, which is one steep step, does not spread."""


def half(rule: StepRule[Any], coarse: Results) -> StepRule[Any]:
    """The rule of a run whose steps are half as long as those of an earlier one.

    Parameters
    ----------
    rule
        The rule of the earlier run.
    coarse
        Results of that run, with a row for each communication point. Its events are no points of the other run, which
        finds its own: two points beside one event would divide it.
    """
    return rule.halved() or Halved(times=tuple(map(float, coarse.time[_alone(coarse.time)])))


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of a column between the fine run and the coarse run."""

    name: str
    unit: str
    scale: float
    """The largest absolute value of the fine run."""
    rms: float
    """Root mean square of the difference over time."""
    largest: float
    """The largest absolute difference."""
    time: float
    """Its time in s."""

    @property
    def relative(self) -> float:
        """The root mean square relative to the scale; 0 if the column is always 0."""
        return self.rms / self.scale if self.scale != 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of one system, the second with steps half as long.

    For small steps the error is proportional to ``h**order``, also with steps that vary, because both runs have the same
    distribution of steps over time. The difference is then ``2**order - 1`` times the error of the fine run.

    Parameters
    ----------
    coarse, fine : Results
        With a row for each communication point.
    names : Sequence[str]
        The compared columns: floating point numbers.
    order : float
        1 with held inputs, and with FMUs whose own error falls with the communication step. With linear inputs and exact
        FMUs it is 2; the estimate by order 1 is then 3 times as large as the error, on the safe side.

    Source: Richardson (1911); Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.9.
    """

    coarse: Results
    fine: Results
    names: Sequence[str]
    order: float = 1.0

    def __post_init__(self) -> None:
        if not self.order > 0.0:
            raise OptionError(f"order={self.order}: expected a positive number, such as 1.")
        if len(self._rows()) < 2:
            raise OptionError(
                "The two runs have fewer than two points of time in common. Expected runs over the same time that have "
                "recorded a row for each of their communication points."
            )

    def differences(self) -> tuple[Difference, ...]:
        """The differences between both runs.

        Returns
        -------
        tuple of Difference
            One for each column of ``names`` and each element of arrays; the largest relative difference first.
        """
        found = []
        for name, time, coarse, fine in self._columns():
            apart = np.abs(fine - coarse) / (2.0**self.order - 1.0)
            worst = int(np.where(np.isnan(apart), np.inf, apart).argmax())
            found.append(
                Difference(
                    name,
                    self.fine.units.get(column_of(name, self.fine.columns), ""),
                    float(np.abs(fine).max()),
                    _rms(time, apart),
                    float(apart[worst]),
                    float(time[worst]),
                )
            )
        return tuple(sorted(found, key=lambda d: (-_or_infinite(d.relative), d.name)))

    @property
    def explodes(self) -> bool:
        """Whether an output grows without bound, and more with half the steps, unlike one of an unstable model."""
        growing = self.fine.statistics.diverging
        return any(
            d.name in growing and d.largest * (2.0**self.order - 1.0) > GROWN * d.scale
            for d in self.differences()
        )

    @property
    def until(self) -> float | None:
        """Time in s of the end of the fine run, if it ended earlier."""
        end, last = float(self.fine.time[-1]), float(self.coarse.time[-1])
        step = float(np.diff(self.coarse.time).max())
        return end if end < last - rounding(last, step) else None

    def extrapolated(self) -> Results:
        """The fine run with the columns of ``names`` extrapolated to the step size 0.

        Between common communication points the correction is linear. At events, where rows of both runs do not
        belong to the same instant, the correction of the neighbouring points is used.

        Returns
        -------
        Results
            With the rows of the fine run.
        """
        fine = self.fine.expand()
        columns = dict(fine.columns)
        for name, time, coarse, values in self._columns():
            correction = (values - coarse) / (2.0**self.order - 1.0)
            columns[name] = fine.columns[name] + np.interp(fine.time, time, correction)
        return replace(fine, columns=columns)

    def _rows(self) -> NDArray[np.intp]:
        """Rows of the coarse run that have their time alone, from the start to the end of the fine run: those at which the
        fine run has a row, too, if they are at least half of them.

        Between the times of one event in both runs, outputs of one are before it and those of the other behind it. These
        rows are left out, too, unless such times are very different.
        """
        fine = self.fine.time
        if not len(fine):
            return np.empty(0, np.intp)
        rows = _alone(self.coarse.time)
        time = self.coarse.time[rows]
        is_there = (time >= fine[0]) & (time <= fine[-1])
        is_common = _are_in(fine[_alone(fine)], time)
        compared = is_common if 2 * is_common.sum() >= is_there.sum() else is_there
        rows, time = rows[compared], time[compared]
        early, late = map(_several, (self.coarse.time, fine))
        begin, end = _moved(early, late, float(np.diff(time).max(initial=0.0)))
        span = float(time[-1] - time[0]) if len(time) else 0.0
        counts = ~_are_in(late, time)
        if (end - begin).sum() <= MOST_APART * span:
            counts &= begin.searchsorted(time, "right") == end.searchsorted(time)
        found: NDArray[np.intp] = rows[counts]
        return found

    def _columns(self) -> Iterator[tuple[str, Array, Array, Array]]:
        """Name, times in s, values of the coarse run and of the fine run: at the points at which both have one."""
        rows = self._rows()
        time = self.coarse.time[rows]
        coarse, fine = (
            r.select(list(self.names)).expand().columns for r in (self.coarse, self.fine)
        )
        for name in fine:
            one, (other, is_there) = coarse[name][rows], _at(time, self.fine.time, fine[name])
            there = is_there & ~np.ma.getmaskarray(one) if has_mask(one) else is_there
            if there.all():
                yield name, time, one, other
            elif there.sum() > 1:  # the component does not exist all the time
                yield name, time[there], np.ma.getdata(one)[there], other[there]


def _at(wanted: Array, time: Array, values: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Values of a column at other times, and whether there are any: those of its own rows, the first one at an event.

    Between rows they follow cubic polynomials, whose slopes are limited, so that a jump does not spread, and never look
    across an event.
    """
    end = np.searchsorted(time, wanted)
    begin = np.maximum(end - 1, 0)
    is_there = np.ones(len(wanted), np.bool_)
    if has_mask(values):
        absent = np.ma.getmaskarray(values)
        values, is_there = np.ma.getdata(values), ~(absent[begin] | absent[end])
    is_row = time[end] == wanted
    if is_row.all():
        return values[end], is_there
    with np.errstate(all="ignore"):  # infinite values, and events, which take no time
        length = np.diff(time)
        rate = np.diff(values) / length
        slopes = [
            _slope(length, rate, begin, beside)
            for beside in (np.maximum(begin - 1, 0), np.minimum(begin + 1, len(rate) - 1))
        ]
        s = (wanted - time[begin]) / length[begin]
        bends = [length[begin] * (slope - rate[begin]) for slope in slopes]
        found = values[begin] * (1 - s) + values[end] * s
        found += s * (1 - s) * (bends[0] * (1 - s) - bends[1] * s)
    return np.where(is_row, values[end], found), is_there


def _slope(length: Array, rate: Array, step: NDArray[np.intp], beside: NDArray[np.intp]) -> Array:
    """Slopes at the ends of steps towards others: those of parabolas, if limited, and of the step alone beside an event."""
    most = STEEPEST * np.minimum(np.abs(rate[step]), np.abs(rate[beside]))
    middle = length[beside] * rate[step] + length[step] * rate[beside]
    middle /= length[step] + length[beside]
    return np.where(length[beside] > 0.0, np.clip(middle, -most, most), rate[step])


def column_of(element: str, columns: Container[str]) -> str:
    """The column of an element of an array. A scalar of FMI 2.0 may have brackets in its own name."""
    return element if element in columns else element.rpartition("[")[0]


def _are_in(known: Array, times: Array) -> NDArray[np.bool_]:
    """Whether times are known ones; numpy.isin imports numpy.ma, which takes 20 ms."""
    found: NDArray[np.bool_] = known.searchsorted(times) < known.searchsorted(times, "right")
    return found


def _alone(time: Array) -> NDArray[np.intp]:
    """Rows without another one at the same time."""
    apart = np.diff(time) > 0.0
    return np.flatnonzero(np.concatenate([[True], apart]) & np.concatenate([apart, [True]]))


def _moved(early: Array, late: Array, most: float) -> tuple[Array, Array]:
    """Begins and ends, sorted, of the times in which events have moved by at most this time in s: to the nearest one."""
    if not len(early) or not len(late):
        return np.empty(0), np.empty(0)
    behind = late.searchsorted(early).clip(0, len(late) - 1)
    before = (behind - 1).clip(0)
    is_nearer = np.abs(late[before] - early) < np.abs(late[behind] - early)
    nearest = np.where(is_nearer, late[before], late[behind])
    is_same = np.abs(nearest - early) <= most
    one, other = early[is_same], nearest[is_same]
    return np.sort(np.minimum(one, other)), np.sort(np.maximum(one, other))


def _several(time: Array) -> Array:
    """Times of several rows, each once: those of events."""
    apart = np.diff(time) > 0.0
    found: Array = time[1:][~apart & np.concatenate([[True], apart[:-1]])]
    return found


def _rms(time: Array, values: Array) -> float:
    """Root mean square over time, by the trapezoidal rule."""
    h = np.diff(time)
    square = (values[1:] ** 2 + values[:-1] ** 2) / 2.0
    return float(np.sqrt(np.sum(square * h) / np.sum(h)))


def _or_infinite(value: float) -> float:
    """Infinity instead of NaN, to sort NaN after all numbers."""
    return inf if isnan(value) else value
