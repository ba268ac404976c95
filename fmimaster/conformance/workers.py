"""The workers of a conformance run, and the file with the verdicts, from which a later run continues.

Each worker runs one FMU after the other, in processes of their own. The file is written during the run.

All other files are made from it at the end, so an interruption loses only the FMUs that were running. Limits, solver and
version decide about results and must be the same when a run is continued; deadline, memory and workers may differ."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from fmimaster.apart.run import EndCause as End
from fmimaster.apart.run import EndedProcess, run_apart
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, FmimasterError, Interrupted, OptionError
from fmimaster.base.files import put_in_place, reason_of
from fmimaster.base.own_folder import OwnFolder
from fmimaster.conformance.cases import FmuCase
from fmimaster.conformance.curve import ComparedCurve, curves
from fmimaster.conformance.measures import ConformanceLimits
from fmimaster.conformance.one_run import blank_verdict, run_case
from fmimaster.conformance.verdict import (
    VERDICTS_FILE,
    ConformanceRun,
    Verdict,
    VerdictCause,
    VerdictOutcome,
    line_of,
)
from fmimaster.conformance.verdict_files import CARD_FILE, new_folder, write_outcome
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.results.results import Results
from fmimaster.studies.probing.probe import probe
from fmimaster.system.archive import file_hash


class KeptVerdicts:
    """The verdicts so far, in memory and in the file. A context manager, which closes the file.

    Parameters
    ----------
    run : ConformanceRun
        With the verdicts that are kept.
    """

    def __init__(self, folder: Path, run: ConformanceRun) -> None:
        self._run = run
        self._found = {verdict.name: verdict for verdict in run.verdicts}
        file, new = folder / VERDICTS_FILE, folder / f"{VERDICTS_FILE}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = [run.head(), *map(line_of, run.verdicts)]
            text = "".join(f"{line}\n" for line in lines)
            new.write_text(text, encoding="utf-8", newline="\n")
            put_in_place(new, file)  # the older file is there until the new one is complete
            self._stream = file.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise FileError(f"'{file}' cannot be written: {reason_of(error)}.") from error

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict; it is in the file when this returns."""
        self._found[verdict.name] = verdict
        self._stream.write(f"{line_of(verdict)}\n")
        self._stream.flush()

    @property
    def run(self) -> ConformanceRun:
        """The run with the verdicts so far."""
        return replace(self._run, verdicts=tuple(self._found[name] for name in sorted(self._found)))

    def __enter__(self) -> KeptVerdicts:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def gone_on(
    folder: Path, new: ConformanceRun, cases: Sequence[FmuCase], retry: bool
) -> ConformanceRun:
    """The run in an output folder, with those verdicts that still hold; the new run, if there is none.

    A verdict holds if its FMU is the same, and no file beside it is newer than the run.

    Parameters
    ----------
    retry : bool
        Whether only the verdicts of FMUs that have passed are kept.

    Raises
    ------
    FileError
        If the file with the verdicts cannot be read.
    OptionError
        If they belong to another folder, version of fmimaster, platform, or to other limits.
    """
    if not (folder / VERDICTS_FILE).exists():
        return new
    old = ConformanceRun.read(folder)
    _refuse_other(folder, old, new)
    by_name = {case.name: case for case in cases}
    kept = tuple(
        verdict
        for verdict in old.verdicts
        if verdict.name in by_name
        and not (retry and not verdict.has_passed)
        and _holds(verdict, by_name[verdict.name], old.started)
    )
    return replace(new, started=old.started, verdicts=kept)


def _refuse_other(folder: Path, old: ConformanceRun, new: ConformanceRun) -> None:
    what = {
        "folder": (old.folder, new.folder),
        "version of fmimaster": (old.version, new.version),
        "platform": (old.platform, new.platform),
        **{f"setting '{k}'": (old.settings.get(k), v) for k, v in new.settings.items()},
    }
    differing = [
        f"{name}: {before}, now {now}" for name, (before, now) in what.items() if before != now
    ]
    if differing:
        raise OptionError(
            f"'{folder}' has the verdicts of another run ({'; '.join(differing)}). Choose another output folder, or "
            "run all FMUs again (--again)."
        )


def _holds(verdict: Verdict, case: FmuCase, started: str) -> bool:
    try:
        begun = datetime.fromisoformat(started).timestamp()
        beside = [f for f in (case.reference, case.options, case.inputs) if f is not None]
        is_carried = case.reference is None and verdict.reference.startswith(f"{case.fmu}/")
        return (
            (is_carried or verdict.reference == case.beside(case.reference))
            and verdict.results == case.results
            and all(file.stat().st_mtime <= begun for file in beside)
            and verdict.sha256 == file_hash(case.path)
        )
    except (OSError, ValueError, FmimasterError):
        return False


log = logging.getLogger("fmimaster")

T = TypeVar("T")

_CAUSES = {
    End.SIGNAL: VerdictCause.CRASH,
    End.EXIT: VerdictCause.EXIT,
    End.DEADLINE: VerdictCause.DEADLINE,
    End.MEMORY: VerdictCause.MEMORY,
    End.RAISED: VerdictCause.INTERNAL,
    End.DAMAGED: VerdictCause.DAMAGED,
}

_WITHOUT_RUN = {VerdictCause.LIBRARY, VerdictCause.REFUSED, VerdictCause.RULES}
"""Causes with which a probe could not run an FMU either; the verdict has the reason."""


@dataclass(frozen=True)
class ConformanceProgress:
    """How far a conformance run is.

    Attributes
    ----------
    verdict : Verdict or None
        The latest one; None before the first.
    done, total : int
        FMUs of this run that have a verdict, and all.
    kept : int
        Verdicts of an earlier run that still hold; they are not counted in the two others.
    running : tuple of str
        The names of those that run now.
    """

    verdict: Verdict | None
    done: int
    total: int
    kept: int
    running: tuple[str, ...]


Callback = Callable[[ConformanceProgress], object]


class Work:
    """What the workers share."""

    def __init__(
        self,
        output: Path,
        kept: KeptVerdicts,
        deadline: float,
        memory_limit: int | None,
        how: tuple[ConformanceLimits, Integrator | str | None],
        progress: Callback | None,
    ) -> None:
        self._output, self._kept, self._how = output, kept, how
        self._deadline, self._memory_limit = deadline, memory_limit
        self._progress = progress
        self._number_kept = self._total = len(kept.run.verdicts)
        self._done = 0
        self._running: dict[str, None] = {}
        self._stop = threading.Event()

    def do(self, cases: Sequence[FmuCase], workers: int) -> None:
        """Run all FMUs; the verdicts are kept as they come."""
        self._total = self._number_kept + len(cases)
        self._tell(None, 0, len(cases))
        if not cases:
            return
        run_apart(_nothing)  # the preloaded process starts: not the time of the first FMU

        def take(verdict: Verdict) -> None:
            self._kept.add(verdict)
            self._done += 1
            self._tell(verdict, self._done, len(cases))

        self._all(self._one, cases, workers, take)

    def measure(self, cases: Sequence[FmuCase], workers: int) -> None:
        """Write the cards of those FMUs that have none, and can run at all."""
        cannot = {v.name for v in self._kept.run.verdicts if v.cause in _WITHOUT_RUN}
        missing = [
            c
            for c in cases
            if c.name not in cannot and not (self._output / c.results / CARD_FILE).is_file()
        ]
        self._all(self._card, missing, workers, lambda _: None)

    def _all(
        self,
        act: Callable[[FmuCase], T],
        cases: Sequence[FmuCase],
        workers: int,
        take: Callable[[T], None],
    ) -> None:
        """Let the workers act on all FMUs; what they have found is taken as it comes."""
        with ThreadPoolExecutor(workers, thread_name_prefix="conformance") as pool:
            futures = [pool.submit(act, case) for case in cases]
            try:
                for future in as_completed(futures):
                    take(future.result())
            except BaseException as error:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                if isinstance(error, KeyboardInterrupt):
                    have = len(self._kept.run.verdicts)
                    raise Interrupted(
                        f"Interrupted. {have} of {self._total} FMUs have a verdict; the same command continues with the "
                        "others."
                    ) from None
                raise

    def _card(self, case: FmuCase) -> None:
        """In the thread of a worker: measure an FMU."""
        if self._stop.is_set() or case.interface is None:
            return
        folder = self._output / case.results
        try:
            card = probe(case.path, interface=case.interface)
            folder.mkdir(parents=True, exist_ok=True)
            card.write(folder / CARD_FILE)
        except FmimasterError as error:
            log.warning("'%s' has no card: %s", case.name, error)

    def _tell(self, verdict: Verdict | None, done: int, total: int) -> None:
        if self._progress is not None:
            running = tuple(self._running)
            self._progress(ConformanceProgress(verdict, done, total, self._number_kept, running))

    def _one(self, case: FmuCase) -> Verdict:
        """In the thread of a worker: run an FMU."""
        self._running[case.name] = None
        try:
            folder = new_folder(self._output, case)
            work = OwnFolder()
            try:
                ended = run_apart(
                    run_case,
                    case,
                    folder,
                    work.path,
                    *self._how,
                    deadline=self._deadline,
                    memory_limit=self._memory_limit,
                    stop=self._stop,
                )
            finally:
                work.remove()
            if ended.cause is End.STOPPED:
                raise CancelledError
            verdict = ended.value if ended.cause is End.RETURNED else _lost(case, folder, ended)
            verdict = replace(verdict, overhead=max(0.0, ended.seconds - verdict.seconds))
            write_outcome(self._output, verdict, ended.output)
            return verdict
        finally:
            self._running.pop(case.name, None)


def _lost(case: FmuCase, folder: Path, ended: EndedProcess) -> Verdict:
    """The verdict about an FMU whose process has not returned one; the rows until then are there."""
    rows, reached = 0, ""
    shown: tuple[ComparedCurve, ...] = ()
    file = folder / f"{case.model}_out.csv"
    try:
        results = Results.read(file)
        rows, shown = results.rows, curves(results)
        reached = (
            f" The last row that was written is at t = {results.time[-1]:g} s." if rows else ""
        )
    except FmimasterError:
        pass  # nothing was written
    how = ended.how or f"has failed: {ended.error}"
    advice = " Give it more time (--deadline)." if ended.cause is End.DEADLINE else ""
    return replace(
        blank_verdict(case),
        outcome=VerdictOutcome.FAILED,
        cause=_CAUSES[ended.cause],
        reason=f"The process of the FMU {how}.{reached}{advice}",
        sha256=_hash(case),
        rows=rows,
        curves=shown,
        seconds=ended.seconds,
    )


def _hash(case: FmuCase) -> str:
    """The hash of an FMU; empty if it is not there any more."""
    try:
        return file_hash(case.path)
    except OSError:
        return ""


def _nothing() -> None:
    """What the first process does."""
