"""LoopFunction and LoopStart: the parts of algebraic loops, each alone."""

from __future__ import annotations

import math

import pytest
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

FUNCTIONS = [
    ({"c0": 1.0, "c1": -2.0, "c2": 0.5, "c3": 0.25}, 0.7, -0.4 + 0.245 + 0.08575, -0.9325),
    ({"function": 1, "c0": 1.0, "c1": 2.0}, 0.7, 1 + 2 * math.cos(0.7), -2 * math.sin(0.7)),
    ({"function": 2, "c0": 1e5, "c1": -1e5}, 0.7, None, None),
    ({"function": 3, "c1": 2.0}, 0.7, 2 * math.sqrt(0.7), 1 / math.sqrt(0.7)),
]


@pytest.mark.parametrize(("parameters", "u", "y", "slope"), FUNCTIONS)
def test_a_function_and_its_derivative(
    instantiate: Instantiate,
    version: str,
    parameters: dict[str, float],
    u: float,
    y: float | None,
    slope: float | None,
) -> None:
    if y is None:
        y, slope = 1e5 * (1 - math.tanh(u)), -1e5 / math.cosh(u) ** 2
    fmu = instantiate("LoopFunction", version).initialize(u=u, **parameters)
    assert fmu["y"] == approx(y, rel=1e-14)
    assert fmu.derivatives(["y"], ["u"]) == [[approx(slope, rel=1e-14)]]


def test_outputs_follow_inputs_in_initialization_mode(
    instantiate: Instantiate, version: str
) -> None:
    fmu = instantiate("LoopFunction", version)
    fmu.enter_initialization_mode()
    for u, step in ((0.5, 0.0), (0.51, 1.0), (0.4, 0.0)):
        fmu["u"] = u
        assert (fmu["y"], fmu["step"]) == (u, step)
    for q in (True, False):
        for on in (True, False):
            for off in (True, False):
                fmu["q"], fmu["set"], fmu["reset"] = q, on, off
                assert fmu["inverse"] == (not q)
                assert fmu["latch"] == (on or (q and not off))


def test_outputs_follow_inputs_in_steps(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("LoopFunction", version).initialize()
    fmu["u"], fmu["q"] = 0.75, True
    fmu.step(0.1)
    assert (fmu["y"], fmu["step"], fmu["inverse"], fmu["latch"]) == (0.75, 1.0, False, True)


def in_step_mode(instantiate: Instantiate) -> Instance:
    """FMI 3.0 with Event Mode."""
    fmu = instantiate("LoopFunction", "fmi3", eventModeUsed=True).initialize()
    fmu.fmu.enterStepMode()
    return fmu


def test_discrete_outputs_change_in_event_mode_only(instantiate: Instantiate) -> None:
    fmu = in_step_mode(instantiate)
    fmu["u"] = 0.75
    needs_event = fmu.step(0.1)[0]
    assert needs_event
    assert (fmu["y"], fmu["step"]) == (0.75, 0.0)
    fmu.fmu.enterEventMode()
    assert fmu["step"] == 0.0  # its left limit
    assert not any(fmu.update())
    assert fmu["step"] == 1.0
    fmu["q"] = True
    assert not fmu["inverse"]
    fmu.fmu.enterStepMode()
    assert not fmu.step(0.1)[0]
    assert (fmu["step"], fmu["inverse"], fmu["latch"]) == (1.0, False, True)


def test_continuous_outputs_follow_inputs_in_event_mode(instantiate: Instantiate) -> None:
    fmu = in_step_mode(instantiate)
    fmu.step(0.1)
    fmu.fmu.enterEventMode()
    for u in (0.1, 0.2):
        fmu["u"] = u
        assert fmu["y"] == u


def test_an_unknown_function_is_refused(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("LoopFunction", version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        fmu.initialize(function=4)
    assert fmu.log[0].startswith("function is 4. It must be 0 (polynomial), 1 (cosine)")


def test_a_state_is_calculated_in_initialization_mode_only(
    instantiate: Instantiate, version: str
) -> None:
    fmu = instantiate("LoopStart", version)
    fmu.enter_initialization_mode()
    for u in (1.0, 3.0):
        fmu["u"] = u
        assert (fmu["x"], fmu["y"]) == (0.5 * u + 1, 0.5 * u + 1)
    fmu.fmu.exitInitializationMode()
    fmu["u"] = 7.0
    fmu.step(0.1)
    assert (fmu["x"], fmu["y"], fmu["der(x)"]) == (2.5, 2.5, 0.0)


def test_a_parameter_is_calculated_of_another_one(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("LoopStart", version)
    fmu.enter_initialization_mode()
    assert fmu["q"] == 6.0
    fmu["p"], fmu["o"] = 4.0, 0.5
    assert fmu["q"] == 12.5
