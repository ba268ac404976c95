"""The command line: arguments → public API, errors → a message and an exit status.

========  ==========================================================
 status    meaning
========  ==========================================================
 0         done
 1         ``validate`` has found errors, or results are beyond the tolerance of ``--reference-file``
 2         the request cannot be carried out; the message gives the reason
 3         a defect of fmimaster; ``--debug`` shows where
 130       interrupted by Ctrl-C, SIGTERM or SIGHUP
========  ==========================================================
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
import warnings
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NoReturn

import fmimaster
from fmimaster.commands import COMMANDS
from fmimaster.commands.parser import REFUSED, CommandParser, Parser
from fmimaster.commands.text import tell
from fmimaster.errors import AccuracyWarning, FileError, FmimasterError, Interrupted
from fmimaster.given_path import given_path
from fmimaster.results.text_file import refuse_to_overwrite
from fmimaster.visible import visible

_DEFECT, _INTERRUPTED = 3, 130

_FIRST_STEPS = """First steps:
  fmimaster demo files        write example FMUs into this folder
  fmimaster simulate BouncingBall.fmu --show-plot
  fmimaster simulate --help   show all options of a command
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, that of the process if none is given; returns the exit status.

    Raises
    ------
    SystemExit
        For ``--help``, ``--version`` and arguments that are not valid.
    """
    parser, parsed = _parser(), None
    try:
        _take_standard_descriptors()
        parsed = parser.parse_args(arguments)
        if parsed.command is None:
            parser.print_help()
            return 0
        with _terminated_like_interrupted(), _logging(parsed), warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)  # log and statistics have them
            status: int = _command(parsed.command).run(parsed)
            return status
    except (KeyboardInterrupt, Exception) as error:
        if parsed is not None and parsed.debug:
            tell([traceback.format_exc()])
        status = _told(error)
        if arguments is None and _any_left_alone():
            _leave(status)
        return status


def _take_standard_descriptors() -> None:
    """Let no file that is opened later get the number of a standard stream that is closed: FMUs print to number 1."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Take SIGTERM, which batch systems send, and SIGHUP like Ctrl-C: rows are kept, FMUs freed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in (getattr(signal, n) for n in names)}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # such as by nohup
                signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _any_left_alone() -> bool:
    """Whether an FMU is still being called; there is none without the package of runs."""
    session = sys.modules.get("fmimaster.session")
    return session is not None and session.any_left_alone()


def _leave(status: int) -> NoReturn:
    """End the process although an FMU is still being called: exit() could wait for it, or crash."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _told(error: BaseException) -> int:
    """Say what happened, and return the exit status."""
    if isinstance(error, Interrupted):
        return _error(str(error), _INTERRUPTED)
    if isinstance(error, KeyboardInterrupt):
        return _error("Interrupted.", _INTERRUPTED)
    if isinstance(error, FmimasterError):
        return _error(str(error), REFUSED)
    if isinstance(error, BrokenPipeError):  # "fmimaster ... | head"
        return 0
    if isinstance(error, OSError):
        where = f" ('{error.filename}')" if error.filename else ""
        return _error(f"{error.strerror or error}{where}.", REFUSED)
    if isinstance(error, MemoryError):
        return _error("There is not enough memory.", REFUSED)
    words = "".join(traceback.format_exception_only(error)).strip()
    return _error(
        f"This is a defect of fmimaster: {words}. Run with --debug for a traceback, and report it.",
        _DEFECT,
    )


def _error(message: str, status: int) -> int:
    tell([f"fmimaster: error: {message}"])
    return status


# Arguments ------------------------------------------------------------------------------------------------------------


def _command(name: str) -> Any:
    return import_module(f"fmimaster.commands.{name}")


class _Version(Action):
    """Prints the version, which is looked up only then."""

    def __call__(self, parser: ArgumentParser, *_: object) -> NoReturn:
        parser._print_message(f"fmimaster {fmimaster.__version__}\n", sys.stdout)
        parser.exit()


def _parser() -> Parser:
    parser = Parser(
        prog="fmimaster", description="Co-simulation of FMI 2.0 and 3.0 FMUs.", epilog=_FIRST_STEPS
    )
    version = "show program's version number and exit"
    parser.add_argument("--version", action=_Version, nargs=0, help=version)
    parser.set_defaults(debug=False, verbose=False, quiet=False, log_file=None)
    commands = parser.add_subparsers(
        title="Commands", dest="command", metavar="COMMAND", parser_class=CommandParser
    )
    for name, words in COMMANDS.items():
        summary = words[0].lower() + words[1:].partition(".")[0]
        commands.add_parser(name, help=summary, description=words, command=name)
    return parser


# Log ------------------------------------------------------------------------------------------------------------------


class _StandardError(logging.Handler):
    """Writes to what is the standard error at that moment: a progress bar replaces it for a while."""

    def emit(self, record: logging.LogRecord) -> None:
        tell([self.format(record)])


@contextmanager
def _logging(arguments: Namespace) -> Iterator[None]:
    """Send the log to the standard error and, if requested, to a file, while a command runs."""
    log = logging.getLogger("fmimaster")
    level, propagate = log.level, log.propagate
    shown = logging.INFO if _shows_log(arguments) else logging.WARNING
    handlers: list[logging.Handler] = [_StandardError()]
    handlers[0].setFormatter(_Format())
    handlers[0].setLevel(shown)
    if arguments.log_file is not None:
        handlers.append(_LogFile(arguments.log_file))
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


def _shows_log(arguments: Namespace) -> bool:
    """Whether all of the log is shown: the messages and the calls of FMUs are a part of it."""
    given = vars(arguments)
    calls = given.get("log_fmi_calls") and given.get("fmi_log_file") is None
    return bool(arguments.verbose or given.get("debug_logging") or calls)


class _Format(logging.Formatter):
    """``fmimaster: warning: message``."""

    def format(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        return f"fmimaster: {level}{record.getMessage()}"


class _LogFile(logging.FileHandler):
    """A log file. What goes wrong in writing it does not end the command, but is reported after it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._failure: OSError | None = None
        refuse_to_overwrite(given_path(path), ())
        try:
            super().__init__(given_path(path), mode="w", encoding="utf-8")
        except OSError as error:
            raise self._told(error) from error
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def format(self, record: logging.LogRecord) -> str:
        """A message of several lines is indented, so that none of them looks like another message."""
        return visible(super().format(record)).replace("\n", "\n    ")

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
