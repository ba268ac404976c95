"""Loading, running and freeing again and again leaves nothing behind: memory, descriptors, libraries, folders."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

RUNS = 320
"""The usual number; more with ``--repetitions``: ten thousand take three minutes. A leak of a few hundred bytes per run
shows in some hundred too."""

WARM_UP = 600
"""Runs before the first look: caches and tables of the interpreter grow that long, also where nothing leaks."""

LARGEST_GROWTH = 100
"""[bytes per run] An instance, a library, or a place of either takes more. Where nothing leaks, some 10 are measured."""

SCRIPT = """
import ctypes, gc, logging, os, sys, tempfile
from pathlib import Path
from fmimaster import FmimasterError, SystemBuilder, reference_path, simulate
from fmimaster.run import Backend

logging.getLogger("fmimaster").setLevel(logging.CRITICAL)
tempfile.tempdir = sys.argv[1]

class MallocInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = MallocInfo

def state():
    gc.collect()
    info = mallinfo2()
    descriptors = len(os.listdir("/proc/self/fd"))
    libraries = Path("/proc/self/maps").read_text().count(sys.argv[1])
    children = len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    return info.uordblks + info.hblkhd, descriptors, libraries, len(os.listdir(sys.argv[1])), children

def run(model, **settings):
    simulate(reference_path(model), stop_time=0.05, step_size=0.01, **settings)

def exchanged(version, solver, backend):
    system = SystemBuilder("exchanged")
    system.add("ball", reference_path(f"fmi{version}/BouncingBall.fmu"), interface="ModelExchange")
    simulate(system.build(stop_time=0.5, step_size=0.1), solver=solver, backend=backend)

def refused(model, **settings):
    try:
        run(model, **settings)
    except FmimasterError:
        return
    raise AssertionError("this run was expected to fail")

def one(k):
    version, backend = 2 + k % 2, list(Backend)[k % 3]
    kind = k // 6 % 8  # each with both versions of FMI and all backends
    if kind < 3:
        run(f"fmi{version}/{('Dahlquist', 'TwoMassUpper')[kind % 2]}.fmu", backend=backend)
    elif kind < 5:
        exchanged(version, ("dormand-prince", "cvode")[kind % 2], backend)
    elif kind == 5:  # ends by an error of the FMU
        refused(f"fmi{version}/Faulty.fmu", start_values={"fault": 3}, backend=backend)
    elif kind == 6:  # ends before an FMU is loaded
        refused(f"fmi{version}/Dahlquist.fmu", start_values={"nothing": 3})
    elif k % 6 < 3:
        run(f"fmi{version}/Dahlquist.fmu", isolate=True, backend=backend)
    else:  # the process of the FMU is killed
        refused(f"fmi{version}/Faulty.fmu", start_values={"fault": 9, "call": "DoStep"}, isolate=True, backend=backend)

runs, warm_up = int(sys.argv[2]), int(sys.argv[3])
for k in range(-warm_up, runs):
    one(k)
    if k >= 0 and (k + 1) % (runs // 8) == 0:
        print(*state())
"""


@pytest.mark.thorough
@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="needs /proc and the GNU C library",
)
def test_runs_in_one_process_leave_nothing_behind(
    tmp_path: Path, repetitions: Callable[[int], range]
) -> None:
    runs = max(RUNS, len(repetitions(RUNS)))
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(runs), str(WARM_UP)],
        capture_output=True,
        text=True,
        # all memory by malloc, which says exactly how much is in use; pages of the process would tell less
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONMALLOC": "malloc"},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    memory, *others = zip(
        *(map(int, line.split()) for line in run.stdout.splitlines()), strict=True
    )
    descriptors, libraries, folders, children = map(set, others)
    assert len(descriptors) == 1
    assert libraries == folders == {0}  # no library is mapped, no folder is left
    assert len(children) == 1  # the process from which isolated FMUs are forked, and no other
    # a leak shows in each of the stretches, a table that has outgrown its size in one
    growth = [later - earlier for earlier, later in pairwise(memory)]
    assert median(growth) < LARGEST_GROWTH * (runs // 8)
