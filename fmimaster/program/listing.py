"""Programs as text: one numbered line per instruction, with names and the moved values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isinf
from typing import Any

from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.instructions import (
    Align,
    Call,
    Correct,
    Derive,
    Fit,
    Get,
    Instruction,
    Keep,
    Mode,
    Move,
    Parallel,
    Program,
    Recall,
    Repeat,
    Restore,
    Revert,
    Save,
    Set,
    Step,
    Tick,
    Until,
    Update,
    closings,
)

_MOST_NAMES = 8
"""Largest number of variables that are named in one line; the line has only the number of the others."""

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


def moved(route: Route, plan: Plan) -> str:
    """One input and its source: ``"u <- 0.001 * motor.w + 2"``."""
    source = f"{plan.instances[route.link.source].name}.{route.link.output.name}"
    factor, offset = route.transformation.factor, route.transformation.offset
    scaled = f"{factor:.12g} * {source}" if factor != 1.0 else source
    sign = "+" if offset > 0 else "-"
    shifted = f"{scaled} {sign} {abs(offset):.12g}" if offset else scaled
    return f"{route.link.input.name} <- {shifted}"


def _rows(program: Program, plan: Plan, hooks: Sequence[Hook]) -> Iterator[Row]:
    depth, ends = 0, closings(program.instructions)
    closed = set(ends.values())
    for k, instruction in enumerate(program.instructions):
        depth -= k in closed
        name = "  " * depth + type(instruction).__name__.upper()
        instance = instruction.subject
        who = "" if instance is None else plan.instances[instance].name
        operand, remark = _WORDS.get(type(instruction), _nothing)(instruction, plan)
        match instruction:
            case Call(hook) if hook < len(hooks):
                remark = hooks[hook].name
        yield name, who, operand, remark
        depth += k in ends


def _nothing(_instruction: Instruction, _plan: Plan) -> tuple[str, str]:
    return "", ""


def _move(instruction: Move, plan: Plan) -> tuple[str, str]:
    if instruction.group is Group.TRIGGERS:
        told = [_fed(k, plan) for k in plan.triggers_of(instruction.instance)]
        return _group(instruction.group), _some([t for t in told if t], "; ")
    return _group(instruction.group), _routes(instruction, plan, instruction.group)


def _fit(instruction: Fit, plan: Plan) -> tuple[str, str]:
    points = _count(instruction.points, "point")
    derivatives = _count(instruction.derivatives, "derivative")
    earlier = [f"buffer {b}" for b in instruction.buffers]
    earlier += [_each(instruction.history, "the history")] if _any(instruction.history) else []
    through = f"at {instruction.at:g} through {points} with {derivatives}"
    through += f", from the outputs and {', '.join(earlier)}" if earlier else ""
    for value, words in (
        (instruction.held, "held as at"),
        (instruction.mean, "held at the mean to"),
        (instruction.compensation or None, "compensated by"),
        (instruction.late, "late, to"),
    ):
        through += f", {words} {_each(value)}" if _any(value) else ""
    if _any(instruction.adaptive):
        through += f", {_each(instruction.adaptive, 'or fewer by the measured error')}"
    return _group(Group.CONTINUOUS), f"{_routes(instruction, plan, Group.CONTINUOUS)} ({through})"


def _values(instruction: Set | Get, plan: Plan) -> tuple[str, str]:
    segments = plan.layout.segments(instruction.instance, instruction.group)
    return _group(instruction.group), _some([v.name for s in segments for v in s.variables], ", ")


def _correct(instruction: Correct, plan: Plan) -> tuple[str, str]:
    correction = plan.corrections[instruction.instance]
    return _group(Group.OUTPUTS), _some([v.name for v in correction.outputs], ", ")


def _step(instruction: Step, plan: Plan) -> tuple[str, str]:
    stops = plan.instances[instruction.instance].may_return_early
    return f"to {instruction.end:g}", "or to an event of its own" if stops else ""


def _place(instruction: Save | Restore, _plan: Plan) -> tuple[str, str]:
    return f"place {instruction.place}", ""


def _align(instruction: Align, _plan: Plan) -> tuple[str, str]:
    return f"place {instruction.place}", "back from there, if it stands beyond an early return"


def _update(_instruction: Update, _plan: Plan) -> tuple[str, str]:
    return "", "of its discrete states"


def _tick(instruction: Tick, plan: Plan) -> tuple[str, str]:
    trigger = plan.triggers[instruction.trigger]
    name = f"{plan.instances[trigger.instance].name}.{trigger.name}"
    return f"trigger {instruction.trigger}", f"{name} becomes active"


def _call(instruction: Call, _plan: Plan) -> tuple[str, str]:
    return f"hook {instruction.hook}", "of the algorithm"


def _derive(instruction: Derive, _plan: Plan) -> tuple[str, str]:
    return f"hook {instruction.hook}", "partial derivatives, if it asks for them"


def _buffer(instruction: Keep | Recall, _plan: Plan) -> tuple[str, str]:
    return f"buffer {instruction.buffer}", ""


def _revert(instruction: Revert, _plan: Plan) -> tuple[str, str]:
    return f"buffer {instruction.buffer}", "its outputs as they were kept"


def _repeat(instruction: Repeat, _plan: Plan) -> tuple[str, str]:
    times = f"{instruction.least} to {instruction.most} times"
    return times, "then continue, converged or not" if instruction.bounded else ""


def _until(instruction: Until, _plan: Plan) -> tuple[str, str]:
    if isinf(instruction.tolerance):
        return "inf", "the least number of times, and until early returns no longer change"
    return f"{instruction.tolerance:g}", "until the relative change of each output is at most this"


def _parallel(instruction: Parallel, _plan: Plan) -> tuple[str, str]:
    return f"the next {instruction.count}", "in any order, or at the same time"


def _mode(instruction: Mode, _plan: Plan) -> tuple[str, str]:
    return instruction.state.value, ""


_WORDS: Mapping[type[Instruction], Callable[[Any, Plan], tuple[str, str]]] = {
    Move: _move,
    Fit: _fit,
    Set: _values,
    Get: _values,
    Correct: _correct,
    Step: _step,
    Save: _place,
    Restore: _place,
    Keep: _buffer,
    Recall: _buffer,
    Revert: _revert,
    Repeat: _repeat,
    Until: _until,
    Mode: _mode,
    Parallel: _parallel,
    Align: _align,
    Update: _update,
    Tick: _tick,
    Call: _call,
    Derive: _derive,
}
"""Operand and remark by instruction; one without operands is not in it."""


def _routes(instruction: Move | Fit, plan: Plan, group: Group) -> str:
    routes: Iterable[Route] = plan.routes.get((instruction.instance, group), ())
    return _some([moved(route, plan) for route in routes], "; ")


def _fed(trigger: int, plan: Plan) -> str:
    """A trigger with the clocks that make it active and its payload; empty if it is not connected."""
    planned = plan.triggers[trigger]
    clocks = [f"{plan.instances[i].name}.{name}" for i, name in planned.clocks]
    by_clocks = f"{planned.name} <- {' or '.join(clocks)}" if clocks else ""
    along = ", ".join(moved(route, plan) for route in planned.payload)
    if not along:
        return by_clocks
    return f"{by_clocks or planned.name}, with {along}"


def _some(names: list[str], between: str) -> str:
    if len(names) <= _MOST_NAMES:
        return between.join(names)
    return between.join(names[:_MOST_NAMES]) + f"{between}and {len(names) - _MOST_NAMES} more"


def _group(group: Group) -> str:
    return group.name.lower()


def _any(operand: object) -> bool:
    """Whether an operand of FIT differs from its default for at least one route."""
    return (
        any(operand) if isinstance(operand, tuple) else operand is not None and operand is not False
    )


def _each(operand: object, words: str = "") -> str:
    """An operand of FIT, or these words where it is true; one for each route where they differ."""
    if isinstance(operand, tuple):
        return ", ".join(_each(part, words) for part in operand)
    if isinstance(operand, bool):
        return words if operand else "-"
    return "-" if operand is None else f"{operand:g}"


def _count(number: int | tuple[int, ...], noun: str) -> str:
    if isinstance(number, tuple):  # one for each input
        return f"{', '.join(map(str, number))} {noun}s"
    return f"{number} {noun}{'s' if number != 1 else ''}"
