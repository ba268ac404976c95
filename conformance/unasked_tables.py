"""Runs of ``unasked.py``, their file, and their tables."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from outcomes import markdown

CLOSE, CLOSE_AT_EVENTS = 5e-2, 2e-2
"""Larger errors are wrong, those of systems with events above the second one."""
FACTOR = 3.0
"""Within which an estimate is good."""
LEAST = 1e-6
"""Estimates of smaller errors are not judged."""
SIZES = ("none", "4", "1", "1/4")
"""``none`` is a run without a step size, the others are factors of the right one."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run and its outcome."""

    system: str
    kind: str
    fmi: str
    size: str
    """One of ``SIZES``."""
    hybrid: bool
    plain: bool = False
    """By the plain method."""
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


# Files

_LEFT_OUT = ("text", "seconds")


def write(path: Path, runs: Iterable[Run]) -> None:
    """Write runs into a CSV file, errors with three digits; without CPU times and texts."""
    names = [f.name for f in fields(Run) if f.name not in _LEFT_OUT]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(names)
        rows.writerows([_cell(getattr(run, name)) for name in names] for run in runs)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None or value is False else str(value)


def read(path: Path) -> list[Run]:
    """The runs of such a file."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_run(row) for row in csv.DictReader(file)]


def _run(row: dict[str, str]) -> Run:
    texts: dict[str, Any] = {f.name: row[f.name] for f in fields(Run) if f.name not in _LEFT_OUT}
    numbers = {name: float(row[name]) for name in ("step", "error")}
    numbers["estimate"] = float(row["estimate"] or "nan")
    facts = {name: row[name] == "True" for name in ("hybrid", "plain", "warned")}
    run = Run(**(texts | numbers | facts))
    return run if row["estimate"] else replace(run, estimate=None)


# Tables

SUMMARY = (
    *("method", "systems", "steps", "runs", "right", "close", "wrong, warned"),
    *("**wrong, silent**", "ended", "right, warned", "estimate within 3"),
)
STEPS = {"none": "not given", "4": "too long", "1": "right", "1/4": "short"}


def summary(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: a row for each step size of smooth systems, of those with events, and of all."""
    rows = []
    for plain in (False, True):
        for text, is_hybrid in (
            ("without events", (False,)),
            ("with events", (True,)),
            ("all", (False, True)),
        ):
            for size in SIZES:
                these = [
                    r for r in runs if r.plain == plain and r.size == size and r.hybrid in is_hybrid
                ]
                if these:
                    method = "plain" if plain else "chosen"
                    rows.append((method, text, STEPS[size], *_counts(these)))
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
    ]


HEADER = (
    "system",
    "FMI",
    "chosen",
    "step in s",
    "error",
    "estimate",
    "warned",
    "plain: error",
    "warned",
)


def table(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: runs without a step size, each beside the one of the plain method."""
    plain = {r.system: r for r in runs if r.plain and r.size == "none"}
    rows = []
    for r in runs:
        if r.size == "none" and not r.plain:
            other = plain.get(r.system)
            beside = ("", "") if other is None else (_error(other), _warned(other))
            step = f"{r.step:.3g}" if r.step else ""
            rows.append(
                (r.system, r.fmi, r.chosen, step, _error(r), _estimate(r), _warned(r), *beside)
            )
    return markdown(HEADER, rows)


def table_of_steps(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: errors and estimates for each step size that was given, and errors of the plain method."""
    sizes = [size for size in SIZES if size != "none"]
    header = ["system", "right step in s"]
    header += [f"{STEPS[size]}: error, estimate" for size in sizes] + [
        f"plain, {STEPS[size]}" for size in sizes
    ]
    of = {(r.system, r.size, r.plain): r for r in runs}
    rows = []
    for system in dict.fromkeys(r.system for r in runs if not r.plain and r.size == "1"):
        row = [system, ""]
        for plain in (False, True):
            for size in sizes:
                r = of.get((system, size, plain))
                if r is None:
                    row.append("")
                    continue
                if size == "1" and not plain:
                    row[1] = f"{r.step:.3g}" if r.step else ""
                estimate = "" if plain or r.estimate is None else f", {_estimate(r)}"
                row.append(_error(r) + estimate + (" (warned)" if r.warned else ""))
        rows.append(row)
    return markdown(header, rows)


def _error(run: Run) -> str:
    wrong = " (silent)" if run.is_silent else ""
    return "ended" if run.outcome == "ended" else percent(run.error) + _events(run) + wrong


def _events(run: Run) -> str:
    """An error that is small, of a run with another number of events."""
    return (
        ", events" if run.outcome == "wrong" and run.hybrid and run.error <= CLOSE_AT_EVENTS else ""
    )


def _estimate(run: Run) -> str:
    return "" if run.estimate is None else percent(run.estimate)


def _warned(run: Run) -> str:
    return "yes" if run.warned else ""


def percent(value: float) -> str:
    """Two digits."""
    if value > 10:
        return "> 1000 %"
    if value < 1e-6:
        return "< 0.0001 %"
    return f"{float(f'{100 * value:.2g}'):g} %"


def put_into(page: Path, runs: Sequence[Run]) -> None:
    """Write the tables into a page, in place of the tables under these headings."""
    parts = page.read_text(encoding="utf-8").split("\n## ")
    for k, part in enumerate(parts):
        for heading, make in TABLES.items():
            if part.startswith(f"{heading}\n"):
                parts[k] = _with_table(part, make(runs))
    page.write_text("\n## ".join(parts), encoding="utf-8", newline="\n")


TABLES: Mapping[str, Callable[[Sequence[Run]], list[str]]] = {
    "How right the runs are": summary,
    "Each system with its stop time": table,
    "Each system with a step size": table_of_steps,
}


def _with_table(part: str, table: Sequence[str]) -> str:
    """The part of a page with these lines in place of its table."""
    lines = part.split("\n")
    of_table = [k for k, line in enumerate(lines) if line.startswith("|")]
    return "\n".join([*lines[: of_table[0]], *table, *lines[of_table[-1] + 1 :]])
