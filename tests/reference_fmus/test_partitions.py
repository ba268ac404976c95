"""Partitions: model partitions, their clocks, and the calls that the FMU refuses; through fmpy alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmpy.fmi3 import (
    FMU3ScheduledExecution,
    fmi3ClockUpdateCallback,
    fmi3LockPreemptionCallback,
    fmi3LogMessageCallback,
    fmi3UnlockPreemptionCallback,
)
from fmpy.validation import validate_fmu

CLOCKS = {"fast": 10, "request": 11, "slow": 12, "later": 13, "fifth": 14}
COUNTS = {"fastTicks": 30, "requestTicks": 31, "slowTicks": 32, "laterTicks": 33, "total": 34}
OK, ERROR = 0, 3
CHANGED = 2


class Partitions:
    """An instance; `asks` is what its importer does in Clock Update Mode."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.fmu = FMU3ScheduledExecution(
            guid=next(_attributes(archive, "instantiationToken")),
            modelIdentifier="Partitions",
            unzipDirectory=fmpy.extract(archive, folder),
            instanceName="se",
        )
        self.log: list[str] = []
        self.asks: Callable[[], None] = self.ask
        self.updates: list[tuple[bool, float | None]] = []
        """In each Clock Update Mode: whether `fifth` is active, and the interval of `later` if it has changed."""
        self.locks: list[str] = []
        self.callbacks = (
            fmi3LogMessageCallback(lambda _e, _s, _c, text: self.log.append(text.decode())),
            fmi3ClockUpdateCallback(lambda _: self.asks()),
            fmi3LockPreemptionCallback(lambda: self.locks.append("lock")),
            fmi3UnlockPreemptionCallback(lambda: self.locks.append("unlock")),
        )
        self.fmu.component = self.fmu.fmi3InstantiateScheduledExecution(
            b"se", self.fmu.guid.encode(), b"", False, False, None, *self.callbacks
        )
        assert self.fmu.component

    def call(self, name: str, *arguments: Any) -> int:
        function = self.fmu.dll[f"fmi3{name}"]  # anew: without the types of fmpy
        function.restype = ctypes.c_int
        return int(function(ctypes.c_void_p(self.fmu.component), *arguments))

    def begin(self, after: float = 4.0) -> Partitions:
        assert self.call("EnterInitializationMode", *_experiment(0.0)) == OK
        assert self._set("Float64", 1, ctypes.c_double(after)) == OK
        assert self.call("ExitInitializationMode") == OK
        return self

    def _set(self, kind: str, reference: int, value: Any) -> int:
        one = ctypes.byref(ctypes.c_uint32(reference)), ctypes.c_size_t(1)
        return self.call(f"Set{kind}", *one, ctypes.byref(value), ctypes.c_size_t(1))

    def get(self, name: str) -> int | None:
        """A count; None if the FMU refuses."""
        value = ctypes.c_int32()
        one = ctypes.byref(ctypes.c_uint32(COUNTS[name])), ctypes.c_size_t(1)
        status = self.call("GetInt32", *one, ctypes.byref(value), ctypes.c_size_t(1))
        return value.value if status == OK else None

    def set_amount(self, value: int) -> int:
        return self._set("Int32", 20, ctypes.c_int32(value))

    def activate(self, clock: str, time: float) -> int:
        return self.call(
            "ActivateModelPartition", ctypes.c_uint32(CLOCKS[clock]), ctypes.c_double(time)
        )

    def ask(self) -> None:
        self.updates.append((self.fifth(), self.later()))

    def fifth(self) -> bool:
        active = ctypes.c_bool()
        one = ctypes.byref(ctypes.c_uint32(CLOCKS["fifth"])), ctypes.c_size_t(1)
        assert self.call("GetClock", *one, ctypes.byref(active)) == OK
        return active.value

    def later(self) -> float | None:
        interval, qualifier = ctypes.c_double(), ctypes.c_int()
        one = ctypes.byref(ctypes.c_uint32(CLOCKS["later"])), ctypes.c_size_t(1)
        told = ctypes.byref(interval), ctypes.byref(qualifier)
        assert self.call("GetIntervalDecimal", *one, *told) == OK
        return interval.value if qualifier.value == CHANGED else None


def _experiment(start: float) -> tuple[Any, ...]:
    double, no = ctypes.c_double, ctypes.c_bool(False)
    return no, double(0.0), double(start), no, double(0.0)


def _attributes(archive: Path, name: str) -> Iterator[str]:
    import zipfile
    from xml.etree import ElementTree

    with zipfile.ZipFile(archive) as opened:
        yield ElementTree.fromstring(opened.read("modelDescription.xml")).attrib[name]


@pytest.fixture
def fmu(reference: Path, tmp_path: Path) -> Iterator[Partitions]:
    instance = Partitions(reference / "fmi3" / "Partitions.fmu", tmp_path)
    yield instance
    instance.fmu.freeInstance()


def test_the_only_finding_of_fmpy_is_that_it_knows_no_types_of_clocks(reference: Path) -> None:
    found = validate_fmu(str(reference / "fmi3" / "Partitions.fmu"))
    assert found == [
        'Variable "fast" (line 25) has declaredType="EverySecond" which has not been defined.'
    ]


def test_partitions_count_their_activations(fmu: Partitions) -> None:
    fmu.begin()
    for t in range(8):
        assert fmu.activate("fast", t) == OK
        if t % 8 < 2:
            assert fmu.activate("request", t) == OK
        if t % 4 == 3:
            assert fmu.activate("slow", t) == OK
        if t == 4:
            assert fmu.activate("later", t) == OK
    assert {name: fmu.get(name) for name in COUNTS} == {
        "fastTicks": 8,
        "requestTicks": 2,
        "slowTicks": 2,
        "laterTicks": 1,
        "total": 11,
    }
    # total is 5 at 2 s, later is announced at 4 s, total is 10 at 6 s
    assert fmu.updates == [(True, None), (False, 0.0), (True, None)]
    assert fmu.locks == ["lock", "unlock"] * 11


def test_an_output_clock_is_active_in_one_answer(fmu: Partitions) -> None:
    fmu.begin(after=-1.0)
    answers: list[bool] = []
    fmu.asks = lambda: answers.extend([fmu.fifth(), fmu.fifth()])
    for t in range(5):
        assert fmu.activate("fast", t) == OK
    assert answers == [True, False]


def test_an_importer_that_does_not_ask_is_stopped(fmu: Partitions) -> None:
    fmu.begin(after=0.0)
    fmu.asks = lambda: None
    assert fmu.activate("fast", 0.0) == ERROR
    assert fmu.log == [
        "The importer has not asked for the clock 'later' in Clock Update Mode, at t = 0 s."
    ]


@pytest.mark.parametrize(
    ("clock", "time", "message"),
    [
        ("fast", 0.0, "the model partition of 'fast' was activated at t = 0 s before"),
        ("fast", 0.5, "the clock 'fast' is to tick at t = 1 s, and not at 0.5 s"),
        ("slow", 2.0, "the clock 'slow' is to tick at t = 3 s, and not at 2 s"),
        ("later", 1.0, "the clock 'later' cannot tick at t = 1 s, because its interval is not yet"),
        ("request", -1.0, "the activation time is -1 s, but the last one was 0 s"),
        ("fifth", 1.0, "the variable 'fifth' (value reference 14) cannot be set"),
    ],
)
def test_a_wrong_activation_is_refused(
    fmu: Partitions, clock: str, time: float, message: str
) -> None:
    fmu.begin()
    assert fmu.activate("fast", 0.0) == OK
    assert fmu.activate(clock, time) == ERROR
    assert fmu.log[-1].startswith(f"fmi3ActivateModelPartition: {message}")


def test_reading_after_setting_needs_an_activation(fmu: Partitions) -> None:
    fmu.begin()
    assert fmu.activate("fast", 0.0) == OK
    assert fmu.set_amount(3) == OK
    assert fmu.get("total") is None
    assert fmu.activate("request", 0.0) == OK
    assert fmu.get("total") == 2


def test_the_interval_of_a_countdown_clock_is_refused_in_clock_activation_mode(
    fmu: Partitions,
) -> None:
    """FMI 3.0, 5.2.2: there the functions are allowed for tunable and changing clocks."""
    fmu.begin(after=0.0)
    assert fmu.activate("fast", 0.0) == OK
    with pytest.raises(AssertionError):
        fmu.later()
    assert "the interval of the countdown clock 'later' is given in Clock Update" in fmu.log[-1]


@pytest.mark.parametrize(
    "call", ["EnterEventMode", "EnterStepMode", "UpdateDiscreteStates", "SetClock", "DoStep"]
)
def test_functions_of_other_interfaces_are_refused(fmu: Partitions, call: str) -> None:
    fmu.begin()
    rooms = [ctypes.byref(ctypes.c_double()) for _ in range(4)]
    arguments: dict[str, list[Any]] = {
        "UpdateDiscreteStates": (rooms * 2)[:6],
        "SetClock": [ctypes.byref(ctypes.c_uint32(10)), ctypes.c_size_t(1), *rooms[:1]],
        "DoStep": [ctypes.c_double(0.0), ctypes.c_double(1.0), ctypes.c_bool(False), *rooms],
    }
    assert fmu.call(call, *arguments.get(call, [])) == ERROR
    assert fmu.log == [f"fmi3{call} is not allowed in Clock Activation Mode."]
