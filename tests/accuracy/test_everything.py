"""One system with all kinds of time: docs/everything.md and docs/examples/everything.py."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster import Results, Simulation
from fmimaster.run import Backend

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "everything.py"
PERIOD, GAIN = 0.25, 2.0


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    """That of the example, without its output variables: all outputs, and the clocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("everything"))
        yield runpy.run_path(str(EXAMPLE))["simulation"]


@pytest.fixture(
    scope="module", params=[Backend.REFERENCE, Backend.NATIVE], ids=["reference", "native"]
)
def results(request: pytest.FixtureRequest, simulation: Simulation) -> Results:
    return rerun(simulation, backend=request.param)


def rerun(simulation: Simulation, **changes: Any) -> Results:
    return replace(simulation, **changes).run()


def sampled(results: Results, name: str) -> np.ndarray:
    return np.ma.compressed(results[name])


def test_clocks_tick_at_exact_times(results: Results) -> None:
    found: dict[str, object] = {
        a.clock: (a.first, a.last, a.count, a.interval) for a in results.activations
    }
    assert found == {
        "controller.tick": (0, 4, 17, Fraction(1, 4)),
        "tasks.fast": (0, 4, 5, 1),
        "tasks.slow": (3, 3, 1, 0),
        "tasks.later": (4, 4, 1, 0),
    }


def test_the_controlled_plant_follows_its_exact_solution(results: Results) -> None:
    """Between two samples x' = -x + u with u = 1 - 2 x(t_k): x decays towards u."""
    x = np.empty(17)
    x[0] = 1.0
    for k in range(16):
        u = 1.0 - GAIN * x[k]
        x[k + 1] = u + (x[k] - u) * np.exp(-PERIOD)
    np.testing.assert_allclose(sampled(results, "controller.y"), 1.0 - GAIN * x, atol=1e-6)


def test_a_triggered_partition_has_the_ticks_of_the_controller(results: Results) -> None:
    assert (results["tasks.request"] == results["controller.tick"]).all()
    # 17 samples, 5 ticks of fast, and later at (4, 1)
    assert sampled(results, "tasks.total")[-1] == 17 + 5 + 1


def test_a_countdown_of_0_ticks_in_the_next_iteration(results: Results) -> None:
    last = results.time == 4.0
    assert results.index[last].tolist() == [0, 1, 2]
    assert results["tasks.fast"][last].tolist() == [False, True, False]
    assert results["tasks.later"][last].tolist() == [False, False, True]


def test_the_shared_event_happens_in_both_blocks(results: Results) -> None:
    collisions = [e for e in results.events if e.name == "collision"]
    assert [e.shared for e in collisions] == [True, True]
    for event in collisions:
        after = np.flatnonzero((results.time == event.time) & (results.index == event.index))
        apart = results["upper.v"] - results["lower.v"]
        assert apart[after[0]] > 0.0 > apart[after[0] - 1]


def test_the_logger_writes_at_the_level_only(results: Results) -> None:
    falls = [e.time for e in results.events if e.name == "level.falling"]
    assert results.time[results["level.tick"]].tolist() == falls
    assert results["logger.line"][-1].startswith(f"2 at {falls[1]:.5f} s")


def test_both_executors_and_threads_give_the_same_bytes(
    simulation: Simulation, tmp_path: Path
) -> None:
    written = set()
    for backend, threads in ((Backend.REFERENCE, 1), (Backend.NATIVE, 1), (Backend.NATIVE, 8)):
        file = tmp_path / f"{backend.name}-{threads}.csv"
        rerun(simulation, backend=backend, threads=threads).write(file)
        written.add(file.read_bytes())
    assert len(written) == 1


def test_a_file_of_the_run_is_a_reference_for_it(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "reference.csv")
    read = Results.read(tmp_path / "reference.csv")
    assert read.activations == results.activations
    found = results.compare(read, tolerance=0.0)
    assert found.is_within
    assert {"controller.y", "tasks.total", "tasks.later"} <= {d.name for d in found.deviations}


def test_the_page_has_the_example() -> None:
    page = (ROOT / "docs" / "everything.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r'^```python title="everything.py"\n(.*?)^```$', page, re.M | re.S)
    assert shown == EXAMPLE.read_text(encoding="utf-8")
