"""What trials of sequences are compared by: the grid of points, and relative errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fmimaster.studies.optimization.runs import grid
from fmimaster.studies.optimization.trial import is_compared, is_number, relative_error, rms


def test_the_grid_has_all_points_and_the_stop_time() -> None:
    assert grid(Fraction(1), Fraction(2), Fraction(3, 10)).tolist() == [1.0, 1.3, 1.6, 1.9, 2.0]


def test_an_output_interval_thins_the_grid() -> None:
    points = grid(Fraction(0), Fraction(1), Fraction(1, 10), 0.25)
    assert points.tolist() == [0.0, 0.3, 0.5, 0.8, 1.0]
    assert len(grid(Fraction(0), Fraction(1), Fraction(1, 10), 0.01)) == 11


def test_errors_are_relative_to_each_output_and_their_mean_counts() -> None:
    reference = np.array([[3.0, 100.0, 0.0], [3.0, 100.0, 0.0]])
    signals = reference + np.array([[0.3, 20.0, 1.0], [-0.3, 20.0, 1.0]])
    # the third output is always 0 with the base, so that nothing is relative to it
    assert relative_error(signals, reference, rms(reference)) == pytest.approx((0.1 + 0.2) / 2)
    assert relative_error(signals, reference, np.zeros(3)) == 0.0


def test_columns_that_are_no_numbers_or_not_always_there_do_not_count() -> None:
    assert is_compared(np.ones(3))
    assert not is_compared(np.ones(3, int))
    assert is_number(np.ones(3, bool))
    assert not is_number(np.array(["a", "b"], object))
    assert not is_compared(np.ma.masked_array(np.ones(3), [False, True, False]))
    assert not is_compared(np.array([np.nan, np.nan]))
