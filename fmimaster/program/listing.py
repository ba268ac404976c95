"""Programs as text: one numbered line per instruction, with names and the moved values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.steps import Call, closings

Row = tuple[str, str, str, str]
"""Name of the instruction, of the instance, operand, remark."""


def listing(program: Program, plan: Plan, hooks: Sequence[Hook] = ()) -> str:
    """A program as text, to find the reason of a surprising result.

    Each line has the number of the instruction, its name, the instance, the operand, and the values in words. Repeated
    instructions are indented. With the hooks of the programs, CALL has the name of its hook.

    Examples
    --------
    ::

        0 MOVE  upper  continuous  u_x <- lower.x; u_v <- lower.v
        1 SET   upper  continuous  u_x, u_v
        2 STEP  upper  to 1
    """
    rows = list(_rows(program, plan, hooks))
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    number = len(str(len(rows) - 1))
    lines = []
    for k, row in enumerate(rows):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([f"{k:>{number}} {cells[0]}", *cells[1:], row[3]]).rstrip())
    return "\n".join(lines)


def _rows(program: Program, plan: Plan, hooks: Sequence[Hook]) -> Iterator[Row]:
    depth, ends = 0, closings(program.instructions)
    closed = set(ends.values())
    for k, instruction in enumerate(program.instructions):
        depth -= k in closed
        name = "  " * depth + type(instruction).__name__.upper()
        instance = instruction.subject
        who = "" if instance is None else plan.instances[instance].name
        operand, remark = instruction.words(plan)
        match instruction:
            case Call(hook) if hook < len(hooks):
                remark = hooks[hook].name
        yield name, who, operand, remark
        depth += k in ends
