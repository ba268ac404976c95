"""The instructions of a program: their docstrings are the one definition of what they mean.

A program is a short, flat list of instructions over one interval from ``begin`` to ``end``. Instances, groups of their
variables, places for FMU states and buffers for outputs are named by index; places in the interval by a fraction from
0 to 1. There are no strings, no variables, no jumps but REPEAT, so that an interpreter in any language is small. The one
in Python (:mod:`fmimaster.run.reference`) is the specification by example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from fmimaster.plan.layout import Group
from fmimaster.system.states import State

MOST_NESTED = 4
"""REPEATs inside each other: the kernel has room for so many."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """Base of all instructions."""

    _has_instance: ClassVar[bool] = False

    @property
    def subject(self) -> int | None:
        """Index of the instance that it works on; None if it works on none or on all."""
        return self.instance if self._has_instance else None  # type: ignore[attr-defined]

    def __init_subclass__(cls) -> None:
        """Note once whether the instruction works on an instance: programs of many are walked often."""
        cls._has_instance = "instance" in cls.__annotations__

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


class Fitted(NamedTuple):
    """The operands of FIT for one route."""

    points: int
    derivatives: int
    history: bool = False
    held: float | None = None
    mean: float | None = None
    adaptive: bool = False
    compensation: float = 0.0
    late: float | None = None

    @property
    def size(self) -> int:
        """How many coefficients the polynomial has."""
        return self.points * (self.derivatives + 1)

    @property
    def is_constant(self) -> bool:
        """Whether the input is constant over the interval, because its polynomial is held."""
        return self.held is not None or self.mean is not None


@dataclass(frozen=True, slots=True)
class Fit(Instruction):
    """Polynomials of the continuous inputs, centred at fraction ``at`` of the interval.

    Each goes through the source's output as it is in the store, then through the first of the buffers in which that
    source was read at another time, then with ``history`` through the first points of the history likewise, until there
    are ``points`` of them; at each point it takes as many derivatives of the output as the source publishes, at most
    ``derivatives``. An input whose source publishes too few is held at its present value. Each operand but the buffers is
    the same for all routes to the instance, or a tuple with one for each.

    A copy of the outputs that is nearer to the newest point than 1/50 of the interval gives one derivative more there
    instead of a point, by the difference of the highest derivatives: a polynomial through both would be ill-conditioned.
    A copy that is as near to another point gives nothing.

    With ``held`` an input is constant over the interval, at the value that its polynomial has at that fraction of it; with
    ``mean`` at its mean from ``at`` to that fraction. If all are, they are in the store then, as after a MOVE.

    With ``adaptive`` each input that is extrapolated takes one point or one derivative less, or both, if that has the
    smaller *measured error*: the difference at the newest point from what the points before it predict, or 0.9 of the
    measured error at the point before, whichever is more. Without an older point nothing is measured. The largest
    polynomial is taken until its error is measured, and if this interval is shorter than 0.8 or longer than 1.25 of the
    last one.

    With ``compensation`` an input that is held at a mean, and is extrapolated, is given so much of what it lacked over the
    last interval in addition: ``compensation * (m - g) * h / H``, where h and H are the lengths of the last interval and of
    the present one, g is the value given over the last one, and m is the mean of the outputs at its two ends. The last
    interval began when a value was given before. Without an older point that is 0, or if an output is not finite.

    With ``late`` the newest point counts as one at that fraction, and the one before as one at ``at``.
    """

    instance: int
    at: float
    points: int | tuple[int, ...]
    derivatives: int | tuple[int, ...]
    buffers: tuple[int, ...]
    history: bool | tuple[bool, ...] = False
    held: float | tuple[float | None, ...] | None = None
    mean: float | tuple[float | None, ...] | None = None
    adaptive: bool | tuple[bool, ...] = False
    compensation: float | tuple[float, ...] = 0.0
    late: float | tuple[float | None, ...] | None = None

    @property
    def is_constant(self) -> bool:
        """Whether the inputs are constant over the interval."""
        return all(fitted.is_constant for fitted in self._routes)

    def of_route(self, k: int) -> Fitted:
        """The operands for the k-th route to the instance."""
        return Fitted(*(v[k] if isinstance(v, tuple) else v for v in self._operands))

    @property
    def rows(self) -> int:
        """Coefficients of the largest of the polynomials."""
        return max(fitted.size for fitted in self._routes)

    @property
    def lengths(self) -> set[int]:
        """For how many routes there are operands of their own."""
        return {len(v) for v in self._operands if isinstance(v, tuple)}

    @property
    def _operands(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in Fitted._fields)

    @property
    def _routes(self) -> list[Fitted]:
        """Operands of which all routes have one or the other."""
        return [self.of_route(k) for k in range(min(self.lengths, default=1))]


@dataclass(frozen=True, slots=True)
class Set(Instruction):
    """Group in the store → FMU. Continuous inputs take the value of their polynomial where the instance stands, and the
    FMU gets the rest of the polynomial by the means it has.

    Of the group TRIGGERS: active triggers with what comes along; a counter counts up. None is active afterwards.
    """

    instance: int
    group: Group


@dataclass(frozen=True, slots=True)
class Get(Instruction):
    """FMU → group in the store. For outputs the store notes the time at which the instance stands.

    SOURCES are the outputs that others need at the start."""

    instance: int
    group: Group


@dataclass(frozen=True, slots=True)
class Correct(Instruction):
    """Outputs in the store that depend directly on the continuous inputs ← what they are with the inputs of now.

    FMI forbids to read after setting in Step Mode. So the partial derivatives times the difference between the connected
    outputs, transformed, and the inputs that the instance has are added; its inputs in the store ← those outputs, and they
    are held. The inputs that it has are those in the store, or the values of their polynomials where the instance stands.
    With inputs as they were nothing is called. Which outputs, and how the derivatives are had, is in the plan's
    corrections.
    """

    instance: int


@dataclass(frozen=True, slots=True)
class Derive(Instruction):
    """If the hook of that number has asked for them: partial derivatives of outputs by inputs of the instance → hook.

    They are directional derivatives of the FMU at the inputs that it has, one for each input; see
    :class:`fmimaster.program.hook.Partials`. Where an output is not finite, all are NaN and the FMU is not asked: it may
    return an error there.
    """

    instance: int
    hook: int


@dataclass(frozen=True, slots=True)
class Step(Instruction):
    """``DoStep`` from where the instance stands to the fraction ``end`` of the interval, but not beyond the limit.

    The limit is the time of the earliest early return in this pass, the end of the interval until there is one. An
    instance that returns early sets it; one that stands at it or beyond is not stepped. An instance that *discards* a step
    at an event of its own sets the limit too, and counts as standing at the end of the step: ALIGN brings it back.

    A time that differs from the start or the end of the step by rounding is the start or the end. An early return at the
    start is an event there. One at the end is none; a step that is discarded at its end is done again up to a time before.
    """

    instance: int
    end: float


@dataclass(frozen=True, slots=True)
class Align(Instruction):
    """If the instance stands beyond the limit: RESTORE from place, SET its continuous inputs, STEP to the limit, GET.

    Again if it has stopped before the limit by discarding that step, at most 20 times.
    """

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
    """Outputs of all instances, and when each was read → buffer; the limit and the event requests too."""

    buffer: int


@dataclass(frozen=True, slots=True)
class Recall(Instruction):
    """Outputs of all instances, and when each was read ← buffer; the limit and the event requests too.

    So what has been tried since the KEEP leaves nothing. In a later execution the limit is at most its end.
    """

    buffer: int


@dataclass(frozen=True, slots=True)
class Revert(Instruction):
    """Outputs of one instance, and when they were read ← buffer. The limit and the event requests stay."""

    instance: int
    buffer: int


@dataclass(frozen=True, slots=True)
class Remember(Instruction):
    """The outputs, or those of a buffer, become the newest point of the history, the oldest is dropped.

    A buffer holds outputs from inside the interval, which an attempt has kept.
    """

    buffer: int | None = None


@dataclass(frozen=True, slots=True)
class Forget(Instruction):
    """There is no history: no point before this instant serves a polynomial any more."""


@dataclass(frozen=True, slots=True)
class Repeat(Instruction):
    """The instructions down to the matching UNTIL, again and again; it nests.

    At least ``least`` passes are done. A program that has done ``most`` passes without an end stops: not converged; if it
    is ``bounded``, it goes on after them as if they had converged. Each pass begins with the limit and the event requests
    as they were at the REPEAT, and with no wish for another pass.
    """

    least: int
    most: int
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Until(Instruction):
    """End of a REPEAT: leave it if

    * no UPDATE and no hook in this pass has asked for another one,
    * the limit differs by at most 1e-9 s from that after the pass before (for the first pass: at the REPEAT), or by
      rounding; whichever instances request an event there, it is one instant,
    * no output has changed by more than the tolerance since the pass before.

    The change of a floating point output counts relative to the larger of its nominal value and its magnitude, all
    other outputs must be equal. In the first pass all outputs have changed, since there is none to compare it with; with
    the tolerance ``inf`` outputs do not count. After it, an enclosing REPEAT finds its own wishes as they were.
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
    """The hook of that number works on the value store, and can ask for another pass of the innermost REPEAT.

    See :class:`fmimaster.program.hook.Hook`.
    """

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


def nesting(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Index of each REPEAT and UNTIL → how many others it is inside of."""
    depths, outer = dict[int, int](), list[int]()
    for first, last in sorted(closings(instructions).items()):
        outer = [end for end in outer if end > first]
        depths[first] = depths[last] = len(outer)
        outer.append(last)
    return depths


def closings(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Index of each REPEAT → index of the UNTIL that closes it; without those that have no partner."""
    found, open_ = {}, list[int]()
    for k, instruction in enumerate(instructions):
        match instruction:
            case Repeat():
                open_.append(k)
            case Until() if open_:
                found[open_.pop()] = k
    return found
