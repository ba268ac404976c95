"""Plain text for the terminal: aligned columns, numbers, and where output goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from fmimaster.errors import FileError


def aligned(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows with their cells in columns, two blanks apart."""
    table = [list(row) for row in rows]
    columns = max(map(len, table), default=0)
    widths = [
        max((len(row[k]) for row in table if k < len(row)), default=0) for k in range(columns)
    ]
    return [
        (indent + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False))).rstrip()
        for row in table
    ]


def section(title: str, lines: Sequence[str], *, if_empty: str = "") -> list[str]:
    """A blank line, a title, and lines; nothing if there are none and no text for that."""
    if lines:
        return ["", title, *lines]
    return ["", title, f"  {if_empty}"] if if_empty else []


def shortened(
    lines: Sequence[str], most: int | None, total: int = 0, indent: str = "  "
) -> list[str]:
    """The first lines, and how many there are besides.

    Parameters
    ----------
    most
        How many lines are shown; None for all.
    total
        How many there are, if not all of them are in ``lines``.
    """
    shown = list(lines[:most])
    more = max(total, len(lines)) - len(shown)
    return [*shown, f"{indent}... and {more} more (all with --all)"] if more > 0 else shown


def clipped(text: str, most: int | None) -> str:
    """A text in one line, of a long one the beginning; None for all of it."""
    text = " ".join(text.split())
    return text if most is None or len(text) <= most else text[:most].rstrip() + " ..."


def count(number: int, noun: str) -> str:
    """``"1 step"``, ``"2 steps"``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def write(lines: Iterable[str]) -> None:
    """To the standard output."""
    standard_output().write("".join(f"{line}\n" for line in lines))


def write_json(data: Mapping[str, Any] | Sequence[Any]) -> None:
    """To the standard output, with the keys in the order in which they are given."""
    standard_output().write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def tell(lines: Iterable[str]) -> None:
    """To the standard error, separate from data; nothing if that is closed."""
    if sys.stderr is not None:
        sys.stderr.write("".join(f"{line}\n" for line in lines))


def standard_output() -> TextIO:
    """The standard output, which a caller may have closed."""
    if sys.stdout is None:
        raise FileError("The standard output is closed. Keep it open, or write to a file.")
    return sys.stdout
