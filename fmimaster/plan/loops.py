"""Algebraic loops, and the order in which values are exchanged at one instant, as data.

An algebraic loop is a strongly connected component of the graph of :mod:`fmimaster.plan.graph`. Some of its outputs are
cut: with assumed values for them, all others can be computed in order. This is one sweep; at its end the cut outputs
are read. A loop is solved if the read values equal the assumed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fmimaster.plan.graph import Node

MAY_BE_NONE = " It may not be a loop: an FMU does not declare on which inputs its outputs depend (ModelStructure)."
"""A sentence of messages about assumed loops."""


@dataclass(frozen=True, slots=True)
class AlgebraicLoop:
    """Variables that depend on each other directly, over several instances or within one.

    A loop with discrete outputs is cut at discrete outputs only. A remaining loop among continuous outputs is a
    separate loop in the sweep.
    """

    instances: tuple[int, ...]
    """In the order of the trigger sequence."""
    variables: tuple[Node, ...]
    """By name."""
    assumed: bool
    """Whether it exists only because an FMU does not declare the dependencies of its outputs."""
    torn: tuple[Node, ...] = ()
    """Continuous outputs that are cut, by name: the unknowns of a solver."""
    discrete: tuple[Node, ...] = ()
    """Discrete outputs that are cut, by name: compared exactly from sweep to sweep."""
    sweep: tuple[Visit, ...] = ()
    """The exchange of one sweep, in order; an instance may recur."""
    is_linear: bool = False
    """Whether all dependencies in it are declared as linear, with factors that do not change between events."""

    @property
    def cut(self) -> tuple[Node, ...]:
        """The outputs whose values are assumed at the start of a sweep, and read at its end."""
        return self.torn or self.discrete


@dataclass(frozen=True, slots=True)
class Visit:
    """One place in the order in which values are exchanged at one instant: an instance, or a loop of them.

    In the sweep of a loop, a visit may only set or only read: inputs that get the value of an output that is cut are set
    before that output is read.
    """

    instances: tuple[int, ...]
    loop: AlgebraicLoop | None = None
    sets: bool = True
    """Whether the inputs of the instance are set."""
    gets: bool = True
    """Whether its outputs are read."""
    parameters: bool = False
    """Whether its connected parameters are set as well, which are all known then; in Initialization Mode."""
    held: tuple[Node, ...] = ()
    """Cut outputs that this visit reads although others still need their assumed values, which are restored right after
    it."""


class Visits(tuple[Visit, ...]):
    """The order in which values are exchanged. Plans for parts of a system share it."""

    @cached_property
    def loops(self) -> tuple[AlgebraicLoop, ...]:
        """The algebraic loops in it."""
        return tuple(visit.loop for visit in self if visit.loop is not None)

    @cached_property
    def loop_of(self) -> Mapping[Node, AlgebraicLoop]:
        """Variable → its loop; variables without a loop are missing."""
        return {node: loop for loop in self.loops for node in loop.variables}
