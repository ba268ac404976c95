"""``fmimaster conformance``: run the FMUs of a folder, show how far it is, print a summary."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from fmimaster.base.errors import OptionError
from fmimaster.base.files import given_path
from fmimaster.base.text import clipped, count, named
from fmimaster.commands.parser import group
from fmimaster.commands.text import note, write, write_json
from fmimaster.configure.named import SOLVERS

# imports that a help page does not need are made where they are used: they take 0.4 s
if TYPE_CHECKING:
    from fmimaster.conformance.recorded import RecordedVerdict
    from fmimaster.conformance.verdict import ConformanceRun, Verdict
    from fmimaster.conformance.workers import ConformanceProgress

# of conformance.run and conformance.measures, which are slow to import; tests/unit/test_named.py compares them
CONFORMANCE_DEADLINE = 60.0
"""[s]"""
CONFORMANCE_OUTPUT = "conformance-results"
"""Folder."""
OUTSIDE_BAND = 0.1
"""Share of samples."""


def add_arguments(parser: ArgumentParser) -> None:
    """The folder, and how its FMUs are run and compared."""
    add = parser.add_argument
    folder = (
        "folder with FMUs, in the layout of the FMI cross-check or in any other one; with --compare the output folders "
        "of an old and a new run"
    )
    add("folders", nargs="+", metavar="FOLDER", help=folder)
    output = f"folder for verdicts, report and results (default: {CONFORMANCE_OUTPUT})"
    add("--output-folder", metavar="FOLDER", default=CONFORMANCE_OUTPUT, help=output)
    only = "run only FMUs whose path in the folder fits; can be repeated"
    add("--only", action="append", default=[], metavar="GLOB", help=only)
    interface = (
        "run FMUs by this interface only: co-simulation, model-exchange, scheduled-execution"
    )
    add("--interface", metavar="NAME", help=interface)
    solver = f"solver of Model Exchange FMUs: {', '.join(SOLVERS)} (default: dormand-prince)"
    add("--solver", metavar="NAME[:KEY=VALUE,...]", help=solver)
    again = parser.add_mutually_exclusive_group().add_argument
    again("--again", action="store_true", help="run all FMUs, also those that have a verdict")
    again("--retry", action="store_true", help="run the FMUs that have not passed")
    cards = "also measure each FMU as 'fmimaster probe' does; its card is in the report"
    add("--cards", action="store_true", help=cards)
    add("--json", action="store_true", help="print the verdicts as JSON")
    compare = "show what has changed between two runs: --compare OLD NEW"
    add("--compare", action="store_true", help=compare)
    verdicts = (
        "run all FMUs again, and show what differs from the verdicts that are recorded in this file"
    )
    add("--verdicts", metavar="FILE", help=verdicts)
    record = "with --verdicts: write the verdicts into that file in the end"
    add("--record", action="store_true", help=record)
    page = "with --compare: file for the changes as an HTML page"
    add("--html", metavar="FILE", help=page)
    add = group(parser, "Processes").add_argument
    add("--workers", type=int, metavar="N", help="FMUs at the same time (default: one per core)")
    deadline = f"time in s after which an FMU is ended (default: {CONFORMANCE_DEADLINE:g})"
    add(
        "--deadline",
        type=float,
        default=CONFORMANCE_DEADLINE,
        metavar="SECONDS",
        help=deadline,
    )
    memory = "bytes that each FMU can allocate in its process, such as 2e9"
    add("--memory-limit", type=float, metavar="BYTES", help=memory)
    add = group(parser, "Comparison with references").add_argument
    outside = (
        f"largest share of samples outside the band of the cross-check (default: {OUTSIDE_BAND:g})"
    )
    add("--outside", type=float, metavar="SHARE", help=outside)
    rms = "largest RMS deviation, relative to the range of the reference (default: no limit)"
    add("--relative-rms", type=float, metavar="TOL", help=rms)
    largest = "largest deviation, relative to the range of the reference (default: no limit)"
    add("--largest", type=float, metavar="TOL", help=largest)
    jumps = "largest difference in s of the time of an event (default: no limit)"
    add("--jump-time", type=float, metavar="SECONDS", help=jumps)
    add = group(parser, "Messages and logs").add_argument
    add("--no-progress", action="store_true", help="do not show which FMUs are running")


_FAILED = 1
"""Exit status if an FMU has failed."""

_LIMITS = ("outside", "relative_rms", "largest", "jump_time")


def run(arguments: Namespace) -> int:
    """Run the FMUs, or compare two runs; exit status 1 if one has failed, or differs from what is recorded."""
    from fmimaster.commands.settings import memory_in_bytes
    from fmimaster.conformance.measures import ConformanceLimits
    from fmimaster.conformance.page import PAGE
    from fmimaster.conformance.run import check_conformance
    from fmimaster.conformance.verdict import summary

    if arguments.compare:
        return _compare(arguments)
    folder = _one_folder(arguments.folders)
    recorded = _recorded(arguments)
    limits = {n: v for n in _LIMITS if (v := getattr(arguments, n)) is not None}
    begun = perf_counter()
    found = check_conformance(
        folder,
        output_folder=arguments.output_folder,
        workers=arguments.workers,
        deadline=arguments.deadline,
        memory_limit=memory_in_bytes(arguments.memory_limit),
        only=arguments.only,
        **({} if arguments.interface is None else {"interfaces": [arguments.interface]}),
        limits=ConformanceLimits(**limits),
        solver=arguments.solver,
        again=arguments.again or recorded is not None,  # a verdict that was kept shows no change
        retry=arguments.retry,
        cards=arguments.cards,
        progress=_Shown(arguments),
    )
    if arguments.json:
        write_json([_facts(verdict) for verdict in found.verdicts])
    else:
        write(summary(found))
        note(arguments, [f"wall time: {perf_counter() - begun:.1f} s"])
        write([f"report: {Path(arguments.output_folder) / PAGE}"])
    if recorded is None:
        return 0 if found.has_passed else _FAILED
    return _departed(arguments, found, recorded)


def _is_whole(arguments: Namespace) -> bool:
    return not arguments.only and arguments.interface is None


def _recorded(arguments: Namespace) -> tuple[RecordedVerdict, ...] | None:
    """The recorded verdicts; None if none are given."""
    if arguments.verdicts is None:
        if arguments.record:
            raise OptionError("--record needs a file for the verdicts: --verdicts FILE.")
        return None
    if arguments.record and not _is_whole(arguments):
        raise OptionError("--record needs a run of all FMUs, without --only and --interface.")
    file = given_path(arguments.verdicts)
    if arguments.record and not file.exists():
        return ()
    from fmimaster.conformance.recorded import read_recorded

    return read_recorded(file)


def _departed(
    arguments: Namespace, found: ConformanceRun, recorded: tuple[RecordedVerdict, ...]
) -> int:
    """Show how the run differs from what is recorded, and record it if that is asked for."""
    from fmimaster.conformance.recorded import departures, write_recorded

    is_whole = _is_whole(arguments)
    differing = departures(recorded, found, is_whole=is_whole)
    lines = str(differing).splitlines()
    if arguments.json:
        note(arguments, lines)
    else:
        write(lines)
    if not arguments.record:
        return _FAILED if differing else 0
    write_recorded(found, given_path(arguments.verdicts))
    return 0


def _compare(arguments: Namespace) -> int:
    if len(arguments.folders) != 2:
        raise OptionError(
            f"--compare needs the output folders of two runs, OLD and NEW; there are {len(arguments.folders)}."
        )
    old, new = arguments.folders
    return compare(old, new, arguments.html, arguments.json)


def _one_folder(folders: Sequence[str]) -> str:
    if len(folders) != 1:
        raise OptionError(
            f"Expected one folder with FMUs, not {len(folders)}: {named(folders)}. Two runs are compared with --compare."
        )
    return folders[0]


def _facts(verdict: Verdict) -> dict[str, object]:
    """A verdict as JSON, without points of curves."""
    return {key: value for key, value in verdict.to_json().items() if key != "curves"}


class _Shown:
    """Shows the progress: a line for each FMU that has not passed, and on a terminal which FMUs run."""

    def __init__(self, arguments: Namespace) -> None:
        from fmimaster.conformance.verdict import VerdictOutcome

        self._arguments = arguments
        self._counts = dict.fromkeys(VerdictOutcome, 0)
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._is_live = terminal and not (arguments.quiet or arguments.no_progress)

    def __call__(self, progress: ConformanceProgress) -> None:
        from fmimaster.commands.running import over_line
        from fmimaster.conformance.verdict import MOST_REASON

        verdict = progress.verdict
        if self._is_live:
            over_line("")
        if verdict is None and progress.kept:
            number = count(progress.kept, "verdict")
            kept = f"kept from an earlier run: {number} (--again runs all FMUs)"
            note(self._arguments, [kept])
        if verdict is not None:
            self._counts[verdict.outcome] += 1
            if not verdict.has_passed:
                text = f"{verdict.outcome.value}: {_short(verdict.name)}: {verdict.reason}"
                note(self._arguments, [clipped(text, MOST_REASON)])
        if self._is_live and progress.done < progress.total:
            over_line(self._line(progress))

    def _line(self, progress: ConformanceProgress) -> str:
        counts = [f"{n} {outcome.value}" for outcome, n in self._counts.items() if n]
        now = f"now: {', '.join(map(_short, progress.running))}" if progress.running else ""
        parts = [f"{progress.done} of {progress.total}", *counts, now]
        return "  ".join(part for part in parts if part)


def _short(name: str) -> str:
    """The name of an FMU without its folder, for lines that are soon gone."""
    return name.rpartition("/")[2]


WORSE = 1
"""Exit status if an FMU that passed before does not pass now."""


def compare(old: str, new: str, html: str | None, as_json: bool) -> int:
    """Print what changed, and write it as an HTML page if a file is given.

    Parameters
    ----------
    old, new
        Output folders of two runs, or their files ``verdicts.jsonl``.
    """
    from fmimaster.conformance.changes import VerdictChange, changes, write_changes
    from fmimaster.conformance.verdict import ConformanceRun

    found = changes(*(ConformanceRun.read(given_path(run)) for run in (old, new)))
    if html:
        write_changes(found, given_path(html))
    if as_json:
        write_json(found.to_json())
    else:
        write(str(found).splitlines())
    return WORSE if found.of(VerdictChange.WORSE) else 0
