"""Job objects of Windows: what a process starts ends with it, and no dialog waits for somebody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fmimaster.apart.exit import KILLED, Exit
from fmimaster.apart.job import Job, own_python

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="job objects are of Windows")

CHILD = "import sys, time; sys.stdin.readline(); "
"""The beginning of a program that waits until its process is in a job."""


def started(program: str) -> tuple[subprocess.Popen[bytes], Job]:
    python, _ = own_python()
    process = subprocess.Popen(
        [python, "-c", CHILD + program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    return process, Job(process._handle)  # type: ignore[attr-defined]


def test_what_a_process_has_started_ends_with_it() -> None:
    other = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    process, job = started(f"import subprocess; {other}; print(1, flush=True); time.sleep(60)")
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert job.active >= 2
        job.kill()
        assert job.active == 0
        assert process.wait() == KILLED
    job.close()


def test_a_crash_ends_a_process_without_a_dialog() -> None:
    crash = "from fmimaster.kernel._kernel import ffi; ffi.cast('int *', 16)[0]"
    quiet = "from fmimaster.apart.job import show_no_dialogs; show_no_dialogs(); "
    process, job = started(quiet + crash)
    with process:
        process.communicate(b"\n")
        assert Exit(process.returncode).how == "was ended by an access violation (0xC0000005)"
    job.close()
