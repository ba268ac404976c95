"""The tests, or any command, by a Windows Python under wine.

    python tools/windows.py                       a chosen part of the default tests: what differs between systems
    python tools/windows.py --all                 all default tests
    python tools/windows.py tests/unit/test_x.py  these; more options of pytest after --
    python tools/windows.py --python -m fmimaster demo two-mass

The first time it makes `.venv/windows`: a folder for wine, Python for Windows, the packages that it needs, the kernel and
the reference FMUs for Windows. Later it renews what has changed. A test that ends Python, or hangs, is counted as failed,
and the others go on. The exit status is 1 if a test failed. Needs wine and `pip install -e ".[release]"`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "fmus"))

import junit_summary
from windows_python import ROOT, MissingError, WindowsPython, windows_path

FOLDER = ROOT / ".venv" / "windows"

CHOSEN = (
    *("tests/agreement", "tests/accuracy", "tests/faults", "tests/cli"),
    *("tests/unit/test_archive.py", "tests/unit/test_given_path.py"),
)
"""What runs the package from end to end, and what is about files and processes."""

RESULTS = ROOT / "tests" / "agreement" / "test_other_systems.py"
"""Writes results of this machine, with which those of Windows are compared."""

SECONDS_OF_A_TEST = 300
"""A test that takes longer hangs: Python is ended, and started again."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests by a Windows Python under wine.")
    parser.add_argument("--all", action="store_true", help="all default tests")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument("--python", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="no tests")
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="files, folders, options of pytest"
    )
    given = parser.parse_args()
    python = WindowsPython(FOLDER)
    try:
        python.prepare()
    except MissingError as error:
        print(error, file=sys.stderr)
        return 2
    if given.python is not None:
        return python.run(given.python)
    return tests(python, given.tests or (["tests"] if given.all else CHOSEN), given.processes)


def tests(python: WindowsPython, chosen: list[str], processes: int) -> int:
    """Run them, print a summary, return the exit status."""
    report = FOLDER / "tests.xml"
    report.unlink(missing_ok=True)
    variables = {}
    if any(ROOT / name in (RESULTS, *RESULTS.parents) for name in chosen):
        print("Results of this machine …", flush=True)
        folder = FOLDER / "results"
        folder.mkdir(exist_ok=True)
        subprocess.run([sys.executable, RESULTS, folder], cwd=ROOT, check=True)
        variables["FMIMASTER_RESULTS_OF_OTHER_SYSTEM"] = windows_path(folder)
    options = [
        *("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"),
        *("-n", str(processes), "--dist=worksteal"),
        *("-o", f"faulthandler_timeout={SECONDS_OF_A_TEST}"),
        *("-o", "faulthandler_exit_on_timeout=true"),
        f"--junitxml={windows_path(report)}",
    ]
    python.run([*options, *chosen], FOLDER / "tests.log", variables)
    if not report.exists():
        print("pytest has not come to its end. See above.", file=sys.stderr)
        return 1
    return junit_summary.show(report)


if __name__ == "__main__":
    sys.exit(main())
