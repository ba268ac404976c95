"""A run in real time waits once in each step, ends no step too early, and gives the bits of a run that does not wait."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from same_runs import assert_same

from fmimaster import (
    Interrupted,
    OptionError,
    Progress,
    Simulation,
    SimulationError,
    SystemBuilder,
    reference_path,
    resume,
)
from fmimaster.algorithms import GaussSeidel
from fmimaster.program.real_time import RealTime
from fmimaster.run import Backend
from fmimaster.steps import PID, EmbeddedOrders
from fmimaster.system.clocks import Lifetime

FAST = 1e5
"""So that a run of some seconds takes microseconds."""
DAYS = 1e-6
"""So that a step takes days."""
CAR = reference_path("systems/quarter-car-a-fmi2.ssp")
WAYS: dict[str, dict[str, Any]] = {
    "two-mass-b1-mixed": {"stop_time": 0.5},
    "thermostat-fmi3": {},
    "quarter-car-a-fmi3": {
        "step_size": PID(0.02, (EmbeddedOrders(0.01),), smallest=0.001, reject_above=1.0),
        "algorithm": GaussSeidel(),
        "stop_time": 0.5,
    },
    "quarter-car-b-fmi3": {"stop_time": 0.2, "threads": 0, "algorithm": "Jacobi"},
    "structure": {},
}
"""Events that are predicted, clocks, steps that are undone, threads, changes of the structure."""


def _system(name: str) -> Any:
    if name != "structure":
        return reference_path(f"systems/{name}.ssp")
    fmu, system = reference_path("fmi3/Dahlquist.fmu"), SystemBuilder(name)
    system.add("first", fmu)
    system.add("second", fmu, lifetime=Lifetime(from_time=0.5))
    return system


@pytest.mark.parametrize("backend", [Backend.FASTEST, Backend.REFERENCE])
@pytest.mark.parametrize("name", WAYS)
def test_each_step_waits_once_and_nothing_else_changes(name: str, backend: Backend) -> None:
    settings: dict[str, Any] = {"stop_time": 1, "backend": backend, "error_estimate": False}
    settings |= WAYS[name]
    plain = Simulation(_system(name), **settings).run()
    paced = Simulation(_system(name), **settings, real_time_factor=FAST).run()
    assert_same(plain, paced)
    found = paced.statistics.real_time
    assert found is not None
    assert plain.statistics.real_time is None
    assert found.steps == paced.statistics.steps >= 10
    assert 0.0 <= found.mean <= found.largest


@pytest.mark.parametrize("start", [0.0, 1e6])
@pytest.mark.parametrize("backend", [Backend.FASTEST, Backend.REFERENCE])
def test_no_step_ends_before_its_time(backend: Backend, start: float) -> None:
    dahlquist = reference_path("fmi3/Dahlquist.fmu")
    times: dict[str, Any] = {"start_time": start, "stop_time": start + 10, "step_size": 1}
    run = Simulation(dahlquist, **times, backend=backend, real_time_factor=1e3).run()
    assert run.statistics.seconds >= 0.01
    assert run.statistics.real_time is not None
    assert run.statistics.real_time.waited > 0.0


@pytest.mark.parametrize("backend", [Backend.FASTEST, Backend.REFERENCE])
@pytest.mark.parametrize("process", [False, True])
def test_a_step_that_is_too_late_ends_the_run_with_its_rows(
    backend: Backend, *, process: bool
) -> None:
    settings: dict[str, Any] = {"backend": backend, "process": process, "lateness_limit": 1e-9}
    with pytest.raises(
        SimulationError, match=r"t = 0\.001 s has ended .* after its time"
    ) as raised:
        Simulation(CAR, stop_time=1, real_time_factor=FAST, **settings).run()
    assert raised.value.time == 1e-3
    assert raised.value.results.time.tolist() == [0.0, 1e-3]


@pytest.mark.parametrize("backend", [Backend.FASTEST, Backend.REFERENCE])
def test_a_run_that_waits_can_be_ended(backend: Backend) -> None:
    simulation = Simulation(CAR, stop_time=1, real_time_factor=DAYS, backend=backend)
    assert simulation.run(lambda _: False).rows <= 3

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as raised:
        simulation.run(interrupt)
    assert raised.value.results.rows <= 3


@pytest.mark.parametrize("factor", [0, -1.0, nan, inf, "1"])
def test_other_factors_are_refused(factor: Any) -> None:
    with pytest.raises(OptionError, match=r"real_time_factor: .*, expected a positive number"):
        Simulation(CAR, real_time_factor=factor)


def test_what_needs_several_runs_or_no_clock_is_refused() -> None:
    with pytest.raises(OptionError, match="is for one run"):
        Simulation(CAR, real_time_factor=1, accuracy=1e-3)
    with pytest.raises(OptionError, match="Give real_time_factor"):
        Simulation(CAR, lateness_limit=1)
    with Simulation(CAR, stop_time=1).start() as run, pytest.raises(OptionError, match="in real"):
        run.restart_clock()


def test_pauses_count_unless_the_clock_is_restarted() -> None:
    with Simulation(CAR, stop_time=1, real_time_factor=FAST).start() as run:
        pace = run._session.programs.pace
        assert pace is not None
        clocks = []
        for t in (0.25, 0.5, 0.75):
            if t == 0.75:
                run.restart_clock()
            run.advance_to(t)
            clocks.append((int(pace.numbers[0]), float(pace._began_at[0])))
    first, second, third = clocks
    assert first == second
    assert third[0] > first[0]
    assert third[1] == 0.5
    found = run.results.statistics.real_time
    assert found is not None
    assert found.steps == 750


def test_a_resumed_run_starts_its_clock_anew(tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    simulation = Simulation(CAR, stop_time=1, real_time_factor=FAST, checkpoint=file)
    with simulation.start() as run:
        run.advance(0.5)
    continued = resume(file)
    assert_same(simulation.run(), continued)
    found = continued.statistics.real_time
    assert found is not None
    assert found.steps == 1000


def test_each_repeated_run_has_its_own_clock() -> None:
    simulation = Simulation(CAR, stop_time=0.1, real_time_factor=FAST)
    with simulation.repeated() as runs:
        found = [runs().statistics.real_time for _ in range(3)]
    assert [one and one.steps for one in found] == [100, 100, 100]


def test_only_the_run_itself_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(RealTime, "begin_at", lambda self, _: made.append(self))
    run = Simulation(CAR, stop_time=0.1, real_time_factor=FAST, error_estimate=True).run()
    assert run.statistics.coupling_error is not None
    assert len({*map(id, made)}) == 1


def test_the_command_shows_how_late_steps_were(capfd: pytest.CaptureFixture[str]) -> None:
    options = ("simulate", CAR, "--stop-time", "0.1", "--real-time-factor", FAST)
    shown = command(capfd, *options)
    assert "at 100000 x real time: " in shown.err
    assert "(waiting)" in shown.err
    answer = json.loads(command(capfd, *options, "--json").out)
    assert answer["statistics"]["realTime"]["steps"] == 100
    wrong = command(capfd, *options[:-1], "nan")
    assert "real_time_factor: nan, expected a positive number" in wrong.error
