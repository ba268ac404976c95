"""Recorded verdicts: a text file with what became of FMUs that are not in the repository, and how a run differs from it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import decoding, read_whole
from fmimaster.base.text import clipped, count, section, visible
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictCause, VerdictOutcome

FACTOR = 5.0
"""An FMU that takes so many times its recorded time is much slower, ..."""
AT_LEAST = 1.0
"""... if it is also this much more, in s: short times are noise."""
_MOST_REASON = 200
"""Letters of a reason in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVerdict:
    """What the file has about one FMU, by one of its interfaces; as in its :class:`Verdict`.

    Attributes
    ----------
    seconds : float
        Time of the run itself, in s.
    reason : str
        Why it has not passed. Another reason in words is no change.
    """

    name: str
    interface: str
    exporter: str
    sha256: str
    verdict: VerdictOutcome
    cause: VerdictCause
    seconds: float
    reason: str

    @staticmethod
    def of(v: Verdict) -> RecordedVerdict:
        """What is recorded of a verdict."""
        return RecordedVerdict(
            name=v.name,
            interface=v.interface,
            exporter=f"{v.exporter} {v.exporter_version}".strip(),
            sha256=v.sha256,
            verdict=v.outcome,
            cause=v.cause,
            seconds=round(v.seconds, 2),
            reason=clipped(visible(" ".join(v.reason.split())), _MOST_REASON),
        )

    @property
    def in_words(self) -> str:
        """``"failed (crash)"``."""
        return self.verdict.value + (f" ({self.cause.value})" if self.cause.value else "")


_COLUMNS = tuple(f.name for f in fields(RecordedVerdict))


class Departure(Enum):
    """How a run differs from what is recorded."""

    OTHER = "Another verdict"
    SLOWER = "Much slower"
    MISSING = "Recorded, but not in the folder"
    NEW = "Not recorded"


@dataclass(frozen=True, slots=True)
class Departures:
    """All differences between a run and what is recorded; as text, a page."""

    found: tuple[tuple[Departure, RecordedVerdict, str], ...]
    """The kind, the FMU, and the difference in words."""
    as_recorded: int
    """Number of FMUs without a difference."""

    def __bool__(self) -> bool:
        return bool(self.found)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for kind in Departure:
            rows = [f"  {r.name}: {text}" for k, r, text in self.found if k is kind]
            yield from section(f"{kind.value}: {count(len(rows), 'FMU')}", rows)
        yield ""
        yield f"As recorded: {count(self.as_recorded, 'FMU')}"


def departures(
    recorded: Sequence[RecordedVerdict], run: ConformanceRun, *, is_whole: bool = True
) -> Departures:
    """Compare a run with recorded verdicts.

    FMUs are found by name and interface; those in another place by their hash.

    Parameters
    ----------
    is_whole : bool
        Whether the run has all FMUs of its folder; otherwise none is missing.
    """
    by_name = {(r.name, r.interface): r for r in recorded}
    by_hash = {(r.sha256, r.interface): r for r in recorded}
    found, seen, same = list[tuple[Departure, RecordedVerdict, str]](), set[tuple[str, str]](), 0
    for now in map(RecordedVerdict.of, run.verdicts):
        key = now.interface
        before = by_name.get((now.name, key)) or by_hash.get((now.sha256, key))
        if before is None:
            found.append((Departure.NEW, now, _verdict(now)))
            continue
        seen.add((before.name, before.interface))
        other_file = "" if before.sha256 == now.sha256 else "the FMU is another file; "
        if (before.verdict, before.cause) != (now.verdict, now.cause):
            text = f"{other_file}{before.in_words} → {_verdict(now)}"
            found.append((Departure.OTHER, now, text))
        elif now.seconds > max(FACTOR * before.seconds, before.seconds + AT_LEAST):
            text = f"{other_file}{before.seconds:g} s → {now.seconds:g} s"
            found.append((Departure.SLOWER, now, text))
        else:
            same += 1
    if is_whole:
        missing = [r for key, r in by_name.items() if key not in seen]
        found += [(Departure.MISSING, r, r.in_words) for r in missing]
    return Departures(tuple(found), same)


def _verdict(r: RecordedVerdict) -> str:
    return r.in_words + (f": {r.reason}" if r.reason else "")


def write_recorded(run: ConformanceRun, file: Path) -> None:
    """Write the verdicts of a run."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for verdict in run.verdicts:
            row = asdict(RecordedVerdict.of(verdict))
            writer.writerow(c.value if isinstance(c, Enum) else c for c in row.values())


def read_recorded(file: Path) -> tuple[RecordedVerdict, ...]:
    """Read recorded verdicts.

    Raises
    ------
    FileError
        If the file is missing, or has other columns or values.
    """
    with decoding(file, "a file of recorded verdicts", csv.Error):
        rows = csv.reader(StringIO(read_whole(file).decode(), newline=""))
        if tuple(next(rows, ())) != _COLUMNS:
            raise FileError(
                f"'{file}' has no recorded verdicts. Expected a file that 'fmimaster conformance FOLDER --verdicts "
                f"{file.name} --record' has written, with the columns {', '.join(_COLUMNS)}."
            )
        return tuple(_recorded(row) for row in rows)


def _recorded(row: list[str]) -> RecordedVerdict:
    if len(row) != len(_COLUMNS):
        raise ValueError("it has a row that is no recorded verdict")
    cells: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    cells["verdict"] = VerdictOutcome(cells["verdict"])
    cells["cause"] = VerdictCause(cells["cause"])
    cells["seconds"] = float(cells["seconds"])
    return RecordedVerdict(**cells)
