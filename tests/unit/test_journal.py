"""Journals: what a new instance has to repeat, and how exactly it repeats it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fmimaster import reference_path
from fmimaster.base.errors import CallError
from fmimaster.fmu.instance import Instance, InstanceOptions, StepAnswer
from fmimaster.fmu.journal import packed, unpacked
from fmimaster.fmu.journaled import Journaled
from fmimaster.fmu.load import Loader
from fmimaster.fmu.python_instance import PythonInstance
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.model import DataType
from fmimaster.system.python_component import PythonComponent


class Sum(PythonComponent):
    """x grows by u in each second; its noise differs from instance to instance."""

    inputs = {"u": 1.0}
    outputs = {"y": 0.0}
    noise = 0.0

    def step(self, time: float, size: float) -> None:
        """x grows."""
        self.y += size * self.u + self.noise


class Wrapped:
    """A journaled instance with an input and an output."""

    def __init__(self, make: Callable[[], Instance], serializes: bool = False) -> None:
        self.make = make
        self.journaled = Journaled(make(), serializes=serializes)
        names = {v.name: v.value_reference for v in self.journaled.model.variables}
        self.u, self.y = np.zeros(1), np.zeros(1)
        u = [names.get("u", names.get("k"))]
        y = [names.get("y", names.get("x"))]
        self.put = self.journaled.setter(DataType.FLOAT64, u, self.u)  # type: ignore[arg-type]
        self.get = self.journaled.getter(DataType.FLOAT64, y, self.y)  # type: ignore[arg-type]
        self.time = 0.0
        self.journaled.enter_initialization_mode(0.0, None, None)
        self.journaled.enter_step_mode()

    def step(self, u: float | None = None) -> float:
        """One step; the output after it."""
        if u is not None:
            self.u[0] = u
            self.put()
        self.journaled.do_step(self.time, 1.0)
        self.time += 1.0
        self.get()
        return float(self.y[0])

    def value(self) -> float:
        """The output."""
        self.get()
        return float(self.y[0])


def sums() -> Instance:
    return PythonInstance(Sum(), "sum")


@pytest.mark.parametrize("replaced", [False, True], ids=["the same", "another instance"])
def test_saved_states_are_saved_again_wherever_the_run_has_gone(replaced: bool) -> None:
    wrapped = Wrapped(sums)
    j = wrapped.journaled
    wrapped.step(2.0)
    j.save(0)
    wrapped.step(3.0)
    j.save(1)
    wrapped.step(4.0)
    j.save(2)
    j.restore(0)
    wrapped.step(10.0)
    j.save(3)
    if replaced:
        assert j.move_to(wrapped.make()).is_exact
    assert wrapped.value() == 12.0
    j.restore(2)
    assert wrapped.value() == 9.0
    j.restore(1)
    if replaced:
        j.move_to(wrapped.make())
    assert wrapped.value() == 5.0
    j.restore(3)
    assert wrapped.value() == 12.0
    j.restore(0)
    assert wrapped.value() == 2.0


def test_a_step_that_is_undone_is_not_repeated() -> None:
    wrapped = Wrapped(sums)
    wrapped.journaled.save(0)
    length = len(wrapped.journaled.journal.entries)
    for _ in range(3):
        wrapped.step(1.0)
        wrapped.journaled.restore(0)
    assert len(wrapped.journaled.journal.entries) == length
    assert wrapped.journaled.journal.unchanged == 0


def test_noise_is_measured_and_named() -> None:
    def noisy() -> Instance:
        component = Sum()
        component.noise = 1e-3
        return PythonInstance(component, "sum")

    wrapped = Wrapped(sums)
    wrapped.step(1.0)
    wrapped.step(1.0)
    noise = wrapped.journaled.move_to(noisy())
    assert not noise.is_exact
    assert noise.largest == pytest.approx(1e-3)  # 0.002 of 2
    assert (noise.variable, noise.time) == ("sum.y", 1.0)
    assert str(noise) == "'sum.y' differs by up to 0.001 (relative), first at t = 1 s"
    assert wrapped.value() == pytest.approx(2.002)


def test_an_instance_that_ends_its_step_elsewhere_is_refused() -> None:
    class Early(PythonInstance):
        def do_step(self, time: float, size: float) -> StepAnswer | None:
            super().do_step(time, size)
            return StepAnswer(time + size / 2, early=True)

    wrapped = Wrapped(sums)
    wrapped.step(1.0)
    old = wrapped.journaled.instance
    with pytest.raises(CallError, match=r"ended at t = 0\.5 s, but before it was completed"):
        wrapped.journaled.move_to(Early(Sum(), "sum"))
    assert wrapped.journaled.instance is old


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_a_journal_begins_anew_when_it_is_long(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.fmu.journaled._LONG", 500)
    builder = SystemBuilder("one")
    builder.add("one", reference_path(f"{version}/Dahlquist.fmu"))
    (component,) = builder.build().system.components
    with Loader() as loader:
        wrapped = Wrapped(
            lambda: loader.instantiate(component, "one", InstanceOptions()), serializes=True
        )
        values = [wrapped.step() for _ in range(4)]
        wrapped.journaled.save(0)
        values += [wrapped.step() for _ in range(100)]
        assert len(wrapped.journaled.journal.entries) < 2000
        assert wrapped.journaled.journal.state is not None
        noise = wrapped.journaled.move_to(wrapped.make())
        assert noise.is_exact
        assert wrapped.value() == values[-1]
        wrapped.journaled.restore(0)  # saved before the journal began anew
        assert wrapped.value() == values[3]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (DataType.STRING, np.array(["", "größer", "x"], object)),
        (DataType.BINARY, np.array([b"", b"\0\1"], object)),
        (DataType.INT32, np.array([1, -2], np.int32)),
        (DataType.FLOAT64, np.array([-0.0, 1e300])),
    ],
)
def test_values_of_every_type_return(kind: DataType, values: Any) -> None:
    returned = unpacked(kind, packed(values))
    assert returned.dtype == kind.dtype
    assert returned.tolist() == values.tolist()
