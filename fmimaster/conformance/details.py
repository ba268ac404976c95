"""What the report of a conformance run shows about one FMU on demand: figures, measures, card and log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fmimaster.base.errors import FileError
from fmimaster.cards.card import FmuCard
from fmimaster.conformance.curve import ComparedCurve
from fmimaster.conformance.measures import Measure
from fmimaster.conformance.tree import CARD_FILE, LOG_FILE
from fmimaster.conformance.verdict import Verdict
from fmimaster.conformance.words import percent, seconds, words_of_interface
from fmimaster.studies.probing.page import card_page

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
