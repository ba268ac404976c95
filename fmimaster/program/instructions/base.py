"""An instruction is one row: its operands, its meaning, its FMI call, its text, what it requires, and what it changes.

A program is a short, flat list of instructions over one interval from ``begin`` to ``end``. Instances, groups of their
variables, places for FMU states and buffers for outputs are named by index; places in the interval by a fraction from
0 to 1. There are no strings, no variables, and no jumps except REPEAT, so an interpreter in any language is small. The
Python interpreter (:mod:`fmimaster.run.reference`) is the reference implementation; the kernel's instruction has the
same name and fields. The docstring of each class defines its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from enum import Enum
from typing import ClassVar

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.checker import Checker
from fmimaster.program.knowledge import Effects
from fmimaster.system.states import FmiCall

_MOST_NAMES = 8
"""Largest number of variables that are named in one line; the line has only the number of the others."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """Base of all instructions.

    Attributes
    ----------
    calls : Call or None
        The FMI call of the instance; None if there is none, or if it depends on the operands.
    operand, remark : str
        Its text in listings; a format of the instruction.
    """

    calls: ClassVar[FmiCall | None] = None
    operand: ClassVar[str] = ""
    remark: ClassVar[str] = ""
    _has_instance: ClassVar[bool] = False

    @property
    def subject(self) -> int | None:
        """Index of the affected instance; None if it affects none or all."""
        return self.instance if self._has_instance else None  # type: ignore[attr-defined]

    def __init_subclass__(cls) -> None:
        """Note once whether the instruction works on an instance: programs of many are walked often."""
        cls._has_instance = "instance" in cls.__annotations__

    def __str__(self) -> str:
        """Its name and its operands, without trailing operands that have their default values."""
        operands = [(getattr(self, f.name), f.default) for f in fields(self)]
        while operands and operands[-1][1] is not MISSING and operands[-1][0] == operands[-1][1]:
            operands.pop()
        return " ".join([type(self).__name__.upper(), *(_text(operand) for operand, _ in operands)])

    def words(self, plan: Plan) -> tuple[str, str]:
        """Operand and remark in listings."""
        del plan
        return self.operand.format(self), self.remark

    def check(self, checker: Checker) -> None:
        """Refuse the instruction where it violates FMI or lacks something; here, where its FMI call is not allowed."""
        if self.calls is not None and self.subject is not None:
            checker.call(self.subject, self.calls)

    def effect(self, on: Effects) -> None:
        """What is different after it; here nothing that matters to those that follow a program."""


def _text(operand: object) -> str:
    text = operand.name if isinstance(operand, Enum) else f"{operand}".replace(" ", "")
    return text.lower()


@dataclass(frozen=True, slots=True)
class Program:
    """A name and a list of instructions over one interval."""

    name: str
    instructions: tuple[Instruction, ...]

    def __bool__(self) -> bool:
        return bool(self.instructions)


def some(names: Sequence[str], between: str) -> str:
    """The first of these names, and how many others there are."""
    if len(names) <= _MOST_NAMES:
        return between.join(names)
    return between.join(names[:_MOST_NAMES]) + f"{between}and {len(names) - _MOST_NAMES} more"


def variables_of(i: int, group: Group, plan: Plan) -> str:
    """Names of the variables of a group of an instance."""
    segments = plan.layout.segments(i, group)
    return some([v.name for s in segments for v in s.variables], ", ")
