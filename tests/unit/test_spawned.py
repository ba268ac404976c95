"""Processes that are started anew, as on Windows and macOS, where they can be forked as well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import acts_apart as acts
import numpy as np
import pytest
from processes import wait_until_gone

from fmimaster import Simulation, reference_path
from fmimaster.apart import process, spawned
from fmimaster.apart.run import EndCause, run_apart
from fmimaster.base.errors import FmuLostError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all are started so")


@pytest.fixture(autouse=True)
def starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are started anew, without modules that they may need, and none in advance."""

    def started(_: Sequence[str], descriptors: Sequence[int]) -> spawned.Spawned:
        new = spawned.Spawned(())
        new.give(descriptors)
        return new

    monkeypatch.setattr(process, "carry", started)


def test_the_value_and_the_output_of_a_function_come_back_from_a_new_process() -> None:
    ended = run_apart(acts.doubled, 21)
    assert (ended.cause, ended.value, ended.output) == (EndCause.RETURNED, 42, "doubling 21\n")


def test_a_crash_and_a_limit_end_a_new_process_and_what_it_has_started_ends_with_it() -> None:
    assert run_apart(acts.crash).how == "was ended by SIGSEGV"
    ended = run_apart(acts.allocate, 1 << 30, memory_limit=1 << 28)
    assert ended.how == "exceeded its memory limit of 268 MB"
    wait_until_gone(run_apart(acts.start_another_and_leave).value)


def test_a_deadline_counts_from_the_start_of_a_new_process() -> None:
    ended = run_apart(acts.sleep, deadline=0.2)
    assert (ended.how, ended.output) == ("did not end within 0.2 s", "sleeping\n")


def test_an_fmu_in_a_new_process_gives_the_bits_of_one_in_this_process() -> None:
    ball = reference_path("fmi3/BouncingBall.fmu")
    here = Simulation(ball, stop_time=1.0, step_size="0.01").run()
    apart = Simulation(ball, stop_time=1.0, step_size="0.01", isolate=True).run()
    for name in here:
        np.testing.assert_array_equal(here[name], apart[name])


def test_an_fmu_that_ends_its_new_process_is_named() -> None:
    faulty = reference_path("fmi3/Faulty.fmu")
    run = Simulation(
        faulty,
        start_values={"fault": 9, "faultTime": 0.5},
        stop_time=1.0,
        step_size="0.1",
        isolate=True,
    )
    with pytest.raises(FmuLostError, match="was ended by SIGSEGV, in fmi3DoStep"):
        run.run()


def test_a_new_process_that_hangs_as_it_starts_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "hangs_at_import.py").write_text("import time; time.sleep(1e6)", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(spawned, "_LONGEST_START", 0.1)
    new = spawned.Spawned(["hangs_at_import"])
    new.wait_for_start()
    assert new.ended() is not None
    new.close()
    assert "has not begun within 0.1 s" in caplog.text


ORPHAN = """
import os, signal
from fmimaster.apart.spawned import spawned
process = spawned((), ())
process.wait_for_start()
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_new_process_outlives_the_one_that_has_started_it() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ORPHAN]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    assert run.returncode == -signal.SIGKILL
    wait_until_gone(int(run.stdout))
