"""The parser of the command line: options in groups, suggestions for unknown names, help that fits a terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
from argparse import Action, ArgumentError, ArgumentParser, HelpFormatter
from argparse import _ArgumentGroup as ArgumentGroup
from argparse import _SubParsersAction as SubParsers
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from fmimaster.base.errors import did_you_mean, suggested
from fmimaster.commands import COMMANDS, EXAMPLES
from fmimaster.commands.text import tell, write

REFUSED = 2
"""Exit status of a request that cannot be carried out."""

GROUPS: Mapping[str, str] = {
    "Times and steps": "--stop-time 10 --step-size 1/60",
    "Algorithm": "--algorithm gauss-seidel --sequence controller,motor",
    "Events": "--event-clock predictive --step-size 0.01",
    "Algebraic loops": "--loops all --loop-tolerance 1e-10",
    "Model Exchange": "--solver cvode:relative=1e-8",
    "Start values and inputs": "--start-value motor.k=3 --input-file drive.csv",
    "Results": "--output-file results.csv --plot results.png",
    "Accuracy": "--accuracy 1e-4",
    "Execution": "--threads 0",
    "Messages and logs": "--verbose --log-file run.log",
}
"""Title of a group of options → an example with some of them."""

RENAMED: Mapping[str, tuple[str, ...]] = {
    "--fmi-logging": ("--debug-logging", "--log-fmi-calls"),  # our own one before, and FMPy's
    "--relative-tolerance": ("--tolerance",),
    "--result-file": ("--output-file",),
}
"""Former name of an option, or its name in other tools → its name here; several names if it had several meanings."""

HINTS: Mapping[str, str] = {
    "--start-values": "Write --start-value NAME=VALUE for each.",
    "--output-variables": "Write --output-variable GLOB for each.",
    "--validate": "'fmimaster validate' is a command.",
    "--timeout": "A run has no time limit. Ctrl-C ends a run, and its rows are kept.",
    "--visible": "FMUs are always instantiated without a window.",
    "--interface-type": "Use --interface CoSimulation, ModelExchange or ScheduledExecution.",
}
"""Option of another tool without an equivalent here → what to do instead."""

_KINDS: Mapping[Any, str] = {int: "a whole number", float: "a number"}

_WIDEST = 100
"""Columns of a help page on a wide terminal: longer lines are hard to read."""
_OPTIONS_COLUMN = 28
"""Column where the texts of options begin."""
_COMMANDS_COLUMN = 16
"""Column where the texts of commands begin."""
_PAIR = r"(?s)((?:'(?:[^'\\]|\\.)*'|[^'=])+)=(.*)"
"""``NAME=VALUE``; an equals sign in a quoted part of a name does not count."""


def group(parser: ArgumentParser, title: str) -> ArgumentGroup:
    """The group of options with this title; it is created with its first option."""
    for known in parser._action_groups:
        if known.title == title:
            return known
    example = GROUPS.get(title)
    return parser.add_argument_group(title, example and f"Example: {example}")


class Parser(ArgumentParser):
    """A parser that prints an error in one line and accepts ``-1e-3`` as a number."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **settings)
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d|inf)")
        self.color = False  # Python 3.14 would write escapes, which visible() shows
        self._positionals.title, self._optionals.title = "Arguments", "Options"

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        end = "" if message.endswith((".", "?")) else "."
        self.exit(REFUSED, f"fmimaster: error: {message}{end} See '{self.prog} --help'.\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, but an option before the command is an error with a hint."""
        given = sys.argv[1:] if args is None else list(args)
        first = given[0] if given else ""
        if first.startswith("--") and first.partition("=")[0] not in self._option_string_actions:
            self.error(f"Options are written after the command: fmimaster COMMAND {first}")
        return super().parse_known_args(given, namespace)

    def _check_value(self, action: Action, value: Any) -> None:
        if isinstance(action, SubParsers) and value not in action.choices:
            if value == "help":
                self.error("Write 'fmimaster --help', or 'fmimaster COMMAND --help'")
            is_file = re.search(r"\.(fmu|ssp|ssd|xml)$", value, re.IGNORECASE)
            near = f" Did you mean 'fmimaster simulate {value}'?" if is_file else None
            self.error(f"There is no command '{value}'.{near or _near_commands(value)}")
        super()._check_value(action, value)

    def _get_values(self, action: Action, arg_strings: list[str]) -> Any:
        if sys.platform == "win32" and action.nargs == "+":
            arg_strings = [path for given in arg_strings for path in _expanded(given)]
        try:
            return super()._get_values(action, arg_strings)
        except ArgumentError as error:
            if action.type not in _KINDS:
                raise
            kind = _KINDS[action.type]
            raise ArgumentError(
                action, f"expected {kind}, not '{' '.join(arg_strings)}'"
            ) from error

    def _print_message(self, message: str, file: Any = None) -> None:
        """Where argparse writes help, version and errors."""
        put = write if file is not None and file is sys.stdout else tell
        put([message.rstrip("\n")])


def _expanded(given: str) -> list[str]:
    """The files of a pattern, which shells of Windows leave to the programs; what is no pattern, or fits none, stays."""
    from glob import glob

    return [given] if os.path.lexists(given) else sorted(glob(given)) or [given]


class CommandParser(Parser):
    """The parser of one command; the modules of the command are imported when arguments are parsed."""

    def __init__(self, *, command: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._command = command
        self._is_filled = False

    def fill(self) -> None:
        """Add the arguments of the command, and those of all commands."""
        if self._is_filled:
            return
        self._is_filled = True
        import_module(f"fmimaster.commands.{self._command}").add_arguments(self)
        _add_common_arguments(self)
        example = f"Example: {self.prog} {EXAMPLES[self._command]}"
        self.epilog = f"{example}\n\n{self.epilog}" if self.epilog else example
        forms = {"?": "[{}]", "+": "{} ..."}
        named = [
            forms.get(str(a.nargs), "{}").format(a.metavar) for a in self._get_positional_actions()
        ]
        self.usage = " ".join(["%(prog)s", *named, "[OPTION ...]"])

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, but pairs may be ``NAME=VALUE``, and unknown options get suggestions."""
        self.fill()
        given = list(args)
        others, pairs = self._without_pairs(given)
        parsed, rest = ArgumentParser.parse_known_args(self, others, namespace)
        if rest:
            self.error(self._unknown(rest, given))
        for option, pair in pairs:
            setattr(parsed, option.dest, [*(getattr(parsed, option.dest) or ()), pair])
        return parsed, rest

    def _without_pairs(
        self, arguments: Sequence[str]
    ) -> tuple[list[str], list[tuple[Action, list[str]]]]:
        """The arguments without options of two values, and these options: for argparse no value begins with a hyphen."""
        others: list[str] = []
        pairs: list[tuple[Action, list[str]]] = []
        waiting = iter(arguments)
        for argument in waiting:
            name, equals, given = argument.partition("=")
            action = self._option_string_actions.get(name)
            if action is None or action.nargs != 2:
                others.append(argument)
                continue
            text = given if equals else next(waiting, None)
            found = text and re.fullmatch(_PAIR, text)
            pair = found.groups() if found else (text, next(waiting, None))
            if None in pair or any(part in self._option_string_actions for part in pair):
                one, two = tuple(action.metavar or ("NAME", "VALUE"))
                self.error(f"{name}: expected {one}={two} or {one} {two}")
            pairs.append((action, [str(part) for part in pair]))
        return others, pairs

    def _unknown(self, rest: Sequence[str], given: Sequence[str]) -> str:
        name = next((r for r in rest if r.startswith("-")), None)
        if name is None:
            repeated = self._repeated(rest[0], given)
            hint = f". To give several values, repeat the option: {repeated}" if repeated else ""
            return f"'{self._command}' takes no further argument '{rest[0]}'{hint}"
        name = name.partition("=")[0]
        known = [option for option in self._option_string_actions if option.startswith("--")]
        return f"'{self._command}' has no option '{name}'.{_near_options(name, known)}"

    def _repeated(self, value: str, given: Sequence[str]) -> str:
        """The repeatable option before a surplus value; empty if there is none."""
        before = [word for word in given[: given.index(value)] if word.startswith("--")]
        action = self._option_string_actions.get(before[-1]) if before else None
        return before[-1] if action is not None and isinstance(action.default, list) else ""


def _near_commands(name: str) -> str:
    """A sentence that suggests commands, with a leading blank: those that begin so, or one with an error of spelling."""
    begin = [command for command in COMMANDS if command.startswith(name)]
    return suggested(begin[:3]) or did_you_mean(name, COMMANDS, share=0.75)


def _near_options(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests options, with a leading blank: by other names, by common beginnings, by similar
    letters."""
    usual = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).replace("_", "-").lower()
    if usual in HINTS:
        return f" {HINTS[usual]}"
    options = list(known)
    same = [option for option in RENAMED.get(usual, (usual,)) if option in options]
    begin = [option for option in options if option.startswith(usual)]
    return suggested(same or begin[:3]) or did_you_mean(usual, options, share=0.65)


def _add_common_arguments(parser: ArgumentParser) -> None:
    """The options of all commands."""
    messages = group(parser, "Messages and logs")
    add = messages.add_argument
    amount = messages.add_mutually_exclusive_group().add_argument
    amount(
        "--verbose",
        action="store_true",
        help="show all log messages, and the printed output of FMUs",
    )
    amount("--quiet", action="store_true", help="print results, warnings and errors only")
    add("--log-file", metavar="FILE", help="write all log messages to a file")
    add("--debug", action="store_true", help="show a traceback with an error")


class _Help(HelpFormatter):
    """Lines that fit the terminal; a group begins with its example; pairs as ``NAME=VALUE``."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns, _WIDEST) - 1
        super().__init__(prog, max_help_position=_OPTIONS_COLUMN, width=width)
        self._action_max_length = (
            _COMMANDS_COLUMN  # argparse does not count the indentation of commands
        )

    def _format_text(self, text: str) -> str:
        if "\n" in text:  # lines of a table
            return text
        shown = super()._format_text(text)
        return shown.rstrip("\n") + "\n" if text.startswith("Example: ") else shown

    def _format_args(self, action: Action, default_metavar: str) -> str:
        if action.nargs == 2 and isinstance(action.metavar, tuple):
            return "=".join(action.metavar)
        return super()._format_args(action, default_metavar)
