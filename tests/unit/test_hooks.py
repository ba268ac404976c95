"""Hooks: their names in listings, and the twins in C that give the same bits without Python."""

from __future__ import annotations

import numpy as np
import pytest
from python_fmu import Bench, PythonFmu, parse

from fmimaster.plan.layout import Group
from fmimaster.program.hook import Hook
from fmimaster.program.listing import listing
from fmimaster.program.store import ValueStore
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.steps.doubling_errors import WeightedChange

NOMINALS = np.array([0.3, 7.0])


def change() -> WeightedChange:
    """Of two outputs of a unit, into the third and the fourth."""
    return WeightedChange(0, np.array([0, 1]), NOMINALS, 2, 3, 1e-3, 1e-5, divisor=3.0)


def moved(hook: Hook) -> Bench:
    """A unit whose first two outputs have changed by some numbers since they were kept."""
    outputs = {
        "a": lambda v: v.t / 7.0,
        "b": lambda v: 1.0 - v.t**2,
        "error": lambda v: -1.0,
        "worst": lambda v: -1.0,
    }
    bench = Bench({"unit": PythonFmu(outputs=outputs)}, hooks=[hook], n_buffers=1)
    bench.initialize()
    bench.run("KEEP 0\nSTEP unit 1.0\nGET unit outputs\nCALL 0", 0.0, 0.1)
    return bench


class OnlyInC(WeightedChange):
    """Cannot be called in Python."""

    __slots__ = ()

    def __call__(self, store: ValueStore) -> bool:
        raise NotImplementedError


@pytest.mark.usefixtures("each_executor")
def test_the_weighted_change_is_a_root_mean_square() -> None:
    now = np.array([0.1 / 7.0, 1.0 - 0.1**2])
    parts = (now - [0.0, 1.0]) / (1e-3 * NOMINALS + 1e-5 * np.abs(now))
    expected = np.sqrt(np.mean(parts**2)) / 3.0
    bench = moved(change())
    assert bench.value("unit.error") == pytest.approx(expected, rel=1e-14)
    assert bench.value("unit.worst") == np.argmax(np.abs(parts))


def test_the_twin_in_c_gives_the_same_bits_and_calls_no_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if native_executor() is None:
        pytest.skip("the kernel is not built")
    expected = moved(change()).value("unit.error")
    monkeypatch.setattr(Bench, "backend", Backend.NATIVE)
    own = change()
    hook = OnlyInC(
        own.buffer, own.slots, own.nominals, own.target, own.worst, 1e-3, 1e-5, divisor=3.0
    )
    assert moved(hook).value("unit.error") == expected


def test_the_slots_of_a_test_are_those_of_the_plan() -> None:
    slots = moved(change()).plan.layout.slots
    assert [slots[0, Group.OUTPUTS, name][1].start for name in ("a", "b", "error")] == [0, 1, 2]


def test_a_listing_shows_the_name_of_a_hook() -> None:
    bench = moved(change())
    program = parse("CALL 0", bench.plan)
    assert (
        listing(program, bench.plan, [change()]) == "0 CALL    hook 0  weighted change of outputs"
    )
