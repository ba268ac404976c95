"""The error of every sequence, predicted by the signatures of the arcs, and the sequences of least predicted error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from fmimaster.sequences.structure import topological_order
from fmimaster.studies.optimization.trial import Arc, rms, stale_arcs


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The predicted error of a sequence: the error of a base sequence, plus and minus the signatures of other stale
    arcs.

    ``mean over outputs of rms(Y_b - Y_ref + sum of E_e over arcs stale instead - sum of E_e over arcs fresh instead) /
    rms(Y_b)``. The signature E_e of an arc is the change of the outputs if the arc is stale. Signs are kept, because
    errors of different arcs can cancel, which a sum of weights cannot express.

    Attributes
    ----------
    arcs : tuple of Arc
    stale : shape (arcs,)
        Whether each is stale in the base sequence.
    known : shape (arcs,)
        Whether its signature is known; an arc without one must stay as it is.
    products : shape (outputs, 1 + arcs, 1 + arcs)
        Mean products over the points of the base's error and the signatures, relative to the square of ``rms(Y_b)``: the
        errors are quadratic forms of them.

    Source: fmimaster, docs/trigger-sequence.md ("signature method").
    """

    arcs: tuple[Arc, ...]
    stale: NDArray[np.bool_]
    known: NDArray[np.bool_]
    products: NDArray[np.float64]

    def errors(self, stale: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Predicted errors of orientations: shape (k, arcs), whether each arc is stale → (k,); infinite if not known."""
        return self._sizes(stale, 1.0)

    def _sizes(self, stale: NDArray[np.bool_], error_of_base: float) -> NDArray[np.float64]:
        change = stale.astype(float) - self.stale
        z = np.hstack([np.full((len(stale), 1), error_of_base), change])
        squares = np.stack([np.sum((z @ one) * z, axis=1) for one in self.products])
        # rounding makes a vanishing square negative
        sizes: NDArray[np.float64] = np.mean(np.sqrt(np.maximum(squares, 0.0)), axis=0)
        sizes[np.any(change[:, ~self.known] != 0, axis=1)] = np.inf
        return sizes

    def error(self, stale: frozenset[Arc]) -> float:
        """Predicted error of one orientation, given by its stale arcs; infinite if not known."""
        return float(self.errors(self._marks(stale))[0])

    def difference(self, stale: frozenset[Arc]) -> float:
        """Predicted difference of the outputs of one orientation from those of the base; infinite if not known."""
        return float(self._sizes(self._marks(stale), 0.0)[0])

    def _marks(self, stale: frozenset[Arc]) -> NDArray[np.bool_]:
        return np.array([[arc in stale for arc in self.arcs]], bool)

    def weights(self) -> dict[Arc, float]:
        """Size of each signature that is known: the mean over the outputs of its relative root mean square."""
        sizes = np.mean(np.sqrt(np.diagonal(self.products, axis1=1, axis2=2)[:, 1:]), axis=0)
        return {a: float(w) for a, w, k in zip(self.arcs, sizes, self.known, strict=True) if k}


def predict(
    base: NDArray[np.float64],
    reference: NDArray[np.float64] | None,
    signatures: Mapping[Arc, NDArray[np.float64] | None],
    stale: frozenset[Arc],
) -> Prediction:
    """A prediction from simulations.

    Parameters
    ----------
    base, reference : shape (points, outputs)
        Outputs with the base sequence, and more accurate ones. Without these, the error of the base is taken for the sum of
        the signatures of its stale arcs.
    signatures : arc → shape (points, outputs), or None if it is not known
    stale
        Arcs that are stale with the base sequence.
    """
    arcs = tuple(sorted(signatures))
    known = [signatures[arc] is not None for arc in arcs]
    each = [np.zeros_like(base) if s is None else s for s in (signatures[a] for a in arcs)]
    if reference is not None:
        error = base - reference
    else:
        late = [e for a, e in zip(arcs, each, strict=True) if a in stale]
        error = np.sum(late, axis=0) if late else np.zeros_like(base)
    scale = rms(base)
    counted = scale > 0
    signals = np.stack([error, *each])[:, :, counted] / scale[counted]
    points = len(base)
    products = np.stack([one @ one.T / points for one in np.moveaxis(signals, 2, 0)])
    return Prediction(arcs, np.array([a in stale for a in arcs], bool), np.array(known), products)


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
