"""Power bonds: residual power and energy as signals, orientation, and what cannot be a bond (energy.md 1, 7, 9)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from quarter_car_units import SPLIT_A, SUSPENSION, split_a

from fmimaster.results.results import Results

Simulate = Callable[..., Results]

pytestmark = pytest.mark.usefixtures("each_executor")


def test_the_residual_energy_of_the_quarter_car_is_that_of_the_paper(simulate: Simulate) -> None:
    """Energy.md 4, lin A, constant step 1 ms: mean P12 0.392 W, residual energy 6.349 J (printed 0.4 W, 6.4 J)."""
    r = simulate(split_a(), SPLIT_A, power_bonds=[SUSPENSION], step_size="1e-3", stop_time=4.0)
    assert r["suspension.residual_energy"][-1] == pytest.approx(6.349, abs=5e-4)
    assert r["suspension.transmitted_energy"][-1] / 4.0 == pytest.approx(0.392, abs=5e-4)
    assert np.sum(r["suspension.residual_power"][1:]) * 1e-3 == pytest.approx(
        r["suspension.residual_energy"][-1], rel=1e-9
    )
