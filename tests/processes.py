"""Processes that tests look for."""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path

import pytest

IS_WINE = sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")

CRASHED = "an access violation (0xC0000005)" if sys.platform == "win32" else "SIGSEGV"
"""What ends a process that reads memory which is not there."""

ABORT = " (as by abort)" if sys.platform == "win32" else ""
"""What is said of exit status 3."""

PATIENCE = 300.0
"""[s] After so much wall time, a test fails instead of waiting for ever. It says nothing about how fast something is: a
loaded machine may need a hundred times as long as a free one."""


needs_memory_limits = pytest.mark.skipif(
    IS_WINE, reason="wine does not keep the memory limit of a job"
)


_SYNCHRONIZE, _WAIT_TIMEOUT = 0x100000, 0x102
"""Numbers of Windows: a right to wait for a process, and what waiting answers while it runs."""


def is_there(pid: int) -> bool:
    """Whether a process runs; one that was ended and is not reaped yet does not."""
    if sys.platform == "win32":  # under wine, /proc is that of Linux, whose numbers are others
        handle = ctypes.windll.kernel32.OpenProcess(_SYNCHRONIZE, False, pid)
        ended = ctypes.windll.kernel32.WaitForSingleObject(handle, 0) != _WAIT_TIMEOUT
        ctypes.windll.kernel32.CloseHandle(handle)
        return not ended
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            != "Z"
        )
    except (
        FileNotFoundError,
        ProcessLookupError,
    ):  # before the file is opened, or before it is read
        return False


def wait_until_gone(pid: int) -> None:
    """Until a process does not run any more."""
    until = time.monotonic() + PATIENCE
    while is_there(pid):
        assert time.monotonic() < until, f"process {pid} still runs"
        time.sleep(0.01)
