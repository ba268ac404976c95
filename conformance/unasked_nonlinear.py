"""Systems without events whose units are not all linear, for ``unasked.py``; their solutions are integrated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from unasked_case import Case, Columns, whole
from unasked_nets import Array, Made, unit

from fmimaster import PythonComponent, SystemBuilder, reference_path
from fmimaster.studies.demos.quarter_car import LINEAR_CAR, NONLINEAR_CAR, QuarterCar

TOLERANCE = 1e-12
"""Relative and absolute."""


def car_cases() -> Iterator[Case]:
    """Quarter cars without a suggested step."""
    for split, version, car, text in (
        *((s, v, LINEAR_CAR, "") for s in "AB" for v in ("fmi2", "fmi3")),
        *((s, "fmi2", NONLINEAR_CAR, " nonlinear") for s in "AB"),
    ):
        yield Case(
            f"quarter car {split}{text} {version}",
            "cars",
            version.replace("fmi", "") + ".0",
            partial(_car, split, version, car),
            partial(_car_solution, split, car),
            Fraction(int(car.stop)),
            Fraction(1, 1000),
        )


def _car(split: str, version: str, car: QuarterCar, _: Path) -> Any:
    builder = SystemBuilder("quarter car")
    chassis, wheel = {"mc": car.mc}, {"mw": car.mw, "kw": car.kw}
    (wheel if split == "A" else chassis).update(kc=car.kc, dc=car.dc, nd=car.nd)
    builder.add("chassis", reference_path(f"{version}/QuarterCarChassis{split}.fmu"), chassis)
    builder.add("wheel", reference_path(f"{version}/QuarterCarWheel{split}.fmu"), wheel)
    builder.set("wheel.road", car.road)
    first, second = ("chassis", "wheel") if split == "A" else ("wheel", "chassis")
    builder.connect(f"{first}.velocity", f"{second}.velocity")
    builder.connect(f"{second}.force", f"{first}.force", factor=-1.0)
    return builder.build()


def _car_solution(split: str, car: QuarterCar, times: Array, _: float) -> Columns:
    found = car.solution()(times)
    force = car.force(found)
    if split == "A":
        return {"chassis.velocity": found[1], "wheel.force": force}
    return {"wheel.velocity": found[3], "chassis.force": force}


def _integrated(rates: Callable[[float, Array], Array], start: list[float], times: Array) -> Array:
    solved = solve_ivp(
        rates,
        (0.0, float(times[-1])),
        start,
        "DOP853",
        dense_output=True,
        rtol=TOLERANCE,
        atol=TOLERANCE,
    )
    found: Array = solved.sol(times)
    return found


def _duffing(version: str, folder: Path) -> Any:
    builder = SystemBuilder("Duffing")
    mass = unit([[0, 1], [0, -0.1]], [[0], [1]], [[1, 0]], x0=[1.5, 0])
    builder.add("mass", Made(version).write(folder / "mass.fmu", mass, 0))
    builder.add(
        "spring", reference_path(f"{version}/LoopFunction.fmu"), {"c0": 0.0, "c1": -1.0, "c3": -1.0}
    )
    builder.connect("mass.y1", "spring.u")
    builder.connect("spring.y", "mass.u1")
    return builder.build()


def _duffing_solution(times: Array, _: float) -> Columns:
    x = _integrated(lambda _, x: np.array([x[1], -x[0] - x[0] ** 3 - 0.1 * x[1]]), [1.5, 0], times)[
        0
    ]
    return {"mass.y1": x, "spring.y": -x - x**3}


SIGMA, RHO, BETA = 10.0, 28.0, 8 / 3


def _product(c: PythonComponent, _t: float, _h: float) -> None:
    c.xy, c.xz = c.x * c.y, c.x * c.z


def _lorenz(version: str, folder: Path) -> Any:
    """x, y and z are FMUs; the products are a component in Python."""
    made, builder = Made(version), SystemBuilder("Lorenz")
    units = {
        "x": unit([[-SIGMA]], [[SIGMA]], [[1]], x0=[1]),
        "y": unit([[-1]], [[RHO, -1]], [[1]], x0=[1]),
        "z": unit([[-BETA]], [[1]], [[1]], x0=[20]),
    }
    for k, (name, system) in enumerate(units.items()):
        builder.add(name, made.write(folder / f"{name}.fmu", system, k))
    products = PythonComponent(
        inputs={"x": 1.0, "y": 1.0, "z": 20.0},
        outputs={"xy": 1.0, "xz": 20.0},
        output=lambda c, _t: _product(c, 0.0, 0.0),
        step=_product,
    )
    builder.add("product", products)
    for name in units:
        builder.connect(f"{name}.y1", f"product.{name}")
    for source, target in (
        ("y.y1", "x.u1"),
        ("x.y1", "y.u1"),
        ("product.xz", "y.u2"),
        ("product.xy", "z.u1"),
    ):
        builder.connect(source, target)
    return builder.build()


def _lorenz_solution(times: Array, _: float) -> Columns:
    def rates(_: float, s: Array) -> Array:
        x, y, z = s
        return np.array([SIGMA * (y - x), x * (RHO - z) - y, x * y - BETA * z])

    x, y, z = _integrated(rates, [1, 1, 20], times)
    return {"x.y1": x, "y.y1": y, "z.y1": z}


def nonlinear_cases() -> Iterator[Case]:
    """Systems whose solution is integrated."""
    for version in ("fmi2", "fmi3"):
        fmi, step = version.replace("fmi", "") + ".0", Fraction(1, 50)
        yield Case(
            f"Duffing {version}",
            "nonlinear",
            fmi,
            partial(_duffing, version),
            _duffing_solution,
            whole(12, step),
            step,
        )
        step = Fraction(1, 500)
        yield Case(
            f"Lorenz {version}",
            "nonlinear",
            fmi,
            partial(_lorenz, version),
            _lorenz_solution,
            whole(2, step),
            step,
        )
