"""Steps inside of FMUs that limit an accuracy: shorter communication steps do not shorten them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmimaster.front.accuracy_pair import Pair
from fmimaster.system.notes import listed

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
    changed = np.flatnonzero(np.diff(values)) + 1
    steps = np.diff(time)
    if len(changed) < LEAST_CHANGES or not (steps > 0.0).any():
        return None
    step = float(np.median(steps[steps > 0.0]))
    between = np.diff(time[changed])
    own = float(np.median(between))
    near = np.abs(between - own) <= 1.01 * step  # it ends at a communication point
    return own if own >= LONGER * step and near.mean() >= REGULAR else None
