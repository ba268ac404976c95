"""Threads are used when they are asked for, or pay, and whichever way the loop over time goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from python_fmu import PythonFmu

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from fmimaster import Results
from fmimaster.instants.grid import Grid
from fmimaster.run import Backend
from fmimaster.run.native.executor import AUTOMATIC


def threads_of(simulate: Callable[..., Results], threads: int, seconds: float) -> set[int]:
    """The threads that stepped two FMUs whose DoStep rests for some time."""
    seen: set[int] = set()

    def step(_v: Any, _h: float) -> None:
        seen.add(threading.get_ident())
        time.sleep(seconds)

    units = {name: PythonFmu(outputs={"y": lambda v: v.t}, step=step) for name in "ab"}
    settings: dict[str, Any] = {"stop_time": 1, "step_size": "1/50"}
    simulate(units, backend=Backend.NATIVE, threads=threads, **settings)
    return seen


@pytest.fixture(params=["in stretches", "one by one"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop leaves many steps to the kernel at once, or decides on each."""
    monkeypatch.setattr("fmimaster.run.native.executor.usable_cores", lambda: 2)
    if request.param == "one by one":
        monkeypatch.setattr(Grid, "seconds_between", lambda *_: np.empty(0))


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("threads", [2, AUTOMATIC])
def test_two_slow_fmus_are_stepped_by_two_threads(
    simulate: Callable[..., Results], threads: int
) -> None:
    assert len(threads_of(simulate, threads, 5e-3)) == 2


@pytest.mark.usefixtures("steps")
def test_one_thread_calls_fmus_and_it_is_not_the_one_that_listens(
    simulate: Callable[..., Results],
) -> None:
    (thread,) = threads_of(simulate, 1, 0.0)
    assert thread != threading.get_ident()
