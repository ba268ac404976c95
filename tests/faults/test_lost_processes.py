"""The FMU ``Faulty`` in a process of its own: whatever it does in whatever call, the run ends as its policy says."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from processes import CRASHED, IS_WINE, PATIENCE

from fmimaster import (
    AccuracyWarning,
    FmuLostError,
    Results,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import Jacobi, Waveform

VERSIONS = ("fmi2", "fmi3")
FAULTS = {"crash": 9, "abort": 10, "exit": 11, "overflow": 12, "hang": 13, "memory": 14}
SIGNALS = {"crash": CRASHED, "abort": "SIGABRT", "overflow": "SIGSEGV", "exit": ""}
if sys.platform == "win32":
    SIGNALS |= {"abort": "", "overflow": "a stack overflow (0xC00000FD)"}
CALLS = {
    "fmi2": (
        *("Instantiate", "SetupExperiment", "EnterInitializationMode", "SetReal", "GetReal"),
        *("ExitInitializationMode", "GetFMUstate", "DoStep", "SetFMUstate", "FreeFMUstate"),
        *("SerializeFMUstate", "Terminate", "FreeInstance"),
    ),
    "fmi3": (
        *("Instantiate", "EnterInitializationMode", "SetFloat64", "GetFloat64"),
        *("ExitInitializationMode", "GetFMUState", "DoStep", "SetFMUState", "FreeFMUState"),
        *("SerializeFMUState", "Terminate", "FreeInstance"),
    ),
}
"""Those of a run with sweeps whose calls are recorded; the last two come after the last step."""
DEADLINE = 0.5
"""[s] A healthy call on a loaded machine may need more than 0.2 s."""
MEMORY = 200 * 2**20
"""[bytes] beyond what the process has at its start"""


def pump(fmu: Path | str, values: dict[str, Any], **settings: Any) -> Simulation:
    """A motor and a pump that feed each other; the steps are done twice, so that states are saved and restored."""
    builder = SystemBuilder("motor and pump")
    builder.add("motor", reference_path("fmi3/Dahlquist.fmu"), {"x": 2.0, "k": 0.5})
    builder.add("pump", fmu, values)
    builder.connect("motor.x", "pump.u")
    builder.connect("pump.x", "motor.u")
    return Simulation(
        builder,
        algorithm=Waveform(Jacobi(), sweeps=2),
        stop_time=1.0,
        step_size="1/8",
        call_timeout=DEADLINE,
        memory_limit=MEMORY,
        isolate=["pump"],
        **settings,
    )


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """After all tests of this file: neither a process, a descriptor, a file nor shared memory."""
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        for version in VERSIONS:
            undisturbed(version)  # the preloaded process stays
        if sys.platform != "linux":  # nothing tells what is left
            yield
            return
        before, others = left(), shared()
        yield
        assert left() == before
        until = time.monotonic() + PATIENCE
        while shared() - others and time.monotonic() < until:
            time.sleep(0.05)  # other processes have shared memory too, for a moment
        assert not shared() - others
        assert not list(folder.iterdir())


def left() -> tuple[int, int]:
    """Processes below this one, its descriptors."""
    gc.collect()
    of = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        of[int(stat.parent.name)] = int(fields[1])
    found, waiting = 0, [os.getpid()]
    while waiting:
        parent = waiting.pop()
        children = [child for child, its in of.items() if its == parent]
        found += len(children)
        waiting += children
    return found, len(list(Path("/proc/self/fd").iterdir()))


def shared() -> set[str]:
    """Names of shared memory, of all processes."""
    return {path.name for path in Path("/dev/shm").iterdir()}


def undisturbed(version: str) -> Results:
    """The run without a fault."""
    if version not in _UNDISTURBED:
        _UNDISTURBED[version] = pump(reference_path(f"{version}/Faulty.fmu"), {}).run()
    return _UNDISTURBED[version]


_UNDISTURBED: dict[str, Results] = {}


def assert_equal(found: Results, expected: Results) -> None:
    for name in ("time", "motor.x", "pump.x"):
        np.testing.assert_array_equal(found[name], expected[name][: found.rows])
    assert found.rows == expected.rows


AFTER_THE_LAST_STEP = ("Terminate", "FreeInstance")
RESTARTS_ONLY = ("SerializeFMUState", "SerializeFMUstate")

Case = tuple[str, str, str]

FAULTS_OF_STEPS = [("fmi2", "DoStep", fault) for fault in FAULTS]
CRASHES = [("fmi3", call, "crash") for call in CALLS["fmi3"]]
USUAL: dict[str, list[Case]] = {
    "test_a_run_stops_with_its_results": FAULTS_OF_STEPS,
    "test_a_run_goes_on_after_a_restart": CRASHES,
    "test_a_run_goes_on_without_the_fmu": [CRASHES[4], CRASHES[5], CRASHES[6]],
}
"""The cases of each test; with --repetitions each fault in each call of both versions."""
EVERY_CASE = [(v, call, fault) for v in VERSIONS for call, fault in product(CALLS[v], FAULTS)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        every = metafunc.config.getoption("--repetitions") is not None
        cases = EVERY_CASE if every else USUAL[metafunc.function.__name__]
        metafunc.parametrize("case", cases, ids=["-".join(case) for case in cases])


@pytest.fixture
def faulty(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Simulation]:
    """faulty(policy, is_once): the simulation of a case; the fault may be in the first such call only."""
    version, call, fault = case

    def make(policy: str, *, is_once: bool) -> Simulation:
        marker = tmp_path / "marker"
        marker.unlink(missing_ok=True)
        values = {"fault": FAULTS[fault], "call": call, "marker": str(marker) if is_once else ""}
        if call == "DoStep":
            values["faultTime"] = 0.5
        if call == "Instantiate":
            for name, value in values.items():
                monkeypatch.setenv(f"FAULTY_{name.upper()}", str(value))
            values = {}
        return pump(reference_path(f"{version}/Faulty.fmu"), values, on_fault=policy)

    return make


def test_a_run_stops_with_its_results(case: Case, faulty: Callable[..., Simulation]) -> None:
    version, call, fault = case
    simulation = faulty("stop", is_once=False)
    if call in (*RESTARTS_ONLY, "FreeInstance"):
        assert_equal(simulation.run(), undisturbed(version))
        return
    with pytest.raises(FmuLostError) as caught:
        simulation.run()
    assert caught.value.instance == "pump"
    assert "'pump'" in str(caught.value)
    if fault in SIGNALS and not (IS_WINE and fault == "overflow"):  # wine hangs
        assert caught.value.signal == SIGNALS[fault]
    found = caught.value.results
    rows = 0 if found is None else found.rows
    if rows:
        expected = undisturbed(version)
        np.testing.assert_array_equal(found["pump.x"], expected["pump.x"][:rows])
    if call == "DoStep":
        assert caught.value.function == f"{version}DoStep"
        assert caught.value.time == 0.5
        assert found.time[-1] == 0.5


def test_a_run_goes_on_after_a_restart(case: Case, faulty: Callable[..., Simulation]) -> None:
    assert_equal(faulty("restart", is_once=True).run(), undisturbed(case[0]))


def test_a_run_goes_on_without_the_fmu(case: Case, faulty: Callable[..., Simulation]) -> None:
    simulation = faulty("drop", is_once=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        try:
            found = simulation.run()
        except FmuLostError as error:
            assert error.results is None or error.results.rows <= 1  # noqa: PT017
            return
    assert found.time[-1] == 1.0
    assert set(found["pump.dropped"]) <= {0.0, 1.0}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("has_state", [True, False], ids=["state", "replay"])
def test_a_crash_at_3_s_leaves_the_results_as_they_are(
    version: str, has_state: bool, tmp_path: Path, repetitions: Callable[[int], range]
) -> None:
    fmu = edited_fmu(
        reference_path(f"{version}/Faulty.fmu"),
        tmp_path / "Faulty.fmu",
        capabilities={}
        if has_state
        else {"canSerializeFMUState": None, "canGetAndSetFMUState": None},
    )
    marker = tmp_path / "marker"
    values = {"fault": FAULTS["crash"], "faultTime": 3.0, "marker": str(marker)}
    expected = crashing(fmu, {}).run()
    for _ in repetitions(1):
        marker.unlink(missing_ok=True)
        found = crashing(fmu, values).run()
        assert found.statistics.notes[-1] == "'pump' was started again in a new process once."
        assert_equal(found, expected)
        assert marker.exists()


def crashing(fmu: Path, values: dict[str, Any]) -> Simulation:
    builder = SystemBuilder("motor and pump")
    builder.add("motor", reference_path("fmi3/Dahlquist.fmu"), {"x": 2.0, "k": 0.5})
    builder.add("pump", fmu, values)
    builder.connect("motor.x", "pump.u")
    builder.connect("pump.x", "motor.u")
    return Simulation(builder, stop_time=5.0, step_size="1/10", on_fault="restart")
