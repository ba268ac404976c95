"""Programs as the kernel reads them: arrays of fm_instruction.

Calls that follow each other are fused in addition, not replaced: messages name the instructions, and threads execute
them. With it, rings of 2, 10 and 100 tiny FMUs take 1.45, 1.3 and 1.3 times the time of a loop in C by hand; 1.8, 1.5 and
2.2 without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from math import nan
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.base.memory import left_for_later
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.inputs import Fit, Move, Set
from fmimaster.program.instructions.outputs import (
    Correct,
    Derive,
    Get,
    Revert,
)
from fmimaster.program.instructions.steps import Align, Call, Mode, Restore, Step, nesting
from fmimaster.program.knowledge import Fitted
from fmimaster.run.native.header import OPERANDS, OPERATIONS, STATES, Context
from fmimaster.run.native.instances import KernelEntry
from fmimaster.run.native.lending import lend_hook
from fmimaster.run.native.shared import new
from fmimaster.run.native.tables import Tables
from fmimaster.run.ticks import GivenIntervals
from fmimaster.system.states import State

Fields = dict[str, Any]
"""Fields of fm_instruction, or of a member of its union."""

FUSIBLE = frozenset(
    (
        lib.FM_MOVE,
        lib.FM_MOVE_OBJECTS,
        lib.FM_FIT,
        lib.FM_SET,
        lib.FM_GET,
        lib.FM_STEP,
        lib.FM_PARALLEL,
    )
)
"""Operations that are fused where they come one after the other."""

_OPERATION = itemgetter("op")

WORTH_FUSING = 2
"""So many of them at least."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A program as the kernel reads it; the program is kept, since it is known by its identity."""

    program: Program
    code: Any


class ProgramEncoder:
    """Turns programs into what the kernel reads, each once.

    What instructions share is made when it is first needed: the calls of a group of an instance, the moves to it.

    Attributes
    ----------
    known : id of a program → Encoded
    fused : bool
        Whether FMI calls that come one after the other are made as one instruction: the same calls in less time.
    """

    fused: ClassVar[bool] = True

    def __init__(
        self,
        lender: Tables,
        entries: Sequence[KernelEntry],
        context: Context,
        hooks: Sequence[Hook],
    ) -> None:
        self.plan = lender.plan
        self._lender = lender
        self._entries = entries
        self._context = context
        self._hooks = hooks
        self.known: dict[int, Encoded] = {}
        self._shared: dict[tuple[type[Instruction], int, Group], Fields] = {}
        self._objects: dict[tuple[int, Group], Fields] = {}
        """The moves of text and binaries."""
        self._of_triggers: dict[int, Fields] = {}
        self._depths: Mapping[int, int] = {}
        """Of the REPEATs and UNTILs of the present program."""
        self._is_limited = False
        """Whether a step of the present program may have to end before its end."""
        self._scratch = 0
        self._made: Mapping[type[Instruction], Callable[[Any], Fields]] = {
            Step: self._step,
            Fit: self._fit,
            Correct: lambda c: {"correction": lender.correction(entries[c.instance], c)},
            Derive: self._derive,
            Call: lambda call: {"hook": lend_hook(lender, context, hooks[call.hook])},
            Mode: lambda mode: lender.clocks(mode.instance, mode.state),
            Revert: lambda revert: lender.outputs(revert.instance),
        }
        """What a member of the union has besides the operands of its instruction."""

    def __call__(self, program: Program) -> Encoded:
        """The program, encoded."""
        return self.known.get(id(program)) or self._encode(program)

    @left_for_later()
    def _encode(self, program: Program) -> Encoded:
        self._depths = nesting(program.instructions)
        self._is_limited = _may_end_before(program, self.plan)
        parts = [
            [{**fields, "line": line} for fields in self._entries_of(instruction, line)]
            for line, instruction in enumerate(program.instructions)
        ]
        entries = _fused(parts) if self.fused else [entry for part in parts for entry in part]
        for this, following in pairwise(entries):
            if this["op"] == lib.FM_MOVE and following["op"] == lib.FM_SET:
                this["op"] = lib.FM_MOVE_SET
        code = self._lender.lent(new("fm_instruction[]", [*entries, {"op": lib.FM_END}]))
        self._lend_calls(code)
        self.known[id(program)] = Encoded(program, code)
        return self.known[id(program)]

    def _lend_calls(self, code: Any) -> None:
        """The calls that fused instructions make."""
        sizes = ffi.new("size_t[2]")
        fuse = partial(lib.fm_fuse, self._lender.kernel, code)
        fuse(ffi.NULL, ffi.NULL, sizes, sizes + 1)
        calls, sources = ffi.new("fm_fused[]", sizes[0]), ffi.new("double *[]", sizes[1])
        fuse(self._lender.lent(calls), self._lender.lent(sources), sizes, sizes + 1)

    def _entries_of(self, instruction: Instruction, line: int) -> list[Fields]:
        """The entries of an instruction: one, but several for an ALIGN, and for a MOVE of text and numbers."""
        match instruction:  # what there is most of comes first
            case Move(i, group) if group is not Group.TRIGGERS:
                entries = self._objects_moved(i, group), self._transfer(instruction)
                return [entry for entry in entries if entry["move"]["n"]]
            case Move() | Set() | Get():
                return [self._transfer(instruction)]
            case Align():
                return self._align(instruction, line)
        kind = type(instruction)
        fields: Fields = {f: _number(getattr(instruction, f)) for f in OPERANDS[kind]}
        if kind in self._made:
            fields |= self._made[kind](instruction)
        if line in self._depths:
            fields |= {"depth": self._depths[line]}
        op = lib.FM_STEP_LIMITED if kind is Step and self._is_limited else OPERATIONS[kind]
        return [_entry(op, instruction.subject, kind.__name__.lower(), fields)]

    def _objects_moved(self, i: int, group: Group) -> Fields:
        """The MOVE of text and binaries of a group."""
        if (i, group) not in self._objects:
            moves = self._lender.moves(self.plan.routes[i, group], objects=True)
            entry = _entry(lib.FM_MOVE_OBJECTS, i, "move", {"group": group, **moves})
            self._objects[i, group] = entry
        return self._objects[i, group]

    def _step(self, step: Step) -> Fields:
        planned = self.plan.instances[step.instance]
        early, events = planned.may_return_early, planned.event_mode
        return {"may_return_early": early, "has_event_mode": events}

    def _derive(self, derive: Derive) -> Fields:
        i = derive.instance
        partials = self._hooks[derive.hook].partials(i)
        assert partials is not None
        return {"partials": self._lender.partials(self._entries[i], i, partials)}

    def _transfer(self, instruction: Move | Set | Get) -> Fields:
        """What a group of an instance is moved by, or the calls that set or read it; made once."""
        key = type(instruction), instruction.instance, instruction.group
        if key not in self._shared:
            op, member, fields = self._make_transfer(instruction)
            self._shared[key] = _entry(op, instruction.instance, member, fields)
        return self._shared[key]

    def _make_transfer(self, instruction: Move | Set | Get) -> tuple[int, str, Fields]:
        i, group = instruction.instance, instruction.group
        entry, lender = self._entries[i], self._lender
        match instruction, group:
            case Move(), Group.TRIGGERS:
                return lib.FM_MOVE_TRIGGERS, "triggers", self._triggers(i)
            case Move(), _:
                moves = lender.moves(self.plan.routes[i, group])
                return lib.FM_MOVE, "move", {"group": group, **moves}
            case Set(), Group.INTERVALS:
                given = GivenIntervals(self.plan, i, entry.instance)
                return lib.FM_CALL, "call", {"hook": lend_hook(lender, self._context, given)}
            case Set(), Group.TRIGGERS:
                return lib.FM_SET_TRIGGERS, "triggers", self._triggers(i)
            case Get(), Group.CLOCKS:
                fields = {
                    "outputs": lender.calls(entry, i, group),
                    "inputs": lender.input_clocks(i),
                }
                return lib.FM_GET_CLOCKS, "get_clocks", fields
            case Get(), Group.CLOCKED:
                return lib.FM_GET_CLOCKED, "get_clocked", {"clocked": lender.clocked(entry, i)}
            case Get(), Group.INTERVALS:
                return lib.FM_GET_INTERVALS, "get_intervals", {"inquiry": lender.inquiry(entry, i)}
        op = OPERATIONS[type(instruction)]
        member = "set" if op == lib.FM_SET else "get"
        return op, member, {"group": group, **lender.calls(entry, i, group)}

    def _triggers(self, i: int) -> Fields:
        """Triggers of an instance, for MOVE and SET alike."""
        if i not in self._of_triggers:
            self._of_triggers[i] = self._lender.triggers(self._entries[i], i)
        return self._of_triggers[i]

    def _fit(self, fit: Fit) -> Fields:
        lender, n, history = self._lender, len(fit.buffers), len(self._lender.store.history)
        k = lender.kernel
        copies = [k.buffers + b for b in fit.buffers] + [k.history + b for b in range(history)]
        inputs = [
            {
                **{
                    name: nan if v is None else v
                    for name, v in wanted._asdict().items()
                    if name != "history"
                },
                "n_copies": n + (history if wanted.history else 0),
                "is_line": route.left is None
                and wanted
                == Fitted(2, 0, wanted.history, wanted.held, wanted.mean, half=wanted.half),
            }
            for r, route in enumerate(self.plan.routes[fit.instance, Group.CONTINUOUS])
            for wanted in [fit.of_route(r)] * route.size
        ]
        each = lender.lent(ffi.new("fm_fitted[]", inputs))
        lent = lender.lent(ffi.new("fm_copy *[]", copies))
        fields = (fit.rows, fit.is_constant, lent, each)
        set_ = Set(fit.instance, Group.CONTINUOUS)
        k.fits = True
        self._make_scratch(fit)
        return {
            "fitted": lender.lent(ffi.new("fm_fit *", fields)),
            "inputs": self._transfer(set_)["set"]["segments"],
        }

    def _make_scratch(self, fit: Fit) -> None:
        """Room to fit polynomials in, and for the derivatives of all inputs of an instance."""
        segments = self.plan.layout.segments(fit.instance, Group.CONTINUOUS)
        n = sum(s.stop - s.start for s in segments)
        size = (n + 5) * (fit.rows + 1)
        if size > self._scratch:
            self._scratch = size
            self._lender.fill(self._lender.kernel, scratch=np.zeros(size))

    def _align(self, align: Align, line: int) -> list[Fields]:
        """What brings an instance back; the kernel skips it if the instance is not beyond the limit."""
        i, segments = align.instance, self.plan.layout.segments
        back: list[Instruction] = [Restore(i, align.place)]
        back += [Set(i, Group.CONTINUOUS)] if segments(i, Group.CONTINUOUS) else []
        back += [Step(i, 1.0)]
        back += [Get(i, Group.OUTPUTS)] if segments(i, Group.OUTPUTS) else []
        steps = [entry for b in back for entry in self._entries_of(b, line)]
        count = {"count": len(steps) + 1}
        around = (_entry(op, i, "align", count) for op in (OPERATIONS[Align], lib.FM_ALIGNED))
        return [next(around), *steps, next(around)]


def _entry(op: int, instance: int | None, member: str, fields: Fields) -> Fields:
    """An fm_instruction; without a member for an instruction that needs no fields."""
    entry: Fields = {"op": op, "instance": 0 if instance is None else instance}
    return {**entry, member: fields} if fields else entry


def _number(operand: Any) -> Any:
    """An operand as the kernel has it; -1 for none."""
    if isinstance(operand, State):
        return STATES[operand]
    return -1 if operand is None else operand


def _may_end_before(program: Program, plan: Plan) -> bool:
    """Whether a step of a program may have to end before its end: at an early return, or at an event between its parts."""
    if plan.instances.any_may_return_early:
        return True
    if not any(i.event_mode for i in plan.instances):
        return False
    return any(isinstance(i, Step) and i.end < 1.0 for i in program.instructions)


def _fused(parts: Sequence[Sequence[Fields]]) -> list[Any]:
    """The entries of instructions; in front of those that can be fused, one that stands for them."""
    done = list[Fields]()
    for is_fusible, group in groupby(parts, lambda p: FUSIBLE.issuperset(map(_OPERATION, p))):
        entries = [entry for part in group for entry in part]
        done += _in_one(entries) if is_fusible else entries
    return done


def _in_one(entries: Sequence[Fields]) -> Sequence[Fields]:
    """Fused instructions; the parts around each PARALLEL also by themselves, for a run with several threads."""
    if len(entries) < WORTH_FUSING:
        return entries
    inside, at = list[Fields](), 0
    for k, entry in enumerate(entries):
        if entry["op"] == lib.FM_PARALLEL:
            inside += [*_in_one(entries[at:k]), *entries[k : k + 1 + entry["parallel"]["count"]]]
            at = k + 1 + entry["parallel"]["count"]
    inside += _in_one(entries[at:]) if at else entries
    fused = _entry(lib.FM_FUSED, None, "fused", {"count": len(inside)})
    return [{**fused, "line": entries[0]["line"]}, *inside]
