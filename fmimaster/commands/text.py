"""Plain text for the terminal: aligned columns, numbers, and where output goes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from itertools import chain
from typing import Any, TextIO

from fmimaster.errors import FileError
from fmimaster.visible import in_a_line, visible, visible_json


def aligned(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows with their cells in columns, two blanks apart."""
    table = list(rows)
    widths = Widths(*table)
    return [widths.line(row, indent) for row in table]


class Widths:
    """The widths of columns, for rows of which not all can be kept."""

    def __init__(self, *rows: Sequence[str]) -> None:
        self._widths: list[int] = []
        for row in rows:
            self.add(row)

    def add(self, row: Sequence[str]) -> None:
        """Make room for the cells of a row."""
        self._widths += [0] * (len(row) - len(self._widths))
        for k, cell in enumerate(row):
            self._widths[k] = max(self._widths[k], len(in_a_line(cell)))

    def line(self, row: Sequence[str], indent: str = "") -> str:
        """A row with its cells in columns, two blanks apart."""
        cells = zip(map(in_a_line, row), self._widths, strict=False)
        return (indent + "  ".join(f"{cell:<{w}}" for cell, w in cells)).rstrip()


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


def in_short(value: object) -> str:
    """A setting as Python writes it, without what it has by default: ``"GaussSeidel(mode=Linear())"``."""
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    given = []
    for f in fields(value):
        now = getattr(value, f.name)
        usual = f.default if f.default_factory is MISSING else f.default_factory()
        if f.repr and (usual is MISSING or now != usual):
            given.append(f"{f.name}={in_short(now)}")
    return f"{type(value).__name__}({', '.join(given)})"


def write(lines: Iterable[str]) -> None:
    """To the standard output, with nothing in it that controls a terminal; line by line, since there may be many."""
    lines = iter(lines)
    first = next(lines, None)  # what fails before there is a line fails with nothing written
    with standard_output() as stream:
        encoding = stream.encoding or "utf-8"
        for line in lines if first is None else chain([first], lines):
            text = f"{visible(line)}\n"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_json(data: Mapping[str, Any] | Sequence[Any]) -> None:
    """To the standard output, with the keys in the order in which they are given."""
    with standard_output() as stream:
        text = json.dumps(data, indent=2, ensure_ascii=not _is_utf8(stream))
        stream.write(visible_json(text) + "\n")


def takes_all_characters() -> bool:
    """Whether the standard output can show every character."""
    return sys.stdout is None or _is_utf8(sys.stdout)


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "utf-8").lower() in ("utf-8", "utf8")


def tell(lines: Iterable[str]) -> None:
    """To the standard error, separate from data, with nothing in it that controls a terminal.

    If that is closed or full, nothing is written: there is no other place for it.
    """
    if sys.stderr is None:
        return
    try:
        sys.stderr.write("".join(f"{visible(line)}\n" for line in lines))
        sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """The standard output, for what is written to it at once.

    Raises
    ------
    FileError
        If a caller has closed it, or it cannot be written, as on a full disk.
    BrokenPipeError
        If its reader has gone, as in ``fmimaster ... | head``.
    """
    if sys.stdout is None:
        raise FileError("The standard output is closed. Keep it open, or write to a file.")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except UnicodeEncodeError as error:
        _give_up(sys.stdout)
        raise FileError(
            f"The standard output cannot be written: its encoding {error.encoding} lacks a character. Write to a file, or "
            "set PYTHONIOENCODING=utf-8."
        ) from error
    except (OSError, FileError) as error:
        _give_up(sys.stdout)
        if isinstance(error, BrokenPipeError | FileError):
            raise
        raise FileError(
            f"The standard output cannot be written: {error.strerror or error}."
        ) from error


class Shown:
    """A stream to a terminal, for tables: no cell of theirs controls it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write what is visible of a text."""
        self._stream.write(visible(text))

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


def _give_up(stream: TextIO) -> None:
    """Let what is still in the buffer of a stream go nowhere: else Python reports the error again at the exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
