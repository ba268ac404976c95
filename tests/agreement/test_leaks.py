"""Loading, running and freeing again and again leaves nothing behind: memory, descriptors, libraries, folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = int(os.environ.get("FMIMASTER_LEAK_RUNS", "1000"))
"""Ten thousand take two minutes; a leak of one page per run shows in a thousand too."""

SCRIPT = """
import os, sys, tempfile
from pathlib import Path
import fmimaster

tempfile.tempdir = sys.argv[1]
files = [fmimaster.reference_path(f"fmi{v}/{m}.fmu") for v in (2, 3) for m in ("Dahlquist", "TwoMassUpper")]

def state():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    descriptors = len(os.listdir("/proc/self/fd"))
    libraries = Path("/proc/self/maps").read_text().count(sys.argv[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), descriptors, libraries, len(os.listdir(sys.argv[1]))

for k in range(int(sys.argv[2])):
    execution = list(fmimaster.Execution)[k % 3]
    fmimaster.simulate(files[k % 4], stop_time=0.05, step_size=0.01, executor=execution)
    if k == int(sys.argv[2]) // 4:  # caches have been filled
        print(*state())
print(*state())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_runs_in_one_process_leave_nothing_behind(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(RUNS)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    before, after = (tuple(map(int, line.split())) for line in run.stdout.splitlines())
    assert after[1:] == before[1:]
    assert after[2:] == (0, 0)  # no library is mapped, no folder is left
    # the allocator may take a few pages more; a leaked instance or library takes more than 1 kB each time
    assert after[0] - before[0] < 1024 * (RUNS * 3 // 4)
