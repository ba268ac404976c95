"""Wrappers forward every call of an instance, also one that a class of instances gets later."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from guard import Guarded
from numpy.typing import NDArray
from python_fmu import PythonFmu

from fmimaster.base.errors import FmuLostError
from fmimaster.fmu.around import ANSWERS, MAKERS, Act, Around, complete
from fmimaster.fmu.instance import Instance, StepAnswer, Transfer
from fmimaster.fmu.journaled import Journaled
from fmimaster.fmu.surviving import DroppedInstance, RestartedInstance
from fmimaster.inputs.polynomial import Polynomials
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType


class Recorded(Instance):
    """An instance that notes all calls, also those that it gets later."""

    def __init__(self, name: str = "pump") -> None:
        self.calls: list[str] = []
        super().__init__(name, PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: v.u}).model)

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """Noted when the function is called."""
        return lambda: self.calls.append("getter")

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Noted."""
        self.calls.append("do_step")
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """A note."""
        return ("a note",)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning."""
        return ("a warning",)


def _recorded(name: str) -> Act:
    def call(self: Recorded, *_: Any) -> Any:
        self.calls.append(name)

    def make(self: Recorded, *_: Any) -> Act:
        return lambda *arguments: call(self, *arguments)

    return make if name in MAKERS else call


complete(Recorded, _recorded)

MADE: dict[str, tuple[Any, ...]] = {
    "getter": (DataType.FLOAT64, [2], np.zeros(1)),
    "setter": (DataType.FLOAT64, [1], np.zeros(1)),
    "directional_derivative": ([2], [1], np.zeros(1), np.zeros(1)),
    "polynomial_setter": ([1],),
    "intervals": ([1], Intervals.of(1)),
}
"""Methods that make functions, with arguments."""

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "polynomial_setter": (0.0, Polynomials(np.zeros((1, 1)), 0.0)),
    "shift": (1,),
    "set_interval": (1, Fraction(1, 3)),
    "set_shift": (1, Fraction(1, 3)),
    "enter_initialization_mode": (0.0, None, None),
    "do_step": (0.0, 0.5),
    "save": (0,),
    "restore": (0,),
    "deserialize": (b"state",),
}

AROUND: dict[str, Callable[[Instance], Instance]] = {
    "itself": Around,
    "journaled": Journaled,
    "dropped": DroppedInstance,
    "restarted": lambda instance: RestartedInstance(lambda: instance, 1),
}


@pytest.mark.parametrize("name", sorted(ANSWERS))
@pytest.mark.parametrize("kind", AROUND)
def test_every_method_reaches_the_other_instance(kind: str, name: str) -> None:
    other = Recorded()
    outer = AROUND[kind](other)
    if name == "restore":
        outer.save(0)
    call = getattr(outer, name)
    if name in MAKERS:
        call = call(*MADE[name])
    other.calls.clear()
    call(*ARGUMENTS.get(name, ()))
    assert other.calls == [name]


class Lost(Recorded):
    """An instance whose process is lost in its first step."""

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Its process is lost."""
        raise FmuLostError("lost", how="was ended", instance=self.name, function="DoStep")


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - MAKERS - {"do_step"}))
def test_a_dropped_instance_answers_what_the_method_promises(name: str) -> None:
    """Also for a method that instances get later: what it answers then is in ``fmu/surviving.py``."""
    dropped = DroppedInstance(Lost())
    assert dropped.do_step(0.0, 0.5) is None
    assert dropped.is_dropped
    answer = getattr(dropped, name)(*ARGUMENTS.get(name, ()))
    assert type(answer) is ANSWERS[name]


@pytest.mark.parametrize("kind", AROUND)
def test_what_has_happened_to_the_other_instance_is_known(kind: str) -> None:
    outer = AROUND[kind](Recorded())
    assert outer.notes == ("a note",)
    assert outer.warnings == ("a warning",)
    assert not outer.is_dropped
    outer.clock = lambda: 2.5
    outer.kept_from = lambda: 1.5
    inner = outer
    while isinstance(inner, Around):
        inner = inner.instance
    assert (inner.clock(), inner.kept_from()) == (2.5, 1.5)


@pytest.mark.parametrize(
    ("wrapper", "own"),
    [
        (Around, ANSWERS.keys()),
        (Journaled, {"do_step", "save", "restore", "reset"}),
        (Guarded, set()),
        (DroppedInstance, set()),
    ],
)
def test_a_wrapper_has_no_method_of_its_own_that_only_forwards(
    wrapper: type[Around], own: Set[str]
) -> None:
    assert vars(wrapper).keys() & ANSWERS.keys() == own


def test_functions_that_were_made_are_made_again_by_another_instance() -> None:
    first, second = Recorded(), Recorded()
    outer = Around(first)
    get = outer.getter(*MADE["getter"])
    outer.take(second)
    get()
    outer.reset()
    assert (first.calls, second.calls) == ([], ["getter", "reset"])


def test_every_method_goes_through_the_hook() -> None:
    seen = []

    class Watched(Around):
        def around(self, name: str, made: tuple[Any, ...], act: Act) -> Act:
            seen.append(name)
            return act

    Watched(Recorded())
    assert sorted(seen) == sorted(ANSWERS.keys() - MAKERS)


def test_a_reset_begins_the_journal_anew() -> None:
    journaled = Journaled(Recorded(), serializes=False)
    journaled.enter_initialization_mode(0.0, None, None)
    journaled.enter_step_mode()
    journaled.do_step(0.0, 0.5)
    journaled.reset()
    assert not journaled.journal.entries
    journaled.enter_initialization_mode(1.0, 2.0, 1e-3)
    new = Recorded()
    assert journaled.move_to(new).is_exact
    assert new.calls == ["enter_initialization_mode"]


def test_each_call_with_arguments_is_repeated_with_them() -> None:
    given = list[Any]()

    class Given(Recorded):
        def set_interval(self, clock: int, interval: Fraction) -> None:
            given.append((clock, interval))

        def enter_initialization_mode(self, *times: float | None) -> None:
            given.append(times)

        def deserialize(self, state: bytes) -> None:
            given.append(state)

    journaled = Journaled(Given(), serializes=False)
    journaled.enter_initialization_mode(0.1, None, 1e-3)
    journaled.set_interval(3, Fraction(1, 3))
    journaled.deserialize(b"\0\1")
    first = list(given)
    given.clear()
    journaled.move_to(Given())
    assert given == first == [(0.1, None, 1e-3), (3, Fraction(1, 3)), b"\0\1"]
