"""The programs of a run as one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit

if TYPE_CHECKING:
    from fmimaster.program.input_errors import InputErrors
    from fmimaster.program.real_time import RealTime


class EventPrograms(Protocol):
    """Finds the program of an event."""

    def __call__(
        self,
        instances: tuple[int, ...],
        fired: tuple[int, ...],
        early: bool = False,
        late: tuple[int, ...] = (),
    ) -> Program:
        """The program of an event.

        Parameters
        ----------
        instances
            Instances that the event affects.
        fired
            Triggers that become active.
        early
            Whether an early return is the cause, for algorithms that need it.
        late
            Instances that the event affects and that stand ahead: they have it at their own time.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChangedStructure:
    """The programs of a change of the structure of a system, and the instances that it affects besides new ones."""

    before: Program
    """Up to where values of the user may be set."""
    after: Program
    """The rest: new instances are initialized, the others get their inputs, and rows are recorded."""
    modes: tuple[int, ...]
    """Instances in Event Mode."""
    corrected: tuple[int, ...]
    """Instances whose outputs are corrected for their new inputs."""
    late: tuple[int, ...]
    """Instances whose outputs show their new inputs after the next step."""


ChangePrograms = Callable[[frozenset[int], frozenset[int]], ChangedStructure]
"""The programs of a change of the structure: for instances that join, and others with inputs from other sources than
before."""

PartPrograms = Callable[[frozenset[int]], Program]
"""The attempt without the instances that stand ahead, which do not step."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The programs of one variant of an algorithm."""

    attempt: Program
    rollback: Program
    """Undoes the attempt; empty if none can be undone."""
    tell: Program
    """Sets the parameters of the FMUs that differ between variants; empty if none does."""
    event: EventPrograms
    """The programs of events while this variant is used."""
    first: int | None
    """The instance whose inputs are extrapolated; the others decide on shared events. None if there is none."""
    without: PartPrograms
    """The programs of attempts while instances stand ahead; see :attr:`InstancePlan.stays_ahead`."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Order of the variants on a grid whose intervals repeat."""

    intervals: tuple[int, ...]
    """The variant of each interval, counted from the start of the run."""
    last: int
    """The variant of the last step of the run."""


class Quiet(NamedTuple):
    """The programs that change the policy of an instance at its own events between two steps."""

    ignore: Program
    announce: Program


@dataclass(frozen=True, slots=True)
class Replay:
    """Measures whether FMUs repeat a step exactly after their state was restored; empty if this is not needed."""

    twice: Program = Program("replay", ())
    """Over two steps: one, and then the next one twice; a hook compares."""
    back: Program = Program("back", ())
    """Restores all states."""
    ignoring: Sequence[str] = ()
    """Names of FMUs that have ignored derivatives of their inputs in it."""


NEGLIGIBLE = 1e-9
"""Change of an output, relative to its value, that is rounding, or too weak for any loop: the input changes by 1e-3."""

NOISE = 10.0
"""A change counts if it is larger than what equal inputs change by this factor."""

DIRECT = 0.25
"""Ratio of the changes over the shorter and the longer step from which the output reacts at once. Behind a state it is 1/8
or less; an output with a time constant of less than a hundredth of a step counts as direct."""

AT_START, LONGER, SHORTER = range(3)
"""Where reactions are measured: in Initialization Mode, and over two short steps."""


@dataclass(frozen=True, slots=True)
class Question:
    """Inputs and outputs of an instance that are in a cycle of connections, if outputs may depend on inputs unknown to the
    plan."""

    instance: int
    inputs: tuple[str, ...]
    """Those that are changed."""
    fixed: tuple[str, ...]
    """Those that cannot be changed."""
    outputs: tuple[str, ...]
    open: tuple[str, ...]
    """Outputs whose dependencies are not declared; the declarations of the others may be wrong."""


@dataclass
class Seen:
    """What was seen in one place of measurement, at all outputs of instances that are measured together.

    What follows from it is asked for when all has been seen.
    """

    changes: NDArray[np.float64]
    """Shape (inputs, outputs): largest change of each output by each input."""
    noise: NDArray[np.float64]
    """Shape (outputs,): largest change of each output with equal inputs."""
    sizes: NDArray[np.float64]
    """Shape (outputs,): magnitudes of the outputs."""
    moves: NDArray[np.float64]
    """Shape (outputs,): changes of the outputs by a step with equal inputs."""

    @staticmethod
    def of(inputs: int, outputs: int) -> Seen:
        """Nothing yet."""
        return Seen(np.zeros((inputs, outputs)), *np.zeros((3, outputs)))

    @cached_property
    def reacted(self) -> list[list[bool]]:
        """Of each output: which inputs have changed it."""
        least = np.maximum(NEGLIGIBLE * self.sizes, NOISE * self.noise)
        changed: list[list[bool]] = (self.changes > least).T.tolist()
        return changed

    @cached_property
    def steady(self) -> list[bool]:
        """Of each output: whether it has come back with the inputs."""
        steady: list[bool] = (self.noise <= NEGLIGIBLE * self.sizes).tolist()
        return steady

    @cached_property
    def goes_back(self) -> list[bool]:
        """Of each output: whether it differs by less than what a step changes, after equal steps from a saved state."""
        differs = (self.noise > NEGLIGIBLE * self.sizes) & (self.noise > self.moves / 2)
        goes_back: list[bool] = (~differs).tolist()
        return goes_back


@dataclass(slots=True, eq=False)
class Reactions:
    """What was measured at one instance."""

    question: Question
    name: str
    """Of the instance."""
    can_step: bool
    """Whether it can do short steps and go back."""
    at: int = AT_START
    """Where it is measured now."""
    is_busy: bool = False
    """Whether its inputs are being changed."""
    seen: dict[int, tuple[Seen, slice]] = field(default_factory=dict)
    """Place of measurement → what was seen there, and which outputs are its own."""

    @property
    def shown(self) -> Iterator[tuple[list[list[bool]], list[bool]]]:
        """Of each place: which inputs have changed which outputs, and which outputs have come back."""
        return ((seen.reacted[own], seen.steady[own]) for seen, own in self.seen.values())

    @property
    def is_steady(self) -> bool:
        """Whether the outputs have come back with the inputs, in Initialization Mode."""
        seen, own = self.seen[AT_START]
        return all(seen.steady[own])

    @property
    def goes_back(self) -> bool:
        """Whether equal short steps from its saved state were equal: otherwise outputs differ by what a step changes."""
        return all(
            all(seen.goes_back[own]) for at, (seen, own) in self.seen.items() if at != AT_START
        )

    @property
    def at_start(self) -> Mapping[str, frozenset[str]]:
        """Output → inputs to which it reacts in Initialization Mode."""
        seen, own = self.seen[AT_START]
        return self._named(seen.reacted[own])

    def needs_steps(self, declared: Mapping[str, frozenset[str]]) -> bool:
        """Whether short steps decide: an output declares no dependencies, or reacts to more than it declares.

        Parameters
        ----------
        declared : output → inputs on which it depends directly in Step Mode
        """
        reacts = (
            seen - declared.get(output, frozenset()) for output, seen in self.at_start.items()
        )
        return self.can_step and (bool(self.question.open) or any(reacts))

    @property
    def in_steps(self) -> Mapping[str, frozenset[str]] | None:
        """Output → inputs to which it reacts at once in a step; None if no short steps were done."""
        if SHORTER not in self.seen:
            return None
        (shorter, own), (longer, others) = self.seen[SHORTER], self.seen[LONGER]
        grows = shorter.changes[:, own] > DIRECT * longer.changes[:, others]
        reacted = zip(shorter.reacted[own], grows.T.tolist(), strict=True)
        return self._named([[a and b for a, b in zip(*both, strict=True)] for both in reacted])

    def begin_anew(self) -> None:
        """Nothing was seen, as before each run."""
        self.at, self.is_busy, self.seen = AT_START, False, {}

    def forget_steps(self) -> None:
        """Nothing was seen in short steps."""
        self.seen = {AT_START: self.seen[AT_START]}

    def _named(self, seen: Iterable[Iterable[bool]]) -> dict[str, frozenset[str]]:
        outputs, inputs = self.question.outputs, self.question.inputs
        return {
            y: frozenset(compress(inputs, those)) for y, those in zip(outputs, seen, strict=True)
        }


class ShortSteps(NamedTuple):
    """Short steps of some instances."""

    reactions: Sequence[Reactions]
    steps: Program
    """A short step for each input, from the same state."""
    back: Program
    """Restores the states and the outputs after it."""


ShortStepPrograms = Callable[[Sequence[Reactions]], Iterator[ShortSteps]]
"""The short steps of instances."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one run, and their requirements on an executor."""

    initialize: Program
    variants: tuple[Variant, ...]
    """Variants; more than one for algorithms that choose at each step."""
    restart: Variant | None
    """Variants for steps without history, if they differ."""
    commit: Program
    renew: Program
    """Clears the history except the present point."""
    terminate: Program
    n_places: int
    n_buffers: int
    history: int
    hooks: Sequence[Hook]
    """The hooks called by CALL, by number."""
    change: ChangePrograms
    """The programs of changes of the structure; the plan is that of the new one."""
    between: int = 0
    """Number of points inside each step that are also in the history."""
    polynomial_inputs: frozenset[int] = frozenset()
    """Instances whose inputs are polynomials at any time."""
    undoes: bool = False
    """Whether an attempt can be undone."""
    errors: InputErrors | None = None
    """Checks the inputs; part of the commit."""
    pace: RealTime | None = None
    """Waits for the wall clock; part of the commit."""
    held: frozenset[int] = frozenset()
    """Instances whose inputs are held at the mean of a polynomial at any time."""
    held_in_loops: frozenset[tuple[int, str]] = frozenset()
    """Instances with inputs in loops that are not solved, and that are held therefore, not by a setting."""
    notes: tuple[str, ...] = ()
    """Notes: parameters of FMUs set by the run, unsolved loops, and special treatment because of capabilities of
    FMUs."""
    replay: Replay = Replay()
    """For the start of the run."""
    reactions: Sequence[Reactions] = ()
    """What is measured at the start because it decides about loops."""
    short_steps: ShortStepPrograms | None = None
    """The short steps by which it is measured further; None if nothing is measured."""
    pending: tuple[str, ...] = ()
    """Notes about loops that may be none, which this measurement decides."""
    resume: Program = Program("resume", ())
    """Reads all outputs after the FMUs have taken other states, forgets the history, and records a row."""
    forces: Program = Program("forces", ())
    """Sets the forces at contacts, before a step; empty if there are none."""
    quiet: Mapping[int, Quiet] = field(default_factory=dict)
    """Instances that stop at their own events, and can be set to ignore them while they lie against another body."""
    pattern: Pattern | None = None
    """Order of the variants, if there are several and the algorithm does not choose."""
    accuracy_warnings: tuple[str, ...] = ()
    """Warnings about results that will be less accurate than they should be."""
    unsolved: tuple[str, ...] = ()
    """Those of them about loops; how much these matter is known when the error of the coupling is measured."""

    @property
    def chooses(self) -> bool:
        """Whether the algorithm chooses a variant for each step."""
        return len(self.variants) > 1 and self.pattern is None

    @property
    def extrapolates(self) -> bool:
        """Whether inputs are extrapolated from points before a step."""
        return any(i.history for i in self._fits())

    @property
    def follows_lines(self) -> bool:
        """Whether inputs go through outputs of several instants: values from before a jump must not be among them."""
        return any(i.history or i.buffers for i in self._fits())

    def _fits(self) -> Iterator[Fit]:
        every = [*self.variants, *([self.restart] if self.restart else [])]
        return (i for v in every for i in v.attempt.instructions if isinstance(i, Fit))

    @property
    def attempt(self) -> Program:
        """The program of an attempt; that of the first variant, if there are several."""
        return self.variants[0].attempt

    @property
    def event(self) -> EventPrograms:
        """The programs of events; those of the first variant, if there are several."""
        return self.variants[0].event
