"""The kernel, seen from Python: lends it the arrays and the FMUs, and says in exceptions what it says in numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.instance import Instance
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.plan.plan import Plan, Wire
from fmimaster.program.instructions import (
    Fit,
    Forget,
    Get,
    Instruction,
    Keep,
    Mode,
    Move,
    Parallel,
    Program,
    Recall,
    Remember,
    Repeat,
    Restore,
    Sample,
    Save,
    Set,
    Step,
    Until,
)
from fmimaster.program.outcome import Outcome, Reason, Stop
from fmimaster.run.convergence import nominals_of_outputs
from fmimaster.run.executor import Experiment, RowBlock, make_store
from fmimaster.run.native_instances import STATES, FmuInstance, PythonInstance
from fmimaster.system.model import DataType

TYPES = tuple(DataType)
"""Types in the order of the kernel's fm_type."""

OPERATIONS: tuple[type[Instruction], ...] = (
    Move,
    Fit,
    Set,
    Get,
    Step,
    Save,
    Restore,
    Keep,
    Recall,
    Remember,
    Forget,
    Repeat,
    Until,
    Mode,
    Sample,
    Parallel,
)
"""Instructions in the order of the kernel's fm_op."""

AUTOMATIC = 0
"""Number of threads that leaves the number to a measurement."""

WORTH_A_THREAD = 20e-6
"""Mean wall time in s of a DoStep above which threads pay."""

QUICK, SLOW = 0.02, 0.1
"""Wall time in s of one call of the kernel below and above which the next one does more or fewer steps: so progress is
shown and Ctrl-C is heard, and little time is spent between the calls."""


class NativeExecutor:
    """Executes programs by the kernel. Parameters as of :class:`fmimaster.run.reference.ReferenceExecutor`."""

    def __init__(
        self,
        plan: Plan,
        instances: Sequence[Instance],
        experiment: Experiment,
        *,
        n_threads: int = 1,
        n_places: int = 0,
        n_buffers: int = 0,
        history: int = 0,
        hooks: Sequence[Any] = (),
    ) -> None:
        self.plan = plan
        self.next_events = np.full(len(instances), np.inf)
        self.calls = np.zeros((3, len(instances)), np.int64)
        self.store = make_store(plan, n_buffers)
        self.rows = RowBlock(plan, self.store)
        self._instances = instances
        self._keep: list[Any] = []
        """What the kernel borrows."""
        self.kernel = k = ffi.new("fm_kernel *")
        self._programs: dict[int, tuple[Program, Any]] = {}
        self._chunk = 16
        self._attempts = self._measured = 0
        self._done = ffi.new("int *")
        k.n_instances, k.n_groups = len(instances), len(Group)
        k.continuous_group = Group.CONTINUOUS
        self.experiment = experiment
        k.experiment = self._lent(_experiment(experiment))
        self._lend_groups()
        self._lend_moves()
        self._lend_outputs(n_buffers, history)
        self._lend_rows()
        n = len(instances)
        self.at = self._doubles(k, "at", np.full(n, experiment.start))
        self._doubles(k, "place_at", np.zeros(max(n_places, 1)))
        self._seconds = self._doubles(k, "seconds", np.zeros(n))
        self._lend_instances(n_places)
        self._automatic = n_threads == AUTOMATIC
        k.results = self._lent(ffi.new("fm_result[]", n))
        if n_threads > 1:
            self._start_threads(n_threads)

    @staticmethod
    def takes(plan: Plan) -> bool:
        """Whether the kernel can do this plan: text and binaries are moved and recorded in Python only."""
        if (
            any(i.event_mode or i.stops for i in plan.instances)
            or plan.triggers
            or any(i.model.input_polynomials for i in plan.instances)
        ):
            return False
        moving = (Group.OUTPUTS, Group.CONTINUOUS, Group.DISCRETE)
        return not any(
            segment.type.dtype == object
            for groups in plan.layout.groups
            for group in moving
            for segment in groups.get(group, ())
        ) and all(w.is_lossless for wires in plan.wires.values() for w in wires)

    @property
    def seconds(self) -> list[float]:
        """Wall time per instance in DoStep, in s, estimated from some of the attempts."""
        scale = self._attempts / self._measured if self._measured else 1.0
        return [float(s) * scale for s in self._seconds]

    def run(self, program: Program, begin: float, end: float, measuring: int = 0) -> Outcome:
        """Execute a program over the interval from begin to end, in s."""
        k = self.kernel
        k.n_rows, k.measuring = self.rows.count, measuring
        known = self._programs.get(id(program))  # single steps pay for each call in between
        code = lib.fm_run(k, known[1] if known else self._encoded(program), begin, end)
        self.rows.count = k.n_rows
        return Outcome(end) if code == lib.FM_RAN and not k.terminate else self._outcome(code)

    def repeat(
        self,
        attempt: Program,
        commit: Program,
        times: Sequence[float] | NDArray[np.float64],
    ) -> tuple[int, Outcome]:
        """Attempt and commit interval after interval while nothing happens; see :class:`Executor`."""
        k, done = self.kernel, self._done
        if len(times) == 2 and not self._automatic:  # a single step needs no arrays
            measuring = self._attempts % lib.FM_MEASURE_EVERY == 0
            self._attempts, self._measured = self._attempts + 1, self._measured + measuring
            return 0, self.run(attempt, times[0], times[1], measuring)
        n = min(len(times), self._chunk + 1)
        points = np.ascontiguousarray(times[:n], dtype=np.float64)
        k.n_rows = self.rows.count
        since = perf_counter()
        code = lib.fm_repeat(
            k,
            self._encoded(attempt),
            self._encoded(commit),
            ffi.from_buffer("double[]", points),
            n,
            done,
        )
        elapsed = perf_counter() - since
        if elapsed < QUICK:
            self._chunk = min(4 * self._chunk, len(self.rows.times))
        elif elapsed > SLOW:
            self._chunk = max(1, self._chunk // 2)
        self.rows.count = k.n_rows
        self._attempts += done[0] + 1
        self._measured += done[0] // lib.FM_MEASURE_EVERY + 1
        if self._automatic:
            self._decide_on_threads()
        return done[0], self._outcome(code)

    def _outcome(self, code: int) -> Outcome:
        k = self.kernel
        if code == lib.FM_RAN:
            return Outcome(float(self.at.min()), True) if k.terminate else Outcome(k.end)
        if code == lib.FM_FAILED:
            self._raise(k.stop_instance, k.failure_status, k.failure_function)
        reason = Reason.DISCARDED if code == lib.FM_DISCARDED else Reason.NOT_CONVERGED
        messages: tuple[str, ...] = ()
        if reason is Reason.DISCARDED:
            instance = self._instances[k.stop_instance]
            binary = isinstance(instance, BinaryInstance)
            messages = (
                tuple(instance.messages.last) if binary else self._tables[k.stop_instance].messages
            )
        change = k.change if reason is Reason.NOT_CONVERGED else 0.0
        stop = Stop(reason, k.stop_instance, k.stop_instruction, k.stop_time, change, messages)
        return Outcome(k.stop_time, bool(k.terminate), stop)

    def _raise(self, i: int, status: int, function: Any) -> None:
        """The error of a call, in the words of the instance that was called."""
        error = self._tables[i].error
        if error is not None:
            raise error
        instance = self._instances[i]
        assert isinstance(instance, BinaryInstance)
        instance.time = float(self.at[i])
        name = ffi.string(function).decode()
        if status == lib.FM_MISSING:
            instance.function(name)()
        k = self.kernel
        instance.fail(name, status, k.end - k.begin if name == "DoStep" else None)

    def _start_threads(self, n: int) -> None:
        n = min(n, len(self._instances))
        if n > 1:
            self.kernel.pool = self._lent(ffi.gc(lib.fm_pool_new(n), lib.fm_pool_free))

    def _decide_on_threads(self) -> None:
        """After the first steps: threads pay if a DoStep takes long enough, and there is more than one core."""
        self._automatic = False
        mean = sum(self.seconds) / self._attempts / len(self._instances)
        if mean > WORTH_A_THREAD:
            self._start_threads(len(os.sched_getaffinity(0)))

    # Programs

    def _encoded(self, program: Program) -> Any:
        """The program as the kernel reads it; kept together with it, since it is known by its identity."""
        known = self._programs.get(id(program))
        if known is None:
            code = self._lent(
                ffi.new("fm_instruction[]", [_encode(i, self._lent) for i in program.instructions])
            )
            encoded = ffi.new("fm_program *", (len(program.instructions), code))
            self._lend_polynomials(program)
            known = self._programs[id(program)] = (program, encoded)
        return known[1]

    def _lend_polynomials(self, program: Program) -> None:
        """Room for the coefficients that the FITs of a program write."""
        k = self.kernel
        for fit in (i for i in program.instructions if isinstance(i, Fit)):
            rows = fit.points * (fit.derivatives + 1)
            i = fit.instance
            n = sum(s.stop - s.start for s in self.plan.layout.segments(i, Group.CONTINUOUS))
            if i not in self.coefficients or len(self.coefficients[i]) < rows:
                self.coefficients[i] = np.zeros((rows, n))
                k.coefficients[i] = ffi.from_buffer("double[]", self.coefficients[i])
            self._scratch = self._doubles(k, "scratch", np.zeros((n + 5) * (rows + 1)))

    # What the kernel borrows

    def _lent(self, thing: Any) -> Any:
        self._keep.append(thing)
        return thing

    def _doubles(self, owner: Any, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """An array of doubles that the kernel knows by this name."""
        setattr(owner, name, self._lent(ffi.from_buffer("double[]", values)))
        return values

    def _address(self, kind: DataType, index: int) -> Any:
        """Address of an element of the store; null for text and binaries, which stay in Python."""
        if kind.dtype == object:
            return ffi.NULL
        values = self.store.values[kind]
        return ffi.cast("char *", ffi.from_buffer(values)) + index * kind.dtype.itemsize

    def _lend_groups(self) -> None:
        begins, members = [0], []
        for i in range(len(self._instances)):
            for group in Group:
                members += [(i, group, s) for s in self.plan.layout.segments(i, group)]
                begins.append(len(members))
        table = self._lent(ffi.new("fm_segment[]", max(len(members), 1)))
        self._segments: list[tuple[int, Group, Segment, int]] = []
        for entry, (i, group, segment) in zip(table, members, strict=False):
            references = self._lent(ffi.new("uint32_t[]", list(segment.value_references)))
            self._segments.append((i, group, segment, int(ffi.cast("uintptr_t", references))))
            entry.type = TYPES.index(segment.type)
            entry.n, entry.size = len(segment.variables), segment.stop - segment.start
            entry.references = references
            entry.values = self._address(segment.type, segment.start)
        self.kernel.segment_begin = self._lent(ffi.new("int[]", begins))
        self.kernel.segments = table

    def _lend_moves(self) -> None:
        begins, moves = [0], list[Wire]()
        for i in range(len(self._instances)):
            for group in Group:
                moves += self.plan.wires.get((i, group), ())
                begins.append(sum(w.size for w in moves))
        table = self._lent(ffi.new("fm_move[]", max(begins[-1], 1)))
        elements = ((w, e) for w in moves for e in range(w.size))
        for entry, (wire, element) in zip(table, elements, strict=False):
            entry.source_type = TYPES.index(wire.source_type)
            entry.target_type = TYPES.index(wire.target_type)
            entry.transformed = not wire.transformation.is_identity
            entry.factor, entry.offset = wire.transformation.factor, wire.transformation.offset
            entry.source = self._address(wire.source_type, wire.source.start + element)
            entry.target = self._address(wire.target_type, wire.target.start + element)
        self.kernel.move_begin = self._lent(ffi.new("int[]", begins))
        self.kernel.moves = table
        self._lend_wires()

    def _lend_wires(self) -> None:
        """The same for polynomials, with the derivatives of the outputs."""
        begins, wires = [0], list[Wire]()
        for i in range(len(self._instances)):
            wires += self.plan.wires.get((i, Group.CONTINUOUS), ())
            begins.append(sum(w.size for w in wires))
        table = self._lent(ffi.new("fm_wire[]", max(begins[-1], 1)))
        elements = ((w, e) for w in wires for e in range(w.size))
        for entry, (wire, element) in zip(table, elements, strict=False):
            slots = [d.start + element for d in wire.derivatives]
            entry.source_instance = wire.link.source
            entry.source_type = TYPES.index(wire.source_type)
            entry.source = wire.source.start + element
            entry.n_derivatives = len(slots)
            entry.derivatives = self._lent(ffi.new("size_t[]", slots or [0]))
            entry.factor, entry.offset = wire.transformation.factor, wire.transformation.offset
        k, n = self.kernel, len(self._instances)
        k.wire_begin, k.wires = self._lent(ffi.new("int[]", begins)), table
        self.coefficients: dict[int, NDArray[np.float64]] = {}
        k.coefficients = self._lent(ffi.new("double *[]", n))
        self.centre = self._doubles(k, "centre", np.zeros(n))
        k.degree = self._lent(ffi.new("int[]", [-1] * n))
        k.told = self._lent(ffi.new("int[]", n))

    def _lend_outputs(self, n_buffers: int, history: int) -> None:
        k, store = self.kernel, self.store
        nominals = nominals_of_outputs(self.plan)
        before, _ = store.copy_of_outputs()
        k.n_history = history
        k.buffers = self._lent(ffi.new("void *[]", max(n_buffers, 1) * len(TYPES)))
        k.buffer_read = self._lent(ffi.new("double *[]", max(n_buffers, 1)))
        self._doubles(k, "read", store.read)
        for t, kind in enumerate(TYPES):
            if kind not in store.outputs or kind.dtype == object:
                continue
            k.output_sizes[t] = len(store.outputs[kind])
            k.outputs[t] = self._lent(ffi.from_buffer(store.outputs[kind]))
            k.before[t] = self._lent(ffi.from_buffer(before[kind]))
            if kind.is_float:
                k.nominals[t] = self._lent(ffi.from_buffer("double[]", nominals[kind]))
            for b, (values, _) in enumerate(store.buffers):
                k.buffers[b * len(TYPES) + t] = self._lent(ffi.from_buffer(values[kind]))
        for b, (_, read) in enumerate(store.buffers):
            k.buffer_read[b] = self._lent(ffi.from_buffer("double[]", read))

    def _lend_rows(self) -> None:
        k, columns = self.kernel, self.rows.columns()
        self._doubles(k, "times", self.rows.times)
        k.row_capacity, k.n_columns = len(self.rows.times), len(columns)
        table = self._lent(ffi.new("fm_column[]", max(len(columns), 1)))
        for entry, (source, target) in zip(table, columns, strict=False):
            entry.source = self._lent(ffi.from_buffer("char[]", source))
            # a part of a block: its rows lie a row of the whole block apart
            entry.rows = ffi.cast("char *", target.ctypes.data)
            entry.bytes, entry.stride = source.nbytes, target.strides[0]
        k.columns = table

    def _lend_instances(self, n_places: int) -> None:
        self._tables = [
            PythonInstance(self, i, instance) for i, instance in enumerate(self._instances)
        ]
        entries = self._lent(ffi.new("fm_instance[]", len(self._instances)))
        for i, (instance, table) in enumerate(zip(self._instances, self._tables, strict=True)):
            if isinstance(instance, BinaryInstance):
                entries[i] = self._lent(FmuInstance(table, instance, n_places)).entry[0]
            else:
                entries[i] = table.entry[0]
        self.kernel.instances = entries
        for i, group, segment, address in self._segments:
            self._tables[i].lend(group, segment, address)


def _experiment(experiment: Experiment) -> Any:
    stop, tolerance = experiment.stop, experiment.tolerance
    values = (
        experiment.start,
        stop or 0.0,
        tolerance or 0.0,
        stop is not None,
        tolerance is not None,
    )
    return ffi.new("fm_experiment *", values)


def _encode(instruction: Instruction, lent: Callable[[Any], Any]) -> dict[str, Any]:
    """An instruction as the fields of fm_instruction; ``lent`` keeps what they point to."""
    fields: dict[str, Any] = {"op": OPERATIONS.index(type(instruction))}
    match instruction:
        case Move(i, group) | Set(i, group) | Get(i, group):
            fields |= {"instance": i, "group": int(group)}
        case Fit(i, at, points, derivatives, buffers):
            fields |= {"instance": i, "at": at, "points": points, "derivatives": derivatives}
            fields |= {"n_buffers": len(buffers), "buffers": lent(ffi.new("int[]", buffers))}
        case Step(i, end):
            fields |= {"instance": i, "at": end}
        case Save(i, place) | Restore(i, place):
            fields |= {"instance": i, "place": place}
        case Keep(buffer) | Recall(buffer):
            fields |= {"place": buffer}
        case Repeat(least, most):
            fields |= {"least": least, "most": most}
        case Until(tolerance):
            fields |= {"at": tolerance}
        case Parallel(count):
            fields |= {"least": count}
        case Mode(i, state):
            fields |= {"instance": i, "group": STATES.index(state)}
    return fields
