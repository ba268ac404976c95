"""The stability of steps as the FMUs show it: energy.md 4 and 8.1, and the growth of simulations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from edited_fmu import edited_fmu
from in_turn import in_turn
from linear_fmu import linear_fmu
from numpy.typing import NDArray
from scipy.linalg import expm

from fmimaster import (
    OptionError,
    Results,
    Simulation,
    SimulationError,
    SystemBuilder,
    reference_path,
    simulate,
)
from fmimaster.algorithms import (
    Algorithm,
    Emitter,
    GaussSeidel,
    Jacobi,
    Plan,
    Refreshed,
    Richardson,
    SubSteps,
    Waveform,
)
from fmimaster.inputs import ADAPTIVE, LINEAR, NEPCE, Polynomial
from fmimaster.run import Backend
from fmimaster.studies.stability.advisor import Advisor, largest_stable_step
from fmimaster.system.description import SystemDescription

pytestmark = pytest.mark.filterwarnings(
    "ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning"
)
"""Many of the runs diverge."""

LIMITS = {"a": 53.20e-3, "b": 11.230e-3}
"""Split → largest stable step in s: energy.md 4, stability."""
SEEN = {"a": (58.5e-3, 58.75e-3), "b": (11.2e-3, 11.25e-3)}
"""Split → between which steps in s a run of 4 s is seen to grow: energy.md 4."""


def quarter_car(
    split: str,
    version: str = "fmi2",
    step: float = 1e-3,
    algorithm: Algorithm | str | None = "Jacobi",
) -> Simulation:
    system = reference_path(f"systems/quarter-car-{split}-{version}.ssp")
    return Simulation(system, stop_time=4, step_size=step, algorithm=algorithm)


@pytest.mark.parametrize(("split", "version"), in_turn(["a", "b"], ["fmi2", "fmi3"]))
def test_the_stability_limits_of_the_quarter_car(split: str, version: str) -> None:
    """energy.md 4 and 9.1: 53.20 ms (A) and 11.230 ms (B), to 0.01 ms. The radius is 1 there."""
    with Advisor(quarter_car(split, version)) as advisor:
        limit = advisor.limit()
        assert limit.is_sure
        for size in (limit.stable, limit.unstable):
            assert size is not None
            assert advisor.spectrum(size).radius == pytest.approx(1.0, abs=1e-5)
    assert limit.step == pytest.approx(LIMITS[split], abs=1e-5)
    assert limit.unstable == pytest.approx(limit.step, rel=2e-6)


@pytest.mark.parametrize(("split", "step"), in_turn(["a", "b"], [0.05, 0.2, 0.5, 1.0]))
def test_the_limit_is_found_from_an_unstable_step_too(split: str, step: float) -> None:
    """Also from steps with which an FMU alone grows without bound."""
    found = largest_stable_step(quarter_car(split, step=step))
    assert found == pytest.approx(LIMITS[split], abs=1e-5)


def grows_with_small_steps(folder: Path, step: float) -> Simulation:
    """An oscillator with negative damping, which a delayed spring damps if the delay is long enough: steps between
    0.1 and 1.5 s are stable, no smaller ones are."""
    oscillator = linear_fmu(
        folder / "oscillator.fmu",
        "fmi3",
        a=[[0.0, 1.0], [-1.0, 0.05]],
        b=[[0.0], [1.0]],
        c=[[1.0, 0.0]],
        inputs=["F"],
        outputs=["x"],
    )
    spring = linear_fmu(
        folder / "spring.fmu",
        "fmi3",
        a=[[-1.0]],
        b=[[0.0]],
        c=[[0.0]],
        d=[[0.5]],
        inputs=["x"],
        outputs=["F"],
    )
    builder = SystemBuilder("delayed")
    builder.add("oscillator", oscillator)
    builder.add("spring", spring)
    builder.connect("oscillator.x", "spring.x")
    builder.connect("spring.F", "oscillator.F")
    return Simulation(builder.build(), stop_time=200, step_size=step, algorithm="Jacobi")


@pytest.mark.parametrize("step", [0.01, 0.5, 3.0])
def test_a_range_of_stable_steps_above_unstable_ones_is_no_limit(
    tmp_path: Path, step: float
) -> None:
    with Advisor(grows_with_small_steps(tmp_path, step)) as advisor:
        assert not advisor.spectrum(0.02).is_stable
        assert advisor.spectrum(0.5).is_stable
        assert advisor.limit().step is None


def test_an_analysis_ends_with_its_time() -> None:
    assert largest_stable_step(quarter_car("b", step=0.05), seconds=0.0) is None


@pytest.mark.parametrize("split", ["a", "b"])
def test_runs_of_the_quarter_car_grow_where_the_literature_sees_it(split: str) -> None:
    """energy.md 4 and 9.1: in a run of 4 s the second half has the larger force from 58.5 ms (A), 11.2 ms (B) on."""
    first, last = SEEN[split]
    force = "wheel.force" if split == "a" else "chassis.force"

    def grows(step: float) -> bool:
        results = quarter_car(split, step=step).run()
        halves = results.time >= 2.0
        largest = np.abs(results[force])
        return float(largest[halves].max()) > float(largest[~halves].max())

    assert not grows(first - 0.3e-3)
    assert grows(last + 0.3e-3)


# The two masses of the survey -----------------------------------------------------------------------------------------


def two_masses(
    folder: Path, version: str = "fmi2", *, m1: float = 1.0, d_c: float = 1.0, x0: float = 0.0
) -> SystemDescription:
    """energy.md 9.5, section 8.1: unit 1 has x and v, unit 2 the force of the coupling; all parameters 1, but d2 = 2."""
    lower = linear_fmu(
        folder / "1.fmu",
        version,
        a=[[0, 1], [-1 / m1, -1 / m1]],
        b=[[0], [1 / m1]],
        c=np.eye(2),
        x0=[x0, 0],
        inputs=["F"],
        outputs=["x", "v"],
    )
    upper = linear_fmu(
        folder / "2.fmu",
        version,
        a=[[0, 1], [-2, -(2 + d_c)]],
        b=[[0, 0], [1, d_c]],
        c=[[1, d_c]],
        d=[[-1, -d_c]],
        inputs=["x", "v"],
        outputs=["F"],
    )
    builder = SystemBuilder("two masses")
    builder.add("1", lower)
    builder.add("2", upper)
    for source, target in (("1.x", "2.x"), ("1.v", "2.v"), ("2.F", "1.F")):
        builder.connect(source, target)
    return builder.build()


def radius(system: SystemDescription, step: float, algorithm: Algorithm | str = "Jacobi") -> float:
    simulation = Simulation(system, stop_time=200 * step, step_size=step, algorithm=algorithm)
    with Advisor(simulation) as advisor:
        return advisor.spectrum(step).radius


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_the_radius_of_the_survey(tmp_path: Path, version: str) -> None:
    """energy.md 9.5, section 8.1: 0.99923270 at H = 1 ms, to 1e-7."""
    assert radius(two_masses(tmp_path, version), 1e-3) == pytest.approx(0.99923270, abs=1e-7)


def test_a_stiff_damper_is_stable_and_forgets_nothing(tmp_path: Path) -> None:
    """energy.md 9.5, section 8.1, dc = 6e6: 1 - rho between 2.4e-10 and 2.6e-10."""
    assert 2.4e-10 < 1.0 - radius(two_masses(tmp_path, d_c=6e6), 1e-3) < 2.6e-10


def test_the_printed_radius_of_the_stiff_damper_comes_from_a_missed_boundary_layer() -> None:
    """energy.md 9.5, section 8.1, dc = 6e6: with K2 = 0 the matrix has the radius 77.4403; printed are 76.43."""
    step, d_c = 1e-3, 6e6
    first, second = np.array([[0, 1], [-1, -1.0]]), np.array([[0, 1], [-2, -(2 + d_c)]])

    def exponential(a: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        both = np.asarray(expm(np.block([[a, np.eye(2)], [np.zeros((2, 4))]]) * step), np.float64)
        return both[:2, :2], both[:2, 2:]

    (e1, k1), (e2, _) = exponential(first), exponential(second)
    entry, c2, d2 = np.array([[0.0], [1.0]]), np.array([[1.0, d_c]]), np.array([[-1.0, -d_c]])
    zero = np.zeros
    matrix = np.block(
        [
            [e1, zero((2, 2)), zero((2, 2)), k1 @ entry],
            [e1, zero((2, 2)), zero((2, 2)), k1 @ entry],
            [zero((2, 2)), zero((2, 2)), e2, zero((2, 1))],
            [zero((1, 2)), d2, c2 @ e2, zero((1, 1))],
        ]
    )
    assert max(abs(np.linalg.eigvals(matrix))) == pytest.approx(77.4403, abs=1e-4)


UNSTABLE = [
    (0.5, 100.0, 1.0, 1.008116),
    (1.0, 10.0, 1.0, 1.185287),
    (1.0, 100.0, 1.0, 1.336971),
    (0.01, 100.0, 0.1, 1.892855),
    (0.01, 100.0, 0.01, 4.889085),
]
"""Step in s, dc, m1, radius: energy.md 8.1."""


@pytest.mark.parametrize(("step", "d_c", "m1", "expected"), UNSTABLE)
def test_the_unstable_steps_of_the_survey(
    tmp_path: Path, step: float, d_c: float, m1: float, expected: float
) -> None:
    """energy.md 9.5, section 8.1: the radius, and the growth of a run of 200 steps to 1 %."""
    system = two_masses(tmp_path, m1=m1, d_c=d_c, x0=1.0)
    assert radius(system, step) == pytest.approx(expected, abs=1e-6)
    run = simulate(system, stop_time=200 * step, step_size=step, algorithm="Jacobi")
    assert growth(run) == pytest.approx(expected, rel=0.01)


def growth(results: Results) -> float:
    """By how much the states of unit 1 grow with each step, after the first 50."""
    size = np.hypot(results["1.x"], results["1.v"])[50:]
    slope, _ = np.polyfit(np.arange(len(size)), np.log(size), 1)
    return float(np.exp(slope))


# Algorithms, inputs and FMUs ------------------------------------------------------------------------------------------


class TwoHalves(Algorithm):
    """Two steps of half the size in each step."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        for k in range(2):
            with p.over(k / 2, (k + 1) / 2):
                Jacobi().emit(plan, p)


@pytest.mark.parametrize(
    ("algorithm", "step"),
    [
        (Jacobi(Polynomial(2, 0)), 0.1),
        (Jacobi(Polynomial(3, 0)), 0.1),
        (Jacobi(Polynomial(2, 0, held=0.5)), 0.1),
        (GaussSeidel(), 0.3),
        (Waveform(GaussSeidel()), 0.3),
        (TwoHalves(), 0.3),
    ],
    ids=["linear", "quadratic", "midpoint", "gauss-seidel", "waveform", "two-halves"],
)
def test_the_radius_is_the_growth_of_a_run_with_any_algorithm(
    tmp_path: Path, algorithm: Algorithm, step: float
) -> None:
    system = two_masses(tmp_path, "fmi3", d_c=100.0, m1=0.1, x0=1.0)
    found = radius(system, step, algorithm=algorithm)
    assert abs(found - 1.0) > 0.02  # it is no stable one by chance
    run = simulate(system, stop_time=200 * step, step_size=step, algorithm=algorithm)
    assert growth(run) == pytest.approx(found, rel=0.01)


@pytest.mark.parametrize(
    ("algorithm", "step", "version"),
    [
        (Jacobi(NEPCE), 15.5e-3, "fmi2"),
        (Refreshed(Jacobi()), 29.5e-3, "fmi3"),
        (Refreshed(Jacobi(LINEAR), linearized=True), 31.5e-3, "fmi2"),
        (Richardson(Jacobi(LINEAR)), 27.3e-3, "fmi2"),
        (SubSteps(GaussSeidel(), {"wheel": 2}), 40e-3, "fmi3"),
    ],
    ids=["nepce", "refreshed", "refreshed-linear", "richardson", "sub-steps"],
)
def test_the_radius_is_the_growth_of_the_quarter_car(
    algorithm: Algorithm, step: float, version: str
) -> None:
    """Outputs refreshed by derivatives (FMI 2.0) and in Event Mode (FMI 3.0), memory of inputs, steps of two sizes."""
    simulation = quarter_car("b", version, step, algorithm=algorithm)
    with Advisor(simulation) as advisor:
        found = advisor.spectrum(step).radius
    assert found > 1.04
    force = np.abs(replace(simulation, stop_time=300 * step).run()["chassis.force"])[100:]
    slope, _ = np.polyfit(np.arange(len(force)), np.log(force), 1)
    assert float(np.exp(slope)) == pytest.approx(found, rel=2e-3)


@pytest.mark.parametrize("solver", [0, 1], ids=["euler", "runge-kutta"])
def test_the_radius_is_the_growth_of_a_chain_of_three(solver: int) -> None:
    """energy.md 9.7: another system, with other solvers inside."""
    step, components = 60e-3, ("seat", "chassis", "wheel")
    simulation = Simulation(
        reference_path("systems/seat-chain-fmi2.ssp"),
        step_size=step,
        stop_time=300 * step,
        algorithm="Jacobi",
        start_values={f"{name}.solver": solver for name in components},
    )
    with Advisor(simulation) as advisor:
        found = advisor.spectrum(step).radius
    assert found > 1.05
    force = np.abs(simulation.run()["wheel.force"])[100:]
    slope, _ = np.polyfit(np.arange(len(force)), np.log(force), 1)
    assert float(np.exp(slope)) == pytest.approx(found, rel=2e-3)


def test_two_half_steps_are_the_square_of_one(tmp_path: Path) -> None:
    """The models of the FMUs for steps of two sizes have the same states."""
    system = two_masses(tmp_path, d_c=10.0)
    once, twice = radius(system, 0.25), radius(system, 0.5, algorithm=TwoHalves())
    assert twice == pytest.approx(once**2, rel=1e-9)


@pytest.mark.parametrize(
    "capability", ["canGetAndSetFMUState", "canHandleVariableCommunicationStepSize"]
)
def test_fmus_that_cannot_restore_their_state_are_run_again(
    tmp_path: Path, capability: str
) -> None:
    system = two_masses(tmp_path)
    for name in ("1", "2"):
        unable = {capability: "false"}
        edited_fmu(tmp_path / f"{name}.fmu", tmp_path / f"{name}u.fmu", capabilities=unable)
        (tmp_path / f"{name}u.fmu").replace(tmp_path / f"{name}.fmu")
    assert radius(system, 1e-3) == pytest.approx(0.99923270, abs=1e-7)


def test_inputs_that_are_declared_discrete_are_coupled_too(tmp_path: Path) -> None:
    """As in libcosim's quarter truck, which declares all so."""
    system, discrete = two_masses(tmp_path), {"variability": "discrete"}
    for name, variables in (("1", ("F", "x", "v")), ("2", ("x", "v", "F"))):
        edited = tmp_path / f"{name}d.fmu"
        edited_fmu(tmp_path / f"{name}.fmu", edited, variables=dict.fromkeys(variables, discrete))
        edited.replace(tmp_path / f"{name}.fmu")
    assert radius(system, 1e-3) == pytest.approx(0.99923270, abs=1e-7)


def test_the_interpreter_finds_the_same(tmp_path: Path) -> None:
    simulation = quarter_car("a", step=0.05, algorithm=Jacobi(Polynomial(2, 0)))
    found = []
    for backend in (Backend.FASTEST, Backend.REFERENCE):
        with Advisor(replace(simulation, backend=backend)) as advisor:
            found.append(advisor.spectrum(0.05).eigenvalues)
    np.testing.assert_array_equal(found[0], found[1])


def test_a_free_body_is_stable(tmp_path: Path) -> None:
    """Positions that nothing drives back have the eigenvalue 1, which is no instability."""
    body = linear_fmu(
        tmp_path / "body.fmu", "fmi3", a=[[-1.0]], b=[[1.0]], c=[[1.0]], inputs=["F"], outputs=["v"]
    )
    spring = linear_fmu(
        tmp_path / "spring.fmu",
        "fmi3",
        a=[[0.0]],
        b=[[1.0]],
        c=[[-0.0]],
        d=[[-1.0]],
        inputs=["v"],
        outputs=["F"],
    )
    builder = SystemBuilder("free")
    builder.add("body", body)
    builder.add("spring", spring)
    builder.connect("body.v", "spring.v")
    builder.connect("spring.F", "body.F")
    with Advisor(Simulation(builder.build(), stop_time=1, step_size=0.1)) as advisor:
        assert advisor.spectrum(0.1).is_stable


def test_an_fmu_that_is_not_linear_is_named_with_its_deviation() -> None:
    """Its responses to small pulses are nearly proportional, to large ones they are not."""
    system = reference_path("systems/quarter-car-a-nonlinear-fmi2.ssp")
    with Advisor(Simulation(system, stop_time=1, step_size=1e-3), at=0.9) as advisor:
        deviations = {fmu.name: fmu.deviation for fmu in advisor.fmus(1e-3)}
    assert deviations["chassis"] < 1e-12 < deviations["wheel"] < 1e-3


def test_inputs_that_adapt_are_refused() -> None:
    with pytest.raises(OptionError, match="adapt to measured errors"):
        Advisor(quarter_car("a", algorithm=Jacobi(ADAPTIVE)))
    assert largest_stable_step(quarter_car("a", algorithm=Jacobi(ADAPTIVE))) is None


def test_a_point_outside_of_the_run_is_refused() -> None:
    with pytest.raises(OptionError, match="not between the start and the stop time"):
        Advisor(quarter_car("a"), at=-1.0)


def test_a_single_fmu_has_nothing_to_become_unstable_by_its_coupling() -> None:
    with Advisor(Simulation(reference_path("fmi2/Dahlquist.fmu"), stop_time=1)) as advisor:
        assert advisor.limit().step is None
        assert advisor.spectrum(0.1).radius == 0.0


def test_steps_that_an_fmu_refuses_end_the_search(tmp_path: Path) -> None:
    del tmp_path
    with Advisor(quarter_car("a")) as advisor, pytest.raises(SimulationError):
        advisor.spectrum(1e6)
