"""The signature method: finds a good sequence from repeated runs, without knowledge about the components."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.sequences.structure import topological_order
from fmimaster.studies.optimization.trial import (
    Arc,
    SimulationTrial,
    Trials,
    relative_error,
    rms,
    stale_arcs,
)

MOST_ENUMERATED = 8
"""Largest number of units for which all sequences are evaluated."""
_DIGITS = 10
"""Number of digits in comparisons of predicted errors: for equal errors names decide, not rounding."""


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

    def errors(self, stale: NDArray[np.bool_], of_base: float = 1.0) -> NDArray[np.float64]:
        """Predicted errors of orientations: shape (k, arcs), whether each arc is stale → (k,); infinite if not known.

        With ``of_base=0`` they are the differences from the base.
        """
        change = stale.astype(float) - self.stale
        z = np.hstack([np.full((len(stale), 1), of_base), change])
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
        return float(self.errors(self._marks(stale), 0.0)[0])

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


def _best_predicted(
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sequence and its accuracy; None for unknown values.

    Each number is a mean over the outputs: root mean square, relative to that of the output with the base sequence.

    Attributes
    ----------
    predicted, measured : float
        Error: predicted, and the distance of a simulation from the reference.
    predicted_difference, difference : float
        Difference from the results with the base sequence: predicted, and of a simulation.
    """

    sequence: tuple[str, ...]
    predicted: float | None = None
    measured: float | None = None
    predicted_difference: float | None = None
    difference: float | None = None


@dataclass(frozen=True, slots=True)
class Optimum:
    """Result of the signature method.

    Attributes
    ----------
    candidates : tuple of Candidate
        The best one first, by the distance from the reference if it was simulated, otherwise by the prediction.
        Sequences with failed simulations are last.
    signatures : arc → size
        Of the arcs whose signature is known.
    unknown : tuple of Arc
        Arcs whose runs failed or were not made. They remain as with the base sequence.
    prediction : Prediction
        Of every sequence.
    """

    candidates: tuple[Candidate, ...]
    signatures: Mapping[Arc, float]
    unknown: tuple[Arc, ...]
    prediction: Prediction

    @property
    def sequence(self) -> tuple[str, ...]:
        """The sequence that was chosen."""
        return self.candidates[0].sequence


@dataclass(frozen=True, slots=True)
class Signature:
    """Measure the effect of each stale arc on the outputs, predict the error of every sequence, and verify the best
    ones.

    Parameters
    ----------
    verified : int, at least 0
        Number of the best predicted sequences that are simulated; the one nearest to the reference is chosen. With
        large steps the prediction depends on the base sequence; these simulations mostly correct this.

    Notes
    -----
    1. Simulate a base sequence b, and its reverse: every arc is fresh in one of them. (If the reverse fails, b with the
       target of the arc directly after its source is used instead.)
    2. For each arc e, the same with e stale where it was fresh: the difference is its signature E_e.
    3. Simulate b with half the step size: ``Y_ref = (2^p Y_half - Y_b) / (2^p - 1)`` at the common points (Richardson
       1911), p the order of the algorithm.
    4. Predict, see :class:`fmimaster.studies.optimization.signature.Prediction`.
    5. Find the sequences of least predicted error: of up to 8 units among all, else by an insertion local search from the
       sequence of least total signature.
    6. Simulate the best ones, and choose the nearest to Y_ref.

    The number of simulations is ``arcs + 3 + verified``. Source: fmimaster, docs/trigger-sequence.md.
    """

    verified: int = 5

    def __post_init__(self) -> None:
        if self.verified < 0:
            raise OptionError(f"verified={self.verified}: expected 0 or more.")

    def trials(self, arcs: Collection[Arc]) -> int:
        """Largest number of simulations that it needs."""
        return len(arcs) + 3 + self.verified

    def search(
        self,
        trials: Trials,
        arcs: Collection[Arc],
        base: tuple[str, ...],
        cheapest: Callable[[Mapping[Arc, float]], Sequence[str]],
        *,
        order: int = 1,
        others: Iterable[tuple[str, ...]] = (),
    ) -> Optimum:
        """Search for the best sequence.

        Parameters
        ----------
        base
            A sequence of all units.
        cheapest
            Weights of the arcs → the sequence of least total weight of stale arcs; where a local search starts.
        order
            Of the algorithm's error.
        others
            Further sequences to simulate.

        Raises
        ------
        OptionError
            If the base sequence itself cannot be simulated, or all its outputs are 0.
        """
        known = trials(SimulationTrial(base))
        if known is None:
            raise OptionError(
                f"The base sequence {', '.join(base)} cannot be simulated. Give another one, or a smaller step size."
            )
        if not np.any(rms(known) > 0):
            raise OptionError(
                "All recorded outputs are 0 in the whole run, so sequences cannot be compared. Give the system an "
                "input, other start values or a later stop time, or record other outputs."
            )
        half = trials(SimulationTrial(base, halved=True))
        factor = 2.0**order
        reference = None if half is None else (factor * half - known) / (factor - 1.0)
        stale = stale_arcs(base, arcs)
        signatures = dict(_signatures(trials, sorted(arcs), base))
        prediction = predict(known, reference, signatures, stale)
        start = cheapest(prediction.weights())
        best = _best_predicted(prediction, base, start, max(self.verified, 1))
        # sequences with the same stale arcs give the same results
        same = {stale_arcs(s, arcs): s for s in (base[::-1], base)}
        best = [same.setdefault(stale_arcs(s, arcs), s) for s in best]
        others = [same.setdefault(stale_arcs(s, arcs), s) for s in others]
        verified = best[: self.verified] if reference is not None else []
        for sequence in (*verified, *others):
            trials(SimulationTrial(sequence))
        return _optimum(trials, prediction, base, best, verified, known, reference)


def _signatures(
    trials: Trials, arcs: Sequence[Arc], base: tuple[str, ...]
) -> Iterator[tuple[Arc, NDArray[np.float64] | None]]:
    """The signature of each arc, None if it is not known."""
    stale = stale_arcs(base, arcs)
    for arc in arcs:
        sequences = [base[::-1], _moved(base, arc)] if arc in stale else [base]
        measured = (_signature(trials, sequence, arc) for sequence in sequences)
        yield arc, next((found for found in measured if found is not None), None)


def _signature(trials: Trials, sequence: tuple[str, ...], arc: Arc) -> NDArray[np.float64] | None:
    """Change of the outputs if an arc that is fresh in a sequence is stale; None if a run fails."""
    fresh = trials(SimulationTrial(sequence))
    late = None if fresh is None else trials(SimulationTrial(sequence, frozenset({arc})))
    return None if fresh is None or late is None else late - fresh


def _moved(base: tuple[str, ...], arc: Arc) -> tuple[str, ...]:
    """The sequence with the target of an arc directly after its source."""
    source, target = arc
    others = [unit for unit in base if unit != target]
    at = others.index(source) + 1
    return (*others[:at], target, *others[at:])


def _optimum(
    trials: Trials,
    prediction: Prediction,
    base: tuple[str, ...],
    best: Sequence[tuple[str, ...]],
    verified: Sequence[tuple[str, ...]],
    known: NDArray[np.float64],
    reference: NDArray[np.float64] | None,
) -> Optimum:
    """The candidates: all sequences that were simulated, and the best predicted ones."""
    scale = rms(known)
    simulated = [t.sequence for t in trials.done() if not t.stale and not t.halved]
    candidates = []
    for sequence in dict.fromkeys([*best, *simulated]):
        late = stale_arcs(sequence, prediction.arcs)
        rows = trials(SimulationTrial(sequence)) if sequence in simulated else None
        candidates.append(
            Candidate(
                sequence,
                _if_known(prediction.error(late)),
                None
                if rows is None or reference is None
                else relative_error(rows, reference, scale),
                _if_known(prediction.difference(late)),
                None if rows is None else relative_error(rows, known, scale),
            )
        )
    failed = {s for s in verified if s not in simulated}
    candidates.sort(
        key=lambda c: (c.sequence in failed, *_merit(c), c.sequence != base, c.sequence)
    )
    unknown = tuple(a for a, k in zip(prediction.arcs, prediction.known, strict=True) if not k)
    return Optimum(tuple(candidates), prediction.weights(), unknown, prediction)


def _if_known(number: float) -> float | None:
    return number if np.isfinite(number) else None


def _merit(candidate: Candidate) -> tuple[bool, float]:
    """Less is better: the simulated error, otherwise the predicted one. Errors that agree up to rounding are equal."""
    error = candidate.predicted if candidate.measured is None else candidate.measured
    return error is None, rounded(error or 0.0)
