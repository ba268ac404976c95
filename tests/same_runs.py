"""Whether two runs are the same."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from fmimaster import Results


def bits(values: NDArray[Any]) -> object:
    """What must be equal: all bits, also of zeros; texts by their value."""
    return values.tolist() if values.dtype == object else values.tobytes()


def assert_same(found: Results, expected: Results) -> None:
    """All data of a run that do not depend on the wall time."""
    assert found.names == expected.names
    for name in ("time", *expected.names):
        assert bits(found[name]) == bits(expected[name]), name
    assert found.events == expected.events
    assert found.steps == expected.steps
    a, b = found.statistics, expected.statistics
    assert (a.steps, a.attempts, a.rows, a.events) == (b.steps, b.attempts, b.rows, b.events)
    assert [(i.calls, i.restores) for i in a.instances] == [
        (i.calls, i.restores) for i in b.instances
    ]
    assert a.loops == b.loops
