"""A conformance run: workers that run FMUs in processes of their own, and the files with the verdicts."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path
from typing import Any

from fmimaster.apart.process import refuse_other_platforms
from fmimaster.apart.run import Cause as End
from fmimaster.apart.run import Ended, run_apart
from fmimaster.conformance.cases import Case, find_cases
from fmimaster.conformance.curve import Curve, curves
from fmimaster.conformance.junit import write_junit
from fmimaster.conformance.kept import KeptVerdicts, gone_on, names_of
from fmimaster.conformance.measures import Limits
from fmimaster.conformance.one_run import blank_verdict, run_case
from fmimaster.conformance.page import write_page
from fmimaster.conformance.tree import new_folder, write_outcome
from fmimaster.conformance.verdict import Cause, ConformanceRun, Outcome, Verdict
from fmimaster.conformance.verdicts_csv import write_verdicts_csv
from fmimaster.errors import FmimasterError, Interrupted, OptionError, did_you_mean
from fmimaster.fmu.fingerprint import file_hash
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.fmu.platforms import FMI3
from fmimaster.given_path import given_path
from fmimaster.named.solvers import solvers
from fmimaster.results.results import Results
from fmimaster.system.model import Interface
from fmimaster.version import installed_version

DEADLINE = 60.0
"""In s, for one FMU."""

OUTPUT = "conformance-results"
"""The output folder."""

_CAUSES = {
    End.SIGNAL: Cause.CRASH,
    End.EXIT: Cause.EXIT,
    End.DEADLINE: Cause.DEADLINE,
    End.MEMORY: Cause.MEMORY,
    End.RAISED: Cause.INTERNAL,
}


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


def check_conformance(
    folder: str | os.PathLike[str],
    *,
    output_folder: str | os.PathLike[str] = OUTPUT,
    workers: int | None = None,
    deadline: float = DEADLINE,
    memory_limit: int | None = None,
    only: Sequence[str] = (),
    interfaces: Sequence[Interface | str] = (Interface.CO_SIMULATION, Interface.MODEL_EXCHANGE),
    limits: Limits | None = None,
    solver: Integrator | str | None = None,
    again: bool = False,
    retry: bool = False,
    progress: Callback | None = None,
) -> ConformanceRun:
    """Run all FMUs of a folder, each in a process of its own, and compare their results with their references.

    A folder in the layout of the FMI cross-check, or any other one. Beside ``MODEL.fmu`` can be ``MODEL_ref.csv``, the
    reference; ``MODEL_ref.opt``, its times and tolerance; and ``MODEL_in.csv``, input signals. Without a reference an
    FMU passes if it runs to the end. An earlier run in the same output folder is continued. Linux only.

    Parameters
    ----------
    output_folder
        For ``verdicts.jsonl``, ``verdicts.csv``, ``junit.xml``, ``report.html``, and the results tree of the
        cross-check rules, with results and log of each FMU.
    workers : int
        How many FMUs run at the same time. Default: one for each core.
    deadline : float, in s
        After that time the process of an FMU is ended.
    memory_limit : int, in bytes
        For the allocations of an FMU. Default: none.
    only : globs
        Names of FMUs, which are their paths in the folder; others are not run. Default: all.
    interfaces
        ``"CoSimulation"`` and ``"ModelExchange"``. An FMU that has both is run by both.
    limits : Limits
        Limits of the deviations. Default: the band of the cross-check.
    solver : Integrator, or text such as ``"cvode"``
        For Model Exchange FMUs. Default: DormandPrince.
    again : bool
        Whether verdicts of an earlier run are discarded.
    retry : bool
        Whether those of FMUs that have not passed are discarded.
    progress
        Called with a ConformanceProgress before the first FMU and after each one.

    Returns
    -------
    ConformanceRun
        With a verdict for each FMU; its ``has_passed`` is true if none has failed.

    Raises
    ------
    InputError
        If the folder has no FMUs, or an argument has no meaning.
    Interrupted
        If Ctrl-C was pressed: the files have the verdicts so far, and the same call goes on.

    Examples
    --------
    >>> import fmimaster
    >>> run = fmimaster.check_conformance("fmus", workers=2)  # doctest: +SKIP
    >>> [(v.name, v.reason) for v in run.verdicts if v.outcome is fmimaster.Outcome.FAILED]  # doctest: +SKIP
    []
    """
    refuse_other_platforms()
    workers = _checked(workers, deadline, memory_limit)
    limits = limits or Limits()
    solvers(solver)  # refused now, and not by each FMU
    output = given_path(output_folder).absolute()
    cases = find_cases(folder, [Interface.named(i) for i in interfaces])
    chosen = _chosen(cases, only)
    new = ConformanceRun(
        folder=str(given_path(folder).absolute()),
        started=datetime.now(timezone.utc).isoformat(),
        version=installed_version(),
        platform=FMI3,
        settings={**_json(limits), "solver": None if solver is None else str(solver)},
    )
    run = new if again else gone_on(output, new, cases, retry)
    done = names_of(run.verdicts)
    with KeptVerdicts(output, run) as kept:
        work = _Work(output, kept, deadline, memory_limit, (limits, solver), progress)
        try:
            work.do([case for case in chosen if case.name not in done], workers)
        finally:
            write_files(kept.run, output)
        return kept.run


def write_files(run: ConformanceRun, output: Path) -> None:
    """Write the verdicts in all forms."""
    write_verdicts_csv(run, output / "verdicts.csv")
    write_junit(run, output, output / "junit.xml")
    write_page(run, output)


class _Work:
    """What the workers share."""

    def __init__(
        self,
        output: Path,
        kept: KeptVerdicts,
        deadline: float,
        memory_limit: int | None,
        how: tuple[Limits, Integrator | str | None],
        progress: Callback | None,
    ) -> None:
        self._output, self._kept, self._how = output, kept, how
        self._deadline, self._memory_limit = deadline, memory_limit
        self._progress = progress
        self._number_kept = len(kept.run.verdicts)
        self._running: dict[str, None] = {}
        self._stop = threading.Event()

    def do(self, cases: Sequence[Case], workers: int) -> None:
        """Run all FMUs; the verdicts are kept as they come."""
        self._tell(None, 0, len(cases))
        if not cases:
            return
        run_apart(_nothing)  # the preloaded process starts: not the time of the first FMU
        with ThreadPoolExecutor(workers, thread_name_prefix="conformance") as pool:
            futures = [pool.submit(self._one, case) for case in cases]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    verdict = future.result()
                    self._kept.add(verdict)
                    self._tell(verdict, done, len(cases))
            except BaseException as error:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                if isinstance(error, KeyboardInterrupt):
                    have = len(self._kept.run.verdicts)
                    raise Interrupted(
                        f"Interrupted. {have} of {self._number_kept + len(cases)} FMUs have a verdict; the same "
                        "command goes on with the others."
                    ) from None
                raise

    def _tell(self, verdict: Verdict | None, done: int, total: int) -> None:
        if self._progress is not None:
            running = tuple(self._running)
            self._progress(ConformanceProgress(verdict, done, total, self._number_kept, running))

    def _one(self, case: Case) -> Verdict:
        """In the thread of a worker: run an FMU."""
        self._running[case.name] = None
        try:
            folder = new_folder(self._output, case)
            work = Path(tempfile.mkdtemp(prefix="fmimaster-"))
            try:
                ended = run_apart(
                    run_case,
                    case,
                    folder,
                    work,
                    *self._how,
                    deadline=self._deadline,
                    memory_limit=self._memory_limit,
                    stop=self._stop,
                )
            finally:
                shutil.rmtree(work, ignore_errors=True)
            if ended.cause is End.STOPPED:
                raise CancelledError
            verdict = ended.value if ended.cause is End.RETURNED else _lost(case, folder, ended)
            verdict = replace(verdict, overhead=max(0.0, ended.seconds - verdict.seconds))
            write_outcome(self._output, verdict, ended.output)
            return verdict
        finally:
            self._running.pop(case.name, None)


def _lost(case: Case, folder: Path, ended: Ended) -> Verdict:
    """The verdict about an FMU whose process has not returned one; the rows until then are there."""
    rows, reached = 0, ""
    shown: tuple[Curve, ...] = ()
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
        outcome=Outcome.FAILED,
        cause=_CAUSES[ended.cause],
        reason=f"The process of the FMU {how}.{reached}{advice}",
        sha256=_hash(case),
        rows=rows,
        curves=shown,
        seconds=ended.seconds,
    )


def _hash(case: Case) -> str:
    """The hash of an FMU; empty if it is not there any more."""
    try:
        return file_hash(case.path)
    except OSError:
        return ""


def _nothing() -> None:
    """What the first process does."""


def _checked(workers: int | None, deadline: float, memory_limit: int | None) -> int:
    if workers is not None and workers < 1:
        raise OptionError(f"The number of workers is {workers}; expected 1 or more.")
    if not (deadline > 0.0 and isfinite(deadline)):
        raise OptionError(f"The deadline is {deadline:g} s; expected a positive number of seconds.")
    if memory_limit is not None and memory_limit <= 0:
        raise OptionError(f"The memory limit is {memory_limit} bytes; expected a positive number.")
    return len(os.sched_getaffinity(0)) if workers is None else workers


def _chosen(cases: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """The FMUs whose names fit one of the globs."""
    for glob in only:
        if not any(_fits(case, glob) for case in cases):
            near = did_you_mean(glob, [case.name for case in cases])
            raise OptionError(f"No FMU has a name that fits '{glob}'.{near}")
    return [case for case in cases if not only or any(_fits(case, glob) for glob in only)]


def _fits(case: Case, glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in (case.name, case.fmu))


def _json(limits: Limits) -> dict[str, Any]:
    """Limits as JSON values; None for no limit."""
    return {
        "outside": _finite(limits.outside),
        "relativeRms": _finite(limits.relative_rms),
        "largest": _finite(limits.largest),
        "jumpTime": _finite(limits.jump_time),
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
