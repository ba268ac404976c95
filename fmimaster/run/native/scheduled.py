"""Scheduled Execution FMUs as the kernel activates them: their memory and clocks, lent to ``kernel/scheduled.c``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.kernel_entry import PartitionCallbacks, ScheduledParts
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.run.clock_calls import asked_in_calls
from fmimaster.run.native.header import TYPES
from fmimaster.run.native.instances import READ, FmuEntry, Lent
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

    def __init__(self, lent: Lent, parts: ScheduledParts) -> None:
        super().__init__(lent)
        self._parts = parts
        self._scheduled = s = parts.callbacks.kept
        self._error: CallError | None = None
        """Of the first call in ``ClockUpdate`` that failed."""
        self._handle = ffi.new_handle(self)
        s.fmu, s.python = self._fmu, lent.python.entry
        s.fail, s.self = lib.fm_python_update_failed, self._handle
        s.has_fmu_states = self._parts.has_fmu_states
        s.unclocked = ffi.NULL
        self._lend_memory(len(lent.places))
        self._lend_clocks()
        lib.fm_scheduled_table(s, self.entry)

    def _lend_memory(self, n_places: int) -> None:
        """The memory of the instance, and room for copies."""
        memory, s = self._parts.memory, self._scheduled
        s.size = memory.values.nbytes
        s.values = self._array("char[]", memory.values)
        s.places = self._lent("char[]", n_places * memory.values.nbytes)
        s.versions = self._lent("int64_t[]", n_places)
        s.counter = memory.n_activations.ctypes.data - memory.values.ctypes.data
        m = s.memory
        m.now = self._array("double[]", memory.now)
        m.n_activations = self._array("int64_t[]", memory.n_activations)
        m.activated = self._array("double[]", memory.activated)
        m.is_set, m.due, m.active = (
            self._array("uint8_t[]", array) for array in (memory.is_set, memory.due, memory.active)
        )
        self._fill(m.announced, memory.announced)
        s.version = self._array("int64_t[]", self._parts.version)

    def _lend_clocks(self) -> None:
        """All clocks, and what is read in ``ClockUpdate``."""
        parts, s = self._parts, self._scheduled
        s.n_clocks = len(parts.clocks)
        s.clocks = self._references([c.value_reference for c in parts.clocks])
        call = s.output_clocks
        references = [c.value_reference for c in parts.output_clocks]
        call.references, call.n = self._references(references), len(references)
        call.values = self._lent("uint8_t[]", len(references))
        self._version.bind(self._fmu, TYPES[DataType.CLOCK], True, ffi.addressof(call))
        s.output_places = self._places(parts.places(references))
        calls = asked_in_calls(parts.countdowns, range(len(parts.countdowns)))
        s.n_countdowns = len(calls)
        s.countdowns = table = self._lent("fm_countdowns[]", len(calls))
        for record, asked in zip(table, calls, strict=True):
            call, call.n = record.segment, len(asked.places)
            self._fill(record.answer, Intervals.of(call.n))
            record.places = self._places(asked.places)
            call.references = self._references(asked.references)
            call.intervals = ffi.addressof(record, "answer")
            lib.fm_fmi3_bind_intervals(self._fmu, asked.by_fraction, ffi.addressof(call))

    def bind(
        self, call: Any, group: Group, segment: Segment, values: NDArray[Any] | None = None
    ) -> None:
        """Make a call ready that reads or sets a segment; what is text or binary goes through Python."""
        if segment.type.dtype == object:
            self._python.bind(call, group, segment, values)
            return
        is_get = group in READ
        record = self._record(call)
        if segment.type is DataType.CLOCK:
            record.places = self._places(self._parts.places(segment.value_references))
            call.transfer = lib.fm_scheduled_get_clocks if is_get else lib.fm_scheduled_set_clocks
            return
        if is_get:
            record.bytes = call.size * segment.type.dtype.itemsize
            record.call.values = self._lent("char[]", record.bytes)
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
        none = len(self._parts.clocks)
        places = {c.value_reference: row for row, c in enumerate(self._parts.countdowns)}
        record.places = self._places([places.get(clock, none) for clock in references])
        call.transfer = lib.fm_scheduled_ask

    def _record(self, call: Any) -> Any:
        """What self of a segment points to; its own call is the one of the FMU."""
        record = self._lent("fm_scheduled_call[]", 1)
        record[0].scheduled, record[0].call, record[0].version = self._scheduled, call, -1
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
            raise self._parts.second_tick(s.second)
        if status == lib.FM_BEHIND_EVENT:
            raise self._parts.behind_activation(s.wanted)
        if not function and s.function:  # it was called by what the kernel called
            function = ffi.string(s.function).decode()
        super().raise_failure(function, status, step)

    def _array(self, kind: str, array: NDArray[Any]) -> Any:
        self._kept.append(ffi.from_buffer(kind, array))
        return self._kept[-1]

    def _references(self, references: Sequence[int]) -> Any:
        self._kept.append(ffi.new("uint32_t[]", list(references)))
        return self._kept[-1]

    def _places(self, places: Sequence[int]) -> Any:
        self._kept.append(ffi.new("size_t[]", list(places)))
        return self._kept[-1]

    def _fill(self, record: Any, intervals: Intervals) -> None:
        """An fm_intervals of these arrays."""
        fields = ("counters", "resolutions", "seconds", "qualifiers")
        kinds = ("uint64_t[]", "uint64_t[]", "double[]", "int32_t[]")
        for name, kind, array in zip(fields, kinds, intervals.arrays, strict=True):
            setattr(record, name, self._array(kind, array))
