"""A run whose process is killed at any instant continues from its last checkpoint, in the same bits."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import killed_runs
import pytest
from edited_fmu import edited_fmu
from processes import PATIENCE

from fmimaster import Results, reference_path, resume

KILLED = 1 if sys.platform == "win32" else -9

LATEST = 0.3
"""[s] Wall time after the first checkpoint until which a process is killed: these runs take about so long."""


def begin_and_kill(name: str, folder: Path, delay: float) -> None:
    """Begin a run, or continue it, and kill its process so many s after it has a checkpoint."""
    checkpoint = folder / "run.checkpoint"
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    command = [sys.executable, killed_runs.__file__, name, str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
            time.sleep(delay)
            break
        time.sleep(0.002)
    process.kill()
    _, said = process.communicate()
    assert process.returncode in (0, KILLED), said.decode()
    assert b"Traceback" not in said, said.decode()
    assert checkpoint.exists(), said.decode()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Results]:
    """The results of the runs that were not ended."""
    known: dict[str, Results] = {}

    def run(name: str) -> Results:
        if name not in known:
            folder = tmp_path_factory.mktemp("whole")
            prepare(folder)
            known[name] = killed_runs.simulation(name, folder).run()
        return known[name]

    return run


def prepare(folder: Path) -> None:
    """The FMU that cannot serialize its state."""
    edited_fmu(
        reference_path(killed_runs.LINEAR),
        folder / killed_runs.NOT_SERIALIZING,
        capabilities={"canSerializeFMUState": None},
    )


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_killed_runs_continue(
    tmp_path: Path, expected: Callable[[str], Results], repetitions: Callable[[int], range]
) -> None:
    names: tuple[str, ...] = killed_runs.NAMES
    if find_spec("h5py") is None:
        names = tuple(n for n in names if not killed_runs.output_file(n).endswith(".h5"))
    for k in repetitions(1):
        name = names[k % len(names)]
        folder = tmp_path / str(k)
        folder.mkdir()
        prepare(folder)
        chance = random.Random(k)
        for _ in range(chance.randint(1, 3) if k > 1 else 1):
            begin_and_kill(name, folder, chance.uniform(0.0, LATEST))
        checkpoint = folder / "run.checkpoint"
        assert len(list(folder.glob("run.checkpoint.*.rows"))) == 1
        simulation = killed_runs.simulation(name, folder) if name == "Python" else None
        memory = resume(checkpoint, simulation)
        written = Results.read(folder / (killed_runs.output_file(name)))
        whole = expected(name)
        assert written.names == whole.names
        for column in ("time", *whole.names):
            assert written[column].tobytes() == whole[column].tobytes(), (k, name, column)
        assert memory.statistics.steps == whole.statistics.steps
        assert written.events == whole.events
        assert written.steps == whole.steps
