"""Give every FMU of a folder to the commands of fmimaster, and find tracebacks, unknown exit statuses and long waits.

    python conformance/commands.py FOLDER

``info``, ``validate``, ``plan`` and ``simulate`` (100 steps) run in processes of their own. A line is printed for each that
shows a traceback, ends with a status other than 0, 1 or 2, takes longer than 3 s (``simulate``: than the limit), or prints
more than 200 lines; with ``--all`` for each that ends with a status other than 0, with its message.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STATUSES = (0, 1, 2)
LONGEST = {"info": 3.0, "validate": 3.0, "plan": 3.0}
"""Seconds."""
MOST_LINES = 200
COMMANDS = {
    "info": (),
    "validate": (),
    "plan": ("--stop-time", "1", "--step-size", "0.01"),
    "simulate": ("--stop-time", "1", "--step-size", "0.01", "--output-file", "rows.csv"),
}


def tried(command: str, fmu: Path, limit: float) -> tuple[int | None, float, str]:
    """Exit status, None beyond the time limit; seconds; what was printed."""
    with tempfile.TemporaryDirectory(prefix="commands-") as folder:
        printed = Path(folder) / "printed"
        begin = time.monotonic()
        with printed.open("w") as file:
            try:
                done = subprocess.run(
                    [
                        sys.executable,
                        "-m",
                        "fmimaster",
                        command,
                        str(fmu.resolve()),
                        *COMMANDS[command],
                    ],
                    cwd=folder,
                    env={**os.environ, "COLUMNS": "120"},
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    timeout=limit,
                    check=False,
                )
                status = done.returncode
            except subprocess.TimeoutExpired:
                status = None
        return status, time.monotonic() - begin, printed.read_text(errors="replace")


def problems(command: str, status: int | None, seconds: float, text: str) -> list[str]:
    """What is wrong with how a command ended."""
    found = []
    if status is None:
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
    for fmu in sorted(arguments.folder.rglob("*.fmu")):
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
