"""What all reference FMUs share: FMU states, the state machine, checks of arguments, the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmpy.fmi1 import FMICallException
from pytest import approx
from reference_instance import Instance, Instantiate

WITH_STATES = ("BouncingBall", "Dahlquist", "Faulty", "TwoMassLower", "TwoMassUpper")


def drive(fmu: Instance, count: int, begin: int = 0) -> list[Any]:
    """Steps of 0.05 s with inputs that change; every output after every step."""
    inputs = [
        v
        for v in fmu.variables.values()
        if v.causality == "input"
        and v.variability == "continuous"
        and not v.name.startswith("u_poly")
    ]
    outputs = [
        v.name
        for v in fmu.variables.values()
        if v.causality == "output" and v.variability == "continuous"
    ]
    rows = []
    for k in range(begin, begin + count):
        for v in inputs:
            fmu[v.name] = float(v.start) + 0.1 * k
        fmu.fmu.doStep(0.05 * k, 0.05 * (k + 1) - 0.05 * k)
        rows.append([fmu[name] for name in outputs])
    return rows


@pytest.mark.parametrize("model", WITH_STATES)
def test_both_fmi_versions_calculate_the_same_bits(instantiate: Instantiate, model: str) -> None:
    fmi2, fmi3 = (drive(instantiate(model, v).initialize(), 60) for v in ("fmi2", "fmi3"))
    assert fmi2 == fmi3


@pytest.mark.parametrize("model", WITH_STATES)
def test_a_restored_state_replays_bit_by_bit(
    instantiate: Instantiate, version: str, model: str
) -> None:
    fmu = instantiate(model, version).initialize()
    drive(fmu, 5)
    state = fmu.fmu.getFMUState()
    first = drive(fmu, 40, begin=5)
    fmu.fmu.setFMUState(state)
    assert drive(fmu, 40, begin=5) == first
    fmu.fmu.freeFMUState(state)


@pytest.mark.parametrize("model", WITH_STATES)
def test_a_serialized_state_goes_on_in_another_instance(
    instantiate: Instantiate, version: str, model: str
) -> None:
    fmu = instantiate(model, version).initialize()
    drive(fmu, 5)
    state = fmu.fmu.getFMUState()
    data = fmu.fmu.serializeFMUState(state)
    assert fmu.fmu.serializeFMUState(state) == data
    fmu.fmu.freeFMUState(state)
    expected = drive(fmu, 40, begin=5)

    other = instantiate(model, version)
    state = other.fmu.deserializeFMUState(data)
    other.fmu.setFMUState(state)
    other.fmu.freeFMUState(state)
    assert drive(other, 40, begin=5) == expected


def test_equal_states_are_equal_bytes(instantiate: Instantiate, version: str) -> None:
    def serialized() -> bytes:
        fmu = instantiate("TwoMassUpper", version).initialize()
        drive(fmu, 5)
        state = fmu.fmu.getFMUState()
        data: bytes = fmu.fmu.serializeFMUState(state)
        fmu.fmu.freeFMUState(state)
        return data

    assert serialized() == serialized()


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b"?" + b[1:]])
def test_bytes_that_are_no_state_are_refused(
    instantiate: Instantiate, version: str, damage: Callable[[bytes], bytes]
) -> None:
    fmu = instantiate("Dahlquist", version).initialize()
    state = fmu.fmu.getFMUState()
    data = fmu.fmu.serializeFMUState(state)
    with pytest.raises(FMICallException):
        fmu.fmu.deserializeFMUState(damage(data))
    assert fmu.log[-1].endswith("are no FMU state of this build of Dahlquist.")
    fmu.fmu.freeFMUState(state)


def test_the_state_of_an_earlier_mode_brings_the_mode_back(
    instantiate: Instantiate, version: str
) -> None:
    fmu = instantiate("Dahlquist", version)
    fmu.enter_initialization_mode()
    state = fmu.fmu.getFMUState()
    fmu.fmu.exitInitializationMode()
    fmu.step(0.1)
    fmu.fmu.setFMUState(state)
    fmu.fmu.freeFMUState(state)
    fmu["k"] = 2.0  # only before Step Mode
    fmu.fmu.exitInitializationMode()
    fmu.fmu.doStep(0.0, 0.1)
    assert fmu["x"] == approx(fmu["dx"] / -2.0, rel=1e-15)


def test_reset_brings_the_start_values_back(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("TwoMassUpper", version)
    first = drive(fmu.initialize(m1=0.5), 20)
    fmu.fmu.terminate()
    fmu.fmu.reset()
    fmu.initialize()
    assert fmu["m1"] == 0.2
    second = drive(fmu, 20)
    assert second == drive(instantiate("TwoMassUpper", version).initialize(), 20)
    assert second != first


def test_values_set_before_initialization_mode_count(
    instantiate: Instantiate, version: str
) -> None:
    fmu = instantiate("Dahlquist", version)
    fmu["x"] = 7.0
    fmu["k"] = 0.0
    fmu.initialize()
    assert (fmu["x"], fmu["dx"]) == (7.0, 0.0)


def refused(fmu: Instance, call: Callable[[], object], message: str) -> None:
    with pytest.raises(FMICallException, match="error"):
        call()
    assert fmu.log[-1].endswith(message)


def test_only_what_may_be_set_can_be_set(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("TwoMassUpper", version).initialize()
    for name in ("a", "x", "m1", "lookahead.c", "collision.z[1]", "time"):
        reference = fmu.variables[name].valueReference
        message = f"'{name}' (value reference {reference}) cannot be set in Step Mode."
        refused(fmu, partial(fmu.__setitem__, name, 1), message)


def test_an_output_cannot_be_set_before_step_mode(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("TwoMassUpper", version)
    refused(fmu, lambda: fmu.__setitem__("a", 1.0), "cannot be set in the state Instantiated.")


def test_an_unknown_value_reference_is_named(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Dahlquist", version).initialize()
    get = fmu.fmu.getReal if version == "fmi2" else fmu.fmu.getFloat64
    refused(fmu, lambda: get([99]), "there is no variable with value reference 99.")


def test_a_wrong_type_is_named(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Dahlquist", version).initialize()
    get = fmu.fmu.getInteger if version == "fmi2" else fmu.fmu.getInt32
    refused(fmu, lambda: get([2]), "the variable 'x' (value reference 2) is of type Float64.")


def test_a_wrong_number_of_values_is_refused(instantiate: Instantiate) -> None:
    fmu = instantiate("Feedthrough", "fmi3").initialize()
    vector = fmu.variables["Float64_vector_input"].valueReference
    message = "nValues is {}, which is not what the variables have together."
    for count in (2, 4):
        with pytest.raises(FMICallException):
            fmu.fmu.setFloat64([vector], [0.0] * count)
        assert fmu.log[-1].endswith(message.format(count))


def test_an_array_is_not_for_fmi2(instantiate: Instantiate, reference: Path) -> None:
    fmu = instantiate("Feedthrough", "fmi2").initialize()
    path = reference / "fmi3" / "Feedthrough.fmu"
    variables = fmpy.read_model_description(path).modelVariables
    [vector] = [v.valueReference for v in variables if v.name == "Float64_vector_output"]
    refused(fmu, lambda: fmu.fmu.getReal([vector]), "'Float64_vector_output' is an array.")


def test_calls_in_a_wrong_state_are_refused(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Dahlquist", version)
    prefix = version
    refused(fmu, lambda: fmu.step(0.1), f"{prefix}DoStep is not allowed in the state Instantiated.")
    fmu.initialize()
    refused(
        fmu,
        fmu.fmu.exitInitializationMode,
        f"{prefix}ExitInitializationMode is not allowed in Step Mode.",
    )
    fmu.fmu.terminate()
    refused(fmu, lambda: fmu.step(0.1), f"{prefix}DoStep is not allowed in the state Terminated.")


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        (0.0, 0.0, "the step size is 0 s. It must be positive."),
        (0.0, float("nan"), "the step size is nan s. It must be positive."),
        (0.1, 0.1, "is to begin at t = 0.10000000000000001 s, but the last one ended at 0 s."),
        (0.0, 1.1, "is to end at t = 1.1000000000000001 s, after the stop time 1 s."),
    ],
)
def test_impossible_steps_are_refused(
    instantiate: Instantiate, version: str, begin: float, size: float, message: str
) -> None:
    fmu = instantiate("Dahlquist", version).initialize(stop=1.0)
    refused(fmu, lambda: fmu.fmu.doStep(begin, size), message)
    fmu.fmu.doStep(0.0, 1.0)


def test_after_an_error_only_a_reset_helps(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Faulty", version).initialize(fault=3)
    with pytest.raises(FMICallException):
        fmu.step(0.1)
    refused(fmu, lambda: fmu.fmu.doStep(0.0, 0.1), "DoStep is not allowed in the state error.")
    fmu.fmu.reset()
    fmu.initialize()
    fmu.fmu.doStep(0.0, 0.1)


@pytest.mark.parametrize("logging", [False, True])
def test_events_are_logged_when_logging_is_on(
    instantiate: Instantiate, version: str, logging: bool
) -> None:
    fmu = instantiate("TwoMassUpper", version, loggingOn=logging)
    fmu.initialize(x=-0.6)  # upwards, 5 cm below the ceiling
    fmu.step(0.1)
    assert len(fmu.log) == (1 if logging else 0)


def test_logging_can_be_switched_by_category(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("TwoMassUpper", version)
    fmu.fmu.setDebugLogging(True, ["logEvents"])
    fmu.initialize(x=-0.6)
    fmu.step(0.1)
    [message] = fmu.log
    assert message.startswith("Event 'ceiling' at t = 0.0")
    with pytest.raises(FMICallException):
        fmu.fmu.setDebugLogging(True, ["logAll"])
    assert fmu.log[-1].endswith('there is no log category "logAll".')


def test_another_token_is_refused(
    instantiate: Instantiate, reference: Path, version: str, tmp_path: Path
) -> None:
    fmu = instantiate("Dahlquist", version)
    fmu.fmu.guid = "{another}"
    before = fmu.fmu.component
    with pytest.raises(Exception, match="Failed to instantiate"):
        fmu.fmu.instantiate()
    fmu.fmu.component = before


@pytest.mark.parametrize(
    "model", ["BouncingBall", "Dahlquist", "ThermostatRoom", "TwoMassLower", "TwoMassUpper"]
)
def test_what_changes_an_initial_unknown_is_declared(
    instantiate: Instantiate, reference: Path, version: str, model: str
) -> None:
    """And all that is declared changes it, in one of the settings that are tried here."""
    description = fmpy.read_model_description(reference / version / f"{model}.fmu")
    unknowns = {
        u.variable.name: {v.name for v in u.dependencies}
        for u in description.initialUnknowns
        if u.variable.type not in ("Clock", "Integer") and u.variable.name != "lookahead.next"
    }
    walls = {"ca": 0.1, "cw": 1.0, "cp": 0.5, "fa": 0.1, "fw": 1.0, "fp": 0.5}
    settings = (
        [{}, {"inputOrder": 5}]
        if model.startswith("TwoMass")
        else [{}, {"h": 0.0}, {"q": 0, "x": 20.3}]
    )
    found: dict[str, set[str]] = {name: set() for name in unknowns}
    for setting in settings:
        fmu = instantiate(model, version)
        fmu.enter_initialization_mode()
        for name, value in (walls | setting).items():
            if name in fmu.variables:
                fmu[name] = value
        before = {name: fmu[name] for name in unknowns}
        knowns = [v for v in fmu.variables.values() if v.causality in ("input", "parameter")]
        knowns += [v for v in fmu.variables.values() if v.initial == "exact" and v not in knowns]
        for known in knowns:
            if known.type in ("Clock", "String") or known.name.endswith((".in", ".out", "Policy")):
                continue
            start = fmu[known.name]
            changed: Any
            if known.name == "inputOrder":
                changed = 0
            elif known.type == "Boolean":
                changed = not start
            else:
                changed = [c + 0.25 for c in start] if known.shape else start + 0.25
            fmu[known.name] = changed
            for name in unknowns:
                if fmu[name] != before[name]:
                    found[name].add(known.name)
            fmu[known.name] = start
    by_time = {"time", "cw", "fw"}
    for name, declared in unknowns.items():
        assert found[name] <= declared, name
        # what acts by time only, and at t = 0 does nothing: higher coefficients, frequencies
        silent = {d for d in declared - found[name] if d in by_time or d.startswith("u_poly[")}
        assert declared - silent == found[name], name
