"""The tests, or any command, by a Windows Python under wine.

    python tools/windows.py                       a chosen part of the default tests: what differs between systems
    python tools/windows.py --all                 all default tests
    python tools/windows.py tests/unit/test_x.py  these; options of pytest after --
    python tools/windows.py --python -m fmimaster demo two-mass

The first time it makes `.venv/windows`: a folder for wine, Python for Windows, the packages that it needs, the kernel and
the reference FMUs for Windows. Later it renews what has changed. A test that ends Python, or hangs, is counted as failed,
and the others go on. The exit status is 1 if a test failed. Needs wine and `pip install -e ".[release]"`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, groupby, takewhile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "fmus"))

import junit_summary
from junit_summary import FAILED, LOST, PASSED, Outcome
from windows_python import ROOT, MissingError, WindowsPython, copy, windows_path

FOLDER = ROOT / ".venv" / "windows"

CHOSEN = (
    *("tests/agreement/test_other_systems.py", "tests/agreement/test_lost_in_any_call.py"),
    *("tests/agreement/test_fmi_calls.py", "tests/agreement/test_texts.py"),
    *("tests/agreement/test_threads.py", "tests/agreement/test_journal.py"),
    *("tests/faults/test_own_command.py", "tests/faults/test_misbehaviour.py"),
    *("tests/faults/test_once_per_process.py", "tests/faults/test_process_state.py"),
    *("tests/faults/test_started_again.py", "tests/faults/test_signals.py"),
    *("tests/faults/test_instantiation.py", "tests/faults/test_files_of_windows.py"),
    "tests/faults/test_foreign_code.py",
    *("tests/unit/test_apart.py", "tests/unit/test_job.py", "tests/unit/test_archive.py"),
    *("tests/unit/test_given_path.py", "tests/unit/test_library_file.py"),
    *("tests/cli/test_main.py", "tests/cli/test_simulate.py", "tests/cli/test_terminal.py"),
    *("tests/cli/test_output.py", "tests/cli/test_demo_files.py", "tests/cli/test_validate.py"),
    "tests/cli/test_ssp.py",
    *("tests/accuracy/test_two_mass.py", "tests/accuracy/test_quarter_car.py"),
    *("tests/accuracy/test_clocks.py", "tests/accuracy/test_against_fmpy.py"),
    "tests/reference_fmus/test_archives.py",
)
"""What runs the package from end to end, and what is about files and processes: of a tenth of the time of all tests. The
longest come first."""

RESULTS = ROOT / "tests" / "agreement" / "test_other_systems.py"
"""Writes results of this machine, with which those of Windows are compared."""

SECONDS_OF_A_TEST = 300
"""A test that takes longer hangs: Python is ended, and started again."""

FILES_OF_A_RUN = 10
"""Test files for which Python is started once: if it ends too early, they are run again."""

_TEST = re.compile(r"^(tests/.+?::.+?)(?: (?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*)?$", re.M)
_SAID = re.compile(r" *(?:(?:Timeout \(|wine: |Windows fatal exception: ).*)?$")
"""What follows the name of a test that ends Python."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Run tests by a Windows Python under wine.")
    parser.add_argument("--all", action="store_true", help="all default tests")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument("--python", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="no tests")
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="files and folders, then options of pytest"
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
    names = [*takewhile(lambda word: not word.startswith("-"), given.tests)]
    options = given.tests[len(names) :]
    chosen = names or (["tests"] if given.all else CHOSEN)
    return Tests(python, options, variables(chosen)).run(chosen, given.processes)


def variables(chosen: Sequence[str]) -> dict[str, str]:
    """For tests that compare with this machine: where its results are."""
    if not any(ROOT / name in (RESULTS, *RESULTS.parents) for name in chosen):
        return {}
    print("Results of this machine …", flush=True)
    folder = FOLDER / "results"
    folder.mkdir(exist_ok=True)
    subprocess.run([sys.executable, RESULTS, folder], cwd=ROOT, check=True)
    return {"FMIMASTER_RESULTS_OF_OTHER_SYSTEM": windows_path(folder)}


@dataclass(frozen=True)
class Tests:
    """Tests that are run by several processes, some files at a time."""

    python: WindowsPython
    options: Sequence[str]
    """Of pytest."""
    variables: Mapping[str, str]

    def run(self, chosen: Sequence[str], processes: int) -> int:
        """Run them, print a summary, return the exit status."""
        shutil.rmtree(FOLDER / "logs", ignore_errors=True)
        (FOLDER / "logs").mkdir()
        try:
            with ThreadPoolExecutor(processes) as pool:
                found = [*pool.map(self._outcomes, *zip(*enumerate(runs(chosen)), strict=True))]
        finally:
            self.python.end()
        return junit_summary.show([*chain.from_iterable(found)])

    def _outcomes(self, number: int, files: Sequence[str]) -> list[Outcome]:
        """Of the tests in some files. A test that ends Python is left out when they are run again."""
        report, log = (FOLDER / "logs" / f"{number}.{suffix}" for suffix in ("xml", "log"))
        arguments = [
            *("-m", "pytest", "-v", "--tb=short", "-p", "no:cacheprovider"),
            *("-o", "console_output_style=classic"),
            *("-o", f"faulthandler_timeout={SECONDS_OF_A_TEST}"),
            *("-o", "faulthandler_exit_on_timeout=true"),
            f"--junitxml={windows_path(report)}",
            *(*self.options, *files),
        ]
        lost: list[str] = []
        while True:
            without = [f"--deselect={test}" for test in lost]
            with log.open("wb") as kept:
                copy(self.python.begun([*arguments, *without], self.variables), kept)
            tests = _TEST.findall(log.read_text(encoding="utf-8", errors="replace"))
            if report.exists() or not tests or _SAID.sub("", tests[-1]) in lost:
                break
            lost.append(_SAID.sub("", tests[-1]))
            print(f"{lost[-1]} has ended Python, or hangs", flush=True)
        found = [Outcome(name, FAILED, LOST) for name in (lost if report.exists() else files)]
        if report.exists():
            found += junit_summary.read(report)
        passed, failed = (sum(o.kind == kind for o in found) for kind in (PASSED, FAILED))
        print(f"{files[0]} … {files[-1]}: {passed} passed, {failed} failed", flush=True)
        return found


def runs(chosen: Sequence[str]) -> Iterator[list[str]]:
    """Test files that one Python runs: some of a folder."""
    names = chain.from_iterable(map(_files, chosen))
    for _, files in groupby(names, lambda name: Path(name).parent):
        of_folder = [*files]
        for k in range(0, len(of_folder), FILES_OF_A_RUN):
            yield of_folder[k : k + FILES_OF_A_RUN]


def _files(name: str) -> list[str]:
    """Those of a folder, or what is no folder itself."""
    folder = ROOT / name
    if not folder.is_dir():
        return [name]
    found = sorted(folder.rglob("test_*.py"), key=lambda file: (file.parent, file.name))
    return [str(file.relative_to(ROOT)) for file in found]


if __name__ == "__main__":
    sys.exit(main())
