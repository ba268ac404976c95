"""Output of the commands: data to the standard output, messages to the standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, TextIO

from fmimaster.base.errors import FileError
from fmimaster.base.text import indented, visible, visible_json

_COLOURS = {"error": "1;31", "warning": "1;33"}
"""Level of a message → bold red and bold yellow (ECMA-48, SGR)."""
_LEVEL = re.compile(r"^(fmimaster: )?(error|warning):")


def write(lines: Iterable[str]) -> None:
    """Print lines to the standard output one by one; control characters are escaped."""
    lines = iter(lines)
    first = next(lines, None)  # an error before the first line leaves the output empty
    with standard_output() as stream:
        encoding = stream.encoding or "utf-8"
        for line in lines if first is None else chain([first], lines):
            text = f"{visible(line)}\n"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_json(data: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print JSON to the standard output, with the keys in the given order."""
    with standard_output() as stream:
        text = json.dumps(data, indent=2, ensure_ascii=not _is_utf8(stream))
        stream.write(visible_json(text) + "\n")


def json_key(name: str) -> str:
    """The name of a value as a key of JSON: ``start_seconds`` → ``startSeconds``."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def takes_all_characters() -> bool:
    """Whether the standard output can show every character."""
    return sys.stdout is None or _is_utf8(sys.stdout)


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "utf-8").lower() in ("utf-8", "utf8")


def tell(lines: Iterable[str]) -> None:
    """Print messages to the standard error; control characters are escaped, and further lines of a message are indented.

    If the standard error is closed or full, nothing is written.
    """
    if sys.stderr is None:
        return
    shown: Iterable[str] = map(indented, lines)
    if sys.stderr.isatty():
        shown = _for_a_terminal(shown, sys.stderr)
    try:
        sys.stderr.write("".join(f"{line}\n" for line in shown))
        sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


def _for_a_terminal(lines: Iterable[str], terminal: TextIO) -> Iterator[str]:
    """Lines that fit a terminal; errors and warnings in colour, unless the user has switched that off (no-color.org)."""
    from fmimaster.base.text import (
        fitted,
        page_width,
    )  # few messages need it, and --version must be fast

    width = page_width(terminal)
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    for line in lines:
        for part in fitted(line, width):
            yield part if is_plain else _LEVEL.sub(_coloured, part)


def _coloured(level: re.Match[str]) -> str:
    return f"\x1b[{_COLOURS[level[2]]}m{level[0]}\x1b[0m"


def note(arguments: Namespace, lines: Iterable[str]) -> None:
    """Print information to the standard error, each line when it is known. With ``--quiet``, nothing is printed, and
    lines that are computed when they are asked for are not computed."""
    if not arguments.quiet:
        for line in lines:
            tell([line])


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """The standard output, flushed at the end.

    Raises
    ------
    FileError
        If a caller has closed it, or it cannot be written, as on a full disk.
    BrokenPipeError
        If its reader has ended, as in ``fmimaster ... | head``.
    """
    if sys.stdout is None:
        raise FileError("The standard output is closed. Keep it open, or write to a file.")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except UnicodeEncodeError as error:
        _give_up(sys.stdout)
        raise FileError(
            f"The standard output cannot be written: its encoding {error.encoding} lacks a character. Write to a "
            "file, or "
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
    """A stream to a terminal that escapes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write a text with escaped control characters."""
        self._stream.write(visible(text))

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


def _give_up(stream: TextIO) -> None:
    """Discard the buffer of a stream: otherwise Python reports the error again at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
