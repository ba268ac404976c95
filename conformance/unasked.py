"""What a run chooses by itself, on systems with exact solutions: what is chosen, its error, and what is said of it.

    python conformance/unasked.py [--system TEXT ...] [--kind KIND ...] [--size none 4 1 1/4] [--baseline]
                                  [--failures] [--markdown] [--csv FILE]

Each system is run with its stop time and no other option (``--size none``), and with the step size only: four times the
right one, the right one, and a quarter of it. ``--baseline`` runs the plain method instead: held inputs, no event clock.

The error is the RMS over time of the worst continuous output of the exact solution, relative to the largest value of
that output; of systems with events, to its range. A row next to an event may have either limit. Outcomes:

- right: the error is below 1 %, and each event was executed as often as it occurs
- close: an error of 1 to 5 % (with events: to 2 %)
- wrong: a larger error, or another number of events
- ended: the run has ended with an error, or was refused

``silent`` are wrong ones without a warning, ``false`` are right ones with one. The systems: ``unasked_systems.py``,
``unasked_hybrid.py``.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "fmus"))

from outcomes import Facts, attempt, markdown
from unasked_case import Case
from unasked_hybrid import hybrid_cases
from unasked_nets import Array
from unasked_systems import smooth_cases

from fmimaster import Results, Simulation
from fmimaster.algorithms import Jacobi
from fmimaster.events import NoEventClock

RIGHT, CLOSE = 1e-2, 5e-2
"""Errors below these are right, and close."""
CLOSE_AT_EVENTS = 2e-2
BESIDE = 1e-3
"""Of a step: rows of a system with events may be so much too early or too late."""
FACTOR = 3.0
"""Within which an estimate is good."""
LEAST = 1e-6
"""Estimates of smaller errors are not judged."""
SIZES = ("none", "4", "1", "1/4")
"""``none`` is a run without a step size, the others are factors of the right one."""
BASELINE: Mapping[str, Any] = {
    "algorithm": Jacobi(),
    "event_clock": NoEventClock(),
    "error_estimate": False,
}
"""The plain method."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run and its outcome."""

    system: str
    kind: str
    fmi: str
    size: str
    """One of ``SIZES``."""
    hybrid: bool
    chosen: str = ""
    step: float = 0.0
    """[s] Mean step size."""
    error: float = np.inf
    worst: str = ""
    """The output that has the error."""
    estimate: float | None = None
    """The number that the run gives for its error."""
    outcome: str = ""
    warned: bool = False
    seconds: float = 0.0
    """[s] CPU time."""
    text: str = ""
    """The error, the first warning, or what is wrong with the events."""

    @property
    def is_silent(self) -> bool:
        """Wrong, and nothing says so."""
        return self.outcome == "wrong" and not self.warned

    @property
    def is_false(self) -> bool:
        """Right, with a warning."""
        return self.outcome == "right" and self.warned

    @property
    def ratio(self) -> float | None:
        """Of estimate and error, where both count."""
        if self.estimate is None or not LEAST < self.error < np.inf:
            return None
        return self.estimate / self.error

    @property
    def line(self) -> str:
        """For a list."""
        what = "SILENT" if self.is_silent else "FALSE" if self.is_false else self.outcome
        warned = "warned" if self.warned else ""
        estimate = "" if self.estimate is None else f"{self.estimate:.1e}"
        return (
            f"{what:7} {self.system:34} {self.size:5} {self.step:<8.3g} {self.error:8.1e} {estimate:8} {warned:7}"
            f" {self.seconds:5.2f} s {self.worst:14} {self.chosen} | {self.text}"
        )


# One run


def run(case: Case, size: str, settings: Mapping[str, Any], limit: float) -> Run:
    """One run, in a process of its own."""
    found = attempt(partial(_facts, case, size, settings), limit)
    ended = {"failed": "ended", "refused": "ended", "endless": "ended"}
    found["outcome"] = ended.get(found["outcome"], found["outcome"])
    return Run(
        system=case.name, kind=case.kind, fmi=case.fmi, size=size, hybrid=case.is_hybrid, **found
    )


def _facts(case: Case, size: str, settings: Mapping[str, Any]) -> Facts:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        asked = {} if size == "none" else {"step_size": case.step * Fraction(size)}
        system, options = case.build(folder), case.options(folder)
        made = Simulation(system, stop_time=case.stop_time, **asked, **options, **settings)
        return score(case, made.run())


def score(case: Case, results: Results) -> Facts:
    """Fields of a run that has reached its end."""
    step = float(results.time[-1]) / max(results.statistics.steps, 1)
    errors = errors_of(case, results, step)
    worst = max(errors, key=lambda name: errors[name])
    error = errors[worst]
    found = dict(case.counted(results))
    events = "" if case.due is None or found == dict(case.due) else _difference(found, case.due)
    limit = CLOSE_AT_EVENTS if case.is_hybrid else CLOSE
    outcome = "wrong" if error > limit or events else "right" if error < RIGHT else "close"
    texts = [events, *results.statistics.warnings]
    return {
        "outcome": outcome,
        "step": step,
        "error": error,
        "worst": worst,
        "warned": bool(results.statistics.warnings),
        "estimate": estimate(results),
        "chosen": chosen(results),
        "text": " ".join(" | ".join(filter(None, texts)).split()),
    }


def errors_of(case: Case, results: Results, step: float) -> dict[str, float]:
    """Output → its error."""
    time = np.asarray(results.time, float)
    aside = BESIDE * step if case.is_hybrid else 0.0
    solutions = [case.exact(np.clip(time + d, 0.0, time[-1]), step) for d in {0.0, -aside, aside}]
    errors = {}
    for name, exact in solutions[0].items():
        found = np.nan_to_num(np.asarray(results[name], float), nan=1e60, posinf=1e60, neginf=-1e60)
        apart = np.min([np.abs(found - s[name]) for s in solutions], axis=0)
        scale = float(np.ptp(exact) if case.is_hybrid else np.abs(exact).max())
        if scale > 0.0:
            errors[name] = rms(time, np.minimum(apart, 1e60)) / scale
    return errors


def rms(time: Array, values: Array) -> float:
    """Over time, by the trapezoidal rule."""
    squares = values**2
    return float(
        np.sqrt(np.sum((squares[1:] + squares[:-1]) / 2 * np.diff(time)) / (time[-1] - time[0]))
    )


def _difference(found: Mapping[str, int], due: Mapping[str, int]) -> str:
    names = sorted(n for n in {*found, *due} if found.get(n, 0) != due.get(n, 0))
    return "events: " + ", ".join(f"{n} {found.get(n, 0)} of {due.get(n, 0)}" for n in names)


def chosen(results: Results) -> str:
    """Algorithm and event clock in short: what differs from run to run."""
    return "; ".join(
        re.sub(r"; their ends by .*|steps by ", "", m) for m in results.statistics.methods[:1]
    )


def estimate(results: Results) -> float | None:
    """The number of the run for its error, relative as the error is."""
    found = results.statistics.coupling_error
    return None if found is None else found.estimate


# Tables


def cases() -> list[Case]:
    """All systems."""
    return smooth_cases() + hybrid_cases()


def runs_of(a: argparse.Namespace) -> Iterator[Run]:
    """All runs that shall be made."""
    for case in cases():
        if a.kind and case.kind not in a.kind:
            continue
        if a.system and not any(re.search(text, case.name) for text in a.system):
            continue
        for size in a.size:
            yield run(case, size, BASELINE if a.baseline else {}, a.limit)


SUMMARY = (
    "systems",
    "step",
    "runs",
    "right",
    "close",
    "wrong, warned",
    "wrong, silent",
    "ended",
    "right, warned",
    "estimate within 3",
    "CPU in s",
)


def summary(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: a row for each step size of smooth systems, of those with events, and of all."""
    rows = []
    for text, some in (
        ("smooth", [r for r in runs if not r.hybrid]),
        ("with events", [r for r in runs if r.hybrid]),
        ("all", runs),
    ):
        for size in SIZES:
            these = [r for r in some if r.size == size]
            if these:
                rows.append((text, size, *_counts(these)))
    return markdown(SUMMARY, rows)


def _counts(runs: Sequence[Run]) -> list[str]:
    def number(are: Iterable[bool]) -> str:
        return str(sum(are))

    ratios = [r.ratio for r in runs if r.ratio is not None]
    good = sum(1 / FACTOR <= ratio <= FACTOR for ratio in ratios)
    return [
        str(len(runs)),
        number(r.outcome == "right" for r in runs),
        number(r.outcome == "close" for r in runs),
        number(r.outcome == "wrong" and r.warned for r in runs),
        number(r.is_silent for r in runs),
        number(r.outcome == "ended" for r in runs),
        number(r.is_false for r in runs),
        f"{good} of {len(ratios)}" if ratios else "",
        f"{sum(r.seconds for r in runs):.1f}",
    ]


HEADER = ("system", "FMI", "chosen", "step in s", "error", "estimate", "warned")


def table(runs: Sequence[Run]) -> list[str]:
    """A Markdown table for the docs: a row per run."""
    rows = []
    for r in runs:
        error = "ended" if r.outcome == "ended" else percent(r.error)
        warned = ("yes" if r.warned else "") + (" (wrong)" if r.is_silent else "")
        number = "" if r.estimate is None else percent(r.estimate)
        rows.append((r.system, r.fmi, f"`{r.chosen}`", f"{r.step:.3g}", error, number, warned))
    return markdown(HEADER, rows)


def percent(value: float) -> str:
    """Two digits."""
    return f"{value:.1e}" if value > 10 or value < 1e-6 else f"{100 * value:.2g} %"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--system", nargs="+", help="only systems whose name contains one of these patterns")
    add("--kind", nargs="+", help="only systems of these kinds")
    add("--size", nargs="+", choices=SIZES, default=SIZES, help="none, 4, 1, 1/4")
    add("--baseline", action="store_true", help="the plain method instead of the chosen one")
    add("--limit", type=float, default=30.0, help="CPU time of a run in s (30)")
    add("--failures", action="store_true", help="list only runs that are silent, false or ended")
    add("--markdown", action="store_true", help="print the table of the docs")
    add("--csv", type=Path, help="write all runs into this file")
    a = parser.parse_args()
    runs: list[Run] = []
    for one in runs_of(a):
        runs.append(one)
        if not a.markdown and (
            not a.failures or one.is_silent or one.is_false or one.outcome == "ended"
        ):
            print(one.line, flush=True)
    print("\n".join([*table(runs), ""] if a.markdown else []))
    print("\n".join(summary(runs)))
    if a.csv:
        with a.csv.open("w", newline="", encoding="utf-8") as file:
            rows = csv.DictWriter(file, [f.name for f in fields(Run)])
            rows.writeheader()
            rows.writerows(map(asdict, runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
