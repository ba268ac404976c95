"""Memory that the kernel borrows: structs by the types of their fields in its header; the store, registers and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.kernel._kernel import ffi
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.store import OutputCopy, ValueStore
from fmimaster.run.convergence import nominals_of_outputs
from fmimaster.run.executor import InitialTimes
from fmimaster.run.native.header import TYPES
from fmimaster.run.native.instances import KernelEntry
from fmimaster.run.native.objects import Objects
from fmimaster.run.native.rows import KernelRows
from fmimaster.run.registers import Registers
from fmimaster.system.model import DataType


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

    def lent(self, thing: Any) -> Any:
        """Something that the kernel may use as long as this object lives."""
        self._kept.append(thing)
        return thing

    def made(self, structure: str, **fields: Any) -> Any:
        """A new struct with these fields; see :meth:`fill`."""
        return self.lent(self.fill(ffi.new(f"{structure} *"), **fields))

    def table(self, structure: str, rows: Sequence[Mapping[str, Any]]) -> Any:
        """An array of structs with these fields, with room for one at least."""
        types = _types(ffi.typeof(structure))
        records = [{name: self._as(types[name], v) for name, v in row.items()} for row in rows]
        return self.lent(ffi.new(f"{structure}[]", records or 1))

    def fill(self, record: Any, **fields: Any) -> Any:
        """Fields of a struct, by their types in the kernel's header: an array of NumPy is lent, a list is copied, and all
        else is taken as it is. Returns the struct."""
        types = _types(ffi.typeof(record))
        for name, value in fields.items():
            setattr(record, name, self._as(types[name], value))
        return record

    def _as(self, kind: Any, value: Any) -> Any:
        """A value of a type of C."""
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return ffi.cast(kind, self.lent(self.objects.lend(value)))
            return self.lent(ffi.from_buffer(_array_of(kind), value))
        if isinstance(value, list):
            has_arrays = value and isinstance(value[0], np.ndarray)
            elements = [self._as(kind.item, array) for array in value] if has_arrays else value
            return self.lent(ffi.new(_array_of(kind), elements))
        return value

    def address(self, kind: DataType, index: int) -> Any:
        """Address of an element of the store."""
        values = self.store.values[kind]
        return ffi.cast("char *", ffi.from_buffer(values)) + index * kind.dtype.itemsize

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
            if name in _types(ffi.typeof(self.kernel))
        }
        follows = r.follows_polynomials
        self.fill(
            self.kernel, follows=follows, steps=steps, restores=restores, events=events, **same
        )

    def _lend_outputs(self) -> None:
        k, store = self.kernel, self.store
        nominals = nominals_of_outputs(self.plan)
        history, buffers = map(self._lent_copies, (store.history, store.buffers))
        self.fill(k, history=history, buffers=buffers, read=store.read, active=store.active)
        k.n_history = len(store.history)
        for kind, array in store.values.items():
            if kind.dtype == object:
                self.objects.lend(array)
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


@cache
def _array_of(pointer: Any) -> Any:
    """The array to whose first element a pointer points; bytes if it has no type in C."""
    item = ffi.typeof("char") if pointer.item.kind == "void" else pointer.item
    return ffi.typeof(ffi.getctype(item, "[]"))


@cache
def _types(kind: Any) -> Mapping[str, Any]:
    """Field of a struct, or of the one that a pointer points to → its type."""
    struct = kind.item if kind.kind == "pointer" else kind
    return {name: field.type for name, field in struct.fields}


def _experiment(experiment: InitialTimes) -> Any:
    stop = experiment.stop
    return ffi.new("fm_experiment *", (experiment.start, stop or 0.0, stop is not None))
