"""The table "my FMU ..." of docs/events.md: each row with a public FMU, which knows nothing of fmimaster.

The FMU's own run is the reference: no event clock, steps of its own solver.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_fmus import modelica_fmu

from fmimaster import OptionError, Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import GaussSeidel
from fmimaster.events import EarlyReturn, LookAhead, Predictive
from fmimaster.events.event_clock import EventClock
from fmimaster.fmu.manifest_writer import add_manifest
from fmimaster.steps import Locate

SOLVER_STEP = 1e-3
"""[s] Of modelica's BouncingBall."""
STOP = 2.5
"""[s] It has bounced nine times, and is not at rest yet."""

pytestmark = pytest.mark.filterwarnings("default")

MANIFEST = b"""<?xml version="1.0" encoding="UTF-8"?>
<fmiLayeredStandardManifest xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"
    fmi-ls:fmi-ls-name="org.fmimaster.fmi-ls-events" fmi-ls:fmi-ls-version="0.2.0"
    fmi-ls:fmi-ls-description="Event indicator sets, shared events, look-ahead">
  <Event name="floor" scope="private"><Indicator name="h" derivative="v"/><Indicator name="v"/></Event>
</fmiLayeredStandardManifest>
"""


def bounces(results: Results) -> list[float]:
    """Times in s of the rows at which the ball has begun to rise."""
    v = results["v"]
    return list(results.time[1:][(v[:-1] < 0) & (v[1:] > 0)])


def delay(results: Results, times: list[float]) -> float:
    """The longest time in s from an event to the next communication point, at which others learn of it."""
    return float(np.max(results.time[np.searchsorted(results.time, times)] - times))


def own_bounces(fmu: Path) -> list[float]:
    found = bounces(simulate(fmu, stop_time=STOP, step_size=repr(SOLVER_STEP), event_mode=False))
    assert len(found) == 9
    return found


@pytest.mark.parametrize("step_size", [0.1, 0.01, 0.001])
def test_an_fmu_that_returns_early_is_served_by_early_return(step_size: float) -> None:
    fmu = modelica_fmu("BouncingBall", "3.0")
    results = simulate(fmu, stop_time=STOP, step_size=step_size, event_clock=EarlyReturn())
    assert bounces(results) == pytest.approx(own_bounces(fmu), abs=1e-9)
    events = [e.time for e in results.events]
    # it requests Event Mode at the solver's step in which it meets the floor, and bounces at the end of it
    assert all(min(abs(np.array(events) - t)) < 1.5 * SOLVER_STEP for t in own_bounces(fmu))


def test_an_fmu_with_event_mode_and_without_early_return_is_served_by_event_mode() -> None:
    fmu = modelica_fmu("Stair", "3.0")
    results = simulate(fmu, stop_time=3.5, step_size=0.3, event_mode=True)
    assert [e.time for e in results.events] == [1.0, 2.0, 3.0]
    last = np.append(np.diff(results.time) > 0, True)
    assert np.array_equal(results["counter"][last], 1 + np.floor(results.time[last]))


@pytest.mark.parametrize("clock", [LookAhead(), Predictive()], ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_an_fmu_whose_outputs_reach_zero_at_an_event_is_served_by_a_manifest_of_one_event(
    version: str, clock: EventClock, tmp_path: Path
) -> None:
    fmu = modelica_fmu("BouncingBall", version)
    copy = add_manifest(fmu, MANIFEST, tmp_path / "BouncingBall.fmu")
    results = simulate(copy, stop_time=STOP, step_size=0.02, event_clock=clock)
    assert delay(results, own_bounces(fmu)) <= 0.005
    assert results.statistics.steps <= 250


@pytest.mark.parametrize("step_size", [0.1, 0.05, 0.01, 0.005, 0.001])
@pytest.mark.parametrize("has", ["event indicator", "manifest"])
def test_an_fmu_with_a_private_event_is_served_by_predictive(
    step_size: float, has: str, tmp_path: Path
) -> None:
    fmu = modelica_fmu("BouncingBall", "3.0")
    used = fmu if has != "manifest" else add_manifest(fmu, MANIFEST, tmp_path / "BouncingBall.fmu")
    results = simulate(used, stop_time=STOP, step_size=step_size, event_clock=Predictive())
    assert bounces(results) == pytest.approx(own_bounces(fmu), abs=1e-9)
    assert sum(i.restores for i in results.statistics.instances) == 0


@pytest.mark.parametrize("step_size", [0.1, 0.01])
def test_an_fmu_that_executes_a_private_event_inside_its_steps_is_served_by_predictive(
    step_size: float, tmp_path: Path
) -> None:
    fmu = modelica_fmu("BouncingBall", "2.0")
    copy = add_manifest(fmu, MANIFEST, tmp_path / "BouncingBall.fmu")
    results = simulate(copy, stop_time=STOP, step_size=step_size, event_clock=Predictive())
    assert bounces(results) == pytest.approx(own_bounces(fmu), abs=SOLVER_STEP)


def test_an_fmu_with_an_event_indicator_is_served_by_look_ahead() -> None:
    fmu = modelica_fmu("BouncingBall", "3.0")
    for clock, longest in ((None, 0.02), (LookAhead(), 0.005)):
        results = simulate(fmu, stop_time=STOP, step_size=0.02, event_mode=False, event_clock=clock)
        found = delay(results, own_bounces(fmu))
        assert longest / 2 < found <= longest


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_an_fmu_that_changes_a_discrete_output_is_served_by_locate(version: str) -> None:
    builder = SystemBuilder()
    builder.add("stair", modelica_fmu("Stair", version))
    builder.add("other", reference_path(f"fmi{version[0]}/Feedthrough.fmu"))
    builder.connect("stair.counter", "other.Int32_input")
    settings: dict[str, Any] = {"algorithm": GaussSeidel(), "event_mode": False}
    results = simulate(builder.build(), stop_time=3.5, step_size=Locate(0.3), **settings)
    # the FMU itself counts up to 1e-5 s early each time
    assert [e.time for e in results.events] == pytest.approx([1.0, 2.0, 3.0], abs=5e-5)
    assert [e.right for e in results.events] == [{"stair.counter": n} for n in (2, 3, 4)]


@pytest.mark.parametrize("model", ["BouncingBall", "StateSpace"])
def test_without_anything_of_that_an_event_clock_is_refused(model: str) -> None:
    fmu = modelica_fmu(model, "2.0" if model == "BouncingBall" else "3.0")
    for clock in (EarlyReturn(), LookAhead()):
        with pytest.raises(OptionError, match=r'docs/events\.md, "My FMU has'):
            simulate(fmu, stop_time=1, step_size=0.1, event_clock=clock)
    assert simulate(fmu, stop_time=1, step_size=0.1).rows == 11
