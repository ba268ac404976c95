"""The report of a conformance run as one HTML page: ``report.html``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fmimaster.conformance.curve import Curve
from fmimaster.conformance.measures import Measure
from fmimaster.conformance.sheet import Cell, Column, Row, Sheet, write_sheet
from fmimaster.conformance.verdict import ConformanceRun, Outcome, Verdict
from fmimaster.conformance.words import (
    percent,
    place_of,
    relative_largest,
    seconds,
    words_of_interface,
    worst_rms,
)
from fmimaster.results.jumps import JumpTimes

PAGE = "report.html"
"""Name of the page in the output folder of a run."""
LOG = "log.txt"
CARD = "card.json"
"""Files in the folder of an FMU."""

TONES = {Outcome.FAILED: "bad", Outcome.REJECTED: "poor", Outcome.PASSED: "good"}
"""Colours of the outcomes; the order of the rows."""

_LOG_HEAD, _LOG_TAIL = 60, 240
"""Lines of a log that are in the page: the first and the last ones."""
_LONGEST = 2000
"""Letters of a line of a log that are in the page."""

_COLUMNS = (
    Column("Verdict", "word"),
    Column("FMU", "name"),
    Column("Exporter", "text", 1),
    Column("FMI", "word", 1, "Version and interface"),
    Column("Results", "plot", 0, "The variable with the largest deviation, over its reference"),
    Column("Outside", "number", 0, "Samples outside the band of the FMI cross-check, at worst"),
    Column(
        "RMS", "number", 0, "Root mean square of the deviation, relative to the range, at worst"
    ),
    Column("Largest", "number", 1, "Largest deviation, relative to the range, at worst"),
    Column("Jumps", "number", 1, "Largest difference in the time of a jump"),
    Column("Run time", "number", 1, "Wall time of the run itself"),
    Column("Reason", "text"),
)


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
            rows=tuple(_row(verdict, folder) for verdict in verdicts),
        ),
        path,
    )
    return path


def run_facts(run: ConformanceRun) -> Iterator[tuple[str, str]]:
    """What was run, by what and when, as pairs of words."""
    yield "FMUs", str(len(run.verdicts))
    yield "folder", run.folder
    yield "started", run.started.replace("T", " ")
    yield "fmimaster", f"{run.version} on {run.platform}"
    for name, value in run.settings.items():
        if value not in (None, [], {}, ""):
            yield (
                name,
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
            )


def _folder_name(folder: str) -> str:
    return folder.replace("\\", "/").rstrip("/").rpartition("/")[2] or folder


def _row(verdict: Verdict, folder: Path) -> Row:
    return Row(
        name=verdict.name,
        tone=TONES[verdict.outcome],
        cells=tuple(_cells(verdict)),
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


def _cells(v: Verdict) -> Iterator[Cell]:
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
    yield Cell(v.reason, key=v.reason or None)


def _jumps_cell(jumps: list[JumpTimes]) -> Cell:
    if not jumps:
        return Cell("", key=None)
    missed = sum(j.missed for j in jumps)
    largest = max(j.largest for j in jumps)
    return Cell(f"{largest:.2g} s", f"{missed} missed" if missed else "", largest)


def details(verdict: Verdict, folder: Path) -> dict[str, Any]:
    """What is shown about an FMU on demand."""
    place = folder / verdict.results
    measures = {m.deviation.name: m for m in verdict.measures}
    card = _card(place / CARD) if verdict.results else None
    log = _log(place / LOG) if verdict.results else ""
    return {
        "reason": verdict.reason,
        "notes": list(verdict.notes),
        "plots": [plot(curve, measures.get(curve.name)) for curve in verdict.curves],
        "tables": [_measures_table(verdict)] if verdict.measures else [],
        "facts": [list(pair) for pair in _facts(verdict)],
        "data": [] if card is None else [["FMU card", card]],
        "texts": [["Log", log]] if log else [],
        "links": [["All files of this run", f"{quote(verdict.results)}/"]]
        if verdict.results
        else [],
    }


def plot(curve: Curve, measure: Measure | None) -> dict[str, Any]:
    """A figure of the page: the reference below the results."""
    series = [series_of(curve, "run")]
    if curve.reference_time:
        series.insert(0, series_of(curve, "reference"))
    band = None
    if curve.band_time:
        band = {"t": curve.band_time, "lower": curve.lower, "upper": curve.upper}
    note = "" if measure is None else f"RMS {percent(measure.deviation.relative)}"
    return {"name": curve.name, "unit": curve.unit, "note": note, "series": series, "band": band}


def series_of(curve: Curve, kind: str) -> dict[str, Any]:
    """One line of a figure: ``"run"``, ``"reference"``, or ``"old"``."""
    is_reference = kind == "reference"
    return {
        "kind": kind,
        "held": curve.held,
        "t": curve.reference_time if is_reference else curve.time,
        "v": curve.reference_values if is_reference else curve.values,
    }


def _measures_table(verdict: Verdict) -> dict[str, Any]:
    head = (
        "variable",
        "unit",
        "outside the band",
        "RMS of the range",
        "largest",
        "at t",
        "jumps",
        "missed",
        "added",
        "time of a jump",
    )
    return {
        "caption": f"Deviation from {verdict.reference or 'the reference'}",
        "head": head,
        "rows": [_measure_row(m) for m in verdict.measures],
    }


def _measure_row(m: Measure) -> tuple[str, ...]:
    d, jumps = m.deviation, m.jumps
    numbers = (percent(m.outside), percent(d.relative), f"{d.largest:.3g}", f"{d.time:.6g} s")
    if jumps is None:
        return d.name, d.unit, *numbers, "", "", "", ""
    counts = (str(jumps.known), str(jumps.missed), str(jumps.added))
    matched = jumps.known > jumps.missed
    return d.name, d.unit, *numbers, *counts, f"{jumps.largest:.2g} s" if matched else ""


def _facts(v: Verdict) -> Iterator[tuple[str, str]]:
    exporter = " ".join(filter(None, (v.exporter, v.exporter_version)))
    run = "" if v.start_time is None else f"{v.start_time:g} s to {v.stop_time:g} s"
    pairs = {
        "FMU": v.fmu,
        "exporter": exporter,
        "FMI": " ".join(filter(None, (v.fmi_version, words_of_interface(v)))),
        "platform": v.platform,
        "run": run,
        "step": "" if v.step_size is None else f"{v.step_size:g} s",
        "rows": str(v.rows) if v.rows else "",
        "run time": seconds(v.seconds) if v.seconds else "",
        "other time": seconds(v.overhead) if v.overhead else "",
        "cause": v.cause.value,
        "SHA-256": v.sha256,
    }
    yield from ((name, text) for name, text in pairs.items() if text)


def _card(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"), parse_constant=str)
    except (OSError, ValueError):  # there is no card
        return None


def _log(path: Path) -> str:
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:  # there is no log
        return ""
    cut = len(lines) - _LOG_HEAD - _LOG_TAIL
    if cut > 0:
        note = f"... {cut} lines are left out; {LOG} has all ..."
        lines = [*lines[:_LOG_HEAD], note, *lines[-_LOG_TAIL:]]
    return "\n".join(x if len(x) <= _LONGEST else f"{x[:_LONGEST]} ..." for x in lines)
