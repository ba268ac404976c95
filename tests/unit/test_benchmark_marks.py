"""What the benchmarks measure of a run."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from fmimaster import PythonComponent, SystemBuilder, simulate


def test_the_marks_of_a_run_are_around_all_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time before the first report of progress was once left out: up to 42 % of the run."""
    steps: list[float] = []

    class Noting(PythonComponent):
        def step(self, t: float, h: float) -> None:
            steps.append(time.process_time())

    before = {*sys.modules}
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    try:
        ours = import_module("ours")
    finally:
        for name in {
            *sys.modules
        } - before:  # names like "systems" are those of a folder of scripts
            monkeypatch.delitem(sys.modules, name)
    builder = SystemBuilder("noting")
    builder.add("a", Noting())
    with ours.marked() as marks:
        results = simulate(builder, stop_time=1, step_size="1/10")
    assert results.statistics.steps == len(steps) == 10
    assert marks[0] <= steps[0]
    assert steps[-1] <= marks[-1]
    assert marks == sorted(marks)
