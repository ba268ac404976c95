"""Dahlquist, Feedthrough and Faulty."""

from __future__ import annotations

import faulthandler
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fmpy.fmi1 import FMICallException
from processes import PATIENCE
from pytest import approx
from reference_instance import Instantiate

# Dahlquist


@pytest.mark.parametrize("k", [1.0, 0.0, -0.5, 1e-9, 30.0])
def test_dahlquist_is_exact_for_an_input_that_is_held(
    instantiate: Instantiate, version: str, k: float
) -> None:
    fmu = instantiate("Dahlquist", version).initialize(k=k, u=2.0)
    for _ in range(10):
        fmu.step(0.1)
    exact = math.exp(-k) + (2.0 if k == 0.0 else -2.0 * math.expm1(-k) / k)
    assert fmu["x"] == approx(exact, rel=1e-14)
    assert fmu["dx"] == approx(2.0 - k * exact, rel=1e-13, abs=1e-13)


def linear_solution(k: float, u0: float, u1: float, t: float) -> float:
    """x(t) of x' = -k x + u0 + u1 t, x(0) = 1, by the particular solution u0/k + u1 (t - 1/k)/k."""
    if k == 0.0:
        return 1.0 + u0 * t + u1 * t**2 / 2

    def particular(t: float) -> float:
        return u0 / k + u1 * (t - 1 / k) / k

    return particular(t) + math.exp(-k * t) * (1.0 - particular(0.0))


K_AND_TOLERANCE = [
    (1.0, 1e-14),
    (0.0, 1e-14),
    (-0.5, 1e-14),
    (0.01, 1e-11),  # here the formula of the test cancels: u1/k^2 is 1e4 times x
    (5.0, 1e-14),
    (30.0, 1e-14),
]


@pytest.mark.parametrize(("k", "tolerance"), K_AND_TOLERANCE)
def test_dahlquist_is_exact_for_input_derivatives(
    instantiate: Instantiate, k: float, tolerance: float
) -> None:
    """FMI 2.0, in one step of 1 s and in four of 0.25 s."""
    for count in (1, 4):
        fmu = instantiate("Dahlquist", "fmi2").initialize(k=k)
        u = fmu.variables["u"].valueReference
        for step in range(count):
            fmu["u"] = 0.3 + 1.7 * step / count
            fmu.fmu.setRealInputDerivatives([u], [1], [1.7])
            fmu.step(1 / count)
        assert fmu["x"] == approx(linear_solution(k, 0.3, 1.7, 1.0), rel=tolerance)
        assert fmu["dx"] == approx(2.0 - k * fmu["x"], rel=1e-14)


@pytest.mark.parametrize(("k", "tolerance"), K_AND_TOLERANCE)
def test_dahlquist_is_exact_for_intermediate_updates(
    instantiate: Instantiate, k: float, tolerance: float
) -> None:
    """FMI 3.0: the importer sets u(t) when it is called at the begin and the end of a step."""
    times = []

    def update(
        _environment: Any, time: float, set_requested: bool, *_flags_and_early_return: Any
    ) -> None:
        assert set_requested
        times.append(time)
        fmu["u"] = 0.3 + 1.7 * time

    fmu = instantiate(
        "Dahlquist", "fmi3", intermediateUpdate=update, requiredIntermediateVariables=[1]
    ).initialize(k=k)
    fmu.step(0.25)
    fmu.step(0.75)
    assert times == [0.0, 0.25, 0.25, 1.0]
    assert fmu["x"] == approx(linear_solution(k, 0.3, 1.7, 1.0), rel=tolerance)
    assert fmu["dx"] == approx(2.0 - k * fmu["x"], rel=1e-14)


def test_only_inputs_can_be_set_in_an_intermediate_update(instantiate: Instantiate) -> None:
    errors: list[str] = []

    def update(*_arguments: Any) -> None:
        for name in ("k", "x"):
            with pytest.raises(FMICallException):
                fmu[name] = 1.0
            errors.append(fmu.log[-1])

    fmu = instantiate("Dahlquist", "fmi3", intermediateUpdate=update).initialize()
    fmu.step(0.1)
    assert len(errors) == 4
    assert all("cannot be set in Intermediate Update Mode." in error for error in errors)


def test_other_variables_cannot_be_intermediate(instantiate: Instantiate) -> None:
    fmu = instantiate("Dahlquist", "fmi3")
    before = fmu.fmu.component
    with pytest.raises(Exception, match="Failed to instantiate"):
        fmu.fmu.instantiate(requiredIntermediateVariables=[2], logMessage=lambda *_: None)
    fmu.fmu.component = before


def test_an_input_derivative_holds_for_one_step(instantiate: Instantiate) -> None:
    fmu = instantiate("Dahlquist", "fmi2").initialize(k=0.0)
    fmu.fmu.setRealInputDerivatives([1], [1], [1.0])
    fmu.step(1.0)
    assert fmu["x"] == 1.5
    fmu.step(1.0)
    assert fmu["x"] == 1.5


def test_higher_input_derivatives_are_refused(instantiate: Instantiate) -> None:
    fmu = instantiate("Dahlquist", "fmi2").initialize()
    with pytest.raises(FMICallException):
        fmu.fmu.setRealInputDerivatives([1], [2], [1.0])
    assert fmu.log == [
        "fmi2SetRealInputDerivatives: derivative 2 of 'u' is not used, only the first is."
    ]


def test_derivatives_of_dahlquist(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Dahlquist", version).initialize(k=3.0)
    assert fmu.derivatives(["x", "dx"], ["x", "u"]) == [[1.0, 0.0], [-3.0, 1.0]]


# Feedthrough

VALUES = {
    "Float32_continuous": 0.5,
    "Float32_discrete": -1.5,
    "Float64_continuous": math.pi,
    "Float64_discrete": -math.inf,
    "Float64_vector": [1.0, 2.0, math.e],
    "Int8": -(2**7),
    "UInt8": 2**8 - 1,
    "Int16": -(2**15),
    "UInt16": 2**16 - 1,
    "Int32": -(2**31),
    "UInt32": 2**32 - 1,
    "Int64": -(2**63),
    "UInt64": 2**64 - 1,
    "Boolean": True,
    "String": "Größe 😀 100 %s",
    "Binary": bytes(range(256)) * 4,
    "Enumeration": -1,
}
IN_FMI2 = {"Float64_continuous", "Float64_discrete", "Int32", "Boolean", "String", "Enumeration"}


@pytest.fixture
def values(version: str) -> dict[str, Any]:
    return {k: v for k, v in VALUES.items() if version == "fmi3" or k in IN_FMI2}


def test_feedthrough_has_all_types(
    instantiate: Instantiate, version: str, values: dict[str, Any]
) -> None:
    fmu = instantiate("Feedthrough", version)
    assert fmu.variables.keys() == {"time"} | {
        f"{name}_{end}" for name in values for end in ("input", "output")
    }


def test_feedthrough_in_initialization_mode(
    instantiate: Instantiate, version: str, values: dict[str, Any]
) -> None:
    fmu = instantiate("Feedthrough", version)
    fmu.enter_initialization_mode()
    for name, value in values.items():
        assert fmu[f"{name}_output"] != value
        fmu[f"{name}_input"] = value
        assert fmu[f"{name}_output"] == value


def test_feedthrough_from_step_to_step(
    instantiate: Instantiate, version: str, values: dict[str, Any]
) -> None:
    fmu = instantiate("Feedthrough", version).initialize()
    for name, value in values.items():
        fmu[f"{name}_input"] = value
    assert all(fmu[f"{name}_output"] != value for name, value in values.items())
    fmu.step(0.1)
    assert {name: fmu[f"{name}_output"] for name in values} == values


def test_the_start_values_of_feedthrough_are_those_of_the_description(
    instantiate: Instantiate,
) -> None:
    fmu = instantiate("Feedthrough", "fmi3")
    assert fmu["String_input"] == "text"
    assert fmu["Binary_input"] == bytes.fromhex("466d69")
    assert fmu["Float64_vector_input"] == [0.0, 0.0, 0.0]


def test_a_string_that_is_too_long_is_refused(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Feedthrough", version)
    fmu["String_input"] = "x" * 1023
    with pytest.raises(FMICallException):
        fmu["String_input"] = "x" * 1024
    assert fmu.log[-1].endswith(
        "the text for 'String_input' has 1024 bytes. This FMU keeps at most 1023."
    )


# Faulty

STATUS_OF_FAULT = {2: "discard", 3: "error", 4: "fatal"}


def test_faulty_without_a_fault_is_exact(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Faulty", version).initialize(u=2.0)
    for _ in range(10):
        fmu.step(0.1)
    assert fmu["x"] == approx(math.exp(-1.0) + 2.0 * (1 - math.exp(-1.0)), rel=1e-14)
    assert fmu["stepSize"] == 0.1


@pytest.mark.parametrize("fault", STATUS_OF_FAULT)
def test_faulty_returns_the_status_it_is_told(
    instantiate: Instantiate, version: str, fault: int
) -> None:
    fmu = instantiate("Faulty", version, loggingOn=True).initialize(fault=fault, faultTime=0.5)
    for _ in range(5):
        fmu.step(0.1)
    x = fmu["x"]
    with pytest.raises(FMICallException, match=f"({STATUS_OF_FAULT[fault]})"):
        fmu.step(0.1)
    assert fmu.log == [
        f"Faulty: told to return {STATUS_OF_FAULT[fault].capitalize()} at t = 0.5 s."
    ]
    assert fmu["x"] == x


def test_faulty_warns_and_goes_on(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Faulty", version, loggingOn=True).initialize(fault=1)
    fmu.step(0.1)
    fmu.step(0.1)
    assert fmu["x"] == approx(math.exp(-0.2), rel=1e-14)
    assert fmu.log == [f"Faulty: told to return Warning at t = {t} s." for t in ("0", "0.1")]


def test_faulty_returns_nan(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Faulty", version).initialize(fault=5, faultTime=0.1)
    fmu.step(0.1)
    assert fmu["x"] == approx(math.exp(-0.1), rel=1e-14)
    fmu.step(0.1)
    assert math.isnan(fmu["x"])


def test_faulty_refuses_to_leave_initialization_mode(
    instantiate: Instantiate, version: str
) -> None:
    fmu = instantiate("Faulty", version)
    with pytest.raises(FMICallException, match="ExitInitializationMode"):
        fmu.initialize(fault=6)
    assert fmu.log == ["Faulty: told to return Error at the end of Initialization Mode."]


def test_faulty_prints(
    instantiate: Instantiate, version: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fmu = instantiate("Faulty", version).initialize(fault=7)
    fmu.step(0.1)
    assert capfd.readouterr().out == "Faulty: told to print at t = 0 s.\n"


def test_faulty_ends_the_simulation(instantiate: Instantiate) -> None:
    fmu = instantiate("Faulty", "fmi3").initialize(fault=8, faultTime=0.1)
    event, terminate, early, last = fmu.step(0.1)
    assert not terminate
    event, terminate, early, last = fmu.step(0.1)
    assert (event, terminate, early, last) == (False, True, False, 0.2)


def test_faulty_ends_the_simulation_in_fmi2(instantiate: Instantiate) -> None:
    fmu = instantiate("Faulty", "fmi2").initialize(fault=8)
    with pytest.raises(FMICallException, match="discard"):
        fmu.step(0.1)
    terminated, last_successful_time = 3, 2
    assert fmu.fmu.getBooleanStatus(terminated)
    assert fmu.fmu.getRealStatus(last_successful_time) == 0.1


def test_faulty_refuses_other_steps(instantiate: Instantiate, version: str) -> None:
    fmu = instantiate("Faulty", version).initialize()
    fmu.step(0.1)
    fmu.step(math.nextafter(0.1, 1.0))  # rounding is no change
    with pytest.raises(FMICallException, match="error"):
        fmu.step(0.05)
    assert "canHandleVariableCommunicationStepSize is false" in fmu.log[-1]


# Faults of the process, in children of this one

CRASHES, ABORTS, EXITS, OVERFLOWS, HANGS, ALLOCATES = range(9, 15)
MEMORY = 1 << 30
"""Bytes that a child may have beyond those of this process."""
HAS_RAISED = 99
"""Exit status of a child with an exception."""
ENDS = {
    CRASHES: "SIGSEGV",
    ABORTS: "SIGABRT",
    EXITS: "",
    OVERFLOWS: "SIGSEGV",
    HANGS: "SIGALRM",
    ALLOCATES: "SIGABRT",
}
"""Fault → the signal that ends the process; the memory is limited, and an alarm ends a call that does not return."""


def end_of(act: Callable[[], object], *, seconds: float = PATIENCE) -> int:
    """The exit status of a child that does something, or the negative number of the signal that has ended it."""
    import resource  # not there on Windows

    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    most = MEMORY + pages * resource.getpagesize()
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            faulthandler.disable()
            signal.setitimer(signal.ITIMER_REAL, seconds)
            act()
            os._exit(0)
        finally:  # never on with the tests of this process
            os._exit(HAS_RAISED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


needs_fork = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and /proc")


@needs_fork
@pytest.mark.parametrize("fault", ENDS)
def test_faulty_ends_its_process(instantiate: Instantiate, version: str, fault: int) -> None:
    fmu = instantiate("Faulty", version).initialize(fault=fault, faultTime=0.1)
    fmu.step(0.1)
    seconds = 0.05 if fault == HANGS else PATIENCE
    status = end_of(lambda: fmu.step(0.1), seconds=seconds)
    assert status == (-signal.Signals[ENDS[fault]] if ENDS[fault] else 3)


@needs_fork
@pytest.mark.parametrize("call", ["getFMUState", "terminate", "reset", "freeInstance"])
def test_faulty_has_its_fault_in_any_call(
    instantiate: Instantiate, version: str, call: str
) -> None:
    def act() -> None:
        fmu = instantiate("Faulty", version).initialize(fault=ABORTS, call=call)
        getattr(fmu.fmu, call)()

    assert end_of(act) == -signal.SIGABRT


@needs_fork
def test_faulty_has_its_fault_in_instantiate(
    instantiate: Instantiate, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTY_CALL", "Instantiate")
    monkeypatch.setenv("FAULTY_FAULT", str(CRASHES))
    assert end_of(lambda: instantiate("Faulty", version)) == -signal.SIGSEGV


@needs_fork
def test_faulty_has_its_fault_once_for_a_marker(
    instantiate: Instantiate, version: str, tmp_path: Path
) -> None:
    marker = tmp_path / "crashed"
    fmu = instantiate("Faulty", version).initialize(fault=CRASHES, marker=str(marker))
    assert end_of(lambda: fmu.step(0.1)) == -signal.SIGSEGV
    assert marker.exists()
    assert end_of(lambda: fmu.step(0.1)) == 0
