"""Parts: one algorithm for groups of instances, another one for all other instances."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import groupby

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Parts(Algorithm):
    """Step groups of instances that share algebraic loops by one algorithm, and all other instances by another one.

    The order is the trigger sequence, with each group at the place of its first member. If the others step in parallel,
    they step before all groups, so none of them gets new outputs.

    Parameters
    ----------
    others : Algorithm
        For the instances outside of groups.
    group : Algorithm
        For each group.
    """

    others: Algorithm
    group: Algorithm

    @property
    def order(self) -> int:
        """The smaller of the two orders."""
        return min(self.others.order, self.group.order)

    def restart(self) -> Parts:
        """The algorithm of a step without history."""
        others = self.others.restart()
        return self if others is self.others else replace(self, others=others)

    def goes_back(self, plan: Plan) -> Sequence[int]:
        """Those of the others."""
        return self.others.goes_back(plan)

    def repeats(self, plan: Plan) -> Sequence[int]:
        """Those of all parts."""
        return sorted(i for part, by in self.parts(plan) for i in by.repeats(part))

    def ends(self, plan: Plan) -> Mapping[int, float]:
        """The ends of both."""
        return {i: end for part, by in self.parts(plan) for i, end in by.ends(part).items()}

    @property
    def can_go_back(self) -> bool:
        """Whether the algorithm of the others can; the groups go back by themselves."""
        return self.others.can_go_back

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the others."""
        parts = self._by_others(plan, before)
        return tuple(note for part, stepped in parts for note in self.others.notes(part, stepped))

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the others."""
        parts = self._by_others(plan, before)
        return tuple(
            w for part, stepped in parts for w in self.others.accuracy_warnings(part, stepped)
        )

    def _by_others(
        self, plan: Plan, before: Collection[int]
    ) -> Iterator[tuple[Plan, frozenset[int]]]:
        """The parts outside of groups, with all instances that step before them."""
        stepped = frozenset(before)
        for part, by in self.parts(plan):
            if by is self.others:
                yield part, stepped
            stepped |= frozenset(part.trigger_sequence)

    def signals(self) -> tuple[Signal, ...]:
        """Those of both."""
        return (*self.others.signals(), *self.group.signals())

    def parts(self, plan: Plan) -> Iterator[tuple[Plan, Algorithm]]:
        """The plan of each part with its algorithm, in the order of the steps."""
        group_of = {i: group for group in plan.step_groups for i in group}
        sequence, inside = plan.trigger_sequence, set(plan.trigger_sequence)
        if self.others.is_parallel:
            sequence = tuple(sorted(sequence, key=lambda i: i in group_of))
        first = {group_of[i]: i for i in reversed(sequence) if i in group_of}
        for group, run in groupby(
            (i for i in sequence if i not in group_of or first[group_of[i]] == i),
            key=lambda i: group_of.get(i, ()),
        ):
            part = tuple(i for i in group or run if i in inside)
            yield replace(plan, trigger_sequence=part), self.group if group else self.others

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        for part, by in self.parts(plan):
            with self.others.given_to_group(part, p) if by is self.group else nullcontext():
                by.emit(part, p)
