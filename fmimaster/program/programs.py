"""The programs of a run as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fmimaster.program.hook import Hook
from fmimaster.program.instructions import Fit, Program


class EventPrograms(Protocol):
    """Finds the program of an event."""

    def __call__(
        self, instances: tuple[int, ...], fired: tuple[int, ...], early: bool = False
    ) -> Program:
        """The program of an event.

        Parameters
        ----------
        instances
            Instances that the event concerns.
        fired
            Triggers that become active.
        early
            Whether an early return is the cause, for algorithms to which that makes a difference.
        """
        ...


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the ways of an algorithm to step: its programs."""

    attempt: Program
    rollback: Program
    """Undoes the attempt; empty if none can be undone."""
    tell: Program
    """Sets the parameters of the FMUs that differ between variants; empty if none does."""
    event: EventPrograms
    """What happens at events while this variant is in use."""
    first: int | None
    """The instance whose inputs are extrapolated, so that the others decide on shared events; None if there is none."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """In which order variants are taken on a grid whose intervals repeat."""

    intervals: tuple[int, ...]
    """The variant of each interval, counted from the start of the run."""
    last: int
    """The variant of the last step of the run."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Measures whether FMUs repeat a step exactly after their state was restored; empty if nothing relies on it."""

    twice: Program = Program("replay", ())
    """Over two steps: one, and then the next one twice; a hook compares."""
    back: Program = Program("back", ())
    """All as before."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one run, and what they need of an executor."""

    initialize: Program
    variants: tuple[Variant, ...]
    """More than one for algorithms that choose at each step."""
    restart: Variant | None
    """For steps without history, if the algorithm does them in another way."""
    commit: Program
    renew: Program
    """Forgets the history except for the present point."""
    terminate: Program
    n_places: int
    n_buffers: int
    history: int
    hooks: Sequence[Hook]
    """What CALL calls, by number."""
    between: int = 0
    """How many points inside each step are in the history, too, between those at its ends."""
    polynomial_inputs: frozenset[int] = frozenset()
    """Instances whose inputs come as polynomials at any time."""
    undoes: bool = False
    """Whether an attempt can be undone."""
    held: frozenset[int] = frozenset()
    """Instances whose inputs are held at the mean of a polynomial at any time."""
    notes: tuple[str, ...] = ()
    """Parameters of FMUs that the run sets, loops that are not solved, and what is done because of what FMUs can do."""
    replay: Replay = Replay()
    """For the start of the run."""
    resume: Program = Program("resume", ())
    """Reads all outputs after the FMUs have taken other states, forgets the history, and records a row."""
    pattern: Pattern | None = None
    """In which order the variants are taken, if neither there is one alone nor the algorithm chooses."""
    accuracy_warnings: tuple[str, ...] = ()
    """Where results will be less accurate than they should be."""

    @property
    def chooses(self) -> bool:
        """Whether the algorithm chooses a variant for each step."""
        return len(self.variants) > 1 and self.pattern is None

    @property
    def extrapolates(self) -> bool:
        """Whether inputs are extrapolated from points before a step."""
        every = [*self.variants, *([self.restart] if self.restart else [])]
        return any(isinstance(i, Fit) and i.history for v in every for i in v.attempt.instructions)

    @property
    def attempt(self) -> Program:
        """The program of an attempt; that of the first variant, if there are several."""
        return self.variants[0].attempt

    @property
    def event(self) -> EventPrograms:
        """The programs of events; those of the first variant, if there are several."""
        return self.variants[0].event
