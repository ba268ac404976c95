"""Scheduled Execution FMUs as the kernel activates them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.kernel_entry import PartitionCallbacks
from fmimaster.fmu.scheduled import ScheduledInstance
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.native.fmu_entry import FmuEntry, Lent
from fmimaster.run.native.header import TYPES, interval_fields
from fmimaster.run.native.instances import READ
from fmimaster.run.ticks import asked_in_calls
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType


def make_partition_callbacks() -> PartitionCallbacks:
    """The callbacks of an instance before there is an executor: ``ClockUpdate`` is done in Python until
    :class:`ScheduledEntry` fills their environment."""
    scheduled = ffi.new("fm_scheduled *")

    def otherwise(address: int) -> None:
        scheduled.in_python = ffi.cast("void (*)(void *)", address)

    functions = (ffi.addressof(lib, name) for name in ("fm_clock_update", "fm_nothing"))
    update, nothing, environment = (
        int(ffi.cast("uintptr_t", pointer)) for pointer in (*functions, scheduled)
    )
    return PartitionCallbacks(update, nothing, environment, scheduled, otherwise)


class ScheduledEntry(FmuEntry):
    """A Scheduled Execution FMU as the kernel calls it."""

    def __init__(self, lent: Lent, instance: ScheduledInstance) -> None:
        super().__init__(lent)
        self._instance = instance
        assert instance.callbacks is not None
        self._scheduled = s = instance.callbacks.kept
        self._error: CallError | None = None
        """Of the first call in ``ClockUpdate`` that failed."""
        self.fill(
            s,
            fmu=self.fmu,
            python=lent.python.entry,
            fail=lib.fm_python_update_failed,
            self=self.lent(ffi.new_handle(self)),
            has_fmu_states=self._instance.has_fmu_states,
            unclocked=ffi.NULL,
        )
        self._lend_memory(len(lent.places))
        self._lend_clocks()
        lib.fm_scheduled_table(s, self.entry)

    def _lend_memory(self, n_places: int) -> None:
        """The memory of the instance, and room for copies."""
        memory, s = self._instance.memory, self._scheduled
        self.fill(
            s,
            size=memory.values.nbytes,
            values=memory.values,
            places=np.zeros(n_places * memory.values.nbytes, np.uint8),
            version=self._instance.version,
            versions=np.zeros(n_places, np.int64),
            counter=memory.n_activations.ctypes.data - memory.values.ctypes.data,
        )
        names = ("now", "n_activations", "activated", "is_set", "due", "active")
        self.fill(s.memory, **{name: getattr(memory, name) for name in names})
        self.fill(s.memory.announced, **interval_fields(memory.announced))

    def _lend_clocks(self) -> None:
        """All clocks, and what is read in ``ClockUpdate``."""
        instance, s = self._instance, self._scheduled
        references = [c.value_reference for c in instance.output_clocks]
        calls = asked_in_calls(instance.countdowns, range(len(instance.countdowns)))
        countdowns = self.table("fm_countdowns", [{"places": [*c.places]} for c in calls])
        self.fill(
            s,
            n_clocks=len(instance.clocks),
            clocks=[c.value_reference for c in instance.clocks],
            output_places=[*instance.places(references)],
            n_countdowns=len(calls),
            countdowns=countdowns,
        )
        n, values = len(references), np.zeros(len(references), np.uint8)
        self.fill(s.output_clocks, references=references, n=n, values=values)
        self._version.bind(self.fmu, TYPES[DataType.CLOCK], True, ffi.addressof(s.output_clocks))
        for record, asked in zip(countdowns, calls, strict=False):
            call, n, references = record.segment, len(asked.places), [*asked.references]
            self.fill(record.answer, **interval_fields(Intervals.of(n)))
            answer = ffi.addressof(record, "answer")
            self.fill(call, references=references, n=n, intervals=answer)
            lib.fm_fmi3_bind_intervals(self.fmu, asked.by_fraction, ffi.addressof(call))

    def bind(self, call: Any, group: Group, segment: Segment, values: NDArray[Any]) -> None:
        """Make a call ready that reads or sets a segment; what is text or binary goes through Python."""
        if segment.type.dtype == object:
            self._python.bind(call, group, segment, values)
            return
        is_get = group in READ
        record = self._record(call)
        if segment.type is DataType.CLOCK:
            self.fill(record, places=[*self._instance.places(segment.value_references)])
            call.transfer = lib.fm_scheduled_get_clocks if is_get else lib.fm_scheduled_set_clocks
            return
        if is_get:
            record.bytes = call.size * segment.type.dtype.itemsize
            self.fill(record.call, values=np.zeros(record.bytes, np.uint8))
            if not any(v.clocks for v in segment.variables):
                record.next = self._scheduled.unclocked
                self._scheduled.unclocked = call.self
        super().bind(record.call, group, segment, values)
        call.transfer = lib.fm_scheduled_get if is_get else lib.fm_scheduled_set

    def bind_intervals(
        self, call: Any, references: Sequence[int], answers: Intervals, by_fraction: bool
    ) -> None:
        """Make the call ready that asks for the intervals of clocks."""
        record = self._record(call)
        super().bind_intervals(record.call, references, answers, by_fraction)
        none = len(self._instance.clocks)
        places = {c.value_reference: row for row, c in enumerate(self._instance.countdowns)}
        self.fill(record, places=[places.get(clock, none) for clock in references])
        call.transfer = lib.fm_scheduled_ask

    def _record(self, call: Any) -> Any:
        """What self of a segment points to; its own call is the one of the FMU."""
        record = self.made("fm_scheduled_call", scheduled=self._scheduled, call=call, version=-1)
        call.self, call.function, call.version = record, ffi.NULL, 0
        return record[0]

    def failed(self, status: int) -> None:
        """Take up what a call in ``ClockUpdate`` has returned."""
        function = ffi.string(self._scheduled.function).decode()
        try:
            super().raise_failure(function, status, 0.0)
        except CallError as error:
            self._error = self._error or error

    def raise_failure(self, function: str, status: int, step: float) -> None:
        """Raise the error in the words of the instance."""
        s = self._scheduled
        if self._error is not None:
            raise self._error
        if status == lib.FM_SECOND_TICK:
            raise self._instance.second_tick(s.second)
        if status == lib.FM_BEHIND_EVENT:
            raise self._instance.behind_activation(s.wanted)
        if not function and s.function:  # it was called by what the kernel called
            function = ffi.string(s.function).decode()
        super().raise_failure(function, status, step)
