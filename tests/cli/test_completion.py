"""Completion in shells: the scripts, run by the shells that are there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome
from processes import PATIENCE

from fmimaster.commands import COMMANDS

Run = Callable[..., Outcome]

ASKED = {
    "st": {"stability", "steps"},
    "simulate --ste": {"--step-size", "--step-rule", "--steady-state"},
    "simulate a.fmu --algorithm Ga": {"GaussSeidel"},
    "plan --step-rule e": {"ecco", "embedded-orders"},
    "demo qu": {"quarter-car"},
    "completion f": {"fish"},
}
"""What stands behind "fmimaster" → what completes it."""

ANSWER = {
    "bash": "source {script}; COMP_WORDS=(fmimaster {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); "
    'COMPREPLY=(); _fmimaster; printf "%s\\n" "${{COMPREPLY[@]}}"; echo END',
    "fish": 'source {script}; complete -C "fmimaster {words}"; echo END',
}
"""Shell → commands that print the completions."""


def script(run: Run, shell: str, folder: Path) -> Path:
    """The script of a shell in a file; the test is skipped if the shell is not there."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    path = folder / f"fmimaster.{shell}"
    path.write_text(run("completion", shell).out, encoding="utf-8")
    return path


@pytest.mark.parametrize("shell", ANSWER)
def test_a_shell_completes_commands_options_and_names(run: Run, shell: str, tmp_path: Path) -> None:
    path = script(run, shell, tmp_path)
    asked = [ANSWER[shell].format(script=path, words=words) for words in ASKED]
    done = subprocess.run(
        [shell, "-c", "\n".join(asked)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    answers = [part.splitlines() for part in done.stdout.split("END\n")[:-1]]
    assert [{line.split("\t")[0] for line in answer} for answer in answers] == [*ASKED.values()]


def test_zsh_reads_its_script(run: Run, tmp_path: Path) -> None:
    path = script(run, "zsh", tmp_path)
    read = f"autoload -U compinit; compinit -u -D; source {path}; print $_comps[fmimaster]"
    done = subprocess.run(
        ["zsh", "-f", "-c", read], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert (done.stdout, done.stderr) == ("_fmimaster\n", "")
    assert all(f"'{name}:" in path.read_text(encoding="utf-8") for name in COMMANDS)


def test_the_help_has_the_line_for_each_shell(run: Run) -> None:
    page = run("completion", "--help").out
    assert 'eval "$(fmimaster completion bash)"' in page
    assert "fmimaster completion fish | source" in page
    assert "Did you mean 'zsh'?" in run("completion", "zhs").error
