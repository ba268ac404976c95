"""The log of FMI calls has each call that the libraries of the FMUs get, with its arguments and answers."""

from __future__ import annotations

import ctypes
import inspect
import logging
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from call_trace import traced
from fmpy.fmi2 import FMU2Model, FMU2Slave
from fmpy.fmi3 import FMU3Model, FMU3ScheduledExecution, FMU3Slave

from fmimaster import CallError, FileError, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi, Waveform
from fmimaster.events import EarlyReturn
from fmimaster.fmu.call_log import CallLog, objection
from fmimaster.inputs import FIRST_ORDER
from fmimaster.run import Backend
from fmimaster.system import ClockInterval

_CALL = re.compile(r"(?:t=(\S+) )?(\w+): (fmi\d\w+)(?:\((.*?)\))?(?: -> (\w+)(.*))?")
"""A call; its answer is in another line, without arguments, if the FMU has called back."""
_NOT_TRACED = ("Instantiate", "SetDebugLogging", "FreeInstance", "FreeFMU")


def system(version: str) -> Path:
    return reference_path(f"systems/two-mass-b1-{version}.ssp")


def calls(file: Path) -> list[tuple[str, ...]]:
    """Time, instance, function, arguments, status and answers of each call, without those that a trace has not."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        match = _CALL.fullmatch(line.strip())
        assert match, line
        if match[4] is not None and not match[3][4:].startswith(_NOT_TRACED):
            found.append(match.groups(""))
    return found


CASES: dict[str, tuple[Path, dict[str, Any]]] = {
    "jacobi": (system("fmi2"), {}),
    "event mode and early returns": (system("fmi3"), {"event_clock": EarlyReturn()}),
    "states": (system("mixed"), {"algorithm": Waveform(GaussSeidel())}),
    "intermediate updates": (
        reference_path("systems/quarter-car-a-fmi3.ssp"),
        {"algorithm": Jacobi(FIRST_ORDER)},
    ),
}


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.in_this_process("calls are traced in the process of the run")
@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE], ids=lambda b: b.value)
@pytest.mark.parametrize("case", CASES)
def test_the_log_has_every_call_and_changes_no_bit(
    tmp_path: Path, case: str, backend: Backend
) -> None:
    path, special = CASES[case]
    settings: dict[str, Any] = {"stop_time": 0.25, "step_size": 0.01, **special}
    with traced() as trace:
        plain = Simulation(path, backend=Backend.NATIVE, **settings).run()
    log = tmp_path / "calls.log"
    logged = Simulation(path, backend=backend, fmi_log_file=log, **settings).run()
    found = calls(log)
    assert [(c[1], c[2]) for c in found] == [c[:2] for c in trace.calls if "FreeFMU" not in c[1]]
    assert all(np.array_equal(plain[n], logged[n]) for n in ("time", *plain.names))


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.in_this_process("calls are traced in the process of the run")
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_arguments_and_answers_are_those_of_the_calls(tmp_path: Path, version: str) -> None:
    settings: dict[str, Any] = {"stop_time": 0.02, "step_size": 0.01, "event_clock": "none"}
    with traced() as trace:
        Simulation(system(version), **settings).run()
    log = tmp_path / "calls.log"
    Simulation(system(version), fmi_log_file=log, **settings).run()
    for (time, _, name, arguments, status, answers), expected in zip(
        calls(log), trace.calls, strict=True
    ):
        assert status == f"{version}OK"
        if name.endswith("DoStep"):
            begin, size = expected[2:4]
            assert time == repr(begin)
            assert (
                f"currentCommunicationPoint={begin!r}, communicationStepSize={size!r}" in arguments
            )
        if name[4:] in ("GetFloat64", "GetReal", "SetFloat64", "SetReal"):
            where = answers if name[4:].startswith("Get") else arguments
            [values] = re.findall(r"values?=\[(.*?)\]", where)
            numbers = [float(v) for v in values.split(", ")]
            assert struct.pack(f"{len(numbers)}d", *numbers) == expected[4]
            assert f"=[{', '.join(map(str, expected[2]))}]" in arguments


def test_arrays_texts_and_binaries_are_shown(tmp_path: Path) -> None:
    builder = SystemBuilder()
    builder.add("unit", reference_path("fmi3/Feedthrough.fmu"))
    for name, value in (
        ("String_input", "a, b"),
        ("Binary_input", b"\x01\xff"),
        ("Boolean_input", True),
    ):
        builder.set(f"unit.{name}", value)
    builder.set("unit.Float64_vector_input", [1, 2, 3])
    builder.add("other", reference_path("fmi3/Feedthrough.fmu"))
    builder.connect("unit.Binary_output", "other.Binary_input")
    log = tmp_path / "calls.log"
    Simulation(builder, stop_time=0.1, step_size=0.1, fmi_log_file=log).run()
    text = log.read_text(encoding="utf-8")
    assert re.search(r"fmi3SetString\(.*values=\['a, b'\]", text)
    assert re.search(r"fmi3SetBinary\(.*valueSizes=\[2\], values=\[01ff\]", text)
    assert re.search(r"fmi3SetBoolean\(.*values=\[True\]", text)
    assert re.search(r"fmi3SetFloat64\(.*values=\[1\.0, 2\.0, 3\.0\]", text)
    assert re.search(r"fmi3GetBinary\(.*\) -> fmi3OK, valueSizes=\[2\], values=\[01ff\]", text)


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_a_failing_call_is_there_with_its_status_and_message(tmp_path: Path, version: str) -> None:
    log = tmp_path / "calls.log"
    with pytest.raises(CallError):
        Simulation(
            reference_path(f"{version}/Faulty.fmu"),
            stop_time=1,
            step_size=0.1,
            start_values={"fault": 4, "faultTime": 0.5},
            fmi_log_file=log,
        ).run()
    lines = log.read_text(encoding="utf-8").splitlines()
    call, message, answer = lines[-3:]
    assert call.startswith(f"t=0.5 Faulty: {version}DoStep(currentCommunicationPoint=0.5, ")
    assert message == "  Faulty: [Fatal] Faulty: told to return Fatal at t = 0.5 s."
    assert answer.startswith(f"t=0.5 Faulty: {version}DoStep -> {version}Fatal")


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("unit", ["Sampler", "ClockKinds", "Countdown", "TrafficLight"])
def test_calls_of_clocks_are_logged(unit: str, backend: Backend, tmp_path: Path) -> None:
    """A shift is asked for one clock by reference, which is logged as an array of one."""
    log = tmp_path / "calls.log"
    fmu = reference_path(f"fmi3/{unit}.fmu")
    Simulation(fmu, stop_time=1, step_size=0.5, fmi_log_file=log, backend=backend).run()
    logged = {call[2]: call[3:] for call in calls(log)}
    assert "fmi3GetIntervalFraction" in logged or "fmi3GetClock" in logged
    if "fmi3GetShiftFraction" in logged:
        arguments, status, answers = logged["fmi3GetShiftFraction"]
        assert re.fullmatch(r"valueReferences=\[\d+\], nValueReferences=1", arguments)
        assert status == "fmi3OK"
        assert re.fullmatch(r", counters=\[\d+\], resolutions=\[\d+\]", answers)
    assert ("fmi3GetShiftFraction" in logged) == (unit in {"Sampler", "ClockKinds"})


def test_without_a_file_calls_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fmimaster"):
        Simulation(
            reference_path("fmi3/Dahlquist.fmu"), stop_time=0.1, step_size=0.1, log_fmi_calls=True
        ).run()
    steps = [m for m in caplog.messages if "fmi3DoStep" in m]
    assert len(steps) == 1
    assert steps[0].startswith(
        "FMI call: t=0.0 Dahlquist: fmi3DoStep(currentCommunicationPoint=0.0,"
    )


def test_the_log_does_not_overwrite_the_fmu_and_names_a_file_that_cannot_be_written(
    tmp_path: Path,
) -> None:
    fmu = tmp_path / "Dahlquist.fmu"
    fmu.write_bytes(reference_path("fmi3/Dahlquist.fmu").read_bytes())
    for file in (fmu, tmp_path / "missing" / "calls.log"):
        with pytest.raises(FileError, match=re.escape(str(file))):
            Simulation(fmu, stop_time=0.1, step_size=0.1, fmi_log_file=file).run()
    assert fmu.stat().st_size == reference_path("fmi3/Dahlquist.fmu").stat().st_size
    inputs = tmp_path / "u.csv"
    inputs.write_text("time,u\n0,1\n", encoding="utf-8")
    with pytest.raises(FileError, match="would overwrite the input"):
        Simulation(fmu, stop_time=0.1, step_size=0.1, input=inputs, fmi_log_file=inputs).run()
    assert inputs.read_text(encoding="utf-8") == "time,u\n0,1\n"


def test_clocks_with_intervals_and_shifts_are_shown(tmp_path: Path) -> None:
    """All kinds of clocks, whose times are fractions or decimals, are asked for and set by the run."""
    path, log = reference_path("fmi3/ClockKinds.fmu"), tmp_path / "calls.log"
    settings: dict[str, Any] = {
        "stop_time": 0.5,
        "start_values": {"fixed": ClockInterval("1/5", shift="1/10")},
    }
    plain = Simulation(path, **settings).run()
    logged = Simulation(path, fmi_log_file=log, **settings).run()
    assert all(np.array_equal(plain[n], logged[n]) for n in ("time", *plain.names))
    text = log.read_text(encoding="utf-8")
    one = r"\(valueReferences=\[\d+\], nValueReferences=1"
    assert re.search(
        rf"fmi3GetShiftFraction{one}\) -> fmi3OK, counters=\[0\], resolutions=\[20\]", text
    )
    assert re.search(rf"fmi3SetIntervalFraction{one}, counters=\[1\], resolutions=\[5\]\)", text)
    assert re.search(rf"fmi3SetShiftFraction{one}, counters=\[1\], resolutions=\[10\]\)", text)
    assert re.search(r"fmi3SetClock\(.*values=\[True\]\) -> fmi3OK", text)


@pytest.mark.parametrize(
    "kind", [FMU2Model, FMU2Slave, FMU3Model, FMU3Slave, FMU3ScheduledExecution]
)
@pytest.mark.parametrize("form", ["array", "one by reference", "address", "null"])
def test_arguments_of_every_function_are_shown_in_every_form(kind: Any, form: str) -> None:
    """The log never ends a run, however a pointer is passed."""
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith(("fmi2", "fmi3")) or name.endswith(
            ("GetTypesPlatform", "GetVersion")
        ):
            continue
        parameters = [*inspect.signature(function).parameters.values()][1:]
        names = [p.name for p in parameters]
        kinds = [(*getattr(p.annotation, "__args__", ()), p.annotation)[0] for p in parameters]
        arguments = [_argument(k, form) for k in kinds]
        logged = CallLog().logged(lambda *_: 0, name, (names, kinds), "unit", lambda: None)
        assert logged(*arguments) == 0


def _argument(kind: Any, form: str) -> Any:
    """An argument of a C type, of which a pointer comes in a form."""
    is_pointer = hasattr(kind, "contents")
    if not is_pointer:
        return 1 if kind is ctypes.c_size_t else kind()
    elements = (kind._type_ * 1)()
    return {
        "array": elements,
        "one by reference": ctypes.byref(kind._type_()),
        "address": ctypes.cast(elements, ctypes.c_void_p),
        "null": None,
    }[form]


def test_a_status_that_the_standard_does_not_allow_is_told_with_its_reason() -> None:
    pending, discard = 5, 2
    assert "computes asynchronously" in objection("fmi2", "DoStep", pending)
    assert "does not allow for this function" in objection("fmi2", "Terminate", pending)
    assert "does not allow for this function" in objection("fmi2", "GetReal", discard)
    assert objection("fmi2", "DoStep", discard) == ""
    assert "is not a status of FMI 3.0" in objection("fmi3", "DoStep", pending)
