"""What instructions do to instances, outputs and buffers, for those that follow a program without executing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fmimaster.plan.layout import Group
from fmimaster.system.states import State


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


class Effects:
    """Follows a program: each instruction calls the method of what it does. Here none has a consequence.

    The checker derives its knowledge in this way, :mod:`fmimaster.program.delays` the delays, and the emitter the buffers
    that it can use.
    """

    def move(self, i: int, group: Group, fitted: Callable[[int], Fitted] | None = None) -> None:
        """Inputs of a group in the store belong to the time of the instance; not held, with the operands of
        FIT for the k-th route."""

    def set(self, i: int, group: Group) -> None:
        """A group in the store → FMU."""

    def get(self, i: int, group: Group) -> None:
        """A group of the FMU → store."""

    def update(self, i: int) -> None:
        """The instance has other discrete states."""

    def enter(self, i: int, state: State) -> None:
        """The instance is in another state of FMI."""

    def step(self, i: int, end: float) -> None:
        """The instance stands at a fraction of the interval."""

    def align(self, i: int) -> None:
        """The instance is not past an early return, and its outputs are read again if it was."""

    def save(self, i: int, place: int) -> None:
        """State of the instance → place."""

    def restore(self, i: int, place: int) -> None:
        """State of the instance ← place."""

    def keep(self, buffer: int) -> None:
        """All outputs in the store → buffer."""

    def recall(self, buffer: int) -> None:
        """All outputs in the store ← buffer."""

    def revert(self, i: int, buffer: int) -> None:
        """Outputs of the instance in the store ← buffer."""

    def change(self) -> None:
        """Outputs in the store change without being read."""

    def repeat(self) -> None:
        """A repetition starts."""
