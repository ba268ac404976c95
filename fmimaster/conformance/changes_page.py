"""What changed between two conformance runs, as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fmimaster.conformance.changes import Change, VerdictChange, VerdictChanges, explained
from fmimaster.conformance.details import plot, series_of
from fmimaster.conformance.sheet import Cell, Sheet, SheetColumn, SheetRow, write_sheet
from fmimaster.conformance.verdict import Verdict
from fmimaster.conformance.words import (
    moment,
    percent,
    place_of,
    seconds,
    words_of_interface,
    worst_rms,
)

_TONES = {
    VerdictChange.WORSE: "bad",
    VerdictChange.BETTER: "good",
    VerdictChange.REASON: "poor",
    VerdictChange.RESULTS: "poor",
    VerdictChange.ADDED: "plain",
    VerdictChange.REMOVED: "plain",
}

_COLUMNS = (
    SheetColumn("Change", "word"),
    SheetColumn("FMU", "name"),
    SheetColumn("Exporter", "text", 1),
    SheetColumn("FMI", "word", 1, "Version and interface"),
    SheetColumn("Before", "word"),
    SheetColumn("Now", "word"),
    SheetColumn("Results", "plot", 0, "Now (solid), before (dashed), and the reference"),
    SheetColumn("RMS before", "number", 2, "Relative to the range of the reference, at worst"),
    SheetColumn("RMS now", "number", 1, "Relative to the range of the reference, at worst"),
    SheetColumn("Reason", "text"),
)


def write_changes(changes: VerdictChanges, path: Path) -> None:
    """Write the page; FMUs without a change are counted only.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    write_sheet(
        Sheet(
            title="Conformance runs compared",
            facts=tuple(_facts(changes)),
            tallies=tuple((effect.value, tone) for effect, tone in _TONES.items()),
            columns=_COLUMNS,
            rows=tuple(map(_row, changes.changes)),
        ),
        path,
    )


def _facts(changes: VerdictChanges) -> Iterator[tuple[str, str]]:
    for name, run in (("before", changes.before), ("now", changes.now)):
        yield name, f"{run.folder}, fmimaster {run.version}, {moment(run.started)}"
    yield "FMUs without a change", str(changes.unchanged)


def _row(change: Change) -> SheetRow:
    latest = change.now or change.before
    assert latest is not None
    return SheetRow(
        name=change.name,
        tone=_TONES[change.effect],
        cells=tuple(_cells(change, latest)),
        facets={
            "Change": change.effect.value,
            "FMI": latest.fmi_version,
            "Interface": words_of_interface(latest),
            "Exporter": latest.exporter,
        },
        details=_details(change),
    )


def _cells(change: Change, latest: Verdict) -> Iterator[Cell]:
    yield Cell(change.effect.value, key=list(VerdictChange).index(change.effect))
    yield Cell(latest.model or latest.name, place_of(latest))
    yield Cell(latest.exporter, latest.exporter_version)
    yield Cell(latest.fmi_version, words_of_interface(latest))
    yield from (Cell(v.outcome.value if v else "") for v in (change.before, change.now))
    yield Cell("")
    for verdict in (change.before, change.now):
        rms = worst_rms(verdict) if verdict else None
        yield Cell("" if rms is None else percent(rms), key=rms)
    reason = explained(change)
    yield Cell(reason, key=reason or None)


def _details(change: Change) -> dict[str, Any]:
    old, new = change.before, change.now
    both = (("before", old), ("now", new))
    return {
        "reason": explained(change) if change.effect is VerdictChange.RESULTS else "",
        "notes": [f"{n.capitalize()}: {v.reason}" for n, v in both if v and v.reason],
        "plots": _plots(old, new),
        "tables": [_table(change)] if change.measures else [],
        "facts": [list(pair) for n, v in both if v for pair in _verdict_facts(n, v)],
    }


def _plots(old: Verdict | None, new: Verdict | None) -> list[dict[str, Any]]:
    """The curves of the later run, with those of the earlier one below."""
    before = {curve.name: curve for curve in old.curves} if old else {}
    if new is None or not new.curves:
        return [plot(curve, None) for curve in before.values()]
    found = []
    for curve in new.curves:
        figure = plot(curve, None)
        if curve.name in before:
            figure["series"].insert(-1, series_of(before[curve.name], "old"))
            figure["names"] = {"run": "now"}
        found.append(figure)
    return found


def _table(change: Change) -> dict[str, Any]:
    return {
        "caption": "Root mean square of the deviation, relative to the range of the reference",
        "head": ("variable", "before", "now"),
        "rows": [(m.name, percent(m.before), percent(m.now)) for m in change.measures],
    }


def _verdict_facts(when: str, v: Verdict) -> Iterator[tuple[str, str]]:
    yield f"verdict {when}", v.outcome.value
    yield f"rows {when}", str(v.rows)
    yield f"run time {when}", seconds(v.seconds)
    yield f"SHA-256 {when}", v.sha256
