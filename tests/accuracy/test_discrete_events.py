"""Discrete-event units against their exact traces: hybrid.md 2, 6 and 8."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_turn import in_turn
from stored_tables import table

from fmimaster import FmimasterError, Results
from fmimaster.base.errors import LoopError
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.studies.demos import hybrid, superdense
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import SystemDescription

EXECUTORS = Backend.REFERENCE, Backend.NATIVE

# Traffic light and police officer: hybrid.md 2.1, 2.2 -------------------------------------------------------------------

TRACES: dict[str, tuple[dict[str, Any], int, str]] = {
    "traffic": ({}, 1000, "hybrid_devs_traffic.csv"),
    "light first": ({"idle": 110}, 700, "hybrid_devs_traffic_tie_light_first.csv"),
    "police first": (
        {"idle": 110, "first": "police"},
        700,
        "hybrid_devs_traffic_tie_police_first.csv",
    ),
}


@pytest.mark.parametrize(
    ("backend", "case", "step_size"),
    in_turn(EXECUTORS, list(TRACES), [50, "7/2", 700]),
    indirect=["backend"],
)
def test_devs_traffic_light_and_police_officer(
    case: str, step_size: int | str, backend: Backend
) -> None:
    parameters, stop, name = TRACES[case]
    run = Simulation(
        hybrid.traffic(**parameters), step_size=step_size, stop_time=stop, backend=backend
    ).run()
    found = [
        (t.time, t.iteration, t.imminent, t.output, t.external, t.light, t.police)
        for t in hybrid.transitions(run)
    ]
    assert found == [
        (
            float(Fraction(row["t"])),
            int(row["n"]),
            *(row[k] for k in ("imminent", "output", "external", "state_light", "state_police")),
        )
        for row in table(name)
    ]


def test_devs_elapsed_time_is_that_of_the_state_before(backend: Backend) -> None:
    """The officer comes 40 s after the light became green: delta_ext is given an elapsed time of 40 s."""
    run = Simulation(hybrid.traffic(), step_size=50, stop_time=300, backend=backend).run()
    after = np.flatnonzero(np.diff(run["light.colour"])) + 1
    assert list(zip(run.time[after], run["light.elapsed"][after], strict=True)) == [
        (60.0, 60.0),
        (100.0, 40.0),
        (300.0, 200.0),
    ]


# Units that do not come to an end: hybrid.md 2.3 ------------------------------------------------------------------------


def illegitimate_officer() -> SystemDescription:
    return hybrid.traffic(idle=0, working=0)


def illegitimate_pair() -> SystemDescription:
    """Two countdowns of 0 s that start each other."""
    builder = SystemBuilder("pair")
    for name, more in (("ping", {"startsItself": True}), ("pong", {})):
        builder.add(name, reference_path("fmi3/Countdown.fmu"), {"interval.counter": 0, **more})
    builder.connect("ping.fire", "pong.start")
    builder.connect("pong.fire", "ping.start")
    return builder.build()


@pytest.mark.parametrize(
    ("make", "named"),
    [(illegitimate_officer, ["police"]), (illegitimate_pair, ["ping", "pong"])],
    ids=["police", "pair"],
)
def test_devs_illegitimate_units_are_named(
    make: Callable[[], SystemDescription], named: list[str], backend: Backend
) -> None:
    with pytest.raises(FmimasterError, match="illegitimate") as raised:
        Simulation(make(), step_size=1, stop_time=2, backend=backend).run()
    assert all(name in str(raised.value) for name in named)
    assert "t = 0 s" in str(raised.value)


def test_devs_five_transitions_in_zero_time_are_legitimate(backend: Backend) -> None:
    builder = SystemBuilder("five")
    parameters = {"interval.counter": 0, "times": 5, "startsItself": True}
    builder.add("unit", reference_path("fmi3/Countdown.fmu"), parameters)
    run = Simulation(builder.build(), step_size=1, stop_time=2, backend=backend).run()
    fired = np.ma.asarray(run["unit.fired"])
    present = ~np.ma.getmaskarray(fired)
    assert run.time[present].tolist() == [0.0] * 5
    assert (run.index[present] - 1).tolist() == [0, 1, 2, 3, 4]
    assert fired[present].tolist() == [1, 2, 3, 4, 5]
    assert run.time[-1] == 2.0


# Superdense time: hybrid.md 6 -------------------------------------------------------------------------------------------

MODES = {"A": 1.0, "B": 2.0, "C": 3.0, "D": 4.0}
CASES = {case.name: case for case in superdense.cases()}


def expected_trace(name: str) -> list[superdense.Point]:
    """Of the file: the counter of SD3 has the index of its event iteration, like an event."""
    found = []
    for row in table("hybrid_superdense_suite.csv"):
        if row["test"] == name:
            value = MODES.get(row["value"]) or float(Fraction(row["value"]))
            found.append((float(Fraction(row["t"])), int(row["n"]), row["signal"], value))
    return found


def check_trace(name: str, backend: Backend, step_size: str) -> None:
    case = CASES[name]
    trace = case.trace(case.run(step_size=step_size, backend=backend))
    if case.events:
        assert trace == expected_trace(name)
    else:
        assert set(expected_trace(name)) <= set(trace)


GRIDS = ("1/10", "3/10", "3/2")
"""With points at the events, and without."""


ON_GRIDS = pytest.mark.parametrize(
    ("step_size", "backend"), in_turn(GRIDS, EXECUTORS), indirect=["backend"]
)


@ON_GRIDS
def test_sd2_delays_of_an_event_iteration(backend: Backend, step_size: str) -> None:
    check_trace("SD2_microdelay", backend, step_size)


@ON_GRIDS
def test_sd5_transient_modes(backend: Backend, step_size: str) -> None:
    check_trace("SD5_transient", backend, step_size)


@ON_GRIDS
def test_sd6_adder_of_present_events(backend: Backend, step_size: str) -> None:
    check_trace("SD6_adder", backend, step_size)


@ON_GRIDS
def test_sd7_sampler(backend: Backend, step_size: str) -> None:
    check_trace("SD7_sampler", backend, step_size)


def test_sd7_samples_are_held_between_ticks(backend: Backend) -> None:
    run = CASES["SD7_sampler"].run(backend=backend)
    last = np.floor(run.time * 4) / 4
    is_before = (run.index == 0) & (run.time == last) & (run.time > 0)
    assert run["sampler.held"].tolist() == (last - 0.25 * is_before).tolist()


@ON_GRIDS
def test_sd8_a_sampler_at_a_step_takes_the_value_after_it(backend: Backend, step_size: str) -> None:
    check_trace("SD8_sync_sample", backend, step_size)


@ON_GRIDS
def test_sd8_behind_a_delay_it_takes_the_value_before(backend: Backend, step_size: str) -> None:
    check_trace("SD8_micro_sample", backend, step_size)


@pytest.mark.parametrize("policy", ["restart", "queue"])
@ON_GRIDS
def test_sd9_countdown(policy: str, backend: Backend, step_size: str) -> None:
    case = CASES[f"SD9_countdown_{policy}"]
    trace = case.trace(case.run(step_size=step_size, backend=backend))
    expected = expected_trace(case.name)
    numbered = [(t, n, signal, float(k)) for k, (t, n, signal, _) in enumerate(expected, start=1)]
    assert trace == numbered


@ON_GRIDS
def test_sd10_zero_countdown(backend: Backend, step_size: str) -> None:
    check_trace("SD10_zero_countdown", backend, step_size)


def test_sd12_no_step_has_a_size_of_zero(backend: Backend) -> None:
    """The FMUs refuse such a step; and the steps of the run are all positive."""
    system = SystemBuilder(
        "two events"
    )  # both have a time event at 1 s, which is also a point of the grid
    system.add("source", reference_path("fmi3/EventSource.fmu"))
    system.add("superdense", reference_path("fmi3/Superdense.fmu"), {"test": 1})
    run = Simulation(system, step_size="1/4", stop_time=2, backend=backend).run()
    assert run["superdense.y"][run.time == 1.0].tolist() == [0.0, 1.0]
    assert all(steps.size > 0 for steps in run.steps)
    assert set(np.unique(run.time)) == {k / 4 for k in range(9)}


def test_sd13_a_unit_ends_the_run(backend: Backend) -> None:
    stopping = reference_path("fmi3/Superdense.fmu")
    run = Simulation(
        stopping, start_values={"test": 6}, stop_time=4, step_size="1/5", backend=backend
    ).run()
    assert run.time[-1] == 1.5
    assert run.time[-2] == 1.4


# SD11: a loop without delay ---------------------------------------------------------------------------------------------


def feedback(factor: float, times: list[int], *, delayed: bool = False) -> SystemDescription:
    """s = e1 + factor * s at these times in s; with a delay, s is that of the event iteration before."""
    system = SystemBuilder("feedback")
    source = {"count": len(times), "times": (times + [9] * 8)[:8]}
    system.add("source", reference_path("fmi3/EventSource.fmu"), source)
    system.add("adder", reference_path("fmi3/EventAdder.fmu"))
    system.connect("source.event", "adder.e1.tick")
    system.connect("source.value", "adder.e1")
    clock, value = "adder.s.tick", "adder.s"
    if delayed:
        system.add("delay", reference_path("fmi3/EventDelay.fmu"))
        system.connect(clock, "delay.in.tick")
        system.connect(value, "delay.in")
        clock, value = "delay.out.tick", "delay.out"
    system.connect(clock, "adder.e2.tick")
    system.connect(value, "adder.e2", factor=factor)
    return system.build()


def test_sd11_a_loop_without_delay_has_no_fixed_point(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    plain: dict[str, Any] = {"algorithm": "Jacobi", "event_clock": "none", "backend": backend}
    simulation = Simulation(feedback(1.0, [1]), step_size=1, stop_time=2, **plain)
    with pytest.raises(LoopError, match="at t = 1 s: discrete loop without delay") as error:
        simulation.run()
    assert error.value.reason == "discrete loop without delay"
    assert error.value.loop == ("adder.s", "adder.s.tick")
    [at_the_start] = [r.message for r in caplog.records if "without delay" in r.message]
    assert at_the_start.startswith("events pass through adder.e2, adder.e2.tick, adder.s, ")


def test_sd11_a_loop_with_a_fixed_point_takes_it(backend: Backend) -> None:
    """s = 1 + s/2: the sweeps end at 2 exactly. Without an event the loop is silent."""
    simulation = Simulation(feedback(0.5, [1, 3]), step_size=1, stop_time=4, backend=backend)
    run = simulation.run()
    present = ~np.ma.getmaskarray(run["adder.s"])
    assert run.time[present].tolist() == [1.0, 3.0]
    assert run["adder.s"][present].tolist() == [2.0, 2.0]


def test_sd11_with_a_delay_the_event_goes_round_for_ever(backend: Backend) -> None:
    system = feedback(1.0, [1], delayed=True)
    with pytest.raises(FmimasterError, match="illegitimate"):
        Simulation(system, step_size=1, stop_time=2, backend=backend).run()


# Order of simultaneous events: hybrid.md 8 ------------------------------------------------------------------------------


UNITS = {"a": {"gain": 2.0}, "b": {"offset": 3.0}, "c": {"gain": 0.0, "square": 1.0}}
"""a: x <- 2 x, b: x <- x + 3, c: x <- x^2; parameters of the FMU ``Sampler``."""


def shared_variable(order: str = "") -> SystemDescription:
    """Three units that read and write one variable at t = 1, 2 and 3 s, one after the other at each time.

    Parameters
    ----------
    order
        Names of the units, for example ``"cba"``: the first one acts first. Empty: all have the same priority, and act
        in the order of their names.
    """
    builder = SystemBuilder("shared variable")
    builder.add("store", reference_path("fmi3/SharedVariable.fmu"))
    each_second = {"interval.counter": 1, "shift.counter": 1, "interval.resolution": 1}
    for name, parameters in UNITS.items():
        priority = order.index(name) if order else 0
        builder.add(
            name,
            reference_path("fmi3/Sampler.fmu"),
            {**each_second, **parameters},
            priority=priority,
        )
        builder.connect("store.x", f"{name}.u")
        builder.connect(f"{name}.sampled", f"store.{name}.tick")
        builder.connect(f"{name}.y", f"store.{name}")
    return builder.build()


def values_at_events(run: Results) -> list[float]:
    """The shared variable after each event iteration in which a unit has acted."""
    acted = np.logical_or.reduce([~np.ma.getmaskarray(run[f"{name}.y"]) for name in "abc"])
    return [float(x) for x in run["store.x"][acted]]


@pytest.mark.parametrize("order", ["", *map("".join, permutations("abc"))])
def test_select_orders_of_three_units(order: str, backend: Backend) -> None:
    run = Simulation(shared_variable(order), step_size="1/3", stop_time=3, backend=backend).run()
    [row] = [r for r in table("hybrid_select_orders.csv") if r["order"] == (order or "abc")]
    assert values_at_events(run) == [float(row[f"t{t}n{n}"]) for t in (1, 2, 3) for n in range(3)]


# Clocks of each kind in one FMU ----------------------------------------------------------------------------------------


@ON_GRIDS
def test_clocks_of_each_kind_tick_at_exact_times(backend: Backend, step_size: str) -> None:
    """An event at 7/20 changes the interval of the tunable clock, starts the countdown and triggers."""
    builder = SystemBuilder("kinds")
    builder.add("kinds", reference_path("fmi3/ClockKinds.fmu"))
    at = {"count": 1, "times": [7, 0, 0, 0, 0, 0, 0, 0], "resolution": 20}
    builder.add("source", reference_path("fmi3/EventSource.fmu"), at)
    for clock in ("retune", "arm", "triggered"):
        builder.connect("source.event", f"kinds.{clock}")
    run = Simulation(builder.build(), step_size=step_size, stop_time=2, backend=backend).run()
    expected = {
        "constant": [Fraction(k, 10) for k in range(21)],
        "fixed": [Fraction(1, 20) + Fraction(k, 4) for k in range(8)],
        "tunable": [
            *(Fraction(k, 10) for k in range(4)),
            *(Fraction(7, 20) + Fraction(k, 4) for k in range(1, 7)),
        ],
        "changing": [Fraction(3, 20), Fraction(9, 20), Fraction(18, 20), Fraction(30, 20)],
        "countdown": [Fraction(8, 20)],
        "triggered": [Fraction(7, 20)],
    }
    for clock, times in expected.items():
        number = np.ma.asarray(run[f"kinds.{clock}.tick"])
        present = ~np.ma.getmaskarray(number)
        assert run.time[present].tolist() == [float(t) for t in times], clock
        assert number[present].tolist() == list(range(1, len(times) + 1)), clock
        assert set(run.index[present].tolist()) == {1}, clock


# Units with continuous plants, texts and bytes ---------------------------------------------------------------------------

PERIOD, GAIN, REFERENCE = 0.25, 2.0, 1.0


def controlled_plant(version: str) -> SystemDescription:
    """x' = -x + u, and u = 2 (1 - x) at the ticks of a clock, held between them."""
    builder = SystemBuilder("control")
    builder.add("plant", reference_path(f"{version}/Dahlquist.fmu"), {"x": 0.0, "k": 1.0})
    law = {"offset": GAIN * REFERENCE, "gain": -GAIN}
    clock = {"interval.counter": 1, "interval.resolution": 4}
    builder.add("controller", reference_path("fmi3/Sampler.fmu"), {**law, **clock})
    builder.connect("plant.x", "controller.u")
    builder.connect("controller.held", "plant.u")
    return builder.build()


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("step_size", ["1/4", "1/10", "3/10"])
def test_a_periodic_controller_holds_its_output(
    version: str, step_size: str, backend: Backend
) -> None:
    """The plant is exact for held inputs: x(t + T) = a x(t) + (1 - a) u with a = exp(-T), on every grid."""
    run = Simulation(
        controlled_plant(version), step_size=step_size, stop_time=3, backend=backend
    ).run()
    y = np.ma.asarray(run["controller.y"])
    ticks = ~np.ma.getmaskarray(y)
    assert run.time[ticks].tolist() == [PERIOD * k for k in range(13)]
    x, a = 0.0, np.exp(-PERIOD)
    for t, found, u in zip(run.time[ticks], run["plant.x"][ticks], y[ticks], strict=True):
        assert found == pytest.approx(x, abs=1e-14)
        assert u == pytest.approx(GAIN * (REFERENCE - x), abs=1e-13)
        assert run["controller.held"][(run.time > t) & (run.time < t + PERIOD)] == pytest.approx(u)
        x = a * x + (1 - a) * u


def logged() -> SystemDescription:
    """A source of texts and bytes, each of which a logger writes down, with the state of a plant."""
    builder = SystemBuilder("log")
    events = {"count": 3, "times": [1, 4, 6, 0, 0, 0, 0, 0], "resolution": 4}
    values = {"values": [7.0, 2.5, -1.0, 0, 0, 0, 0, 0]}
    builder.add("source", reference_path("fmi3/EventSource.fmu"), {**events, **values})
    builder.add("plant", reference_path("fmi2/Dahlquist.fmu"), {"x": 3.0, "k": 0.0})
    builder.add("logger", reference_path("fmi3/Logger.fmu"))
    builder.connect("plant.x", "logger.u")
    builder.connect("source.event", "logger.write")
    builder.connect("source.text", "logger.text")
    builder.connect("source.data", "logger.data")
    return builder.build()


def test_a_triggered_logger_takes_texts_and_bytes(backend: Backend) -> None:
    run = Simulation(logged(), step_size="1/10", stop_time=2, backend=backend).run()
    texts = np.ma.asarray(run["source.text"])
    present = ~np.ma.getmaskarray(texts)
    assert run.time[present].tolist() == [0.25, 1.0, 1.5]
    assert texts[present].tolist() == ["event 1: 7", "event 2: 2.5", "event 3: -1"]
    assert run["logger.line"][present].tolist() == [
        "1 at 0.25 s: u = 3, event 1: 7",
        "2 at 1 s: u = 3, event 2: 2.5",
        "3 at 1.5 s: u = 3, event 3: -1",
    ]
    assert run["logger.bytes"][present].tolist() == [b"\x01", b"\x01\x02", b"\x01\x02\x03"]
    assert (
        np.ma.asarray(run["source.data"])[present].tolist() == run["logger.bytes"][present].tolist()
    )


# The same bytes ---------------------------------------------------------------------------------------------------------


def systems() -> dict[str, tuple[SystemDescription, dict[str, Any]]]:
    found = {c.name: (c.system, {"stop_time": c.stop_time}) for c in superdense.cases()}
    for name, (parameters, stop, _) in TRACES.items():
        found[name] = (hybrid.traffic(**parameters), {"stop_time": stop, "step_size": 50})
    found["control"] = (controlled_plant("fmi2"), {"stop_time": 3})
    found["log"] = (logged(), {"stop_time": 2})
    found["select"] = (shared_variable("bca"), {"stop_time": 3})
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", systems())
def test_results_are_the_same_bytes_in_all_runs(
    name: str, tmp_path: Path, repetitions: Callable[[int], range]
) -> None:
    """With 1 and 8 threads, by both executors; 10 runs of each with ``--repetitions 10``."""
    system, settings = systems()[name]
    file = tmp_path / "results.csv"
    backends = [Backend.REFERENCE, *([Backend.NATIVE] if native_executor() else [])]
    found = set()
    for backend in backends:
        for threads in (1, 8):
            for _ in repetitions(2):
                step = {"step_size": "1/10", **settings}
                Simulation(system, backend=backend, threads=threads, **step).run().write(file)
                found.add(file.read_bytes())
    assert len(found) == 1
