"""Memory that the kernel borrows: arrays of the value store, the registers and the rows, and tables from the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Route, Segment
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Partials
from fmimaster.program.store import OutputCopy, ValueStore
from fmimaster.run.clock_calls import AskedClocks, asked_clocks, clocked_parts
from fmimaster.run.convergence import nominals_of_outputs
from fmimaster.run.executor import Experiment
from fmimaster.run.native.header import TYPES
from fmimaster.run.native.instances import Entry
from fmimaster.run.native.objects import Objects
from fmimaster.run.native.rows import KernelRows
from fmimaster.run.registers import Registers
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType, Variable
from fmimaster.system.states import State


class Lender:
    """Lends memory to the kernel, and keeps it alive.

    Parameters
    ----------
    kernel : fm_kernel
    plan : Plan
    store : ValueStore
    objects : Objects
        Has the arrays of text and binaries.
    """

    def __init__(self, kernel: Any, plan: Plan, store: ValueStore, objects: Objects) -> None:
        self.kernel = kernel
        self.plan = plan
        self.store = store
        self.objects = objects
        self._kept: list[Any] = []
        self._references: dict[int, Any] = {}
        """By the identity of variables: instances of one model share them."""

    def lent(self, thing: Any) -> Any:
        """Something that the kernel may use as long as this object lives."""
        self._kept.append(thing)
        return thing

    def doubles(self, values: NDArray[np.float64]) -> Any:
        """An array of doubles."""
        return self.lent(ffi.from_buffer("double[]", values))

    def bytes(self, values: NDArray[Any]) -> Any:
        """An array of bytes."""
        return self.lent(ffi.from_buffer("uint8_t[]", values.view(np.uint8)))

    def integers(self, values: NDArray[np.int64]) -> Any:
        """An array of integers of 64 bits."""
        return self.lent(ffi.from_buffer("int64_t[]", values))

    def address(self, kind: DataType, index: int) -> Any:
        """Address of an element of the store."""
        values = self.store.values[kind]
        return ffi.cast("char *", ffi.from_buffer(values)) + index * kind.dtype.itemsize

    # Once, when the executor is made

    def lend_all(
        self,
        registers: Registers,
        rows: KernelRows,
        experiment: Experiment,
        entries: Sequence[Entry],
    ) -> None:
        """Everything that does not depend on a program."""
        k, plan = self.kernel, self.plan
        k.n_instances, k.continuous_group = len(plan.instances), Group.CONTINUOUS
        k.experiment = self.lent(_experiment(experiment))
        k.stays_ahead = self.bytes(np.array([i.stays_ahead for i in plan.instances], np.uint8))
        k.has_events = any(i.may_return_early or i.event_mode for i in plan.instances)
        k.limit = k.end = experiment.start
        k.instances = self.lent(ffi.new("fm_instance[]", [e.entry[0] for e in entries]))
        k.objects = self.lent(self.objects).functions[0]
        k.results = self.lent(ffi.new("fm_result[]", max(len(entries), 1)))
        self._lend_registers(registers)
        self._lend_outputs()
        self._lend_passes()
        self._lend_courses()
        self._lend_routes()
        self._lend_rows(rows)

    def _lend_registers(self, registers: Registers) -> None:
        k, r = self.kernel, registers
        k.at, k.place_at = self.doubles(r.at), self.doubles(r.place_at)
        k.kept_from = self.doubles(r.kept_from)
        k.stepped, k.place_stepped = self.integers(r.stepped), self.integers(r.place_stepped)
        k.follows = self.lent(ffi.from_buffer("int[]", r.follows_polynomials))
        k.kept_limit, k.kept_requests = self.doubles(r.kept_limit), self.bytes(r.kept_requests)
        k.next_events = self.doubles(r.next_events)
        k.steps, k.restores, k.events = map(self.integers, r.calls)
        k.initialized, k.pending = self.bytes(r.initialized), self.bytes(r.pending)
        k.calling = self.bytes(r.calling)

    def _lend_outputs(self) -> None:
        k, store = self.kernel, self.store
        nominals = nominals_of_outputs(self.plan)
        k.n_history = len(store.history)
        k.history, k.buffers = map(self._lent_copies, (store.history, store.buffers))
        k.read, k.active = self.doubles(store.read), self.bytes(store.active)
        for kind, array in store.values.items():
            if kind.dtype == object:
                self.objects.lend(array)
        for kind, array in store.outputs.items():
            t = TYPES[kind]
            k.output_sizes[t] = len(array)
            k.outputs[t] = self.lent(ffi.from_buffer(array))
            if kind.is_float:
                k.nominals[t] = self.doubles(nominals[kind])

    def _lend_passes(self) -> None:
        """Room for what REPEATs compare."""
        n = max(len(self.plan.instances), 1)
        for passes in self.kernel.passes:
            passes.requests_at_first = self.lent(ffi.new("uint8_t[]", n))
            for kind, array in self.store.outputs.items():
                passes.outputs_before[TYPES[kind]] = self._copy_of_outputs(kind, array.copy())

    def _copy_of_outputs(self, kind: DataType, array: NDArray[Any]) -> Any:
        """An array to which outputs are copied."""
        is_object = kind.dtype == object
        return self.lent(self.objects.lend(array) if is_object else ffi.from_buffer(array))

    def _lent_copies(self, copies: Sequence[OutputCopy]) -> Any:
        """Copies of the outputs."""
        table = self.lent(ffi.new("fm_copy[]", max(len(copies), 1)))
        for entry, (values, read) in zip(table, copies, strict=False):
            entry.read = self.doubles(read)
            for kind, array in values.items():
                entry.outputs[TYPES[kind]] = self._copy_of_outputs(kind, array)
        return table

    def _lend_courses(self) -> None:
        k, courses = self.kernel, self.store.courses
        k.degree = self.lent(ffi.from_buffer("int[]", courses.degree))
        k.centre = self.doubles(courses.centre)
        coefficients = [self.doubles(array) for array in courses.coefficients]
        k.coefficients = self.lent(ffi.new("double *[]", coefficients))
        for name in ("errors", "measured", "lacking", "given_from"):
            arrays = [self.doubles(array) for array in getattr(courses, name)]
            setattr(k, name, self.lent(ffi.new("double *[]", arrays)))

    def _lend_routes(self) -> None:
        """The routes of continuous inputs for polynomials, element by element, with the derivatives of the outputs."""
        begins, routes = [0], list[Route]()
        for i in range(len(self.plan.instances)):
            chosen = self.plan.routes.get((i, Group.CONTINUOUS), ())
            routes += chosen
            begins.append(begins[-1] + sum(w.size for w in chosen))
        table = self.lent(ffi.new("fm_route[]", max(begins[-1], 1)))
        elements = ((w, e) for w in routes for e in range(w.size))
        for entry, (route, element) in zip(table, elements, strict=False):
            slots = [d.start + element for d in route.derivatives]
            entry.source_instance = route.link.source
            entry.source_type = TYPES[route.source_type]
            entry.source = route.source.start + element
            entry.n_derivatives = len(slots)
            entry.derivatives = self.lent(ffi.new("size_t[]", slots or [0]))
            entry.factor, entry.offset = route.transformation.factor, route.transformation.offset
        self.kernel.route_begin, self.kernel.routes = self.lent(ffi.new("int[]", begins)), table

    def _lend_rows(self, rows: KernelRows) -> None:
        k, columns = self.kernel, rows.columns()
        k.times = self.doubles(rows.times)
        if rows.clocks is not None:
            k.clocks, k.n_clocks = self.bytes(rows.clocks), rows.clocks.shape[1]
        k.row_capacity, k.n_columns = rows.capacity, len(columns)
        table = self.lent(ffi.new("fm_column[]", max(len(columns), 1)))
        for entry, (source, target, is_compared) in zip(table, columns, strict=False):
            entry.is_compared = is_compared
            entry.source = self.lent(ffi.from_buffer("char[]", source))
            # a part of a block: its rows lie a row of the whole block apart
            entry.rows = ffi.cast("char *", target.ctypes.data)
            entry.bytes, entry.stride = source.nbytes, target.strides[0]
        k.columns = table
        sampled = [
            (ffi.from_buffer("void *[]", values), ffi.from_buffer("void *[]", newest), len(values))
            for values, newest in rows.sampled()
        ]
        k.n_sampled, k.sampled = len(sampled), self.lent(ffi.new("fm_sampled[]", sampled))
        self.lent(sampled)

    # For the instructions of programs

    def calls(self, entry: Entry, i: int, group: Group) -> dict[str, Any]:
        """The FMI calls that SET and GET make of a group: fields of fm_instruction."""
        segments = self.plan.layout.segments(i, group)
        return {"n": len(segments), "segments": self._segments(entry, group, segments)}

    def _segments(self, entry: Entry, group: Group, segments: Sequence[Segment]) -> Any:
        calls = self.lent(ffi.new("fm_segment[]", len(segments)))
        for call, segment in zip(calls, segments, strict=True):
            self._fill(call, entry, group, segment)
        return calls

    def _fill(
        self,
        call: Any,
        entry: Entry,
        group: Group,
        segment: Segment,
        values: NDArray[Any] | None = None,
    ) -> None:
        """The FMI call that sets or reads a segment, in the value store unless other values are given."""
        call.references = self._references_of(segment)
        call.n, call.size = len(segment.variables), segment.stop - segment.start
        if values is None:
            call.values = self.address(segment.type, segment.start)
        else:
            call.values = self.bytes(values)
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
        chosen = (w for w in routes if (w.target_type.dtype == object) is objects)
        elements = [(w, e) for w in chosen for e in range(w.size)]
        moves = self.lent(ffi.new("fm_move[]", len(elements)))
        for move, (route, element) in zip(moves, elements, strict=True):
            types, is_identity = (
                (route.source_type, route.target_type),
                route.transformation.is_identity,
            )
            move.source_type, move.target_type = (TYPES[kind] for kind in types)
            move.transformed = not is_identity
            move.plain = is_identity and types == (DataType.FLOAT64, DataType.FLOAT64)
            move.factor, move.offset = route.transformation.factor, route.transformation.offset
            move.source = self.address(route.source_type, route.source.start + element)
            move.target = self.address(route.target_type, route.target.start + element)
        return {"n": len(elements), "moves": moves}

    def outputs(self, i: int) -> dict[str, Any]:
        """Where the outputs of an instance lie: fields of fm_instruction."""
        segments = self.plan.layout.segments(i, Group.OUTPUTS)
        ranges = [(TYPES[s.type], s.start, s.stop - s.start) for s in segments]
        return {"n": len(ranges), "ranges": self.lent(ffi.new("fm_range[]", ranges or [(0, 0, 0)]))}

    def correction(self, entry: Entry, i: int) -> Any:
        """What CORRECT corrects in an instance: an fm_correction."""
        correction, store = self.plan.corrections[i], self.store
        record = self.lent(ffi.new("fm_correction *"))
        record.moves = self.moves(self.plan.routes[i, Group.CONTINUOUS])["moves"]
        record.inputs = self.calls(entry, i, Group.CONTINUOUS)["segments"]
        highest = self.plan.instances[i].highest_order
        record.highest = -1 if highest is None else highest
        slots = [k for slot in correction.slots for k in range(slot.start, slot.stop)]
        record.slots = self.lent(ffi.new("size_t[]", slots))
        call = record.derivative
        self._derivative(call, correction.outputs, correction.inputs)
        if i in store.partials:
            call.partials, call.derive = self.doubles(store.partials[i]), lib.fm_multiply_partials
        else:
            entry.bind_derivative(call, correction.outputs, correction.inputs)
        return record

    def partials(self, entry: Entry, i: int, partials: Partials) -> Any:
        """What DERIVE computes for a hook: an fm_partials."""
        record = self.lent(ffi.new("fm_partials *"))
        self._derivative(record.derivative, partials.outputs, partials.inputs)
        entry.bind_derivative(record.derivative, partials.outputs, partials.inputs)
        slots = self.plan.layout.elements(i, partials.outputs)
        record.slots = self.lent(ffi.new("size_t[]", slots))
        record.values, record.varies = self.doubles(partials.values), self.bytes(partials.varies)
        record.wanted = self.lent(ffi.from_buffer("int[]", partials.wanted))
        return record

    def clock(self, slot: int) -> Any:
        """Address of a clock in the store."""
        return ffi.cast("uint8_t *", self.address(DataType.CLOCK, slot))

    def clocks(self, i: int, state: State) -> dict[str, Any]:
        """The clocks of an instance that are inactive in a state: fields of MODE."""
        if state is not State.STEP_MODE:
            return {}
        found = [
            (self.clock(s.start), s.stop - s.start)
            for group in (Group.CLOCKS, Group.INPUT_CLOCKS)
            for s in self.plan.layout.segments(i, group)
        ]
        return {"n": len(found), "clocks": self.lent(ffi.new("fm_clocks[]", found))}

    def input_clocks(self, i: int) -> Any:
        """The input clocks of an instance in the store, which lie side by side: an fm_clocks."""
        segments = self.plan.layout.segments(i, Group.INPUT_CLOCKS)
        found = [(self.clock(s.start), s.stop - s.start) for s in segments]
        [clocks] = found or [(self.lent(ffi.new("uint8_t *")), 0)]
        return self.lent(ffi.new("fm_clocks *", clocks))

    def clocked(self, entry: Entry, i: int) -> Any:
        """Output clocks and clocked outputs of an instance: an fm_clocked."""
        record = self.lent(ffi.new("fm_clocked *"))
        segments = self.plan.layout.segments(i, Group.CLOCKS)
        record.n_clocks = len(segments)
        record.clocks = calls = self.lent(ffi.new("fm_segment[]", max(len(segments), 1)))
        for call, segment in zip(calls, segments, strict=False):
            now = np.zeros(segment.stop - segment.start, np.bool_)
            self._fill(call, entry, Group.CLOCKS, segment, now)
        active = [self.clock(segment.start) for segment in segments]
        record.active = self.lent(ffi.new("uint8_t *[]", active or [ffi.NULL]))
        parts = self.lent(clocked_parts(self.plan, i))
        record.n_parts = len(parts)
        table = self.lent(ffi.new("fm_clocked_part[]", max(len(parts), 1)))
        for this, part in zip(table, parts, strict=False):
            self._fill(this.segment, entry, Group.CLOCKED, part.segment)
            this.clocks = self.lent(ffi.new("uint8_t *[]", [self.clock(k) for k in part.clocks]))
            this.n_clocks = len(part.clocks)
        record.parts = table
        return record

    def inquiry(self, entry: Entry, i: int) -> Any:
        """The calls that ask for the intervals of the clocks of an instance: an fm_inquiry."""
        record = self.lent(ffi.new("fm_inquiry *"))
        for is_later in (False, True):
            calls = asked_clocks(self.plan, i, initialized=is_later)
            record.n[is_later] = len(calls)
            table = record.calls[is_later] = self.lent(ffi.new("fm_asked[]", max(len(calls), 1)))
            for this, asked in zip(table, calls, strict=False):
                self._fill_asked(this, entry, i, asked)
        return record

    def _fill_asked(self, record: Any, entry: Entry, i: int, asked: AskedClocks) -> None:
        answers, call = Intervals.of(len(asked.references)), record.segment
        record.all = self.intervals(self.store.intervals[i])
        record.answer = self.intervals(answers)
        record.places = self.lent(ffi.new("size_t[]", asked.places))
        record.clock = ffi.NULL if asked.clock is None else self.clock(asked.clock)
        call.references = self.lent(ffi.new("uint32_t[]", asked.references))
        call.n = call.size = len(asked.references)
        call.intervals = ffi.addressof(record, "answer")
        entry.bind_intervals(call, asked.references, answers, asked.by_fraction)

    def ahead(self) -> Any:
        """What a stretch over events looks at: an fm_ahead."""
        told = list(self.store.intervals.values())
        record = self.lent(ffi.new("fm_ahead *"))
        record.n = len(told)
        record.intervals = self.lent(ffi.new("fm_intervals[]", [self.intervals(t) for t in told]))
        sizes = [len(t.qualifier) for t in told]
        record.n_intervals = self.lent(ffi.new("size_t[]", sizes))
        return record

    def intervals(self, intervals: Intervals) -> Any:
        """Arrays of intervals: an fm_intervals."""
        types = ("uint64_t[]", "uint64_t[]", "double[]", "int32_t[]")
        pairs = zip(types, intervals.arrays, strict=True)
        arrays = [self.lent(ffi.from_buffer(kind, array)) for kind, array in pairs]
        return self.lent(ffi.new("fm_intervals *", arrays))[0]

    def _derivative(
        self, call: Any, outputs: Sequence[Variable], inputs: Sequence[Variable]
    ) -> None:
        """The variables of a directional derivative, and its arrays."""
        call.n_sensitivity, call.n_seed = (sum(v.size for v in vs) for vs in (outputs, inputs))
        call.sensitivity, call.seed = (
            self.doubles(np.zeros(n)) for n in (call.n_sensitivity, call.n_seed)
        )
        call.n_unknowns, call.n_knowns = len(outputs), len(inputs)
        call.unknowns, call.knowns = (
            self.lent(ffi.new("uint32_t[]", [v.value_reference for v in variables]))
            for variables in (outputs, inputs)
        )

    def triggers(self, entry: Entry, i: int) -> dict[str, Any]:
        """The triggers of an instance, and what comes along: fields of fm_instruction."""
        chosen = self.plan.triggers_of(i)
        triggers = self.lent(ffi.new("fm_trigger[]", max(len(chosen), 1)))
        for record, k in zip(triggers, chosen, strict=False):
            trigger = self.plan.triggers[k]
            record.active = self.kernel.active + k
            if trigger.counter is not None:
                record.counter = ffi.cast(
                    "int32_t *", self.address(DataType.INT32, trigger.counter)
                )
            if trigger.shown is not None:
                record.shown = self.clock(trigger.shown)
            sources = [
                ffi.cast("const uint8_t *", self.address(DataType.CLOCK, s))
                for s in trigger.sources
            ]
            record.sources = self.lent(ffi.new("const uint8_t *[]", sources or [ffi.NULL]))
            record.n_sources, record.n_segments = len(sources), len(trigger.segments)
            moves = self.moves(self.plan.triggers[k].payload)
            record.n_moves, record.moves = moves["n"], moves["moves"]
            moves = self.moves(self.plan.triggers[k].payload, objects=True)
            record.n_objects, record.objects = moves["n"], moves["moves"]
            record.segments = self._segments(entry, Group.TRIGGERS, trigger.segments)
        return {"n": len(chosen), "of": triggers}


def _experiment(experiment: Experiment) -> Any:
    stop = experiment.stop
    return ffi.new("fm_experiment *", (experiment.start, stop or 0.0, stop is not None))
