"""Programs as the kernel reads them: arrays of fm_instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from math import nan
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from fmimaster.base.garbage import left_for_later
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.control import Call, Mode, Repeat, Tick, Until, Update, nesting
from fmimaster.program.instructions.inputs import Fit, Move, Set
from fmimaster.program.instructions.outputs import (
    Correct,
    Derive,
    Get,
    Keep,
    Recall,
    Remember,
    Revert,
)
from fmimaster.program.instructions.steps import Align, Parallel, Restore, Save, Step
from fmimaster.run.clock_calls import GivenIntervals
from fmimaster.run.native.context import Context
from fmimaster.run.native.header import OPERATIONS, STATES
from fmimaster.run.native.hooks import lend_hook
from fmimaster.run.native.instances import Entry
from fmimaster.run.native.lending import Lender
from fmimaster.run.native.shared import new
from fmimaster.system.states import State

Fields = Mapping[str, Any]
"""Fields of fm_instruction."""

FUSIBLE = frozenset(
    (lib.FM_MOVE, lib.FM_MOVE_OBJECTS, lib.FM_SET, lib.FM_GET, lib.FM_STEP, lib.FM_PARALLEL)
)
"""Operations that are fused where they come one after the other."""

_OPERATION = itemgetter("op")

WORTH_FUSING = 3
"""So many of them at least."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A program as the kernel reads it; the program is kept, since it is known by its identity."""

    program: Program
    code: Any


class Encoder:
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
        self, lender: Lender, entries: Sequence[Entry], context: Context, hooks: Sequence[Hook]
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
        self._is_limited = False
        """Whether a step of the present program may have to end before its end."""
        self._scratch = 0

    def __call__(self, program: Program) -> Encoded:
        """The program, encoded."""
        return self.known.get(id(program)) or self._encode(program)

    @left_for_later()
    def _encode(self, program: Program) -> Encoded:
        depths = nesting(program.instructions)
        self._is_limited = _may_end_before(program, self.plan)
        parts = [
            [
                {**fields, "line": line} | ({"place": depths[line]} if line in depths else {})
                for fields in self._entries_of(instruction)
            ]
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

    def _entries_of(self, instruction: Instruction) -> list[Fields]:
        """The entries of an instruction: one, but several for an ALIGN."""
        if isinstance(instruction, Align):
            return self._align(instruction)
        if isinstance(instruction, Move) and instruction.group is not Group.TRIGGERS:
            return self._move(instruction)
        return [{"op": OPERATIONS[type(instruction)], **self._fields(instruction)}]

    def _move(self, move: Move) -> list[Fields]:
        """A MOVE of text and binaries, and one of numbers, where there are any."""
        i, group = move.instance, move.group
        fields = {"instance": i, "group": int(group)}
        numbers = {"op": lib.FM_MOVE, **fields, **self._values(move, i, group)}
        key = i, group
        if key not in self._objects:
            self._objects[key] = self._lender.moves(self.plan.routes[key], objects=True)
        objects = {"op": lib.FM_MOVE_OBJECTS, **fields, **self._objects[key]}
        return [moves for moves in (objects, numbers) if moves["n"]]

    def _fields(self, instruction: Instruction) -> Fields:
        match instruction:  # what there is most of comes first
            case Move(i, group) | Set(i, group) | Get(i, group):
                return {"instance": i, "group": int(group), **self._values(instruction, i, group)}
            case Step(i, end):
                planned = self.plan.instances[i]
                fields = {"instance": i, "at": end}
                fields |= {"least": planned.may_return_early, "most": planned.event_mode}
                return fields | ({"op": lib.FM_STEP_LIMITED} if self._is_limited else {})
            case Mode(i, state):
                clocks = self._lender.clocks(i) if state is State.STEP_MODE else {}
                return {"instance": i, "group": STATES[state], **clocks}
            case Fit():
                return self._fit(instruction)
            case Correct(i):
                record = self._lender.correction(self._entries[i], i)
                return {"instance": i, "correction": record}
            case Derive(i, hook):
                partials = self._hooks[hook].partials(i)
                assert partials is not None
                record = self._lender.partials(self._entries[i], i, partials)
                return {"instance": i, "partials": record}
            case Save(i, place) | Restore(i, place):
                return {"instance": i, "place": place}
            case Keep(number) | Recall(number) | Tick(number):
                return {"place": number}
            case Remember(buffer):
                return {"place": -1 if buffer is None else buffer}
            case Revert(i, buffer):
                return {"instance": i, "place": buffer, **self._lender.outputs(i)}
            case Call(number):
                return {"hook": lend_hook(self._lender, self._context, self._hooks[number])}
            case Repeat(least, most, bounded):
                return {"least": least, "most": most, "group": int(bounded)}
            case Until(tolerance):
                return {"at": tolerance}
            case Parallel(count):
                return {"least": count}
            case Update(i):
                return {"instance": i}
        return {}

    def _values(self, instruction: Move | Set | Get, i: int, group: Group) -> Fields:
        """What a group of an instance is moved by, or the calls that set or read it."""
        key = type(instruction), i, group
        if key not in self._shared:
            self._shared[key] = self._make_values(instruction, i, group)
        return self._shared[key]

    def _make_values(self, instruction: Move | Set | Get, i: int, group: Group) -> Fields:
        entry, lender = self._entries[i], self._lender
        match instruction, group:
            case Move(), Group.TRIGGERS:
                return {"op": lib.FM_MOVE_TRIGGERS, **self._triggers(i)}
            case Move(), _:
                return lender.moves(self.plan.routes[i, group])
            case Set(), Group.INTERVALS:
                given = GivenIntervals(self.plan, i, entry.instance)
                return {"op": lib.FM_CALL, "hook": lend_hook(lender, self._context, given)}
            case Set(), Group.TRIGGERS:
                return {"op": lib.FM_SET_TRIGGERS, **self._triggers(i)}
            case Get(), Group.CLOCKS:
                fields = {"op": lib.FM_GET_CLOCKS, "clocks": lender.input_clocks(i)}
                return {**lender.calls(entry, i, group), **fields}
            case Get(), Group.CLOCKED:
                return {"op": lib.FM_GET_CLOCKED, "clocked": lender.clocked(entry, i)}
            case Get(), Group.INTERVALS:
                return {"op": lib.FM_GET_INTERVALS, "inquiry": lender.inquiry(entry, i)}
        return lender.calls(entry, i, group)

    def _triggers(self, i: int) -> Fields:
        """Triggers of an instance, for MOVE and SET alike."""
        key = Instruction, i, Group.TRIGGERS
        if key not in self._shared:
            self._shared[key] = self._lender.triggers(self._entries[i], i)
        return self._shared[key]

    def _fit(self, fit: Fit) -> Fields:
        lender, n = self._lender, len(fit.buffers)
        buffers = lender.lent(ffi.new("int[]", fit.buffers))
        inputs = [
            {
                **{
                    name: nan if v is None else v
                    for name, v in wanted._asdict().items()
                    if name != "history"
                },
                "n_copies": n + (len(lender.store.history) if wanted.history else 0),
            }
            for k, route in enumerate(self.plan.routes[fit.instance, Group.CONTINUOUS])
            for wanted in [fit.of_route(k)] * route.size
        ]
        each = lender.lent(ffi.new("fm_fitted[]", inputs))
        fields = (fit.rows, fit.is_constant, n, buffers, each)
        set_ = Set(fit.instance, Group.CONTINUOUS)
        lender.kernel.fits = True
        self._make_scratch(fit)
        return {
            "instance": fit.instance,
            "at": fit.at,
            "fit": lender.lent(ffi.new("fm_fit *", fields)),
            "segments": self._values(set_, fit.instance, Group.CONTINUOUS)["segments"],
        }

    def _make_scratch(self, fit: Fit) -> None:
        """Room to fit polynomials in, and for the derivatives of all inputs of an instance."""
        segments = self.plan.layout.segments(fit.instance, Group.CONTINUOUS)
        n = sum(s.stop - s.start for s in segments)
        size = (n + 5) * (fit.rows + 1)
        if size > self._scratch:
            self._scratch = size
            self._lender.kernel.scratch = self._lender.doubles(np.zeros(size))

    def _align(self, align: Align) -> list[Fields]:
        """What brings an instance back; the kernel skips it if the instance is not beyond the limit."""
        i, segments = align.instance, self.plan.layout.segments
        back: list[Instruction] = [Restore(i, align.place)]
        back += [Set(i, Group.CONTINUOUS)] if segments(i, Group.CONTINUOUS) else []
        back += [Step(i, 1.0)]
        back += [Get(i, Group.OUTPUTS)] if segments(i, Group.OUTPUTS) else []
        steps = [entry for b in back for entry in self._entries_of(b)]
        around = {"instance": i, "least": len(steps) + 1}
        return [{"op": OPERATIONS[Align], **around}, *steps, {"op": lib.FM_ALIGNED, **around}]


def _may_end_before(program: Program, plan: Plan) -> bool:
    """Whether a step of a program may have to end before its end: at an early return, or at an event between its parts."""
    if plan.instances.any_may_return_early:
        return True
    has_parts = any(isinstance(i, Step) and i.end < 1.0 for i in program.instructions)
    return has_parts and any(i.event_mode for i in plan.instances)


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
            inside += [*_in_one(entries[at:k]), *entries[k : k + 1 + entry["least"]]]
            at = k + 1 + entry["least"]
    inside += _in_one(entries[at:]) if at else entries
    return [{"op": lib.FM_FUSED, "line": entries[0]["line"], "least": len(inside)}, *inside]
