"""Output of the commands: data to the standard output, messages and the log to the standard error."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EINVAL
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, cast

from fmimaster.base.errors import FileError
from fmimaster.base.text import fitted, indented, page_width, visible, visible_json

_COLOURS = {"error": "1;31", "warning": "1;33"}
"""Level of a message → bold red and bold yellow (ECMA-48, SGR)."""
_VIRTUAL_TERMINAL = 0x4
"""ENABLE_VIRTUAL_TERMINAL_PROCESSING: a mode of consoles since Windows 10."""
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
    width = page_width(terminal)
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    for line in lines:
        for part in fitted(line, width):
            yield part if is_plain else _LEVEL.sub(_coloured, part)


def _coloured(level: re.Match[str]) -> str:
    return f"\x1b[{_COLOURS[level[2]]}m{level[0]}\x1b[0m"


def obey_escapes() -> None:
    """Let a console of Windows obey escapes, as terminals of other systems do: colours, and the erasing of a line."""
    if sys.platform != "win32" or sys.stderr is None or not sys.stderr.isatty():
        return
    import ctypes  # slow to import
    import msvcrt

    kernel, mode = ctypes.WinDLL("kernel32"), ctypes.c_ulong()
    console = ctypes.c_void_p(msvcrt.get_osfhandle(sys.stderr.fileno()))
    if kernel.GetConsoleMode(console, ctypes.byref(mode)):
        kernel.SetConsoleMode(console, mode.value | _VIRTUAL_TERMINAL)


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
        if sys.platform == "win32" and error.errno == EINVAL:  # its word for EPIPE
            raise BrokenPipeError from error
        raise FileError(
            f"The standard output cannot be written: {error.strerror or error}."
        ) from error


def as_a_file(stream: TextIO) -> TextIO:
    """The standard output for a table: if it is a file or a pipe, in UTF-8 and with line feeds, as a file that we write;
    on a terminal, with control characters escaped."""
    if stream.isatty():
        return cast(TextIO, Shown(stream))
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding="utf-8", newline="\n")
    return stream


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


# The log --------------------------------------------------------------------------------------------------------------

_NOTE = "note: "

_READ = ("path", "file", "files", "reference_file")
"""Arguments of commands that are files to be read, besides those that are settings."""


@contextmanager
def shown_log(arguments: Namespace) -> Iterator[None]:
    """Write the log to the standard error and, if requested, to a file, while a command runs."""
    log = logging.getLogger("fmimaster")
    level, propagate = log.level, log.propagate
    shown = logging.INFO if _shows_log(arguments) else logging.WARNING
    handlers: list[logging.Handler] = [_StandardError()]
    handlers[0].setFormatter(_Format())
    handlers[0].setLevel(shown)
    if arguments.log_file is not None:
        handlers.append(_LogFile(arguments.log_file, _read_by(arguments)))
    for handler in handlers:
        log.addHandler(handler)
    log.setLevel(logging.INFO if arguments.log_file is not None else shown)
    log.propagate = False
    try:
        yield
    finally:
        log.setLevel(level)
        log.propagate = propagate
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()
    for handler in handlers:
        if isinstance(handler, _LogFile):
            handler.report()


def not_in_the_log(lines: Iterable[str]) -> list[str]:
    """The lines without the warnings and notes that the log has shown already."""
    handlers = logging.getLogger("fmimaster").handlers
    shown = {text for h in handlers if isinstance(h, _StandardError) for text in h.reported}
    return [line for line in lines if line not in shown]


def _read_by(arguments: Namespace) -> list[Path]:
    """The files that the command reads."""
    from fmimaster.base.files import given_path
    from fmimaster.configure.setting_rows import ROWS  # only a command with a log file needs it

    given = vars(arguments)
    read = (*_READ, *(row.name for row in ROWS.values() if row.is_file and not row.writes))
    named = [given[name] for name in read if given.get(name) is not None]
    paths = [path for one in named for path in (one if isinstance(one, list) else [one])]
    return [given_path(path) for path in paths]


def _shows_log(arguments: Namespace) -> bool:
    """Whether all of the log is shown: the messages and the calls of FMUs are a part of it."""
    given = vars(arguments)
    calls = given.get("log_fmi_calls") and given.get("fmi_log_file") is None
    return bool(arguments.verbose or given.get("debug_logging") or calls)


class _StandardError(logging.Handler):
    """Writes to the present standard error: a progress bar replaces it for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: set[str] = set()
        """Warnings and notes that it has shown, as the summary of a run has them."""

    def emit(self, record: logging.LogRecord) -> None:
        text = _with_level(record)
        if record.levelno >= logging.WARNING or text.startswith(_NOTE):
            self.reported.add(text)
        tell([self.format(record)])


class _Format(logging.Formatter):
    """``fmimaster: warning: message``."""

    def format(self, record: logging.LogRecord) -> str:
        return f"fmimaster: {_with_level(record)}"


def _with_level(record: logging.LogRecord) -> str:
    level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
    return f"{level}{record.getMessage()}"


class _LogFile(logging.FileHandler):
    """A log file. An error in writing it does not end the command, but is reported after it."""

    def __init__(self, path: str, read: Iterable[Path]) -> None:
        from fmimaster.apart.again import is_process_of_run  # few commands have one
        from fmimaster.base.files import given_path, refuse_to_overwrite

        self._path = path
        self._failure: OSError | None = None
        refuse_to_overwrite(given_path(path), read)
        try:
            if not is_process_of_run():  # both processes of a command append to the file
                given_path(path).write_bytes(b"")
            super().__init__(given_path(path), mode="a", encoding="utf-8")
        except OSError as error:
            raise self._told(error) from error
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        stream.reconfigure(newline="\n")  # on every system
        return stream

    def format(self, record: logging.LogRecord) -> str:
        """The further lines of a message are indented, so that none looks like another message."""
        return indented(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is Python's
        """Remember the first failure."""
        failure = sys.exc_info()[1]
        if isinstance(failure, OSError):
            self._failure = self._failure or failure
        else:
            super().handleError(record)

    def close(self) -> None:
        """Close the file, whether or not the last lines can be written."""
        try:
            super().close()
        except OSError as error:
            self._failure = self._failure or error

    def report(self) -> None:
        """Raise if there was a failure."""
        if self._failure is not None:
            raise self._told(self._failure)

    def _told(self, error: OSError) -> FileError:
        words = error.strerror or error
        return FileError(f"The log file '{self._path}' cannot be written: {words}.")
