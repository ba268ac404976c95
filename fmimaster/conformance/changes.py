"""What changed between two conformance runs: as data, as text, and as one HTML page.

The runs are, for example, those of two versions of fmimaster or of an exporter."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.text import aligned, count, flowing, section
from fmimaster.conformance.measures import Measure, json_number
from fmimaster.conformance.page import (
    moment,
    percent,
    place_of,
    plot,
    seconds,
    series_of,
    words_of_interface,
    worst_rms,
)
from fmimaster.conformance.sheet import Cell, Sheet, SheetColumn, SheetRow, write_sheet
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictOutcome
from fmimaster.results.comparison import percent_of

NOTICEABLE = 1e-6
"""Change of a root mean square, relative to the range of the reference, that is no rounding error."""
_FEWEST = 20
"""Lines of a section of the page; the others are counted."""


class VerdictChange(Enum):
    """How the verdict on an FMU changed."""

    WORSE = "worse"
    """It passed before."""
    BETTER = "better"
    """It passes now."""
    REASON = "other reason"
    """It still does not pass, for a reason of another kind (:class:`VerdictCause`), or with another verdict."""
    RESULTS = "other results"
    """The verdict is the same, but a deviation from the reference changed by more than a rounding error."""
    ADDED = "only now"
    """The earlier run did not have it."""
    REMOVED = "only before"
    """The later run does not have it."""


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """The deviation of a variable in both runs, relative to the range of the reference."""

    name: str
    before: float
    now: float


@dataclass(frozen=True, slots=True)
class Change:
    """What changed for one FMU.

    Attributes
    ----------
    name : str
        Of the FMU in its run.
    effect : Effect
    before, now : Verdict, optional
        None if that run does not have it.
    measures : tuple of MeasureChange
        Variables whose deviation changed, the largest change first.
    """

    name: str
    effect: VerdictChange
    before: Verdict | None
    now: Verdict | None
    measures: tuple[MeasureChange, ...] = ()

    @property
    def is_other_file(self) -> bool:
        """Whether the FMU itself is not the same file."""
        return bool(self.before and self.now and self.before.sha256 != self.now.sha256)


@dataclass(frozen=True, slots=True)
class VerdictChanges:
    """What changed between two runs; as text, a page.

    Attributes
    ----------
    before, now : ConformanceRun
        The two runs.
    changes : tuple of Change
        In the order of :class:`VerdictChange`, then by names.
    unchanged : int
        FMUs of both runs without a change.
    """

    before: ConformanceRun
    now: ConformanceRun
    changes: tuple[Change, ...]
    unchanged: int

    def of(self, effect: VerdictChange) -> tuple[Change, ...]:
        """The changes of one kind."""
        return tuple(change for change in self.changes if change.effect is effect)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        runs = (("before", self.before), ("now", self.now))
        rows = [("", "folder", "started", "fmimaster")]
        rows += [(n, r.folder, moment(r.started), r.version) for n, r in runs]
        yield from flowing(aligned(rows, ""))
        heads = ("verdict", "before", "now")
        counts = [(o.value, *(str(run.count(o)) for _, run in runs)) for o in VerdictOutcome]
        yield from ["", *aligned([heads, *counts], "")]
        for effect in VerdictChange:
            yield from self._section(effect)
        yield ""
        yield from flowing([f"No change: {count(self.unchanged, 'FMU')}"])

    def _section(self, effect: VerdictChange) -> list[str]:
        found = self.of(effect)
        rows = [words(change) for change in found[:_FEWEST]]
        lines = aligned(rows)
        if len(found) > _FEWEST:
            lines.append(f"  ... and {len(found) - _FEWEST} more")
        return section(f"{effect.value.capitalize()}: {count(len(found), 'FMU')}", lines)

    def to_json(self) -> dict[str, Any]:
        """The changes as JSON values; deviations that are not finite are None."""
        return {
            "before": _run_facts(self.before),
            "now": _run_facts(self.now),
            "unchanged": self.unchanged,
            "changes": [_change_facts(change) for change in self.changes],
        }


def changes(before: ConformanceRun, now: ConformanceRun) -> VerdictChanges:
    """Compare two runs by the names of their FMUs."""
    old, new = ({v.name: v for v in run.verdicts} for run in (before, now))
    found = [
        change for name in {**old, **new} if (change := _change(name, old.get(name), new.get(name)))
    ]
    order = list(VerdictChange)
    found.sort(key=lambda c: (order.index(c.effect), c.name))
    both = old.keys() & new.keys()
    return VerdictChanges(before, now, tuple(found), len(both) - sum(c.name in both for c in found))


def words(change: Change) -> tuple[str, str, str]:
    """The change in words: the FMU, its verdicts, and the reason."""
    old, new = change.before, change.now
    outcomes = dict.fromkeys(v.outcome.value for v in (old, new) if v)
    return change.name, " → ".join(outcomes), explained(change)


def explained(change: Change) -> str:
    """Why the verdict is another one, or what else changed; empty if there is nothing to say."""
    other_file = "The FMU is another file. " if change.is_other_file else ""
    if change.effect is VerdictChange.RESULTS:
        first, *others = change.measures
        more = f" ({count(len(others), 'other variable')} too)" if others else ""
        text = f"RMS of '{first.name}' {percent_of(first.before)} → {percent_of(first.now)} of the range{more}"
        return other_file + text
    if change.effect is VerdictChange.BETTER and change.before:
        return f"{other_file}Before: {change.before.reason}"
    latest = change.now or change.before
    return other_file + (latest.reason if latest else "")


def _change(name: str, old: Verdict | None, new: Verdict | None) -> Change | None:
    if old is None or new is None:
        return Change(name, VerdictChange.ADDED if old is None else VerdictChange.REMOVED, old, new)
    measures = tuple(_measure_changes(old.measures, new.measures))
    effect = _effect(old, new, bool(measures))
    return None if effect is None else Change(name, effect, old, new, measures)


def _effect(old: Verdict, new: Verdict, has_other_results: bool) -> VerdictChange | None:
    if old.outcome is not new.outcome:
        if old.outcome is VerdictOutcome.PASSED:
            return VerdictChange.WORSE
        return (
            VerdictChange.BETTER if new.outcome is VerdictOutcome.PASSED else VerdictChange.REASON
        )
    if old.cause is not new.cause:
        return VerdictChange.REASON
    # the words of a reason are no change: each version may say it in another way, and times in them depend on the machine
    return VerdictChange.RESULTS if has_other_results else None


def _measure_changes(old: tuple[Measure, ...], new: tuple[Measure, ...]) -> Iterator[MeasureChange]:
    before = {m.deviation.name: m.deviation.relative for m in old}
    now = {m.deviation.name: m.deviation.relative for m in new}
    found = [MeasureChange(name, before[name], now[name]) for name in now if name in before]
    others = [m for m in found if m.before != m.now and not abs(m.now - m.before) <= NOTICEABLE]
    yield from sorted(others, key=lambda m: -abs(m.now - m.before))


def _run_facts(run: ConformanceRun) -> dict[str, Any]:
    return {
        "folder": run.folder,
        "started": run.started,
        "version": run.version,
        **{outcome.value: run.count(outcome) for outcome in VerdictOutcome},
    }


def _change_facts(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "effect": change.effect.value,
        "before": change.before.outcome.value if change.before else None,
        "now": change.now.outcome.value if change.now else None,
        "otherFile": change.is_other_file,
        "reason": explained(change),
        "measures": [
            {"name": m.name, "before": json_number(m.before), "now": json_number(m.now)}
            for m in change.measures
        ],
    }


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
