"""energy.md 4 and 6 with constant steps: the tables of Sadjina et al. (2017), and exact solutions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest import approx
from scipy.integrate import solve_ivp
from seat_chain import SeatChain

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Jacobi, Refreshed
from fmimaster.inputs import LINEAR
from fmimaster.run import Backend
from fmimaster.steps import PID
from fmimaster.studies.demos.quarter_car import (
    LINEAR_CAR,
    NONLINEAR_CAR,
    Measures,
    QuarterCar,
    measures,
)
from fmimaster.system import Port

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ("fmi2", "fmi3")
CARS = {"lin": LINEAR_CAR, "nl": NONLINEAR_CAR}
KINDS = {"lin": "", "nl": "-nonlinear"}


def data(name: str) -> Any:
    return np.genfromtxt(
        DATA / f"energy_{name}.csv", delimiter=",", names=True, dtype=None, encoding="utf-8"
    )


CONSTANT = [row for row in data("tables") if row["algorithm"] == "constant"]


def run(split: str, case: str = "lin", version: str = "fmi3", **settings: Any) -> Results:
    """A run of the quarter car in one step size, with inputs that are held."""
    system = reference_path(f"systems/quarter-car-{split}{KINDS[case]}-{version}.ssp")
    return simulate(system, algorithm="Jacobi", **settings)


@cache
def measured(
    split: str, case: str, version: str, step_size: float = 1e-3, wheel_steps: int = 10
) -> Measures:
    results = run(
        split,
        case,
        version,
        step_size=step_size,
        start_values={"wheel.micro_steps": wheel_steps},
    )
    return measures(results, CARS[case].power(split))


@pytest.mark.parametrize("case", CARS)
def test_the_exact_solution_is_that_of_the_data(case: str) -> None:
    """energy.md 3; nine digits are given."""
    rows, car = data(f"reference_{case}"), CARS[case]
    states = car.solution()(rows["t"])
    for name, found in zip(("zc", "vc", "zw", "vw"), states, strict=True):
        assert found == approx(rows[name], rel=1e-8, abs=1e-9)
    for split in ("a", "b"):
        power = rows[f"P_{split.upper()}"]
        # a force of 1e3 N at velocities with an error of 1e-9 m/s
        assert car.power(split)(rows["t"]) == approx(power, rel=1e-7, abs=1e-5)


def test_the_integration_of_the_linear_car_is_its_exact_solution() -> None:
    """What the nonlinear car relies on, where both are known."""
    times = np.linspace(0.0, 1.0, 50)
    nearly = QuarterCar(nd=np.nextafter(0.5, 1.0), stop=1.0)
    assert not nearly.is_linear
    assert nearly.solution()(times) == approx(LINEAR_CAR.solution()(times), abs=1e-10)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "row", CONSTANT, ids=lambda row: f"{row['case']}-{row['split']}-{row['micro_S2']}"
)
def test_rows_with_a_constant_step_are_those_of_the_tables(row: Any, version: str) -> None:
    """energy.md 9.1: Tables 3, 5, 6, 7 and 8, to the four decimals of the data."""
    found = measured(row["split"].lower(), row["case"], version, wheel_steps=int(row["micro_S2"]))
    half_a_digit = 5.01e-5
    assert found.steps == row["steps"]
    assert found.mean_power == approx(row["P12_W"], rel=1e-6, abs=half_a_digit)
    assert found.residual_energy == approx(row["res_J"], rel=1e-6, abs=half_a_digit)
    assert found.power_error == approx(row["err_W"], rel=1e-4)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_step_is_that_of_the_data(version: str) -> None:
    """energy.md 9.1: residual and transmitted power, velocity and force; ten digits are given."""
    rows = data("constant_lin_A")
    results = run("a", version=version, stop_time=rows["t"][-1])
    for name, column in {
        "suspension.residual_power": "dP",
        "suspension.power": "P12",
        "chassis.velocity": "y1",
        "wheel.force": "y2",
    }.items():
        largest = np.abs(rows[column]).max()
        assert results[name][1:] == approx(rows[column], rel=1e-8, abs=1e-9 * largest), name


def test_both_executors_give_the_same_bits_with_these_fmus() -> None:
    native, reference = (
        run("a", "nl", stop_time=0.2, backend=backend)
        for backend in (Backend.NATIVE, Backend.REFERENCE)
    )
    assert native.names == reference.names
    for name in native.names:
        assert np.array_equal(native[name], reference[name])


@pytest.mark.parametrize("row", data("fig4"), ids=lambda row: f"{row['split']}-{row['h_ms']:g}ms")
def test_errors_over_the_step_are_those_of_figure_4(row: Any) -> None:
    """energy.md 4: power error and mean |dP|/2, five decimals."""
    found = measured(row["split"].lower(), "lin", "fmi2", step_size=row["h_ms"] / 1e3)
    half_a_digit = 5.1e-6
    assert found.power_error == approx(row["err_W"], rel=1e-4)
    assert found.half_residual == approx(
        row["half_mean_abs_residual_W"], rel=1e-6, abs=half_a_digit
    )


def test_the_residual_is_the_error_in_split_a_and_a_quarter_of_it_in_split_b() -> None:
    """energy.md 1: it is a local error, and no bound."""
    for split, least, most in (("a", 0.93, 0.95), ("b", 0.21, 0.255)):
        for step in (1e-4, 1e-3):
            found = measured(split, "lin", "fmi2", step_size=step)
            assert least <= found.half_residual / found.power_error <= most


@pytest.mark.parametrize("split", ["a", "b"])
def test_the_error_over_the_step_has_slope_one(split: str) -> None:
    """energy.md 4, figure 4: of order 1 below 5 ms."""
    coarse, fine = (measured(split, "lin", "fmi2", step_size=h).power_error for h in (2e-4, 1e-4))
    assert np.log2(coarse / fine) == approx(1.0, abs=0.02)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_chain_of_two_bonds_with_a_constant_step(version: str) -> None:
    """energy.md 9.3, section 6: to 1e-4."""
    results = simulate(reference_path(f"systems/seat-chain-{version}.ssp"), algorithm="Jacobi")
    chain = SeatChain()
    found = [
        measures(results, lambda times: chain.powers(times)[0], "seat_suspension"),
        measures(results, lambda times: chain.powers(times)[1], "suspension"),
    ]
    assert found[0].steps == 4000
    assert [m.power_error for m in found] == approx([0.3366, 1.2542], rel=2e-4)
    assert [m.residual_energy for m in found] == approx([0.8143, 6.0009], rel=1e-4)
    # four decimals are given
    assert [m.mean_power for m in found] == approx([0.0446, -2.1237], abs=5.1e-5)


def test_the_chain_of_two_bonds_with_linear_refreshed_inputs() -> None:
    """energy.md 9.3, section 6: to 1 %. The seat takes its input at the start of each micro step there: it is a chassis
    without a seat on it."""
    chassis = reference_path("fmi3/QuarterCarSeatedChassis.fmu")
    builder = SystemBuilder("seat-chain")
    builder.add("seat", chassis, {"mc": 80.0, "ks": 0.0, "ds": 0.0})
    builder.add("chassis", chassis)
    builder.add("wheel", reference_path("fmi3/QuarterCarWheelA.fmu"))
    builder.connect("seat.wheel.velocity", "chassis.seat.velocity")
    builder.connect("chassis.seat.force", "seat.wheel.force", factor=-1.0)
    builder.connect("chassis.wheel.velocity", "wheel.velocity")
    builder.connect("wheel.force", "chassis.wheel.force", factor=-1.0)
    builder.power_bond(
        "a",
        Port("seat", "wheel.force", "wheel.velocity", "in"),
        Port("chassis", "seat.velocity", "seat.force", "in"),
        scale=20.0,
        tolerance=1e-6,
    )
    builder.power_bond(
        "b",
        Port("chassis", "wheel.force", "wheel.velocity", "in"),
        Port("wheel", "velocity", "force", "in"),
        scale=750.0,
        tolerance=1e-7,
    )
    results = simulate(
        builder.build(stop_time=4.0),
        algorithm=Refreshed(Jacobi(LINEAR)),
        step_size=PID.ecco(1e-2, smallest=1e-4),
    )
    chain = SeatChain()
    a = measures(results, lambda times: chain.powers(times)[0], "a")
    b = measures(results, lambda times: chain.powers(times)[1], "b")
    assert a.steps == approx(2581, rel=5e-3)
    assert [a.power_error, b.power_error] == approx([0.0224, 0.1591], rel=0.01)
    # four decimals are given
    assert [a.residual_energy, b.residual_energy] == approx([0.0007, -0.0024], abs=5.1e-5)
    assert [a.mean_power, b.mean_power] == approx([-0.0017, -2.5076], abs=1.1e-4)


# Held out -------------------------------------------------------------------------------------------------------------

OTHER = QuarterCar(mc=300.0, mw=30.0, kc=20e3, kw=120e3, dc=800.0, nd=1.0, stop=1.0)
"""An exponent of 2/3."""
BUMP, LENGTH = 0.08, 0.25  # [m], [s]


def road(time: Any) -> Any:
    """A bump from 0 s on; smooth where it starts and ends."""
    return np.where(time < LENGTH, BUMP / 2 * (1.0 - np.cos(2 * np.pi * time / LENGTH)), 0.0)


@cache
def bump_power(split: str) -> Any:
    """The exact power between both halves, as a function of time."""
    solved = solve_ivp(
        lambda t, x: replace(OTHER, road=float(road(t))).rates(x),
        (0.0, OTHER.stop),
        np.zeros(4),
        method="DOP853",
        dense_output=True,
        max_step=0.01,  # it must see the bump
        rtol=1e-10,
        atol=1e-12,
    )
    velocity = {"a": 1, "b": 3}[split]
    return lambda times: OTHER.force(solved.sol(times)) * solved.sol(times)[velocity]


@pytest.mark.parametrize("split", ["a", "b"])
def test_other_parameters_and_a_road_bump(split: str, tmp_path: Path) -> None:
    """energy.md 9.7: the error is of order 1 in the step, and ECCO makes it smaller at the same cost."""
    times = np.linspace(0.0, OTHER.stop, 4001)
    table = tmp_path / "road.csv"
    np.savetxt(
        table,
        np.transpose([times, road(times)]),
        delimiter=",",
        header="time,wheel.road",
        comments="",
    )
    damper = "wheel" if split == "a" else "chassis"
    values = {
        "chassis.mc": OTHER.mc,
        "wheel.mw": OTHER.mw,
        "wheel.kw": OTHER.kw,
        **{f"{damper}.{name}": getattr(OTHER, name) for name in ("kc", "dc", "nd")},
    }

    def error(step_size: Any, **settings: Any) -> Measures:
        results = run(
            split,
            version="fmi2",
            stop_time=OTHER.stop,
            step_size=step_size,
            start_values=values,
            input=table,
            inputs={
                "wheel.road": LINEAR
            },  # a power bond does not see the error of an input that is held
            **settings,
        )
        return measures(results, bump_power(split))

    coarse, fine = error(2e-3), error(1e-3)
    assert coarse.power_error / fine.power_error == approx(2.0, rel=0.15)
    tolerance = {"a": 1.6e-5, "b": 1.4e-5}[split]
    controlled = error(PID.ecco(1e-2, smallest=1e-4), bond_tolerance=tolerance)
    assert controlled.steps <= fine.steps
    assert controlled.power_error < fine.power_error
    assert controlled.residual_energy < fine.residual_energy
