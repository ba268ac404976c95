"""Loading, running and freeing again and again leaves nothing behind: memory, descriptors, libraries, folders."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

RUNS = int(os.environ.get("FMIMASTER_LEAK_RUNS", "320"))
"""Ten thousand take two minutes; a leak of a hundred bytes per run shows in some hundred too."""

WARM_UP = 300
"""Runs before the first look: caches and tables of the interpreter grow that long, also where nothing leaks."""

LARGEST_GROWTH = 100
"""[bytes per run] An instance, a library, or a place of either takes more. Where nothing leaks, some 10 are measured."""

SCRIPT = """
import ctypes, gc, os, sys, tempfile
from pathlib import Path
import fmimaster

tempfile.tempdir = sys.argv[1]
files = [fmimaster.reference_path(f"fmi{v}/{m}.fmu") for v in (2, 3) for m in ("Dahlquist", "TwoMassUpper")]

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
    return info.uordblks + info.hblkhd, descriptors, libraries, len(os.listdir(sys.argv[1]))

for k in range(-int(sys.argv[3]), int(sys.argv[2])):
    backend = list(fmimaster.Backend)[k % 3]
    fmimaster.simulate(files[k % 4], stop_time=0.05, step_size=0.01, backend=backend)
    if k >= 0 and (k + 1) % (int(sys.argv[2]) // 8) == 0:
        print(*state())
"""


@pytest.mark.skipif(
    not (Path("/proc/self/maps").exists() and hasattr(ctypes.CDLL(None), "mallinfo2")),
    reason="needs /proc and the GNU C library",
)
def test_runs_in_one_process_leave_nothing_behind(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(RUNS), str(WARM_UP)],
        capture_output=True,
        text=True,
        # all memory by malloc, which says exactly how much is in use; pages of the process would tell less
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONMALLOC": "malloc"},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    memory, *others = zip(
        *(map(int, line.split()) for line in run.stdout.splitlines()), strict=True
    )
    descriptors, libraries, folders = map(set, others)
    assert len(descriptors) == 1
    assert libraries == folders == {0}  # no library is mapped, no folder is left
    # a leak shows in each of the stretches, a table that has outgrown its size in one
    growth = [later - earlier for earlier, later in pairwise(memory)]
    assert median(growth) < LARGEST_GROWTH * (RUNS // 8)
