"""What functions in Python that the kernel calls work on."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.run.registers import Registers


@dataclass
class Context:
    """What functions in Python that the kernel calls work on."""

    plan: Plan
    store: ValueStore
    registers: Registers
    raised: BaseException | None = None
    """The exception of a hook, or Ctrl-C; it is raised again where the kernel was called."""
