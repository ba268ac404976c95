"""The report of a conformance run as one HTML page, ``report.html``: a row for each FMU, and its details on demand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fmimaster.base.errors import FileError
from fmimaster.cards.card import FmuCard
from fmimaster.conformance.curve import ComparedCurve
from fmimaster.conformance.measures import Measure
from fmimaster.conformance.sheet import Cell, Sheet, SheetColumn, SheetRow, write_sheet
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictOutcome
from fmimaster.conformance.verdict_files import CARD_FILE, LOG_FILE
from fmimaster.results.deviations import JumpTimes
from fmimaster.studies.probing.page import card_page
from fmimaster.system.declarations import Interface

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


def write_page(run: ConformanceRun, folder: Path) -> Path:
    """Write the report of a run into its output folder, which has logs and cards in ``results``; returns its path."""
    path = folder / PAGE
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
    largest = max(map(_relative_largest, v.measures), default=None)
    yield Cell("" if largest is None else percent(largest), key=largest)
    jumps = [m.jumps for m in v.measures if m.jumps is not None and m.jumps.known]
    yield _jumps_cell(jumps)
    yield Cell(seconds(v.seconds) if v.seconds else "", key=v.seconds or None)
    reason = _brief_reason(v, folder)
    yield Cell(reason, key=reason or None)


def _jumps_cell(jumps: list[JumpTimes]) -> Cell:
    if not jumps:
        return Cell("", key=None)
    missed = sum(j.missed for j in jumps)
    largest = max(j.largest for j in jumps)
    return Cell(f"{largest:.2g} s", f"{missed} missed" if missed else "", largest)


# Details of an FMU ----------------------------------------------------------------------------------------------------

_LOG_HEAD, _LOG_TAIL = 60, 240
"""Lines of a log that are in the page: the first and the last ones."""
_LONGEST = 2000
"""Letters of a line of a log that are in the page."""


def details(verdict: Verdict, folder: Path) -> dict[str, Any]:
    """What is shown about an FMU on demand."""
    place = folder / verdict.results
    measures = {m.deviation.name: m for m in verdict.measures}
    card = _card(place / CARD_FILE) if verdict.results else ""
    log = _log(place / LOG_FILE) if verdict.results else ""
    return {
        "reason": verdict.reason,
        "notes": list(verdict.notes),
        "plots": [plot(curve, measures.get(curve.name)) for curve in verdict.curves],
        "tables": [_measures_table(verdict)] if verdict.measures else [],
        "facts": [list(pair) for pair in _facts(verdict)],
        "texts": [
            [title, text, kind]
            for title, text, kind in (("FMU card", card, "table"), ("Log", log, "log"))
            if text
        ],
        "links": [["All files of this run", f"{quote(verdict.results)}/"]]
        if verdict.results
        else [],
    }


def plot(curve: ComparedCurve, measure: Measure | None) -> dict[str, Any]:
    """A figure of the page: the reference below the results."""
    series = [series_of(curve, "run")]
    if curve.reference_time:
        series.insert(0, series_of(curve, "reference"))
    band = None
    if curve.band_time:
        band = {"t": curve.band_time, "lower": curve.lower, "upper": curve.upper}
    note = "" if measure is None else f"RMS {percent(measure.deviation.relative)}"
    return {"name": curve.name, "unit": curve.unit, "note": note, "series": series, "band": band}


def series_of(curve: ComparedCurve, kind: str) -> dict[str, Any]:
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


def _card(path: Path) -> str:
    if not path.exists():
        return ""
    try:
        return "\n".join(card_page(FmuCard.read(path)))
    except FileError as error:  # of an older version
        return str(error)


def _log(path: Path) -> str:
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:  # there is no log
        return ""
    cut = len(lines) - _LOG_HEAD - _LOG_TAIL
    if cut > 0:
        note = f"... {cut} lines are left out; {LOG_FILE} has all ..."
        lines = [*lines[:_LOG_HEAD], note, *lines[-_LOG_TAIL:]]
    return "\n".join(x if len(x) <= _LONGEST else f"{x[:_LONGEST]} ..." for x in lines)


# Facts of verdicts in words -------------------------------------------------------------------------------------------


def words_of_interface(verdict: Verdict) -> str:
    """``"Co-Simulation"``."""
    return Interface(verdict.interface).words if verdict.interface else ""


def place_of(verdict: Verdict) -> str:
    """The folders of the FMU, without those that repeat its name."""
    parts = verdict.fmu.removesuffix(".fmu").split("/")
    while parts and parts[-1] == verdict.model:
        parts.pop()
    return "/".join(parts)


def _brief_reason(verdict: Verdict, folder: str) -> str:
    """The reason without the path of the FMU's folder, which would fill the cell of a table.

    Parameters
    ----------
    folder
        The folder of the run.
    """
    place = verdict.fmu.rpartition("/")[0]
    brief = verdict.reason
    for path in (f"{folder}/{place}/", f"{folder}/", f"{place}/"):
        brief = brief.replace(path, "") if path != "/" else brief
    return brief


def worst_rms(verdict: Verdict) -> float | None:
    """The largest root mean square of a deviation, relative to the range; None without a reference."""
    return max((m.deviation.relative for m in verdict.measures), default=None)


def _relative_largest(measure: Measure) -> float:
    """The largest deviation relative to the range of the reference."""
    return measure.deviation.largest / measure.deviation.range if measure.deviation.range else 0.0


def moment(started: str) -> str:
    """``"2026-11-22 21:30:12 UTC"``, from ISO 8601 text in UTC."""
    date, _, time = started.partition("T")
    return f"{date} {time[:8]} UTC"


def percent(part: float) -> str:
    """``"2.1 %"``."""
    return f"{100 * part:.2g} %" if part < 1.0 else f"{100 * part:.3g} %"


def seconds(time: float) -> str:
    """``"12 ms"``."""
    return f"{time * 1000:.3g} ms" if time < 1.0 else f"{time:.3g} s"
