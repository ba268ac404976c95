"""Memory that the kernel borrows: the store, registers and rows; and hooks, in C where there is a twin, else in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import OutputCopy, ValueStore
from fmimaster.run.executor import InitialTimes
from fmimaster.run.native.header import TYPES, Context, LentMemory, extern, struct_types
from fmimaster.run.native.instances import KernelEntry
from fmimaster.run.native.objects import KernelRows, Objects
from fmimaster.run.rows import Registers
from fmimaster.system.model import DataType


class Lender(LentMemory):
    """Lends what programs and rows need to the kernel.

    Parameters
    ----------
    kernel : fm_kernel
    plan : Plan
    store : ValueStore
    objects : Objects
        Has the arrays of text and binaries.
    """

    def __init__(self, kernel: Any, plan: Plan, store: ValueStore, objects: Objects) -> None:
        super().__init__()
        self.kernel = kernel
        self.plan = plan
        self.store = store
        self.objects = objects
        self._firsts: dict[DataType, Any] = {}
        """Address of the first element in the store."""

    def _as(self, kind: Any, value: Any) -> Any:
        """A value of a type of C; text and binaries as addresses of objects."""
        if isinstance(value, np.ndarray) and value.dtype == object:
            return ffi.cast(kind, self.lent(self.objects.lend(value)))
        return super()._as(kind, value)

    def address(self, kind: DataType, index: int) -> Any:
        """Address of an element of the store."""
        if kind not in self._firsts:
            self._firsts[kind] = ffi.cast("char *", ffi.from_buffer(self.store.values[kind]))
        return self._firsts[kind] + index * kind.dtype.itemsize

    # Once, when the executor is made

    def lend_all(
        self,
        registers: Registers,
        rows: KernelRows,
        experiment: InitialTimes,
        entries: Sequence[KernelEntry],
    ) -> None:
        """Everything that does not depend on a program."""
        planned = self.plan.instances
        self.fill(
            self.kernel,
            n_instances=len(planned),
            continuous_group=Group.CONTINUOUS,
            experiment=self.lent(_experiment(experiment)),
            stays_ahead=np.array([i.stays_ahead for i in planned], np.uint8),
            has_events=any(i.may_return_early or i.event_mode for i in planned),
            limit=experiment.start,
            end=experiment.start,
            instances=[e.entry[0] for e in entries],
            objects=self.lent(self.objects).functions[0],
            results=self.table("fm_result", [{}] * len(entries)),
            overlaps=sum(bool(e.entry.begin_step) for e in entries) > 1,
        )
        self._lend_registers(registers)
        self._lend_outputs()
        self._lend_passes()
        self._lend_courses()
        self._lend_routes()
        self._lend_rows(rows)

    def _lend_registers(self, r: Registers) -> None:
        steps, restores, events = r.calls
        same = {
            name: array
            for name, array in vars(r).items()
            if name in struct_types(ffi.typeof(self.kernel))
        }
        follows = r.follows_polynomials
        self.fill(
            self.kernel, follows=follows, steps=steps, restores=restores, events=events, **same
        )

    def _lend_outputs(self) -> None:
        k, store = self.kernel, self.store
        nominals = self.plan.nominals()
        history, buffers = map(self._lent_copies, (store.history, store.buffers))
        self.fill(k, history=history, buffers=buffers, read=store.read, active=store.active)
        k.n_history = len(store.history)
        for kind, array in store.values.items():
            if kind.dtype == object:
                self.objects.lend(array)
        sizes = [{"type": TYPES[kind], "n": len(a)} for kind, a in store.outputs.items() if len(a)]
        self.fill(k, all_outputs=self.table("fm_range", sizes), n_types=len(sizes))
        for kind, array in store.outputs.items():
            t = TYPES[kind]
            k.output_sizes[t] = len(array)
            k.outputs[t] = self.lent(ffi.from_buffer(array))
            if kind.is_float:
                k.nominals[t] = self.lent(ffi.from_buffer("double[]", nominals[kind]))

    def _lend_passes(self) -> None:
        """Room for what REPEATs compare."""
        n = max(len(self.plan.instances), 1)
        for passes in self.kernel.passes:
            self.fill(passes, requests_at_first=[0] * n)
            for kind, array in self.store.outputs.items():
                passes.outputs_before[TYPES[kind]] = self._copy_of_outputs(kind, array.copy())

    def _copy_of_outputs(self, kind: DataType, array: NDArray[Any]) -> Any:
        """An array to which outputs are copied."""
        is_object = kind.dtype == object
        return self.lent(self.objects.lend(array) if is_object else ffi.from_buffer(array))

    def _lent_copies(self, copies: Sequence[OutputCopy]) -> Any:
        """Copies of the outputs."""
        table = self.table("fm_copy", [{"read": read} for _, read in copies])
        for entry, (values, _) in zip(table, copies, strict=False):
            for kind, array in values.items():
                entry.outputs[TYPES[kind]] = self._copy_of_outputs(kind, array)
        return table

    def _lend_courses(self) -> None:
        self.fill(self.kernel, **vars(self.store.courses))

    def _lend_routes(self) -> None:
        """The routes of continuous inputs for polynomials, element by element, with the derivatives of the outputs."""
        begins, routes = [0], list[Route]()
        for i in range(len(self.plan.instances)):
            chosen = self.plan.routes.get((i, Group.CONTINUOUS), ())
            routes += chosen
            begins.append(begins[-1] + sum(w.size for w in chosen))
        elements = [
            {
                "source_instance": route.link.source,
                "source_type": TYPES[route.source_type],
                "source": route.source.start + element,
                "left": route.at_left.source.start + element,
                "n_derivatives": len(route.derivatives),
                "derivatives": [d.start + element for d in route.derivatives],
                "factor": route.transformation.factor,
                "offset": route.transformation.offset,
            }
            for route in routes
            for element in range(route.size)
        ]
        self.fill(self.kernel, route_begin=begins, routes=self.table("fm_route", elements))

    def _lend_rows(self, rows: KernelRows) -> None:
        columns = [
            {
                "source": source,
                # a part of a block: its rows lie a row of the whole block apart
                "rows": ffi.cast("char *", target.ctypes.data),
                "bytes": source.nbytes,
                "stride": target.strides[0],
                "is_compared": is_compared,
            }
            for source, target, is_compared in rows.columns()
        ]
        sampled = [
            {"values": values, "sampled": newest, "n": len(values)}
            for values, newest in rows.sampled()
        ]
        self.fill(
            self.kernel,
            times=rows.times,
            row_capacity=rows.capacity,
            n_columns=len(columns),
            columns=self.table("fm_column", columns),
            n_sampled=len(sampled),
            sampled=self.table("fm_sampled", sampled),
        )
        if rows.clocks is not None:
            self.fill(self.kernel, clocks=rows.clocks, n_clocks=rows.clocks.shape[1])


def _experiment(experiment: InitialTimes) -> Any:
    stop = experiment.stop
    return ffi.new("fm_experiment *", (experiment.start, stop or 0.0, stop is not None))


@dataclass(frozen=True, slots=True)
class _Function:
    """A hook or a watch in C.

    Attributes
    ----------
    call : function of the kernel
    data : str
        Name of the structure that it takes. Its fields have the names of the twin's numbers and arrays.
    """

    call: Any
    data: str
    renew: Any = ffi.NULL
    """Of a watch: what is called after an event inside a stretch."""
    after: Any = ffi.NULL
    """Of a watch: what is asked about the step after such an event."""
    clips: Any = ffi.NULL
    """Of a watch: what may bring the end of the next step forward."""


TWINS: Mapping[str, _Function] = {
    "assumed outputs": _Function(lib.fm_assumed_outputs, "fm_assumed_outputs_data"),
    "weighted change": _Function(lib.fm_weighted_change, "fm_weighted_change_data"),
    "power bonds": _Function(lib.fm_bond_powers, "fm_bonds_data"),
    "power bonds at an instant": _Function(lib.fm_bond_powers_at_instant, "fm_bonds_data"),
    "power bonds with refreshed outputs": _Function(lib.fm_bond_powers_refreshed, "fm_bonds_data"),
    "step size": _Function(lib.fm_step_size, "fm_step_size_data"),
    "prediction error": _Function(lib.fm_prediction_error, "fm_prediction_error_data"),
    "difference of energies": _Function(lib.fm_energy_difference, "fm_energy_difference_data"),
    "errors of inputs": _Function(lib.fm_input_errors, "fm_input_errors_data"),
    "start of a loop": _Function(lib.fm_loop_begin, "fm_loop_data"),
    "real time": _Function(lib.fm_keep_real_time, "fm_real_time_data"),
    "sweep of a loop": _Function(lib.fm_loop_sweep, "fm_loop_data"),
}
"""The hooks that are written in C, by the names of their twins."""

WATCHES: Mapping[str, _Function] = {
    "changes": _Function(lib.fm_is_unchanged, "fm_changes_data", lib.fm_note_values),
    "event clock": _Function(
        lib.fm_clock_is_quiet,
        "fm_clock_data",
        after=lib.fm_clock_is_quiet_after,
        clips=lib.fm_clock_clips,
    ),
    "errors of inputs": _Function(lib.fm_inputs_are_near, "fm_input_errors_data"),
    "observer": _Function(lib.fm_observer_is_quiet, "fm_observer_data"),
}
"""What ends stretches of steps, by the names of the twins."""


def lend_hook(lender: Lender, context: Context, hook: Hook) -> Any:
    """A hook, to be called by the kernel."""
    twin = hook.twin(lender.store)
    if twin is None:
        handle = lender.lent(ffi.new_handle((context, hook)))
        return lender.lent(ffi.new("fm_hook *", (lib.fm_python_call, handle)))
    function = TWINS[twin.name]
    data = lend_data(lender, context, twin, function.data)
    return lender.lent(ffi.new("fm_hook *", (function.call, data)))


def lend_watches(lender: Lender, context: Context, twins: Sequence[Twin]) -> Any:
    """What fm_repeat asks after each attempt: an array of them."""
    functions = [WATCHES[twin.name] for twin in twins]
    watches = [
        (f.call, f.renew, f.after, f.clips, lend_data(lender, context, twin, f.data))
        for f, twin in zip(functions, twins, strict=True)
    ]
    return lender.lent(ffi.new("fm_watch[]", watches))


RULES: Mapping[str, tuple[Any, Any, str]] = {
    "pid": (lib.fm_pid_size, lib.fm_pid_accepts, "fm_pid_data"),
    "ramp": (lib.fm_ramp_size, lib.fm_ramp_accepts, "fm_ramp_data"),
}
"""Step-size rules in C, by the names of their twins: what gives sizes, what takes up steps, and their data."""


def lend_rule(lender: Lender, context: Context, twin: Twin, first_code: int) -> Any:
    """What fm_control asks for the sizes of steps; the codes of its causes are from a number on."""
    size, accepts, structure = RULES[twin.name]
    data = lend_data(lender, context, twin, structure)
    return lender.lent(ffi.new("fm_rule *", (size, accepts, data, first_code)))


def lend_data(lender: Lender, context: Context, twin: Twin, structure: str) -> Any:
    """The numbers, arrays and hooks of a twin as the structure that its function takes."""
    hooks = {name: lend_hook(lender, context, hook) for name, hook in twin.hooks.items()}
    return lender.made(structure, **twin.numbers, **twin.arrays, **hooks)


@extern("fm_python_call")
def _call(self: Any, kernel: Any) -> int:
    context, hook = ffi.from_handle(self)
    context.store.interval = kernel.begin, kernel.end
    return int(lib.FM_AGAIN if hook(context.store) else lib.FM_OK)
