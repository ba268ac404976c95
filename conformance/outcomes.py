"""Runs of event methods on random systems: how each one is made, its outcome, and tables of many.

- right: as the script defines it for its systems
- warned: not right, and the run gives a warning
- silent: not right, and there is no warning
- refused: an error before the run
- failed: an error that ends the run
- endless: more CPU time than the limit
"""

from __future__ import annotations

import argparse
import csv
import gc
import logging
import multiprocessing
import sys
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from fmimaster import FmimasterError, Results, SimulationError
from fmimaster.algorithms import Algorithm, Aligned, Jacobi, Waveform
from fmimaster.events import EarlyReturn, LookAhead, Predictive
from fmimaster.events.event_clock import EventClock
from fmimaster.inputs import ADAPTIVE, Polynomial

OUTCOMES = ("right", "warned", "silent", "refused", "failed", "endless")
Facts: TypeAlias = dict[str, Any]
"""Names of fields of a run, and their values."""
QUINTIC = Polynomial(2, 2)
METHODS: Mapping[str, tuple[Algorithm, EventClock | None]] = {
    "LookAhead": (Jacobi(), LookAhead()),
    "PZ held": (Jacobi(), Predictive()),
    "PZ": (Jacobi(QUINTIC), Predictive()),
    "PZ adaptive": (Jacobi(ADAPTIVE), Predictive()),
    "E1": (Aligned(Jacobi(QUINTIC)), EarlyReturn()),
    "E2": (Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2), EarlyReturn()),
}
"""Methods of all suites, by their names in docs/events.md."""
MOST_LISTED = 200
"""Runs that ``--failures`` lists."""


@dataclass(frozen=True, kw_only=True)
class Run(ABC):
    """One run, and its outcome. Suites add fields. Times in s."""

    method: str
    size: float
    number: int
    """Of the random system."""
    version: str
    angle: float
    """[rad] By which the fastest mode turns in one step."""
    events: int
    """Of the exact solution."""
    outcome: str = ""
    warnings: int = 0
    """Number of warnings."""
    seconds: float = 0.0
    """[s] CPU time."""
    text: str = ""
    """The error, or the first warning."""

    @property
    def options(self) -> str:
        """That repeat the run."""
        return f"--number {self.number} --size {self.size:g} --method '{self.method}'"

    @property
    @abstractmethod
    def figures(self) -> str:
        """What is wrong with its events."""

    @property
    def line(self) -> str:
        """For the list of failures."""
        what = f"{self.version}, {self.angle:.2f} rad, {self.figures}"
        return f"{self.outcome}: {self.options}: {what}: {self.text}"


def judged(is_right: bool, results: Results) -> Facts:
    """The outcome of a run that has reached its end."""
    texts = results.statistics.warnings
    outcome = "right" if is_right else "warned" if texts else "silent"
    text = " ".join(texts[0].split()) if texts else ""
    return {"outcome": outcome, "text": text, "warnings": len(texts)}


def attempt(work: Callable[[], Facts], limit: float) -> Facts:
    """Fields of a run, which is made in a process of its own; on Windows in this one, without a limit.

    Parameters
    ----------
    work
        Makes the run and returns its fields.
    limit
        [s] CPU time.
    """
    if sys.platform == "win32":  # it has no forks
        return _quietly(work)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=partial(_in_child, sender, work, limit))
    process.start()
    sender.close()
    try:
        found: Facts = receiver.recv()
    except EOFError:  # a signal has ended it: that of the limit
        found = {"outcome": "endless", "seconds": limit}
    process.join()
    return found


def _in_child(sender: Connection, work: Callable[[], Facts], limit: float) -> None:
    import resource  # not there on Windows

    gc.freeze()  # what the parent has left may belong to threads that are not here: to free it could wait for them forever
    used = resource.getrusage(resource.RUSAGE_SELF)
    begin = used.ru_utime + used.ru_stime
    most = int(begin + limit + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    logging.getLogger("fmimaster").setLevel(logging.CRITICAL)  # warnings are counted, not printed
    sender.send(_quietly(work))


def _quietly(work: Callable[[], Facts]) -> Facts:
    """Its outcome, with its CPU time; warnings are counted, not printed."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _outcome(work)
    return found | {"seconds": time.process_time() - begin}


def _outcome(work: Callable[[], Facts]) -> Facts:
    try:
        return work()
    except FmimasterError as error:
        outcome = "failed" if isinstance(error, SimulationError) else "refused"
        return {
            "outcome": outcome,
            "text": f"{type(error).__name__}: {' '.join(str(error).split())}",
        }
    except Exception:
        return {"outcome": "failed", "text": f"DEFECT: {traceback.format_exc()}"}


def counts(runs: Sequence[Run]) -> list[str]:
    """The number of runs, and of those with each outcome: cells of a table."""
    return [str(len(runs)), *(str(sum(r.outcome == o for r in runs)) for o in OUTCOMES)]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def parser(
    description: str | None, systems: int, seed: int, methods: Mapping[str, object], **of: Any
) -> argparse.ArgumentParser:
    """The options of all suites; ``of``: names of options with several choices, and these."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--systems", type=int, default=systems, help=f"number of systems ({systems})")
    add("--number", type=int, nargs="+", help="only these systems")
    add("--method", nargs="+", choices=methods, default=list(methods))
    for name, choices in of.items():
        add(f"--{name}", nargs="+", type=type(choices[0]), choices=choices, default=choices)
    add("--seed", type=int, default=seed)
    add("--limit", type=float, default=20.0, help="CPU time of a run in s (20)")
    add("--failures", action="store_true", help="list runs that are not right")
    add("--csv", type=Path, help="write all runs into this file")
    return parser


def report(runs: Sequence[Run], tables: Iterable[str], options: argparse.Namespace) -> None:
    """Print the tables and, where asked for, the runs that are not right; write all runs into a file."""
    print("\n".join(tables))
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            rows = csv.DictWriter(file, [f.name for f in fields(runs[0])])
            rows.writeheader()
            rows.writerows(map(asdict, runs))
    failed = [r for r in runs if r.outcome != "right"]
    if options.failures and failed:
        print("\n" + "\n".join(r.line for r in failed[:MOST_LISTED]))
        if len(failed) > MOST_LISTED:
            print(f"... and {len(failed) - MOST_LISTED} more")
