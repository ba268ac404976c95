"""Ticks of several periodic clocks, as integers in one order."""

from __future__ import annotations

import pytest

from fmimaster.instants.calendar import LEAST, Every, members, merged, ticking


def all_phases(longest: int) -> list[Every]:
    """Of each interval up to the longest one, a clock for each phase: all tick at the same instants."""
    return [
        Every(phase, interval) for interval in range(1, longest + 1) for phase in range(interval)
    ]


@pytest.mark.parametrize("longest", [3, 8, 13])
def test_clocks_of_many_intervals_get_as_many_instants_as_a_few(longest: int) -> None:
    """91 clocks once shared 32 ticks: 2 instants, for which no stretch was made."""
    instants, _ = merged(Every(0, 1), all_phases(longest), 10**6, 1)
    assert len(instants) >= LEAST


def test_each_instant_has_the_clocks_that_tick_then() -> None:
    clocks = [Every(k % 7, 1 + k % 11) for k in range(130)]
    instants, sets = merged(Every(2, 5), clocks, 40, 10**6)
    found = members(sets, len(clocks))
    for instant, own in zip(instants.tolist(), found.tolist(), strict=True):
        assert own == [instant >= c.first and (instant - c.first) % c.interval == 0 for c in clocks]
    assert [*ticking(sets, len(clocks))] == [t >= 2 and (t - 2) % 5 == 0 for t in instants]
    assert instants.tolist() == sorted({*range(40)})
