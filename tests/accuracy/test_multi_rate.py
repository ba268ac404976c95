"""Several rates with FMUs in C, FMI 2.0 and 3.0, on both executors: the same bits, and what power bonds find."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from stored_tables import table

from fmimaster import Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import SubSteps
from fmimaster.run import Backend
from fmimaster.steps import MultiRate
from fmimaster.system.description import SystemDescription

RATES = {"A": "1/100", "B": "1/40", "C": "1/30"}


def ring(fmi: int) -> SystemDescription:
    """x' = -x + u of three units, where u is half the x of the one before."""
    builder = SystemBuilder("ring")
    for name in RATES:
        builder.add(name, reference_path(f"fmi{fmi}/Dahlquist.fmu"))
    for source, target in ("CA", "AB", "BC"):
        builder.connect(f"{source}.x", f"{target}.u", factor=0.5)
    return builder.build()


def both(system: Any, **settings: Any) -> Results:
    """The results of both executors, which are the same bit by bit."""
    native, reference = (
        Simulation(system, backend=backend, **settings).run()
        for backend in (Backend.FASTEST, Backend.REFERENCE)
    )
    assert native.time.tolist() == reference.time.tolist()
    for name in native.names:
        assert native[name].tolist() == reference[name].tolist(), name
    return native


@pytest.mark.parametrize("fmi", [2, 3])
def test_9_three_rates_of_fmus_meet_at_the_141_points_of_the_table(fmi: int) -> None:
    """hybrid.md 9: the points exactly, 100, 40 and 30 steps, and 11 points at which all meet."""
    results = both(ring(fmi), step_size=MultiRate(components=RATES), stop_time=1)
    points = table("hybrid_multirate_points.csv")
    assert results.time.tolist() == [float(Fraction(row["t"])) for row in points]
    assert len(results.time) == 141
    assert [i.calls for i in results.statistics.instances] == [100, 40, 30]
    # a component is stepped, and its output changes, at its own points only
    for name in RATES:
        changed = np.flatnonzero(np.diff(results[f"{name}.x"])) + 1
        assert changed.tolist() == [k for k, row in enumerate(points) if k and row[name] == "1"]
    meeting = [row["t"] for row in points if all(row[name] == "1" for name in RATES)]
    assert [Fraction(t) for t in meeting] == [Fraction(k, 10) for k in range(11)]


@pytest.mark.parametrize("fmi", [2, 3])
def test_rates_that_become_shorter_come_nearer_to_the_solution(fmi: int) -> None:
    """First order: all units are the same, so that x' = -x / 2."""

    def error(shorter: int) -> float:
        sizes = {name: f"1/{int(h[2:]) * shorter}" for name, h in RATES.items()}
        rule = MultiRate(components=sizes)
        results = Simulation(ring(fmi), step_size=rule, stop_time=1).run()
        return max(abs(float(results[f"{n}.x"][-1]) - exp(-0.5)) for n in RATES)

    assert error(2) / error(4) == pytest.approx(2.0, rel=0.2)


@pytest.mark.parametrize("fmi", [2, 3])
def test_sub_steps_of_fmus(fmi: int) -> None:
    car = reference_path(f"systems/quarter-car-a-fmi{fmi}.ssp")
    results = both(car, algorithm=SubSteps(counts={"wheel": 5}), step_size="1/500", stop_time=0.2)
    assert {i.name: i.calls for i in results.statistics.instances} == {"chassis": 100, "wheel": 500}


@pytest.mark.parametrize(
    ("rule", "slowest"),
    [
        (MultiRate("1/500", {"wheel": "1/2000"}), "1/500"),
        (MultiRate("1/1500", {"wheel": "1/1000"}), "1/1000"),
    ],
    ids=["one grid in the other", "crossing grids"],
)
def test_a_power_bond_between_two_rates_has_the_residual_energy_of_the_slower_one(
    rule: MultiRate, slowest: str
) -> None:
    """Its ends exchange values as rarely; power counts for the time since both ends were measured last."""
    car = reference_path("systems/quarter-car-a-fmi2.ssp")
    one_rate = Simulation(car, step_size=slowest, stop_time=1, algorithm="Jacobi")
    [slow] = one_rate.run().statistics.power_bonds
    [found] = both(car, stop_time=1, step_size=rule).statistics.power_bonds
    assert found.residual_energy == pytest.approx(slow.residual_energy, rel=0.02)


def test_bonds_of_fast_components_are_measured_in_each_sub_step() -> None:
    """Both ends do 10 sub-steps: residual and transmitted energy are those of steps of a tenth."""
    car = reference_path("systems/quarter-car-a-fmi2.ssp")
    every = SubSteps(counts={"wheel": 10, "chassis": 10})
    [found] = (
        Simulation(car, algorithm=every, step_size="1/100", stop_time=1)
        .run()
        .statistics.power_bonds
    )
    short = SubSteps()
    [same] = (
        Simulation(car, algorithm=short, step_size="1/1000", stop_time=1)
        .run()
        .statistics.power_bonds
    )
    assert found.residual_energy == pytest.approx(same.residual_energy, rel=1e-6)
    assert found.transmitted_energy == pytest.approx(same.transmitted_energy, rel=1e-6)
