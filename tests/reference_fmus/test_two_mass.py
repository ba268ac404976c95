"""The two masses: values of one block alone, collisions, derivatives."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

INPUTS = ("u_x", "u_v", "u_a")
STATES = ("x", "v")


@pytest.mark.parametrize(
    ("model", "acceleration"), [("TwoMassUpper", -47.01), ("TwoMassLower", 17.206666666666667)]
)
def test_accelerations_at_the_start(
    instantiate: Instantiate, version: str, model: str, acceleration: float
) -> None:
    mass = instantiate(model, version)
    mass.enter_initialization_mode()
    assert mass["a"] == approx(acceleration, rel=1e-15)


@pytest.mark.parametrize(
    ("model", "order", "x", "v"),
    [
        ("TwoMassUpper", 0, -4.260656983197, -14.480546443698),
        ("TwoMassLower", 0, -5.504384030830, 9.236228597577),
        ("TwoMassUpper", 1, -3.988238206498, -12.988838348325),
    ],
)
def test_one_mass_alone_follows_its_exact_solution(
    instantiate: Instantiate, version: str, model: str, order: int, x: float, v: float
) -> None:
    mass = instantiate(model, version).initialize(inputOrder=order)
    mass.step(0.5)
    # The global error of Runge-Kutta with micro steps of 1 ms; the values have 12 decimals.
    assert (mass["x"], mass["v"]) == approx((x, v), abs=1e-11)


def test_linear_inputs_make_the_step_size_irrelevant(
    instantiate: Instantiate, version: str
) -> None:
    """u_x is linear and u_v constant: steps that set them anew get the same inputs."""
    whole = instantiate("TwoMassUpper", version).initialize()
    whole.step(0.5)
    parts = instantiate("TwoMassUpper", version).initialize()
    for k in range(5):
        parts["u_x"] = -8.8 + 3.0 * 0.1 * k
        parts.step(0.1)
    assert (parts["x"], parts["v"]) == approx((whole["x"], whole["v"]), rel=1e-13)


def test_in_initialization_mode_outputs_follow_inputs(
    instantiate: Instantiate, version: str
) -> None:
    mass = instantiate("TwoMassUpper", version)
    mass.enter_initialization_mode()
    before = mass["collision.z[1]"], mass["a"]
    mass["u_x"] = -7.8
    assert mass["collision.z[1]"] == approx(before[0] - 1.0, rel=1e-15)
    assert mass["a"] == approx(before[1] + 1.0 / 0.2, rel=1e-15)  # k2/m1


@pytest.mark.parametrize(("order", "shift"), [(0, 0.0), (1, 3.0 * 0.25)])
def test_outputs_belong_to_the_inputs_at_the_end_of_the_step(
    instantiate: Instantiate, version: str, order: int, shift: float
) -> None:
    mass = instantiate("TwoMassUpper", version).initialize(inputOrder=order)
    mass.step(0.25)
    assert mass["collision.z[1]"] == approx(mass["x"] - (-8.8 + shift) - 2 * 0.55, rel=1e-15)


def test_inputs_do_not_change_outputs_between_steps(instantiate: Instantiate, version: str) -> None:
    mass = instantiate("TwoMassUpper", version).initialize()
    mass.step(0.25)
    a = mass["a"]
    mass["u_x"] = 0.0
    assert mass["a"] == a


def test_indicators_of_both_masses_agree_bit_by_bit(instantiate: Instantiate, version: str) -> None:
    upper = instantiate("TwoMassUpper", version)
    lower = instantiate("TwoMassLower", version)
    for mass in (upper, lower):
        mass.enter_initialization_mode()
    for name in STATES:
        upper[f"u_{name}"] = lower[name]
        lower[f"u_{name}"] = upper[name]
    for name in ("collision.z[1]", "collision.z[2]", "collision.dz[1]"):
        assert upper[name] == lower[name]


X1, X2 = -2.0, -3.2  # [m] 0.1 m between blocks of 1.1 m
V1, V2 = -11.4346703, 7.42302702  # [m/s]


def collide(instantiate: Instantiate, version: str) -> tuple[Instance, Instance]:
    """One step of both masses through their collision, without springs and gravity."""
    free = {"k2": 0.0, "d2": 0.0, "g": 0.0}
    upper = instantiate("TwoMassUpper", version, loggingOn=True)
    lower = instantiate("TwoMassLower", version, loggingOn=True)
    upper.initialize(x=X1, v=V1, u_x=X2, u_v=V2, **free, k1=0.0, d1=0.0)
    lower.initialize(x=X2, v=V2, u_x=X1, u_v=V1, **free)
    for mass in (upper, lower):
        mass.step(0.01)
    return upper, lower


def test_a_collision_conserves_momentum_and_energy(instantiate: Instantiate, version: str) -> None:
    upper, lower = collide(instantiate, version)
    assert upper["v"] == approx(11.194566484, abs=1e-8)
    assert lower["v"] == approx(-7.663130836, abs=1e-8)
    m1, m2 = 0.2, 0.3
    momentum, energy = m1 * V1 + m2 * V2, m1 * V1**2 + m2 * V2**2
    # A few roundings; the momentum is a difference of terms of about 2 kg m/s.
    assert m1 * upper["v"] + m2 * lower["v"] == approx(momentum, abs=1e-14)
    assert m1 * upper["v"] ** 2 + m2 * lower["v"] ** 2 == approx(energy, rel=1e-14)


def test_a_collision_is_located_inside_the_step(instantiate: Instantiate, version: str) -> None:
    upper, lower = collide(instantiate, version)
    time = 0.1 / (V2 - V1)
    # Both move uniformly but for the collision. The bracket of its time is 1e-13 s wide, and the
    # velocities change by 22 and 15 m/s.
    assert upper["x"] == approx(X1 + V1 * time + upper["v"] * (0.01 - time), abs=3e-12)
    assert lower["x"] == approx(X2 + V2 * time + lower["v"] * (0.01 - time), abs=3e-12)
    [message] = upper.log
    assert message.startswith("Event 'collision' at t = 0.00530")


@pytest.mark.parametrize("moving", [False, True])
def test_the_ceiling_reflects(instantiate: Instantiate, version: str, moving: bool) -> None:
    """In free flight against c(t) = ca sin(cw t): z[1] = 0 at a time found here by Newton."""
    ca, cw = (0.1, 2.0) if moving else (0.0, 0.0)
    free = {"k1": 0.0, "k2": 0.0, "d1": 0.0, "d2": 0.0, "g": 0.0}
    mass = instantiate("TwoMassUpper", version)
    mass.initialize(x=-0.85, v=3.5, u_x=-100.0, u_v=0.0, ca=ca, cw=cw, **free)
    mass.step(0.2)
    t = 0.1
    for _ in range(20):
        z = ca * math.sin(cw * t) - 0.55 - (-0.85 + 3.5 * t)
        t -= z / (ca * cw * math.cos(cw * t) - 3.5)
    v = 2 * ca * cw * math.cos(cw * t) - 3.5
    assert mass["v"] == approx(v, rel=1e-13)
    assert mass["x"] == approx(-0.85 + 3.5 * t + v * (0.2 - t), abs=1e-12)


def test_the_floor_reflects(instantiate: Instantiate, version: str) -> None:
    free = {"k2": 0.0, "d2": 0.0, "g": 0.0}
    mass = instantiate("TwoMassLower", version)
    mass.initialize(x=-8.8, v=-3.0, u_x=0.0, u_v=0.0, f0=-9.65, **free)
    mass.step(0.2)  # it touches at 0.1 s, when x = f0 + dx
    assert mass["v"] == 3.0
    assert mass["x"] == approx(-8.8, abs=1e-12)
    assert mass["floor.z[1]"] == approx(0.3, abs=1e-12)


def test_several_events_in_one_step(instantiate: Instantiate, version: str) -> None:
    """Gravity upwards makes the block bounce below the ceiling, always with the same speed."""
    free = {"k1": 0.0, "k2": 0.0, "d1": 0.0, "d2": 0.0}
    mass = instantiate("TwoMassUpper", version, loggingOn=True)
    mass.initialize(x=-0.55, v=-1.0, u_x=-100.0, u_v=0.0, g=-10.0, **free)
    mass.step(0.7)  # contacts at 0.2, 0.4 and 0.6 s
    assert len(mass.log) == 3
    assert mass["x"] == approx(-0.55 - 1.0 * 0.1 + 10.0 / 2 * 0.1**2, abs=1e-11)
    assert mass["v"] == approx(0.0, abs=1e-11)


def test_events_that_accumulate_end_the_step(instantiate: Instantiate, version: str) -> None:
    free = {"k1": 0.0, "k2": 0.0, "d1": 0.0, "d2": 0.0}
    mass = instantiate("TwoMassUpper", version)
    mass.initialize(x=-0.55, v=-1.0, u_x=-100.0, u_v=0.0, g=-1e5, **free)
    with pytest.raises(FMICallException, match="DoStep"):
        mass.step(0.1)  # contacts every 20 us
    [message] = mass.log
    assert message.startswith(
        "More than 1000 events in the step from t = 0 s to 0.1 s: they accumulate at t = 0.0"
    )


@pytest.mark.parametrize("model", ["TwoMassUpper", "TwoMassLower"])
def test_directional_derivatives_are_those_of_the_outputs(
    instantiate: Instantiate, version: str, model: str
) -> None:
    mass = instantiate(model, version)
    mass.enter_initialization_mode()
    wall = "ceiling" if model == "TwoMassUpper" else "floor"
    outputs = ["x", "v", "a", f"{wall}.z[1]", f"{wall}.z[2]"]
    outputs += ["collision.z[1]", "collision.z[2]", "collision.dz[1]", "collision.dz[2]"]
    knowns = [*INPUTS, *STATES]
    jacobian = mass.derivatives(outputs, knowns)
    for column, known in enumerate(knowns):
        start = mass[known]
        mass[known] = start + 1.0  # all outputs are linear in these: any difference will do
        above = [mass[name] for name in outputs]
        mass[known] = start - 1.0
        below = [mass[name] for name in outputs]
        mass[known] = start
        differences = [(a - b) / 2 for a, b in zip(above, below, strict=True)]
        assert [row[column] for row in jacobian] == approx(differences, abs=1e-12)


def test_a_derivative_that_is_not_provided_is_an_error(
    instantiate: Instantiate, version: str
) -> None:
    mass = instantiate("TwoMassUpper", version).initialize()
    with pytest.raises(FMICallException, match="GetDirectionalDerivative"):
        mass.derivatives(["a"], ["m1"])
    assert "the derivative of 'a' with respect to 'm1' is not provided." in mass.log[-1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inputOrder": 2}, "inputOrder is 2. It must be 0 (held), 1 (linear) or 5 (polynomial)."),
        ({"m1": 0.0}, "m1 is 0 kg and m2 is 0.3 kg. Both must be positive."),
    ],
)
def test_unusable_parameters_are_refused(
    instantiate: Instantiate, version: str, values: dict[str, Any], message: str
) -> None:
    mass = instantiate("TwoMassUpper", version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        mass.initialize(**values)
    assert mass.log == [message]
