"""The progress callback: what it is told, and how it ends a run without the loss of a row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster import Progress, Simulation, reference_path

ENDLESS = Simulation(
    reference_path("fmi3/Dahlquist.fmu"), stop_time=1e9, step_size=0.125, output_interval=1000
)
"""Rows of some 10^4 steps each, so that a run of a second has few."""


def test_it_is_told_time_steps_and_speed() -> None:
    seen: list[Progress] = []

    def stop_at_the_third(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) < 3

    begun = time.perf_counter()
    results = ENDLESS.run(stop_at_the_third)
    elapsed = time.perf_counter() - begun
    *_, last = seen
    assert (last.start_time, last.stop_time) == (0.0, 1e9)
    assert [p.time for p in seen] == sorted(p.time for p in seen)
    assert last.steps == pytest.approx(last.time / 0.125, rel=0.01)
    assert 0.0 < last.seconds < elapsed
    assert last.remaining is not None
    assert last.real_time_factor is not None
    assert last.remaining == pytest.approx((1e9 - last.time) / last.real_time_factor)
    assert last.fraction == last.time / 1e9
    assert results.time[-1] >= last.time


@pytest.mark.parametrize("limit", [1000.0, np.float64(1000.0)], ids=["float", "NumPy"])
def test_a_run_that_it_ends_returns_all_rows(limit: float) -> None:
    results = ENDLESS.run(lambda progress: progress.time < limit)
    assert 1000.0 <= results.time[-1] < 1e9
    assert results.time[:2].tolist() == [0.0, 1000.0]
    assert results.statistics.steps == results.time[-1] / 0.125


def test_what_it_raises_is_raised_with_all_rows(tmp_path: Path) -> None:
    class Pruned(Exception):
        results: Any = None

    def prune(progress: Progress) -> None:
        if progress.time >= 1000.0:
            raise Pruned("by the optimization")

    file = tmp_path / "rows.csv"
    with pytest.raises(Pruned, match="by the optimization") as raised:
        ENDLESS.run(prune, output_file=file)
    last = raised.value.results.time[-1]
    assert last >= 1000.0
    assert float(file.read_text(encoding="utf-8").splitlines()[-1].split(",")[0]) == last


def test_runs_that_must_be_whole_take_no_answer() -> None:
    calls = []

    def refuse(progress: Progress) -> bool:
        calls.append(progress)
        return False

    simulation = Simulation(reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=0.1)
    pair = simulation.check_step(refuse)
    assert calls
    assert pair.coarse.time[-1] == pair.fine.time[-1] == 0.1
