"""Rules of Model Exchange in FMI 3.0, checked by an FMU that refuses each call that the present state does not allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exchanging_fmu import exchanging

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from fmimaster import CallError, Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.inputs import FIRST_ORDER
from fmimaster.run import Backend

pytestmark = pytest.mark.filterwarnings("ignore:.*lacks .* functions")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exchanging(tmp_path_factory.mktemp("exchanging"))


def both(system: Any, **settings: Any) -> Results:
    """The results of the kernel, which must be those of the reference interpreter."""
    native, reference = (
        simulate(system, backend=backend, **settings)
        for backend in (Backend.NATIVE, Backend.REFERENCE)
    )
    for name, values in native.items():
        assert values.tobytes() == reference[name].tobytes(), name
    return native


@pytest.mark.parametrize("solver", ["dormand-prince", "cvode", "euler"])
@pytest.mark.parametrize("clock", [None, "early-return"])
def test_time_events_at_communication_points_are_executed_once(
    path: Path, solver: str, clock: str | None
) -> None:
    """3 * 0.1 is above the communication point 0.3; the FMU executes no event before its time."""
    settings: dict[str, Any] = {"solver": solver, "event_clock": clock}
    results = both(path, start_values={"period": 0.1}, stop_time=2.0, step_size=0.1, **settings)
    last = np.unique(results.time, return_index=True)[1][1:] - 1
    assert results["n"][[*last, -1]].tolist() == [*range(21)]


@pytest.mark.parametrize("backend", Backend)
def test_a_time_event_that_is_never_executed_ends_the_run(path: Path, backend: Backend) -> None:
    values = {"period": 0.25, "stubborn": 1}
    with pytest.raises(CallError, match=r"at t = 0\.25 s do not end: there were 1000"):
        simulate(path, start_values=values, stop_time=1.0, step_size=0.1, backend=backend)


@pytest.mark.parametrize(
    ("algorithm", "parts"),
    [(GaussSeidel(), 1), (Waveform(Jacobi(FIRST_ORDER)), 1), (Richardson(GaussSeidel()), 2)],
    ids=["once", "waveform", "Richardson"],
)
def test_discrete_inputs_are_set_again_where_a_step_is_repeated(
    path: Path, algorithm: Algorithm, parts: int
) -> None:
    """A restored FMU has its earlier input. b integrates the samples of a ramp, one in each part of a step."""
    system = SystemBuilder()
    system.add("a", path, {"d": 1.0})
    system.add("b", path)
    system.connect("a.x", "b.d")
    results = both(system, algorithm=algorithm, stop_time=1.0, step_size=0.1)
    k, part = parts * np.arange(11), 0.1 / parts
    assert results["b.x"] == pytest.approx(part**2 * k * (k + 1) / 2, abs=1e-12)


@pytest.mark.parametrize("clock", [None, "early-return"])
def test_after_a_time_event_at_the_end_of_a_step_the_integrator_estimates_its_first_step_anew(
    path: Path, clock: str | None
) -> None:
    """Also where the FMU requests a step event at the same time: it enters Event Mode after each step of the integrator.
    The first one is of 1e-6 s where x is 0, then of 1 % of x; each other one is ten times as long as the one before it."""
    settings: dict[str, Any] = {"solver": "dormand-prince", "event_clock": clock}
    values = {"period": 0.25, "eager": 1, "d": 1.0}
    results = both(path, start_values=values, stop_time=1.0, step_size=0.25, **settings)
    quarters = (0.0, 0.25, 0.5, 0.75, 1.0)
    found = [int(results["entries"][results.time == t][-1]) for t in quarters]
    assert found == [0, 7, 10, 13, 16]


@pytest.mark.parametrize("clock", [None, "early-return"])
def test_an_input_that_jumps_over_a_threshold_is_a_state_event(
    path: Path, clock: str | None
) -> None:
    """The indicator changes where the input is set, between two steps of the integrator."""
    system = SystemBuilder()
    system.add("a", path, {"d": 1.0})
    system.add("b", path, {"threshold": 0.55})
    system.connect("a.x", "b.u")
    settings: dict[str, Any] = {"algorithm": Jacobi(), "event_clock": clock}
    results = both(system, stop_time=1.0, step_size=0.1, **settings)
    assert results["b.state_events"][-1] == 1
    if clock is not None:
        assert [float(e.time) for e in results.events] == pytest.approx([0.6], abs=1e-14)


def test_a_single_event_is_executed_if_states_are_copied(tmp_path: Path) -> None:
    """Continuous-Time Mode may go back to an accepted point, but never behind an event."""
    path = exchanging(tmp_path, can_save=False)
    system = SystemBuilder()
    system.add("a", path, {"period": 0.3})
    system.add("b", reference_path("fmi3/Dahlquist.fmu"))
    system.connect("a.x", "b.u")
    settings: dict[str, Any] = {
        "algorithm": Waveform(Jacobi(FIRST_ORDER)),
        "event_clock": "early-return",
    }
    results = both(system, stop_time=1.0, step_size=0.1, **settings)
    assert results["a.n"][-1] == 3
