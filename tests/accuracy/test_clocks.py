"""Clocks at exact times (hybrid.md 7): which ticks coincide, and where each one is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from stored_tables import table

from fmimaster import Results, SystemBuilder, reference_path
from fmimaster.base.errors import AccuracyWarning
from fmimaster.front.simulation import Simulation
from fmimaster.instants.calendar import Calendar
from fmimaster.run.executor import Backend


def two_clocks(backend: Backend, a: Fraction, b: Fraction, stop_time: Any) -> Results:
    """Two samplers with clocks of these intervals in s, in steps that are as long as the run."""
    system = SystemBuilder("clocks")
    for name, interval in (("a", a), ("b", b)):
        counters = {"counter": interval.numerator, "resolution": interval.denominator}
        values = {f"interval.{key}": value for key, value in counters.items()}
        system.add(name, reference_path("fmi3/Sampler.fmu"), values)
    return Simulation(
        system.build(),
        stop_time=stop_time,
        step_size=stop_time,
        backend=backend,
        output_variables=["*.tick", "*.y"],
    ).run()


def ticks(results: Results) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times of the rows in which a clock is active, and which of the two are."""
    a, b = (np.asarray(results[f"{name}.tick"], bool) for name in "ab")
    rows = a | b
    return results.time[rows], a[rows], b[rows]


def test_c1_a_tenth_and_a_third_to_2_s(backend: Backend) -> None:
    times, a, b = ticks(two_clocks(backend, Fraction(1, 10), Fraction(1, 3), 2))
    expected = table("hybrid_clocks_rational.csv")
    assert times.tolist() == [float(Fraction(row["t"])) for row in expected]
    assert a.tolist() == [row["tick_a"] == "1" for row in expected]
    assert b.tolist() == [row["tick_b"] == "1" for row in expected]


@pytest.mark.parametrize("n", [100, pytest.param(1000, marks=pytest.mark.thorough)])
def test_c1_a_coincidence_in_each_second(backend: Backend, n: int) -> None:
    """hybrid.md 7, C1: to 1000 s."""
    results = two_clocks(backend, Fraction(1, 10), Fraction(1, 3), n)
    times, a, b = ticks(results)
    counts = 10 * n + 1, 3 * n + 1, n + 1, 12 * n + 1
    assert (a.sum(), b.sum(), (a & b).sum(), len(times)) == counts
    assert times[-1] == n
    exact = {float(Fraction(k, 10)) for k in range(counts[0])} | {
        float(Fraction(k, 3)) for k in range(counts[1])
    }
    assert times.tolist() == sorted(exact)
    found = {s.clock: (s.first, s.interval, s.count) for s in results.activations}
    assert found == {
        "a.tick": (Fraction(0), Fraction(1, 10), counts[0]),
        "b.tick": (Fraction(0), Fraction(1, 3), counts[1]),
    }


def test_c2_intervals_without_a_common_multiple_below_their_product(backend: Backend) -> None:
    times, a, b = ticks(two_clocks(backend, Fraction(3, 10), Fraction(1, 2), 30))
    assert (a.sum(), b.sum(), (a & b).sum(), len(times)) == (101, 61, 21, 141)


def test_c3_an_irrational_interval_is_the_number_that_was_given(backend: Backend) -> None:
    root = Fraction(2**0.5)
    times, a, b = ticks(two_clocks(backend, Fraction(1), root, 1000))
    assert (a.sum(), b.sum(), (a & b).sum(), len(times)) == (1001, 708, 1, 1708)


def test_c4_a_decimal_is_not_the_fraction_it_is_near(backend: Backend) -> None:
    system = SystemBuilder("c4")
    system.add("k", reference_path("fmi3/ClockKinds.fmu"), {"fixed": "0.3333333333333333"})
    names = ["k.constant", "k.fixed"]
    simulation = Simulation(
        system.build(), stop_time=10, step_size=10, backend=backend, output_variables=names
    )
    with pytest.warns(AccuracyWarning, match="'k.fixed' has .* nearly 1/3 s but not equal"):
        results = simulation.run()
    a, b = (np.asarray(results[name], bool) for name in ("k.constant", "k.fixed"))
    assert (a.sum(), b.sum(), (a & b).sum()) == (101, 30, 0)  # the shift is 1/20: never together


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.thorough)])
def test_c5_the_last_of_many_ticks_is_exact(n: int) -> None:
    """hybrid.md 7, C5: of a million. The time for it is measured by benchmarks/clocks.py."""
    calendar = Calendar(10)
    calendar.repeat(0, 0, 1)
    for _ in range(n):
        calendar.take((0,))
    assert calendar.first.seconds == n / 10
    assert len(calendar.waiting) < 100


def test_c7_a_new_interval_of_a_tunable_clock_counts_from_the_event(backend: Backend) -> None:
    system = SystemBuilder("c7")
    system.add(
        "event",
        reference_path("fmi3/EventSource.fmu"),
        {"count": 1, "times": [7] * 8, "resolution": 20},
    )
    system.add("k", reference_path("fmi3/ClockKinds.fmu"))
    system.connect("event.event", "k.retune")
    results = Simulation(
        system.build(),
        stop_time="1.1",
        step_size="1.1",
        backend=backend,
        output_variables=["k.tunable"],
    ).run()
    rows = np.asarray(results["k.tunable"], bool)
    expected = ["0", "1/10", "2/10", "3/10", "3/5", "17/20", "11/10"]
    assert results.time[rows].tolist() == [float(Fraction(t)) for t in expected]
    found = [(s.first, s.last, s.count) for s in results.activations if s.clock == "k.tunable"]
    assert found[0] == (Fraction(0), Fraction(3, 10), 4)
    assert found[-1][1:] == (Fraction(11, 10), 3)


def test_clocks_of_model_exchange_tick_in_event_mode_too(backend: Backend) -> None:
    """The FMU with both interfaces gives the same rows; its samples arm a countdown of another FMU."""
    found, stop = [], 5
    for interface in ("CoSimulation", "ModelExchange"):
        system = SystemBuilder("exchange")
        quarter = {"interval.counter": 1, "interval.resolution": 4}
        system.add("s", reference_path("fmi3/Sampler.fmu"), quarter, interface=interface)
        system.add("ramp", reference_path("fmi3/EventSource.fmu"), {"count": 0})
        system.add("k", reference_path("fmi3/ClockKinds.fmu"))
        system.connect("ramp.ramp", "s.u")
        system.connect("s.sampled", "k.arm")
        found.append(
            Simulation(
                system.build(),
                stop_time=stop,
                step_size="1/3",
                backend=backend,
                output_variables=["s.tick", "s.y", "s.count", "k.countdown.tick"],
            ).run()
        )
    a, b = found
    assert a.time.tolist() == b.time.tolist()
    for name in ("s.tick", "s.y", "s.count", "k.countdown.tick"):
        assert np.ma.asarray(a[name]).tolist() == np.ma.asarray(b[name]).tolist()
    y = np.ma.asarray(b["s.y"])
    assert y.compressed().tolist() == [k / 4 for k in range(4 * stop + 1)]
    present = ~np.ma.getmaskarray(b["k.countdown.tick"])
    assert b.time[present].tolist() == [(5 * k + 1) / 20 for k in range(4 * stop)]
