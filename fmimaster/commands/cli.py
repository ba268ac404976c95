"""The command line: arguments → public API, errors → a message and an exit status.

========  ==========================================================
 status    meaning
========  ==========================================================
 0         done
 1         ``validate`` has found errors, results are beyond the tolerance of ``--reference-file``, an FMU has failed in
           ``conformance``
 2         the request cannot be carried out; the message gives the reason
 3         a defect of fmimaster; ``--debug`` shows where
 130       interrupted by Ctrl-C, SIGTERM, SIGHUP, or Ctrl-Break on Windows
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
from errno import EAGAIN, EMFILE, ENFILE, ENOMEM, ENOSPC
from importlib import import_module
from typing import NoReturn

import fmimaster
from fmimaster.base.collector import left_for_later
from fmimaster.base.errors import AccuracyWarning, FmimasterError, Interrupted
from fmimaster.commands import COMMANDS
from fmimaster.commands.parser import REFUSED, CommandParser, Parser
from fmimaster.commands.text import obey_escapes, shown_log, tell

_DEFECT, _INTERRUPTED = 3, 130

_RUNNING = ("simulate", "resume")
"""Commands whose run has a process of its own, which does the rest of the command; not if another program calls main()."""

_RUNNING_OFTEN = ("stability", "optimize", "budget", "export")
"""Commands that are in a process of their own as a whole; also ``plan --compare``."""

_FIRST_STEPS = """First steps:
  fmimaster demo files        write example FMUs into this folder
  fmimaster simulate BouncingBall.fmu --show-plot
  fmimaster simulate --help   show all options of a command
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; without arguments, the command of this process.

    Raises
    ------
    SystemExit
        For ``--help``, ``--version`` and arguments that are not valid.
    """
    parser, parsed = _parser(), None
    try:
        _take_standard_descriptors()
        if arguments is None:
            obey_escapes()
        with left_for_later():  # options and modules are many objects, and all of them stay
            parsed = parser.parse_args(arguments)
        if parsed.command is None:
            parser.print_help()
            return 0
        with _terminated_like_interrupted(), shown_log(parsed), warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)  # log and statistics have them
            parsed.process = arguments is None and parsed.command in _RUNNING
            with left_for_later():
                command = import_module(f"fmimaster.commands.{parsed.command}")
            with _in_own_process(parsed, arguments is None):
                status: int = command.run(parsed)
    except (KeyboardInterrupt, Exception) as error:
        if parsed is not None and parsed.debug:
            tell(traceback.format_exc().splitlines())
        status = _told(error)
    _finish(status)
    if arguments is None and _any_left_alone():
        _leave(status)
    return status


def _runs_often(parsed: Namespace) -> bool:
    return parsed.command in _RUNNING_OFTEN or (parsed.command == "plan" and parsed.compare)


@contextmanager
def _in_own_process(parsed: Namespace, is_own: bool) -> Iterator[None]:
    """Have the rest of a command of this process done in another one, if it runs FMUs."""
    if not (is_own and (parsed.process or _runs_often(parsed))):
        yield
        return
    from fmimaster.session.lost_run import in_own_process

    given = vars(parsed)
    beside = given.get("output_file") or given.get("checkpoint") or "-"
    folder = None if beside == "-" else os.path.dirname(os.path.abspath(beside))
    with in_own_process(is_run=parsed.process, folder=folder):
        yield


def _finish(status: int) -> None:
    """In the process of a run: tell the process that waits how the command has ended."""
    if (shared_run := sys.modules.get("fmimaster.apart.shared_run")) is not None:
        shared_run.finish(status)


def _take_standard_descriptors() -> None:
    """Keep the numbers of closed standard streams in use, so no file gets one of them: FMUs print to number 1."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Handle SIGTERM (of batch systems), SIGHUP, and Ctrl-Break of Windows like Ctrl-C: rows are kept, FMUs freed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [name for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
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
    """Whether an FMU is still being called; if the module that calls FMUs is not imported, none is."""
    threads = sys.modules.get("fmimaster.session.work_thread")
    return threads is not None and threads.any_left_alone()


def _leave(status: int) -> NoReturn:
    """End the process while an FMU is still being called: exit() could wait for it, or crash."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _told(error: BaseException) -> int:
    """Print an error, and return the exit status."""
    if isinstance(error, Interrupted):
        return _error(str(error), _INTERRUPTED)
    if isinstance(error, KeyboardInterrupt):
        return _error("Interrupted.", _INTERRUPTED)
    if isinstance(error, FmimasterError):
        return _error(str(error), REFUSED)
    if isinstance(error, BrokenPipeError):  # "fmimaster ... | head"
        return 0
    if isinstance(error, OSError):
        return _error(_of_the_system(error), REFUSED)
    if isinstance(error, MemoryError):
        return _error("There is not enough memory.", REFUSED)
    words = "".join(traceback.format_exception_only(error)).strip()
    return _error(
        f"This is a defect of fmimaster: {words}. Run with --debug for a traceback, and report it.",
        _DEFECT,
    )


def _of_the_system(error: OSError) -> str:
    """What the system refused, of which file, and what helps."""
    words = str(error.strerror or error).rstrip(".")
    where = f"'{error.filename}' cannot be used" if error.filename else "The system refused a file"
    if error.errno in (EMFILE, ENFILE):
        return (
            f"{where}: {words[0].lower() + words[1:]}. Allow more open files (ulimit -n), or simulate fewer FMUs in "
            "processes of their own."
        )
    if error.errno == ENOSPC:
        from tempfile import gettempdir  # --version must be fast

        return f"{where}: {words[0].lower() + words[1:]}. Make room, also in '{gettempdir()}'."
    if error.errno in (EAGAIN, ENOMEM) and not error.filename:
        return (
            f"The system has no room for another process or thread: {words[0].lower() + words[1:]}. End other "
            "programs, or allow more (ulimit -u)."
        )
    return f"{where}: {words[0].lower() + words[1:]}. Run with --debug for the place in fmimaster."


def _error(message: str, status: int) -> int:
    tell([f"fmimaster: error: {message}"])
    return status


# Arguments ------------------------------------------------------------------------------------------------------------


class _Version(Action):
    """Prints the version, which is not read before."""

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
