"""The kernel, seen from Python: lends it the arrays and the FMUs, and says in exceptions what it says in numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from math import nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.instance import Instance
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Segment
from fmimaster.plan.plan import Plan, Route
from fmimaster.program.hook import Hook
from fmimaster.program.instructions import (
    Align,
    Call,
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
    Tick,
    Until,
    Update,
)
from fmimaster.program.outcome import Outcome, Reason, Stop
from fmimaster.program.store import OutputCopy, ValueStore
from fmimaster.run.convergence import nominals_of_outputs
from fmimaster.run.executor import Counted, Experiment, RowBlock, make_store
from fmimaster.run.native_instances import STATES, TYPES, FmuInstance, PythonInstance, functions_of
from fmimaster.system.model import DataType

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
    Align,
    Update,
    Tick,
    Call,
)
"""Instructions in the order of the kernel's fm_op."""

AUTOMATIC = 0
"""Number of threads that leaves the number to a measurement."""

MEASURE_EVERY: int = lib.FM_MEASURE_EVERY

WORTH_A_THREAD = 20e-6
"""Mean wall time in s of a DoStep above which threads pay."""

QUICK, SLOW = 0.02, 0.1
"""Wall time in s of one call of the kernel below and above which the next one does more or fewer steps: so progress is
shown and Ctrl-C is heard, and little time is spent between the calls."""


class KernelRows(RowBlock):
    """Rows that the kernel counts."""

    def __init__(self, plan: Plan, store: ValueStore, kernel: Any) -> None:
        self._kernel = kernel
        super().__init__(plan, store)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self._kernel.n_rows)

    @count.setter
    def count(self, value: int) -> None:
        self._kernel.n_rows = value


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
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.plan = plan
        self.hooks = hooks
        self.hook_error: BaseException | None = None
        """What a hook has raised, or Ctrl-C in Python that the kernel has called."""
        self.store = make_store(plan, n_buffers, history)
        self.kernel = k = ffi.new("fm_kernel *")
        self.rows: RowBlock = KernelRows(plan, self.store, k)
        self._instances = instances
        self._keep: list[Any] = []
        """What the kernel borrows."""
        self._programs: dict[int, tuple[Program, Any, bool]] = {}
        self._chunk = 16
        self._attempts = self._measured = 0
        self._done = ffi.new("int *")
        k.n_instances, k.continuous_group = len(instances), Group.CONTINUOUS
        self.experiment = experiment
        k.experiment = self._lent(_experiment(experiment))
        self._scratch = np.zeros(0)
        self._lend_instances(n_places)
        self._lend_calls()
        self._lend_moves()
        self._lend_routes()
        self._lend_outputs()
        self._lend_rows()
        n = len(instances)
        self.at = self._doubles(k, "at", np.full(n, experiment.start))
        self._doubles(k, "place_at", np.zeros(max(n_places, 1)))
        self._lend_events(n, max(n_places, 1))
        self._seconds = self._doubles(k, "seconds", np.zeros(n))
        self._automatic = n_threads == AUTOMATIC
        k.results = self._lent(ffi.new("fm_result[]", n))
        if n_threads > 1:
            self._start_threads(n_threads)

    @staticmethod
    def takes(plan: Plan) -> bool:
        """Whether the kernel can do this plan: text and binaries are moved and recorded in Python only."""
        moving = (Group.OUTPUTS, Group.CONTINUOUS, Group.DISCRETE, Group.TRIGGERS)
        return not any(
            segment.type.dtype == object
            for groups in plan.layout.groups
            for group in moving
            for segment in groups.get(group, ())
        ) and all(
            w.is_lossless
            for routes in (*plan.routes.values(), *plan.payload.values())
            for w in routes
        )

    @property
    def seconds(self) -> list[float]:
        """Wall time per instance in DoStep, in s, estimated from some of the attempts."""
        scale = self._attempts / self._measured if self._measured else 1.0
        return [float(s) * scale for s in self._seconds]

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        """Execute a program over the interval from begin to end, in s."""
        known = self._programs.get(id(program))  # single steps pay for each call in between
        _, code, has_steps = known or self._encoded(program)
        if has_steps:
            self._attempts += 1
            if self._automatic or self._attempts % MEASURE_EVERY == 1:
                return self._measured_run(code, begin, end)
        stop = lib.fm_run(self.kernel, code, begin, end)
        return self._outcome(stop) if stop else Outcome(end)

    def _measured_run(self, code: Any, begin: float, end: float) -> Outcome:
        self.kernel.measuring = 1
        stop = lib.fm_run(self.kernel, code, begin, end)
        self.kernel.measuring = 0
        self._measured += 1
        if self._automatic:
            self._decide_on_threads()
        return self._outcome(stop)

    def step(self, attempt: Program, commit: Program, begin: float, end: float) -> Outcome | None:
        """Attempt one interval, and commit it if nothing happened; see :class:`Executor`."""
        known = self._programs.get(id(attempt))
        _, code, _ = known or self._encoded(attempt)
        known = self._programs.get(id(commit))
        _, then, _ = known or self._encoded(commit)
        self._attempts += 1
        if self._automatic or self._attempts % MEASURE_EVERY == 1:
            outcome = self._measured_run(code, begin, end)
            if outcome != Outcome(end):
                return outcome
            lib.fm_run(self.kernel, then, end, end)
            return None
        stop = lib.fm_step(self.kernel, code, then, begin, end)
        return self._outcome(stop) if stop else None

    def rest(self) -> None:
        """Let threads sleep until they are needed again."""
        if self.kernel.pool:
            lib.fm_pool_rest(self.kernel.pool)

    def repeat(
        self,
        attempt: Program,
        commit: Program,
        times: Sequence[float] | NDArray[np.float64],
    ) -> tuple[int, Outcome]:
        """Attempt and commit interval after interval while nothing happens; see :class:`Executor`."""
        if len(times) == 2:  # a single step needs no arrays
            return 0, self.run(attempt, times[0], times[1])
        done = self._done
        n = min(len(times), self._chunk + 1)
        points = np.ascontiguousarray(times[:n], dtype=np.float64)
        since = perf_counter()
        stop = lib.fm_repeat(
            self.kernel,
            self._encoded(attempt)[1],
            self._encoded(commit)[1],
            ffi.from_buffer("double[]", points),
            n,
            done,
        )
        elapsed = perf_counter() - since
        if elapsed < QUICK:
            self._chunk = min(4 * self._chunk, len(self.rows.times))
        elif elapsed > SLOW:
            self._chunk = max(1, self._chunk // 2)
        self._attempts += done[0] + 1
        self._measured += done[0] // MEASURE_EVERY + 1
        if self._automatic:
            self._decide_on_threads()
        return done[0], self._outcome(stop)

    def _outcome(self, stop: int) -> Outcome:
        k = self.kernel
        if stop == lib.FM_RAN:
            return Outcome(k.end)
        if stop == lib.FM_HAPPENED:
            events = tuple(self._asking.nonzero()[0].tolist())
            end = float(self.at.min()) if k.terminate else k.limit
            return Outcome(end, terminate=bool(k.terminate), event_requests=events)
        if stop == lib.FM_FAILED:
            self._raise(k.stop_instance, k.failure_status, k.failure_function)
        reason = {
            lib.FM_DISCARDED: Reason.DISCARDED,
            lib.FM_NOT_CONVERGED: Reason.NOT_CONVERGED,
            lib.FM_EARLY: Reason.EARLY,
        }[stop]
        messages: tuple[str, ...] = ()
        if reason is Reason.DISCARDED:
            instance = self._instances[k.stop_instance]
            binary = isinstance(instance, BinaryInstance)
            messages = (
                tuple(instance.messages.last) if binary else self._tables[k.stop_instance].messages
            )
        change = k.change if reason is Reason.NOT_CONVERGED else 0.0
        stopped = Stop(reason, k.stop_instance, k.stop_instruction, k.stop_time, change, messages)
        return Outcome(k.stop_time, bool(k.terminate), stopped)

    def _raise(self, i: int, status: int, function: Any) -> None:
        """The error of a call, in the words of the instance that was called."""
        error = self.hook_error or self._tables[i].error
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

    def _encoded(self, program: Program) -> tuple[Program, Any, bool]:
        """The program, as the kernel reads it, and whether it steps; kept together, since it is known by its identity."""
        known = self._programs.get(id(program))
        if known is None:
            entries = [
                entry | {"line": line}
                for line, instruction in enumerate(program.instructions)
                for entry in self._encode(instruction)
            ]
            for this, following in pairwise(entries):
                if this["op"] == lib.FM_MOVE and following["op"] == lib.FM_SET:
                    this["op"] = lib.FM_MOVE_SET
            code = self._lent(ffi.new("fm_instruction[]", [*entries, {"op": lib.FM_END}]))
            self._lend_polynomials(program)
            has_steps = any(isinstance(i, Step) for i in program.instructions)
            known = self._programs[id(program)] = (program, code, has_steps)
        return known

    def _encode(self, instruction: Instruction) -> list[dict[str, Any]]:
        """An instruction as the fields of fm_instruction; of several for an ALIGN."""
        fields: dict[str, Any] = {"op": OPERATIONS.index(type(instruction))}
        match instruction:
            case Move(i, Group.TRIGGERS):
                fields |= {"op": lib.FM_MOVE_TRIGGERS, "instance": i} | self._triggers[i]
            case Set(i, Group.TRIGGERS):
                fields |= {"op": lib.FM_SET_TRIGGERS, "instance": i} | self._triggers[i]
            case Get(i, Group.CLOCKS):
                fields |= {"op": lib.FM_GET_CLOCKS, "instance": i}
                fields |= self._calls[i, Group.CLOCKS]
            case Align(i, place):
                segments = self.plan.layout.segments
                back: list[Instruction] = [Restore(i, place)]
                back += [Set(i, Group.CONTINUOUS)] if segments(i, Group.CONTINUOUS) else []
                back += [Step(i, 1.0)]
                back += [Get(i, Group.OUTPUTS)] if segments(i, Group.OUTPUTS) else []
                last = {"op": lib.FM_ALIGNED, "instance": i}
                steps = [*(entry for b in back for entry in self._encode(b)), last]
                return [fields | {"instance": i, "least": len(steps)}, *steps]
            case Tick(trigger):
                fields |= {"place": trigger}
            case Call(hook):
                fields |= {"place": hook}
            case Update(i):
                fields |= {"instance": i}
            case Move(i, group):
                fields |= {"instance": i, "group": int(group)} | self._moves[i, group]
            case Set(i, group) | Get(i, group):
                fields |= {"instance": i, "group": int(group)} | self._calls[i, group]
            case Fit(i, at, points, derivatives, buffers):
                numbers = self._lent(ffi.new("int[]", buffers))
                n = len(buffers) + (len(self.store.history) if instruction.history else 0)
                held = nan if instruction.held is None else instruction.held
                fit = ffi.new("fm_fit *", (points, derivatives, len(buffers), n, numbers, held))
                fields |= {"instance": i, "at": at, "fit": self._lent(fit)}
            case Step(i, end):
                fields |= {"instance": i, "at": end}
                planned = self.plan.instances[i]
                fields |= {"least": planned.may_return_early, "most": planned.event_mode}
                if self._limited:
                    fields["op"] = lib.FM_STEP_LIMITED
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
        return [fields]

    def _lend_polynomials(self, program: Program) -> None:
        """Room for the coefficients that the FITs of a program write."""
        k = self.kernel
        k.fits |= any(isinstance(i, Fit) for i in program.instructions)
        for fit in (i for i in program.instructions if isinstance(i, Fit)):
            rows = fit.points * (fit.derivatives + 1)
            i = fit.instance
            n = sum(s.stop - s.start for s in self.plan.layout.segments(i, Group.CONTINUOUS))
            if i not in self.coefficients or len(self.coefficients[i]) < rows:
                self.coefficients[i] = np.zeros((rows, n))
                k.coefficients[i] = ffi.from_buffer("double[]", self.coefficients[i])
            if (n + 5) * (rows + 1) > len(self._scratch):
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

    def _lend_calls(self) -> None:
        """The FMI calls that SET and GET make, per instance and group."""
        self._calls: dict[tuple[int, Group], dict[str, Any]] = {}
        for i in range(len(self._entries)):
            for group in Group:
                segments = self.plan.layout.segments(i, group)
                calls = self._lent(ffi.new("fm_segment[]", len(segments)))
                for call, segment in zip(calls, segments, strict=True):
                    self._lend_call(i, call, group, segment)
                self._calls[i, group] = {"n": len(segments), "segments": calls}

    def _lend_call(self, i: int, call: Any, group: Group, segment: Segment) -> None:
        """One FMI call that reads or sets a segment."""
        references = ffi.new("uint32_t[]", list(segment.value_references))
        call.references = self._lent(references)
        call.n, call.size = len(segment.variables), segment.stop - segment.start
        call.values = self._address(segment.type, segment.start)
        self._entries[i].bind(call, group, segment)

    def _lend_events(self, n: int, n_places: int) -> None:
        """Who asks for events, what triggers them, and how often what was called."""
        k = self.kernel
        self._limited = any(i.may_return_early for i in self.plan.instances)
        k.has_events = any(i.may_return_early or i.event_mode for i in self.plan.instances)
        k.limit = k.end = self.experiment.start
        self._asking = np.zeros(n, np.uint8)
        k.asking = self._lent(ffi.from_buffer("uint8_t[]", self._asking))
        k.asking_before = self._lent(ffi.new("uint8_t[]", n))
        self.next_events = self._doubles(k, "next_events", np.full(n, np.inf))
        self.calls = np.zeros((len(Counted), n), np.int64)
        for name, row in zip(("steps", "restores", "events"), self.calls, strict=True):
            setattr(k, name, self._lent(ffi.from_buffer("int64_t[]", row)))
        k.stepped = self._lent(ffi.new("int64_t[]", n))
        k.place_stepped = self._lent(ffi.new("int64_t[]", n_places))
        if self.store.active.size:
            k.active = self._lent(ffi.from_buffer("uint8_t[]", self.store.active.view(np.uint8)))
        k.python, k.call = self._lent(ffi.new_handle(self)), lib.fm_python_call
        self._triggers = {i: self._lent_triggers(i) for i in range(n)}

    def _lent_triggers(self, i: int) -> dict[str, Any]:
        """The triggers of an instance, and what comes along."""
        chosen = self.plan.triggers_of(i)
        triggers = self._lent(ffi.new("fm_trigger[]", max(len(chosen), 1)))
        for entry, k in zip(triggers, chosen, strict=False):
            trigger = self.plan.triggers[k]
            entry.active = self.kernel.active + k
            if trigger.counter is not None:
                entry.counter = ffi.cast(
                    "int32_t *", self._address(DataType.INT32, trigger.counter)
                )
            sources = [
                ffi.cast("const uint8_t *", self._address(DataType.CLOCK, s))
                for s in trigger.sources
            ]
            entry.sources = self._lent(ffi.new("const uint8_t *[]", sources or [ffi.NULL]))
            entry.n_sources, entry.n_segments = len(sources), len(trigger.segments)
            moves = self._lent_moves(self.plan.payload.get(k, ()))
            entry.n_moves, entry.moves = moves["n"], moves["moves"]
            calls = self._lent(ffi.new("fm_segment[]", len(trigger.segments)))
            for call, segment in zip(calls, trigger.segments, strict=True):
                self._lend_call(i, call, Group.TRIGGERS, segment)
            entry.segments = calls
        return {"n": len(chosen), "triggers": triggers}

    def _lend_moves(self) -> None:
        """What MOVE moves, per instance and group: element by element."""
        self._moves = {key: self._lent_moves(routes) for key, routes in self.plan.routes.items()}

    def _lent_moves(self, routes: Sequence[Route]) -> dict[str, Any]:
        """What moves over some routes."""
        elements = [(w, e) for w in routes for e in range(w.size)]
        moves = self._lent(ffi.new("fm_move[]", len(elements)))
        for move, (route, element) in zip(moves, elements, strict=True):
            types, is_identity = (
                (route.source_type, route.target_type),
                route.transformation.is_identity,
            )
            move.source_type, move.target_type = map(TYPES.index, types)
            move.transformed = not is_identity
            move.plain = is_identity and types == (DataType.FLOAT64, DataType.FLOAT64)
            move.factor, move.offset = route.transformation.factor, route.transformation.offset
            move.source = self._address(route.source_type, route.source.start + element)
            move.target = self._address(route.target_type, route.target.start + element)
        return {"n": len(elements), "moves": moves}

    def _lend_routes(self) -> None:
        """The same for polynomials, with the derivatives of the outputs."""
        begins, routes = [0], list[Route]()
        for i in range(len(self._instances)):
            routes += self.plan.routes.get((i, Group.CONTINUOUS), ())
            begins.append(sum(w.size for w in routes))
        table = self._lent(ffi.new("fm_route[]", max(begins[-1], 1)))
        elements = ((w, e) for w in routes for e in range(w.size))
        for entry, (route, element) in zip(table, elements, strict=False):
            slots = [d.start + element for d in route.derivatives]
            entry.source_instance = route.link.source
            entry.source_type = TYPES.index(route.source_type)
            entry.source = route.source.start + element
            entry.n_derivatives = len(slots)
            entry.derivatives = self._lent(ffi.new("size_t[]", slots or [0]))
            entry.factor, entry.offset = route.transformation.factor, route.transformation.offset
        k, n = self.kernel, len(self._instances)
        k.route_begin, k.routes = self._lent(ffi.new("int[]", begins)), table
        self.coefficients: dict[int, NDArray[np.float64]] = {}
        k.coefficients = self._lent(ffi.new("double *[]", n))
        self.centre = self._doubles(k, "centre", np.zeros(n))
        k.degree = self._lent(ffi.new("int[]", [-1] * n))
        k.told = self._lent(ffi.new("int[]", n))

    def _lend_outputs(self) -> None:
        k, store = self.kernel, self.store
        nominals = nominals_of_outputs(self.plan)
        before, _ = store.copy_of_outputs()
        k.n_history = len(store.history)
        k.history, k.buffers = map(self._lent_copies, (store.history, store.buffers))
        self._doubles(k, "read", store.read)
        for t, kind in enumerate(TYPES):
            if kind not in store.outputs or kind.dtype == object:
                continue
            k.output_sizes[t] = len(store.outputs[kind])
            k.outputs[t] = self._lent(ffi.from_buffer(store.outputs[kind]))
            k.before[t] = self._lent(ffi.from_buffer(before[kind]))
            if kind.is_float:
                k.nominals[t] = self._lent(ffi.from_buffer("double[]", nominals[kind]))

    def _lent_copies(self, copies: Sequence[OutputCopy]) -> Any:
        """Copies of the outputs."""
        table = self._lent(ffi.new("fm_copy[]", max(len(copies), 1)))
        for entry, (values, read) in zip(table, copies, strict=False):
            entry.read = self._lent(ffi.from_buffer("double[]", read))
            for kind, array in values.items():
                if kind.dtype != object:
                    entry.outputs[TYPES.index(kind)] = self._lent(ffi.from_buffer(array))
        return table

    def _lend_rows(self) -> None:
        k, columns = self.kernel, self.rows.columns()
        self._doubles(k, "times", self.rows.times)
        k.row_capacity, k.n_columns = self.rows.capacity, len(columns)
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
        self._entries: list[PythonInstance | FmuInstance] = []
        functions: dict[int, Any] = {}  # per library
        for instance, table in zip(self._instances, self._tables, strict=True):
            if isinstance(instance, BinaryInstance):
                if instance.library not in functions:
                    functions[instance.library] = functions_of(instance)
                shared = functions[instance.library]
                self._entries.append(FmuInstance(table, instance, n_places, shared))
            else:
                self._entries.append(table)
        self.kernel.instances = self._lent(
            ffi.new("fm_instance[]", [e.entry[0] for e in self._entries])
        )


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
