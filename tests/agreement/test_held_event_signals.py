"""An input that always needs a value holds that of a clocked output between its ticks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.inputs import LINEAR
from fmimaster.run import Backend

BACKENDS = (Backend.NATIVE, Backend.REFERENCE)
INPUT, OUTPUT = "Float64_continuous_input", "Float64_continuous_output"
EVENTS = {"count": 4, "times": [3, 10, 17, 29], "resolution": 10, "values": [1.5, -2, 7, 3]}


def system() -> SystemBuilder:
    """A source of events, whose value and whose own held value go to two equal units each."""
    builder = SystemBuilder("held")
    builder.add("source", reference_path("fmi3/EventSource.fmu"))
    for name, value in EVENTS.items():
        few = isinstance(value, list)
        builder.set(f"source.{name}", [*value, 0, 0, 0, 0] if few else value)  # type: ignore[misc]
    for output, names in (("value", "ac"), ("held", "bd")):
        builder.add(names[0], reference_path("fmi3/Feedthrough.fmu"))
        builder.add(names[1], reference_path("fmi3/Sampler.fmu"))
        builder.connect(f"source.{output}", f"{names[0]}.{INPUT}")
        builder.connect(f"source.{output}", f"{names[1]}.u")
    return builder


ALGORITHMS = [
    Jacobi(),
    Jacobi(LINEAR),
    GaussSeidel(),
    GaussSeidel(LINEAR),
    Richardson(Jacobi()),
    Waveform(GaussSeidel()),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_it_is_the_value_that_the_fmu_itself_holds(algorithm: Any, backend: Backend) -> None:
    run = Simulation(
        system(), stop_time=4, step_size=0.25, algorithm=algorithm, backend=backend
    ).run()
    here, there = run[f"a.{OUTPUT}"], run[f"b.{OUTPUT}"]
    np.testing.assert_array_equal(here, there)
    np.testing.assert_array_equal(run["c.held"], run["d.held"])
    assert {-2.0, 1.5, 3.0, 7.0} <= set(here)


@pytest.mark.parametrize("backend", BACKENDS)
def test_before_the_first_tick_it_is_the_start_value_of_the_input(backend: Backend) -> None:
    builder = system()
    builder.set(f"a.{INPUT}", 5)
    run = Simulation(builder, stop_time=1.5, step_size=0.25, backend=backend).run()
    before = run.time < 0.3
    assert set(run[f"a.{OUTPUT}"][before]) == {5.0}
    assert run[f"a.{OUTPUT}"][-1] == -2.0


def test_a_note_says_so() -> None:
    run = Simulation(system(), stop_time=1, step_size=0.25).run()
    [note] = [n for n in run.statistics.notes if f"a.{INPUT}" in n]
    assert note == (
        f"'a.{INPUT}' holds the last value of 'source.value', which has one only while its clock ticks (event)"
    )
