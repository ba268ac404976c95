"""A table as one HTML file that works offline: sorted, filtered, with details of each row on demand.

What is shown is data of FMUs from anywhere: texts are escaped, scripts of the page use them as text only, and the page
forbids all requests. Details are JSON that is parsed when a row is opened: so a page of 300 FMUs with 5 MB is shown at
once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from html import escape
from math import inf
from pathlib import Path
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import put_in_place, reason_of
from fmimaster.base.text import in_a_line, visible

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
"""Content-Security-Policy: the scripts and styles of the page itself, and no request."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, a smaller line below, and what it is sorted by (default: the text; None comes last)."""

    text: str
    below: str = ""
    key: float | str | None = ""


@dataclass(frozen=True, slots=True)
class SheetColumn:
    """A column.

    Attributes
    ----------
    title : str
        The heading, which sorts the rows.
    kind : str
        How its cells look: ``"word"``, ``"name"``, ``"number"``, ``"text"`` or ``"plot"``.
    rank : int
        0 for columns of all widths; 1 for those that need more than 1270 pixels, 2 for those that need more than 1500.
    hint : str
        What the column means, shown when the pointer rests on the heading.
    """

    title: str
    kind: str = "text"
    rank: int = 0
    hint: str = ""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row.

    Attributes
    ----------
    name : str
        Unique; the part of the address behind ``#`` that opens the row.
    tone : str
        ``"good"``, ``"bad"``, ``"poor"`` or ``"plain"``, for the colour of the first cell.
    cells : tuple of Cell
        One for each column.
    facets : name → value
        What the rows are filtered by.
    details : JSON values
        ``reason`` (text), ``notes``, ``facts`` (pairs), ``tables`` (``caption``, ``head``, ``rows``), ``plots``
        (``name``, ``unit``, ``series``, ``band``), ``texts`` (title, text, and ``"table"`` or ``"log"``),
        ``links`` (pairs of text and address); all optional.
    """

    name: str
    tone: str
    cells: tuple[Cell, ...]
    facets: Mapping[str, str]
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The whole page.

    Attributes
    ----------
    title : str
        The heading.
    facts : tuple of (str, str)
        Below it.
    tallies : tuple of (str, str)
        Values of the first facet, in the order of the bar, and their tones.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    tallies: tuple[tuple[str, str], ...]
    columns: tuple[SheetColumn, ...]
    rows: tuple[SheetRow, ...] = field(repr=False)


def write_sheet(sheet: Sheet, path: Path) -> None:
    """Write the page; an older file is replaced only when the new one is complete.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    sheet = _without_empty_columns(sheet)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in _lines(sheet))
        put_in_place(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise FileError(f"The report '{path}' cannot be written: {reason_of(error)}.") from error


def _without_empty_columns(sheet: Sheet) -> Sheet:
    """The page without columns in which no row has a text or a figure."""
    has_plots = any(row.details.get("plots") for row in sheet.rows)
    kept = [
        k
        for k, column in enumerate(sheet.columns)
        if (has_plots if column.kind == "plot" else any(row.cells[k].text for row in sheet.rows))
    ]
    return replace(
        sheet,
        columns=tuple(sheet.columns[k] for k in kept),
        rows=tuple(replace(row, cells=tuple(row.cells[k] for k in kept)) for row in sheet.rows),
    )


def _lines(sheet: Sheet) -> Iterator[str]:
    title = _text(sheet.title)
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<link rel="icon" href="data:,">'
    yield f"<title>{title}</title><style>{_part('sheet.css')}</style></head><body>"
    yield f"<header><h1>{title}</h1><dl>"
    yield from (f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in sheet.facts)
    yield "</dl></header><main>"
    yield from _tallies(sheet)
    yield from _filters(sheet)
    yield from _table(sheet)
    yield "<noscript>Plots, logs and sorting need JavaScript.</noscript></main>"
    for row in sheet.rows:
        yield f'<script type="application/json">{_json(row.details)}</script>'
    yield f"<script>{_part('sheet.js')}</script></body></html>"


def _tallies(sheet: Sheet) -> Iterator[str]:
    facet = next(iter(sheet.rows[0].facets)) if sheet.rows else ""
    counts = Counter(row.facets[facet] for row in sheet.rows)
    yield '<div class="bar" aria-hidden="true">'
    for value, tone in sheet.tallies:
        if counts[value]:
            yield f'<span class="{tone}" style="flex-grow: {counts[value]}"></span>'
    yield f'</div><div class="tallies" data-facet="{_text(facet)}">'
    for value, tone in sheet.tallies:
        yield (
            f'<button type="button" class="{tone}" aria-pressed="false" data-value="{_text(value)}">'
            f"<b>{counts[value]}</b> {_text(value)}</button>"
        )
    yield "</div>"


def _filters(sheet: Sheet) -> Iterator[str]:
    yield '<div class="filters" role="search">'
    yield '<label class="find">Search<input type="search" id="find" placeholder="name, exporter, reason"></label>'
    _, *others = sheet.rows[0].facets if sheet.rows else [""]
    for facet in others:
        counts = Counter(row.facets[facet] for row in sheet.rows)
        if len(counts) > 1:
            options = "".join(
                f'<option value="{_text(value)}">{_text(value) or "none"} ({number})</option>'
                for value, number in sorted(counts.items())
            )
            yield (
                f'<label>{_text(facet)}<select data-facet="{_text(facet)}"><option value="*">all</option>'
                f"{options}</select></label>"
            )
    orders = "".join(
        f'<option value="{k}">{_text(c.title)}</option>'
        for k, c in enumerate(sheet.columns)
        if c.kind != "plot"
    )
    yield f'<label class="order">Sort by<select id="order">{orders}</select></label>'
    yield '<output id="shown"></output></div>'


def _table(sheet: Sheet) -> Iterator[str]:
    yield "<table><thead><tr>"
    for column in sheet.columns:
        title, hint = _text(column.title), _text(column.hint)
        inside = title if column.kind == "plot" else f'<button type="button">{title}</button>'
        yield f'<th class="{column.kind} rank{column.rank}" title="{hint}" scope="col">{inside}</th>'
    yield "</tr></thead><tbody>"
    for row in sheet.rows:
        facets = {name: in_a_line(value) for name, value in row.facets.items()}
        yield f'<tr id="{_text(row.name)}" class="{row.tone}" data-facets="{_text(_json(facets))}">'
        for cell, column in zip(row.cells, sheet.columns, strict=True):
            below = f"<small>{_text(cell.below)}</small>" if cell.below else ""
            key = "" if cell.key == "" else f' data-key="{_sorted_by(cell.key)}"'
            yield (
                f'<td class="{column.kind} rank{column.rank}" data-title="{_text(column.title)}"{key}>'
                f"<span>{_text(cell.text)}</span>{below}</td>"
            )
        yield "</tr>"
    yield '</tbody></table><p id="none" hidden>No row has these properties.</p>'


def _sorted_by(key: float | str | None) -> str:
    if key is None:
        return ""
    return "Infinity" if key == inf else _text(str(key))


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _text(text: str) -> str:
    return escape(in_a_line(text))


def _json(values: Any) -> str:
    """JSON that cannot end the element that it is in."""
    text = json.dumps(_visible(values), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _visible(values: Any) -> Any:
    """JSON values with control characters in texts escaped."""
    if isinstance(values, str):
        return visible(values)
    if isinstance(values, Mapping):
        return {visible(str(name)): _visible(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_visible(value) for value in values]
    return values
