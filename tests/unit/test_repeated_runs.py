"""Runs that are repeated: with a plainer coupling after growth, with another method after an error, with shorter steps."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_fmu import linear_fmu

from fmimaster import AccuracyWarning, PythonComponent, Results, Simulation, SystemBuilder
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.algorithms.modes import AlongLine
from fmimaster.base.errors import CallError
from fmimaster.inputs.polynomial import LINEAR
from fmimaster.steps import Locate

pytestmark = pytest.mark.measured

STIFF: dict[str, Any] = {"stop_time": 20, "step_size": 0.25}
GROWS = r"outputs grew without bound \('a.y', 'b.y'\), so the run was repeated with algorithm=Gauss"


@pytest.fixture
def stiff(tmp_path: Path) -> SystemBuilder:
    """Two lags in a ring: inputs on lines are unstable, and interpolated ones that begin held are not."""
    system = SystemBuilder("ring")
    for name, begin in (("a", 1.0), ("b", 0.0)):
        matrices = {"a": [[-20.0]], "b": [[20.0]], "c": [[1.0]], "x0": [begin]}
        file = tmp_path / f"{name}.fmu"
        system.add(name, linear_fmu(file, "fmi2", **matrices, inputs=["u"], outputs=["y"]))
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u", factor=-1.2)
    return system


@pytest.mark.filterwarnings("ignore:the output .* changes by:fmimaster.base.errors.AccuracyWarning")
def test_a_chosen_coupling_that_grows_is_replaced_by_one_that_does_not(
    stiff: SystemBuilder, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    with pytest.warns(AccuracyWarning) as told:
        results = Simulation(stiff, **STIFF, error_estimate=False).run(output_file=file)
    held = GaussSeidel(mode=AlongLine())
    named = Simulation(stiff, **STIFF, algorithm=held, error_estimate=False).run()
    assert results.statistics.diverging == ()
    assert [str(warning.message) for warning in told] == list(results.statistics.warnings)
    assert re.match(GROWS, results.statistics.warnings[-1])
    written = Results.read(file)
    assert written.metadata["warnings"] == list(results.statistics.warnings)
    assert all(written[name].tobytes() == named[name].tobytes() for name in named)


def test_a_coupling_that_is_given_stays(stiff: SystemBuilder) -> None:
    lines = GaussSeidel(LINEAR, mode=AlongLine())
    with pytest.warns(AccuracyWarning, match="grows from t"):
        results = Simulation(stiff, **STIFF, algorithm=lines, error_estimate=False).run()
    assert results.statistics.diverging == ("a.y", "b.y")
    assert not any("repeated" in warning for warning in results.statistics.warnings)


def test_rows_in_a_stream_are_not_written_twice(
    stiff: SystemBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    stream = io.StringIO()
    with pytest.warns(AccuracyWarning, match="grows from t"):
        Simulation(stiff, **STIFF, error_estimate=False).run(output_file=stream)
    assert len(stream.getvalue().splitlines()) == 82
    assert (
        "not repeated with another method, because its rows were written to a stream" in caplog.text
    )


def test_a_model_that_is_unstable_itself_gives_the_first_run(tmp_path: Path) -> None:
    system = SystemBuilder("growing")
    for name in "ab":
        matrices = {"a": [[1.0]], "b": [[1.0]], "c": [[1.0]], "x0": [1.0]}
        file = tmp_path / f"{name}.fmu"
        system.add(name, linear_fmu(file, "fmi2", **matrices, inputs=["u"], outputs=["y"]))
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    with pytest.warns(AccuracyWarning, match="grows from t"):
        results = Simulation(system, stop_time=20, step_size=0.02, error_estimate=False).run()
    assert any("inputs=linear" in method for method in results.statistics.methods)
    assert not any("repeated" in warning for warning in results.statistics.warnings)


class Switch(PythonComponent):
    """A thermostat whose state cannot be restored, although it says so."""

    inputs = {"T": 20.0}  # noqa: RUF012
    outputs = {"on": True}  # noqa: RUF012
    on: bool

    def step(self, t: float, h: float) -> None:
        self.on = self.T < 21.0 if self.on else self.T < 19.0

    def save(self) -> Any:
        return self.on

    def restore(self, saved: Any) -> None:
        raise ValueError("it is gone")


class Room(PythonComponent):
    inputs = {"heats": True}  # noqa: RUF012
    outputs = {"T": 20.0}  # noqa: RUF012

    def step(self, t: float, h: float) -> None:
        self.T += h * (2.0 if self.heats else -1.0)


def test_a_chosen_event_method_that_ends_with_an_error_is_replaced_by_the_next() -> None:
    system = SystemBuilder("heating")
    system.add("switch", Switch())
    system.add("room", Room())
    system.connect("room.T", "switch.T")
    system.connect("switch.on", "room.heats")
    run = Simulation(system, stop_time=5, step_size=0.1, error_estimate=False)
    with pytest.warns(AccuracyWarning, match=r"has ended with an error \(.*it is gone") as told:
        results = run.run()
    assert results.time[-1] == 5.0
    assert "so it was repeated with event_clock=" in str(told[0].message)
    assert str(told[0].message) in results.statistics.warnings
    with pytest.raises(CallError, match="it is gone"):
        replace(run, step_size=Locate(0.1), event_clock="none").run()


# Steps ----------------------------------------------------------------------------------------------------------------


def integrator(gain: float, start: float) -> PythonComponent:
    """y' = gain u, exact for inputs that are held."""

    def step(unit: Any, t: float, h: float) -> None:
        unit.y = unit.y + h * gain * unit.u

    return PythonComponent(inputs={"u": 0.0}, outputs={"y": start}, step=step)


def oscillator(speed: float) -> SystemBuilder:
    system = SystemBuilder("oscillator")
    system.add("a", integrator(speed, 1.0))
    system.add("b", integrator(speed, 0.0))
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u", factor=-1.0)
    return system


def error_of(results: Results, speed: float) -> float:
    apart = results["a.y"] - np.cos(speed * results.time)
    return float(np.sqrt(np.mean(apart**2)))


@pytest.mark.parametrize("speed", [0.1, 2.0, 10.0])
def test_steps_are_chosen_by_the_error(speed: float) -> None:
    results = Simulation(oscillator(speed), stop_time=10).run()
    found = results.statistics.coupling_error
    assert found is not None
    assert found.estimate is not None
    assert found.estimate <= 0.003
    assert error_of(results, speed) <= 0.004
    note = results.statistics.notes[-1]
    assert note.startswith("steps of ")
    assert "chosen so that the coupling error is about" in note
    assert note == results.metadata["notes"][-1]
    assert results.rows >= 501


def test_steps_that_do_are_those_of_today() -> None:
    chosen = Simulation(oscillator(0.1), stop_time=10).run()
    plain = Simulation(oscillator(0.1), stop_time=10, error_estimate=False).run()
    assert chosen.rows == plain.rows == 501
    assert chosen["a.y"].tobytes() == plain["a.y"].tobytes()


def test_the_same_system_gives_the_same_bits(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    one = Simulation(oscillator(10.0), stop_time=10).run()
    Simulation(oscillator(10.0), stop_time=10).run(output_file=file)
    other = Results.read(file)
    assert one.time.tobytes() == other.time.tobytes()
    assert one["a.y"].tobytes() == other["a.y"].tobytes()
    assert one.metadata["notes"] == other.metadata["notes"]


def test_a_step_size_that_is_given_stays() -> None:
    with pytest.warns(AccuracyWarning, match="coupling error of"):
        results = Simulation(oscillator(2.0), stop_time=2, step_size=0.1, algorithm=Jacobi()).run()
    assert results.rows == 21


def lags(folder: Path, speed: float) -> SystemBuilder:
    """FMUs that suggest steps of 0.1 s."""
    system = SystemBuilder("lags")
    for name, begin in (("a", 1.0), ("b", 0.0)):
        matrices = {"a": [[0.0]], "b": [[speed]], "c": [[1.0]], "x0": [begin]}
        file = folder / f"{name}.fmu"
        system.add(name, linear_fmu(file, "fmi2", **matrices, inputs=["u"], outputs=["y"]))
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u", factor=-1.0)
    return system


@pytest.mark.parametrize(("speed", "rows"), [(0.5, 101), (5.0, 2001)])
def test_steps_that_an_fmu_suggests_are_shortened_only_if_they_are_too_long(
    speed: float, rows: int, tmp_path: Path
) -> None:
    results = Simulation(lags(tmp_path, speed), stop_time=10).run()
    found = results.statistics.coupling_error
    assert results.rows == rows
    assert found is not None
    assert found.estimate is not None
    assert found.estimate < 0.01
    apart = np.abs(results["a.y"] - np.cos(speed * results.time))
    assert apart.max() < 0.02


class OwnSteps(PythonComponent):
    """x' = u - x, y = x + u; it does no steps but those of a tenth of a second, although it does not say so."""

    inputs = {"u": 0.0}  # noqa: RUF012
    outputs = {"y": 0.0}  # noqa: RUF012
    states = {"x": 0.0}  # noqa: RUF012

    def output(self, t: float) -> None:
        self.y = self.x + self.u

    def step(self, t: float, h: float) -> None:
        if abs(h - 0.1) > 1e-9:
            raise ValueError("another step")
        self.x += h * (self.u - self.x)


def test_an_fmu_that_fails_in_parts_of_steps_does_whole_ones(tmp_path: Path) -> None:
    system = SystemBuilder("own steps")
    wave: dict[str, Any] = {"a": [[0.0, -3.0], [3.0, 0.0]], "c": [[1.0, 0.0]], "x0": [1.0, 0.0]}
    system.add("wave", linear_fmu(tmp_path / "wave.fmu", "fmi2", **wave))
    system.add("own", OwnSteps())
    system.connect("wave.y1", "own.u")
    made = Simulation(system, stop_time=1, step_size=0.1, error_estimate=False)
    with pytest.warns(AccuracyWarning, match="another step.*repeated with undivided steps"):
        results = made.run()
    assert results.rows == 11
    with pytest.raises(CallError, match="another step"):
        replace(made, step_size=0.2).run()
    lines = GaussSeidel(LINEAR, mode=AlongLine(sub_steps=1, to_end=True))
    with pytest.raises(CallError, match="another step"):
        replace(made, algorithm=lines).run()
