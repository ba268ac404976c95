"""Elements of semantic adaptation as the kernel calls them: their values, lent to ``kernel/adaptation.c``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.adaptation_elements import (
    BEFORE,
    FARTHEST,
    IS_ABOVE,
    IS_STARTED,
    MULTIPLE,
    NEAR,
    is_at,
)
from fmimaster.fmu.adaptation_instance import AdaptationInstance
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.native.instances import READ, KernelEntry, Variables
from fmimaster.system.adaptation import CLOCK, COUNT, INPUT, OUTPUT, POLICY, SAMPLE, TICK
from fmimaster.system.clocks import Intervals

_KINDS: Mapping[str, int] = {
    "sample and hold": lib.FM_SAMPLE_AND_HOLD,
    "unit delay": lib.FM_UNIT_DELAY,
    "microstep delay": lib.FM_MICROSTEP_DELAY,
    "event counter": lib.FM_EVENT_COUNTER,
    "level crossing": lib.FM_LEVEL_CROSSING,
    "quantizer": lib.FM_QUANTIZER,
}

_SLOTS = {
    "input": INPUT,
    "output": OUTPUT,
    "sample": SAMPLE,
    "clock": CLOCK,
    "tick": TICK,
    "count": COUNT,
    "before": BEFORE,
    "policy": POLICY.parameter,
    "is_started": IS_STARTED,
    "is_above": IS_ABOVE,
    "farthest": FARTHEST,
    "multiple": MULTIPLE,
}
"""Field of fm_element → name of the value."""

_SETTINGS = ("level", "step", "hysteresis")
"""Fields of fm_element that have the names of settings of elements."""


class AdaptationEntry(KernelEntry):
    """An element as the kernel calls it.

    Parameters
    ----------
    instance : AdaptationInstance
    n_places : int
        For states that are saved.
    """

    def __init__(self, instance: AdaptationInstance[Any], n_places: int) -> None:
        super().__init__()
        self.instance = self._adaptation = instance
        values, element = instance.values, instance.element
        self._values = self.lent(ffi.from_buffer("fm_slot[]", values.memory))
        self._element = e = self.made(
            "fm_element",
            kind=_KINDS[instance.twin],
            size=len(values.memory),
            values=self._values,
            # few of the places are used: memory of the others is never touched
            places=np.zeros(n_places * len(values.memory), np.uint64),
            clocks=[self._slot(name) for name in instance.clocks],
            n_clocks=len(instance.clocks),
            near=NEAR,
            execute=POLICY.execute,
            n_thresholds=len(element.thresholds),
            **{field: self._slot(name) for field, name in _SLOTS.items() if name in values},
            **{setting: getattr(element, setting, 0.0) for setting in _SETTINGS},
        )
        for record, t in zip(e.thresholds, element.thresholds, strict=False):
            slots = (self._slot(name) for name in (t.event, t.distance, t.passed, is_at(t)))
            record.event, record.distance, record.passed, record.is_at = slots
            record.sign = t.sign
        self.entry = ffi.new("fm_instance *")
        lib.fm_element_table(e, self.entry)

    def bind(self, call: Any, group: Group, segment: Segment, values: NDArray[Any]) -> None:
        """Make a call ready that reads or sets a segment."""
        call.self, call.bytes = self._element, segment.type.dtype.itemsize
        call.transfer = lib.fm_element_get if group in READ else lib.fm_element_set

    def bind_derivative(self, call: Any, outputs: Variables, inputs: Variables) -> None:
        """Make the call ready that computes a directional derivative of outputs by inputs."""
        partials = self._adaptation.partials(
            [v.value_reference for v in outputs], [v.value_reference for v in inputs]
        )
        self.fill(call, partials=np.ascontiguousarray(partials), derive=lib.fm_multiply_partials)

    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Raise an error: its clocks have constant intervals, or none."""
        self.instance.intervals(references, answers)

    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Never called: its functions do not fail."""
        raise AssertionError(f"{function} of the element '{self.instance.name}': status {status}")

    def messages(self) -> tuple[str, ...]:
        """It logs nothing."""
        return ()

    def _slot(self, name: str) -> Any:
        return self._values + self._adaptation.values.places[name]
