"""A trial: one simulation with a trigger sequence, used to find a better one; and the groups in a sequence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.plan.plan import Plan

Arc = tuple[str, str]
"""All connections from one group of components to another one, by the names of the two."""


@dataclass(frozen=True, slots=True)
class SimulationTrial:
    """One simulation. These attributes are its only differences from others."""

    sequence: tuple[str, ...]
    """Names of the groups, in the order in which they are stepped."""
    stale: frozenset[Arc] = frozenset()
    """Arcs whose inputs are extrapolated although their sources have stepped before."""
    halved: bool = False
    """Whether the step size is half the usual one."""


class Trials(Protocol):
    """Makes trials, each once."""

    @abstractmethod
    def __call__(self, trial: SimulationTrial) -> NDArray[np.float64] | None:
        """Outputs at the communication points of the usual step size, shape (points, outputs); None if the run failed."""

    @abstractmethod
    def done(self) -> Iterable[SimulationTrial]:
        """Trials that have rows, in the order in which they were made."""


def stale_arcs(sequence: Sequence[str], arcs: Iterable[Arc]) -> frozenset[Arc]:
    """Arcs whose source steps after its target."""
    position = {name: k for k, name in enumerate(sequence)}
    return frozenset(arc for arc in arcs if position[arc[0]] > position[arc[1]])


def rms(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root mean square over the points: shape (points, outputs) → (outputs,)."""
    result: NDArray[np.float64] = np.sqrt(np.mean(signals**2, axis=0))
    return result


def relative_error(
    signals: NDArray[np.float64], reference: NDArray[np.float64], scale: NDArray[np.float64]
) -> float:
    """Mean over the outputs of the root mean square of the difference, relative to a scale of each output.

    Outputs whose scale is 0 are ignored.
    """
    counted = scale > 0
    if not counted.any():
        return 0.0
    return float(np.mean(rms(signals - reference)[counted] / scale[counted]))


def is_compared(values: NDArray[np.generic]) -> bool:
    """Whether a column can be used to compare runs: floating-point numbers that exist from the start on."""
    return values.dtype.kind == "f" and is_number(values) and bool(np.isfinite(values[0]))


def is_number(values: NDArray[np.generic]) -> bool:
    """Whether a column has a number or a Boolean in each row."""
    return values.dtype.kind in "fiub" and not np.ma.is_masked(values)


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a sequence, and the connections between them.

    A group is a component, or several that are solved together as an algebraic loop. Its name is the first of their
    names in alphabetical order.

    Attributes
    ----------
    members : name of the group → names of its components, in the order in which they are stepped
    arcs : arc → pairs of components
        Pairs of groups between which there are connections, and which of their components these connect.
    group_of : instance → name of its group
    """

    members: Mapping[str, tuple[str, ...]]
    arcs: Mapping[Arc, frozenset[tuple[str, str]]]
    group_of: Mapping[int, str]

    def components(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Components in the order of their groups."""
        return tuple(component for group in groups for component in self.members[group])

    def label(self, group: str) -> str:
        """A group in words: the name of its component, or of all in brackets."""
        inside = self.members[group]
        return group if len(inside) == 1 else f"({', '.join(inside)})"

    def of_instances(self, instances: Iterable[int]) -> tuple[str, ...]:
        """Groups in the order of the first of their instances."""
        return tuple(dict.fromkeys(self.group_of[i] for i in instances if i in self.group_of))

    def arc(self, source: int, target: int) -> Arc:
        """The arc to which a connection of two instances belongs; empty names for an instance that is not ordered."""
        return self.group_of.get(source, ""), self.group_of.get(target, "")

    def pairs(self, arcs: Iterable[Arc]) -> frozenset[tuple[str, str]]:
        """Pairs of components that arcs stand for."""
        return frozenset(pair for arc in arcs for pair in self.arcs[arc])


def groups_of(plan: Plan, ordered: Iterable[int]) -> Groups:
    """The groups of a plan.

    Parameters
    ----------
    ordered
        Instances that a sequence orders. A table that feeds open inputs always comes first.
    """
    names = [instance.name for instance in plan.instances]
    position = {i: k for k, i in enumerate(plan.trigger_sequence)}
    together = {i: group for group in plan.step_groups for i in group}
    group_of = {i: min(names[k] for k in together.get(i, (i,))) for i in ordered}
    members: dict[str, list[int]] = {}
    for i in sorted(group_of, key=position.__getitem__):
        members.setdefault(group_of[i], []).append(i)
    arcs: dict[Arc, set[tuple[str, str]]] = {}
    for k in plan.links:
        source, target = group_of.get(k.source), group_of.get(k.target)
        if source is not None and target is not None and source != target:
            arcs.setdefault((source, target), set()).add((names[k.source], names[k.target]))
    return Groups(
        {group: tuple(names[i] for i in inside) for group, inside in sorted(members.items())},
        {arc: frozenset(pairs) for arc, pairs in sorted(arcs.items())},
        group_of,
    )
