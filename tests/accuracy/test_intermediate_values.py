"""Outputs inside of steps: intermediate updates of FMI 3.0, against the exact solution of FillingTank."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster import (
    AccuracyWarning,
    OptionError,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import GaussSeidel, Waveform
from fmimaster.events import Intermediate
from fmimaster.results import Kind
from fmimaster.results.formats import FORMATS
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor

TANK = reference_path("fmi3/FillingTank.fmu")


def run(system: Any = TANK, **settings: Any) -> Results:
    usual = {"step_size": "0.1", "stop_time": 0.5, "record_intermediate_values": True}
    return Simulation(system, **{**usual, "event_clock": "none", **settings}).run()


def test_values_inside_of_steps_are_those_of_the_solution(backend: Backend) -> None:
    r = run(start_values={"internalStep": 0.02}, backend=backend)
    assert r.rows == 6
    [(name, inside)] = r.intermediate.items()
    assert name == "FillingTank"
    assert inside.time == pytest.approx([0.02 * k for k in range(1, 26)], abs=1e-12)
    assert inside["level"] == pytest.approx(2 * (1 - np.exp(-inside.time)), abs=1e-12)
    assert set(inside.names) == {"level", "rate", "full.z[1]", "full.dz[1]"}  # not the counter
    assert inside.units["level"] == "m"


def test_a_name_of_a_component_need_not_be_that_of_a_file(tmp_path: Path) -> None:
    builder = SystemBuilder()
    builder.add("../a%", TANK)
    chosen: dict[str, Any] = {"step_size": "0.1", "record_intermediate_values": True}
    Simulation(builder, stop_time=0.5, **chosen).run(output_file=tmp_path / "rows.csv")
    assert (tmp_path / "rows.intermediate...%2Fa%25.csv").stat().st_size


def test_without_the_setting_none_are_recorded() -> None:
    assert dict(run(record_intermediate_values=False).intermediate) == {}


def two_tanks() -> SystemBuilder:
    builder = SystemBuilder("two")
    builder.add("upper", TANK, {"internalStep": 0.03, "height": 100.0})
    builder.add("lower", TANK, {"internalStep": 0.05, "height": 100.0})
    builder.add("lag", reference_path("fmi2/Dahlquist.fmu"))
    builder.connect("upper.rate", "lower.inflow")
    builder.connect("lower.level", "lag.u")
    return builder


@pytest.mark.parametrize("threads", [1, 8])
def test_each_component_has_times_of_its_own(threads: int) -> None:
    expected = run(two_tanks(), backend=Backend.REFERENCE)
    assert set(expected.intermediate) == {"upper", "lower"}
    assert expected.intermediate["upper"].rows == 5 * 4
    assert expected.intermediate["lower"].rows == 5 * 2
    if native_executor() is None:
        pytest.skip("the kernel is not built")
    found = run(two_tanks(), backend=Backend.NATIVE, threads=threads)
    for name, values in expected.intermediate.items():
        for column in values:
            assert found.intermediate[name][column].tolist() == values[column].tolist()


def test_values_of_undone_steps_are_dropped(backend: Backend) -> None:
    """Sweeps repeat each step; only its last values count."""
    once = run(two_tanks(), backend=backend)
    r = run(two_tanks(), algorithm=Waveform(GaussSeidel(), sweeps=3), backend=backend)
    for name, values in r.intermediate.items():
        assert values.time.tolist() == once.intermediate[name].time.tolist()
        last = values["upper.level" if name == "upper" else "lower.level"][-1]
        assert last == r[f"{name}.level"][-1]


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_of_each_format_have_them_beside(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip(FORMATS[suffix].library or "numpy")
    plain: dict[str, Any] = {"step_size": "0.1", "stop_time": 0.5, "event_clock": "none"}
    r = Simulation(two_tanks(), record_intermediate_values=True, **plain).run(
        output_file=tmp_path / f"run{suffix}"
    )
    for name, values in r.intermediate.items():
        back = Results.read(tmp_path / f"run.intermediate.{name}{suffix}")
        assert back.time.tolist() == values.time.tolist()
        assert back[f"{name}.level"].tolist() == values[f"{name}.level"].tolist()
    r.write(tmp_path / f"again{suffix}")
    assert (tmp_path / f"again.intermediate.upper{suffix}").is_file()


def test_a_system_without_such_outputs_is_refused() -> None:
    with pytest.raises(OptionError, match=r"no recorded output can be read inside of a step"):
        run(reference_path("fmi3/BouncingBall.fmu"))


def test_combinations_that_lose_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="a checkpoint does not contain"):
        run(checkpoint=tmp_path / "c")
    with pytest.raises(OptionError, match="'FillingTank' has a process of its own"):
        run(isolate=True)


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    from fmimaster.commands.cli import main

    file = tmp_path / "run.csv"
    options = ["--step-size", "0.1", "--stop-time", "0.2", "--record-intermediate-values"]
    assert main(["simulate", str(TANK), *options, "--output-file", str(file)]) == 0
    assert Results.read(tmp_path / "run.intermediate.FillingTank.csv").rows == 20


# Early return requested from inside of a step --------------------------------------------------------------------------

EVENTS = [k * log(2) for k in range(1, 7)]
"""[s] The tank is full at 2 (1 - exp(-t)) = 1 after each time that it was emptied."""


@pytest.mark.parametrize("step_size", [0.1, 1.0, 4.5])
@pytest.mark.parametrize("internal", [0.01, 0.05])
def test_an_event_clock_stops_a_step_from_inside_before_an_event(
    step_size: float, internal: float, backend: Backend
) -> None:
    """Without going back, also where the step is longer than all events."""
    r = run(
        step_size=step_size,
        stop_time=4.5,
        event_clock=Intermediate(),
        record_intermediate_values=False,
        start_values={"internalStep": internal},
        backend=backend,
    )
    # each event may be fired 1e-7 of a usual step before its time
    error = 6 * Intermediate().now * step_size
    assert [e.time for e in r.events] == pytest.approx(EVENTS, abs=error)
    assert r["count"][-1] == 6
    assert r["level"].max() == pytest.approx(1, abs=error)
    assert r.statistics.instances[0].restores == 0
    assert any(steps.cause.kind is Kind.EARLY_RETURN for steps in r.steps) or step_size == 0.1
    assert r.statistics.warnings == ()


def test_others_meet_the_fmu_where_it_stops(backend: Backend) -> None:
    """A lag follows the level; both are at each communication point, and it is not rolled back: the tank steps first."""
    builder = SystemBuilder("two")
    builder.add("lag", reference_path("fmi3/Dahlquist.fmu"))
    builder.add("tank", TANK)
    builder.connect("tank.level", "lag.u")
    settings = {"step_size": 1, "stop_time": 1, "event_clock": Intermediate()}
    # the tank publishes the slope of its level, and is followed in a straight line
    with pytest.warns(AccuracyWarning, match="'lag.u' differed from its source by 27 %"):
        r = run(builder, record_intermediate_values=False, backend=backend, **settings)
    assert [e.time for e in r.events] == pytest.approx(EVENTS[:1], abs=1e-7)
    assert sum(i.restores for i in r.statistics.instances) == 0


def test_both_executors_give_the_same_bits_when_steps_are_stopped_from_inside() -> None:
    if native_executor() is None:
        pytest.skip("the kernel is not built")
    settings = {"step_size": 1, "stop_time": 3, "event_clock": "intermediate"}
    a, b = (run(backend=k, **settings) for k in (Backend.REFERENCE, Backend.NATIVE))
    for name in a:
        assert a[name].tolist() == b[name].tolist()
    for name, inside in a.intermediate.items():
        assert inside.time.tolist() == b.intermediate[name].time.tolist()


def test_the_clock_needs_an_fmu_that_can_be_stopped() -> None:
    with pytest.raises(OptionError, match="needs FMUs that can be stopped inside of a step"):
        run(reference_path("fmi3/BouncingBall.fmu"), event_clock=Intermediate())


def test_calls_inside_of_steps_can_be_logged(tmp_path: Path) -> None:
    file = tmp_path / "calls.log"
    r = run(fmi_log_file=file, event_clock=Intermediate(), step_size=1, stop_time=1)
    assert r.intermediate["FillingTank"].rows > 60
    assert [e.time for e in r.events] == pytest.approx(EVENTS[:1], abs=1e-7)
    assert file.read_text(encoding="utf-8").count("fmi3GetFloat64") > 60
