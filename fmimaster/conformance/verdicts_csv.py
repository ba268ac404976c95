"""Verdicts as a CSV file: a line for each FMU."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from fmimaster.base.visible import visible
from fmimaster.conformance.verdict import ConformanceRun, Verdict

COLUMNS = (
    *("name", "interface", "FMI", "exporter", "exporter version", "verdict", "cause", "reason"),
    *("start time", "stop time", "step size", "rows", "seconds", "overhead", "reference"),
    *("outside band", "relative RMS", "largest deviation", "variable", "notes", "results"),
)
"""Times in s. The measures are the largest of all variables; the largest deviation is relative to the range."""


def write_verdicts_csv(run: ConformanceRun, file: Path) -> None:
    """Write them."""
    with file.open("w", newline="", encoding="utf-8", errors="backslashreplace") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows([_inert(visible(str(cell))) for cell in _cells(v)] for v in run.verdicts)


def _inert(cell: str) -> str:
    """A cell that a spreadsheet does not take for a formula: names and reasons are texts of FMUs."""
    if not cell.lstrip().startswith(("=", "+", "-", "@")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _cells(v: Verdict) -> Iterator[object]:
    yield from (v.name, v.interface, v.fmi_version, v.exporter, v.exporter_version)
    yield from (v.outcome.value, v.cause.value, v.reason)
    yield from ("" if t is None else repr(t) for t in (v.start_time, v.stop_time, v.step_size))
    yield from (v.rows, f"{v.seconds:.3f}", f"{v.overhead:.3f}", v.reference)
    if v.measures:
        worst = max(v.measures, key=lambda m: (m.outside, m.deviation.relative))
        d = worst.deviation
        largest = d.largest / d.range if d.range else d.largest
        yield from (f"{x:.6g}" for x in (worst.outside, d.relative, largest))
        yield d.name
    else:
        yield from ("", "", "", "")
    yield from ("; ".join(v.notes), v.results)
