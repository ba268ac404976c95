"""The FMUs of the quarter car: each against its equations, solved by the two methods in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from numpy.typing import NDArray
from pytest import approx
from reference_instance import Instance, Instantiate

Vector = NDArray[np.float64]

MC, MW, KC, KW, DC, KS, DS = 400.0, 40.0, 15000.0, 150000.0, 1000.0, 8000.0, 400.0
H, STEPS = 1e-3, 3
EULER, RUNGE_KUTTA = 0, 1
STATES_AT_START = (0.02, -0.3, 0.01)
BEGIN, RATES = np.array([0.4, 0.07]), np.array([[30.0, 5.0], [-2e4, 300.0], [4e6, -1e5]])
"""Inputs at t = 0, and their first three derivatives there."""


class Unit(NamedTuple):
    """x' = rates(x, u), y = outputs(x, u), with an exponent of the damper."""

    inputs: tuple[str, ...]
    states: tuple[str, ...]
    outputs: tuple[str, ...]
    rates: Callable[[Any, Any, float], list[float]]
    values: Callable[[Any, Any, float], list[float]]
    damper: bool = False
    euler_inputs: float = 0.0
    """At which fraction of its steps Euler's method takes the inputs."""


def suspension(dz: float, dv: float, exponent: float) -> float:
    return float(KC * dz + DC * np.sign(dv) * abs(dv) ** exponent)


UNITS = {
    "QuarterCarChassisA": Unit(
        ("force",),
        ("zc", "vc"),
        ("velocity",),
        lambda x, u, e: [x[1], u[0] / MC],
        lambda x, u, e: [x[1]],
        euler_inputs=0.5,
    ),
    "QuarterCarWheelA": Unit(
        ("velocity", "road"),
        ("zw", "vw", "zc"),
        ("force",),
        lambda x, u, e: [
            x[1],
            (suspension(x[2] - x[0], u[0] - x[1], e) - KW * (x[0] - u[1])) / MW,
            u[0],
        ],
        lambda x, u, e: [suspension(x[2] - x[0], u[0] - x[1], e)],
        damper=True,
    ),
    "QuarterCarChassisB": Unit(
        ("velocity",),
        ("zc", "vc", "zw"),
        ("force",),
        lambda x, u, e: [x[1], -suspension(x[0] - x[2], x[1] - u[0], e) / MC, u[0]],
        lambda x, u, e: [suspension(x[0] - x[2], x[1] - u[0], e)],
        damper=True,
    ),
    "QuarterCarWheelB": Unit(
        ("force", "road"),
        ("zw", "vw"),
        ("velocity",),
        lambda x, u, e: [x[1], (-u[0] - KW * (x[0] - u[1])) / MW],
        lambda x, u, e: [x[1]],
    ),
    "QuarterCarSeatedChassis": Unit(
        ("seat.velocity", "wheel.force"),
        ("zc", "vc", "zs"),
        ("seat.force", "wheel.velocity"),
        lambda x, u, e: [
            x[1],
            (u[1] + KS * (x[2] - x[0]) + DS * (u[0] - x[1])) / MC,
            u[0],
        ],
        lambda x, u, e: [KS * (x[2] - x[0]) + DS * (u[0] - x[1]), x[1]],
    ),
}
LINEAR, NONLINEAR = 0.5, 1.5  # nd


def inputs(unit: Unit, order: int, t: float) -> Vector:
    """The polynomials of this degree."""
    n = len(unit.inputs)
    u = BEGIN.copy()
    for k in range(order):
        u += RATES[k] * t ** (k + 1) / (1, 2, 6)[k]
    return np.array(u[:n])


def input_derivatives(unit: Unit, order: int, t: float) -> list[list[float]]:
    """Of the orders 1 to 3, for each input."""
    rows = [
        sum(RATES[j - 1] * t ** (j - k) / (1, 1, 2)[j - k] for j in range(k, order + 1))
        + np.zeros(2)
        for k in range(1, 4)
    ]
    return [list(row[: len(unit.inputs)]) for row in rows]


def expected(unit: Unit, solver: int, order: int, nd: float, micro_steps: int = 10) -> Vector:
    """Outputs, then states, after some steps."""
    exponent = 2 / (1 + 2 * nd)
    micro = H / micro_steps
    x = np.array(STATES_AT_START[: len(unit.states)])

    def f(x: Vector, t: float) -> Vector:
        return np.array(unit.rates(x, inputs(unit, order, t), exponent))

    for q in range(STEPS * micro_steps):
        t = q * micro
        if solver == EULER:
            x = x + micro * f(x, t + unit.euler_inputs * micro)
            continue
        k1 = f(x, t)
        k2 = f(x + micro / 2 * k1, t + micro / 2)
        k3 = f(x + micro / 2 * k2, t + micro / 2)
        k4 = f(x + micro * k3, t + micro)
        x = x + micro / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.array([*unit.values(x, inputs(unit, order, STEPS * H), exponent), *x])


def check(fmu: Instance, unit: Unit, solution: Vector) -> None:
    # rounding: 30 micro steps of forces up to 2e4 N
    assert [fmu[n] for n in (*unit.outputs, *unit.states)] == approx(
        list(solution), rel=1e-11, abs=1e-11
    )


def start(unit: Unit, nd: float, **settings: Any) -> dict[str, Any]:
    values = dict(zip(unit.states, STATES_AT_START, strict=False)) | settings
    return values | ({"nd": nd} if unit.damper else {})


@pytest.mark.parametrize("nd", [LINEAR, NONLINEAR])
@pytest.mark.parametrize("solver", [EULER, RUNGE_KUTTA])
@pytest.mark.parametrize("model", UNITS)
def test_it_is_the_chosen_method_for_inputs_that_are_held(
    instantiate: Instantiate, version: str, model: str, solver: int, nd: float
) -> None:
    unit = UNITS[model]
    held = dict(zip(unit.inputs, BEGIN, strict=False))
    fmu = instantiate(model, version).initialize(**start(unit, nd, solver=solver), **held)
    for _ in range(STEPS):
        fmu.step(H)
    check(fmu, unit, expected(unit, solver, 0, nd))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("solver", [EULER, RUNGE_KUTTA])
@pytest.mark.parametrize("model", UNITS)
def test_it_follows_input_derivatives_up_to_the_third(
    instantiate: Instantiate, model: str, solver: int, order: int
) -> None:
    """FMI 2.0."""
    unit = UNITS[model]
    fmu = instantiate(model, "fmi2").initialize(**start(unit, NONLINEAR, solver=solver))
    references = [fmu.variables[name].valueReference for name in unit.inputs]
    for step in range(STEPS):
        for name, value in zip(unit.inputs, inputs(unit, order, step * H), strict=True):
            fmu[name] = value
        for k, row in enumerate(input_derivatives(unit, order, step * H)[:order], start=1):
            fmu.fmu.setRealInputDerivatives(references, [k] * len(references), row)
        fmu.step(H)
    check(fmu, unit, expected(unit, solver, order, NONLINEAR))


@pytest.mark.parametrize("solver", [EULER, RUNGE_KUTTA])
@pytest.mark.parametrize("model", UNITS)
def test_it_takes_its_inputs_by_intermediate_updates(
    instantiate: Instantiate, model: str, solver: int
) -> None:
    """FMI 3.0: the importer sets u(t) whenever the solver asks for it, in the order of time."""
    unit = UNITS[model]
    asked: list[float] = []

    def update(_environment: Any, time: float, *_flags_and_early_return: Any) -> None:
        asked.append(time)
        for name, value in zip(unit.inputs, inputs(unit, 3, time), strict=True):
            fmu[name] = value

    references = [1, 2][: len(unit.inputs)]
    fmu = instantiate(
        model, "fmi3", intermediateUpdate=update, requiredIntermediateVariables=references
    ).initialize(**start(unit, LINEAR, solver=solver))
    for _ in range(STEPS):
        fmu.step(H)
    check(fmu, unit, expected(unit, solver, 3, LINEAR))
    assert asked[-1] == approx(STEPS * H)
    assert np.all(np.diff(asked) > -1e-15)


@pytest.mark.parametrize("nd", [LINEAR, NONLINEAR])
@pytest.mark.parametrize("model", UNITS)
def test_its_directional_derivatives_are_those_of_the_equations(
    instantiate: Instantiate, version: str, model: str, nd: float
) -> None:
    unit, exponent = UNITS[model], 2 / (1 + 2 * nd)
    n = len(unit.states)
    x, u = np.array(STATES_AT_START[:n]), BEGIN[: len(unit.inputs)]
    held = dict(zip(unit.inputs, u, strict=True))
    fmu = instantiate(model, version).initialize(**start(unit, nd), **held)

    def values(z: Vector) -> Vector:
        return np.array([*unit.rates(z[:n], z[n:], exponent), *unit.values(z[:n], z[n:], exponent)])

    z, distance = np.array([*x, *u]), 1e-5
    columns = [
        (values(z + distance * e) - values(z - distance * e)) / (2 * distance)
        for e in np.eye(len(z))
    ]
    rows = [f"der({name})" for name in unit.states] + list(unit.outputs)
    matrix = np.array(fmu.derivatives(rows, unit.states + unit.inputs))
    # central differences of a square root, 0.4 to 0.7 m/s from its branch point
    assert matrix == approx(np.transpose(columns), rel=1e-6, abs=1e-6)


def test_the_derivative_of_a_nonlinear_damper_at_rest_is_finite(
    instantiate: Instantiate, version: str
) -> None:
    """The square root has none; that of a difference of 1e-6 m/s is given: 900/2 / sqrt(1e-6)."""
    fmu = instantiate("QuarterCarWheelA", version).initialize(nd=1.5, dc=900.0)
    assert fmu.derivatives(["force"], ["velocity"]) == [[approx(450e3)]]


@pytest.mark.parametrize("model", UNITS)
def test_its_outputs_depend_directly_on_what_the_equations_say(
    instantiate: Instantiate, version: str, reference: Any, model: str
) -> None:
    description = fmpy.read_model_description(reference / version / f"{model}.fmu")
    unit = UNITS[model]
    n = len(unit.states)
    for k, output in enumerate(description.outputs):
        known = {v.name for v in output.dependencies} & {*unit.inputs, *unit.states}
        z = np.array([*STATES_AT_START[:n], *BEGIN[: len(unit.inputs)]])
        change = {
            name: unit.values(z[:n], z[n:], 0.5)[k] != unit.values((z + e)[:n], (z + e)[n:], 0.5)[k]
            for name, e in zip((*unit.states, *unit.inputs), np.eye(len(z)), strict=True)
        }
        assert known == {name for name, changes in change.items() if changes}


def test_outputs_follow_inputs_in_event_mode(instantiate: Instantiate) -> None:
    """FMI 3.0, what the refresh of outputs after a step relies on."""
    fmu = instantiate("QuarterCarWheelA", "fmi3", eventModeUsed=True).initialize()
    fmu.update()
    fmu.fmu.enterStepMode()
    fmu.step(H)
    before, state = fmu["force"], [fmu[x] for x in ("zw", "vw", "zc")]
    fmu.fmu.enterEventMode()
    fmu["velocity"] = 0.25
    assert fmu["force"] - before == approx(DC * 0.25, rel=1e-12)
    fmu.update()
    assert [fmu[x] for x in ("zw", "vw", "zc")] == state


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mw": 0.0}, "mw is 0. It must be positive."),
        ({"micro_steps": 0}, "micro_steps is 0. It must be at least 1."),
        ({"solver": 2}, "solver is 2. It must be 0 (Euler) or 1 (Runge-Kutta)."),
        (
            {"nd": -0.5},
            "suspension: the stiffness is 15000 N/m, the damping 1000 and n -0.5. Stiffness and damping must not be "
            "negative, and n must be above -0.5.",
        ),
    ],
)
def test_parameters_without_a_meaning_are_refused(
    instantiate: Instantiate, version: str, settings: dict[str, Any], message: str
) -> None:
    fmu = instantiate("QuarterCarWheelA", version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        fmu.initialize(**settings)
    assert fmu.log == [message]
