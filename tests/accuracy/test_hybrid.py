"""Hybrid models against their exact traces: thermostat, bouncing ball, superdense time (hybrid.md 4 to 6)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, log
from time import process_time
from typing import Any

import numpy as np
import pytest
from in_turn import in_turn
from public_fmus import modelica_fmu
from stored_tables import table

from fmimaster import Results, reference_path
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.base.errors import SimulationError, ZenoError
from fmimaster.events.event_clock import EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.steps.locate import Locate
from fmimaster.steps.ramp import Ramp


def jump_times(r: Results, name: str) -> list[float]:
    """Times of the rows in which a value differs from that of the row before, at the same time if there are two."""
    k = np.flatnonzero(np.diff(r[name])) + 1
    return [float(t) for t in r.time[k]]


# Thermostat -----------------------------------------------------------------------------------------------------------


def thermostat(version: str, **settings: Any) -> Results:
    path = reference_path(f"systems/thermostat-{version}.ssp")
    return Simulation(path, **{"step_size": "0.1", "stop_time": 60, **settings}).run()


def exact_switches() -> list[float]:
    """Off at 21, on at 19, in turn: 40 switches until 60 s."""
    rows = table("hybrid_thermostat_exact.csv")
    return [float(row["t"]) for row in rows if row["event"] != "init"]


def test_4_the_exact_switches_are_those_of_the_formula() -> None:
    times = [log(10 / 9) / 0.1]
    while len(times) < 40:
        times.append(times[-1] + log(11 / 9 if len(times) % 2 == 0 else 21 / 19) / 0.1)
    assert exact_switches() == pytest.approx(times, abs=1e-12)


@pytest.mark.parametrize("event_clock", [None, Predictive()], ids=["requested", "predicted"])
@pytest.mark.parametrize("algorithm", [Jacobi(), GaussSeidel()])
def test_4_thermostat_with_event_mode_switches_exactly(
    algorithm: Algorithm, event_clock: EventClock | None, backend: Backend
) -> None:
    """A predicted step ends at its event, or short of it by rounding: the room announces it then too."""
    r = thermostat("fmi3", algorithm=algorithm, event_clock=event_clock, backend=backend)
    switches = jump_times(r, "controller.q")
    assert len(switches) == 40
    assert switches == pytest.approx(exact_switches(), abs=1e-6)
    assert 19 - 1e-6 <= r["room.x"].min() <= r["room.x"].max() <= 21 + 1e-6
    assert sum(i.restores for i in r.statistics.instances) == 0  # who may return early steps first


def test_a_switch_has_a_row_before_and_one_after_it() -> None:
    r = thermostat("fmi3")
    first = np.flatnonzero(np.diff(r.time) == 0)[0]
    assert r.time[first] == r.time[first + 1] == pytest.approx(log(10 / 9) / 0.1)
    assert r["controller.q"][first : first + 2].tolist() == [True, False]
    assert r["room.x"][first : first + 2] == pytest.approx([21, 21], abs=1e-6)
    assert r["room.dx"][first : first + 2] == pytest.approx([0.9, -2.1], abs=1e-6)


def test_events_do_not_shift_the_grid() -> None:
    r = thermostat("fmi3", event_clock="none")
    assert {k / 10 for k in range(601)} <= set(r.time.tolist())


def test_4_thermostat_without_event_mode_is_located_by_going_back(backend: Backend) -> None:
    r = thermostat("fmi2", algorithm=GaussSeidel(), step_size=Locate(0.1), backend=backend)
    switches = jump_times(r, "controller.q")
    assert switches == pytest.approx(exact_switches(), abs=1e-8)
    assert len(r.events) == 40
    extra = r.statistics.attempts - r.statistics.steps
    assert extra <= 40 * 40  # bisection of 0.1 s


def test_4_thermostat_on_a_grid_switches_at_communication_points(backend: Backend) -> None:
    r = thermostat("fmi2", algorithm=GaussSeidel(), backend=backend)
    expected = table("hybrid_thermostat_grid_H0.1.csv")
    assert r.time.tolist() == [float(Fraction(row["t"])) for row in expected]
    assert r["controller.q"].tolist() == [row["q"] == "1" for row in expected]
    assert r["room.x"] == pytest.approx([float(row["x"]) for row in expected], abs=1e-12)
    assert len(jump_times(r, "controller.q")) == 36


def test_4_on_a_grid_with_jacobi_the_controller_acts_one_step_later(backend: Backend) -> None:
    r = thermostat("fmi2", algorithm=Jacobi(), backend=backend)
    assert r["room.x"].max() <= 30 - 9 * exp(-2 * 0.1 * 0.1)  # 21.178212
    q, x = r["controller.q"], r["room.x"]
    # the controller has seen the x of the point before, and its q acts in the step after its own
    decided = [True]
    for before in x[:-1]:
        decided.append(before < 21 if decided[-1] else before <= 19)
    assert q.tolist() == decided
    target = np.where(q[:-1], 30.0, 0.0)
    assert x[1:] == pytest.approx(target + (x[:-1] - target) * exp(-0.01), abs=1e-12)
    assert x.max() > 21.1


def test_4_the_number_of_switches_on_a_grid_is_a_phase_error() -> None:
    grid = thermostat("fmi2", algorithm=GaussSeidel())
    exact = thermostat("fmi3")
    [error] = grid.compare(exact).phase_errors
    assert (error.name, error.found, error.known) == ("controller.q", 36, 40)
    assert "phase error: 'controller.q' changes 36 times, 40 times in the reference" in str(
        grid.compare(exact)
    )
    assert exact.compare(exact).phase_errors == ()


# Bouncing ball --------------------------------------------------------------------------------------------------------

VERSIONS = ("fmi2", "fmi3")
LIMIT = 2.558633965586


def ball(
    version: str, clock: EventClock | None, v_min: float, step_size: float | Ramp = 0.1, **more: Any
) -> Results:
    path = reference_path(f"{version}/BouncingBall.fmu")
    values = {"v_min": v_min}
    return Simulation(
        path, step_size=step_size, stop_time=3, event_clock=clock, start_values=values, **more
    ).run()


def bounces(r: Results) -> list[tuple[float, float, float]]:
    """Time and velocities before and after of each pair of rows between which the velocity jumps."""
    k = np.flatnonzero((np.diff(r.time) == 0) & (np.diff(r["v"]) != 0))
    return [(float(r.time[i]), float(r["v"][i]), float(r["v"][i + 1])) for i in k]


def exact_bounces(count: int) -> list[tuple[float, float, float]]:
    rows = table("hybrid_bouncing_ball_zeno.csv")[:count]
    return [(float(r["t"]), -float(r["v_before"]), float(r["v_after"])) for r in rows]


@pytest.mark.parametrize("version", VERSIONS)
def test_bounces_that_accumulate_are_told_with_their_limit(version: str, backend: Backend) -> None:
    begin = process_time()
    with pytest.raises(ZenoError, match=r"zeno: .*bounce.* accumulate at t = 2\.5586339") as raised:
        ball(version, EarlyReturn(), v_min=0.0, backend=backend)
    assert process_time() - begin < 2
    assert raised.value.limit == pytest.approx(LIMIT, abs=1e-8)
    expected = exact_bounces(40)  # the first with a gap below 1 us
    assert raised.value.time == pytest.approx(expected[-1][0], abs=1e-9)
    assert raised.value.results is not None
    found = bounces(raised.value.results)
    assert len(found) == 40
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-9)


REGULARISED: Sequence[tuple[EventClock, float | Ramp]] = [
    (EarlyReturn(), 0.1),
    (Predictive(), Ramp(0.1)),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("clock", "step_size"), REGULARISED, ids=["early return", "predictive"])
def test_a_ball_that_comes_to_rest_is_simulated_to_the_end(
    version: str, clock: EventClock, step_size: float | Ramp, backend: Backend
) -> None:
    r = ball(version, clock, v_min=0.1, step_size=step_size, backend=backend)
    found = bounces(r)
    assert len(found) == 11
    assert np.array(found)[:10] == pytest.approx(np.array(exact_bounces(10)), abs=1e-9)
    assert found[10] == pytest.approx((2.499113314225, -0.125120912111, 0.0), abs=1e-9)
    assert (r.time[-1], r["h"][-1], r["v"][-1]) == (3.0, 0.0, 0.0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("clock", [None, LookAhead()], ids=["none", "look-ahead"])
def test_bounces_inside_of_the_fmu_are_never_endless_either(
    version: str, clock: EventClock | None
) -> None:
    begin = process_time()
    with pytest.raises(SimulationError, match=r"accumulate at t = 2\.55863396"):
        ball(version, clock, v_min=0.0)
    assert process_time() - begin < 2
    assert ball(version, clock, v_min=0.1)["h"][-1] == 0.0


# Superdense time ------------------------------------------------------------------------------------------------------


def superdense(test: int, backend: Backend, step_size: str = "1/10") -> Results:
    return Simulation(
        reference_path("fmi3/Superdense.fmu"),
        step_size=step_size,
        stop_time=3.5,
        start_values={"test": test},
        event_mode=True,
        backend=backend,
    ).run()


def at(r: Results, time: float, name: str) -> list[float]:
    """Values of the rows of one instant, by their superdense index."""
    return [float(v) for v in r[name][r.time == time]]


GRIDS = ("1/10", "3/10", "7/2")
"""With a point at the event, without one, and without any point but the stop time."""


@pytest.mark.parametrize("step_size", GRIDS)
def test_sd1_both_values_of_a_step_are_recorded(step_size: str, backend: Backend) -> None:
    r = superdense(1, backend, step_size)
    assert at(r, 1.0, "y") == [0, 1]
    assert jump_times(r, "y") == [1.0]


@pytest.mark.parametrize("step_size", GRIDS)
def test_sd3_a_counter_in_zero_time_has_a_row_for_each_event_iteration(
    step_size: str, backend: Backend
) -> None:
    r = superdense(3, backend, step_size)
    assert at(r, 2.0, "c") == [0, 1, 2, 3, 4, 5]
    assert (r.time[-1], r["c"][-1]) == (3.5, 5)  # time goes on


@pytest.mark.parametrize("step_size", GRIDS)
def test_sd4_a_sawtooth_has_both_limits(step_size: str, backend: Backend) -> None:
    r = superdense(4, backend, step_size)
    teeth = r.time[np.flatnonzero(np.diff(r["x"]) < 0)]
    assert teeth == pytest.approx([1, 2, 3], abs=1e-12)
    for t in teeth:
        assert at(r, t, "x") == pytest.approx([1, 0], abs=1e-12)
    assert r["x"][-1] == pytest.approx(0.5, abs=1e-12)


# Prediction of bounces that follow each other closely: events-ordinary.md 1 ---------------------------------------------

H = 0.1
"""[s] Step size."""


@pytest.mark.parametrize(
    ("version", "interval", "go_back", "backend"),
    in_turn(
        VERSIONS,
        [3, 1, 0.5, 0.3, 0.2, 0.1, 0.06, 0.03],
        [True, False],
        [Backend.REFERENCE, Backend.NATIVE],
    ),
)
def test_prediction_finds_each_bounce_however_short_the_flight(
    version: str, interval: float, go_back: bool, backend: Backend
) -> None:
    """An elastic ball falls from a height at which it flies for ``interval`` steps; 60 bounces, or 2 s."""
    flight = interval * H
    stop = min(2.0, 60 * flight)
    values = {"v_min": 0.0, "e": 1.0, "h": 9.81 * flight**2 / 8}
    r = Simulation(
        reference_path(f"{version}/BouncingBall.fmu"),
        step_size=Ramp(H),
        stop_time=stop,
        event_clock=Predictive(go_back=go_back),
        start_values=values,
        backend=backend,
    ).run()
    exact = np.arange(0.5, stop / flight, 1.0) * flight
    assert [e.time for e in r.events] == pytest.approx(exact, abs=1e-11)
    energy = r["v"] ** 2 / 2 + 9.81 * r["h"]
    assert energy == pytest.approx(9.81 * values["h"])
    assert sum(i.restores for i in r.statistics.instances) == 0


def test_predicted_bounces_that_accumulate_are_told_with_their_limit(backend: Backend) -> None:
    with pytest.raises(ZenoError, match=r"zeno: .*bounce.* accumulate at t = 2\.5586339") as raised:
        ball("fmi3", Predictive(), v_min=0.0, step_size=Ramp(H), backend=backend)
    assert raised.value.limit == pytest.approx(LIMIT, abs=1e-8)


def test_no_predicted_bounce_is_late(backend: Backend) -> None:
    for v_min, step_size in ((0.08, 0.15), (0.1, 0.1)):
        r = ball("fmi3", Predictive(), v_min=v_min, step_size=Ramp(step_size), backend=backend)
        assert "late" not in "\n".join(r.statistics.lines())


# Modelica's BouncingBall has the data of the regularised ball ---------------------------------------------------------


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_modelicas_ball_in_model_exchange_bounces_at_the_exact_times(
    version: str, backend: Backend
) -> None:
    r = Simulation(
        modelica_fmu("BouncingBall", version),
        interface="ModelExchange",
        solver="dormand-prince:relative=1e-9",
        step_size=0.01,
        stop_time=3,
        event_mode=True,
        backend=backend,
    ).run()
    found = bounces(r)
    assert len(found) == 11
    exact = exact_bounces(10)
    assert [t for t, _, _ in found[:10]] == pytest.approx([t for t, _, _ in exact], abs=1e-6)
    assert found[10][0] == pytest.approx(2.499113314225, abs=1e-6)
    assert found[10][2] == 0.0
    assert (r.time[-1], r["v"][-1]) == (3.0, 0.0)
    assert r["h"][-1] <= np.finfo(float).tiny  # it puts the ball just above the ground


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_modelicas_ball_in_co_simulation_rests_before_2_6_s(version: str, backend: Backend) -> None:
    """Its own solver is Euler with a fixed step."""
    r = Simulation(
        modelica_fmu("BouncingBall", version), step_size=0.01, stop_time=3, backend=backend
    ).run()
    rises = np.flatnonzero((r["v"][:-1] < 0) & (r["v"][1:] >= 0))
    assert 10 <= len(rises) <= 12
    rest = r.time > 2.6
    assert (r["h"][rest] <= np.finfo(float).tiny).all()
    assert (r["v"][rest] == 0).all()


# Determinism (hybrid.md 13) -------------------------------------------------------------------------------------------


def _bytes(r: Results) -> bytes:
    """All rows, with all events."""
    return b"".join(r[name].tobytes() for name in r) + repr(r.events).encode()


@pytest.mark.thorough
@pytest.mark.parametrize("algorithm", [Jacobi(), GaussSeidel()], ids=["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("version", VERSIONS)
def test_13_thermostats_are_the_same_bytes_in_10_runs_with_1_and_8_threads(
    version: str, algorithm: Algorithm
) -> None:
    if native_executor() is None:
        pytest.skip("the kernel is not built")
    settings = {"algorithm": algorithm, "stop_time": 10}
    expected = _bytes(thermostat(version, backend=Backend.REFERENCE, **settings))
    for threads in (1, 8):
        for _ in range(10):
            r = thermostat(version, backend=Backend.NATIVE, threads=threads, **settings)
            assert _bytes(r) == expected


def test_13_the_accumulating_ball_is_the_same_bytes_in_10_runs() -> None:
    found = set()
    for backend in (Backend.REFERENCE, Backend.FASTEST):
        for _ in range(5):
            with pytest.raises(ZenoError) as raised:
                ball("fmi3", EarlyReturn(), v_min=0.0, backend=backend)
            assert raised.value.results is not None
            found.add(_bytes(raised.value.results) + str(raised.value).encode())
    assert len(found) == 1
