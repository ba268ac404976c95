"""Elements of semantic adaptation in C act as those in Python: after each call all values are the same, to the bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from fmimaster.fmu.adaptation_elements import adaptation_instance
from fmimaster.fmu.adaptation_instance import AdaptationInstance
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.choice import native_executor
from fmimaster.system import (
    Direction,
    EventCounter,
    LevelCrossing,
    Quantizer,
    SampleAndHold,
    UnitDelay,
)
from fmimaster.system.adaptation import POLICY, Adaptation
from fmimaster.system.model import Causality, DataType, Variable

if native_executor() is None:
    pytest.skip("the kernel is not built", allow_module_level=True)

from fmimaster.kernel._kernel import ffi, lib

from fmimaster.run.native.adaptation import AdaptationEntry

PLACES = 2

ELEMENTS: dict[str, Adaptation] = {
    "SampleAndHold": SampleAndHold(period="1/10", start=3),
    **{f"of {t.value}": SampleAndHold(type=t, clocked=True) for t in DataType if t.is_numeric},
    "UnitDelay": UnitDelay(period=1, start=-1),
    "UnitDelay of Int8": UnitDelay(type=DataType.INT8, start=-1),
    "UnitDelay, microstep": UnitDelay(microstep=True),
    "EventCounter": EventCounter(),
    **{f"LevelCrossing, {d.value}": LevelCrossing(0.5, d) for d in Direction},
    "Quantizer": Quantizer(0.5),
    "Quantizer, hysteresis": Quantizer(0.25, 0.1),
}

NUMBERS = (0.0, -0.0, 0.5, 0.5 + 1e-9, 0.25, -0.25, 0.75, 1.25, 1e30, inf, -inf, nan)
"""At thresholds, near one, and far away."""


class InC:
    """An element by the functions of its table, with the methods of an instance."""

    def __init__(self, instance: AdaptationInstance[Any]) -> None:
        self._lent = AdaptationEntry(instance, PLACES)
        self._table = self._lent.entry
        self._answer = ffi.new("fm_answer *")
        self._update = ffi.new("fm_update *")

    def call(self, function: str, *arguments: Any) -> int:
        return int(getattr(self._table, function)(self._table.self, *arguments, ffi.NULL))

    def transfer(self, group: Group, variable: Variable, values: np.ndarray[Any, Any]) -> None:
        record = ffi.new("fm_segment *")
        references = ffi.new("uint32_t[]", [variable.value_reference])
        record.references, record.n, record.size = references, 1, 1
        data = ffi.from_buffer("uint8_t[]", values.view(np.uint8))
        record.values = data
        self._lent.bind(record, group, Segment(variable.type, 0, 1, (variable,)), values)
        assert record.transfer(record) == lib.FM_OK

    def do_step(self, time: float, size: float) -> float | None:
        """The time at which it requests an event."""
        if self.call("do_step", time, size, self._answer) == lib.FM_OK:
            return None
        assert self._answer.event
        return float(self._answer.last_successful_time)

    def update(self) -> bool:
        self.call("update", self._update)
        return bool(self._update.wants_update)


def a_value(of: random.Random, v: Variable) -> Any:
    if v.type in (DataType.CLOCK, DataType.BOOLEAN):
        return of.random() < 0.5
    if v.type.is_float:
        return of.choice([*NUMBERS, of.uniform(-2, 2), of.uniform(-2, 2), of.uniform(-2, 2)])
    if v.name == POLICY.parameter:
        return of.choice((POLICY.execute, POLICY.announce, POLICY.ignore))
    limits = np.iinfo(v.type.dtype)
    return of.randint(int(limits.min), int(limits.max))


@pytest.mark.parametrize("name", ELEMENTS)
def test_each_call_has_the_same_effect_in_c(name: str) -> None:
    of, calls = random.Random(name), 600
    in_python, shared = (adaptation_instance(ELEMENTS[name], name) for _ in range(2))
    assert isinstance(in_python, AdaptationInstance)
    assert isinstance(shared, AdaptationInstance)
    in_c = InC(shared)
    settable = (Causality.INPUT, Causality.PARAMETER)
    inputs = [v for v in in_python.model.variables if v.causality in settable]
    outputs = [v for v in in_python.model.variables if v not in inputs]

    def set_one() -> None:
        v = of.choice(inputs)
        value = np.array([a_value(of, v)], v.type.dtype)
        in_python.setter(v.type, [v.value_reference], value)()
        in_c.transfer(Group.TRIGGERS, v, value)

    def get_one() -> None:
        v = of.choice(outputs)
        one, other = np.zeros((2, 1), v.type.dtype)
        in_python.getter(v.type, [v.value_reference], one)()
        in_c.transfer(Group.OUTPUTS, v, other)
        assert one.tobytes() == other.tobytes()

    def step() -> None:
        answer = in_python.do_step(1.0, 0.5)
        assert in_c.do_step(1.0, 0.5) == (answer and answer.last_successful_time)

    def enter_event_mode() -> None:
        in_python.enter_event_mode()
        in_c.call("enter", lib.FM_EVENT_MODE, ffi.NULL)

    def update() -> None:
        assert in_python.update_discrete_states().wants_update == in_c.update()

    def go_back() -> None:
        place = of.randrange(PLACES)
        in_python.restore(place)
        in_c.call("restore", place)

    def save() -> None:
        place = of.randrange(PLACES)
        in_python.save(place)
        in_c.call("save", place)

    for place in range(PLACES):
        in_python.save(place)
        in_c.call("save", place)
    actions: list[Callable[[], None]] = [set_one, get_one, step, enter_event_mode, update, save]
    for _ in range(calls):
        of.choice([*actions, set_one, go_back])()
        assert shared.values.memory.tobytes() == in_python.values.memory.tobytes()


@pytest.mark.parametrize("name", ["LevelCrossing, both", "Quantizer"])
def test_partial_derivatives_are_the_same_in_c(name: str) -> None:
    instance = adaptation_instance(ELEMENTS[name], name)
    assert isinstance(instance, AdaptationInstance)
    distances = [instance.model.variable(t.distance) for t in instance.element.thresholds]
    [u] = [v for v in instance.model.variables if v.name == "u"]
    chosen = [v for v in distances if v]
    seed, sensitivity, other = np.array([-0.25]), np.zeros(2), np.zeros(2)
    references = [v.value_reference for v in chosen]
    instance.directional_derivative(references, [u.value_reference], seed, sensitivity)()
    entry, call = AdaptationEntry(instance, 0), ffi.new("fm_derivative *")
    call.n_seed, call.seed = 1, ffi.from_buffer("double[]", seed)
    call.n_sensitivity, call.sensitivity = 2, ffi.from_buffer("double[]", other)
    entry.bind_derivative(call, chosen, [u])
    assert call.derive(call) == lib.FM_OK
    assert sensitivity.tobytes() == other.tobytes() == np.array([0.25, -0.25]).tobytes()
