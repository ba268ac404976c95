"""What ``fmimaster conformance`` does: run the FMUs of a folder, show how far it is, print a summary."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

from fmimaster.base.errors import OptionError
from fmimaster.base.files import given_path
from fmimaster.base.text import aligned, clipped, count, fitted, named, section
from fmimaster.commands.running import over_line
from fmimaster.commands.settings import memory_in_bytes
from fmimaster.commands.text import note, write, write_json
from fmimaster.conformance.measures import ConformanceLimits
from fmimaster.conformance.page import PAGE
from fmimaster.conformance.recorded import (
    RecordedVerdict,
    departures,
    read_recorded,
    write_recorded,
)
from fmimaster.conformance.run import check_conformance
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictCause, VerdictOutcome
from fmimaster.conformance.workers import ConformanceProgress
from fmimaster.system.declarations import Interface

_FAILED = 1
"""Exit status if an FMU has failed."""

_LIMITS = ("outside", "relative_rms", "largest", "jump_time")

_KINDS = {
    Interface.CO_SIMULATION.value: "CS",
    Interface.MODEL_EXCHANGE.value: "ME",
    Interface.SCHEDULED_EXECUTION.value: "SE",
}

_MOST_REASON = 160
"""Letters of a reason in the summary; the whole one is in the report."""


def run(arguments: Namespace) -> int:
    """Run the FMUs, or compare two runs."""
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
        write(_summary(found))
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
    return read_recorded(file)


def _departed(
    arguments: Namespace, found: ConformanceRun, recorded: tuple[RecordedVerdict, ...]
) -> int:
    """Show how the run differs from what is recorded, and record it if that is asked for."""
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
        self._arguments = arguments
        self._counts: Counter[VerdictOutcome] = Counter()
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._is_live = terminal and not (arguments.quiet or arguments.no_progress)

    def __call__(self, progress: ConformanceProgress) -> None:
        verdict = progress.verdict
        if self._is_live:
            over_line("")
        if verdict is None and progress.kept:
            number = count(progress.kept, "verdict")
            kept = f"kept from an earlier run: {number} (--again runs all FMUs)"
            note(self._arguments, [kept])
        if verdict is not None:
            self._counts[verdict.outcome] += 1
            if verdict.outcome is not VerdictOutcome.PASSED:
                text = f"{verdict.outcome.value}: {_short(verdict.name)}: {verdict.reason}"
                note(self._arguments, [clipped(text, _MOST_REASON)])
        if self._is_live and progress.done < progress.total:
            over_line(self._line(progress))

    def _line(self, progress: ConformanceProgress) -> str:
        counts = [f"{self._counts[o]} {o.value}" for o in VerdictOutcome if self._counts[o]]
        now = f"now: {', '.join(map(_short, progress.running))}" if progress.running else ""
        parts = [f"{progress.done} of {progress.total}", *counts, now]
        return "  ".join(part for part in parts if part)


def _short(name: str) -> str:
    """The name of an FMU without its folder, for lines that are soon gone."""
    return name.rpartition("/")[2]


def _summary(run: ConformanceRun) -> Iterator[str]:
    yield from section("FMUs by exporter", aligned(_by_exporter(run.verdicts)))
    for outcome in (VerdictOutcome.FAILED, VerdictOutcome.REJECTED):
        lines = [
            f"  {v.name}: {clipped(v.reason, _MOST_REASON)}"
            for v in run.verdicts
            if v.outcome is outcome
        ]
        yield from section(outcome.value.capitalize(), lines)
    yield ""
    yield from fitted(_in_one_line(run))


def _in_one_line(run: ConformanceRun) -> str:
    compared = sum(bool(v.measures) and v.outcome is VerdictOutcome.PASSED for v in run.verdicts)
    passed = (
        f"{run.count(VerdictOutcome.PASSED)} passed ({compared} of them compared with a reference)"
    )
    others = [f"{run.count(o)} {o.value}" for o in (VerdictOutcome.FAILED, VerdictOutcome.REJECTED)]
    causes = Counter(v.cause.value for v in run.verdicts if v.cause is not VerdictCause.NONE)
    why = ", ".join(f"{number} {cause}" for cause, number in causes.most_common())
    return f"{count(len(run.verdicts), 'verdict')}: {', '.join([passed, *others])}" + (
        f"; causes: {why}" if why else ""
    )


def _by_exporter(verdicts: Iterable[Verdict]) -> list[tuple[str, ...]]:
    counts: dict[tuple[str, str], Counter[VerdictOutcome]] = {}
    for v in verdicts:
        kind = _KINDS.get(v.interface, "")
        key = (v.exporter or "not named", f"{v.fmi_version or 'unknown'} {kind}".rstrip())
        counts.setdefault(key, Counter())[v.outcome] += 1
    head = ("exporter", "FMI", "FMUs", *(o.value for o in VerdictOutcome))
    return [
        head,
        *(
            (*key, str(sum(c.values())), *(str(c[o] or "") for o in VerdictOutcome))
            for key, c in sorted(counts.items())
        ),
    ]


WORSE = 1
"""Exit status if an FMU that passed before does not pass now."""


def compare(old: str, new: str, html: str | None, as_json: bool) -> int:
    """Print what changed, and write it as an HTML page if a file is given.

    Parameters
    ----------
    old, new
        Output folders of two runs, or their files ``verdicts.jsonl``.
    """
    from fmimaster.conformance.changes import (  # only this needs it
        VerdictChange,
        changes,
        write_changes,
    )

    found = changes(*(ConformanceRun.read(given_path(run)) for run in (old, new)))
    if html:
        write_changes(found, given_path(html))
    if as_json:
        write_json(found.to_json())
    else:
        write(str(found).splitlines())
    return WORSE if found.of(VerdictChange.WORSE) else 0
