"""``fmimaster completion``: a script that makes a shell complete commands, options and names.

It contains all names and asks no program: to start Python and import the commands would take 0.4 s at each TAB.
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence

from fmimaster.commands import COMMANDS
from fmimaster.commands.parser import CommandParser
from fmimaster.commands.text import write
from fmimaster.configure import named
from fmimaster.configure.named import among
from fmimaster.plan.step_groups import Loops

SHELLS = ("bash", "zsh", "fish")

_HELP = """One line in the start file of the shell switches completion on:
  bash  ~/.bashrc                   eval "$(fmimaster completion bash)"
  zsh   ~/.zshrc, after compinit    eval "$(fmimaster completion zsh)"
  fish  ~/.config/fish/config.fish  fmimaster completion fish | source
"""

VALUES: Mapping[str, Iterable[str]] = {
    "--algorithm": named.ALGORITHMS,
    "--backend": named.BACKENDS,
    "--event-clock": named.EVENT_CLOCKS,
    "--inputs": named.KINDS,
    "--loops": [member.value for member in Loops],
    "--mode": named.MODES,
    "--sequence": named.METHODS,
    "--step-rule": named.STEP_RULES,
}
"""Option → names that it accepts."""

_FILES = ("FILE", "CSV", "DIR")
"""Metavars of options whose value is a path."""


def add_arguments(parser: ArgumentParser) -> None:
    """The shell."""
    parser.epilog = _HELP
    parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))


def run(arguments: Namespace) -> int:
    """Print the script; it contains all names, so the shell completes without starting Python."""
    makers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    shell = among("shell", arguments.shell, SHELLS)
    write(makers[shell]({name: _options(name) for name in COMMANDS}))
    return 0


def _options(command: str) -> list[Action]:
    """The options of a command."""
    parser = CommandParser(prog=f"fmimaster {command}", command=command)
    parser.fill()
    shown = [action for action in parser._actions if action.help != SUPPRESS]
    return [action for action in shown if action.option_strings]


def _arguments(command: str) -> Sequence[str]:
    """Names that a command accepts instead of a file."""
    if command == "completion":
        return SHELLS
    if command == "demo":
        from fmimaster.studies.demos.catalogue import DEMOS

        return [demo.name for demo in DEMOS]
    return ()


def _summary(text: str | None) -> str:
    """The first words of a help text, without what a shell would interpret."""
    first = (text or "").partition(";")[0].partition(":")[0]
    return "".join(c for c in first if c not in "'\"`$\\[]")


def _bash(commands: Mapping[str, Sequence[Action]]) -> list[str]:
    words = [f"        {o}) words='{' '.join(v)}' ;;" for o, v in VALUES.items()]
    options = [
        f"        {name}) words='{' '.join(s for a in actions for s in a.option_strings)}' ;;"
        for name, actions in commands.items()
    ]
    arguments = [
        f"        {name}) words='{' '.join(names)}' ;;"
        for name in commands
        if (names := _arguments(name))
    ]
    return [
        "# completion of fmimaster in bash; without words, bash completes files",
        "_fmimaster() {",
        "    local word=${COMP_WORDS[COMP_CWORD]} words=",
        "    if ((COMP_CWORD == 1)); then",
        f"        words='{' '.join(commands)} --help --version'",
        "    elif [[ $word == -* ]]; then case ${COMP_WORDS[1]} in",
        *options,
        "    esac; elif [[ ${COMP_WORDS[COMP_CWORD-1]} == -* ]]; then case ${COMP_WORDS[COMP_CWORD-1]} in",
        *words,
        "    esac; else case ${COMP_WORDS[1]} in",
        *arguments,
        "    esac; fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "}",
        "complete -o default -F _fmimaster fmimaster",
    ]


def _zsh(commands: Mapping[str, Sequence[Action]]) -> list[str]:
    described = [f"        '{name}:{_summary(COMMANDS[name])}'" for name in commands]
    options = []
    for name, actions in commands.items():
        entries = [f"'{s}:{_summary(a.help)}'" for a in actions for s in a.option_strings]
        options.append(f"        {name}) options=({' '.join(entries)}) ;;")
    values = [f"        {o}) compadd -- {' '.join(v)}; return ;;" for o, v in VALUES.items()]
    arguments = [
        f"        {name}) compadd -- {' '.join(names)} ;;"
        for name in commands
        if (names := _arguments(name))
    ]
    return [
        "#compdef fmimaster",
        "_fmimaster() {",
        "    local -a commands options",
        "    commands=(",
        *described,
        "    )",
        "    if ((CURRENT == 2)); then _describe command commands; return; fi",
        "    case $words[CURRENT-1] in",
        *values,
        "    esac",
        "    case $words[2] in",
        *options,
        "    esac",
        "    if [[ $words[CURRENT] == -* ]]; then _describe option options; return; fi",
        "    case $words[2] in",
        *arguments,
        "        *) _files ;;",
        "    esac",
        "}",
        "compdef _fmimaster fmimaster",
    ]


def _fish(commands: Mapping[str, Sequence[Action]]) -> list[str]:
    lines = ["# completion of fmimaster in fish"]
    for name, actions in commands.items():
        start = "complete -c fmimaster -n __fish_use_subcommand -f"
        lines.append(f"{start} -a {name} -d '{_summary(COMMANDS[name])}'")
        seen = f"complete -c fmimaster -n '__fish_seen_subcommand_from {name}'"
        for action in actions:
            for option in action.option_strings:
                spelled = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                lines.append(f"{seen} {spelled}{_fish_value(action)} -d '{_summary(action.help)}'")
        if names := _arguments(name):
            lines.append(f"{seen} -f -a '{' '.join(names)}'")
    return lines


def _fish_value(action: Action) -> str:
    """The value of an option in fish: nothing, a path, one of some names, or any text."""
    if action.nargs == 0:
        return ""
    if action.metavar in _FILES:
        return " -r"
    names = " ".join(VALUES.get(action.option_strings[0], ()))
    return f" -x -a '{names}'" if names else " -x"
