"""What FMUs do besides computing, in every call from loading to unloading: it changes no result, with either executor.

``exit()`` in any of them is an error with the rows until then. Calls that hang are in ``tests/cli/test_stop.py``.
"""

from __future__ import annotations

import locale
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

import pytest
from forks import Forks
from in_turn import in_turn
from misbehaving_fmu import CALLS, VERSIONS, Act, misbehaving

from fmimaster import CallError, SystemBuilder, reference_path
from fmimaster.algorithms import Jacobi, Waveform
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.system import Lifetime

pytestmark = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")

BACKENDS = [Backend.REFERENCE, Backend.NATIVE]
EVERY = "*"
STATES: dict[str, Any] = {"canGetAndSetFMUstate": "true", "canGetAndSetFMUState": "true"}
"""As FMI 2.0 spells it, and FMI 3.0."""
MESSAGES = [
    Act(EVERY, "say", "told in a call"),
    Act(EVERY, "say", "\x1b[31mred\x07 \x00after the end"),
    Act(EVERY, "say", "100 % of %s and %n"),
    Act(EVERY, "say_nothing"),
    Act(EVERY, "say_with_status", 17),
    Act(EVERY, "say_with_status", -1),
    Act(EVERY, "flood", 50),
    Act(EVERY, "say_long", 100_000),
    Act(EVERY, "print", "printed in a call"),
]
THREADS = [Act(EVERY, "thread"), Act("Instantiate", "background"), Act("DoStep", "background")]
PROCESS = [
    Act(EVERY, "chdir", "/"),
    Act(EVERY, "umask", "077"),
    Act(EVERY, "locale", "C"),
    Act(EVERY, "ignore_sigint"),
    Act(EVERY, "ignore_sigterm"),
    Act(EVERY, "block_signals"),
]
SLOW = [Act(EVERY, "sleep", 0.001)]


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What belongs to the process is as it was after each test."""
    monkeypatch.chdir(Path.cwd())
    umask, words = os.umask(0o022), locale.setlocale(locale.LC_ALL)
    handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    has_mask = hasattr(signal, "pthread_sigmask")  # not on Windows
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, []) if has_mask else set()
    yield
    os.umask(umask)
    locale.setlocale(locale.LC_ALL, words)
    if has_mask:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def run(fmu: Path, backend: Backend) -> Results:
    """The FMU as 'pump' behind a healthy one, with an algorithm that saves and restores states."""
    builder = SystemBuilder("system")
    builder.add("source", reference_path("fmi2/Dahlquist.fmu"))
    builder.add("pump", fmu, {"k": 2.0})
    builder.connect("source.x", "pump.u")
    system = builder.build(stop_time=1, step_size=0.1)
    return Simulation(system, algorithm=Waveform(Jacobi()), backend=backend).run()


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Results]:
    """Version of FMI → results of the FMU that does nothing else."""
    folder = tmp_path_factory.mktemp("healthy")
    return {v: run(misbehaving(folder, v, **STATES), Backend.REFERENCE) for v in VERSIONS}


@pytest.mark.parametrize(
    ("act", "version"),
    in_turn([*MESSAGES, *THREADS, *PROCESS, *SLOW], VERSIONS),
    ids=lambda a: a if isinstance(a, str) else f"{a.action} {str(a.argument)[:4]!r}",
)
def test_what_an_fmu_does_in_its_calls_changes_no_result(
    act: Act, version: str, tmp_path: Path, healthy: Mapping[str, Results]
) -> None:
    trace = tmp_path / "trace.txt"
    fmu = misbehaving(tmp_path, version, act, trace=trace, **STATES)
    for backend in BACKENDS:
        trace.unlink(missing_ok=True)
        results = run(fmu, backend)
        assert set(CALLS[version]) <= set(trace.read_text(encoding="utf-8").split())
        for name in ("time", *healthy[version].names):
            assert results[name].tobytes() == healthy[version][name].tobytes()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_old_state_is_freed_before_a_new_one_is_saved(
    version: str, backend: Backend, tmp_path: Path
) -> None:
    """Some FMUs do not return where they put a state that is saved over an old one: they crashed."""
    healthy = run(misbehaving(tmp_path, version, name="Healthy", **STATES), backend)
    loses = run(misbehaving(tmp_path, version, Act("GetState", "lose"), **STATES), backend)
    assert loses["pump.x"].tobytes() == healthy["pump.x"].tobytes()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("status", [0, 1])
def test_a_saved_state_that_is_null_is_refused(
    version: str, backend: Backend, status: int, tmp_path: Path
) -> None:
    """FMUs crashed when it was restored."""
    acts = [Act("GetState", "give_none"), Act("GetState", "return", status)]
    acts.append(Act("GetState", "say", "no memory"))
    fmu = misbehaving(tmp_path, version, *acts, **STATES)
    with pytest.raises(
        CallError, match=r"GetFMU[sS]tate of 'pump' succeeded, but gave no state"
    ) as got:
        run(fmu, backend)
    assert got.value.messages[-1] == "no memory"
    final = tmp_path / "states"
    serializes: dict[str, Any] = {"canSerializeFMUstate": "true", "canSerializeFMUState": "true"}
    fmu = misbehaving(tmp_path, version, *acts, **STATES, **serializes)
    with pytest.raises(CallError, match="gave no state"):
        Simulation(fmu, stop_time=0.2, step_size=0.1, backend=backend, final_fmu_state=final).run()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_states_are_freed_before_their_instance(
    version: str, backend: Backend, tmp_path: Path
) -> None:
    """Also those that were saved before the structure of the system changed."""
    trace = tmp_path / "trace.txt"
    fmu = misbehaving(tmp_path, version, trace=trace, **STATES)
    builder = SystemBuilder()
    builder.add("stays", fmu)
    builder.add("comes", fmu, lifetime=Lifetime(0.25))
    simulation = Simulation(
        builder, stop_time=0.5, step_size=0.125, backend=backend, algorithm=Waveform(Jacobi())
    )
    simulation.run()
    calls = [line.split() for line in trace.read_text(encoding="utf-8").splitlines()]
    for name in ("stays", "comes"):
        of = [c for n, c in calls if n == name]
        assert of.count("FreeState") == of.count("GetState") > 0
        assert of[-1] == "FreeInstance"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", ["DoStep", "Get", "Terminate"])
def test_healthy_fmus_are_terminated_when_another_one_fails(
    version: str, backend: Backend, call: str, tmp_path: Path
) -> None:
    """They write their files there."""
    trace = tmp_path / "trace.txt"
    builder = SystemBuilder()
    for name, acts in (
        ("first", ()),
        ("bad", (Act(call, "return", 3, since=0.15),)),
        ("last", ()),
    ):
        builder.add(name, misbehaving(tmp_path, version, *acts, name=name, trace=trace))
    with pytest.raises(CallError, match="'bad'"):
        Simulation(builder, stop_time=0.5, step_size=0.1, backend=backend).run()
    calls = [line.split() for line in trace.read_text(encoding="utf-8").splitlines()]
    for name in ("first", "last"):
        assert [c for n, c in calls if n == name][-2:] == ["Terminate", "FreeInstance"]
        assert calls.count([name, "Terminate"]) == 1
    assert [c for n, c in calls if n == "bad"][-2:] == [call, "FreeInstance"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_messages_are_logged_with_their_status_or_its_number(
    version: str, backend: Backend, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    acts = [Act("Terminate", "say_with_status", status) for status in (2, 17, -1)]
    acts += [Act("Terminate", "thread")]
    with caplog.at_level(logging.INFO, "fmimaster"):
        run(misbehaving(tmp_path, version, *acts, **STATES), backend)
    messages = [r.getMessage() for r in caplog.records if r.getMessage().startswith("pump")]
    odd = "a message with an odd status"
    assert messages == [
        *(f"pump [{status}] {odd}" for status in ("Discard", "17", "-1")),
        "pump [Warning] said by another thread",
    ]


LATE = 0.45
"""A time in s in the midst of the run."""


@pytest.mark.parametrize(
    ("version", "call", "since", "rows"),
    [
        ("fmi2", "DoStep", LATE, 6),
        ("fmi3", "Instantiate", -inf, 0),
        ("fmi2", "EnterInitializationMode", -inf, 0),
        ("fmi3", "ExitInitializationMode", -inf, 0),
        ("fmi3", "Get", LATE, 5),
    ],
)
def test_exit_in_a_call_is_an_error_with_the_rows_until_then(
    forks: Forks, version: str, call: str, since: float, rows: int, tmp_path: Path
) -> None:
    fmu = misbehaving(tmp_path, version, Act(call, "exit", 0, since))
    for backend in BACKENDS:
        table = tmp_path / f"{backend.value}.csv"
        options = ("--backend", backend.value, "--output-file", table)
        done = forks.run("simulate", fmu, "--step-size", "0.1", *options)
        assert done.returncode == 2
        assert (
            len(table.read_text(encoding="utf-8").splitlines()[1:] if table.exists() else [])
            == rows
        )
        assert "An FMU has called exit()" in done.stderr
        assert "'Misbehaving'" in done.stderr
        assert "defect" not in done.stderr


@pytest.mark.skipif(sys.platform != "win32", reason="ctypes goes on after a crash on Windows only")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_crash_in_a_call_from_python_is_an_error(version: str, tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, version, Act("EnterInitializationMode", "crash"))
    with pytest.raises(CallError, match="has crashed: an access violation") as caught:
        Simulation(fmu, step_size="0.1", backend=Backend.REFERENCE).run()
    assert caught.value.status == "crashed"
    assert caught.value.function == f"{version}EnterInitializationMode"


@pytest.mark.parametrize(
    ("version", "call"), [("fmi2", "GetDerivatives"), ("fmi3", "GetContinuousStateDerivatives")]
)
def test_exit_in_a_call_of_an_integrator_names_this_call(
    forks: Forks, version: str, call: str, backend: Backend, tmp_path: Path
) -> None:
    fmu = misbehaving(tmp_path, version, Act(call, "exit", 0, LATE), interface="ModelExchange")
    options = ("--stop-time", "1", "--backend", backend.value)
    done = forks.run("simulate", fmu, "--step-size", "0.1", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert f"An FMU has called exit() in {version}{call} of 'Misbehaving'" in done.stderr


def test_exit_during_the_initialization_is_told_in_python_too(
    backend: Backend, tmp_path: Path
) -> None:
    """Its statistics divided by the time of a loop that has not begun."""
    fmu = misbehaving(tmp_path, "fmi3", Act("ExitInitializationMode", "exit"))
    code = (
        "from fmimaster import *\n"
        f"try: Simulation({str(fmu)!r}, step_size='0.1', backend={backend.value!r}).run()\n"
        "except SimulationError as error: print(error, error.results.rows)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "An FMU has called exit()" in done.stdout, done.stderr
    assert "ZeroDivisionError" not in done.stderr


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("FreeInstance", "in fmi3FreeInstance of 'Misbehaving'."),
        pytest.param(
            "Unload",
            "in the unloading of the library of 'Misbehaving.fmu'.",
            marks=pytest.mark.skipif(
                sys.platform == "win32",
                reason="Windows waits for itself if a library calls exit() while it is unloaded",
            ),
        ),
    ],
)
def test_exit_after_the_last_row_is_a_warning(
    forks: Forks, call: str, words: str, tmp_path: Path
) -> None:
    fmu = misbehaving(tmp_path, "fmi3", Act(call, "exit", 3))
    options = ("--step-size", "0.1", "--output-file", "rows.csv")
    done = forks.run("simulate", fmu.name, *options, cwd=tmp_path)
    assert (
        done.returncode,
        len((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()),
    ) == (0, 12)
    assert f"warning: An FMU has called exit() {words}" in done.stderr
    assert "11 rows written" in done.stderr
