"""CPU time of commands that do little, over the same command of FMPy: start-up is most of it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence

from costs import Cost, medians

from fmimaster import reference_path

_FMU = str(reference_path("fmi2/Dahlquist.fmu"))
_COMMANDS = (
    (["--version"], 1.5),
    (["--help"], 1.5),
    (["simulate", "--help"], 1.5),
    (["info", _FMU], 2.0),
)
"""Arguments that both take, and the goal."""

_ENTRY = "import sys; from {} import main; sys.exit(main())"
"""What the scripts do that pip makes."""


def starts(repetitions: int) -> list[Cost]:
    """A line for each command."""
    return [_start(repetitions, arguments, goal) for arguments, goal in _COMMANDS]


def _start(repetitions: int, arguments: Sequence[str], goal: float) -> Cost:
    ours, theirs = medians(
        repetitions,
        lambda: _cpu("fmimaster.__main__", arguments),
        lambda: _cpu("fmpy.cli", arguments),
    )
    what = f"fmimaster {' '.join(arguments[:-1] if _FMU in arguments else arguments)}, over FMPy"
    return Cost(what, "x", goal, ours / theirs, f"CPU time, {ours * 1e3:.0f} ms")


def _cpu(module: str, arguments: Sequence[str]) -> float:
    """CPU time of a new process in s. Compiled modules are kept, as at a user's."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", _ENTRY.format(module), *arguments]
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
