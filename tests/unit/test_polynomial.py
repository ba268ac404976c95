"""Hermite polynomials through points with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, factorial, sin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial as Reference
from pytest import approx

from fmimaster.base.errors import OptionError
from fmimaster.inputs.polynomial import FIRST_ORDER, HOLD, Polynomial, evaluate, hermite

SHAPES = [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (2, 1), (2, 2), (3, 1)]


def samples_of(signal: Reference, times: list[float], derivatives: int) -> list[list[np.ndarray]]:
    """Value and derivatives of one signal at each time."""
    return [
        [np.array([(signal.deriv(k) if k else signal)(t)]) for k in range(derivatives + 1)]
        for t in times
    ]


@pytest.mark.parametrize(("points", "derivatives"), SHAPES)
def test_a_polynomial_of_that_degree_is_reproduced(points: int, derivatives: int) -> None:
    degree = points * (derivatives + 1) - 1
    signal = Reference([1.5, -2.0, 0.5, 3.0, -1.0, 0.25][: degree + 1])
    times, centre = [0.3, -0.2, 0.05][:points], 0.1
    coefficients = hermite(times, samples_of(signal, times, derivatives), centre)
    expected = signal(Reference([centre, 1.0])).coef
    # divided differences of order n divide rounding errors by products of node distances, at least 0.25 each
    assert coefficients[:, 0] == approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(("points", "derivatives"), SHAPES)
def test_the_degree_is_one_less_than_the_number_of_conditions(
    points: int, derivatives: int
) -> None:
    times = [0.0, -1.0, -2.0][:points]
    coefficients = hermite(times, [[np.ones(1)] * (derivatives + 1)] * points, 0.0)
    assert Polynomial(points, derivatives).degree == len(coefficients) - 1


@pytest.mark.parametrize(("points", "derivatives"), SHAPES)
def test_the_polynomial_goes_through_its_points_with_their_derivatives(
    points: int, derivatives: int
) -> None:
    times = [1.0, 0.9, 0.75][:points]
    derivatives_of_sine: list[Callable[[float], float]] = [sin, cos, lambda t: -sin(t)]
    samples = [[np.array([f(t)]) for f in derivatives_of_sine[: derivatives + 1]] for t in times]
    coefficients = hermite(times, samples, 1.0)
    for t, sample in zip(times, samples, strict=True):
        for k, expected in enumerate(sample):
            # the coefficient of degree 5 carries an error of 1e-16 / 0.1**5, times powers of 0.25
            assert evaluate(coefficients, t - 1.0, k) == approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("derivatives", "value", "slope"),
    # events.md, section 13; the tolerance is half of the last digit that is told
    [
        (2, approx(3.2e-10, abs=5e-12), approx(1.3e-8, abs=5e-10)),
        (1, approx(3.3e-7, abs=5e-9), approx(6.7e-6, abs=5e-8)),
    ],
    ids=["quintic", "cubic"],
)
def test_the_sine_is_extrapolated_with_the_errors_of_events_md(
    derivatives: int, value: object, slope: object
) -> None:
    # through (sin, cos, -sin) at 0 and -0.1, extrapolated to 0.1
    derivatives_of_sine: list[Callable[[float], float]] = [sin, cos, lambda t: -sin(t)]
    times = [0.0, -0.1]
    samples = [[np.array([f(t)]) for f in derivatives_of_sine[: derivatives + 1]] for t in times]
    c = hermite(times, samples, 0.0)
    assert abs(evaluate(c, 0.1)[0] - sin(0.1)) == value
    assert abs(evaluate(c, 0.1, 1)[0] - cos(0.1)) == slope


def test_signals_are_fitted_side_by_side() -> None:
    both = hermite([1.0, 0.0], [[np.array([3.0, 5.0])], [np.array([1.0, 6.0])]], 1.0)
    assert both.tolist() == [[3.0, 5.0], [2.0, -1.0]]


def test_the_centre_does_not_change_the_polynomial() -> None:
    samples = [[np.array([2.0]), np.array([-1.0])], [np.array([0.5]), np.array([4.0])]]
    near, far = (hermite([2.0, 1.0], samples, centre) for centre in (2.0, 0.0))
    for t in (0.0, 1.0, 1.5, 2.0, 3.0):
        assert evaluate(near, t - 2.0) == approx(evaluate(far, t), abs=1e-12)


floats = st.floats(-10, 10)


@given(st.lists(floats, min_size=1, max_size=6), floats, st.integers(0, 6))
def test_values_and_derivatives_are_those_of_numpy(
    coefficients: list[float], s: float, derivative: int
) -> None:
    expected = (
        Reference(coefficients).deriv(derivative)(s) if derivative else Reference(coefficients)(s)
    )
    found = evaluate(np.array(coefficients)[:, np.newaxis], s, derivative)
    # Horner's rule: 2 n roundings, relative to the sum of the magnitudes, which is below 6 * 10 * 10**5 * 5!
    bound = (
        12
        * 2.3e-16
        * sum(abs(c) * max(abs(s), 1) ** k * factorial(k) for k, c in enumerate(coefficients))
    )
    assert found == approx([expected], abs=bound, rel=0)


def test_derivatives_above_the_degree_are_zero() -> None:
    assert evaluate(np.array([[1.0], [2.0]]), 3.0, 2).tolist() == [0.0]


def test_names_of_common_polynomials() -> None:
    assert (Polynomial(1, 0), Polynomial(1, 1)) == (HOLD, FIRST_ORDER)
    assert (HOLD.degree, FIRST_ORDER.degree) == (0, 1)


@pytest.mark.parametrize(("points", "derivatives"), [(0, 1), (1, -1)])
def test_a_polynomial_needs_a_point_and_no_negative_derivatives(
    points: int, derivatives: int
) -> None:
    with pytest.raises(OptionError, match="expected at least 1 point and 0 derivatives"):
        Polynomial(points, derivatives)
