"""An exported system that is called in wrong ways: an error with a message, never a crash."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from ctypes import byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import fmpy
import pytest
from fmpy import extract, platform, platform_tuple, read_model_description

from fmimaster import Simulation, reference_path
from fmimaster.kernel import system_libraries

OK, DISCARD, ERROR = 0, 2, 3
STEP = 0.001
MODEL_EXCHANGE = (
    *("EnterEventMode", "NewDiscreteStates", "EnterContinuousTimeMode", "SetTime"),
    *("CompletedIntegratorStep", "SetContinuousStates", "GetDerivatives"),
    *("GetEventIndicators", "GetContinuousStates", "GetNominalsOfContinuousStates"),
)
"""Functions of FMI 2.0 that a Co-Simulation FMU does not have."""

Log2 = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int, c_char_p, c_char_p, c_char_p)
Log3 = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)


class Callbacks(ctypes.Structure):
    _fields_ = [("logger", Log2), *((name, c_void_p) for name in "afse")]


class Exported:
    """The quarter car as an FMU, unpacked and loaded; its functions are called as they are in C."""

    def __init__(self, folder: Path, version: int) -> None:
        file = folder / f"car{version}.fmu"
        car = Simulation(reference_path(f"systems/quarter-car-a-fmi{version}.ssp"))
        car.export(file, fmi_version=version)
        self.version, self.folder = version, folder / f"ünpacked {version}"
        extract(str(file), str(self.folder))
        self.description = read_model_description(file)
        self.references = {v.name: v.valueReference for v in self.description.modelVariables}
        self.said: list[str] = []
        library = f"quarter_car{'.dll' if sys.platform == 'win32' else '.so'}"
        place = platform if version == 2 else platform_tuple
        self.library = ctypes.CDLL(str(self.folder / "binaries" / place / library))
        self._log2 = Log2(
            lambda e, who, status, category, form, text: self.said.append(text.decode())
        )
        self._log3 = Log3(lambda e, status, category, text: self.said.append(text.decode()))
        self._callbacks = Callbacks(self._log2)

    def instantiated(
        self, name: bytes | None = b"car", token: bytes | None = None, place: bytes | None = b""
    ) -> Any:
        """An instance; None if it was refused."""
        token = str(self.description.guid).encode() if token is None else token
        resources = self.folder / "resources"
        if self.version == 2:
            make = self.library.fmi2Instantiate
            location = resources.as_uri().encode() if place == b"" else place
            given: tuple[Any, ...] = (name, 1, token, location, byref(self._callbacks), 0, 0)
        else:
            make = self.library.fmi3InstantiateCoSimulation
            location = f"{resources}/".encode() if place == b"" else place
            flags = (c_bool(), c_bool(), c_bool(), c_bool())
            given = (name, token, location, *flags, None, c_size_t(), None, self._log3, None)
        make.restype = c_void_p
        found = make(*given)
        return None if found is None else c_void_p(found)

    def __call__(self, name: str, *arguments: Any) -> int:
        return int(self.library[f"fmi{self.version}{name}"](*arguments))

    def begun(self) -> Any:
        """An instance in Step Mode."""
        car = self.instantiated()
        if self.version == 2:
            assert self("SetupExperiment", car, 0, c_double(), c_double(), 0, c_double()) == OK
            assert self("EnterInitializationMode", car) == OK
        else:
            given = (c_bool(), c_double(), c_double(), c_bool(), c_double())
            assert self("EnterInitializationMode", car, *given) == OK
        assert self("ExitInitializationMode", car) == OK
        return car

    def step(self, car: Any, time: float, size: float = STEP) -> int:
        given = (car, c_double(time), c_double(size))
        if self.version == 2:
            return self("DoStep", *given, 1)
        flags = (byref(c_bool()), byref(c_bool()), byref(c_bool()), byref(c_double()))
        return self("DoStep", *given, c_bool(True), *flags)

    def get(self, car: Any, name: str) -> float:
        value, reference = c_double(), c_uint32(self.references[name])
        given = (car, byref(reference), c_size_t(1), byref(value))
        more = () if self.version == 2 else (c_size_t(1),)
        assert self("GetReal" if self.version == 2 else "GetFloat64", *given, *more) == OK
        return value.value

    def set(self, car: Any, name: str, value: float) -> int:
        given = (car, byref(c_uint32(self.references[name])), c_size_t(1), byref(c_double(value)))
        more = () if self.version == 2 else (c_size_t(1),)
        return self("SetReal" if self.version == 2 else "SetFloat64", *given, *more)


@pytest.fixture(scope="module", params=[2, 3])
def fmu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return Exported(tmp_path_factory.mktemp("exported"), request.param)


@pytest.fixture
def car(fmu: Exported) -> Iterator[Any]:
    instance = fmu.begun()
    fmu.said.clear()
    yield instance
    fmu("FreeInstance", instance)


def test_the_library_has_all_functions_of_both_versions_and_needs_no_python() -> None:
    library = system_libraries()[platform_tuple]
    if sys.platform != "linux":
        pytest.skip("readelf shows libraries of Linux")
    shown = subprocess.run(
        ["readelf", "-dW", "--dyn-syms", library], capture_output=True, text=True, check=True
    )
    needed = [line.split("[")[1][:-1] for line in shown.stdout.splitlines() if "(NEEDED)" in line]
    assert all(
        name.split(".")[0] in ("libc", "libm", "ld-linux-x86-64", "libpthread") for name in needed
    )
    symbols = [
        line.split()[-1]
        for line in shown.stdout.splitlines()
        if "GLOBAL" in line and " UND " not in line
    ]
    assert all(name.startswith(("fmi2", "fmi3")) for name in symbols)
    headers = Path(fmpy.__file__).parent / "c-code"
    declared = {
        name
        for v in (2, 3)
        for name in re.findall(
            rf"FMI{v}_Export \w+ +(fmi{v}\w+);", (headers / f"fmi{v}Functions.h").read_text()
        )
    }
    assert declared - {*symbols} == {f"fmi2{name}" for name in MODEL_EXCHANGE}
    assert {*symbols} <= declared


def test_what_does_not_belong_to_the_fmu_is_refused_with_the_reason(fmu: Exported) -> None:
    for given, reason in (
        ({"token": b"{of another}"}, "token"),
        ({"name": b""}, "name"),
        ({"name": None}, "name"),
        ({"place": None}, "folder of resources"),
        ({"place": b"file:///nowhere"}, "interface.txt"),
    ):
        fmu.said.clear()
        assert fmu.instantiated(**given) is None
        assert reason in fmu.said[0]


def test_a_wrong_order_of_calls_is_an_error_that_names_the_mode(fmu: Exported, car: Any) -> None:
    assert fmu("ExitInitializationMode", car) == ERROR
    assert fmu.said == [f"fmi{fmu.version}ExitInitializationMode must not be called in Step Mode."]
    assert fmu.step(car, 0.5) == ERROR
    assert "the system is at t = 0 s" in fmu.said[-1]
    assert fmu.step(car, 0.0, 0.0) == ERROR
    assert fmu.step(car, 0.0, float("nan")) == ERROR
    assert fmu.step(car, 0.0) == OK  # none of them has changed anything
    assert fmu("Terminate", car) == OK
    assert fmu.step(car, STEP) == ERROR
    assert fmu("Reset", car) == OK


def test_null_arguments_are_errors_and_no_crash(fmu: Exported, car: Any) -> None:
    nothing = (None,) * 9
    functions = [name for name in exported_functions(fmu) if "Instantiate" not in name]
    for name in functions:
        if name not in ("GetVersion", "GetTypesPlatform", "FreeInstance"):
            assert fmu(name, *nothing) == ERROR, name
    get = "GetReal" if fmu.version == 2 else "GetFloat64"
    assert fmu(get, car, None, c_size_t(1), None, c_size_t(1)) == ERROR
    for name in ("SetFMUstate", "FreeFMUstate", "SerializedFMUstateSize", "GetFMUstate"):
        name = name if fmu.version == 2 else name.replace("FMUs", "FMUS")
        assert fmu(name, car, None, None, c_size_t()) == ERROR, name
    assert fmu.step(car, 0.0) == OK


def exported_functions(fmu: Exported) -> list[str]:
    from fmpy import fmi2, fmi3

    kind = fmi2.FMU2Slave if fmu.version == 2 else fmi3.FMU3Slave
    instance = kind(
        guid=fmu.description.guid,
        modelIdentifier="quarter_car",
        unzipDirectory=str(fmu.folder),
    )
    prefix = f"fmi{fmu.version}"
    return [n.removeprefix(prefix) for n in vars(instance) if n.startswith(prefix)]


def test_only_inputs_and_parameters_can_be_set_and_parameters_before_the_first_step(
    fmu: Exported, car: Any
) -> None:
    assert fmu.set(car, "wheel.road", 0.2) == OK
    assert fmu.set(car, "wheel.kc", 1.0) == ERROR
    assert "must not be set in Step Mode" in fmu.said[-1]
    assert fmu("Reset", car) == OK
    assert fmu.set(car, "wheel.kc", 1.0) == OK
    assert fmu.set(car, "wheel.force", 1.0) == ERROR


def test_bytes_that_are_no_state_are_refused(fmu: Exported, car: Any) -> None:
    get, size_of, to_bytes, from_bytes, free = (
        name if fmu.version == 2 else name.replace("FMUs", "FMUS").replace("DeS", "Des")
        for name in (
            *("GetFMUstate", "SerializedFMUstateSize", "SerializeFMUstate"),
            *("DeSerializeFMUstate", "FreeFMUstate"),
        )
    )
    state, size, other = c_void_p(), c_size_t(), c_void_p()
    assert fmu(get, car, byref(state)) == OK
    assert fmu(size_of, car, state, byref(size)) == OK
    content = ctypes.create_string_buffer(size.value)
    assert fmu(to_bytes, car, state, content, size) == OK
    assert fmu(to_bytes, car, state, content, c_size_t(size.value - 1)) == ERROR
    for n in (0, 1, 20, 100, size.value - 1):
        assert fmu(from_bytes, car, content, c_size_t(n), byref(other)) == ERROR, n
        assert other.value is None
    for k in range(0, 120, 3):
        damaged = ctypes.create_string_buffer(content.raw[:k] + b"\xff" + content.raw[k + 1 :])
        if fmu(from_bytes, car, damaged, size, byref(other)) == OK:
            assert fmu(free, car, byref(other)) == OK
    assert fmu(from_bytes, car, content, size, byref(other)) == OK
    assert fmu(free, car, byref(other)) == OK
    assert fmu(free, car, byref(state)) == OK
    assert fmu(free, car, byref(state)) == OK  # there is nothing
