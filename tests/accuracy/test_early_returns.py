"""Early returns with several instances (hybrid.md 11): P returns early at t = 0.37, between the points 0.3 and 0.4."""

from __future__ import annotations

import logging
from collections.abc import Collection
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from call_trace import traced
from edited_fmu import edited_fmu

from fmimaster import (
    AccuracyError,
    AccuracyWarning,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor

pytestmark = pytest.mark.in_this_process("calls are traced in the process of the run")

EVENT = 0.37
"""[s] Time of the early return."""
ALPHA = log((30 - 20) / (30 - 21)) / EVENT
"""[1/s] With it the room is at 21 degC then: hybrid.md 4."""

LAST = ("q", "r", "p")
FIRST = ("p", "q", "r")


def system(folder: Path, unable: Collection[str] = ()) -> SystemBuilder:
    """P, a room that returns early when it is warm; Q, a lag of its temperature; R, a controller with a clock."""
    builder = SystemBuilder("three")
    models = {"p": "ThermostatRoom", "q": "Dahlquist", "r": "ThermostatController"}
    for name, model in models.items():
        path = reference_path(f"fmi3/{model}.fmu")
        if name in unable:
            capabilities = {"canGetAndSetFMUState": None, "canSerializeFMUState": None}
            path = edited_fmu(path, folder / f"{name}.fmu", capabilities=capabilities)
        builder.add(name, path, {"alpha": ALPHA} if name == "p" else {})
    builder.connect("p.x", "q.u")
    builder.connect("p.x", "r.x")
    builder.connect("p.crossing.out", "r.sample")
    builder.connect("r.q", "p.q")
    return builder


def run(
    folder: Path, unable: Collection[str] = (), **settings: Any
) -> tuple[Results, dict[str, list[tuple[float, float]]], list[tuple[Any, ...]]]:
    """Results, the begin and end of each DoStep by instance, and all calls, of a run to 0.5 s."""
    with traced() as trace:
        chosen = {"step_size": "0.1", "stop_time": 0.5, **settings}
        results = Simulation(system(folder, unable), **chosen).run()
    steps: dict[str, list[tuple[float, float]]] = {}
    for who, function, *arguments in trace.calls:
        if function == "fmi3DoStep":
            begin, size = arguments[:2]
            steps.setdefault(who, []).append((begin, begin + size))
    return results, steps, trace.calls


def after(steps: list[tuple[float, float]], begin: float) -> list[tuple[float, float]]:
    """Steps that begin at a time or later, rounded to 1 ns."""
    rounded = [(round(a, 9), round(b, 9)) for a, b in steps]
    return [step for step in rounded if step[0] >= begin]


ALIGNED = [(0.3, 0.4), (0.3, EVENT), (EVENT, 0.4), (0.4, 0.5)]
"""A step that is undone, and what takes its place."""
NOT_UNDONE = [(0.3, EVENT), (EVENT, 0.4), (0.4, 0.5)]
AHEAD = [(0.3, 0.4), (0.4, 0.5)]


def test_11_all_who_can_go_back_meet_at_the_event(tmp_path: Path, backend: Backend) -> None:
    r, steps, _ = run(tmp_path, algorithm=GaussSeidel(), sequence=LAST, backend=backend)
    assert after(steps["q"], 0.3) == after(steps["r"], 0.3) == ALIGNED
    assert {i.name: i.restores for i in r.statistics.instances} == {"p": 0, "q": 1, "r": 1}
    assert r.statistics.warnings == ()


@pytest.mark.parametrize(
    ("algorithm", "sequence"), [(Jacobi(), LAST), (GaussSeidel(), FIRST)], ids=["jacobi", "gs"]
)
@pytest.mark.parametrize("unable", [(), ("p", "q", "r")], ids=["able", "unable"])
def test_11_who_may_return_early_steps_first_and_nobody_goes_back(
    algorithm: Algorithm,
    sequence: tuple[str, ...],
    unable: tuple[str, ...],
    tmp_path: Path,
    backend: Backend,
) -> None:
    r, steps, _ = run(tmp_path, unable, algorithm=algorithm, sequence=sequence, backend=backend)
    assert after(steps["q"], 0.3) == after(steps["r"], 0.3) == NOT_UNDONE
    assert sum(i.restores for i in r.statistics.instances) == 0
    assert r.statistics.warnings == ()


def test_11_who_cannot_go_back_stays_ahead_and_has_the_event_at_its_own_time(
    tmp_path: Path, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, "fmimaster"),
        pytest.warns(
            AccuracyWarning, match=r"'r' has seen the event at t = 0\.37 s late, by 0\.03 s"
        ),
    ):
        r, steps, calls = run(
            tmp_path, ["r"], algorithm=GaussSeidel(), sequence=LAST, backend=backend
        )
    assert after(steps["q"], 0.3) == ALIGNED
    assert after(steps["r"], 0.3) == AHEAD
    assert "event at t = 0.37 s seen late by 'r', by 0.03 s" in caplog.text
    # the order of R's calls: its step to 0.4, then Event Mode, then its next step
    names = [name for who, name, *_ in calls if who == "r"]
    entered = names.index("fmi3EnterEventMode")
    assert names[:entered].count("fmi3DoStep") == 4
    assert r["r.q"][r.time <= 0.4 - 1e-9].all()  # switched off at 0.4, not at 0.37
    assert r["r.q"][r.time == 0.4].tolist() == [True, False]
    late = [e for e in r.events if e.components == ("r",)]
    assert [(e.time, str(e.cause)) for e in late] == [(0.4, "event before, seen late by r")]


@pytest.mark.parametrize("unable", [[], ["r"], ["q"], ["q", "r"]], ids=str)
@pytest.mark.filterwarnings("ignore::fmimaster.AccuracyWarning")
def test_11_the_grid_is_not_shifted(unable: list[str], tmp_path: Path, backend: Backend) -> None:
    r, _, _ = run(tmp_path, unable, algorithm=GaussSeidel(), sequence=LAST, backend=backend)
    expected = [0.0, 0.1, 0.2, 0.3, EVENT, 0.4, 0.5]
    assert np.unique(np.round(r.time, 9)).tolist() == expected
    assert {k / 10 for k in range(6)} <= set(r.time.tolist())


def test_11_strict_makes_lateness_an_error(tmp_path: Path) -> None:
    settings = {"algorithm": GaussSeidel(), "sequence": LAST, "strict": True}
    with pytest.raises(AccuracyError, match=r"'r' has seen the event at t = 0\.37 s late"):
        run(tmp_path, ["r"], **settings)
    run(tmp_path, [], **settings)


@pytest.mark.filterwarnings("ignore::fmimaster.AccuracyWarning")
def test_12_the_report_lists_methods_and_fall_backs_with_counts(tmp_path: Path) -> None:
    r, _, _ = run(tmp_path, ["r"], algorithm=GaussSeidel(), sequence=LAST)
    assert r.statistics.methods == (
        "GaussSeidel, in the order 'q', 'r' and 'p'; steps of 0.1 s",
        "early return of 'p' and 'r'",
        "Event Mode of 'p' and 'r'",
    )
    [fall_back] = r.statistics.fall_backs
    assert fall_back.times == 1
    assert fall_back.what == "'r' had an event late, by at most 0.03 s (it cannot go back)"
    lines = r.statistics.lines()
    assert f"fall-back: {fall_back.what}: 1 time" in lines
    assert f"method: {r.statistics.methods[0]}" in lines


@pytest.mark.parametrize("unable", [[], ["r"], ["q", "r"]], ids=str)
@pytest.mark.filterwarnings("ignore::fmimaster.AccuracyWarning")
def test_13_both_executors_make_the_same_calls_and_rows_with_1_and_8_threads(
    unable: list[str], tmp_path: Path
) -> None:
    if native_executor() is None:
        pytest.skip("the kernel is not built")
    settings: dict[str, Any] = {"algorithm": GaussSeidel(), "sequence": LAST}
    expected, _, calls = run(tmp_path, unable, backend=Backend.REFERENCE, **settings)
    for threads in (1, 8):
        found, _, same = run(tmp_path, unable, backend=Backend.NATIVE, threads=threads, **settings)
        assert same == calls
        for name in expected:
            assert found[name].tobytes() == expected[name].tobytes()
