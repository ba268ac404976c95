"""Scheduled Execution in runs: hybrid.md 7, C6, with modelica's Clocks FMU and with our own Partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_fmus import modelica_fmu

from fmimaster import Results, SystemBuilder, reference_path, simulate

BACKENDS = pytest.mark.parametrize("backend", ["native", "reference"])
PARTITIONS = reference_path("fmi3/Partitions.fmu")
SOURCE = reference_path("fmi3/EventSource.fmu")

REQUESTS = {"count": 4, "times": [0, 1, 8, 9, 9, 9, 9, 9]}
"""At 0, 1, 8 and 9 s, as the model description of modelica's Clocks has it."""

OURS = {
    "clocks": ("fast", "request", "later", "fifth"),
    "counts": ("fastTicks", "requestTicks", "laterTicks", "total"),
    "amount": "amount",
    "others": ("sum", "outcome"),
}
MODELICA = {
    "clocks": ("inClock1", "inClock2", "inClock3", "outClock"),
    "counts": ("inClock1Ticks", "inClock2Ticks", "inClock3Ticks", "totalInClockTicks"),
    "amount": "input2",
    "others": ("result2", "output3"),
}

TOTAL = [
    *[(0.0, 2), (1.0, 4), (2.0, 5), (3.0, 6), (4.0, 7), (4.0, 8), (5.0, 9)],
    *[(6.0, 10), (7.0, 11), (8.0, 13), (9.0, 15)],
]
SUM = [(0.0, 0), (1.0, 1), (8.0, 3), (9.0, 6)]
"""The amount is the number of requests before."""


def present(results: Results, name: str) -> list[tuple[float, Any]]:
    """(time, value) of the rows in which a column is present."""
    values = np.ma.asarray(results[name])
    here = ~np.ma.getmaskarray(values)
    return [(t, v.item()) for t, v in zip(results.time[here].tolist(), values[here], strict=True)]


def with_requests(fmu: Path, names: dict[str, Any], **settings: Any) -> Results:
    """A run in which an event source triggers the second partition; all clocks are recorded."""
    system = SystemBuilder("requests")
    system.add("source", SOURCE, REQUESTS)
    system.add("se", fmu)
    system.connect("source.event", f"se.{names['clocks'][1]}")
    system.connect("source.done", f"se.{names['amount']}")
    recorded = [*names["clocks"], *names["counts"], *names["others"]]
    return simulate(
        system.build(stop_time=9, step_size=1),
        output_variables=[f"se.{name}" for name in recorded],
        **settings,
    )


def assert_trace(results: Results, names: dict[str, Any]) -> None:
    fast, request, later, fifth = (f"se.{name}" for name in names["clocks"])
    counts = [f"se.{name}" for name in names["counts"]]
    total, other = f"se.{names['others'][0]}", f"se.{names['others'][1]}"
    ticks = {n: [t for t, active in present(results, n) if active] for n in (fast, request, later)}
    assert ticks == {fast: [*range(10)], request: [0.0, 1.0, 8.0, 9.0], later: [4.0]}
    assert [t for t, active in present(results, fifth) if active] == [2.0, 6.0, 9.0]
    assert present(results, counts[0]) == [(t, t + 1) for t in range(10)]
    assert present(results, counts[1]) == [(0.0, 1), (1.0, 2), (8.0, 3), (9.0, 4)]
    assert present(results, counts[2])[-1] == (9.0, 1)
    assert present(results, counts[3]) == TOTAL
    assert present(results, total) == SUM
    assert present(results, other) == [(4.0, 1000)]


@BACKENDS
def test_c6_the_clocks_fmu_of_modelica_alone(backend: str) -> None:
    results = simulate(modelica_fmu("Clocks", "3.0"), stop_time=9, step_size=1, backend=backend)
    assert present(results, "inClock1Ticks") == [(t, t + 1) for t in range(10)]


@BACKENDS
def test_c6_the_clocks_fmu_of_modelica_with_requests(backend: str) -> None:
    fmu = modelica_fmu("Clocks", "3.0")
    assert_trace(with_requests(fmu, MODELICA, backend=backend), MODELICA)


@BACKENDS
def test_c6_our_own_fmu_alone(backend: str) -> None:
    results = simulate(PARTITIONS, stop_time=9, step_size=1, backend=backend)
    assert present(results, "fastTicks") == [(t, t + 1) for t in range(10)]
    assert present(results, "slowTicks") == [(3.0, 1), (7.0, 2)]
    # 1 fast, 3 slow, 4 later, in the order of their priorities; later is at (4, 1)
    order = dict.fromkeys(map(float, range(10)), 1) | {3.0: 13, 7.0: 13}
    assert present(results, "order") == sorted([*order.items(), (4.0, 14)])


@BACKENDS
def test_c6_our_own_fmu_with_requests(backend: str) -> None:
    assert_trace(with_requests(PARTITIONS, OURS, backend=backend), OURS)


@BACKENDS
def test_c6_in_a_process_of_its_own(backend: str) -> None:
    assert_trace(with_requests(PARTITIONS, OURS, backend=backend, isolate=True), OURS)


def test_each_activation_is_in_the_log_of_fmi_calls(tmp_path: Path) -> None:
    log = tmp_path / "calls.log"
    with_requests(PARTITIONS, OURS, fmi_log_file=log)
    lines = [
        line
        for line in log.read_text(encoding="utf-8").splitlines()
        if "ActivateModelPartition" in line
    ]
    begun = [line for line in lines if "clockReference" in line]
    assert len(begun) == 17
    assert lines[0].startswith(
        "t=0.0 se: fmi3ActivateModelPartition(clockReference=10, activationTime=0.0)"
    )
    assert not any(f"fmi3{other}" in line for line in lines for other in ("SetClock", "DoStep"))


def test_any_number_of_threads_gives_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for threads in (1, 8):
        files.append(tmp_path / f"{threads}.csv")
        with_requests(PARTITIONS, OURS, threads=threads).write(files[-1])
    assert files[0].read_bytes() == files[1].read_bytes()
