"""Numbers of the kernel's header for what has a name in Python too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fmimaster.kernel._kernel import ffi
from fmimaster.program.instructions.base import Instruction
from fmimaster.system.model import DataType
from fmimaster.system.states import State


def _numbers(enumeration: str) -> Mapping[str, int]:
    numbers: Mapping[str, int] = ffi.typeof(f"enum {enumeration}").relements
    return numbers


OPERATIONS: Mapping[type[Instruction], int] = {
    kind: _numbers("fm_op")[f"FM_{kind.__name__.upper()}"] for kind in Instruction.__subclasses__()
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
