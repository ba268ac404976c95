"""The observed order of each algorithm on a linear pair with an exact solution."""

from __future__ import annotations

import numpy as np
import pytest
from in_turn import in_turn
from scipy.linalg import expm

from fmimaster import SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Algorithm, AlongLine, Corrected, GaussSeidel, Jacobi
from fmimaster.inputs import FIRST_ORDER, Polynomial
from fmimaster.system.description import SystemDescription

# x1' = -x1 + 2 x2, x2' = -3 x2 - x1: each FMU solves its own equation exactly, so that all of the error is the coupling's
MATRIX = np.array([[-1.0, 2.0], [-1.0, -3.0]])
STEPS = (100, 200, 400)


def linear_pair(first: str, second: str) -> SystemDescription:
    builder = SystemBuilder("linear pair")
    builder.add("a", reference_path(f"{first}/Dahlquist.fmu"), {"k": 1.0, "x": 1.0})
    builder.add("b", reference_path(f"{second}/Dahlquist.fmu"), {"k": 3.0, "x": 1.0})
    builder.connect("b.x", "a.u", factor=2.0)
    builder.connect("a.x", "b.u", factor=-1.0)
    return builder.build(start_time=0, stop_time=1)


def errors(algorithm: Algorithm, description: SystemDescription) -> list[float]:
    exact = expm(MATRIX) @ np.ones(2)
    found = []
    for n in STEPS:
        r = simulate(description, algorithm=algorithm, step_size=f"1/{n}")
        found.append(float(np.hypot(r["a.x"][-1] - exact[0], r["b.x"][-1] - exact[1])))
    return found


def observed_order(errors: list[float]) -> float:
    """Slope between the two finest steps, with the next term of the error removed (Richardson)."""
    coarse, fine = (np.log2(errors[k] / errors[k + 1]) for k in range(2))
    return float(2 * fine - coarse)


@pytest.mark.parametrize("versions", [("fmi2", "fmi2"), ("fmi3", "fmi3"), ("fmi2", "fmi3")])
@pytest.mark.parametrize("algorithm", [Jacobi(), GaussSeidel()])
def test_held_inputs_give_order_one(algorithm: Algorithm, versions: tuple[str, str]) -> None:
    assert observed_order(errors(algorithm, linear_pair(*versions))) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("algorithm", "versions"),
    in_turn(
        [
            Jacobi(FIRST_ORDER),
            GaussSeidel(FIRST_ORDER),
            Jacobi(Polynomial(2, 0)),
            GaussSeidel(FIRST_ORDER, mode=AlongLine()),
            GaussSeidel(Polynomial(2, 0), mode=Corrected()),
        ],
        [("fmi2", "fmi2"), ("fmi3", "fmi3"), ("fmi2", "fmi3")],
    ),
    ids=str,
)
def test_first_order_inputs_give_order_two(algorithm: Algorithm, versions: tuple[str, str]) -> None:
    assert observed_order(errors(algorithm, linear_pair(*versions))) == pytest.approx(2, abs=0.05)


def test_both_fmi_versions_give_the_same_bits() -> None:
    description = [linear_pair(v, w) for v, w in (("fmi2", "fmi2"), ("fmi3", "fmi3"))]
    assert errors(GaussSeidel(), description[0]) == errors(GaussSeidel(), description[1])
