"""The instructions of a program: their docstrings are the one definition of what they mean.

A program is a short, flat list of instructions over one interval from ``begin`` to ``end``. Instances, groups of their
variables, places for FMU states and buffers for outputs are named by index; places in the interval by a fraction from
0 to 1. There are no strings, no variables, no jumps but REPEAT, so that an interpreter in any language is small. The one
in Python (:mod:`fmimaster.run.reference`) is the specification by example.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from enum import Enum

from fmimaster.plan.layout import Group
from fmimaster.system.states import State


@dataclass(frozen=True, slots=True)
class Instruction:
    """Base of all instructions."""

    def __str__(self) -> str:
        """Its name and its operands; the last ones are left out while they have their defaults."""
        operands = [(getattr(self, f.name), f.default) for f in fields(self)]
        while operands and operands[-1][1] is not MISSING and operands[-1][0] == operands[-1][1]:
            operands.pop()
        return " ".join([type(self).__name__.upper(), *(_text(operand) for operand, _ in operands)])


def _text(operand: object) -> str:
    text = operand.name if isinstance(operand, Enum) else f"{operand}".replace(" ", "")
    return text.lower()


@dataclass(frozen=True, slots=True)
class Move(Instruction):
    """Inputs in the store ← the outputs they are connected to, transformed; they are held over the interval.

    Of the group TRIGGERS: a trigger becomes active if one of the output clocks that feed it is, and what comes along with
    an active trigger moves.
    """

    instance: int
    group: Group


@dataclass(frozen=True, slots=True)
class Fit(Instruction):
    """Polynomials of the continuous inputs, centred at fraction ``at`` of the interval.

    Each goes through the source's output as it is in the store, then through the first of the buffers in which that
    source was read at another time, then with ``history`` through the first points of the history likewise, until there
    are ``points`` of them; at each point it takes as many derivatives of the output as the source publishes, at most
    ``derivatives``. An input whose source publishes too few is held at its present value.

    A copy of the outputs that is nearer to the newest point than 1/50 of the interval gives one derivative more there
    instead of a point, by the difference of the highest derivatives: a polynomial through both would be ill-conditioned.
    A copy that is as near to another point gives nothing.

    With ``held`` the inputs are constant over the interval, at the values that these polynomials have at that fraction of
    it.
    """

    instance: int
    at: float
    points: int
    derivatives: int
    buffers: tuple[int, ...]
    history: bool = False
    held: float | None = None


@dataclass(frozen=True, slots=True)
class Set(Instruction):
    """Group in the store → FMU. Continuous inputs take the value of their polynomial where the instance stands, and the
    FMU is told of the rest of the polynomial by the means it has.

    Of the group TRIGGERS: active triggers with what comes along; a counter counts up. None is active afterwards.
    """

    instance: int
    group: Group


@dataclass(frozen=True, slots=True)
class Get(Instruction):
    """FMU → group in the store. For outputs the store notes the time at which the instance stands."""

    instance: int
    group: Group


@dataclass(frozen=True, slots=True)
class Step(Instruction):
    """``DoStep`` from where the instance stands to the fraction ``end`` of the interval, but not beyond the limit.

    The limit is the time of the earliest early return in this pass, the end of the interval until there is one. An
    instance that returns early sets it; one that stands at it or beyond is not stepped. An instance that *discards* a step
    at an event of its own sets the limit too, and counts as standing at the end of the step: ALIGN brings it back.
    """

    instance: int
    end: float


@dataclass(frozen=True, slots=True)
class Align(Instruction):
    """If the instance stands beyond the limit: RESTORE from place, SET its continuous inputs, STEP to the limit, GET."""

    instance: int
    place: int


@dataclass(frozen=True, slots=True)
class Save(Instruction):
    """FMU state, and where the instance stands → place."""

    instance: int
    place: int


@dataclass(frozen=True, slots=True)
class Restore(Instruction):
    """FMU state, and where the instance stands ← place, unless it has not moved since. The outputs in the store stay."""

    instance: int
    place: int


@dataclass(frozen=True, slots=True)
class Keep(Instruction):
    """Outputs of all instances, and when each was read → buffer."""

    buffer: int


@dataclass(frozen=True, slots=True)
class Recall(Instruction):
    """Outputs of all instances, and when each was read ← buffer."""

    buffer: int


@dataclass(frozen=True, slots=True)
class Remember(Instruction):
    """The outputs become the newest point of the history, the oldest is dropped."""


@dataclass(frozen=True, slots=True)
class Forget(Instruction):
    """There is no history: no point before this instant serves a polynomial any more."""


@dataclass(frozen=True, slots=True)
class Repeat(Instruction):
    """The instructions down to the matching UNTIL, again and again; not nested.

    At least ``least`` passes are done. A run that has done ``most`` passes without coming to rest stops: not converged.
    Each pass begins with the limit at the end of the interval, and with nobody who asks for an event or an update.
    """

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Until(Instruction):
    """End of a REPEAT: leave if nobody wants another update, the limit differs by at most 1e-9 s from that of the pass
    before (for the first pass: from the end of the interval), the same instances ask for an event as then (at first:
    none), and no output has changed by more than the tolerance since the pass before.

    The change of a floating point output counts relative to the larger of its nominal value and its magnitude, all
    other outputs must be equal. The first pass is never at rest, since there is none to compare it with; ``inf`` asks
    for nothing but the number of passes.
    """

    tolerance: float


@dataclass(frozen=True, slots=True)
class Parallel(Instruction):
    """The next ``count`` instructions are STEPs of different instances: they may be done at the same time."""

    count: int


@dataclass(frozen=True, slots=True)
class Mode(Instruction):
    """Bring the instance to a state: the FMI calls that enter it, or leave the one before."""

    instance: int
    state: State


@dataclass(frozen=True, slots=True)
class Update(Instruction):
    """``UpdateDiscreteStates``: the instance can want another one, end the run, and name the time of its next event."""

    instance: int


@dataclass(frozen=True, slots=True)
class Tick(Instruction):
    """The trigger of that number becomes active."""

    trigger: int


@dataclass(frozen=True, slots=True)
class Call(Instruction):
    """The hook of that number (:class:`fmimaster.program.hook.Hook`) works on the value store."""

    hook: int


@dataclass(frozen=True, slots=True)
class Sample(Instruction):
    """Append time and recorded outputs to the results."""


@dataclass(frozen=True, slots=True)
class Program:
    """A name and a list of instructions over one interval."""

    name: str
    instructions: tuple[Instruction, ...]

    def __bool__(self) -> bool:
        return bool(self.instructions)
