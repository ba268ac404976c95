"""The table of all FMUs as Markdown and as CSV."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from datetime import date
from importlib.metadata import version
from pathlib import Path

from compared import Line

_NUMBER = re.compile(r"(?<=.)\d[\d.]*$|^\d+$|\d\.")
"""A version, or a digit in a version; not that in front of ``20-sim``."""


def write_tables(lines: Sequence[Line], target: Path) -> None:
    """Write ``target.md`` and ``target.csv``."""
    names = [f.name.replace("_", " ") for f in fields(Line)]
    tested = f"fmimaster {version('fmimaster')}, fmpy {version('fmpy')}, {date.today()}"
    text = [
        f"{len(lines)} FMUs, {sum(line.is_fine for line in lines)} of them fine. {tested}.",
        "",
        *_table(
            ["exporter", "FMI", "FMUs", "ran", "same bits and calls", "as fmpy (1e-9)"],
            _summary(lines),
        ),
        "",
    ]
    write_rows(names, [astuple(line) for line in lines], target, text)


def write_rows(
    names: Sequence[str], rows: Sequence[Sequence[object]], target: Path, head: Sequence[str] = ()
) -> None:
    """Write rows into ``target.csv``, and below the lines ``head`` into ``target.md``."""
    with target.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    target.with_suffix(".md").write_text(
        "\n".join([*head, *_table(names, rows), ""]), encoding="utf-8", newline="\n"
    )


def _summary(lines: Sequence[Line]) -> Iterable[Sequence[object]]:
    """Counts by exporter, without its version, and version of FMI."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        count = counts.setdefault((_family(line.exporter), line.fmi[:1]), Counter())
        count["FMUs"] += 1
        count["ran"] += line.native == line.reference == "ran"
        count["equal"] += line.is_fine
        count["fmpy"] += bool(line.difference) and float(line.difference) <= 1e-9
    for (exporter, fmi), c in sorted(counts.items()):
        yield exporter, fmi, c["FMUs"], c["ran"], c["equal"], c["fmpy"]


def _family(exporter: str) -> str:
    """The name of a tool without its version: the words before the first with a digit, a bracket or a comma."""
    first, *others = exporter.replace("Version", "0").split()
    kept = [_NUMBER.sub("", first)]
    for word in others:
        if kept[-1].endswith((":", ",")) or _NUMBER.search(word) or word.startswith("("):
            break
        kept.append(word)
    return " ".join(kept).rstrip(":,")


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    def row(cells: Iterable[object]) -> str:
        return "| " + " | ".join(_cell(c) for c in cells) + " |"

    return [row(head), row("---" for _ in head), *map(row, rows)]


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split())
