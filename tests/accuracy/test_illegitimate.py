"""Systems whose events do not end at one time (hybrid.md 2.3), and those that only look like it."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from fmimaster import Results, Simulation, SystemBuilder, reference_path
from fmimaster.base.errors import SimulationError
from fmimaster.run import Backend


def unit(name: str) -> str:
    return str(reference_path(f"fmi3/{name}.fmu"))


def run(system: Any, **settings: Any) -> Results:
    return Simulation(system, **{"step_size": 1, "stop_time": 3, **settings}).run()


def test_2_3_a_police_officer_without_time_is_illegitimate_at_0(backend: Backend) -> None:
    builder = SystemBuilder("police")
    builder.add("police", unit("PoliceOfficer"), {"idle": 0, "working": 0})
    builder.add("light", unit("TrafficLight"))
    builder.connect("police.toWork", "light.toOff")
    builder.connect("police.toIdle", "light.toAuto")
    begin = process_time()
    with pytest.raises(SimulationError, match=r"illegitimate: events at t = 0 s do not end") as e:
        run(builder, backend=backend)
    assert process_time() - begin < 2
    message = str(e.value)
    assert "'police'" in message
    assert "limit: 1000 event iterations" in message
    assert "police.mode" in message  # it still changes


def test_2_3_two_units_that_feed_each_other_in_no_time_are_illegitimate(backend: Backend) -> None:
    builder = SystemBuilder("ring")
    builder.add("a", unit("Countdown"), {"interval.counter": 0, "startsItself": True})
    builder.add("b", unit("Countdown"), {"interval.counter": 0})
    builder.add("other", unit("Countdown"))
    builder.connect("a.fire", "b.start")
    builder.connect("b.fire", "a.start")
    with pytest.raises(SimulationError, match=r"illegitimate: events at t = 0 s do not end") as e:
        run(builder, backend=backend)
    message = str(e.value)
    assert "'a', 'b' keep each other awake" in message
    assert "a.count" in message
    assert "a.fire -> b.start" in message
    assert "'other'" not in message


def test_2_3_five_transitions_in_no_time_are_legal(backend: Backend) -> None:
    r = run(
        unit("Countdown"),
        start_values={"interval.counter": 0, "times": 5, "startsItself": True},
        backend=backend,
    )
    assert r["count"][-1] == 5
    assert r.time[-1] == 3
