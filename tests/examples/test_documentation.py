"""What the documentation shows does run, and prints what it says.

Blocks of one page run in their order, in one new folder:

* ``python``: executed; all blocks of a page share their names.
* ``console``: each line after ``$ `` is a command for the shell and must end with status 0, or with the one that a
  following ``$ echo $?`` shows. ``fmimaster`` is called in this process, which saves the imports; on the README's page, and
  on the page whose commands end their process, in a process of its own.
* ``text`` straight after a ``python`` block, and what follows a command: its output, where ``...`` stands for anything and
  all blanks are alike. Without it the output is not looked at.
* any block with ``title="name"``: written to the file of that name.

Files that the blocks need are written by the page itself, by a command that a reader sees too: ``fmimaster demo files``. A
page has no comments that are not shown. All other languages (``sh``, ``xml``, …) are only read.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forks import Forks
from processes import IS_WINE

from fmimaster.commands.cli import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
FORKED = (README, ROOT / "docs" / "faults.md")
"""Pages whose commands are processes of their own: what they show of a crash is true of these only."""
pytestmark = pytest.mark.measured
NEEDED = {"trigger-sequence.md": "pygraphviz", "sweeps.md": "pyarrow", "sensitivity.md": "SALib"}
"""Page → library that it needs; it is not installed everywhere."""
SIGNALS = {"SIGSEGV": "an access violation (0xC0000005)"} if sys.platform == "win32" else {}
"""What ends a process, as pages call it → as it is called here."""

ONE_STREAM = "import os; os.dup2(1, 2)"
"""Executed in a process, before its command: both streams are one, as in a terminal."""
SECONDS = 60
"""No command of the documentation may take longer."""

_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^```$", re.M | re.S
)
_CODE = re.compile(r"^```.*?^```$", re.M | re.S)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    place: str
    line: int
    language: str
    title: str
    text: str
    follows: bool
    """Whether only blank lines stand between it and the block before."""


def blocks(page: Path) -> Iterator[Block]:
    """Blocks of a page."""
    content, end = page.read_text(encoding="utf-8"), 0
    for found in _BLOCK.finditer(content):
        between, end = content[end : found.start()], found.end()
        line = content.count("\n", 0, found.start()) + 1
        yield Block(
            place=f"{page.relative_to(ROOT)}:{line}",
            line=line,
            language=found["language"],
            title=found["title"] or "",
            text=found["text"],
            follows=not between.strip(),
        )


Command = Callable[["Page", list[str]], tuple[int, str]]


class Page:
    """The blocks of one page, being run.

    Parameters
    ----------
    command
        fmimaster with these arguments: status and output.
    """

    def __init__(self, folder: Path, command: Command) -> None:
        self.folder, self.command = folder, command
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.environment = {**os.environ, "MPLBACKEND": "Agg", "NO_COLOR": "1", "COLUMNS": "100"}
        commands = folder / ".commands"
        commands.mkdir()
        shim = commands / "fmimaster"
        code = "import sys; from fmimaster.commands.cli import main; sys.exit(main())"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
        paths = [str(commands), str(Path(sys.executable).parent), self.environment["PATH"]]
        self.environment["PATH"] = os.pathsep.join(paths)
        self.environment["PYTHONPATH"] = str(ROOT)

    def run(self, block: Block, output: str | None) -> None:
        """Run a block; ``output`` is what it must print."""
        if block.title:
            (self.folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = io.StringIO()
            code = compile("\n" * block.line + block.text, block.place.rpartition(":")[0], "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, self.names)
            compare(printed.getvalue(), output, block.place)
        elif block.language == "console":
            for command, shown, status in commands(block.text):
                self.execute(command, shown, status, block.place)

    def execute(self, command: str, shown: str | None, status: int, place: str) -> None:
        """Run a command line."""
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if IS_WINE and "--memory-limit" in words:
            pytest.skip("wine does not keep the memory limit of a job")
        if words[0] == "fmimaster" and not {"|", ">", "2>"} & set(words):
            found, printed = self.command(self, words[1:])
        else:
            found, printed = self.shell(command)
        where = f"{place}: {command}"
        assert found == status, f"{where}\nstatus {found}\n{printed}"
        compare(printed.replace(os.sep, "/"), shown, where)  # pages have paths of POSIX

    def call(self, arguments: list[str]) -> tuple[int, str]:
        """Run fmimaster in this process; exit status, and all that it prints."""
        output = self.folder / ".output"
        with (
            pytest.MonkeyPatch.context() as patch,
            output.open("w+", encoding="utf-8", buffering=1) as stream,
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),
        ):
            for name, value in self.environment.items():
                patch.setenv(name, value)
            try:
                status = main(arguments)
            except SystemExit as end:
                status = int(end.code or 0)
        return status, output.read_text(encoding="utf-8")

    def fork(self, arguments: list[str], forks: Forks) -> tuple[int, str]:
        """Run fmimaster in a process of its own; exit status, and all that it prints."""
        process = forks.begin(
            *arguments, cwd=self.folder, environment=self.environment, first=ONE_STREAM
        )
        printed, _ = process.communicate()
        return process.wait(), printed

    def shell(self, command: str) -> tuple[int, str]:
        """Run a command of the shell; exit status, and all that it prints."""
        if sys.platform == "win32":
            pytest.skip(f"a command of a POSIX shell: {command}")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        return done.returncode, done.stdout


def commands(text: str) -> Iterator[tuple[str, str | None, int]]:
    """Commands of a console block, with the output that is shown (None if none is) and the status they end with."""
    parts = re.split(r"^\$ ", text, flags=re.M)[1:]
    pairs = [re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", p, re.S).groups() for p in parts]  # type: ignore[union-attr]
    for k, (command, output) in enumerate(pairs):
        if command == "echo $?":
            continue
        following = pairs[k + 1] if k + 1 < len(pairs) else ("", "")
        status = int(following[1]) if following[0] == "echo $?" else 0
        yield command, output if output.strip() else None, status


def compare(printed: str, shown: str | None, where: str) -> None:
    """Whether something prints what is shown."""
    if shown is not None:
        for name, here in SIGNALS.items():
            shown = shown.replace(name, here)
        same = doctest.OutputChecker().check_output(shown, printed, _FLAGS)
        assert same, f"{where}\nshown:\n{shown}\nprinted:\n{printed}"


@pytest.fixture
def root_log() -> Iterator[None]:
    """The log that a page sets up does not stay for other tests."""
    log = logging.getLogger()
    level, handlers = log.level, [*log.handlers]
    yield
    log.setLevel(level)
    log.handlers[:] = handlers


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.usefixtures("root_log")
@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_blocks_of_the_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: Forks
) -> None:
    monkeypatch.chdir(tmp_path)
    command = partial(Page.fork, forks=forks) if page in FORKED else Page.call
    if page.name in NEEDED:
        pytest.importorskip(NEEDED[page.name])
    running, found = Page(tmp_path, command), list(blocks(page))
    for k, block in enumerate(found):
        after = found[k + 1] if k + 1 < len(found) else None
        shown = after.text if after and after.follows and after.language == "text" else None
        running.run(block, shown)


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_a_page_has_nothing_that_a_reader_does_not_see(page: Path) -> None:
    assert "<!--" not in _CODE.sub("", page.read_text(encoding="utf-8"))


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
