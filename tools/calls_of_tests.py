"""Which functions of the package each test file calls: a plugin of pytest, for Python 3.11 and later.

    PYTHONPATH=tools python -m pytest -p calls_of_tests --calls-to=FOLDER

Without the sign of equality, pytest takes FOLDER for a folder with tests. Each process writes files of its own into
FOLDER, also the processes that tests start. A test file that fails is left out.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import pytest

_FOLDER, _FILE = "FMIMASTER_CALLS_TO", "FMIMASTER_CALLS_OF"
"""Variables of the environment, for processes that tests start: the folder, and the test file that runs."""


_AT_START = f"""
import os

if "{_FILE}" in os.environ:  # not in the processes of xdist, where pytest imports the plugin
    from calls_of_tests import follow_this_process

    follow_this_process()
"""
"""What each Python process runs first."""


class Caller(NamedTuple):
    """A test file that calls a function."""

    seconds: float
    """How long the file takes in s."""
    file: str


class Calls:
    """Follows which functions are called.

    Parameters
    ----------
    folder
        For the files of :meth:`write`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = (f"{os.getpid()}-{n}.json" for n in count())
        self._seen = set[CodeType]()

    def follow(self) -> None:
        """From now on, in this thread and those that it starts."""
        threading.settrace(self._called)
        sys.settrace(self._called)

    def _called(self, frame: FrameType, _event: str, _argument: object) -> None:
        self._seen.add(frame.f_code)

    def write(self, file: str, seconds: float) -> None:
        """What a test file has called since the last time."""
        seen, self._seen = self._seen.copy(), set()  # other threads go on
        called = sorted({_place(code) for code in seen} - {""})
        (self._folder / next(self._names)).write_text(
            json.dumps([file, seconds, called]), encoding="utf-8", newline="\n"
        )


def _place(code: CodeType) -> str:
    """``steps/pid.py:Pid.next``; empty if it is none of the package."""
    _, package, path = code.co_filename.rpartition(f"{os.sep}fmimaster{os.sep}")
    return f"{Path(path).as_posix()}:{code.co_qualname}" if package else ""


def callers(folder: Path) -> dict[str, list[Caller]]:
    """Function → the test files that call it, quickest first, from the files in a folder."""
    seconds = defaultdict[str, float](float)
    found = defaultdict[str, set[str]](set)
    for path in folder.glob("*.json"):
        file, duration, called = json.loads(path.read_text(encoding="utf-8"))
        seconds[file] += duration
        for place in called:
            found[place].add(file)
    return {place: sorted(Caller(seconds[f], f) for f in files) for place, files in found.items()}


def follow_this_process() -> None:
    """In a process that a test has started."""
    calls = Calls(Path(os.environ[_FOLDER]))
    atexit.register(calls.write, os.environ[_FILE], 0.0)
    calls.follow()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--calls-to", type=Path, required=True, metavar="FOLDER")


class _Plugin:
    def __init__(self, folder: Path) -> None:
        self._calls = Calls(folder)
        self._begin, self._failed = time.monotonic(), 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        file = item.path.relative_to(item.config.rootpath).as_posix()
        os.environ[_FILE] = file
        self._calls.follow()
        result = yield
        if nextitem is None or nextitem.path != item.path:
            now, failed = time.monotonic(), item.session.testsfailed
            if failed == self._failed:
                self._calls.write(file, now - self._begin)
            self._begin, self._failed = now, failed
        return result


def pytest_configure(config: pytest.Config) -> None:
    folder: Path = config.getoption("--calls-to").absolute()
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_AT_START, encoding="utf-8", newline="\n")
    os.environ[_FOLDER] = str(folder)
    paths = (str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    config.pluginmanager.register(_Plugin(folder))
