"""Python's collector of garbage is left for later, and not for ever."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakSet

import pytest

from fmimaster.base.collector import left_for_later
from fmimaster.base.memory import open_files, taken


@pytest.fixture(params=[True, False])
def is_on(request: pytest.FixtureRequest) -> Iterator[bool]:
    """The collector, switched on or off by the user."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def _interrupted() -> None:
    with left_for_later():
        with left_for_later():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyboardInterrupt


def test_the_collector_is_as_before_also_nested_and_after_an_error(is_on: bool) -> None:
    with pytest.raises(KeyboardInterrupt):
        _interrupted()
    assert gc.isenabled() == is_on


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("is_on", [True], indirect=True)
def test_what_many_short_runs_leave_is_collected(is_on: bool) -> None:
    runs = 3000
    alive = WeakSet[_Cycle]()
    for _ in range(runs):
        alive.add(_Cycle())
        with left_for_later():
            pass
    assert len(alive) < runs / 2


def test_what_a_process_takes_is_known_on_each_system(tmp_path: Path) -> None:
    before, size = taken(os.getpid()), 1 << 25
    filled = bytearray(b"1") * size
    assert taken(os.getpid()) - before > size // 2
    del filled
    files = open_files()
    if files is None and sys.platform == "win32":
        pytest.skip("wine counts no handles")
    assert files is not None
    with open(tmp_path / "file", "wb"):
        assert open_files() == files + 1
