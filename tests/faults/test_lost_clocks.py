"""FMUs with clocks in processes of their own that are killed at a tick, while others have clocks as well."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from fmimaster import AccuracyWarning, Results, Simulation, SystemBuilder, reference_path
from fmimaster.run.executor import Backend

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of FMUs need Linux")


def system() -> SystemBuilder:
    """A controller, whose samples arm the countdown of one unit and request a partition of another one."""
    builder = SystemBuilder("clocks")
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    law = {"gain": -2, "offset": 1, "interval.counter": 1, "interval.resolution": 7}
    builder.add("controller", reference_path("fmi3/Sampler.fmu"), law)
    builder.add("kinds", reference_path("fmi3/ClockKinds.fmu"))
    builder.add("tasks", reference_path("fmi3/Partitions.fmu"), {"amount": 1})
    builder.connect("plant.x", "controller.u")
    builder.connect("controller.held", "plant.u")
    builder.connect("controller.sampled", "kinds.arm")
    builder.connect("controller.sampled", "tasks.request")
    return builder


def below(process: int) -> set[int]:
    """The processes that have no children among those that descend from this one."""
    children: set[int] = set()
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended meanwhile
            children.update(map(int, file.read_text(encoding="utf-8").split()))
    return {leaf for child in children for leaf in below(child)} or {process}


def killed(name: str, policy: str, backend: Backend) -> Results:
    """The run, with the process of one component killed after its tick at 2/7 s."""
    before = below(os.getpid())
    simulation = Simulation(
        system(), stop_time=2, step_size="1/10", backend=backend, isolate=[name], on_fault=policy
    )
    with simulation.start() as run:
        run.advance("2/7")
        [process] = below(os.getpid()) - before
        os.kill(process, signal.SIGKILL)
        run.advance_to(2)
    return run.results


def rows(results: Results) -> dict[str, list[object]]:
    return {name: results[name].tolist() for name in results.names if not name.endswith(".dropped")}


@pytest.mark.parametrize("name", ["controller", "kinds", "tasks"])
def test_a_restart_leaves_the_ticks_as_they_are(name: str) -> None:
    expected = Simulation(system(), stop_time=2, step_size="1/10").run()
    found = killed(name, "restart", Backend.NATIVE)
    assert rows(found) == rows(expected)
    assert found.activations == expected.activations


@pytest.mark.parametrize("name", ["controller", "kinds", "tasks"])
def test_without_the_fmu_both_executors_go_on_alike(name: str) -> None:
    with pytest.warns(AccuracyWarning, match=f"'{name}' was dropped at t = 0.285714285714 s"):
        native = killed(name, "drop", Backend.NATIVE)
    with pytest.warns(AccuracyWarning, match=f"'{name}' was dropped"):
        reference = killed(name, "drop", Backend.REFERENCE)
    assert native.time[-1] == 2.0
    assert rows(native) == rows(reference)
    assert native.activations == reference.activations


def test_the_outputs_keep_the_values_that_were_read_last() -> None:
    """At 1 s a second clock ticks, for the first time since 0 s: the values are not those of then."""
    with pytest.warns(AccuracyWarning, match="dropped .* in a change of its mode"):
        results = killed("tasks", "drop", Backend.REFERENCE)
    after = np.ma.compressed(results["tasks.order"][results.time > 0.3])
    assert set(after.tolist()) == {2}
