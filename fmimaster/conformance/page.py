"""The report of a conformance run as one HTML page: ``report.html``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from fmimaster.conformance.details import details
from fmimaster.conformance.sheet import Cell, Sheet, SheetColumn, SheetRow, write_sheet
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictOutcome
from fmimaster.conformance.words import (
    brief_reason,
    moment,
    percent,
    place_of,
    relative_largest,
    seconds,
    words_of_interface,
    worst_rms,
)
from fmimaster.results.deviations import JumpTimes

PAGE = "report.html"
"""Name of the page in the output folder of a run."""
TONES = {
    VerdictOutcome.FAILED: "bad",
    VerdictOutcome.REJECTED: "poor",
    VerdictOutcome.PASSED: "good",
}
"""Colours of the outcomes; the order of the rows."""

_COLUMNS = (
    SheetColumn("Verdict", "word"),
    SheetColumn("FMU", "name"),
    SheetColumn("Exporter", "text", 1),
    SheetColumn("FMI", "word", 1, "Version and interface"),
    SheetColumn(
        "Results", "plot", 0, "The variable with the largest deviation, over its reference"
    ),
    SheetColumn(
        "Outside", "number", 0, "Samples outside the band of the FMI cross-check, at worst"
    ),
    SheetColumn(
        "RMS", "number", 0, "Root mean square of the deviation, relative to the range, at worst"
    ),
    SheetColumn("Largest", "number", 2, "Largest deviation, relative to the range, at worst"),
    SheetColumn("Jumps", "number", 2, "Largest difference in the time of a jump"),
    SheetColumn("Run time", "number", 1, "Wall time of the run itself"),
    SheetColumn("Reason", "text"),
)


_SETTINGS = {
    "outside": "permitted share outside the band",
    "relativeRms": "permitted RMS relative to the range",
    "largest": "permitted largest deviation relative to the range",
    "jumpTime": "permitted difference of the time of a jump in s",
}
"""Settings of a run in words."""


def write_page(run: ConformanceRun, folder: Path, path: Path | None = None) -> Path:
    """Write the report of a run.

    Parameters
    ----------
    folder
        The output folder of the run; logs and cards are in its folder ``results``.
    path
        The page; default: ``report.html`` in the folder.

    Returns
    -------
    Path
        Of the page.
    """
    path = folder / PAGE if path is None else path
    order = list(TONES)
    verdicts = sorted(run.verdicts, key=lambda v: (order.index(v.outcome), v.name))
    write_sheet(
        Sheet(
            title=f"Conformance of {_folder_name(run.folder)}",
            facts=tuple(run_facts(run)),
            tallies=tuple((outcome.value, tone) for outcome, tone in TONES.items()),
            columns=_COLUMNS,
            rows=tuple(_row(verdict, run.folder, folder) for verdict in verdicts),
        ),
        path,
    )
    return path


def run_facts(run: ConformanceRun) -> Iterator[tuple[str, str]]:
    """What was run, by what and when, as pairs of words."""
    yield "FMUs", str(len(run.verdicts))
    yield "folder", run.folder
    yield "started", moment(run.started)
    yield "fmimaster", f"{run.version} on {run.platform}"
    for name, value in run.settings.items():
        if value is not None:
            yield _SETTINGS.get(name, name), value if isinstance(value, str) else json.dumps(value)


def _folder_name(folder: str) -> str:
    return folder.replace("\\", "/").rstrip("/").rpartition("/")[2] or folder


def _row(verdict: Verdict, fmus: str, folder: Path) -> SheetRow:
    return SheetRow(
        name=verdict.name,
        tone=TONES[verdict.outcome],
        cells=tuple(_cells(verdict, fmus)),
        facets=facets(verdict),
        details=details(verdict, folder),
    )


def facets(verdict: Verdict) -> dict[str, str]:
    """What rows are filtered by: the outcome first."""
    return {
        "Verdict": verdict.outcome.value,
        "Cause": verdict.cause.value,
        "FMI": verdict.fmi_version,
        "Interface": words_of_interface(verdict),
        "Exporter": verdict.exporter,
    }


def _cells(v: Verdict, folder: str) -> Iterator[Cell]:
    yield Cell(v.outcome.value, key=list(TONES).index(v.outcome))
    yield Cell(v.model or v.name, place_of(v), v.model or v.name)
    yield Cell(v.exporter, v.exporter_version)
    yield Cell(v.fmi_version, words_of_interface(v))
    yield Cell("")
    outside = max((m.outside for m in v.measures), default=None)
    yield Cell("" if outside is None else percent(outside), key=outside)
    rms = worst_rms(v)
    yield Cell("" if rms is None else percent(rms), key=rms)
    largest = max(map(relative_largest, v.measures), default=None)
    yield Cell("" if largest is None else percent(largest), key=largest)
    jumps = [m.jumps for m in v.measures if m.jumps is not None and m.jumps.known]
    yield _jumps_cell(jumps)
    yield Cell(seconds(v.seconds) if v.seconds else "", key=v.seconds or None)
    reason = brief_reason(v, folder)
    yield Cell(reason, key=reason or None)


def _jumps_cell(jumps: list[JumpTimes]) -> Cell:
    if not jumps:
        return Cell("", key=None)
    missed = sum(j.missed for j in jumps)
    largest = max(j.largest for j in jumps)
    return Cell(f"{largest:.2g} s", f"{missed} missed" if missed else "", largest)
