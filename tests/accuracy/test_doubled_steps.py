"""Step doubling on the reference FMUs."""

from __future__ import annotations

from typing import Any

import pytest

from fmimaster import (
    Algorithm,
    Aligned,
    EarlyReturn,
    Jacobi,
    Polynomial,
    Results,
    Richardson,
    Simulation,
    Waveform,
    reference_path,
)
from fmimaster.run.choice import Backend


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST], ids=lambda b: b.value)
def test_step_doubling_around_early_returns_finds_all_twelve_events(
    backend: Backend,
) -> None:
    e2 = Waveform(Aligned(Jacobi(Polynomial(2, 2))), sweeps=2)
    path = reference_path("systems/two-mass-b3-fmi3.ssp")

    def run(algorithm: Algorithm) -> Results:
        options: dict[str, Any] = {"step_size": 0.2, "stop_time": 20, "backend": backend}
        return Simulation(path, algorithm=algorithm, event_clock=EarlyReturn(), **options).run()

    once, twice = run(e2), run(Richardson(e2))
    assert len(once.events) == len(twice.events) == 12
    assert [e.name for e in twice.events] == [e.name for e in once.events]
    times = [[e.time for e in r.events] for r in (once, twice)]
    assert times[1] == pytest.approx(times[0], abs=1e-3)
