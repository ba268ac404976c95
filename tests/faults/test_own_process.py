"""A run in a process of its own: nothing that an FMU does ends the command, and no accepted row is lost."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import Begun, Forks
from misbehaving_fmu import Act, misbehaving
from ssd_text import component, elements, ssd

from fmimaster import PythonComponent, Results, Simulation, SystemBuilder, reference_path
from fmimaster.apart import shared_run, watch
from fmimaster.apart.shared_run import SharedNumber, SharedRun
from fmimaster.base.errors import CallError, FmuLostError
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor

pytestmark = [
    pytest.mark.skipif(not watch.can_fork(), reason="runs are forked on Linux only"),
    pytest.mark.skipif(native_executor() is None, reason="the kernel is not built"),
]

BACKENDS = [Backend.NATIVE, Backend.REFERENCE]
STEPS: dict[str, Any] = {"stop_time": 1, "step_size": "1/100"}
ROWS = 51
"""Up to t = 0.5 s, where the FMUs misbehave."""


# In Python ------------------------------------------------------------------------------------------------------------

SYSTEMS: list[tuple[str, dict[str, Any]]] = [
    ("fmi3/BouncingBall.fmu", {}),
    ("fmi3/Feedthrough.fmu", {"stop_time": 1, "step_size": 0.1}),
    ("systems/two-mass-b1-fmi3.ssp", {**STEPS, "event_clock": "predictive"}),
    ("systems/two-mass-b1-fmi3.ssp", {**STEPS, "output_interval": 0.1}),
    ("fmi3/Sampler.fmu", {"stop_time": 1}),
]


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("system", "settings"), SYSTEMS)
def test_the_results_are_the_same(system: str, settings: dict[str, Any], backend: Backend) -> None:
    here, there = (
        Simulation(reference_path(system), backend=backend, process=process, **settings).run()
        for process in (False, True)
    )
    np.testing.assert_array_equal(here.time, there.time)
    for name in here.names:
        np.testing.assert_array_equal(here[name], there[name])
    assert (here.events, tuple(here.steps)) == (there.events, tuple(there.steps))
    assert (here.units, here.metadata.keys()) == (there.units, there.metadata.keys())
    assert here.statistics.steps == there.statistics.steps
    assert here.statistics.rows == there.statistics.rows


ENDS = [
    ("crash", "", "was ended by SIGSEGV"),
    ("abort", "", "was ended by SIGABRT"),
    ("overflow", "", "was ended by SIGSEGV"),
    ("leave", "0", "has ended with status 0"),
    ("kill", "", "was ended by SIGKILL"),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("action", "argument", "how"), ENDS)
def test_each_end_is_told_and_no_row_is_lost(
    action: str, argument: str, how: str, backend: Backend, tmp_path: Path
) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", action, argument, since=0.5))
    with pytest.raises(FmuLostError, match=how) as caught:
        Simulation(fmu, backend=backend, process=True, **STEPS).run()
    error = caught.value
    assert (error.instance, error.function) == ("Misbehaving", "fmi3DoStep")
    assert error.time == pytest.approx(0.5)
    assert error.results is not None
    assert error.results.rows == error.results.statistics.rows == ROWS


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("Load", "the loading of the library of"),
        ("Instantiate", "the instantiation of 'Misbehaving'"),
        ("EnterInitializationMode", "EnterInitializationMode of 'Misbehaving'"),
        ("Get", "a Get function of 'Misbehaving'"),
    ],
)
def test_the_call_before_the_first_row_is_named(call: str, named: str, tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi2", Act(call, "crash"))
    with pytest.raises(FmuLostError, match=named) as caught:
        Simulation(fmu, process=True, **STEPS).run()
    assert "rows until then" not in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("version", "call"),
    [("fmi2", "GetDerivatives"), ("fmi2", "CompletedIntegratorStep"), ("fmi3", "SetTime")],
)
def test_the_call_of_an_integrator_is_named(
    version: str, call: str, backend: Backend, tmp_path: Path
) -> None:
    act = Act(call, "crash", since=0.35)
    fmu = misbehaving(tmp_path, version, act, interface="ModelExchange")
    with pytest.raises(FmuLostError) as caught:
        Simulation(fmu, process=True, backend=backend, **STEPS).run()
    assert caught.value.function == f"{version}{call}"


@pytest.mark.parametrize("call", ["Terminate", "FreeInstance", "Unload"])
def test_after_the_last_row_a_crash_is_a_warning(
    call: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act(call, "crash"))
    results = Simulation(fmu, process=True, **STEPS).run()
    assert (results.rows, results.statistics.steps) == (101, 100)
    [warning] = [text for text in caplog.messages if "All rows had been recorded" in text]
    assert "SIGSEGV" in warning


def test_an_error_is_that_of_the_run() -> None:
    fmu = reference_path("fmi3/Faulty.fmu")
    wrong = {"fault": 4, "faultTime": 0.5}
    simulation = Simulation(fmu, stop_time=1, step_size=0.1, start_values=wrong, process=True)
    with pytest.raises(CallError, match="returned fmi3Fatal") as caught:
        simulation.run()
    assert caught.value.results is not None
    assert caught.value.results.rows == 6


@pytest.mark.parametrize("action", ["hang", "spin"])
def test_a_call_is_ended_after_the_given_time(action: str, tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", action, since=0.5))
    with pytest.raises(FmuLostError, match="DoStep of 'Misbehaving' has not returned") as caught:
        Simulation(fmu, process=True, call_timeout=0.3, **STEPS).run()
    assert caught.value.results is not None
    assert caught.value.results.rows == ROWS


def test_no_fmu_has_another_process_because_of_a_limit(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3")
    simulation = Simulation(fmu, process=True, call_timeout=100, memory_limit=10**10, **STEPS)
    assert not simulation.prepare().isolated
    assert Simulation(fmu, call_timeout=100, **STEPS).prepare().isolated


def test_memory_beyond_the_limit_ends_the_run(tmp_path: Path) -> None:
    """On a machine so loaded that nobody looks in time, it ends as the first process when there is none left."""
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "memory", since=0.5))
    with pytest.raises(FmuLostError, match=r"of memory and was ended|no memory left") as caught:
        Simulation(fmu, process=True, memory_limit=300_000_000, **STEPS).run()
    assert caught.value.results is not None
    assert caught.value.results.rows == ROWS


def test_events_before_a_crash_are_kept(tmp_path: Path) -> None:
    builder = SystemBuilder("both")
    crash = Act("DoStep", "crash", since=0.9)
    fmu = misbehaving(tmp_path, "fmi3", crash, canHandleVariableCommunicationStepSize="true")
    builder.add("pump", fmu)
    builder.add("ball", reference_path("fmi3/BouncingBall.fmu"))
    settings: dict[str, Any] = {"event_clock": "predictive", "step_size": "1/100"}
    with pytest.raises(FmuLostError) as caught:
        Simulation(builder.build(), process=True, stop_time=1, **settings).run()
    results = caught.value.results
    assert results is not None
    whole = Simulation(builder.build(), stop_time=0.9, **settings).run()
    assert results.events == whole.events
    assert results.events
    assert "failure" in results.metadata


class Scribbling(PythonComponent):
    """Writes into the file of the rows, as an FMU can that takes its descriptor for one of its own."""

    outputs: Mapping[str, Any] = {"x": 0.0, "text": "each row with text is passed on at once"}
    parameters: Mapping[str, Any] = {"place": 0, "dies": True}

    def step(self, t: float, h: float) -> None:
        self.x = t + h
        if t == 0.5:
            assert shared_run.current is not None
            os.pwrite(shared_run.current.spool, b"\xff" * 4, int(self.place))
            if self.dies:
                os.kill(os.getpid(), signal.SIGKILL)


IN_THE_FIRST_ROWS, IN_THEIR_HEAD = 12, 1
"""Bytes from the start of the file; without the length in its head, nothing behind it is found."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("place", "kept"), [(IN_THE_FIRST_ROWS, ROWS - 2), (IN_THEIR_HEAD, 0)])
def test_damaged_rows_do_not_hide_what_ended_the_run(
    place: int, kept: int, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    system = SystemBuilder("s")
    system.add("a", Scribbling(), {"place": place})
    with pytest.raises(FmuLostError, match="was ended by SIGKILL") as caught:
        Simulation(system, process=True, backend=backend, **STEPS).run()
    assert backend is Backend.REFERENCE or "in DoStep of 'a'" in str(caught.value)
    results = caught.value.results
    assert results is not None
    assert results.rows == results.statistics.rows == kept
    assert kept == 0 or results.time[-1] == 0.5
    [warning] = [text for text in caplog.messages if "is damaged" in text]
    assert f"The results lack {ROWS - kept} rows" in warning
    assert "An FMU may have written into a file that is not its own." in warning


def test_other_rows_than_damaged_ones_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    system = SystemBuilder("s")
    system.add("a", Scribbling(), {"place": IN_THE_FIRST_ROWS, "dies": False})
    results = Simulation(system, process=True, **STEPS).run()
    assert [*results["a.x"]] == [*results.time] == [k / 100 for k in range(2, 101)]
    assert "The results lack 2 rows" in caplog.text


# The command ----------------------------------------------------------------------------------------------------------

Begin = Callable[..., Begun]
Simulated = Callable[..., tuple[int, str, str]]


@pytest.fixture
def begun(forks: Forks) -> Begin:
    """begun(fmu, *options): the command, in the folder of the FMU; ``first`` is executed before it, in its interpreter."""

    def begin(fmu: Path, *options: str, first: str = "") -> Begun:
        times = ("--stop-time", "1", "--step-size", "1/100")
        return forks.begin("simulate", fmu.name, *times, *options, cwd=fmu.parent, first=first)

    return begin


@pytest.fixture
def simulated(begun: Begin) -> Simulated:
    """simulated(fmu, *options): exit status and both outputs."""

    def run(fmu: Path, *options: str) -> tuple[int, str, str]:
        process = begun(fmu, *options)
        out, err = process.communicate()
        return process.wait(), out, err

    return run


def waits_for(condition: Callable[[], bool]) -> None:
    """Wait for what certainly comes, on however slow a machine; pytest's own limit ends it otherwise."""
    while not condition():
        time.sleep(0.02)


def rows_of(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("\n") - 1 if file.is_file() else 0


@pytest.fixture
def crashing(tmp_path: Path) -> Path:
    return misbehaving(tmp_path, "fmi3", Act("DoStep", "crash", since=0.5))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_file_of_a_crashed_run_is_whole(
    simulated: Simulated, suffix: str, crashing: Path
) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    file = crashing.with_name(f"rows.{suffix}")
    status, _, err = simulated(crashing, "--output-file", file.name)
    assert status == 2
    assert "was ended by SIGSEGV, in fmi3DoStep of 'Misbehaving' at t = 0.5 s" in err
    assert f"{ROWS} rows written to {file.name}" in err
    results = Results.read(file)
    assert results.rows == ROWS
    assert "SIGSEGV" in results.metadata["failure"]
    assert not list(crashing.parent.glob("*.part"))


def test_rows_in_memory_are_in_the_answer_and_the_figure(
    simulated: Simulated, crashing: Path
) -> None:
    pytest.importorskip("matplotlib")
    status, out, err = simulated(crashing, "--json", "--plot", "rows.svg")
    facts = json.loads(out)
    assert (status, facts["rows"], facts["endTime"]) == (2, ROWS, 0.5)
    assert "SIGSEGV" in err
    assert crashing.with_name("rows.svg").is_file()


def test_a_crash_in_the_second_run_names_it_and_keeps_the_first(
    simulated: Simulated, tmp_path: Path
) -> None:
    """The second run of --check-step has 201 communication points: only it does so many steps."""
    fmu = misbehaving(tmp_path, "fmi3", Act("FreeInstance", "crash"))
    status, _, err = simulated(fmu, "--output-file", "rows.csv")
    assert (status, rows_of(tmp_path / "rows.csv")) == (0, 101)
    assert "warning: The process of the run was ended by SIGSEGV, in fmi3FreeInstance" in err
    status, _, err = simulated(fmu, "--output-file", "rows.csv", "--accuracy", "1e-3")
    assert status == 0
    assert rows_of(tmp_path / "rows.csv") > 100


@pytest.fixture
def ring(tmp_path: Path) -> Callable[[str], Path]:
    """ring(action): one of two FMUs does that in a step from t = 0.995 s on, which only half the steps have."""

    def make(action: str) -> Path:
        misbehaving(tmp_path, "fmi3", Act("DoStep", action, since=0.995), name="a")
        misbehaving(tmp_path, "fmi3", name="b")
        links = (
            f'<ssd:Connection startElement="{a}" startConnector="x" endElement="{b}" endConnector="u"/>'
            for a, b in ("ab", "ba")
        )
        units = (component(name, source=f"{name}.fmu") for name in "ab")
        system = f"{elements(*units)}<ssd:Connections>{''.join(links)}</ssd:Connections>"
        (tmp_path / "ring.ssd").write_text(ssd(system), encoding="utf-8")
        return tmp_path / "ring.ssd"

    return make


@pytest.mark.measured
@pytest.mark.parametrize(
    ("action", "options", "how"),
    [
        (
            "crash",
            (),
            "The process of the run was ended by SIGSEGV, in fmi3DoStep of 'a' at t = 0.995 s",
        ),
        ("leave", ("--check-step",), "has ended with status 0"),
        ("hang", ("--call-timeout", "0.5"), "fmi3DoStep of 'a' has not returned within 0.5 s"),
    ],
)
def test_the_end_of_the_process_that_measures_the_error_loses_nothing(
    ring: Callable[[str], Path],
    simulated: Simulated,
    action: str,
    options: tuple[str, ...],
    how: str,
) -> None:
    system = ring(action)
    status, _, err = simulated(system, "--output-file", "rows.csv", *options)
    assert status == 0
    assert "coupling error not measured: the second run has failed" in err
    assert how in err
    assert err.count("FmuLost") == err.count("warning: ") == 0
    assert Results.read(system.with_name("rows.csv")).rows == 101


@pytest.mark.measured
def test_ctrl_c_in_the_run_that_measures_the_error_keeps_the_results(
    ring: Callable[[str], Path], begun: Begin
) -> None:
    system = ring("hang")
    process = begun(system, "--output-file", "rows.csv", "--isolate", "none")
    file = system.with_name("rows.csv")
    waits_for(lambda: rows_of(file) == 101 or process.poll() is not None)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.wait() == 130
    assert "Interrupted when the simulation had ended" in err
    assert "101 rows written to rows.csv" in err
    assert Results.read(file).rows == 101


def ended(process: Begun, number: int, file: Path) -> tuple[int, str]:
    """Send a signal when all rows before the hanging step are in the file."""
    waits_for(lambda: rows_of(file) == ROWS or process.poll() is not None)
    process.send_signal(number)
    _, err = process.communicate()
    return process.wait(), err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_call_that_hangs_is_named_and_ended_with_its_rows(
    begun: Begin, number: int, tmp_path: Path
) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "spin", since=0.5))
    first = "import fmimaster.apart.run_watch as watch; watch.NAMED_AFTER = 0.2"
    process = begun(fmu, "--output-file", "rows.csv", first=first)
    status, err = ended(process, number, tmp_path / "rows.csv")
    assert status == 130
    assert "The call fmi3DoStep of 'Misbehaving' has not returned for 0 s" in err
    assert "Ctrl-C ends the run, and keeps its rows" in err
    assert "Interrupted at t = 0.5 s." in err
    assert rows_of(tmp_path / "rows.csv") == ROWS


def children(pid: int) -> Sequence[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    return [int(number) for number in text.split()]


def test_no_process_is_left_by_a_command_that_is_killed(begun: Begin, tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "hang", since=0.5))
    process = begun(fmu, "--output-file", "rows.csv")
    file = tmp_path / "rows.csv"
    waits_for(lambda: rows_of(file) == ROWS or process.poll() is not None)
    [run] = children(process.pid)
    process.kill()
    process.communicate()
    waits_for(lambda: not Path(f"/proc/{run}").exists() or is_dead(run))
    assert rows_of(file) == ROWS
    assert file.read_text(encoding="utf-8").endswith("\n")


def is_dead(pid: int) -> bool:
    """Whether a process has ended, and only waits for its new parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_the_command_survives_the_end_of_its_run(begun: Begin, tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act("DoStep", "hang", since=0.5))
    process = begun(fmu, "--output-file", "rows.csv")
    file = tmp_path / "rows.csv"
    waits_for(lambda: rows_of(file) == ROWS or process.poll() is not None)
    [run] = children(process.pid)
    os.kill(run, signal.SIGKILL)
    _, err = process.communicate()
    assert process.returncode == 2
    assert "was ended by SIGKILL, in fmi3DoStep of 'Misbehaving' at t = 0.5 s" in err
    assert f"{ROWS} rows written to rows.csv and rows.csv.json" in err
    assert rows_of(file) == ROWS
    assert "SIGKILL" in Results.read(file).metadata["failure"]


def test_the_numbers_of_passed_rows_change_together() -> None:
    """A run may be killed between two of them: rows were in the file twice."""
    shared = SharedRun()
    shared.passed_on(5, 0.4, (120, 5))
    shared.numbers[SharedNumber.NEXT_PASSED], shared.numbers[SharedNumber.NEXT_RECORDED] = 9, 9
    shared.numbers[SharedNumber.IS_CHANGING] = 1  # killed here
    shared.complete_change()
    assert (
        shared[SharedNumber.PASSED],
        shared[SharedNumber.RECORDED],
        shared[SharedNumber.FILE_SIZE],
    ) == (9, 9, 120)
    assert not shared[SharedNumber.IS_CHANGING]
