"""Signals that jump, with lines over steps: files, controllers that sample their inputs. All solutions are exact."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from numpy.typing import NDArray
from scipy.linalg import expm

from fmimaster import PythonComponent, Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import Algorithm, AlongLine, GaussSeidel, Jacobi
from fmimaster.inputs import LINEAR
from fmimaster.record.causes import Kind
from fmimaster.run.executor import Backend

Array = NDArray[np.float64]
Write = Callable[..., Path]

LINES = GaussSeidel(LINEAR, mode=AlongLine())
H = 0.05
"""Step size in s."""
ROUNDING = 1e-12
"""Of about 100 steps, relative to the largest value."""


@pytest.fixture
def fmu(tmp_path: Path) -> Write:
    """Writes FMUs of linear systems; ``capabilities`` that are not theirs."""

    def write(capabilities: dict[str, str | None] | None = None, **system: Any) -> Path:
        count = len(list(tmp_path.iterdir()))
        path = linear_fmu(tmp_path / f"{count}.fmu", "fmi2", **system)
        if capabilities is None:
            return path
        return edited_fmu(path, tmp_path / f"{count}-edited.fmu", capabilities=capabilities)

    return write


HOLDS = {"canInterpolateInputs": None}
FIXED = {"canHandleVariableCommunicationStepSize": None}


def run(
    system: SystemBuilder,
    algorithm: Algorithm = LINES,
    *,
    stop_time: float = 5,
    step_size: Any = H,
    **settings: Any,
) -> Results:
    simulation = Simulation(
        system, algorithm=algorithm, step_size=step_size, stop_time=stop_time, **settings
    )
    return simulation.run()


def error(found: Array, exact: Array) -> float:
    return float(np.abs(found - exact).max() / np.abs(exact).max())


# Files with jumps, away from the grid of steps ------------------------------------------------------------------------

TIMES = np.array([0, 0.731, 0.731, 1.5, 2.0, 2.0, 3.317, 3.317, 5.0])
LINEAR_PIECES = np.array([0, 1, -1, 0.5, 0.8, 2.0, 1.0, 0.0, 0.7])
CONSTANT_PIECES = np.array([1, 1, -1, -1, -1, 2.0, 2.0, 0.5, 0.5])


def driven(a: Array, b: Array, values: Array, times: Array, ends: Array = TIMES) -> Array:
    """States from 0 of x' = a x + b u at some times, where u goes in lines through values at the ends."""
    n = len(a)
    whole = np.zeros((n + 2, n + 2))
    whole[:n, :n], whole[:n, n], whole[n, n + 1] = a, b, 1.0
    x, now, found = np.zeros(n), 0.0, {0.0: np.zeros(n)}
    for t in sorted({*times.tolist(), *ends.tolist()} - {0.0}):
        k = int(np.searchsorted(ends, t, "left"))
        slope = (values[k] - values[k - 1]) / (ends[k] - ends[k - 1])
        u = values[k] + (now - ends[k]) * slope
        x = (expm(whole * (t - now)) @ [*x, u, slope])[:n]
        now, found[t] = t, x
    return np.array([found[t] for t in times.tolist()])


ONE, TWO = np.array([[-2.0]]), np.array([[-2.0, 0.0], [3.0, -3.0]])
"""A filter; and another one behind it."""


def filters(write: Write, first: dict[str, Any], capabilities: Any = None) -> SystemBuilder:
    system = SystemBuilder()
    system.add("f", write(capabilities, a=[[-2.0]], b=[[2.0]], c=[[1.0]], **first))
    system.add("g", write(capabilities, a=[[-3.0]], b=[[3.0]], c=[[1.0]]))
    system.connect("f.y1", "g.u1")
    return system


def test_a_line_goes_to_the_value_before_a_jump_of_a_file(fmu: Write) -> None:
    system = filters(fmu, {})
    results = run(system, input={"time": TIMES, "f.u1": LINEAR_PIECES})
    exact = driven(ONE, np.array([2.0]), LINEAR_PIECES, results.time)[:, 0]
    assert error(results["f.y1"], exact) < ROUNDING


@pytest.mark.parametrize("algorithm", [LINES, GaussSeidel()], ids=["lines", "end values"])
@pytest.mark.parametrize("capabilities", [None, HOLDS], ids=["takes lines", "holds"])
def test_a_value_of_a_file_is_held_until_it_jumps(
    fmu: Write, algorithm: Algorithm, capabilities: Any
) -> None:
    system = filters(fmu, {}, capabilities)
    results = run(system, algorithm, input={"time": TIMES, "f.u1": CONSTANT_PIECES})
    exact = driven(ONE, np.array([2.0]), CONSTANT_PIECES, results.time)[:, 0]
    assert error(results["f.y1"], exact) < ROUNDING


@pytest.mark.parametrize("capabilities", [None, HOLDS], ids=["takes lines", "holds"])
def test_an_output_that_jumps_with_a_file_is_no_ramp_either(fmu: Write, capabilities: Any) -> None:
    system = filters(fmu, {"d": [[0.5]]}, capabilities)
    given = {"time": TIMES, "f.u1": LINEAR_PIECES}
    lines, held = run(system, input=given), run(system, Jacobi(), input=given)
    exact = driven(TWO, np.array([2.0, 1.5]), LINEAR_PIECES, lines.time)[:, 1]
    # of the second order in H; a ramp over one jump gives 1e-2, held inputs 8e-2
    assert error(lines["g.y1"], exact) < 1.5e-3
    # the outputs that have jumped are read after a short step: one for each jump
    renewed = [s for s in lines.steps if s.cause.kind is Kind.OUTDATED_OUTPUTS]
    assert len(renewed) == 3
    assert not any(s.cause.kind is Kind.OUTDATED_OUTPUTS for s in held.steps)


def test_jumps_wait_for_the_grid_if_an_fmu_has_fixed_steps(fmu: Write) -> None:
    system = filters(fmu, {}, FIXED)
    results = run(system, input={"time": TIMES, "f.u1": CONSTANT_PIECES})
    met = np.array([0, 0.75, 0.75, 1.5, 2.0, 2.0, 3.35, 3.35, 5.0])
    grid = np.unique([*results.time, 0.75, 3.35, 2.0, 1.5])
    exact = driven(ONE, np.array([2.0]), CONSTANT_PIECES, grid, met)[:, 0]
    assert error(results["f.y1"], np.interp(results.time, grid, exact)) < 1e-9


def valve() -> PythonComponent:
    """q' = 2 (open - q), exactly."""

    def step(c: Any, t: float, h: float) -> None:
        end = float(c.open)
        c.q = end + (c.q - end) * exp(-2 * h)

    return PythonComponent(inputs={"open": False}, outputs={"q": 0.0}, step=step)


def test_a_boolean_of_a_file_changes_at_its_time() -> None:
    system = SystemBuilder()
    system.add("valve", valve())
    times = np.array([0, 0.731, 2.0, 3.317])
    given = {"time": times, "valve.open": np.array([False, True, False, True])}
    results = run(system, input=given)
    pieces = np.array([0, 0, 1, 1, 1, 0, 0, 1.0, 1.0])
    exact = driven(ONE, np.array([2.0]), pieces, results.time)[:, 0]
    assert error(results["valve.q"], exact) < ROUNDING


# Controllers that sample ----------------------------------------------------------------------------------------------

SAMPLES = 4 * H
"""Time between two samples in s."""


def controller() -> PythonComponent:
    """An integral controller that samples at the end of the step."""

    def step(c: Any, t: float, h: float) -> None:
        k = (t + h) / SAMPLES
        if abs(k - round(k)) < 1e-6:
            c.integral += (1 - c.y) * SAMPLES
            c.u = 0.4 * (1 - c.y) + 0.8 * c.integral

    return PythonComponent(
        inputs={"y": 0.0},
        outputs={"u": 1.0},
        states={"integral": 0.0},
        discrete=["u"],
        step=step,
    )


PLANT = {"a": [[0.0, 1.0], [-4.0, -1.2]], "b": [[0.0], [4.0]], "c": [[1.0, 0.0]]}


def sampled(times: Array) -> Array:
    """The exact output of the plant."""
    a, b = np.array(PLANT["a"]), np.array(PLANT["b"])
    whole = np.vstack([np.hstack([a, b]), np.zeros(3)])
    x, u, integral, begin = np.zeros(2), 1.0, 0.0, 0
    found = []
    for t in times.tolist():
        while t > (begin + 1) * SAMPLES - 1e-9:
            x = (expm(whole * SAMPLES) @ [*x, u])[:2]
            begin += 1
            integral += (1 - x[0]) * SAMPLES
            u = 0.4 * (1 - x[0]) + 0.8 * integral
        found.append((expm(whole * (t - begin * SAMPLES)) @ [*x, u])[0])
    return np.array(found)


@pytest.mark.parametrize("capabilities", [None, HOLDS], ids=["takes lines", "holds"])
@pytest.mark.parametrize("name", ["a_controller", "z_controller"])
def test_sampled_control_is_exact(fmu: Write, capabilities: Any, name: str) -> None:
    # the plant does not declare that its output has no feed-through: its input has the same weight then
    system = SystemBuilder()
    unknown = {"dependencies": None, "dependenciesKind": None}
    path = fmu(capabilities, **PLANT)
    plant = edited_fmu(path, path.with_suffix(".plant.fmu"), unknowns={"y1": unknown})
    system.add(name, controller())
    system.add("plant", plant)
    system.connect("plant.y1", f"{name}.y")
    system.connect(f"{name}.u", "plant.u1")
    results = run(system)
    assert error(results["plant.y1"], sampled(results.time)) < ROUNDING


def hold() -> PythonComponent:
    """Samples its input in each step."""

    def step(c: Any, t: float, h: float) -> None:
        c.u = c.y

    return PythonComponent(inputs={"y": 0.0}, outputs={"u": 0.0}, discrete=["u"], step=step)


def test_a_new_sample_is_valid_from_the_end_of_the_step_on(fmu: Write) -> None:
    system = SystemBuilder()
    system.add("sine", fmu(a=[[0.0, 3.0], [-3.0, 0.0]], c=[[1.0, 0.0]], x0=[0.0, 1.0]))
    system.add("hold", hold())
    system.add("filter", fmu(a=[[-3.0]], b=[[3.0]], c=[[1.0]]))
    system.connect("sine.y1", "hold.y")
    system.connect("hold.u", "filter.u1")
    results = run(system, stop_time=2)
    x, exact = 0.0, [0.0]
    for t in results.time[:-1].tolist():
        x = sin(3 * t) + (x - sin(3 * t)) * exp(-3 * H)
        exact.append(x)
    assert error(results["filter.y1"], np.array(exact)) < ROUNDING


def test_a_sample_from_the_start_of_the_step_is_valid_from_there_on(fmu: Write) -> None:
    system = SystemBuilder()
    system.add("hold", hold())
    system.add("plant", fmu(a=[[-3.0]], b=[[-3.0]], c=[[1.0]], x0=[1.0]))
    system.connect("plant.y1", "hold.y")
    system.connect("hold.u", "plant.u1")
    results = run(system, sequence=["hold", "plant"], stop_time=2)
    x, exact = 1.0, [1.0]
    for _ in results.time[1:]:
        x = -x + 2 * x * exp(-3 * H)
        exact.append(x)
    assert error(results["plant.y1"], np.array(exact)) < ROUNDING


@pytest.mark.parametrize("capabilities", [None, HOLDS], ids=["takes lines", "holds"])
def test_both_executors_give_the_same_bits_at_jumps(fmu: Write, capabilities: Any) -> None:
    system = filters(fmu, {"d": [[0.5]]}, capabilities)
    system.add("valve", valve())
    bits = np.array([False, False, True, True, True, False, False, True, True])
    given = {"time": TIMES, "f.u1": LINEAR_PIECES, "valve.open": bits}
    runs = [run(system, input=given, backend=backend) for backend in Backend]
    native, reference = (np.array([r[name] for name in r.columns]) for r in runs[:2])
    assert np.array_equal(native, reference)


def test_an_fmu_without_states_that_holds_its_inputs_gets_their_values_at_the_end(
    fmu: Write,
) -> None:
    """A spring that does not say how its force depends on the position; a mass."""
    system = SystemBuilder()
    path = fmu(HOLDS, d=[[-4.0]])
    unknown = {"dependencies": None, "dependenciesKind": None}
    given = {"providesDirectionalDerivative": None}
    spring = edited_fmu(path, path.with_suffix(".s.fmu"), unknowns={"y1": unknown})
    system.add("spring", edited_fmu(spring, path.with_suffix(".t.fmu"), capabilities=given))
    system.add("mass", fmu(a=[[0.0, 1.0], [0.0, 0.0]], b=[[0.0], [1.0]], c=[[1, 0]], x0=[1, 0]))
    system.connect("mass.y1", "spring.u1")
    system.connect("spring.y1", "mass.u1")
    algorithm = GaussSeidel(LINEAR, mode=AlongLine(sub_steps=1))
    results = run(system, algorithm, sequence=["mass", "spring"])
    # of the second order in H; with the mean of the step the spring is late by H / 2, with an error of 0.6
    assert error(results["mass.y1"], np.cos(2 * results.time)) < 0.02


def test_a_controller_is_said_to_come_after_its_plant(fmu: Write) -> None:
    system = SystemBuilder()
    system.add("a_controller", controller())
    system.add("plant", fmu(**PLANT))
    system.connect("plant.y1", "a_controller.y")
    system.connect("a_controller.u", "plant.u1")
    page = " ".join(
        str(Simulation(system, algorithm=LINES, step_size=H, stop_time=1).plan()).split()
    )
    assert "10 for an input of a component" in page
    assert "half a step early" not in page


def test_control_by_a_clock_is_exact(fmu: Write) -> None:
    """x' = -x - 2 s with the sample s of x at each 1/4 s, between communication points."""
    system = SystemBuilder()
    system.add("plant", fmu(a=[[-1.0]], b=[[1.0]], c=[[1.0]], x0=[1.0]))
    clock = {"interval.counter": 1, "interval.resolution": 4}
    system.add("sampler", reference_path("fmi3/Sampler.fmu"), clock)
    system.connect("plant.y1", "sampler.u")
    system.connect("sampler.held", "plant.u1", factor=-2.0)
    results = run(system, stop_time=1, step_size="1/30")
    held = [1.0]
    for _ in range(5):
        held.append(-2 * held[-1] + 3 * held[-1] * exp(-0.25))
    ticks = [int(4 * t + 1e-9) for t in results.time.tolist()]
    exact = [
        held[k] * (3 * exp(k / 4 - t) - 2)
        for k, t in zip(ticks, results.time.tolist(), strict=True)
    ]
    assert error(results["plant.y1"], np.array(exact)) < ROUNDING
