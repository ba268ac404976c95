"""LinearSystem: FMUs of given matrices against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from command_line import changed
from edited_fmu import edited_fmu
from fmpy.fmi1 import FMICallException
from fmpy.validation import validate_fmu
from linear_fmu import linear_fmu
from linear_system import MOST, LinearSystem
from linear_writer import DATA
from numpy.typing import NDArray
from pytest import approx
from reference_instance import Instance
from scipy.linalg import expm

from fmimaster import ModelError, simulate

RANDOM = np.random.default_rng(11)
A = RANDOM.normal(size=(3, 3))
B = RANDOM.normal(size=(3, 2))
C = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.5, 0.5, 0.5]])
D = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
E, F, X0, U0 = (RANDOM.normal(size=n) for n in (3, 4, 3, 2))
SLOPE = np.array([0.4, -0.9])
SYSTEM = {"a": A, "b": B, "c": C, "d": D, "e": E, "f": F, "x0": X0, "u0": U0}


@pytest.fixture
def make(tmp_path: Path, version: str) -> Any:
    """make(**system): an instance that is instantiated, and freed after the test."""
    made: list[Instance] = []

    def instantiate(options: dict[str, Any] | None = None, **system: Any) -> Instance:
        path = linear_fmu(tmp_path / f"l {len(made)}.fmu", version, **system)
        made.append(
            Instance(path, tmp_path / f"folder {len(made)}", version, {}, **(options or {}))
        )
        return made[-1]

    yield instantiate
    for instance in made:
        instance.fmu.freeInstance()


def values(fmu: Instance, names: str, count: int) -> list[float]:
    return [fmu[f"{names}{k + 1}"] for k in range(count)]


def exact(h: float, slope: NDArray[np.float64]) -> NDArray[np.float64]:
    """x(h) by the matrix exponential of x, b0 = B u0 + e, b1 = B slope: x' = A x + b0 + b1 s."""
    m = np.zeros((5, 5))
    m[:3, :3] = A
    m[:3, 3], m[:3, 4] = B @ slope, B @ U0 + E
    m[3, 4] = 1.0
    x: NDArray[np.float64] = (expm(m * h) @ [*X0, 0.0, 1.0])[:3]
    return x


def test_start_values_and_outputs_are_those_of_the_matrices(make: Any) -> None:
    fmu = make(**SYSTEM)
    fmu.enter_initialization_mode()
    assert values(fmu, "x", 3) == list(X0)
    assert values(fmu, "u", 2) == list(U0)
    assert values(fmu, "y", 4) == approx(list(C @ X0 + D @ U0 + F), rel=1e-14)
    assert [fmu[f"der(x{k})"] for k in (1, 2, 3)] == approx(list(A @ X0 + B @ U0 + E), rel=1e-13)


@pytest.mark.parametrize("h", [0.01, 1.0, 7.0])
def test_a_step_with_held_inputs_is_exact(make: Any, h: float) -> None:
    fmu = make(**SYSTEM).initialize()
    fmu.step(h)
    x = exact(h, 0 * SLOPE)
    assert values(fmu, "x", 3) == approx(list(x), rel=1e-11)
    assert values(fmu, "y", 4) == approx(list(C @ x + D @ U0 + F), rel=1e-11)


def test_a_step_with_linear_inputs_is_exact(make: Any, version: str) -> None:
    def update(_environment: Any, time: float, *_flags_and_early_return: Any) -> None:
        for k in (0, 1):
            fmu[f"u{k + 1}"] = U0[k] + SLOPE[k] * time

    options = {"intermediateUpdate": update, "requiredIntermediateVariables": [1, 2]}
    fmu = make(options if version == "fmi3" else None, **SYSTEM).initialize()
    if version == "fmi2":
        fmu.fmu.setRealInputDerivatives([1, 2], [1, 1], list(SLOPE))
    fmu.step(1.5)
    x = exact(1.5, SLOPE)
    assert values(fmu, "x", 3) == approx(list(x), rel=1e-12)
    assert values(fmu, "y", 4) == approx(list(C @ x + D @ (U0 + 1.5 * SLOPE) + F), rel=1e-12)


def test_with_a_micro_step_it_is_eulers_method(make: Any) -> None:
    fmu = make(**SYSTEM, micro_step=0.01).initialize()
    fmu.step(0.2)
    x = X0.copy()
    for _ in range(20):
        x = x + 0.01 * (A @ x + B @ U0 + E)
    assert values(fmu, "x", 3) == approx(list(x), rel=1e-13)


def test_its_directional_derivatives_are_the_matrices(make: Any) -> None:
    fmu = make(**SYSTEM).initialize()
    unknowns = ["y1", "y2", "y3", "y4", "der(x1)", "der(x2)", "der(x3)"]
    knowns = ["x1", "x2", "x3", "u1", "u2"]
    matrix = np.block([[C, D], [A, B]])
    assert np.array(fmu.derivatives(unknowns, knowns)) == approx(matrix, rel=1e-15)


def test_a_variable_that_the_system_does_not_have_has_no_derivative(make: Any) -> None:
    fmu = make(**SYSTEM).initialize()
    with pytest.raises(FMICallException):
        fmu.fmu.getDirectionalDerivative([101], [3], [1.0])  # a third input


def test_the_description_is_valid_and_has_exactly_the_dependencies(
    tmp_path: Path, version: str
) -> None:
    path = linear_fmu(tmp_path / "l.fmu", version, **SYSTEM)
    assert validate_fmu(str(path)) == []
    outputs = fmpy.read_model_description(path).outputs
    known = [{v.name for v in o.dependencies if v.causality == "input"} for o in outputs]
    assert known == [{"u2"}, {"u1"}, set(), {"u1", "u2"}]
    assert {k for o in outputs for k in o.dependenciesKind} == {"constant"}


def test_variables_can_have_names(make: Any) -> None:
    fmu = make(
        a=[[-2.0]], b=[[1.0]], c=[[1.0]], inputs=["force"], outputs=["v"], states=["s"]
    ).initialize(force=2.0, s=1.0)
    fmu.step(50.0)
    assert fmu["v"] == approx(1.0, rel=1e-14)
    assert fmu["der(s)"] == approx(0.0, abs=1e-13)


def test_a_system_without_states_is_a_function(make: Any) -> None:
    fmu = make(d=[[0, 2], [1, 0]], f=[1, 0], u0=[3, 4])
    fmu.enter_initialization_mode()
    assert values(fmu, "y", 2) == [9.0, 3.0]
    fmu["u2"] = 5.0
    assert values(fmu, "y", 2) == [11.0, 3.0]


def test_a_reset_brings_the_start_values_back(make: Any) -> None:
    fmu = make(**SYSTEM).initialize(x1=7.0)
    fmu.step(0.1)
    fmu.fmu.reset()
    fmu.enter_initialization_mode()
    assert values(fmu, "x", 3) == list(X0)


def test_a_system_of_the_largest_size(make: Any) -> None:
    fmu = make(a=-np.eye(MOST), b=np.eye(MOST), c=np.eye(MOST), x0=np.arange(MOST)).initialize()
    fmu.step(1.0)
    assert values(fmu, "y", MOST) == approx(list(np.arange(MOST) * np.exp(-1.0)), rel=1e-14)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ({"a": np.zeros((17, 17))}, "17 states, 0 inputs, 0 outputs: there can be 16 of each."),
        ({"a": [[1]], "x0": [1, 2]}, "A vector has the shape (2,) in place of (1,)."),
        ({"a": [[1]], "b": [[1], [2]]}, "A matrix has the shape (2, 1) in place of (1, 1)."),
        ({"a": [[1]], "inputs": ["u"]}, "Names are needed for 0 inputs, 0 outputs and 1 states."),
    ],
)
def test_matrices_that_do_not_fit_are_refused(system: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as info:  # noqa: PT011 - the whole message is compared
        LinearSystem(**system)
    assert str(info.value) == message


def test_an_fmu_without_its_matrices_is_not_instantiated(tmp_path: Path, version: str) -> None:
    source = linear_fmu(tmp_path / "l.fmu", version, **SYSTEM)
    path = changed(source, tmp_path / "broken.fmu", members={DATA: bytes(8)})
    with pytest.raises(ModelError, match="has 1 numbers, which are no system"):
        simulate(path, stop_time=1, step_size=0.1)


def test_copies_can_lack_capabilities_and_dependencies(tmp_path: Path, version: str) -> None:
    path = edited_fmu(
        linear_fmu(tmp_path / "l.fmu", version, **SYSTEM),
        tmp_path / "edited.fmu",
        capabilities={"canGetAndSetFMUState": None, "canSerializeFMUState": None},
        variables={"u1": {"nominal": "100"}},
        unknowns={"y1": {"dependencies": "u1 u2", "dependenciesKind": "fixed dependent"}},
    )
    assert validate_fmu(str(path)) == []
    description = fmpy.read_model_description(path)
    capabilities = description.coSimulation
    names = {"fmi2": "canGetAndSetFMUstate", "fmi3": "canGetAndSetFMUState"}
    assert not getattr(capabilities, names["fmi2"], False)
    assert not getattr(capabilities, names["fmi3"], False)
    assert {v.name: v.nominal for v in description.modelVariables}["u1"] == "100"
    assert [v.name for v in description.outputs[0].dependencies] == ["u1", "u2"]
