"""Sweeps on a Dask cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Outcome

from fmimaster import Simulation, reference_path, sweep
from fmimaster.base.errors import OptionError
from fmimaster.studies.sweeps import Dask, LatinHypercube, Processes, SweptRuns

pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore"),  # of Dask
    pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL"),
]

CAR = Simulation(reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=0.5)
DESIGN = LatinHypercube({"wheel.dc": (500, 2000), "wheel.kc": (12e3, 18e3)}, n=60)
START = "import sys; from dask.__main__ import main; sys.exit(main())"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler with two workers, each a process, and the processes."""
    file = tmp_path / "scheduler.json"
    dask: list[str | Path] = [sys.executable, "-c", START]
    words: list[str | Path] = [
        "scheduler",
        "--scheduler-file",
        file,
        "--port",
        "0",
        "--no-dashboard",
    ]
    worker: list[str | Path] = [
        "worker",
        "--scheduler-file",
        file,
        "--nthreads",
        "1",
        "--no-dashboard",
        "--no-nanny",
    ]
    every = [
        subprocess.Popen([*dask, *given], stderr=subprocess.DEVNULL, cwd=tmp_path)
        for given in (words, worker, worker)
    ]
    try:
        while not file.exists() or not file.read_text(encoding="utf-8").strip():
            time.sleep(0.1)
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            yield client.scheduler.address, every
    finally:
        for one in every:
            one.kill()
            one.wait()


def same(a: SweptRuns, b: SweptRuns) -> bool:
    return all(a[name].tolist() == b[name].tolist() for name in (*a.parameters, *a.scalars))


def test_a_cluster_gives_the_same_data_set(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    found = sweep(CAR, DESIGN, tmp_path / "a", executor=Dask(cluster[0]))
    assert found.runs == 60
    assert same(found, sweep(CAR, DESIGN, tmp_path / "b", executor=Processes(2)))


def test_chunks_of_a_worker_that_is_killed_are_made_by_another_one(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    address, processes = cluster
    killed: list[int] = []

    def kill(reached: object) -> None:
        if not killed and [*(tmp_path / "a").glob("0*.parquet")]:
            killed.append(processes[1].pid)
            os.kill(processes[1].pid, signal.SIGKILL)

    found = sweep(CAR, DESIGN, tmp_path / "a", executor=Dask(address), progress=kill)
    assert killed
    assert found.failed == 0
    assert same(found, sweep(CAR, DESIGN, tmp_path / "b", executor=Processes(2)))


def test_a_crash_is_a_row_and_the_worker_stays(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    faulty = Simulation(
        reference_path("fmi3/Faulty.fmu"),
        stop_time=1,
        step_size=0.1,
        start_values={"call": "DoStep"},
    )
    found = sweep(faulty, {"fault": [0, 9, 0]}, tmp_path / "s", executor=Dask(cluster[0]))
    assert found["status"].tolist() == ["done", "failed", "done"]
    assert "SIGSEGV" in found["error"][1]
    assert all(process.poll() is None for process in cluster[1])


def test_a_small_cluster_needs_no_scheduler(tmp_path: Path, run: Callable[..., Outcome]) -> None:
    given = [
        "sweep",
        CAR.system,
        "--parameter",
        "wheel.dc=500:2000",
        "-n",
        "8",
        "--stop-time",
        "0.1",
    ]
    found = run(*given, "--dask", "local", "--workers", "1", "--output-folder", tmp_path / "s")
    assert found.status == 0, found.err
    assert SweptRuns.read(tmp_path / "s").runs == 8


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no Dask scheduler at 'tcp://127.0.0.1:9'"):
        sweep(CAR, DESIGN, tmp_path / "s", executor=Dask("tcp://127.0.0.1:9"))
    with pytest.raises(OptionError, match="has its own workers"):
        Dask("tcp://127.0.0.1:9", 2)
