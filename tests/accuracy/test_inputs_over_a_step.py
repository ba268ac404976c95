"""Inputs that are held over a step or extrapolated, on the two masses: errors of events, and stability."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from in_turn import in_turn
from pytest import approx
from random_two_mass import held_systems, random_system

from fmimaster import Results, reference_path, simulate
from fmimaster.algorithms import Algorithm, Jacobi
from fmimaster.events import Predictive
from fmimaster.inputs import ADAPTIVE, HOLD, Polynomial
from fmimaster.studies.demos.methods import exact_solution
from fmimaster.studies.demos.scoring import position_error
from fmimaster.studies.demos.two_mass import TwoMassReference

VERSIONS = ("fmi2", "fmi3", "mixed")
MEAN = Polynomial(1, 2, mean=True)
"""What FMUs get that take no polynomial, of any polynomial with two derivatives."""

HELD = {"upper.inputOrder": 0, "lower.inputOrder": 0}
"""The FMUs hold their inputs over a step, as most FMUs do."""


def events_by_held_inputs(
    polynomial: Polynomial, size: float, version: str, bench: str = "b3", **options: Any
) -> Results:
    given = options.pop("start_values", {})
    return simulate(
        reference_path(f"systems/two-mass-{bench}-{version}.ssp"),
        algorithm=Jacobi(polynomial),
        event_clock=Predictive(),
        step_size=size,
        start_values={**HELD, **given},
        **options,
    )


def root_mean_square_error(results: Results, exact: TwoMassReference) -> float:
    errors, _ = position_error(results, exact)
    return float(np.sqrt(np.mean(errors**2)))


# The errors are those of the prototype that was measured beforehand; a tenth above them
@pytest.mark.parametrize(
    ("version", "error"), in_turn(VERSIONS, [(0.1, 0.107), (0.05, 0.0193), (0.02, 0.0042)])
)
def test_all_events_are_found_by_means_of_held_inputs(
    version: str, error: tuple[float, float]
) -> None:
    size, most = error
    results = events_by_held_inputs(MEAN, size, version)
    assert root_mean_square_error(results, exact_solution("b3")) < most
    assert len(results.events) == 12


@pytest.fixture(scope="module")
def systems_that_hold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The systems, with FMUs that accept no polynomials."""
    return held_systems(tmp_path_factory.mktemp("held"))


@pytest.mark.parametrize(("backend", "version"), in_turn(["native", "reference"], list(VERSIONS)))
def test_two_held_values_in_a_step_are_a_hundred_times_better_than_one(
    systems_that_hold: Path, version: str, backend: str
) -> None:
    results = simulate(
        systems_that_hold / f"two-mass-b3-{version}.ssp",
        algorithm=Jacobi(Polynomial(2, 2)),
        event_clock=Predictive(),
        step_size=0.1,
        start_values=HELD,
        backend=backend,
    )
    assert root_mean_square_error(results, exact_solution("b3")) < 1.1e-3
    assert len(results.events) == 12


@pytest.mark.filterwarnings(
    "ignore:Steps are too long"
)  # at the start the range of motion is small
def test_the_error_of_two_held_values_falls_with_the_fourth_power_of_the_step(
    systems_that_hold: Path,
) -> None:
    """The two masses are linear in their inputs, so they are as far after one step as with the polynomial itself: to the
    fourth power of the step size."""
    errors = []
    for size in (0.1, 0.05):
        results = simulate(
            systems_that_hold / "two-mass-b3-fmi3.ssp",
            algorithm=Jacobi(Polynomial(2, 2)),
            event_clock=Predictive(go_back=False),
            step_size=size,
            stop_time=0.5,  # before the first event
            start_values=HELD,
        )
        errors.append(root_mean_square_error(results, exact_solution("b3")))
    assert errors[0] / errors[1] > 2.0**3.5


def test_steps_that_are_too_long_for_held_inputs_are_undone_by_both_executors_alike(
    systems_that_hold: Path,
) -> None:
    """In a step of 0.9 s the fastest mode turns by 2 rad. Events are right all the same."""
    found = [
        simulate(
            systems_that_hold / "two-mass-b3-fmi3.ssp",
            algorithm=Jacobi(Polynomial(2, 2)),
            event_clock=Predictive(),
            step_size=0.9,
            stop_time=8,
            start_values=HELD,
            backend=backend,
        )
        for backend in ("native", "reference")
    ]
    one, other = found
    assert one.statistics.rejections > 10
    assert one.statistics.attempts == other.statistics.attempts
    for name in one:
        assert one[name].tolist() == other[name].tolist()
    exact = [e.time for e in exact_solution("b3").events if e.time < 8]
    assert [e.time for e in one.events] == approx(exact, abs=1e-3)


@pytest.mark.parametrize("version", VERSIONS)
def test_free_masses_meet_at_their_time_whatever_is_held(version: str) -> None:
    """Without springs the gap closes at a constant rate: 8.1 m - 1.1 m at 3 m/s, in steps of 0.2 s."""
    free = {"k2": 0.0, "d2": 0.0, "g": 0.0}
    start = {f"{c}.{name}": value for c in ("upper", "lower") for name, value in free.items()}
    start |= {"upper.k1": 0.0, "upper.d1": 0.0, "upper.v": -1.0, "lower.v": 2.0}
    results = events_by_held_inputs(MEAN, 0.2, version, stop_time=3, start_values=start)
    assert [e.time for e in results.events] == approx([7.0 / 3.0], abs=1e-9)


@pytest.mark.filterwarnings("ignore::fmimaster.base.errors.AccuracyWarning")  # held values are late
def test_means_are_thirty_times_better_than_held_values_on_random_systems() -> None:
    """Median of systems with few events, whose errors do not grow so far that they compare nothing."""
    ratios = []
    for number in (0, 2, 10, 12, 20, 22):
        system = random_system(number)
        options: dict[str, Any] = {
            "stop_time": system.stop_time / 4,
            "start_values": system.start_values,
        }
        held, mean = (
            events_by_held_inputs(polynomial, 0.02, system.version, **options)
            for polynomial in (HOLD, MEAN)
        )
        errors = [root_mean_square_error(results, system.exact) for results in (held, mean)]
        ratios.append(errors[0] / errors[1])
    assert median(ratios) > 30.0


# Stability ------------------------------------------------------------------------------------------------------------

STEPS = 400


def growth(algorithm: Algorithm, angle: float, damping: float) -> float:
    """Largest distance from rest in the last quarter of a run, relative to that at the start.

    Parameters
    ----------
    angle : float, in rad
        H sqrt(k (1/m1 + 1/m2)).
    damping : float
        d / sqrt(k), both masses 1 kg.
    """
    size = angle / sqrt(2.0)
    rest = -2 * 9.81, -3 * 9.81
    both = {"m1": 1.0, "m2": 1.0, "k2": 1.0, "d2": damping, "dx": 0.01}
    start = {f"{c}.{name}": value for c in ("upper", "lower") for name, value in both.items()}
    start |= {"upper.k1": 1.0, "upper.d1": damping, "upper.x": rest[0] + 0.3, "upper.v": 0.0}
    start |= {"lower.x": rest[1], "lower.v": 0.0}
    results = simulate(
        reference_path("systems/two-mass-b1-fmi3.ssp"),
        event_clock="none",
        algorithm=algorithm,
        step_size=size,
        stop_time=size * STEPS,
        start_values=start,
        allow_nan=True,
    )
    away = np.abs(results["upper.x"] - rest[0]) + np.abs(results["lower.x"] - rest[1])
    return float(away[-STEPS // 4 :].max()) / 0.3


@pytest.mark.filterwarnings("ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
# an undamped motion of both masses comes up to 1.4 times as far from rest as it was at the start, by its two modes
@pytest.mark.parametrize(
    ("damping", "angle", "most"),
    [(0.0, 1.0, 1.4), (0.05, 1.0, 0.2), (0.2, 2.0, 1e-3), (0.5, 1.4, 1e-6)],
)
def test_an_adaptive_polynomial_is_stable_where_the_quintic_is_not(
    damping: float, angle: float, most: float
) -> None:
    assert growth(Jacobi(ADAPTIVE), angle, damping) < most
    assert not growth(Jacobi(Polynomial(2, 2)), angle, damping) < 1e50  # it may be NaN


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("damping", [0.02, 0.2])
def test_in_small_steps_an_adaptive_polynomial_is_the_quintic(damping: float) -> None:
    quintic = growth(Jacobi(Polynomial(2, 2)), 0.1, damping)
    assert growth(Jacobi(ADAPTIVE), 0.1, damping) == approx(quintic, rel=1e-6)
