"""Run the commands of fmimaster with every FMU of a folder, and find tracebacks, unknown exit statuses and long waits.

    python conformance/commands.py FOLDER

``info``, ``validate``, ``plan`` and ``simulate`` (100 steps) run in separate processes. A line is printed for each one that
shows a traceback, ends with a status other than 0, 1 or 2, needs more than 3 s of processor time (``simulate``: reaches the
limit), or prints more than 200 lines; with ``--all`` for each that ends with a status other than 0, with its message.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import NoReturn

from fmimaster.commands.cli import main as main_of_fmimaster

STATUSES = (0, 1, 2)
UNKNOWN = 70
"""The status of a command that ends with an exception."""
LONGEST = {"info": 3.0, "validate": 3.0, "plan": 3.0}
"""Seconds."""
MOST_LINES = 200
COMMANDS = {
    "info": (),
    "validate": (),
    "plan": ("--start-time", "0", "--stop-time", "1", "--step-size", "0.01"),
    "simulate": (
        "--start-time",
        "0",
        "--stop-time",
        "1",
        "--step-size",
        "0.01",
        "--output-file",
        "rows.csv",
    ),
}


def tried(command: str, fmu: Path, limit: float) -> tuple[int, float, str]:
    """Exit status, negative for a signal; seconds of processor time; its output.

    Beyond the time limit the process is killed. It is forked, so that fmimaster is imported once.
    """
    with tempfile.TemporaryDirectory(prefix="commands-") as folder:
        printed = Path(folder) / "printed"
        child = os.fork()
        if child == 0:
            _be_the_command([command, str(fmu), *COMMANDS[command]], folder, printed)
        killer = threading.Timer(limit, os.kill, (child, signal.SIGKILL))
        killer.start()
        _, status, used = os.wait4(child, 0)
        killer.cancel()
        text = printed.read_text(errors="replace", encoding="utf-8") if printed.exists() else ""
        return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, text


def _be_the_command(arguments: list[str], folder: str, printed: Path) -> NoReturn:
    status = UNKNOWN
    try:
        os.setsid()
        os.chdir(folder)
        os.environ["COLUMNS"] = "120"
        descriptor = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        status = main_of_fmimaster(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def problems(command: str, status: int, seconds: float, text: str) -> list[str]:
    """What is wrong with how a command ended."""
    found = []
    if status == -signal.SIGKILL:
        found.append("time limit")
    elif status not in STATUSES:
        found.append(f"status {status}")
    if "Traceback (most recent call last)" in text:
        found.append("traceback")
    if seconds > LONGEST.get(command, float("inf")):
        found.append(f"{seconds:.1f} s")
    if text.count("\n") > MOST_LINES:
        found.append(f"{text.count(chr(10))} lines")
    return found


def main() -> int:
    """Print what is wrong; exit status 1 if something is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="show all statuses other than 0")
    parser.add_argument("--only", default="", help="FMUs whose path contains this text")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per command (60)")
    arguments = parser.parse_args()
    wrong = 0
    for fmu in sorted(arguments.folder.resolve().rglob("*.fmu")):
        if arguments.only not in str(fmu):
            continue
        for command in COMMANDS:
            status, seconds, text = tried(command, fmu, arguments.limit)
            found = problems(command, status, seconds, text)
            wrong += bool(found)
            if found or (arguments.all and status):
                print(f"{command:8} {fmu}: {', '.join(found) or f'status {status}'}", flush=True)
                print("    " + "\n    ".join(text.strip().splitlines()[-6:]), flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
