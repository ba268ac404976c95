"""The sequences of least predicted error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

import numpy as np

from fmimaster.sequences.structure import topological_order
from fmimaster.studies.optimization.prediction import Prediction
from fmimaster.studies.optimization.trial import Arc, stale_arcs

MOST_ENUMERATED = 8
"""Largest number of units for which all sequences are evaluated."""
_DIGITS = 10
"""Number of digits in comparisons of predicted errors: for equal errors names decide, not rounding."""


def best_predicted(
    prediction: Prediction, units: Sequence[str], start: Sequence[str], most: int
) -> list[tuple[str, ...]]:
    """The best sequences by their predicted errors, the best one first; one for each set of stale arcs.

    Parameters
    ----------
    units
        All units. For at most 8 units all sequences are evaluated. For more, an insertion local search from ``start``
        finds a sequence that no move of one unit improves; the other results are the best sequences during this search.
    most
        Largest number of results.
    """
    if len(units) <= MOST_ENUMERATED:
        found = {stale_arcs(s, prediction.arcs) for s in permutations(sorted(units))}
    else:
        found = set(_local_search(prediction, tuple(start)))
    orientations = sorted(found, key=sorted)
    stale = np.array([[a in o for a in prediction.arcs] for o in orientations], bool)
    errors = prediction.errors(stale)
    ranked = sorted(
        (rounded(error), canonical(units, prediction.arcs, orientation))
        for error, orientation in zip(errors.tolist(), orientations, strict=True)
        if np.isfinite(error)
    )
    return [sequence for _, sequence in ranked[:most]]


def canonical(units: Iterable[str], arcs: Iterable[Arc], stale: frozenset[Arc]) -> tuple[str, ...]:
    """The first sequence in alphabetical order with exactly these stale arcs."""
    follows: dict[str, set[str]] = {u: set() for u in units}
    for source, target in arcs:
        first, second = (target, source) if (source, target) in stale else (source, target)
        follows[first].add(second)
    return tuple(topological_order(follows))


def rounded(error: float) -> float:
    """An error rounded to the digits that are used in comparisons."""
    return float(f"{error:.{_DIGITS}g}")


def _local_search(prediction: Prediction, start: tuple[str, ...]) -> Iterator[frozenset[Arc]]:
    """Orientations on the way from a sequence to one that no move of one unit improves."""
    current = start
    least = rounded(prediction.error(stale_arcs(current, prediction.arcs)))
    yield stale_arcs(current, prediction.arcs)
    improved = True
    while improved:
        improved = False
        for unit in sorted(start):
            moves = list(dict.fromkeys(_moves(current, unit, prediction.arcs)))
            stale = [stale_arcs(move, prediction.arcs) for move in moves]
            marks = [[a in s for a in prediction.arcs] for s in stale]
            errors = prediction.errors(np.array(marks, bool).reshape(-1, len(prediction.arcs)))
            yield from stale
            for error, move in zip(map(rounded, errors.tolist()), moves, strict=True):
                if error < least:
                    least, current, improved = error, move, True


def _moves(sequence: tuple[str, ...], unit: str, arcs: Sequence[Arc]) -> Iterator[tuple[str, ...]]:
    """The sequence with the unit at the other places that make a difference: next to its neighbours."""
    others = [u for u in sequence if u != unit]
    neighbours = {a for arc in arcs if unit in arc for a in arc} - {unit}
    for k, other in enumerate(others):
        if other in neighbours:
            yield (*others[: k + 1], unit, *others[k + 1 :])
            yield (*others[:k], unit, *others[k:])
