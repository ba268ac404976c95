"""FMUs in processes of their own: the bits of a run in this process, with both executors; and FMUs that are lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster import (
    Aligned,
    EarlyReturn,
    FreeStep,
    GaussSeidel,
    Jacobi,
    Polynomial,
    Results,
    Richardson,
    Simulation,
    Waveform,
    reference_path,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "steps": ("two-mass-b1-fmi2", {"step_size": "0.05"}),
    "order of stepping": ("two-mass-b1-mixed", {"step_size": "0.05", "algorithm": GaussSeidel()}),
    "derivatives of inputs": (
        "two-mass-b1-fmi2",
        {"step_size": "0.05", "algorithm": Jacobi(Polynomial(2, 2)), "stop_time": 0.5},
    ),
    "step doubling": (
        "two-mass-b1-mixed",
        {"step_size": "0.05", "algorithm": Richardson(Jacobi())},
    ),
    "sweeps, polynomials, early return": (
        "two-mass-b1-fmi3",
        {
            "algorithm": Waveform(Aligned(Jacobi(Polynomial(2, 2))), sweeps=2),
            "step_size": FreeStep("0.2"),
            "event_clock": EarlyReturn(),
        },
    ),
    "step-size control": ("two-mass-b1-mixed", {"step_size": "embedded-orders:size=0.01"}),
    "clocks": ("thermostat-fmi3", {"event_clock": "early-return", "stop_time": 100.0}),
}


@pytest.fixture(params=RUNS, ids=lambda name: name.replace(" ", "-"))
def run(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    system, settings = RUNS[request.param]
    return reference_path(f"systems/{system}.ssp"), {"stop_time": 1.5, **settings}


def assert_same_bits(one: Results, other: Results) -> None:
    assert list(one) == list(other)
    np.testing.assert_array_equal(one.time, other.time)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_an_isolated_run_has_the_bits_of_one_in_this_process(
    run: tuple[Path, dict[str, Any]], backend: str
) -> None:
    path, settings = run
    here = Simulation(path, isolate=False, **settings).run()
    apart = Simulation(path, isolate=True, backend=backend, **settings).run()
    assert_same_bits(here, apart)
    assert len(here.events) == len(apart.events)
