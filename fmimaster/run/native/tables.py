"""Tables that the instructions of the kernel point to: FMI calls, moves, derivatives, clocks, triggers of an instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Route, Segment
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Partials
from fmimaster.program.instructions.outputs import Correct
from fmimaster.program.store import ValueStore
from fmimaster.run.native.header import TYPES, derivative_fields, interval_fields
from fmimaster.run.native.instances import READ, KernelEntry
from fmimaster.run.native.lending import Lender
from fmimaster.run.native.objects import Objects
from fmimaster.run.ticks import AskedClocks, asked_clocks, clocked_parts
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType, Variable
from fmimaster.system.states import State


class Tables(Lender):
    """Lends what instructions need besides their operands. Parameters as of :class:`Lender`."""

    def __init__(self, kernel: Any, plan: Plan, store: ValueStore, objects: Objects) -> None:
        super().__init__(kernel, plan, store, objects)
        self._references: dict[int, Any] = {}
        """By the identity of variables: instances of one model share them."""
        self._bound: dict[tuple[int, bool, int], Any] = {}
        """Variables, whether they are read, functions of a library → such a call of one of the instances."""

    def calls(self, entry: KernelEntry, i: int, group: Group) -> dict[str, Any]:
        """The FMI calls that SET and GET make of a group: fields of fm_instruction."""
        segments = self.plan.layout.segments(i, group)
        return {"n": len(segments), "segments": self._segments(entry, group, segments)}

    def _segments(self, entry: KernelEntry, group: Group, segments: Sequence[Segment]) -> Any:
        calls = self.lent(ffi.new("fm_segment[]", len(segments)))
        for k, segment in enumerate(segments):
            key = id(segment.variables), group in READ, entry.shared
            if (alike := self._bound.get(key)) is not None:
                calls[k] = alike
                call = calls + k
                call.self, call.values = entry.component, self.address(segment.type, segment.start)
                continue
            self._fill(calls[k], entry, group, segment)
            if entry.shared and segment.type.is_float:
                self._bound[key] = calls[k]
        return calls

    def _fill(
        self,
        call: Any,
        entry: KernelEntry,
        group: Group,
        segment: Segment,
        values: NDArray[Any] | None = None,
    ) -> None:
        """The FMI call that sets or reads a segment, in the value store unless other values are given."""
        call.references = self._references_of(segment)
        call.n, call.size = len(segment.variables), segment.stop - segment.start
        if values is None:
            values = self.store.values[segment.type][segment.start : segment.stop]
            call.values = self.address(segment.type, segment.start)
        else:
            self.fill(call, values=values)
        entry.bind(call, group, segment, values)

    def _references_of(self, segment: Segment) -> Any:
        known = self._references.get(id(segment.variables))
        if known is None:
            known = self.lent(ffi.new("uint32_t[]", segment.value_references))
            self._references[id(segment.variables)] = known
        return known

    def moves(self, routes: Sequence[Route], *, objects: bool = False) -> dict[str, Any]:
        """What moves over some routes, element by element: fields of fm_instruction.

        Parameters
        ----------
        objects
            Whether of text and binaries; else of numbers.
        """
        chosen = (w for w in routes if w.target_type.dtype.hasobject is objects)
        elements = [(w, e) for w in chosen for e in range(w.size)]
        moves = self.lent(ffi.new("fm_move[]", len(elements)))
        for move, (route, element) in zip(moves, elements, strict=True):
            source, target, transformation = (
                route.source_type,
                route.target_type,
                route.transformation,
            )
            move.source_type, move.target_type = TYPES[source], TYPES[target]
            move.transformed = not transformation.is_identity
            move.plain = transformation.is_identity and source is target is DataType.FLOAT64
            move.factor, move.offset = transformation.factor, transformation.offset
            move.source = self.address(source, route.source.start + element)
            move.target = self.address(target, route.target.start + element)
        return {"n": len(elements), "moves": moves}

    def outputs(self, i: int) -> dict[str, Any]:
        """Where the outputs of an instance lie: fields of fm_instruction."""
        segments = self.plan.layout.segments(i, Group.OUTPUTS)
        ranges = [
            {"type": TYPES[s.type], "start": s.start, "n": s.stop - s.start} for s in segments
        ]
        return {"n": len(ranges), "ranges": self.table("fm_range", ranges)}

    def correction(self, entry: KernelEntry, correct: Correct) -> Any:
        """What CORRECT corrects in an instance: an fm_correction."""
        i = correct.instance
        routes = self.plan.routes[i, Group.CONTINUOUS]
        correction, store = self.plan.corrections[i], self.store
        highest = self.plan.instances[i].model.highest_order
        record = self.made(
            "fm_correction",
            moves=self.moves([r.at_left if correct.at_left else r for r in routes])["moves"],
            inputs=self.calls(entry, i, Group.CONTINUOUS)["segments"],
            highest=-1 if highest is None else highest,
            slots=[k for slot in correction.slots for k in range(slot.start, slot.stop)],
        )
        call = record.derivative
        self._derivative(call, correction.outputs, correction.inputs)
        if i in store.partials:
            self.fill(call, partials=store.partials[i], derive=lib.fm_multiply_partials)
        else:
            entry.bind_derivative(call, correction.outputs, correction.inputs)
        return record

    def partials(self, entry: KernelEntry, i: int, partials: Partials) -> Any:
        """What DERIVE computes for a hook: an fm_partials."""
        record = self.made(
            "fm_partials",
            slots=list(self.plan.layout.elements(i, partials.outputs)),
            values=partials.values,
            varies=partials.varies,
            wanted=partials.wanted,
        )
        self._derivative(record.derivative, partials.outputs, partials.inputs)
        entry.bind_derivative(record.derivative, partials.outputs, partials.inputs)
        return record

    def clock(self, slot: int) -> Any:
        """Address of a clock in the store."""
        return ffi.cast("uint8_t *", self.address(DataType.CLOCK, slot))

    def clocks(self, i: int, state: State) -> dict[str, Any]:
        """The clocks of an instance that are inactive in a state: fields of MODE."""
        if state is not State.STEP_MODE:
            return {}
        groups = (Group.CLOCKS, Group.INPUT_CLOCKS)
        found = [clocks for group in groups for clocks in self._clocks(i, group)]
        return {"n": len(found), "clocks": self.table("fm_clocks", found)} if found else {}

    def input_clocks(self, i: int) -> Any:
        """The input clocks of an instance in the store, which lie side by side: an fm_clocks."""
        [clocks] = self._clocks(i, Group.INPUT_CLOCKS) or [{"active": [0], "n": 0}]
        return self.made("fm_clocks", **clocks)

    def _clocks(self, i: int, group: Group) -> list[dict[str, Any]]:
        segments = self.plan.layout.segments(i, group)
        return [{"active": self.clock(s.start), "n": s.stop - s.start} for s in segments]

    def clocked(self, entry: KernelEntry, i: int) -> Any:
        """Output clocks and clocked outputs of an instance: an fm_clocked."""
        segments = self.plan.layout.segments(i, Group.CLOCKS)
        calls = self.table("fm_segment", [{}] * len(segments))
        for call, segment in zip(calls, segments, strict=False):
            now = np.zeros(segment.stop - segment.start, np.bool_)
            self._fill(call, entry, Group.CLOCKS, segment, now)
        parts = self.lent(clocked_parts(self.plan, i))
        chosen = [
            {"clocks": [self.clock(k) for k in part.clocks], "n_clocks": len(part.clocks)}
            for part in parts
        ]
        table = self.table("fm_clocked_part", chosen)
        for this, part in zip(table, parts, strict=False):
            self._fill(this.segment, entry, Group.CLOCKED, part.segment)
        return self.made(
            "fm_clocked",
            n_clocks=len(segments),
            clocks=calls,
            active=[self.clock(segment.start) for segment in segments],
            n_parts=len(parts),
            parts=table,
        )

    def inquiry(self, entry: KernelEntry, i: int) -> Any:
        """The calls that ask for the intervals of the clocks of an instance: an fm_inquiry."""
        record = self.lent(ffi.new("fm_inquiry *"))
        for is_later in (False, True):
            calls = asked_clocks(self.plan, i, initialized=is_later)
            record.n[is_later] = len(calls)
            table = record.calls[is_later] = self.lent(ffi.new("fm_asked[]", max(len(calls), 1)))
            for this, asked in zip(table, calls, strict=False):
                self._fill_asked(this, entry, i, asked)
        return record

    def _fill_asked(self, record: Any, entry: KernelEntry, i: int, asked: AskedClocks) -> None:
        answers, call = Intervals.of(len(asked.references)), record.segment
        self.fill(
            record,
            all=self.intervals(self.store.intervals[i]),
            answer=self.intervals(answers),
            places=list(asked.places),
            clock=ffi.NULL if asked.clock is None else self.clock(asked.clock),
        )
        n = len(asked.references)
        intervals = ffi.addressof(record, "answer")
        self.fill(call, references=list(asked.references), n=n, size=n, intervals=intervals)
        entry.bind_intervals(call, asked.references, answers, asked.by_fraction)

    def ahead(self) -> Any:
        """What a stretch over events looks at: an fm_ahead."""
        told = list(self.store.intervals.values())
        return self.made(
            "fm_ahead",
            n=len(told),
            intervals=[self.intervals(t) for t in told],
            n_intervals=[len(t.qualifier) for t in told],
        )

    def intervals(self, intervals: Intervals) -> Any:
        """Arrays of intervals: an fm_intervals."""
        return self.made("fm_intervals", **interval_fields(intervals))[0]

    def _derivative(
        self, call: Any, outputs: Sequence[Variable], inputs: Sequence[Variable]
    ) -> None:
        """The variables of a directional derivative, and its arrays."""
        arrays = (np.zeros(sum(v.size for v in vs)) for vs in (outputs, inputs))
        unknowns, knowns = ([v.value_reference for v in vs] for vs in (outputs, inputs))
        self.fill(call, **derivative_fields(unknowns, knowns, *arrays))

    def triggers(self, entry: KernelEntry, i: int) -> dict[str, Any]:
        """The triggers of an instance, and what comes along: fields of fm_instruction."""
        chosen = self.plan.triggers_of(i)
        return {
            "n": len(chosen),
            "of": self.table("fm_trigger", [self._trigger(entry, k) for k in chosen]),
        }

    def _trigger(self, entry: KernelEntry, k: int) -> dict[str, Any]:
        """The fields of an fm_trigger."""
        trigger = self.plan.triggers[k]
        numbers, objects = (self.moves(trigger.payload, objects=o) for o in (False, True))
        fields: dict[str, Any] = {
            "active": self.kernel.active + k,
            "sources": [self.clock(s) for s in trigger.sources],
            "n_sources": len(trigger.sources),
            "segments": self._segments(entry, Group.TRIGGERS, trigger.segments),
            "n_segments": len(trigger.segments),
            "moves": numbers["moves"],
            "n_moves": numbers["n"],
            "objects": objects["moves"],
            "n_objects": objects["n"],
        }
        if trigger.counter is not None:
            address = self.address(DataType.INT32, trigger.counter)
            fields["counter"] = ffi.cast("int32_t *", address)
        if trigger.shown is not None:
            fields["shown"] = self.clock(trigger.shown)
        return fields
