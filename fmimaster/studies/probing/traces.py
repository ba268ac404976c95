"""Traces of measured runs, and how they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmimaster.cards.measured import Repetition


@dataclass(frozen=True, slots=True)
class StepTrace:
    """Values of the observed variables after each step, from the start on.

    Attributes
    ----------
    values : shape (1 + steps, elements)
    ended : str
        Why there are fewer steps than planned; empty if there are not.
    terminated : bool
        Whether the FMU has ended the simulation, which it may do.
    """

    values: NDArray[np.float64]
    ended: str = ""
    terminated: bool = False

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.float64]]) -> StepTrace:
        """The trace with these rows."""
        return cls(np.array(rows))


def differences(
    names: Sequence[str],
    nominal: NDArray[np.float64],
    one: NDArray[np.float64],
    other: NDArray[np.float64],
) -> Mapping[str, float]:
    """Variable → largest relative difference of its elements, as far as both traces go; only those that differ."""
    rows = min(len(one), len(other))
    a, b = one[:rows], other[:rows]
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.maximum(np.abs(a), np.abs(b)), nominal)
        apart = np.abs(a - b) / size
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    apart = np.where(same, 0.0, np.where(np.isfinite(apart), apart, 1.0))
    largest = apart.max(axis=0, initial=0.0)
    found: dict[str, float] = {}
    for name, value in zip(names, largest.tolist(), strict=True):
        if value > 0.0:
            found[name] = max(found.get(name, 0.0), value)
    return found


def moved(names: Iterable[str], values: NDArray[np.float64]) -> int:
    """Number of variables that change along a trace."""
    changed = ~((values == values[:1]) | (np.isnan(values) & np.isnan(values[:1]))).all(axis=0)
    return len({name for name, has in zip(names, changed.tolist(), strict=True) if has})


def compared(
    names: Sequence[str], nominal: NDArray[np.float64], one: StepTrace, other: StepTrace
) -> Repetition:
    """Two traces of the same steps."""
    rows = min(len(one.values), len(other.values))
    return Repetition(
        steps=rows - 1,
        moved=moved(names, one.values[:rows]),
        differences=differences(names, nominal, one.values, other.values),
    )
