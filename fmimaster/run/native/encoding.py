"""Programs as the kernel reads them: arrays of fm_instruction.

Calls that follow each other are fused in addition, not replaced: messages name the instructions, and threads execute
them. With it, rings of 2, 10 and 100 tiny FMUs take 1.45, 1.3 and 1.3 times the time of a loop in C by hand; 1.8, 1.5 and
2.2 without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from math import nan
from typing import Any, ClassVar

import numpy as np

from fmimaster.base.collector import left_for_later
from fmimaster.base.data import dataclass
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
"""Fields of a member of the union in fm_instruction."""

Entry = Any
"""An fm_instruction: it is copied to its places in programs."""

Line = tuple[int, Sequence[Entry]]
"""An instruction by its number in a program, and its entries."""

FUSIBLE = frozenset(
    (
        lib.FM_MOVE,
        lib.FM_MOVE_OBJECTS,
        lib.FM_FIT,
        lib.FM_SET,
        lib.FM_GET,
        lib.FM_STEP,
        lib.FM_SAVE,
        lib.FM_RESTORE,
        lib.FM_KEEP,
        lib.FM_CALL,
        lib.FM_PARALLEL,
    )
)
"""Operations that are fused where they come one after the other."""

_TRANSFERS = frozenset((Move, Set, Get))

_MOVED_AND_SET = lib.FM_MOVE, lib.FM_SET

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
        self._shared: dict[tuple[type[Instruction], int, Group], Sequence[Entry]] = {}
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
        lines = [
            (line, self._entries_of(instruction, line))
            for line, instruction in enumerate(program.instructions)
        ]
        entries = _fused(lines) if self.fused else _placed(lines)
        code = self._lender.lent(new("fm_instruction[]", len(entries) + 1))
        for k, (entry, line) in enumerate(entries):
            code[k] = entry
            code[k].line = line
        code[len(entries)].op = lib.FM_END
        for k, operations in enumerate(pairwise(entry.op for entry, _ in entries)):
            if operations == _MOVED_AND_SET:
                code[k].op = lib.FM_MOVE_SET
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

    def _entries_of(self, instruction: Instruction, line: int) -> Sequence[Entry]:
        """The entries of an instruction: one, but several for an ALIGN, and for a MOVE of text and numbers."""
        kind: type[Any] = type(instruction)
        if kind in _TRANSFERS:  # what there is most of
            return self._transfer(kind, instruction.instance, instruction.group)  # type: ignore[attr-defined]
        if isinstance(instruction, Align):
            return self._align(instruction, line)
        fields: Fields = {f: _number(getattr(instruction, f)) for f in OPERANDS[kind]}
        if kind in self._made:
            fields |= self._made[kind](instruction)
        if line in self._depths:
            fields |= {"depth": self._depths[line]}
        op = lib.FM_STEP_LIMITED if kind is Step and self._is_limited else OPERATIONS[kind]
        return [_entry(op, instruction.subject, kind.__name__.lower(), fields)]

    def _moves(self, i: int, group: Group) -> Sequence[Entry]:
        """The MOVEs of a group: of text and binaries, and of numbers."""
        if group is Group.TRIGGERS:
            return [_entry(lib.FM_MOVE_TRIGGERS, i, "triggers", self._triggers(i))]
        routes, found = self.plan.routes[i, group], list[Entry]()
        for op, objects in ((lib.FM_MOVE_OBJECTS, True), (lib.FM_MOVE, False)):
            moves = self._lender.moves(routes, objects=objects)
            if moves["n"]:
                found.append(_entry(op, i, "move", {"group": group, **moves}))
        return found

    def _step(self, step: Step) -> Fields:
        planned = self.plan.instances[step.instance]
        early, events = planned.may_return_early, planned.event_mode
        return {"may_return_early": early, "has_event_mode": events}

    def _derive(self, derive: Derive) -> Fields:
        i = derive.instance
        partials = self._hooks[derive.hook].partials(i)
        assert partials is not None
        return {"partials": self._lender.partials(self._entries[i], i, partials)}

    def _transfer(self, kind: type[Instruction], i: int, group: Group) -> Sequence[Entry]:
        """What a group of an instance is moved by, or the calls that set or read it; made once."""
        key = kind, i, group
        known = self._shared.get(key)
        if known is None:
            known = self._moves(i, group) if kind is Move else [self._calls(kind, i, group)]
            self._shared[key] = known
        return known

    def _calls(self, kind: type[Instruction], i: int, group: Group) -> Entry:
        """The calls that SET or GET makes of a group."""
        entry, lender = self._entries[i], self._lender
        if kind is Set and group is Group.INTERVALS:
            given = GivenIntervals(self.plan, i, entry.instance)
            hook = lend_hook(lender, self._context, given)
            return _entry(lib.FM_CALL, i, "call", {"hook": hook})
        if kind is Set and group is Group.TRIGGERS:
            return _entry(lib.FM_SET_TRIGGERS, i, "triggers", self._triggers(i))
        if kind is Get and group is Group.CLOCKS:
            calls, inputs = lender.calls(entry, i, group), lender.input_clocks(i)
            fields = {"outputs": calls, "inputs": inputs}
            return _entry(lib.FM_GET_CLOCKS, i, "get_clocks", fields)
        if kind is Get and group is Group.CLOCKED:
            clocked = lender.clocked(entry, i)
            return _entry(lib.FM_GET_CLOCKED, i, "get_clocked", {"clocked": clocked})
        if kind is Get and group is Group.INTERVALS:
            inquiry = lender.inquiry(entry, i)
            return _entry(lib.FM_GET_INTERVALS, i, "get_intervals", {"inquiry": inquiry})
        member = "set" if kind is Set else "get"
        fields = {"group": group, **lender.calls(entry, i, group)}
        return _entry(OPERATIONS[kind], i, member, fields)

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
        (calls,) = self._transfer(Set, fit.instance, Group.CONTINUOUS)
        k.fits = True
        self._make_scratch(fit)
        return {
            "fitted": lender.lent(ffi.new("fm_fit *", fields)),
            "inputs": calls.set.segments,
        }

    def _make_scratch(self, fit: Fit) -> None:
        """Room to fit polynomials in, and for the derivatives of all inputs of an instance."""
        segments = self.plan.layout.segments(fit.instance, Group.CONTINUOUS)
        n = sum(s.stop - s.start for s in segments)
        size = (n + 5) * (fit.rows + 1)
        if size > self._scratch:
            self._scratch = size
            self._lender.fill(self._lender.kernel, scratch=np.zeros(size))

    def _align(self, align: Align, line: int) -> list[Entry]:
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


def _entry(op: int, instance: int | None, member: str, fields: Fields) -> Entry:
    """An fm_instruction; without a member for an instruction that needs no fields."""
    entry: Fields = {"op": op, "instance": 0 if instance is None else instance}
    return ffi.new("fm_instruction *", {**entry, member: fields} if fields else entry)[0]


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


def _placed(lines: Iterable[Line]) -> list[tuple[Entry, int]]:
    """The entries of instructions, each with the number of its instruction."""
    return [(entry, line) for line, entries in lines for entry in entries]


def _fused(lines: Sequence[Line]) -> list[tuple[Entry, int]]:
    """The same; in front of those that can be fused, one that stands for them."""
    done = list[tuple[Entry, int]]()
    for is_fusible, group in groupby(lines, lambda p: FUSIBLE.issuperset([e.op for e in p[1]])):
        placed = _placed(group)
        done += _in_one(placed) if is_fusible else placed
    return done


def _in_one(entries: Sequence[tuple[Entry, int]]) -> Sequence[tuple[Entry, int]]:
    """Fused instructions; the parts around each PARALLEL also by themselves, for a run with several threads."""
    if len(entries) < WORTH_FUSING:
        return entries
    inside, at = list[tuple[Entry, int]](), 0
    for k, (entry, _) in enumerate(entries):
        if entry.op == lib.FM_PARALLEL:
            end = k + 1 + entry.parallel.count
            inside += [*_in_one(entries[at:k]), *entries[k:end]]
            at = end
    inside += _in_one(entries[at:]) if at else entries
    fused = _entry(lib.FM_FUSED, None, "fused", {"count": len(inside)})
    return [(fused, entries[0][1]), *inside]
