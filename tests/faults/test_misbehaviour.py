"""What FMUs do besides computing, in every call from loading to unloading: it changes no result, with either executor.

What ends or holds up a run (``exit``, calls that hang) is in tests of its own.
"""

from __future__ import annotations

import locale
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from misbehaving_fmu import CALLS, VERSIONS, Act, misbehaving

from fmimaster import Jacobi, SystemBuilder, Waveform, reference_path
from fmimaster.results.results import Results
from fmimaster.run.choice import Backend, native_executor
from fmimaster.simulation import Simulation

pytestmark = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")

BACKENDS = [Backend.REFERENCE, Backend.NATIVE]
EVERY = "*"
STATES = {"canGetAndSetFMUstate": "true", "canGetAndSetFMUState": "true"}
"""As FMI 2.0 spells it, and FMI 3.0."""
MESSAGES = [
    Act(EVERY, "say", "told in a call"),
    Act(EVERY, "say", "\x1b[31mred\x07 \x00after the end"),
    Act(EVERY, "say", "100 % of %s and %n"),
    Act(EVERY, "say_nothing"),
    Act(EVERY, "say_with_status", 17),
    Act(EVERY, "say_with_status", -1),
    Act(EVERY, "flood", 200),
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
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    os.umask(umask)
    locale.setlocale(locale.LC_ALL, words)
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "act",
    [*MESSAGES, *THREADS, *PROCESS, *SLOW],
    ids=lambda a: f"{a.action} {str(a.argument)[:4]!r}",
)
def test_what_an_fmu_does_in_its_calls_changes_no_result(
    act: Act, version: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    healthy = run(misbehaving(tmp_path, version, **STATES), Backend.REFERENCE)
    fmu = misbehaving(tmp_path, version, act, trace=trace, **STATES)
    for backend in BACKENDS:
        trace.unlink(missing_ok=True)
        results = run(fmu, backend)
        assert set(CALLS[version]) <= set(trace.read_text().split())
        for name in ("time", *healthy.names):
            assert results[name].tobytes() == healthy[name].tobytes()


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
