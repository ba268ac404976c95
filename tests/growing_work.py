"""How work grows with the size of a task: executed lines of each function, which other programs on the machine do not
disturb."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import fmimaster
from fmimaster import Results
from fmimaster.fmu.load import Loader
from fmimaster.front.simulation import Simulation
from fmimaster.prepare.preparation import prepare
from fmimaster.session.session import Session

PACKAGE = str(Path(fmimaster.__file__).parent)
EXCESS = 0.05
"""So much of a function's lines may be more than linear growth gives: a small part of them depends on names."""
FEW = 30
"""Lines that are no growth: of a search that ends early, or of a heap."""


def steep(work: Callable[[int], None], size: int) -> list[str]:
    """The functions that do more than twice as much more for a task of twice the size; ``work`` is given the size."""
    work(size)  # what is done once in a process
    few, some, many = (lines(lambda n=n: work(n)) for n in (size, 2 * size, 4 * size))  # type: ignore[misc]

    def excess(code: CodeType) -> int:
        return many[code] - some[code] - 2 * (some[code] - few[code])

    return [
        f"{Path(code.co_filename).name} {code.co_name}: {few[code]}, {some[code]}, {many[code]} lines"
        for code in many
        if excess(code) > max(EXCESS * many[code], FEW)
    ]


def run_here(settings: Simulation) -> Results:
    """A run in this thread: lines of other threads are not counted, and no thread asks it to look around."""
    with Loader() as loader:
        prepared = prepare(settings, loader)
        return Session(prepared, loader, prepared.completed(settings)).run()


def lines(work: Callable[[], None]) -> Counter[CodeType]:
    """How many lines of each function of the package are executed; a loop in one line counts each time."""
    counts: Counter[CodeType] = Counter()

    def within(frame: FrameType, event: str, _: Any) -> Any:
        counts[frame.f_code] += event == "line"
        return within

    def called(frame: FrameType, event: str, _: Any) -> Any:
        return within if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return counts
