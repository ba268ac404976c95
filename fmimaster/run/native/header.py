"""The kernel's header in Python: its numbers, its structs filled by the types of their fields, what its callbacks need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions import inputs, outputs, steps
from fmimaster.program.instructions.base import Instruction
from fmimaster.program.store import ValueStore
from fmimaster.run.rows import Registers
from fmimaster.system.clocks import Intervals
from fmimaster.system.model import DataType
from fmimaster.system.states import State

_LENT = frozenset((np.ndarray, list))
"""Values that stay in Python while the kernel uses them."""


@dataclass
class Context:
    """What functions in Python that the kernel calls work on."""

    plan: Plan
    store: ValueStore
    registers: Registers
    raised: BaseException | None = None
    """The exception of a hook, or Ctrl-C; it is raised again where the kernel was called."""

    def keep(self, error: BaseException) -> None:
        """Keep the exception of a function that the kernel has called."""
        self.raised = error


def extern(name: str) -> Callable[[Callable[..., int]], Any]:
    """A function that the kernel calls; its exception is an error of the call, and is kept by what its handle has first."""
    return ffi.def_extern(name, error=lib.FM_ERROR, onerror=_keep)  # type: ignore[no-any-return]


def _keep(_kind: Any, error: BaseException, traceback: Any) -> None:
    """Also Ctrl-C that arrives before the first line of the function, which a ``try`` there would not catch."""
    arguments = traceback.tb_frame.f_locals  # of the function
    known = ffi.from_handle(arguments["call"].self if "call" in arguments else arguments["self"])
    (known[0] if isinstance(known, tuple) else known).keep(error)


def called(name: str, act: Callable[..., int | None]) -> None:
    """Let the kernel call a function with the object of a handle; it returns a status, None for FM_OK."""

    def call(self: Any, *arguments: Any) -> int:
        status = act(ffi.from_handle(self), *arguments)
        return int(lib.FM_OK) if status is None else status

    extern(name)(call)


class LentMemory:
    """Lends memory to the kernel, which may use it as long as this object lives."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    @property
    def kept(self) -> Sequence[Any]:
        """All that is lent."""
        return self._kept

    def lent(self, thing: Any) -> Any:
        """Keep something alive."""
        self._kept.append(thing)
        return thing

    def part(self) -> LentMemory:
        """Further memory, which may be given back before the rest."""
        part = LentMemory()
        self.lent(part._kept)
        return part

    def give_back(self) -> None:
        """The kernel does not use it any more."""
        self._kept.clear()

    def made(self, structure: str, /, **fields: Any) -> Any:
        """A new struct with these fields; see :meth:`fill`."""
        return self.lent(self.fill(ffi.new(f"{structure} *"), **fields))

    def table(self, structure: str, rows: Sequence[Mapping[str, Any]]) -> Any:
        """An array of structs with these fields, with room for one at least."""
        types = struct_types(ffi.typeof(structure))
        records = [
            {n: self._as(types[n], v) if type(v) in _LENT else v for n, v in row.items()}
            for row in rows
        ]
        return self.lent(ffi.new(f"{structure}[]", records or 1))

    def fill(self, record: Any, /, **fields: Any) -> Any:
        """Fields of a struct, by their types in the kernel's header: an array of NumPy is lent, a list is copied, and all
        else is taken as it is. Returns the struct."""
        types = struct_types(ffi.typeof(record))
        for name, value in fields.items():
            is_lent = type(value) in _LENT  # the others are many
            setattr(record, name, self._as(types[name], value) if is_lent else value)
        return record

    def _as(self, kind: Any, value: Any) -> Any:
        """A value of a type of C."""
        if isinstance(value, np.ndarray):
            return self.lent(ffi.from_buffer(_array_of(kind), value))
        if isinstance(value, list):
            if value and isinstance(value[0], np.ndarray):
                item = _array_of(kind.item)
                value = self.lent([ffi.from_buffer(item, array) for array in value])
            return self.lent(ffi.new(_array_of(kind), value))
        return value


@cache
def _array_of(pointer: Any) -> Any:
    """The array to whose first element a pointer points; bytes if it has no type in C."""
    item = ffi.typeof("char") if pointer.item.kind == "void" else pointer.item
    return ffi.typeof(ffi.getctype(item, "[]"))


@cache
def struct_types(kind: Any) -> Mapping[str, Any]:
    """Field of a struct, or of the one that a pointer points to → its type."""
    struct = kind.item if kind.kind == "pointer" else kind
    return {name: field.type for name, field in struct.fields}


def interval_fields(intervals: Intervals) -> dict[str, Any]:
    """Arrays of intervals as the fields of an fm_intervals."""
    names = ("counters", "resolutions", "seconds", "qualifiers")
    return dict(zip(names, intervals.arrays, strict=True))


def derivative_fields(
    unknowns: Sequence[int],
    knowns: Sequence[int],
    sensitivity: NDArray[np.float64],
    seed: NDArray[np.float64],
) -> dict[str, Any]:
    """The variables of a directional derivative by their value references, and its arrays: fields of an fm_derivative."""
    return {
        "n_unknowns": len(unknowns),
        "unknowns": list(unknowns),
        "n_knowns": len(knowns),
        "knowns": list(knowns),
        "n_sensitivity": len(sensitivity),
        "sensitivity": sensitivity,
        "n_seed": len(seed),
        "seed": seed,
    }


def _numbers(enumeration: str) -> Mapping[str, int]:
    numbers: Mapping[str, int] = ffi.typeof(f"enum {enumeration}").relements
    return numbers


OPERATIONS: Mapping[type[Instruction], int] = {
    kind: _numbers("fm_op")[f"FM_{kind.__name__.upper()}"]
    for kind in Instruction.__subclasses__()
    if kind.__module__ in (inputs.__name__, outputs.__name__, steps.__name__)
}
"""Instruction → operation."""

_MEMBERS: Mapping[str, Any] = dict(ffi.typeof("fm_instruction").fields)


def _operands(kind: type[Instruction]) -> tuple[str, ...]:
    member = _MEMBERS.get(kind.__name__.lower())
    known = set[str]() if member is None else {name for name, _ in member.type.fields}
    return tuple(operand.name for operand in fields(kind) if operand.name in known)


OPERANDS: Mapping[type[Instruction], tuple[str, ...]] = {
    kind: _operands(kind) for kind in OPERATIONS
}
"""Instruction → its operands that the member of its name in fm_instruction has, too."""

TYPES: Mapping[DataType, int] = {kind: _numbers("fm_type")[f"FM_{kind.name}"] for kind in DataType}

STATES: Mapping[State, int] = {state: _numbers("fm_state")[f"FM_{state.name}"] for state in State}
"""State of an instance → what FM_MODE leads to."""
