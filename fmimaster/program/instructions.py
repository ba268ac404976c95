"""The instructions of a program; their docstrings define their meaning.

A program is a short, flat list of instructions over one interval from ``begin`` to ``end``. Instances, groups of their
variables, places for FMU states and buffers for outputs are named by index; places in the interval by a fraction from
0 to 1. There are no strings, no variables, and no jumps except REPEAT, so an interpreter in any language is small. The
Python interpreter (:mod:`fmimaster.run.reference`) is the reference implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from fmimaster.plan.layout import Group
from fmimaster.system.states import State

MOST_NESTED = 4
"""Largest nesting depth of REPEATs in the kernel."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """Base of all instructions."""

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


def _text(operand: object) -> str:
    text = operand.name if isinstance(operand, Enum) else f"{operand}".replace(" ", "")
    return text.lower()


@dataclass(frozen=True, slots=True)
class Move(Instruction):
    """Inputs in the store ← the outputs they are connected to, transformed; they are held over the interval.

    For the group TRIGGERS: a trigger becomes active if one of its connected output clocks is active, and the payload of
    active triggers is moved.
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
        """Number of coefficients of the polynomial."""
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
    the same for all routes to the instance, or a tuple with one value for each.

    If a copy of the outputs is nearer to the newest point than 1/50 of the interval, it gives one more derivative there
    instead of a point, by the difference of the highest derivatives, because a polynomial through both would be
    ill-conditioned. A copy that is as near to another point is ignored.

    With ``held`` an input is constant over the interval, at the value that its polynomial has at that fraction of it; with
    ``mean`` at its mean from ``at`` to that fraction. If all inputs are constant, their values are in the store, as
    after a MOVE.

    With ``adaptive`` each extrapolated input uses one point or one derivative less, or both, if this has the smaller
    *measured error*: the difference at the newest point from the prediction by the points before it, or 0.9 of the
    measured error at the point before, whichever is more. Without an older point nothing is measured. The largest
    polynomial is taken until its error is measured, and if this interval is shorter than 0.8 or longer than 1.25 of the
    last one.

    With ``compensation`` an extrapolated input that is held at a mean is corrected by a part of its error over the last
    interval: ``compensation * (m - g) * h / H`` is added, where h and H are the lengths of the last interval and of the
    present one, g is the value given over the last one, and m is the mean of the outputs at its two ends. The last
    interval began when a value was given before. Without an older point that is 0, or if an output is not finite.

    With ``late`` the newest point is treated as a point at that fraction, and the one before as a point at ``at``.
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
    """Group in the store → FMU. Continuous inputs get the value of their polynomial at the time of the instance; the
    FMU gets the other coefficients in the form that it accepts.

    An instance that is at the limit or beyond it is not set: it does no step there, and FMI forbids to read outputs
    between setting inputs and stepping.

    For the group TRIGGERS: active triggers with their payload; a counter is incremented. No trigger is active
    afterwards. For each clock among the INPUT_CLOCKS the store then shows whether it was set. For the group INTERVALS, in
    Initialization Mode: intervals and shifts of clocks that the importer decides.
    """

    instance: int
    group: Group


@dataclass(frozen=True, slots=True)
class Get(Instruction):
    """FMU → group in the store. For outputs, the store also gets the time of the instance.

    SOURCES are the outputs that others need at the start. CLOCKS are output clocks at the start of an event iteration,
    where no input clock is active in the store. CLOCKED are output clocks that have become active since, in addition, and
    then the clocked outputs of which a clock is active. INTERVALS are the changed intervals of clocks; a changing clock is
    asked only when it was active or in Initialization Mode, where shifts are read too. They stay in the store until
    somebody takes them.
    """

    instance: int
    group: Group


@dataclass(frozen=True, slots=True)
class Correct(Instruction):
    """Outputs in the store that depend directly on the continuous inputs ← their values with the present inputs.

    FMI forbids reading outputs after setting inputs in Step Mode. Therefore the partial derivatives times the
    difference between the connected outputs, transformed, and the inputs that the instance has are added; its inputs in
    the store ← those outputs, and they are held. The inputs of the instance are those in the store, or the values of
    their polynomials at its time. With unchanged inputs nothing is called. The plan's corrections define the outputs
    and the source of the derivatives.
    """

    instance: int


@dataclass(frozen=True, slots=True)
class Derive(Instruction):
    """If the hook of that number has requested them: partial derivatives of outputs by inputs of the instance → hook.

    They are directional derivatives of the FMU at its present inputs, one for each input; see
    :class:`fmimaster.program.hook.Partials`. If an output is not finite, all are NaN and the FMU is not called, because
    it may return an error there.
    """

    instance: int
    hook: int


@dataclass(frozen=True, slots=True)
class Step(Instruction):
    """``DoStep`` from the time of the instance to the fraction ``end`` of the interval, but not beyond the limit.

    The limit is the time of the earliest early return or event in this pass; before the first one it is the end of the
    interval. An instance that returns early sets the limit, and so does one that requests an event, since it must not step
    on before Event Mode: the parts of a step end there. An instance at the limit or beyond it is not stepped. An instance
    that *discards* a step at its own event also sets the limit, and is treated as being at the end of the step: ALIGN
    rolls it back.

    If an instance ends the run in a part of a step, nothing of the program follows.

    A time that differs from the start or the end of the step by rounding is the start or the end. An early return at
    the start is an event there. A return at the end is no early return; a step that is discarded at its end is repeated
    up to an earlier time.
    """

    instance: int
    end: float


@dataclass(frozen=True, slots=True)
class Align(Instruction):
    """If the instance is beyond the limit: RESTORE from place, SET its continuous inputs, STEP to the limit, GET.

    This is repeated if the instance discards that step and stops before the limit, at most 20 times.
    """

    instance: int
    place: int


@dataclass(frozen=True, slots=True)
class Save(Instruction):
    """FMU state and time of the instance → place."""

    instance: int
    place: int


@dataclass(frozen=True, slots=True)
class Restore(Instruction):
    """FMU state and time of the instance ← place, unless it has not moved since. Outputs in the store are unchanged."""

    instance: int
    place: int


@dataclass(frozen=True, slots=True)
class Keep(Instruction):
    """Outputs of all instances with their read times, the limit and the event requests → buffer."""

    buffer: int


@dataclass(frozen=True, slots=True)
class Recall(Instruction):
    """Outputs of all instances with their read times, the limit and the event requests ← buffer.

    An attempt since the KEEP then has no effect. In a later execution the limit is at most its end.
    """

    buffer: int


@dataclass(frozen=True, slots=True)
class Revert(Instruction):
    """Outputs of one instance with their read time ← buffer. The limit and the event requests are unchanged."""

    instance: int
    buffer: int


@dataclass(frozen=True, slots=True)
class Remember(Instruction):
    """The outputs, or those of a buffer, become the newest point of the history; the oldest is removed.

    A buffer holds outputs from inside the interval, which an attempt has kept.
    """

    buffer: int | None = None


@dataclass(frozen=True, slots=True)
class Forget(Instruction):
    """Clear the history: polynomials no longer use points before this instant."""


@dataclass(frozen=True, slots=True)
class Repeat(Instruction):
    """Repeat the instructions down to the matching UNTIL. Repetitions can be nested.

    At least ``least`` passes are done. After ``most`` passes without convergence the program stops; if it is
    ``bounded``, it continues as after convergence. Each pass begins with the limit and the event requests of the
    REPEAT, and without a request for another pass.
    """

    least: int
    most: int
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Until(Instruction):
    """End of a REPEAT: leave it if

    * no UPDATE and no hook in this pass has requested another one,
    * the limit differs by at most 1e-9 s from that after the pass before (for the first pass: at the REPEAT), or by
      rounding; the instances that request an event there may differ,
    * no output has changed by more than the tolerance since the pass before.

    The change of a floating point output is relative to the larger of its nominal value and its magnitude; all other
    outputs must be equal. In the first pass all outputs have changed, because there is no pass to compare with. With
    the tolerance ``inf`` outputs are ignored. Requests of an enclosing REPEAT are unchanged by it.
    """

    tolerance: float


@dataclass(frozen=True, slots=True)
class Parallel(Instruction):
    """The next ``count`` instructions are STEPs of different instances: they may be done at the same time."""

    count: int


@dataclass(frozen=True, slots=True)
class Mode(Instruction):
    """Bring the instance to a state by the FMI calls that enter it or leave the previous one. In Step Mode no clock is
    active."""

    instance: int
    state: State


@dataclass(frozen=True, slots=True)
class Update(Instruction):
    """``UpdateDiscreteStates``: the instance can request another one, and give the time of its next event.

    It can also end the run. Then nothing of the program follows, because FMI requires ``Terminate``.
    """

    instance: int


@dataclass(frozen=True, slots=True)
class Tick(Instruction):
    """The trigger of that number becomes active."""

    trigger: int


@dataclass(frozen=True, slots=True)
class Call(Instruction):
    """The hook of that number works on the value store, and can request another pass of the innermost REPEAT.

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
    """Index of each REPEAT and UNTIL → its nesting depth."""
    depths, outer = dict[int, int](), list[int]()
    for first, last in sorted(closings(instructions).items()):
        outer = [end for end in outer if end > first]
        depths[first] = depths[last] = len(outer)
        outer.append(last)
    return depths


def closings(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Index of each REPEAT → index of its UNTIL; REPEATs without UNTIL are missing."""
    found, open_ = {}, list[int]()
    for k, instruction in enumerate(instructions):
        match instruction:
            case Repeat():
                open_.append(k)
            case Until() if open_:
                found[open_.pop()] = k
    return found
