"""The signature method: finds a good sequence from repeated runs, without knowledge about the components."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError
from fmimaster.studies.optimization.prediction import Prediction, best_predicted, predict, rounded
from fmimaster.studies.optimization.trial import (
    Arc,
    SimulationTrial,
    Trials,
    relative_error,
    rms,
    stale_arcs,
)


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
    base : tuple of str
        The sequence from which signatures were measured.
    candidates : tuple of Candidate
        The best one first, by the distance from the reference if it was simulated, otherwise by the prediction.
        Sequences with failed simulations are last.
    signatures : arc → size
        Of the arcs whose signature is known.
    unknown : tuple of Arc
        Arcs whose runs failed or were not made. They remain as with the base sequence.
    prediction : Prediction
        Of every sequence.
    has_reference : bool
        Whether there is a run with half the step size.
    """

    base: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    signatures: Mapping[Arc, float]
    unknown: tuple[Arc, ...]
    prediction: Prediction
    has_reference: bool

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
    4. Predict, see :class:`fmimaster.studies.optimization.prediction.Prediction`.
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
        best = best_predicted(prediction, base, start, max(self.verified, 1))
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
        yield arc, next(filter(_is_known, (_signature(trials, s, arc) for s in sequences)), None)


def _signature(trials: Trials, sequence: tuple[str, ...], arc: Arc) -> NDArray[np.float64] | None:
    """Change of the outputs if an arc that is fresh in a sequence is stale; None if a run fails."""
    fresh = trials(SimulationTrial(sequence))
    late = None if fresh is None else trials(SimulationTrial(sequence, frozenset({arc})))
    return None if fresh is None or late is None else late - fresh


def _moved(base: tuple[str, ...], arc: Arc) -> tuple[str, ...]:
    """The sequence with the target of an arc directly after its source."""
    source, target = arc
    return tuple(
        name
        for unit in base
        if unit != target
        for name in ((unit, target) if unit == source else (unit,))
    )


def _is_known(signature: NDArray[np.float64] | None) -> bool:
    return signature is not None


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
    return Optimum(
        base, tuple(candidates), prediction.weights(), unknown, prediction, reference is not None
    )


def _if_known(number: float) -> float | None:
    return number if np.isfinite(number) else None


def _merit(candidate: Candidate) -> tuple[bool, float]:
    """Less is better: the simulated error, otherwise the predicted one. Errors that agree up to rounding are equal."""
    error = candidate.predicted if candidate.measured is None else candidate.measured
    return error is None, rounded(error or 0.0)
