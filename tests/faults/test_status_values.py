"""What FMI functions return: each status in each call, of both FMI versions, with the same verdict from both executors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from in_turn import in_turn
from misbehaving_fmu import CALLS, VERSIONS, Act, misbehaving

from fmimaster import SystemBuilder, reference_path
from fmimaster.algorithms import Jacobi, Waveform
from fmimaster.base.errors import CallError, FmimasterError, ModelError
from fmimaster.front.simulation import Simulation
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend

pytestmark = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")

OK, WARNING, DISCARD, ERROR, FATAL, PENDING = range(6)
FAILURES = (-1, DISCARD, ERROR, FATAL, PENDING)
FREEING = ("FreeState", "FreeInstance")
IN_CALLS = [(v, c) for v in VERSIONS for c in CALLS[v] if c != "Instantiate" and c not in FREEING]
ROWS = 11
LATE = 0.45
"""A time in s in the midst of the run."""


@dataclass(frozen=True)
class Verdict:
    """What a run came to, as a user reads it."""

    error: FmimasterError | None
    times: list[float]
    calls: list[str]
    """All calls of the FMU, in their order."""

    @property
    def words(self) -> tuple[object, ...]:
        """All that must be the same from both executors."""
        e = self.error
        facts = [
            getattr(e, n, None) for n in ("instance", "function", "status", "messages", "time")
        ]
        return type(e), str(e), *facts, self.times, self.calls


def run(fmu: Path, trace: Path, backend: Backend) -> Verdict:
    """The FMU as 'pump' behind a healthy one, with an algorithm that saves and restores states."""
    trace.unlink(missing_ok=True)
    builder = SystemBuilder("system")
    builder.add("source", reference_path("fmi2/Dahlquist.fmu"))
    builder.add("pump", fmu, {"k": 2.0})
    builder.connect("source.x", "pump.u")
    system = builder.build(stop_time=1, step_size=0.1)
    error, results = None, None
    try:
        results = Simulation(system, algorithm=Waveform(Jacobi()), backend=backend).run()
    except FmimasterError as e:
        error, results = e, getattr(e, "results", None)
    calls = (
        [line.split()[1] for line in trace.read_text(encoding="utf-8").splitlines()]
        if trace.exists()
        else []
    )
    return Verdict(error, [] if results is None else results.time.tolist(), calls)


def both(
    folder: Path, version: str, *acts: Act, lacks: tuple[str, ...] = (), **capabilities: Any
) -> Verdict:
    """The verdict of both executors, which must be one."""
    trace = folder / "trace.txt"
    capabilities = {"canGetAndSetFMUState": "true", "canGetAndSetFMUstate": "true"} | capabilities
    fmu = misbehaving(folder, version, *acts, lacks=lacks, trace=trace, **capabilities)
    reference, native = (run(fmu, trace, b) for b in (Backend.REFERENCE, Backend.NATIVE))
    assert native.words == reference.words
    return native


@pytest.mark.parametrize("version", VERSIONS)
def test_a_healthy_run_makes_every_call(version: str, tmp_path: Path) -> None:
    verdict = both(tmp_path, version)
    assert verdict.error is None
    assert len(verdict.times) == ROWS
    assert set(CALLS[version]) <= set(verdict.calls)


@pytest.mark.parametrize(("call_of", "status"), in_turn(IN_CALLS, FAILURES), ids=str)
def test_every_status_but_ok_and_warning_is_an_error_that_names_it(
    call_of: tuple[str, str], status: int, tmp_path: Path
) -> None:
    version, call = call_of
    error = both(tmp_path, version, Act(call, "return", status)).error
    assert isinstance(error, CallError)
    assert error.instance == "pump"
    named = {DISCARD: "Discard", ERROR: "Error", FATAL: "Fatal"}
    if version == "fmi2":
        named[PENDING] = "Pending"
    if status in named:
        assert named[status].lower() in str(error).lower()
    else:
        assert f"returned {status} at t = " in str(error)
        assert f", which is not a status of FMI {version[3]}.0. " in str(error)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("call", ["Set", "DoStep", "Get", "GetState", "SetState"])
@pytest.mark.parametrize("status", [-1, PENDING])
def test_a_failure_in_the_midst_of_a_run_keeps_the_rows(
    version: str, call: str, status: int, tmp_path: Path
) -> None:
    verdict = both(tmp_path, version, Act(call, "return", status, since=LATE))
    assert isinstance(verdict.error, CallError)
    assert verdict.times[0] == 0.0
    assert LATE <= verdict.times[-1] + 0.1 + 1e-9 < LATE + 0.2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("status", [DISCARD, ERROR, PENDING])
def test_a_failure_in_an_integrator_step_names_its_call_and_status(
    version: str, status: int, tmp_path: Path
) -> None:
    act = Act("CompletedIntegratorStep", "return", status, since=LATE)
    needed: dict[str, Any] = {"needsCompletedIntegratorStep": "true"}
    error = both(tmp_path, version, act, interface="ModelExchange", **needed).error
    assert isinstance(error, CallError)
    assert (error.function, error.instance) == (f"{version}CompletedIntegratorStep", "pump")


# Event Mode -----------------------------------------------------------------------------------------------------------

EVENT_CALLS = ("ExitInitializationMode", "EnterEventMode", "UpdateDiscreteStates", "EnterStepMode")


def in_event_mode(folder: Path, *acts: Act) -> Verdict:
    """The verdict of both executors on an FMI 3.0 FMU alone, whose Event Mode is used."""
    trace = folder / "trace.txt"
    fmu = misbehaving(folder, "fmi3", *acts, trace=trace, hasEventMode="true")
    verdicts = []
    for backend in (Backend.REFERENCE, Backend.NATIVE):
        trace.unlink(missing_ok=True)
        error, results = None, None
        try:
            results = Simulation(fmu, event_mode=True, backend=backend).run()
        except CallError as e:
            error, results = e, e.results
        calls = [line.split()[1] for line in trace.read_text(encoding="utf-8").splitlines()]
        verdicts.append(Verdict(error, results.time.tolist(), calls))
    assert verdicts[0].words == verdicts[1].words
    return verdicts[0]


def test_a_healthy_run_makes_the_calls_of_event_mode(tmp_path: Path) -> None:
    verdict = in_event_mode(tmp_path, Act("DoStep", "event", since=LATE))
    assert verdict.error is None
    assert set(EVENT_CALLS) <= set(verdict.calls)


@pytest.mark.parametrize("call", EVENT_CALLS)
@pytest.mark.parametrize("status", FAILURES)
def test_every_failure_in_event_mode_is_an_error_that_names_the_call(
    call: str, status: int, tmp_path: Path
) -> None:
    acts = [Act("DoStep", "event", since=LATE), Act(call, "return", status)]
    verdict = in_event_mode(tmp_path, *acts)
    assert isinstance(verdict.error, CallError)
    assert verdict.error.function == f"fmi3{call}"
    assert verdict.calls[-1] == (call if status == FATAL else "FreeInstance")


# After Fatal ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "call"), [(v, c) for v in VERSIONS for c in CALLS[v]])
def test_after_fatal_nothing_of_the_fmu_is_called_any_more(
    version: str, call: str, tmp_path: Path
) -> None:
    verdict = both(tmp_path, version, Act(call, "return", FATAL))
    assert verdict.calls[-1] == call
    assert verdict.calls.count(call) == 1


@pytest.mark.in_this_process("Fatal is about all instances of an FMU in one process")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_after_fatal_no_other_instance_from_the_same_file_is_called(
    version: str, backend: Backend, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    fmu = misbehaving(tmp_path, version, Act("DoStep", "return", FATAL, since=LATE), trace=trace)
    builder = SystemBuilder("system")
    for name in ("a", "b", "c"):
        builder.add(name, fmu)
    with pytest.raises(CallError, match="Fatal"):
        Simulation(builder.build(), algorithm=Jacobi(), backend=backend).run()
    assert trace.read_text(encoding="utf-8").splitlines()[-1] == "a DoStep"


@pytest.mark.in_this_process("Fatal is about all instances of an FMU in one process")
@pytest.mark.parametrize("version", VERSIONS)
def test_after_fatal_in_a_thread_no_further_step_is_begun(version: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    fatal = Act("DoStep", "return", FATAL, since=LATE)
    fmu = misbehaving(tmp_path, version, Act("DoStep", "sleep", 0.002), fatal, trace=trace)
    builder = SystemBuilder("system")
    names = [f"i{k}" for k in range(8)]
    for name in names:
        builder.add(name, fmu)
    with pytest.raises(CallError, match="Fatal"):
        Simulation(builder.build(), algorithm=Jacobi(), backend=Backend.NATIVE, threads=2).run()
    lines = trace.read_text(encoding="utf-8").splitlines()
    steps_before = 5 * len(names)  # to 0.5 s
    steps = [line for line in lines if line.endswith("DoStep")]
    # both threads may have begun one when the first returned
    assert steps_before < len(steps) <= steps_before + 3
    assert lines[-1].endswith("DoStep")


# What the standards say of single functions ---------------------------------------------------------------------------


def test_pending_is_told_as_what_it_is(tmp_path: Path) -> None:
    error = both(tmp_path, "fmi2", Act("DoStep", "return", PENDING, since=LATE)).error
    assert (
        "fmi2DoStep of 'pump' returned fmi2Pending at t = 0.5 s (step 0.1 s): it computes asynchronously"
        in str(error)
    )


def test_the_message_names_what_fmi_2_does_not_allow(tmp_path: Path) -> None:
    error = both(tmp_path, "fmi2", Act("EnterInitializationMode", "return", DISCARD)).error
    assert "returned fmi2Discard at t = 0 s, which FMI 2.0 does not allow for this function" in str(
        error
    )


def test_after_discard_fmi_3_leaves_all_else_undefined(tmp_path: Path) -> None:
    acts = [Act("DoStep", action, since=LATE) for action in ("terminate", "early", "event")]
    acts += [Act("DoStep", "reach", 0.55, LATE), Act("DoStep", "return", DISCARD, LATE)]
    verdict = both(tmp_path, "fmi3", *acts)
    assert isinstance(verdict.error, CallError)
    assert "was discarded at t = 0.5 s (step 0.1 s); it reached t = 0.5 s" in str(verdict.error)


@pytest.mark.parametrize("status", [DISCARD, ERROR])
def test_an_fmu_that_cannot_tell_its_status_is_taken_to_stand_at_the_start_of_the_step(
    status: int, tmp_path: Path
) -> None:
    acts = [Act("DoStep", "return", DISCARD, LATE), Act("DoStep", "reach", 0.55, LATE)]
    acts += [Act(f"Get{kind}Status", "return", status) for kind in ("Real", "Boolean")]
    verdict = both(tmp_path, "fmi2", *acts)
    assert "was discarded at t = 0.5 s (step 0.1 s); it reached t = 0.5 s" in str(verdict.error)


@pytest.mark.parametrize("status", [-1, FATAL, PENDING])
def test_another_status_of_a_status_function_is_an_error(status: int, tmp_path: Path) -> None:
    acts = [Act("DoStep", "return", DISCARD, LATE), Act("GetBooleanStatus", "return", status)]
    error = both(tmp_path, "fmi2", *acts).error
    assert isinstance(error, CallError)
    assert error.function == "fmi2GetBooleanStatus"


# Functions that are absent --------------------------------------------------------------------------------------------

STATE = {"fmi2": "FMUstate", "fmi3": "FMUState"}


@pytest.mark.parametrize("version", VERSIONS)
def test_absent_functions_of_the_end_never_end_a_finished_run(version: str, tmp_path: Path) -> None:
    lacks = ("Terminate", "FreeInstance", f"Free{STATE[version]}", "SetDebugLogging")
    verdict = both(tmp_path, version, lacks=lacks)
    assert verdict.error is None
    assert len(verdict.times) == ROWS


@pytest.mark.parametrize("terminates", [True, False])
def test_an_fmu_may_lack_the_functions_that_tell_its_status(
    terminates: bool, tmp_path: Path
) -> None:
    lacks = ("GetRealStatus", "GetBooleanStatus")
    acts = [Act("DoStep", "return", DISCARD, LATE), *[Act("DoStep", "terminate")] * terminates]
    error = both(tmp_path, "fmi2", *acts, lacks=lacks).error
    assert "was discarded at t = 0.5 s" in str(error)


ABSENT = [
    *(("fmi2", f) for f in ("SetupExperiment", "SetReal", "GetInteger", "GetFMUstate")),
    *(("fmi3", f) for f in ("SetFloat64", "GetFloat64", "GetInt32", "SetFMUState")),
    *((v, f) for v in VERSIONS for f in ("DoStep", "EnterInitializationMode")),
    *((v, "ExitInitializationMode") for v in VERSIONS),
]


@pytest.mark.parametrize(("version", "function"), ABSENT)
def test_an_absent_function_that_is_needed_is_named(
    version: str, function: str, tmp_path: Path
) -> None:
    error = both(tmp_path, version, lacks=(function,)).error
    assert isinstance(error, CallError)
    assert f"'pump' needs {version}{function}, but the FMU's library does not" in str(error)
    assert (error.function, error.status) == (version + function, "missing")


@pytest.mark.parametrize(
    ("version", "function"), [("fmi2", "Instantiate"), ("fmi3", "InstantiateCoSimulation")]
)
def test_a_library_that_cannot_instantiate_is_refused(
    version: str, function: str, tmp_path: Path
) -> None:
    error = both(tmp_path, version, lacks=(function,)).error
    assert isinstance(error, ModelError)
    assert f"does not have {version}{function}" in str(error)


# The end of a run by an FMU -------------------------------------------------------------------------------------------


def ending(version: str, reached: float | str) -> list[Act]:
    acts = [Act("DoStep", "reach", reached, LATE), Act("DoStep", "terminate", since=LATE)]
    status = [Act("DoStep", "return", DISCARD, LATE)] if version == "fmi2" else []
    return acts + status


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("reached", [0.5, 0.6 + 1e-12])
def test_an_fmu_may_end_the_run_inside_a_step(version: str, reached: float, tmp_path: Path) -> None:
    verdict = both(tmp_path, version, *ending(version, reached))
    assert verdict.error is None
    assert verdict.times[-1] <= 0.6


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("reached", [0.4, 0.7, "nan"])
def test_an_fmu_that_ends_the_run_outside_of_the_step_is_named(
    version: str, reached: float | str, tmp_path: Path
) -> None:
    verdict = both(tmp_path, version, *ending(version, reached))
    message = str(verdict.error)
    assert isinstance(verdict.error, CallError)
    assert "DoStep of 'pump' from t = 0.5 s (size 0.1 s) ended the run at t = " in message
    assert verdict.error.instance == "pump"
    assert verdict.times[-1] == 0.5
