"""Numbers of the kernel's header for what has a name in Python too."""

from __future__ import annotations

from collections.abc import Mapping

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

TYPES: Mapping[DataType, int] = {kind: _numbers("fm_type")[f"FM_{kind.name}"] for kind in DataType}

STATES: Mapping[State, int] = {state: _numbers("fm_state")[f"FM_{state.name}"] for state in State}
"""State of an instance → what FM_MODE leads to."""
