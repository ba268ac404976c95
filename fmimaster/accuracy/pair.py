"""Two runs, the second with steps half as long: an estimate of its error, and values extrapolated to steps of length 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.control.halved import Halved
from fmimaster.control.multi_rate import MultiRate
from fmimaster.control.step_rule import FixedStep, StepRule
from fmimaster.errors import OptionError
from fmimaster.results.results import Results

Array = NDArray[np.float64]


def half(rule: StepRule[Any], coarse: Results) -> StepRule[Any]:
    """The rule with which each step of an earlier run becomes two.

    Parameters
    ----------
    rule
        With which the earlier run was made.
    coarse
        Results of that run, with a row for each communication point.
    """
    if isinstance(rule, FixedStep):
        return FixedStep(rule.exact_size / 2)
    if isinstance(rule, MultiRate):
        return MultiRate(
            rule.exact_size / 2, {name: rule.size_of(name) / 2 for name in rule.components}
        )
    return Halved(times=tuple(map(float, coarse.time)))


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a column of the fine run is from that of the coarse run."""

    name: str
    unit: str
    scale: float
    """The largest absolute value of the fine run."""
    rms: float
    """Root mean square of the difference over time."""
    largest: float
    """The largest absolute difference."""
    time: float
    """When it occurs, in s."""

    @property
    def relative(self) -> float:
        """The root mean square as a share of the scale; 0 if the column is 0 always."""
        return self.rms / self.scale if self.scale != 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of one system, of which the second has taken steps half as long.

    For small steps the error is proportional to ``h**order``, also with steps that vary, because both runs have the same
    distribution of steps over time. Then the difference is ``2**order - 1`` times the error of the fine run.

    Parameters
    ----------
    coarse, fine : Results
        With a row for each communication point.
    names : Sequence[str]
        The columns that count: floating point numbers, not masked.
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
        if len(self._rows()[0]) < 2:
            raise OptionError(
                "The two runs have fewer than two communication points in common. Expected all points of the coarse run "
                "in the fine one: record all rows of both, and let the fine run halve the steps of the coarse one."
            )

    def differences(self) -> tuple[Difference, ...]:
        """How far both runs are apart.

        Returns
        -------
        tuple of Difference
            One for each column of ``names``, elements of arrays apart: the largest share of its scale first.
        """
        time = self.coarse.time[self._rows()[0]]
        found = []
        for name, coarse, fine in self._columns():
            apart = np.abs(fine - coarse) / (2.0**self.order - 1.0)
            worst = int(np.where(np.isnan(apart), np.inf, apart).argmax())
            found.append(
                Difference(
                    name,
                    self.fine.units.get(name.partition("[")[0], ""),
                    float(np.abs(fine).max()),
                    _rms(time, apart),
                    float(apart[worst]),
                    float(time[worst]),
                )
            )
        return tuple(sorted(found, key=lambda d: (-_or_infinite(d.relative), d.name)))

    def extrapolated(self) -> Results:
        """The fine run with the columns of ``names`` extrapolated to steps of length 0.

        Between common communication points the correction is linear. At events, where rows of both runs do not
        belong to the same instant, it is that of the points around them.

        Returns
        -------
        Results
            With the rows of the fine run.
        """
        time = self.coarse.time[self._rows()[0]]
        fine = self.fine.expand()
        columns = dict(fine.columns)
        for name, coarse, values in self._columns():
            correction = (values - coarse) / (2.0**self.order - 1.0)
            columns[name] = fine.columns[name] + np.interp(fine.time, time, correction)
        return replace(fine, columns=columns)

    def _rows(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of both runs at the same times, where each has one row only."""
        coarse, fine = _alone(self.coarse.time), _alone(self.fine.time)
        _, a, b = np.intersect1d(
            self.coarse.time[coarse], self.fine.time[fine], assume_unique=True, return_indices=True
        )
        return coarse[a], fine[b]

    def _columns(self) -> Iterator[tuple[str, Array, Array]]:
        """Name, values of the coarse run and of the fine run at the common points."""
        a, b = self._rows()
        coarse, fine = (
            r.select(list(self.names)).expand().columns for r in (self.coarse, self.fine)
        )
        for name in fine:
            yield name, coarse[name][a], fine[name][b]


def _alone(time: Array) -> NDArray[np.intp]:
    """Rows without another one at the same time."""
    apart = np.diff(time) > 0.0
    return np.flatnonzero(np.concatenate([[True], apart]) & np.concatenate([apart, [True]]))


def _rms(time: Array, values: Array) -> float:
    """Root mean square over time, by the trapezoidal rule."""
    h = np.diff(time)
    square = (values[1:] ** 2 + values[:-1] ** 2) / 2.0
    return float(np.sqrt(np.sum(square * h) / np.sum(h)))


def _or_infinite(value: float) -> float:
    """NaN counts as larger than all numbers."""
    return inf if isnan(value) else value
