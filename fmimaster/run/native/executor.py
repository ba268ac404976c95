"""The kernel as an executor: runs programs, and turns what it returns into outcomes and exceptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from fmimaster.base.memory import usable_cores
from fmimaster.fmu.instance import Instance
from fmimaster.fmu.kernel_entry import PartitionCallbacks, UpdateCallback
from fmimaster.instants.grid import GridTimes
from fmimaster.instants.instant import Times
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, RuleTwin, Twin
from fmimaster.program.instructions.base import Program
from fmimaster.run.executor import (
    ControlledSteps,
    EventsAhead,
    Halt,
    InitialTimes,
    Outcome,
    Reason,
    Repeated,
    make_store,
)
from fmimaster.run.log import Stretch
from fmimaster.run.native.encoding import ProgramEncoder
from fmimaster.run.native.entries import make_entries
from fmimaster.run.native.fmu_entry import make_update_callback
from fmimaster.run.native.header import Context, struct_types
from fmimaster.run.native.instances import KernelEntry
from fmimaster.run.native.objects import KernelRows, Objects
from fmimaster.run.native.shared import call_of, integrator_call, new_kernel
from fmimaster.run.native.tables import Tables
from fmimaster.run.rows import Registers

AUTOMATIC = 0
"""Number of threads that leaves the number to a measurement."""

_CHANGING = [
    name
    for name, kind in struct_types(ffi.typeof("fm_kernel")).items()
    if kind.kind == "primitive" and name not in ("fits", "n_rows", "row_capacity")
]
"""Numbers of the kernel that runs change; those of the rows belong to these."""

FIRST_TRIAL = 5e-3
"""Wall time in s after which an automatic number of threads is tried first: a hundred times what it takes to wake one."""


class NativeExecutor:
    """Executes programs by the kernel. Parameters as of :class:`fmimaster.run.reference.executor.ReferenceExecutor`."""

    def __init__(
        self,
        plan: Plan,
        instances: Sequence[Instance],
        experiment: InitialTimes,
        *,
        n_threads: int = 1,
        n_places: int = 0,
        n_buffers: int = 0,
        history: int = 0,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.kernel = k = new_kernel()
        self.store = make_store(plan, n_buffers, history)
        self.registers = Registers(len(instances), n_places, n_buffers, experiment.start)
        self.rows = KernelRows(plan, self.store, k)
        self.next_events, self.calls = self.registers.next_events, self.registers.calls
        self._context = Context(plan, self.store, self.registers)
        objects = Objects(self._context, self.rows.sample)
        self._lender = lender = Tables(k, plan, self.store, objects)
        self._entries = make_entries(self._context, instances, n_places)
        lender.lend_all(self.registers, self.rows, experiment, self._entries)
        self._encode = ProgramEncoder(lender, self._entries, self._context, hooks)
        self._known = self._encode.known
        self._requests = np.zeros(len(instances), np.uint8)
        self._seconds = np.zeros(len(instances))
        lender.fill(k, requests=self._requests, seconds=self._seconds)
        self._ahead = lender.ahead()
        self._done, self._attempted = ffi.new("int *"), ffi.new("int *")
        self._codes: list[Any] = []
        self._code_table: Any = None
        self._stepping: tuple[Program | None, Program | None, Any] = None, None, None
        """Attempt and commit of the last single steps, and what does them."""
        _note_crowd(self._entries)
        self._start_threads(n_threads)
        self._at_first = {name: getattr(k, name) for name in _CHANGING}

    is_estimating = True

    @property
    def entries(self) -> Sequence[KernelEntry]:
        """All instances as the kernel calls them."""
        return self._entries

    def encoded(self, program: Program) -> Any:
        """A program as the kernel reads it: an array of fm_instruction."""
        return self._encode(program).code

    def lent(self) -> Iterator[Any]:
        """All memory that the kernel may use: arrays of NumPy and of C."""
        yield self.kernel
        yield from self._lender.kept
        yield from self.store.values.values()
        for entry in self._entries:
            yield from entry.lent_memory()

    def begin_anew(self) -> None:
        """As :meth:`Executor.begin_anew`."""
        for name, value in self._at_first.items():
            setattr(self.kernel, name, value)
        self._requests[:] = 0
        self._seconds[:] = 0.0

    @staticmethod
    def takes(plan: Plan) -> bool:
        """Whether the kernel can do this plan: conversions of types that can lose values are done in Python only."""
        return all(
            w.is_lossless
            for routes in (*plan.routes.values(), *(t.payload for t in plan.triggers))
            for w in routes
        )

    @staticmethod
    def update_callback() -> UpdateCallback:
        """What an instance calls in Intermediate Update Mode; a new one for each."""
        return make_update_callback()

    @staticmethod
    def partition_callbacks() -> PartitionCallbacks:
        """What an instance calls in Scheduled Execution; new ones for each."""
        from fmimaster.run.native.scheduled import make_partition_callbacks  # few FMUs need it

        return make_partition_callbacks()

    @property
    def seconds(self) -> list[float]:
        """Wall time per instance in DoStep, in s, estimated from some of the attempts."""
        k = self.kernel
        scale = k.attempts / k.stands_for if k.stands_for else 1.0
        return [float(s) * scale for s in self._seconds]

    def run(self, program: Program, begin: float, end: float) -> Outcome:
        """Execute a program over the interval from begin to end, in s."""
        encoded = self._known.get(id(program)) or self._encode(program)
        stop = lib.fm_run(self.kernel, encoded.code, begin, end)
        return self.outcome(stop) if stop else Outcome(end)

    def stepping(self, attempt: Program, commit: Program) -> Any:
        """Attempts an interval, and commits it if nothing happened; see :class:`Executor`."""
        known = self._stepping  # single steps pay for what is made here
        if known[0] is not attempt or known[1] is not commit:
            codes = self._encode(attempt).code, self._encode(commit).code
            known = self._stepping = attempt, commit, partial(lib.fm_step, self.kernel, *codes)
        return known[2]

    def ask(self) -> None:
        """Return from repeat after the present step; called from another thread."""
        self.kernel.asked = 1

    @property
    def reached(self) -> float:
        """Start in s of the interval on which it works, or has worked last."""
        return float(self.kernel.begin)

    def present_call(self) -> tuple[int, str] | None:
        """Number of the instance that is being called, and the function."""
        present = self.kernel.present
        if present == ffi.NULL:
            return None
        found = call_of(present[0], bool(self.registers.initialized[present.instance]))
        if found is None or found[1] != "DoStep":
            return found
        i = found[0]
        prefix = self._context.plan.instances[i].model.function_prefix
        return i, integrator_call(int(self.registers.calling[i]), prefix) or "DoStep"

    def repeat(
        self,
        attempts: Sequence[Program],
        commit: Program,
        times: Times,
        watches: Any = None,
        events: EventsAhead | None = None,
    ) -> Repeated:
        """Attempt and commit interval after interval while nothing happens; see :class:`Executor`."""
        if len(times) == 2:  # a single step needs no arrays
            return Repeated(0, self.run(attempts[0], times[0], times[1]))
        done, ahead = self._done, self._ahead
        kept = None if events is None else self._take(events)
        points = self._points(times)
        stop = lib.fm_repeat(
            self.kernel,
            self._pattern(attempts),
            len(attempts),
            self._encode(commit).code,
            points[0],
            *_lent(watches),
            ffi.NULL if kept is None else ahead,
            done,
        )
        self.kernel.asked = 0
        rows = ahead.rows if kept is not None and ahead.happened else None
        return Repeated(done[0], self.outcome(stop), rows)

    @staticmethod
    def _points(times: Times) -> tuple[Any, Any]:
        """Times as the kernel reads them, and what must be kept meanwhile."""
        if isinstance(times, GridTimes):
            given = ffi.NULL, times.begin, times.resolution, times.first, times.step
            return ffi.new("fm_times *", (len(times), *given)), None
        array = ffi.from_buffer("double[]", np.ascontiguousarray(times, dtype=np.float64))
        return ffi.new("fm_times *", {"n": len(times), "array": array}), array

    def _take(self, events: EventsAhead) -> Any:
        """Write events that are known ahead where the kernel reads them; returns what must be kept meanwhile."""
        ahead = self._ahead
        programs = [self._encode(program).code for program in events.programs]
        kept = ffi.from_buffer("int32_t[]", events.numbers), ffi.new("fm_instruction *[]", programs)
        ahead.numbers, ahead.programs = kept
        ahead.after = ffi.NULL if events.after is None else self._encode(events.after).code
        ahead.last, ahead.happened = events.last, False
        return kept

    def watches(self, twins: Sequence[Twin]) -> Any:
        """What ends stretches of steps early, for repeat; see :class:`Executor`."""
        # few runs need it
        from fmimaster.run.native.lending import lend_watches

        return lend_watches(self._lender, self._context, twins)

    def controlled(
        self, twin: RuleTwin[Any], watches: Any = None, first_code: int = 0
    ) -> ControlledSteps:
        """Steps of the sizes that the twin of a rule chooses; see :class:`Executor`."""
        # few runs need it
        from fmimaster.run.native.lending import lend_rule

        rule = lend_rule(self._lender, self._context, twin.data, first_code)
        return partial(self._control, rule, watches)

    def _control(
        self,
        rule: Any,
        watches: Any,
        attempt: Program,
        commit: Program,
        stretch: Stretch,
        last: float,
    ) -> tuple[int, Outcome | None]:
        """The same, of a rule that the kernel has."""
        done, attempted = self._done, self._attempted
        stop = lib.fm_control(
            self.kernel,
            self._encode(attempt).code,
            self._encode(commit).code,
            rule,
            last,
            len(stretch.times) - 1,
            ffi.from_buffer("double[]", stretch.times),
            ffi.from_buffer("int64_t[]", stretch.codes),
            *_lent(watches),
            done,
            attempted,
        )
        self.kernel.asked = 0
        return done[0], self.outcome(stop) if attempted[0] else None

    def _pattern(self, attempts: Sequence[Program]) -> Any:
        """The encoded programs of a pattern; the last one is known."""
        codes = [self._encode(attempt).code for attempt in attempts]
        if self._codes != codes:
            self._codes, self._code_table = codes, ffi.new("fm_instruction *[]", codes)
        return self._code_table

    def outcome(self, happened: int) -> Outcome:
        """The outcome of what the kernel returned."""
        k = self.kernel
        if happened == lib.FM_RAN:
            return Outcome(k.end)
        if happened == lib.FM_HAPPENED:
            events = tuple(self._requests.nonzero()[0].tolist())
            end = float(self.registers.at.min()) if k.terminate else k.limit
            return Outcome(end, terminate=bool(k.terminate), event_requests=events)
        if happened == lib.FM_FAILED:
            self._raise(k.stop_instance, k.failure_status, k.failure_function)
        reason = {
            lib.FM_DISCARDED: Reason.DISCARDED,
            lib.FM_NOT_CONVERGED: Reason.NOT_CONVERGED,
            lib.FM_EARLY: Reason.EARLY,
            lib.FM_ENDED: Reason.ENDED,
        }[happened]
        messages: tuple[str, ...] = ()
        if reason is Reason.DISCARDED:
            messages = self._entries[k.stop_instance].messages()
        change = k.change if reason is Reason.NOT_CONVERGED else 0.0
        stopped = Halt(reason, k.stop_instance, k.stop_instruction, k.stop_time, change, messages)
        return Outcome(k.stop_time, bool(k.terminate), stopped)

    def _raise(self, i: int, status: int, function: Any) -> None:
        """The error of a call, in the words of the instance that was called."""
        if self._context.raised is not None:
            raise self._context.raised
        name = ffi.string(function).decode() if function else ""  # none was called from C
        k = self.kernel
        self._entries[i].raise_failure(name, status, k.failure_size)

    def _start_threads(self, wanted: int) -> None:
        """As many threads as can be used; whether an automatic number of them is used is decided again and again."""
        k, is_automatic = self.kernel, wanted == AUTOMATIC
        n = min(usable_cores() if is_automatic else wanted, len(self._entries))
        if n < 2:
            return
        k.pool = self._lender.lent(ffi.gc(lib.fm_pool_new(n), lib.fm_pool_free))
        k.threaded = not is_automatic
        if is_automatic:
            k.tuner = self._lender.lent(ffi.new("fm_tuner *"))
            lib.fm_tuner_begin(k.tuner, FIRST_TRIAL)


def _note_crowd(entries: Sequence[KernelEntry]) -> None:
    """Let processes give turns to each other before they sleep, where they and this one are more than can run."""
    hosts = [ffi.cast("fm_isolated *", e.entry.self) for e in entries if e.entry.begin_step]
    for host in hosts:
        host.message.is_crowded = len(hosts) >= usable_cores()


def _lent(watches: Any) -> tuple[Any, int]:
    """Watches and their number as the kernel takes them."""
    return (ffi.NULL, 0) if watches is None else (watches, len(watches))
