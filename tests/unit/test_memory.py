"""How much memory a process takes, and how much there is, on every system."""

from __future__ import annotations

import os

import numpy as np

from fmimaster.base import memory


def test_a_process_has_taken_what_it_has_written() -> None:
    before = memory.taken(os.getpid())
    written = np.ones(5_000_000)
    assert 2_000_000 < before < before + 0.9 * written.nbytes < memory.taken(os.getpid())


def test_nothing_is_known_of_a_process_that_is_not_there() -> None:
    assert memory.taken(2**31 - 1) == 0


def test_a_small_process_does_not_take_the_last_memory() -> None:
    left = memory.left()
    assert left is not None
    assert left > 0
    assert not memory.takes_the_last(1_000_000)
