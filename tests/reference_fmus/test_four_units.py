"""The four units of Holzinger and Benedikt (2019): each against its equations, together against published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.front.simulation import Simulation

DATA = Path(__file__).parents[1] / "data"
C, D, J1, J3, J4, KP, KI, R = 1000.0, 44.27, 0.1, 0.9, 0.5, 100.0, 0.1, 10.0
MICRO = 1e-4  # [s]


class Linear(NamedTuple):
    """x' = A x + B u + e, y = C x + D u + f."""

    inputs: list[str]
    states: list[str]
    outputs: list[str]
    a: Any
    b: Any
    c: Any
    d: Any
    e: float = 0.0
    f: float = 0.0


UNITS = {
    "FourUnitsS1": Linear(
        ["u11"],
        ["x1", "x2"],
        ["y11", "y12"],
        a=[[0, -1 / J1], [C, -D / J1]],
        b=[[1], [D]],
        c=[[0, 1 / J1], [C, -D / J1]],
        d=[[0], [D]],
    ),
    "FourUnitsS2": Linear(
        ["u21"], ["x"], ["y21"], a=[[0]], b=[[-KI]], c=[[1]], d=[[-KP]], e=KI * R, f=KP * R
    ),
    "FourUnitsS3": Linear(
        ["u31", "u32"], ["x"], ["y31"], a=[[0]], b=[[1, -1]], c=[[1 / J3]], d=[[0, 0]]
    ),
    "FourUnitsS4": Linear(
        ["u41", "u42"],
        ["x1", "x2"],
        ["y41", "y42"],
        a=[[0, -1 / J4], [C, -D / J4]],
        b=[[0, 1], [-1, D]],
        c=[[C, -D / J4], [0, 1 / J4]],
        d=[[0, D], [0, 0]],
    ),
}
BEGIN, SLOPE = np.array([0.3, -0.7]), np.array([50.0, -20.0])
H = 1e-3  # [s]


def expected(unit: Linear, slope: Any, steps: int = 3) -> tuple[Any, Any]:
    """Outputs and derivatives after some steps of 1 ms, by the equations and Euler's method."""
    n = len(unit.inputs)
    a, b, c, d = (np.array(m, dtype=float) for m in unit[3:7])
    x = np.zeros(len(unit.states))
    for q in range(10 * steps):
        x = x + MICRO * (a @ x + b @ (BEGIN[:n] + slope[:n] * q * MICRO) + unit.e)
    u = BEGIN[:n] + slope[:n] * steps * H
    return c @ x + d @ u + unit.f, a @ x + b @ u + unit.e


def check(fmu: Instance, unit: Linear, slope: Any) -> None:
    outputs, derivatives = expected(unit, slope)
    # rounding of 30 steps of numbers up to 1e3
    assert [fmu[name] for name in unit.outputs] == approx(list(outputs), rel=1e-12, abs=1e-11)
    assert [fmu[f"der({name})"] for name in unit.states] == approx(
        list(derivatives), rel=1e-12, abs=1e-11
    )


@pytest.mark.parametrize("model", UNITS)
def test_it_is_eulers_method_for_inputs_that_are_held(
    instantiate: Instantiate, version: str, model: str
) -> None:
    unit = UNITS[model]
    start = dict(zip(unit.inputs, BEGIN, strict=False))
    fmu = instantiate(model, version).initialize(**start)
    for _ in range(3):
        fmu.step(H)
    check(fmu, unit, 0 * SLOPE)


@pytest.mark.parametrize("model", UNITS)
def test_it_is_eulers_method_for_input_derivatives(instantiate: Instantiate, model: str) -> None:
    """FMI 2.0."""
    unit = UNITS[model]
    fmu = instantiate(model, "fmi2").initialize()
    references = [fmu.variables[name].valueReference for name in unit.inputs]
    for step in range(3):
        for name, begin, slope in zip(unit.inputs, BEGIN, SLOPE, strict=False):
            fmu[name] = begin + slope * step * H
        fmu.fmu.setRealInputDerivatives(
            references, [1] * len(references), list(SLOPE[: len(references)])
        )
        fmu.step(H)
    check(fmu, unit, SLOPE)


@pytest.mark.parametrize("model", UNITS)
def test_it_is_eulers_method_for_intermediate_updates(instantiate: Instantiate, model: str) -> None:
    """FMI 3.0: the importer sets u(t) when it is called at the start and the end of a step."""
    unit = UNITS[model]

    def update(_environment: Any, time: float, *_flags_and_early_return: Any) -> None:
        for name, begin, slope in zip(unit.inputs, BEGIN, SLOPE, strict=False):
            fmu[name] = begin + slope * time

    references = [1, 2][: len(unit.inputs)]
    fmu = instantiate(
        model, "fmi3", intermediateUpdate=update, requiredIntermediateVariables=references
    ).initialize()
    for _ in range(3):
        fmu.step(H)
    check(fmu, unit, SLOPE)


@pytest.mark.parametrize("model", UNITS)
def test_its_directional_derivatives_are_the_matrices(
    instantiate: Instantiate, version: str, model: str
) -> None:
    unit = UNITS[model]
    fmu = instantiate(model, version).initialize()
    rows = [f"der({name})" for name in unit.states] + unit.outputs
    columns = unit.states + unit.inputs
    matrix = np.block([[np.array(unit.a), np.array(unit.b)], [np.array(unit.c), np.array(unit.d)]])
    assert np.array(fmu.derivatives(rows, columns)) == approx(matrix, rel=1e-15)


@pytest.mark.parametrize("model", UNITS)
def test_its_description_has_the_dependencies_of_the_matrices(reference: Path, model: str) -> None:
    unit = UNITS[model]
    for version in ("fmi2", "fmi3"):
        description = fmpy.read_model_description(reference / version / f"{model}.fmu")
        rows = {u.variable.name: u for u in (*description.outputs, *description.derivatives)}
        named = zip(
            [f"der({x})" for x in unit.states] + unit.outputs,
            np.block([[np.array(unit.a), np.array(unit.b)], [np.array(unit.c), np.array(unit.d)]]),
            strict=True,
        )
        for name, row in named:
            known = {v.name for v in rows[name].dependencies}
            columns = unit.states + unit.inputs
            assert known & set(columns) == {k for k, w in zip(columns, row, strict=True) if w}


def test_a_step_that_is_no_multiple_is_divided_evenly(
    instantiate: Instantiate, version: str
) -> None:
    fmu = instantiate("FourUnitsS2", version).initialize(u21=1.0, ki=1.0)
    fmu.step(2.5e-4)
    assert fmu["x"] == approx(9.0 * 2.5e-4, rel=1e-14)


@pytest.mark.parametrize(
    ("model", "name"), [("FourUnitsS1", "J1"), ("FourUnitsS3", "J3"), ("FourUnitsS4", "J4")]
)
def test_an_inertia_that_is_not_positive_is_refused(
    instantiate: Instantiate, version: str, model: str, name: str
) -> None:
    fmu = instantiate(model, version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        fmu.initialize(**{name: 0.0})
    assert fmu.log == [f"{name} is 0. It must be positive."]


@pytest.mark.parametrize("model", UNITS)
def test_a_micro_step_that_is_not_positive_is_refused(
    instantiate: Instantiate, version: str, model: str
) -> None:
    fmu = instantiate(model, version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        fmu.initialize(microStep=0.0)
    assert fmu.log == ["microStep is 0 s. It must be positive."]


def test_all_inputs_held_give_the_jacobi_run_of_the_data(reference: Path, version: str) -> None:
    """sequence.md 2.3, with ``seq_paper_jacobi.csv``: 9 digits."""
    results = Simulation(
        reference / "systems" / f"four-units-{version}.ssp", algorithm=Jacobi()
    ).run()
    data = np.genfromtxt(DATA / "seq_paper_jacobi.csv", delimiter=",", names=True)
    assert data.dtype.names is not None
    for name in data.dtype.names[1:]:
        largest = np.abs(data[name]).max()
        assert results[f"S{name[1]}.{name}"] == approx(data[name], abs=1e-8 * largest)
