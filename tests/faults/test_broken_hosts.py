"""Isolated FMUs that break what their process has beside them: descriptors, messages, processes that they start.

Nothing of it reaches the run: the FMU is lost as after a crash, and ``on_fault`` says what follows.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from misbehaving_fmu import CALLS, VERSIONS, Act, misbehaving
from processes import is_there

from fmimaster import AccuracyWarning, FmuLostError, Results, Simulation, SystemBuilder
from fmimaster.algorithms import Jacobi, Waveform
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.run.isolated import loss

pytestmark = pytest.mark.skipif(
    native_executor() is None, reason="processes of FMUs need the kernel"
)

STATES: dict[str, Any] = {"canGetAndSetFMUstate": "true", "canGetAndSetFMUState": "true"}


class Trap:
    """What runs code when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def pump(fmu: Path, **settings: Any) -> Simulation:
    builder = SystemBuilder("system")
    builder.add("pump", fmu, {"k": 2.0})
    return Simulation(
        builder, algorithm=Waveform(Jacobi()), stop_time=1, step_size=0.25, isolate=True, **settings
    )


def framed(content: bytes) -> bytes:
    """As hosts of earlier versions sent objects."""
    return struct.pack("=Q", len(content)) + content


NOISE = {
    "one byte": b"x",
    "text": b"a line of a log\n" * 100,
    "a length without end": b"\xff" * 8,
    "zeros": bytes(64),
}


@pytest.mark.parametrize("noise", NOISE)
def test_an_fmu_that_writes_into_foreign_descriptors_is_lost(tmp_path: Path, noise: str) -> None:
    act = Act("DoStep", "write_everywhere", NOISE[noise], since=0.5)
    with pytest.raises(FmuLostError) as caught:  # when the end of the call is logged
        pump(misbehaving(tmp_path, "fmi3", act, **STATES), log_fmi_calls=True).run()
    assert caught.value.instance == "pump"
    assert "sent bytes that are no message and was ended, in fmi3DoStep" in str(caught.value)
    assert "descriptors of files that are not its own" in str(caught.value)
    assert isinstance(caught.value.results, Results)
    np.testing.assert_array_equal(caught.value.results.time, [0.0, 0.25, 0.5])


@pytest.mark.parametrize("call", CALLS["fmi3"])
def test_noise_in_any_call_is_survived_and_runs_no_code(tmp_path: Path, call: str) -> None:
    made = tmp_path / "made by a pickle"
    content = framed(pickle.dumps((True, Trap(made)), 0))
    act = Act(call, "write_everywhere", content)
    with suppress(FmuLostError):
        pump(misbehaving(tmp_path, "fmi3", act, **STATES)).run()
    assert not made.exists()


@pytest.mark.parametrize("action", ["replace_everywhere", "close_everywhere"])
@pytest.mark.parametrize("call", ["Instantiate", "DoStep", "Terminate", "FreeInstance"])
def test_an_fmu_that_takes_the_descriptors_of_its_host_is_lost_or_ends_well(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    call: str,
    action: str,
) -> None:
    monkeypatch.setattr("fmimaster.run.isolated.hosting.SENDING_TIMEOUT", 0.3)
    simulation = pump(misbehaving(tmp_path, "fmi3", Act(call, action), **STATES))
    if call == "Instantiate":
        with pytest.raises(FmuLostError, match=r"The process of 'pump' .*, in instantiation"):
            simulation.run()
    else:  # nothing is sent before the instance is freed
        assert simulation.run().time[-1] == 1.0
        assert "The process of 'pump' " in caplog.text
        assert "in fmi3FreeInstance at t = 1 s" in caplog.text


def test_after_noise_the_policy_of_the_run_applies(tmp_path: Path) -> None:
    fmu = misbehaving(tmp_path, "fmi2", Act("DoStep", "write_everywhere", "x", since=0.5), **STATES)
    with pytest.warns(AccuracyWarning, match=r"'pump' was dropped at t = 0\.5 s"):
        found = pump(fmu, on_fault="drop", log_fmi_calls=True).run()
    assert found.time[-1] == 1.0
    assert set(found["pump.dropped"]) == {0.0, 1.0}


@pytest.mark.parametrize("action", ["fork", "daemon"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_fmu_has_started_ends_with_it(tmp_path: Path, version: str, action: str) -> None:
    pids = tmp_path / "pids"
    found = pump(misbehaving(tmp_path, version, Act("DoStep", action, pids), **STATES)).run()
    assert found.time[-1] == 1.0
    started = [int(line) for line in pids.read_text(encoding="utf-8").split()]
    assert started
    assert not any(map(is_there, started))


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_an_fmu_that_prints_without_end_is_ended_by_its_limit(
    tmp_path: Path, backend: Backend
) -> None:
    act = Act("DoStep", "flood_for_ever")
    fmu = misbehaving(tmp_path, "fmi3", act, **STATES)
    with pytest.raises(
        FmuLostError, match=r"did not answer within 0\.3 s and was ended, in fmi3DoStep"
    ):
        pump(fmu, call_timeout=0.3, backend=backend, debug_logging=True).run()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_hosts_run_where_the_address_space_is_limited(tmp_path: Path, backend: Backend) -> None:
    """As by ``ulimit -v`` on clusters: a host mapped 64 GB, and its FMU was said to have ended."""
    fmu = misbehaving(tmp_path, "fmi3")
    limited = ["sh", "-c", 'ulimit -v 16000000; exec "$@"', "sh", sys.executable, "-m", "fmimaster"]
    command = ["simulate", fmu.name, "--isolate", "all", "--backend", backend.value]
    done = subprocess.run([*limited, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_deadline_does_not_count_the_time_without_a_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = [0.0]
    monkeypatch.setattr(loss, "_waited", lambda process: waited[0])
    own, wall = loss.Deadline(0.0, os.getpid()), loss.Deadline(0.0)
    waited[0] = 1000.0
    assert not own.has_passed
    assert wall.has_passed
    assert 900.0 < own.left < 1000.0


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux does not tell it here")
def test_linux_tells_how_long_a_process_had_no_processor() -> None:
    assert loss._waited(os.getpid()) >= 0.0
    assert loss._waited(-1) == 0.0
