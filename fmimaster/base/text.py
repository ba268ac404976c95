"""Text that is safe to show, and text of pages: columns, sections, and lines that fit the width of the terminal."""

from __future__ import annotations

import os
import re
import reprlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TextIO

_CONTROLS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1, with escape and carriage return; but tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of text
    "\u2028\u2029"  # ends of lines for some
    "\ud800-\udfff"  # bytes of a path that are no UTF-8
    "]"
)
"""Characters of texts from outside that must not reach a terminal, a log or a figure. Data files keep them."""
_NEXT_LINE = re.compile("\n(?! )")
"""Before a line that is not indented."""


def visible(text: str) -> str:
    r"""Text with control characters written as escapes, so that they have no effect; tabs and line feeds are kept.

    Examples
    --------
    >>> print(visible("pump\x1b[2J\r is \u202efine"))
    pump\x1b[2J\r is \u202efine
    """
    return _CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def in_a_line(text: str) -> str:
    """The same, with tabs and line feeds escaped too: for a cell of a table, a label, a name."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def indented(text: str) -> str:
    """The same, with its further lines indented: none looks like a message of its own."""
    return _NEXT_LINE.sub("\n    ", visible(text))


def visible_json(text: str) -> str:
    """JSON with the same content, in which control characters are escaped by the rules of JSON."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


# Pages ----------------------------------------------------------------------------------------------------------------

PAGE_WIDTH = 100
"""Columns of a page whose output is not a terminal."""

_NARROWEST = 40
"""Fewest columns of a page: with fewer, names would be broken letter by letter."""

_ROOM_OF_A_SENTENCE = 32
"""Fewest columns for a sentence; if the last column of a table has fewer, the sentence gets its own lines."""

_ROOM_OF_A_WORD = 12
"""Columns of a long word, or of a number with its unit; short cells are not wrapped to fewer columns."""

_HANGING = 2
"""Columns by which all lines of a sentence after the first are indented."""

_NUMBER = re.compile(r"\d+\. +")
"""Before an entry of a numbered list: the lines of the entry begin behind it."""

_BELOW = " " * (2 * _HANGING)
"""Indentation of cells that are written below the others of their row."""

_NAMES_SHOWN = 4
"""Most names in a sentence; the others are counted."""


def bytes_in_words(value: float) -> str:
    """A number of bytes with a unit, such as "3.28 kB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.0f} bytes"


def page_width(stream: TextIO | None = None) -> int:
    """Columns of a page: those of the terminal (or the variable ``COLUMNS``), and 100 if the output is a file or a pipe.

    Parameters
    ----------
    stream
        The stream to which the page is written; default: the standard output.
    """
    stream = sys.stdout if stream is None else stream
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(_NARROWEST, int(given))
    with suppress(OSError, ValueError):
        if stream is not None and stream.isatty():
            return max(_NARROWEST, os.get_terminal_size(stream.fileno()).columns)
    return PAGE_WIDTH


def fitted(line: str, width: int | None = None) -> list[str]:
    """Break a long line into several lines, indented after the first; words are not broken.

    Parameters
    ----------
    width
        Columns of a line; default: those of the page.
    """
    width = page_width() if width is None else width
    text = line.lstrip(" ")
    indent = " " * (len(line) - len(text))
    number = _NUMBER.match(text)
    hanging = _HANGING if number is None else number.end()
    return _filled(text, indent, indent + " " * hanging, width)


def paragraph(text: str) -> list[str]:
    """A text in lines that fit the page, none of them indented."""
    return _filled(text, "", "", page_width())


def _filled(text: str, first: str, others: str, width: int) -> list[str]:
    """Break words into lines; blanks inside a line are kept."""
    lines: list[str] = []
    line = first
    for word in text.split(" "):
        is_begun = len(line) > len(others if lines else first)
        if is_begun and len(line) + 1 + len(word) > width:
            lines.append(line.rstrip())
            line, is_begun = others, False
        line += f" {word}" if is_begun else word
    return [*lines, line.rstrip()]


def aligned(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows with their cells in columns, two blanks apart; long last cells are wrapped."""
    table = list(rows)
    widths = Widths(*table)
    return [line for row in table for line in widths.lines(row, indent)]


class Widths:
    """The widths of columns, for tables that are too large to be kept in memory."""

    def __init__(self, *rows: Sequence[str]) -> None:
        self._widths: list[int] = []
        self._page = page_width()
        for row in rows:
            self.add(row)

    def add(self, row: Sequence[str]) -> None:
        """Widen the columns for the cells of a row."""
        self._widths += [0] * (len(row) - len(self._widths))
        for k, cell in enumerate(row):
            self._widths[k] = max(self._widths[k], len(in_a_line(cell)))

    def lines(self, row: Sequence[str], indent: str = "") -> list[str]:
        """A row with its cells in columns, two blanks apart.

        If the row is too wide, the last cell is wrapped in its column, or below the others if the column is narrow. If
        it is short, like a number, all cells except the first are written below the first.
        """
        cells = [in_a_line(cell) for cell in row]
        line = _line(cells, self._widths, indent)
        if self._is_stacked(indent) and len(cells) > 1:
            return [indent + cells[0], *self._without_first().lines(cells[1:], indent + _BELOW)]
        if len(line) <= self._page:
            return [line]
        if len(cells) < 2:
            return fitted(line, self._page)
        *others, last = cells
        begin = self._begin(len(others), indent)
        room = self._page - begin
        if room >= _ROOM_OF_A_SENTENCE or (room >= _ROOM_OF_A_WORD and len(last) <= 2 * room):
            first, *more = _filled(last, " " * begin, " " * begin, self._page)
            return [_line([*others, first.lstrip()], self._widths, indent), *more]
        below = indent + _BELOW
        rest = _filled(last, below, below + " " * _HANGING, self._page)
        return [*self.lines(others, indent), *rest]

    def _begin(self, column: int, indent: str) -> int:
        """Where a column begins."""
        return len(indent) + sum(w + 2 for w in self._widths[:column])

    def _is_stacked(self, indent: str) -> bool:
        """Whether the first cell of each row gets its own line: a long name before numbers that do not fit beside
        it."""
        if len(self._widths) < 3:
            return False
        first, *_, last = self._widths
        room = self._page - self._begin(len(self._widths) - 1, indent)
        return room < min(last, _ROOM_OF_A_WORD) and last <= _ROOM_OF_A_WORD <= first

    def _without_first(self) -> Widths:
        other = Widths()
        other._widths, other._page = self._widths[1:], self._page
        return other


def _line(cells: Sequence[str], widths: Sequence[int], indent: str) -> str:
    padded = (f"{cell:<{w}}" for cell, w in zip(cells, widths, strict=False))
    return (indent + "  ".join(padded)).rstrip()


def section(title: str, lines: Sequence[str], *, if_empty: str = "") -> list[str]:
    """A blank line, a title, and lines that fit the page; nothing if there are no lines and no text for this case."""
    if not lines and if_empty:
        lines = [f"  {if_empty}"]
    return ["", *flowing([title, *lines])] if lines else []


def flowing(lines: Iterable[str], width: int | None = None) -> Iterator[str]:
    """Break lines so that each fits the page, or the given width."""
    width = page_width() if width is None else width
    for line in lines:
        yield from fitted(line, width)


def shortened(rows: Sequence[Sequence[str]], most: int | None, total: int = 0) -> list[str]:
    """The first rows in columns, and the number of the others.

    Parameters
    ----------
    most
        How many rows are shown; None for all.
    total
        How many there are, if not all of them are in ``rows``.
    """
    shown = aligned(rows[:most])
    more = max(total, len(rows)) - len(rows[:most])
    return [*shown, f"  ... and {more} more (all with --all)"] if more > 0 else shown


def clipped(text: str, most: int | None) -> str:
    """A text in one line; a long text is cut, unless the length is None."""
    text = " ".join(text.split())
    return text if most is None or len(text) <= most else text[:most].rstrip() + " ..."


def count(number: int, noun: str) -> str:
    """``"1 step"``, ``"2 steps"``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def named(names: Iterable[str]) -> str:
    """Names in a sentence; of many names, the first ones and the number of the others."""
    names = list(names)
    if len(names) <= _NAMES_SHOWN:
        return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
    return f"{', '.join(names[: _NAMES_SHOWN - 1])} and {count(len(names) - _NAMES_SHOWN + 1, 'other')}"


MOST_LISTED = 8
"""Most entries that a line names; the others are counted."""


def listed(names: Iterable[str], most: int = MOST_LISTED) -> str:
    """Names in a row; of many, the first ones and the number of the others."""
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def in_short(value: object) -> str:
    """A setting as Python writes it, without default values: ``"GaussSeidel(mode=AlongLine())"``; of long series of numbers
    the first ones."""
    from dataclasses import MISSING, fields, is_dataclass  # errors need this module, and not these

    if isinstance(value, tuple) and all(isinstance(item, float) for item in value):
        return reprlib.repr(value)
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    given = []
    for f in fields(value):
        now = getattr(value, f.name)
        usual = f.default if f.default_factory is MISSING else f.default_factory()
        if f.repr and (usual is MISSING or now != usual):
            given.append(f"{f.name}={in_short(now)}")
    return f"{type(value).__name__}({', '.join(given)})"
