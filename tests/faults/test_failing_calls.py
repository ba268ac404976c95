"""An FMU that fails at its n-th call, for every n and every status: nothing leaks, the message names it, rows are kept."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_fmu import PythonFmu

import fmimaster.session.launch
from fmimaster import Progress, SystemBuilder, reference_path
from fmimaster.algorithms import Jacobi
from fmimaster.base.errors import (
    CallError,
    FileError,
    Interrupted,
    ModelError,
    NotANumberError,
    SimulationError,
)
from fmimaster.fmu.binary import BinaryInstance
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.system.states import FmiCall

STEPS = 3
SETTINGS: dict[str, Any] = {"algorithm": Jacobi(), "stop_time": 1.5, "step_size": 0.5}
RING_SETTINGS: dict[str, Any] = {
    **SETTINGS,
    "sequence": ["tank", "pump", "pipe"],
    "loops": "real",  # or dependencies are measured at the start
}

needs_kernel = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")
EXECUTORS = [Backend.REFERENCE, pytest.param(Backend.NATIVE, marks=needs_kernel)]
on_every_backend = pytest.mark.parametrize("backend", EXECUTORS, ids=lambda e: e.value)

# FMUs written in Python -----------------------------------------------------------------------------------------------


def units() -> dict[str, PythonFmu]:
    """Three integrators in a ring; ``pump`` is the one that fails."""

    def step(v: Any, h: float) -> None:
        v.x += h * v.u

    return {
        name: PythonFmu(
            parameters={"k": 1.0},
            inputs={"u": 0.0},
            states={"x": 1.0},
            outputs={"y": lambda v: v.k * v.x},
            step=step,
        )
        for name in ("tank", "pump", "pipe")
    }


RING = ["tank.y -> pump.u", "pump.y -> pipe.u", "pipe.y -> tank.u"]
START = {"pump.k": 2.0, "pump.x": 0.5}


class Failure:
    """A run in which the pump fails at its n-th call."""

    def __init__(
        self, simulation: Callable[..., Simulation], n: int | None, status: str, backend: Backend
    ) -> None:
        self.units = units()
        self.units["pump"].fails_at = n
        self.units["pump"].status = status
        self.error: SimulationError | None = None
        self.results: Results | None = None
        try:
            run = simulation(self.units, RING, START, backend=backend, **RING_SETTINGS)
            self.results = run.run()
        except SimulationError as error:
            self.error = error
            self.results = error.results
        self.log = self.units["pump"].instances[0].log

    @property
    def frees(self) -> list[int]:
        return [i.frees for unit in self.units.values() for i in unit.instances]


CALLS = [
    # the calls of the pump if it does not fail
    FmiCall.SET_START,
    FmiCall.ENTER_INITIALIZATION_MODE,
    FmiCall.SET_START,
    FmiCall.SET_INPUT,
    FmiCall.GET,
    FmiCall.EXIT_INITIALIZATION_MODE,
    FmiCall.GET,
    *[FmiCall.SET_INPUT, FmiCall.DO_STEP, FmiCall.GET] * STEPS,
    FmiCall.TERMINATE,
]
DO_STEPS = [n for n, call in enumerate(CALLS, 1) if call is FmiCall.DO_STEP]
READS = [n for n, call in enumerate(CALLS, 1) if call is FmiCall.GET][1:]
"""In Step Mode: after each of them a row is taken, if no other instance fails."""


@pytest.fixture
def fail(simulation: Callable[..., Simulation]) -> Callable[..., Failure]:
    """fail(n, status, backend): a run in which the pump fails at its n-th call."""
    return lambda n, status, backend=Backend.REFERENCE: Failure(simulation, n, status, backend)


Fail = Callable[..., Failure]


@on_every_backend
def test_without_a_failure_the_calls_are_those_that_are_expected(
    fail: Fail, backend: Backend
) -> None:
    run = fail(None, "", backend)
    assert [call for call, _ in run.log] == CALLS
    assert run.error is None
    assert run.frees == [1, 1, 1]


@on_every_backend
@pytest.mark.parametrize("n", range(1, len(CALLS) + 1))
@pytest.mark.parametrize("status", ["Error", "Fatal", "Discard"])
def test_a_call_that_fails_ends_the_run(fail: Fail, n: int, status: str, backend: Backend) -> None:
    run = fail(n, status, backend)
    assert isinstance(run.error, CallError)
    # the message and the facts name the instance and the function
    assert "'pump'" in str(run.error)
    is_discarded = status == "Discard" and n in DO_STEPS
    function = "DoStep" if is_discarded else CALLS[n - 1].value
    assert (run.error.instance, run.error.function, run.error.status) == ("pump", function, status)
    # the failing call was the last, and each instance is freed exactly once
    assert len(run.log) == n
    assert run.frees == [1, 1, 1]


@on_every_backend
@pytest.mark.parametrize("n", range(1, len(CALLS) + 1))
def test_rows_until_a_failure_are_those_of_a_healthy_run(
    fail: Fail, n: int, backend: Backend
) -> None:
    healthy, run = fail(None, "", backend).results, fail(n, "Error", backend)
    assert healthy is not None
    assert run.results is not None
    rows = sum(n > read for read in READS)
    assert run.results.rows == rows
    for name in ("time", *healthy.names):
        assert run.results[name].tolist() == healthy[name][:rows].tolist()


@on_every_backend
@pytest.mark.parametrize("k", range(STEPS))
def test_a_discarded_step_says_when_and_what_to_do(fail: Fail, k: int, backend: Backend) -> None:
    run = fail(DO_STEPS[k], "Discard", backend)
    message = str(run.error)
    assert f"DoStep of 'pump' was discarded at t = {k / 2:g} s (step 0.5 s)" in message
    assert "Use a smaller step size" in message
    assert run.error is not None
    assert run.error.time == k / 2


@on_every_backend
@pytest.mark.parametrize("k", range(STEPS))
def test_an_fmu_that_ends_the_simulation_ends_it_in_order(
    fail: Fail, k: int, backend: Backend
) -> None:
    run = fail(DO_STEPS[k], "Terminate", backend)
    assert run.error is None
    assert run.results is not None
    assert run.results.time.tolist() == [i / 2 for i in range(k + 2)]
    assert [call for call, _ in run.log][-2:] == [FmiCall.GET, FmiCall.TERMINATE]
    assert run.frees == [1, 1, 1]


@on_every_backend
@pytest.mark.parametrize("k", range(STEPS))
def test_if_an_fmu_ends_the_simulation_within_a_step_the_last_row_is_where_all_have_been(
    fail: Fail, k: int, backend: Backend
) -> None:
    run, healthy = fail(DO_STEPS[k], "Terminate within", backend), fail(None, "", backend)
    assert run.error is None
    assert run.results is not None
    assert healthy.results is not None
    for name in ("time", *healthy.results.names):
        assert run.results[name].tolist() == healthy.results[name][: k + 1].tolist()
    assert run.log[-1].call is FmiCall.TERMINATE


@on_every_backend
def test_if_the_only_fmu_ends_the_simulation_within_a_step_there_is_a_row_of_that_time(
    simulation: Callable[..., Simulation], backend: Backend
) -> None:
    clock = PythonFmu(outputs={"t": lambda v: v.t})
    clock.fails_at, clock.status = 6, "Terminate within"  # its second step
    results = simulation({"clock": clock}, backend=backend, **SETTINGS).run()
    assert clock.instances[0].log[5].call is FmiCall.DO_STEP
    assert results.time.tolist() == results["clock.t"].tolist() == [0.0, 0.5, 0.75]


@on_every_backend
@pytest.mark.parametrize("k", range(STEPS))
def test_a_nan_ends_the_run_with_the_rows_before_it(fail: Fail, k: int, backend: Backend) -> None:
    run = fail(DO_STEPS[k], "NaN", backend)
    assert isinstance(run.error, NotANumberError)
    assert "Output 'pump.y' is NaN" in str(run.error)
    assert run.error.time == (k + 1) / 2
    assert run.results is not None
    assert run.results.time.tolist() == [i / 2 for i in range(k + 1)]
    assert run.frees == [1, 1, 1]


@on_every_backend
def test_a_nan_that_is_found_during_the_run_is_not_its_own_cause(
    simulation: Callable[..., Simulation], backend: Backend
) -> None:
    """Else who follows the causes of an error comes to no end."""
    breaks = PythonFmu(outputs={"y": lambda v: np.nan if v.t >= 1.0 else v.t})
    long = simulation({"pump": breaks}, backend=backend, stop_time=120, step_size="1/100")
    with pytest.raises(NotANumberError, match=r"at t = 1 s") as caught:
        long.run()
    assert caught.value.__cause__ is None


@on_every_backend
def test_an_infinite_output_ends_the_run_as_nan_does(
    simulation: Callable[..., Simulation], backend: Backend
) -> None:
    grows = PythonFmu(outputs={"y": lambda v: np.inf if v.t >= 1.0 else v.t})
    with pytest.raises(NotANumberError, match=r"Output 'pump\.y' is infinite at t = 1 s") as caught:
        simulation({"pump": grows}, backend=backend, **SETTINGS).run()
    assert caught.value.results.time.tolist() == [0.0, 0.5]


def test_if_one_instance_cannot_be_made_the_others_are_freed(
    simulation: Callable[..., Simulation], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = units()

    def refuse(name: str, *_: object) -> None:
        raise ModelError(f"'{name}' refuses")

    monkeypatch.setattr(made["pump"], "instantiate", refuse)
    with pytest.raises(ModelError, match="'pump' refuses"):
        simulation(made, RING, **RING_SETTINGS).run()
    assert [i.frees for i in made["tank"].instances] == [1]
    assert made["pipe"].instances == []


@on_every_backend
def test_an_interrupted_run_keeps_its_rows_and_frees_all(
    simulation: Callable[..., Simulation], backend: Backend
) -> None:
    made = units()
    run = simulation(made, RING, backend=backend, stop_time=1e6, step_size=0.5)

    def press_ctrl_c(progress: Progress) -> None:
        if progress.time > 0.0:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"^Interrupted at t = ") as caught:
        run.run(press_ctrl_c)
    results = caught.value.results
    assert results is not None
    assert caught.value.time is not None
    assert results.time[-1] == caught.value.time > 0.0
    assert results.time.tolist() == [k / 2 for k in range(results.rows)]
    assert [i.frees for unit in made.values() for i in unit.instances] == [1, 1, 1]


# The reference FMU Faulty ---------------------------------------------------------------------------------------------

NONE, WARNS, DISCARDS, FAILS, DIES, NOT_A_NUMBER, REFUSES, PRINTS, TERMINATES = range(9)
FAULTS = range(9)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where archives are unpacked: an own folder, which must be empty after each test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def faulty(version: str, fault: int, **options: Any) -> Simulation:
    """Faulty as 'pump' beside a healthy FMU that it feeds; the fault is in all steps from 0.5 s on."""
    builder = SystemBuilder("faulty")
    builder.add("pump", reference_path(f"{version}/Faulty.fmu"), {"fault": fault, "faultTime": 0.5})
    builder.add("tank", reference_path(f"{version}/Dahlquist.fmu"))
    builder.connect("pump.x", "tank.u")
    return Simulation(builder.build(stop_time=1, step_size=0.1), **options)


def failed(version: str, fault: int, kind: type[Any], **options: Any) -> Any:
    with pytest.raises(kind) as caught:
        faulty(version, fault, **options).run()
    return caught.value


both_versions = pytest.mark.parametrize("version", ["fmi2", "fmi3"])
UNTIL_THE_FAULT = [k / 10 for k in range(6)]


@both_versions
@on_every_backend
@pytest.mark.parametrize(("fault", "status"), [(FAILS, "Error"), (DIES, "Fatal")])
def test_an_error_of_a_step_is_told_with_the_words_of_the_fmu(
    version: str, fault: int, status: str, backend: Backend
) -> None:
    error = failed(version, fault, CallError, backend=backend)
    assert f"{version}DoStep of 'pump' returned {version}{status} at t = 0.5 s" in str(error)
    assert f"Faulty: told to return {status} at t = 0.5 s." in str(error)
    assert error.messages[-1] == f"Faulty: told to return {status} at t = 0.5 s."
    assert (error.instance, error.time) == ("pump", 0.5)
    assert error.results.time.tolist() == UNTIL_THE_FAULT


@both_versions
@on_every_backend
def test_a_discarded_step_of_an_fmu_is_told_with_its_words(version: str, backend: Backend) -> None:
    error = failed(version, DISCARDS, CallError, backend=backend)
    assert "DoStep of 'pump' was discarded at t = 0.5 s" in str(error)
    assert "Faulty: told to return Discard at t = 0.5 s." in str(error)
    assert (error.instance, error.status) == ("pump", "Discard")
    assert error.results.time.tolist() == UNTIL_THE_FAULT


@both_versions
@on_every_backend
def test_an_output_that_becomes_nan_is_an_error(version: str, backend: Backend) -> None:
    error = failed(version, NOT_A_NUMBER, NotANumberError, backend=backend)
    assert "Output 'pump.x' is NaN at t = 0.6 s" in str(error)
    assert error.results.time.tolist() == UNTIL_THE_FAULT


@both_versions
@on_every_backend
def test_a_nan_may_be_allowed(version: str, backend: Backend) -> None:
    results = faulty(version, NOT_A_NUMBER, backend=backend, allow_nan=True).run()
    assert np.isnan(results["pump.x"]).tolist() == [False] * 6 + [True] * 5


@both_versions
@on_every_backend
def test_an_error_in_initialization_is_told_without_rows(version: str, backend: Backend) -> None:
    error = failed(version, REFUSES, CallError, backend=backend)
    assert f"{version}ExitInitializationMode of 'pump' returned {version}Error" in str(error)
    assert error.results.rows == 0


@both_versions
@on_every_backend
@pytest.mark.parametrize("fault", [WARNS, PRINTS])
def test_warnings_and_printed_lines_change_no_value(
    version: str, fault: int, backend: Backend
) -> None:
    healthy = faulty(version, NONE, backend=backend).run()
    results = faulty(version, fault, backend=backend).run()
    assert results.rows == 11
    assert all(np.array_equal(results[n], healthy[n]) for n in healthy.names)


@both_versions
@on_every_backend
def test_warnings_are_logged_if_all_messages_are_asked_for(
    version: str, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    faulty(version, WARNS, backend=backend, debug_logging=True).run()
    told = [r for r in caplog.records if "told to return Warning" in r.getMessage()]
    assert len(told) == 5
    assert {(r.name, r.levelname) for r in told} == {("fmimaster", "WARNING")}
    assert "pump" in told[0].getMessage()


@both_versions
@on_every_backend
def test_an_fmu_may_end_the_simulation(version: str, backend: Backend) -> None:
    results = faulty(version, TERMINATES, backend=backend).run()
    # the step from 0.5 s was done before the FMU said so
    assert results.time.tolist() == [k / 10 for k in range(7)]
    assert results["pump.x"][-1] == pytest.approx(np.exp(-0.6), rel=1e-14)


# Nothing is left behind -----------------------------------------------------------------------------------------------


def test_facts_that_cannot_be_written_do_not_hide_why_a_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise FileError("no room for the facts")

    monkeypatch.setattr(fmimaster.session.launch, "finish_facts", full)
    with pytest.raises(CallError, match="DoStep") as caught:
        faulty("fmi3", FAILS).run(output_file=tmp_path / "rows.csv")
    assert caught.value.results is not None
    assert "no room for the facts" in caplog.text
    with pytest.raises(FileError, match="no room"):
        faulty("fmi3", NONE).run(output_file=tmp_path / "rows.csv")


def left_open() -> tuple[int, list[str]]:
    """Number of open files, and libraries of FMUs in the memory of this process."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return len(os.listdir("/proc/self/fd")), [m for m in maps if "Faulty" in m or "Dahlquist" in m]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@both_versions
@on_every_backend
def test_fifty_runs_with_all_faults_leave_no_file_and_no_library_open(
    version: str, backend: Backend
) -> None:
    def run(fault: int) -> None:
        with contextlib.suppress(SimulationError):
            faulty(version, fault, backend=backend).run()

    run(NONE)  # what is made once: the log, the callbacks
    before = left_open()
    for k in range(50):
        run(FAULTS[k % len(FAULTS)])
    assert left_open() == before
    assert before[1] == []


@pytest.mark.in_this_process("counts calls of free in the process of the run")
@both_versions
@on_every_backend
@pytest.mark.parametrize("fault", FAULTS)
def test_every_instance_of_an_fmu_is_freed_exactly_once(
    version: str, fault: int, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[str] = []
    free = BinaryInstance.free

    def counted(self: BinaryInstance) -> None:
        freed.append(self.name)
        free(self)

    monkeypatch.setattr(BinaryInstance, "free", counted)
    with suppress(SimulationError):
        faulty(version, fault, backend=backend).run()
    assert sorted(freed) == ["pump", "tank"]


@both_versions
def test_the_working_directory_stays(version: str) -> None:
    before = Path.cwd()
    failed(version, FAILS, CallError)
    assert Path.cwd() == before
