"""Elements of semantic adaptation at FMUs, against exact instants and values (hybrid.md 12)."""

from __future__ import annotations

from math import acos, floor, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_fmu import linear_fmu

from fmimaster import (
    FmimasterError,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
    resume,
    simulate,
)
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.events import Predictive
from fmimaster.run import Backend
from fmimaster.system import (
    Direction,
    EventCounter,
    LevelCrossing,
    Quantizer,
    SampleAndHold,
    UnitDelay,
)


def changes(r: Results, name: str) -> list[tuple[Any, Any]]:
    """Time and new value of each change."""
    at = np.flatnonzero(np.diff(r[name])) + 1
    return [(float(r.time[k]), float(r[name][k])) for k in at]


@pytest.fixture
def oscillator(tmp_path: Path) -> Path:
    """x = cos(t), exact, with the output of its derivative."""
    unit: dict[str, Any] = {"a": [[0, 1], [-1, 0]], "c": [[1, 0], [0, 1]], "x0": [1, 0]}
    units = {"x": "m", "v": "m/s"}
    return linear_fmu(tmp_path / "a.fmu", "fmi3", outputs=["x", "v"], units=units, **unit)


def adapted(fmu: Path, **elements: Any) -> SystemBuilder:
    """An oscillator, and elements whose input is its position."""
    system = SystemBuilder("oscillator")
    system.add("unit", fmu)
    for name, element in elements.items():
        system.add(name, element)
        system.connect("unit.x", f"{name}.u")
    return system


def times_at(x: float, until: float, *, falling: bool) -> list[float]:
    """Times at which cos(t) reaches a value."""
    first = acos(x) if falling else 2 * pi - acos(x)
    return [t for k in range(9) if (t := first + 2 * pi * k) < until]


# Level crossing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", Direction)
def test_an_event_clock_locates_a_level_crossing(
    oscillator: Path, backend: Backend, direction: Direction
) -> None:
    expected = sorted(
        t
        for falling in (True, False)
        if direction is not (Direction.RISING if falling else Direction.FALLING)
        for t in times_at(0.3, 20, falling=falling)
    )
    r = simulate(
        adapted(oscillator, level=LevelCrossing(0.3, direction)),
        stop_time=20,
        step_size=0.1,
        event_clock=Predictive(),
        backend=backend,
    )
    found = changes(r, "level.count")
    assert [t for t, _ in found] == pytest.approx(expected, abs=1e-8)
    assert [n for _, n in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize(("algorithm", "late"), [(Jacobi(), 2), (GaussSeidel(), 1)])
def test_without_one_it_occurs_at_a_communication_point(
    backend: Backend, algorithm: Any, late: int
) -> None:
    """The element gets the value of the end of a step with Gauss-Seidel, and that of its start with Jacobi."""
    system = SystemBuilder()
    system.add("source", reference_path("fmi3/EventSource.fmu"), {"count": 0})
    system.add("level", LevelCrossing(0.35, Direction.RISING))
    system.connect("source.ramp", "level.u")
    r = simulate(system, stop_time=1, step_size=0.1, algorithm=algorithm, backend=backend)
    [(time, count)] = changes(r, "level.count")
    assert (time, count) == (pytest.approx(0.3 + 0.1 * late), 1)


def test_a_start_at_the_level_is_no_crossing(oscillator: Path, backend: Backend) -> None:
    for clock in None, Predictive():
        r = simulate(
            adapted(oscillator, level=LevelCrossing(1.0, Direction.RISING)),
            stop_time=1,
            step_size=0.1,
            event_clock=clock,
            backend=backend,
        )
        assert changes(r, "level.count") == []


# Quantizer ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hysteresis", [0.0, 0.05])
def test_an_event_clock_locates_the_changes_of_a_quantizer(
    oscillator: Path, backend: Backend, hysteresis: float
) -> None:
    """From 1 to -1 and back, in steps of 0.5."""
    far = 0.25 + hysteresis
    levels = [-1.0, -0.5, 0.0, 0.5, 1.0]
    expected = [(t, y) for y in levels[:-1] for t in times_at(y + 0.5 - far, 12, falling=True)]
    expected += [(t, y) for y in levels[1:] for t in times_at(y - 0.5 + far, 12, falling=False)]
    r = simulate(
        adapted(oscillator, steps=Quantizer(0.5, hysteresis)),
        stop_time=12,
        step_size=0.1,
        event_clock=Predictive(),
        backend=backend,
    )
    found = changes(r, "steps.y")
    assert [y for _, y in found] == [y for _, y in sorted(expected)]
    assert [t for t, _ in found] == pytest.approx([t for t, _ in sorted(expected)], abs=1e-8)
    assert r.units["steps.y"] == "m"


def test_the_output_of_a_quantizer_is_near_its_input(oscillator: Path) -> None:
    steps = adapted(oscillator, steps=Quantizer(0.1, 0.02))
    r = simulate(steps, stop_time=10, step_size=0.01, algorithm=GaussSeidel())
    # the speed is at most 1, and the element sees the position at the end of each step
    assert np.abs(r["steps.y"] - r["unit.x"]).max() <= 0.05 + 0.02 + 0.01


def test_a_signal_at_a_threshold_is_one_event(backend: Backend) -> None:
    """A ramp of 1 in steps of 0.25, without hysteresis: above 0.125 it is at the lower threshold of the next value."""
    system = SystemBuilder()
    system.add("source", reference_path("fmi3/EventSource.fmu"), {"count": 0})
    system.add("steps", Quantizer(0.25))
    system.connect("source.ramp", "steps.u")
    r = simulate(system, stop_time=1, step_size=0.1, event_clock=Predictive(), backend=backend)
    assert changes(r, "steps.y") == [
        (pytest.approx(0.125 + 0.25 * k, abs=1e-12), 0.25 * (k + 1)) for k in range(4)
    ]


# Runs -----------------------------------------------------------------------------------------------------------------


def test_elements_are_the_same_on_both_executors_and_on_several_threads(
    oscillator: Path,
) -> None:
    results = [
        simulate(
            adapted(oscillator, level=LevelCrossing(0.3), steps=Quantizer(0.5, 0.05)),
            stop_time=5,
            step_size=0.1,
            event_clock=Predictive(),
            backend=backend,
            threads=threads,
        )
        for backend in (Backend.REFERENCE, Backend.NATIVE)
        for threads in (1, 8)
    ]
    first = results[0]
    for other in results[1:]:
        assert other.time.tobytes() == first.time.tobytes()
        for name in first.names:
            assert np.asarray(other[name]).tobytes() == np.asarray(first[name]).tobytes()


# Event signals --------------------------------------------------------------------------------------------------------


def source(count: int = 0, **parameters: Any) -> SystemBuilder:
    """A system with the source of a ramp, and of so many events at 1, 2, ... s."""
    system = SystemBuilder()
    given = {"count": count, **parameters}
    system.add("source", reference_path("fmi3/EventSource.fmu"), given)
    return system


def present(r: Results, name: str) -> list[tuple[float, float]]:
    """Time and value of each row in which an event signal is present."""
    at = np.flatnonzero(~np.ma.getmaskarray(r[name]))
    return [(float(r.time[k]), float(r[name][k])) for k in at]


def test_sd7_sample_and_hold(backend: Backend) -> None:
    system = source()
    system.add("sampler", SampleAndHold(period="1/4"))
    system.connect("source.ramp", "sampler.u")
    r = simulate(system, stop_time=2, step_size=0.5, backend=backend)
    assert present(r, "sampler.sample") == [(k / 4, k / 4) for k in range(9)]
    assert changes(r, "sampler.y") == [(k / 4, k / 4) for k in range(1, 9)]
    # y is held between, and at the left limit of each tick
    assert all(
        y in (t, floor(4 * t) / 4, t - 0.25) for t, y in zip(r.time, r["sampler.y"], strict=True)
    )


def test_a_unit_delay_has_the_value_of_the_tick_before(backend: Backend) -> None:
    system = source()
    system.add("delay", UnitDelay(period="1/4", shift="1/8", start=-1))
    system.connect("source.ramp", "delay.u")
    r = simulate(system, stop_time=1, step_size=0.5, backend=backend)
    expected = [(1 / 8, -1.0), (3 / 8, 1 / 8), (5 / 8, 3 / 8), (7 / 8, 5 / 8)]
    assert present(r, "delay.sample") == expected
    assert changes(r, "delay.y") == expected[1:]


def delayed(n: int) -> SystemBuilder:
    """An event of the value 7 at 1 s, and ``n`` delays by one microstep in a row."""
    system = source(1, values=7)
    before = ("source.event", "source.value")
    for k in range(1, n + 1):
        system.add(f"d{k}", UnitDelay(microstep=True))
        system.connect(before[0], f"d{k}.clock")
        system.connect(before[1], f"d{k}.u")
        before = (f"d{k}.tick", f"d{k}.y")
    return system


def test_sd2_microstep_delays(backend: Backend) -> None:
    """The event is in row n + 1 of t = 1 after n delays."""
    r = simulate(delayed(3), stop_time=2, step_size=0.5, backend=backend)
    first = int(np.flatnonzero(r.time == 1.0)[0])
    for n, name in enumerate(("source.value", "d1.y", "d2.y", "d3.y")):
        assert present(r, name) == [(1.0, 7.0)]
        assert int(np.flatnonzero(~np.ma.getmaskarray(r[name]))[0]) == first + n + 1


@pytest.mark.parametrize(("delays", "sampled"), [(0, 7.0), (1, 0.0)])
def test_sd8_a_sampler_at_the_jump(backend: Backend, delays: int, sampled: float) -> None:
    """The sampler of an event signal ticks at the instant of the event: it samples its value, unless it is delayed."""
    system = delayed(delays)
    system.add("sampler", SampleAndHold(period=1, clocked=True))
    system.connect("source.value" if delays == 0 else "d1.y", "sampler.u")
    r = simulate(system, stop_time=1.5, step_size=0.5, backend=backend)
    assert present(r, "sampler.sample") == [(0.0, 0.0), (1.0, sampled)]


@pytest.mark.parametrize("clock", [None, Predictive()], ids=["found by itself", "located"])
def test_a_quantizer_follows_a_jump_over_several_steps(
    backend: Backend, clock: Predictive | None
) -> None:
    system = source(1, values=7)
    system.add("steps", Quantizer(0.5))
    system.connect("source.held", "steps.u")
    r = simulate(system, stop_time=2, step_size=0.5, event_clock=clock, backend=backend)
    assert changes(r, "steps.y") == [(1.0, 7.0)]


def test_a_sampler_reads_the_left_limit_of_a_signal_that_jumps_at_its_tick(
    backend: Backend,
) -> None:
    system = source(1, values=7)
    system.add("sampler", SampleAndHold(period=1))
    system.connect("source.held", "sampler.u")
    r = simulate(system, stop_time=2, step_size=0.5, backend=backend)
    assert present(r, "sampler.sample") == [(0.0, 0.0), (1.0, 0.0), (2.0, 7.0)]


def test_an_event_counter_counts_located_crossings(oscillator: Path, backend: Backend) -> None:
    system = adapted(oscillator, level=LevelCrossing(0.3), hold=SampleAndHold())
    system.add("counter", EventCounter())
    system.connect("level.tick", "counter.clock")
    system.connect("level.tick", "hold.clock")
    r = simulate(system, stop_time=12, step_size=0.1, event_clock=Predictive(), backend=backend)
    assert r["counter.count"].tolist() == r["level.count"].tolist()
    assert r["counter.count"][-1] == 4
    assert [y for _, y in present(r, "hold.sample")] == pytest.approx([0.3] * 4, abs=1e-8)


def test_a_counter_whose_clock_the_user_schedules_counts_from_the_start_on(
    backend: Backend,
) -> None:
    system = SystemBuilder("count")
    system.add("counter", EventCounter(), {"clock": 0.25})
    results = Simulation(system.build(), stop_time=1, step_size=0.5, backend=backend).run()
    assert results["counter.count"][results.time == 0.0].tolist() == [0, 1]
    assert results["counter.count"][-1] == 5


def test_sums_of_periods_are_exact(backend: Backend) -> None:
    """hybrid.md 7, C1 on a part of the time: ticks at k/10 and k/3."""
    system = source()
    for name, period in {"a": "1/10", "b": "1/3"}.items():
        system.add(name, SampleAndHold(period=period))
        system.connect("source.ramp", f"{name}.u")
    r = simulate(system, stop_time=20, step_size=5, backend=backend)
    a, b = ([t for t, _ in present(r, f"{n}.sample")] for n in "ab")
    assert a == [k / 10 for k in range(201)]
    assert b == [k / 3 for k in range(61)]
    both = ~np.ma.getmaskarray(r["a.sample"]) & ~np.ma.getmaskarray(r["b.sample"])
    assert r.time[both].tolist() == [float(k) for k in range(21)]


@pytest.mark.parametrize("clock", [None, Predictive()], ids=["found by themselves", "located"])
def test_a_run_with_elements_continues_from_a_checkpoint(
    oscillator: Path, tmp_path: Path, backend: Backend, clock: Predictive | None
) -> None:
    system = adapted(
        oscillator,
        level=LevelCrossing(0.3, Direction.RISING),
        steps=Quantizer(0.5, 0.02),
        hold=SampleAndHold(period="0.3"),
        delay=UnitDelay(period="0.7"),
    )
    system.add("counter", EventCounter())
    system.connect("level.tick", "counter.clock")
    file = tmp_path / "run.checkpoint"
    settings: dict[str, Any] = {"stop_time": 12, "step_size": "0.1", "event_clock": clock}
    simulation = Simulation(system.build(), checkpoint=file, backend=backend, **settings)
    with simulation.start() as run:
        run.advance_to(5.5)
        run.advance_to(12)
    with simulation.start() as again:
        again.advance_to(5.5)
    found = resume(file)
    assert found.time.tobytes() == run.results.time.tobytes()
    for name in found.names:
        assert np.ma.allequal(found[name], run.results[name], fill_value=False) or (
            present(found, name) == present(run.results, name)
        )
    assert found["counter.count"][-1] == 2


def test_a_run_does_not_continue_with_another_element(oscillator: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    simulation = Simulation(
        adapted(oscillator, level=LevelCrossing(0.3)).build(),
        stop_time=2,
        step_size="0.1",
        checkpoint=file,
    )
    with simulation.start() as run:
        run.advance_to(1)
    other = adapted(oscillator, level=LevelCrossing(0.4)).build()
    with pytest.raises(FmimasterError, match="other settings"):
        Simulation(other, stop_time=2, step_size="0.1").run(resume_from=file)
