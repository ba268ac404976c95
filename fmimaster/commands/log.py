"""The log while a command runs: to the standard error, and to a file if one is requested."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fmimaster.base.errors import FileError
from fmimaster.base.files import given_path, refuse_to_overwrite
from fmimaster.base.text import indented
from fmimaster.commands.text import tell

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
        self._path = path
        self._failure: OSError | None = None
        refuse_to_overwrite(given_path(path), read)
        try:
            super().__init__(given_path(path), mode="w", encoding="utf-8")
        except OSError as error:
            raise self._told(error) from error
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

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
