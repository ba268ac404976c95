"""The signature method on made-up runs, whose errors are sums of signatures exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError
from fmimaster.studies.optimization.signature import Optimum, Signature, canonical
from fmimaster.studies.optimization.trial import (
    Arc,
    SimulationTrial,
    relative_error,
    rms,
    stale_arcs,
)

RING = (("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("b", "a"), ("d", "b"))


class MadeUp:
    """Trials whose rows are exact ones, and a signature for each stale arc; of order 1 in the step size."""

    def __init__(
        self,
        arcs: Iterable[Arc],
        *,
        fails: Callable[[SimulationTrial], bool] = lambda _: False,
        seed: int = 1,
    ) -> None:
        self.arcs = tuple(sorted(arcs))
        random = np.random.default_rng(seed)
        self.exact = random.normal(size=(30, 3)) + 10.0
        self.signatures = {a: 0.1 * random.normal(size=(30, 3)) for a in self.arcs}
        self.fails = fails
        self.asked: list[SimulationTrial] = []
        self.rows: dict[SimulationTrial, NDArray[np.float64]] = {}

    def __call__(self, trial: SimulationTrial) -> NDArray[np.float64] | None:
        self.asked.append(trial)
        if self.fails(trial):
            return None
        late = sorted(stale_arcs(trial.sequence, self.arcs) | trial.stale)
        size = 0.5 if trial.halved else 1.0
        return self.rows.setdefault(
            trial, self.exact + size * sum((self.signatures[a] for a in late), np.zeros((30, 3)))
        )

    def done(self) -> Iterable[SimulationTrial]:
        return tuple(self.rows)

    def error(self, sequence: Sequence[str], base: Sequence[str]) -> float:
        scale = rms(self.rows[SimulationTrial(tuple(base))])
        rows = MadeUp.__call__(self, SimulationTrial(tuple(sequence)))
        assert rows is not None
        return relative_error(rows, self.exact, scale)


def cheapest(units: Sequence[str]) -> Callable[[Mapping[Arc, float]], tuple[str, ...]]:
    """Any sequence will do where the local search starts."""
    return lambda _weights: tuple(sorted(units))


def search(trials: MadeUp, base: str, method: Signature | None = None) -> Optimum:
    method = method or Signature()
    return method.search(trials, trials.arcs, tuple(base), cheapest(base))


@pytest.mark.parametrize("base", ["abcd", "dbca"])
def test_predictions_are_exact_where_errors_add_up(base: str) -> None:
    trials = MadeUp(RING)
    optimum = search(trials, base)
    for candidate in optimum.candidates:
        error = trials.error(candidate.sequence, base)
        assert candidate.predicted == pytest.approx(error, rel=1e-9)
        assert candidate.measured == pytest.approx(error, rel=1e-9)
        assert candidate.predicted_difference == pytest.approx(candidate.difference, abs=1e-9)
    best = min(permutations("abcd"), key=lambda s: trials.error(s, base))
    assert stale_arcs(optimum.sequence, RING) == stale_arcs(best, RING)


def test_the_choice_depends_on_names_and_not_on_their_order() -> None:
    trials, reverse = MadeUp(RING), MadeUp(RING[::-1])
    first = search(trials, "abcd")
    second = Signature().search(reverse, RING[::-1], tuple("abcd"), cheapest("dcba"))
    assert first.candidates == second.candidates


def test_as_many_runs_as_it_says() -> None:
    trials = MadeUp(RING)
    search(trials, "abcd")
    assert len(set(trials.asked)) <= Signature().trials(RING) == len(RING) + 3 + 5
    few = MadeUp(RING)
    search(few, "abcd", Signature(verified=0))
    assert len(set(few.asked)) == len(RING) + 3


def test_without_verification_the_best_predicted_sequence_is_chosen() -> None:
    trials = MadeUp(RING)
    optimum = search(trials, "abcd", Signature(verified=0))
    best = min(permutations("abcd"), key=lambda s: trials.error(s, "abcd"))
    assert stale_arcs(optimum.sequence, RING) == stale_arcs(best, RING)
    assert optimum.candidates[0].measured is None


def test_a_sequence_whose_verification_fails_is_not_chosen() -> None:
    best = search(MadeUp(RING), "abcd").candidates[0].sequence
    optimum = search(MadeUp(RING, fails=lambda t: t == SimulationTrial(best)), "abcd")
    assert optimum.sequence != best
    assert optimum.candidates[-1].sequence == best


def test_an_arc_whose_run_fails_stays_as_it_is() -> None:
    arc = ("a", "b")
    trials = MadeUp(RING, fails=lambda t: t.stale == {arc})
    optimum = search(trials, "abcd")
    assert optimum.unknown == (arc,)
    assert arc not in optimum.signatures
    for candidate in optimum.candidates:
        assert (candidate.predicted is None) == (arc in stale_arcs(candidate.sequence, RING))


def test_if_the_reverse_fails_other_sequences_take_its_place() -> None:
    trials = MadeUp(RING, fails=lambda t: t.sequence == tuple("dcba"))
    optimum = search(trials, "abcd")
    assert optimum.unknown == ()
    whole = search(MadeUp(RING), "abcd")
    assert optimum.sequence == whole.sequence
    assert optimum.signatures == pytest.approx(whole.signatures, rel=1e-9)


def test_if_all_other_sequences_fail_stale_arcs_stay_stale() -> None:
    trials = MadeUp(RING, fails=lambda t: t.sequence != tuple("abcd"))
    optimum = search(trials, "abcd")
    assert set(optimum.unknown) == stale_arcs("abcd", RING)
    assert stale_arcs(optimum.sequence, RING) >= stale_arcs("abcd", RING)


def test_without_the_run_of_half_the_step_it_predicts_only() -> None:
    trials = MadeUp(RING, fails=lambda t: t.halved)
    optimum = search(trials, "abcd")
    assert all(c.measured is None for c in optimum.candidates)
    best = min(permutations("abcd"), key=lambda s: trials.error(s, "abcd"))
    assert stale_arcs(optimum.sequence, RING) == stale_arcs(best, RING)


def test_a_base_that_cannot_be_simulated_is_an_error() -> None:
    with pytest.raises(OptionError, match="base sequence a, b, c, d cannot be simulated"):
        search(MadeUp(RING, fails=lambda _: True), "abcd")


def test_outputs_that_are_always_0_cannot_be_compared() -> None:
    trials = MadeUp(RING)
    trials.rows[SimulationTrial(tuple("abcd"))] = np.zeros((30, 3))
    with pytest.raises(OptionError, match="All recorded outputs are 0"):
        search(trials, "abcd")


def test_of_many_units_no_move_of_one_unit_is_better() -> None:
    """sequence.md 4.3, step 5: insertion local search above 8 units."""
    units = "abcdefghij"
    random = np.random.default_rng(3)
    pairs = [(a, b) for a in units for b in units if a != b]
    arcs = [pairs[k] for k in random.choice(len(pairs), 18, replace=False)]
    trials = MadeUp(arcs)
    optimum = search(trials, units)
    least = trials.error(optimum.sequence, units)
    for unit in units:
        others = [u for u in optimum.sequence if u != unit]
        for place in range(len(units)):
            moved = (*others[:place], unit, *others[place:])
            assert trials.error(moved, units) >= least - 1e-9
    some = [
        trials.error(tuple(random.permutation(list(units)).tolist()), units) for _ in range(250)
    ]
    assert least <= min(some)


def test_the_first_sequence_by_names_stands_for_all_with_the_same_stale_arcs() -> None:
    stale = stale_arcs("dbca", RING)
    same = [s for s in permutations("abcd") if stale_arcs(s, RING) == stale]
    assert canonical("dcba", RING, stale) == min(same)


def test_negative_numbers_of_verified_sequences_are_refused() -> None:
    with pytest.raises(OptionError, match="expected 0 or more"):
        Signature(verified=-1)
