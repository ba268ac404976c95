"""A conformance run: all FMUs of a folder, the verdicts of earlier runs, and the files with the verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path
from typing import Any

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.files import given_path
from fmimaster.base.installation import installed_version
from fmimaster.base.memory import usable_cores
from fmimaster.configure.reading import solvers
from fmimaster.conformance.cases import FmuCase, find_cases
from fmimaster.conformance.measures import ConformanceLimits, json_number
from fmimaster.conformance.page import write_page
from fmimaster.conformance.verdict import ConformanceRun
from fmimaster.conformance.verdict_files import write_junit, write_verdicts_csv
from fmimaster.conformance.workers import Callback, KeptVerdicts, Work, gone_on
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.fmu.shared_library import FMI3
from fmimaster.system.declarations import Interface, attribute_name

DEADLINE = 60.0
"""In s, for one FMU."""

OUTPUT = "conformance-results"
"""The output folder."""


def check_conformance(
    folder: str | os.PathLike[str],
    *,
    output_folder: str | os.PathLike[str] = OUTPUT,
    workers: int | None = None,
    deadline: float = DEADLINE,
    memory_limit: int | None = None,
    only: Sequence[str] = (),
    interfaces: Sequence[Interface | str] = tuple(Interface),
    limits: ConformanceLimits | None = None,
    solver: Integrator | str | None = None,
    again: bool = False,
    retry: bool = False,
    cards: bool = False,
    progress: Callback | None = None,
) -> ConformanceRun:
    """Run all FMUs of a folder, each in a process of its own, and compare their results with their references.

    A folder in the layout of the FMI cross-check, or any other one. Beside ``MODEL.fmu`` can be ``MODEL_ref.csv``, the
    reference; ``MODEL_ref.opt``, its times and tolerance; and ``MODEL_in.csv``, input signals. Without a reference an
    FMU passes if it runs to the end. An earlier run in the same output folder is continued.

    Parameters
    ----------
    folder : path
        Its subfolders are searched as well.
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
        ``"CoSimulation"``, ``"ModelExchange"`` and ``"ScheduledExecution"``. An FMU is run by each that it has.
    limits : ConformanceLimits
        Limits of the deviations. Default: the band of the cross-check.
    solver : Integrator, or text such as ``"cvode"``
        For Model Exchange FMUs. Default: DormandPrince.
    again : bool
        Whether verdicts of an earlier run are discarded.
    retry : bool
        Whether those of FMUs that have not passed are discarded.
    cards : bool
        Whether each FMU gets a card, as by :func:`probe`, in its folder as ``card.json``.
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
    >>> from fmimaster.conformance import VerdictOutcome, check_conformance
    >>> run = check_conformance("fmus", workers=2)  # doctest: +SKIP
    >>> [(v.name, v.reason) for v in run.verdicts if v.outcome is VerdictOutcome.FAILED]  # doctest: +SKIP
    []
    """
    workers = _checked(workers, deadline, memory_limit)
    limits = limits or ConformanceLimits()
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
    done = {verdict.name for verdict in run.verdicts}
    with KeptVerdicts(output, run) as kept:
        work = Work(output, kept, deadline, memory_limit, (limits, solver), progress)
        try:
            work.do([case for case in chosen if case.name not in done], workers)
            if cards:
                work.measure(chosen, workers)
        finally:
            write_files(kept.run, output)
        return kept.run


def write_files(run: ConformanceRun, output: Path) -> None:
    """Write the verdicts in all forms."""
    write_verdicts_csv(run, output / "verdicts.csv")
    write_junit(run, output, output / "junit.xml")
    write_page(run, output)


def _checked(workers: int | None, deadline: float, memory_limit: int | None) -> int:
    if workers is not None and workers < 1:
        raise OptionError(f"The number of workers is {workers}; expected 1 or more.")
    if not (deadline > 0.0 and isfinite(deadline)):
        raise OptionError(f"The deadline is {deadline:g} s; expected a positive number of seconds.")
    if memory_limit is not None and memory_limit <= 0:
        raise OptionError(f"The memory limit is {memory_limit} bytes; expected a positive number.")
    return usable_cores() if workers is None else workers


def _chosen(cases: Sequence[FmuCase], only: Sequence[str]) -> list[FmuCase]:
    """The FMUs whose names fit one of the globs."""
    for glob in only:
        if not any(_fits(case, glob) for case in cases):
            near = did_you_mean(glob, [case.name for case in cases])
            raise OptionError(f"No FMU has a name that matches '{glob}'.{near}")
    return [case for case in cases if not only or any(_fits(case, glob) for glob in only)]


def _fits(case: FmuCase, glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in (case.name, case.fmu))


def _json(limits: ConformanceLimits) -> dict[str, Any]:
    """Limits as JSON values; None for no limit."""
    return {attribute_name(name): json_number(v) for name, v in asdict(limits).items()}
