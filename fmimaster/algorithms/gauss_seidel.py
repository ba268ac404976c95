"""Gauss-Seidel: the instances step one after the other, each with the newest outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, replace

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.modes import (
    TO_ITS_END,
    AlongLine,
    AtEnd,
    InputMode,
    Order,
    held_connections,
)
from fmimaster.algorithms.subsequence import Subsequence
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import listed
from fmimaster.inputs.polynomial import HOLD, LINEAR, Polynomial
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.levels import bounded_levels, level_sets
from fmimaster.sequences.methods import GIVEN
from fmimaster.sequences.weights import FeedThrough, units_of


@dataclass(frozen=True, slots=True)
class GaussSeidel(Algorithm):
    """Step the instances one after the other along the trigger sequence, each with the newest outputs.

    A forward connection in the sequence has no delay; a backward connection is delayed by one step.

    Parameters
    ----------
    inputs : Polynomial
        Polynomial of the inputs whose source has not stepped yet; in the mode ``AtEnd`` of all others as well.
    mode : Mode
        Treatment of inputs whose source has stepped: ``AtEnd()``, ``AtMiddle()``, ``AlongLine()``,
        ``Corrected()`` or ``Subsequence()``. ``AlongLine()`` is recommended.
    levels : bool
        Whether instances that do not wait for each other step at the same time. The results are the same, bit for bit.
    most_levels : int, optional
        Largest number of levels. Instances of one level step at the same time, without new outputs of each other. The
        levels are chosen like the automatic sequence: the stale inputs have the smallest weight.
    stale : pairs of component names
        Source and target of connections that are treated as if the target had stepped before the source.

    Source: Gomes et al. (2017), Co-simulation: state of the art, section 4.2 (there: sequential, Gauss-Seidel); modes and
    levels: Holzinger and Benedikt (2019), section 3, and fmimaster (docs/trigger-sequence.md).
    """

    inputs: Polynomial = HOLD
    _: KW_ONLY
    mode: InputMode = AtEnd()
    levels: bool = False
    most_levels: int | None = None
    stale: frozenset[tuple[str, str]] = frozenset()

    def __post_init__(self) -> None:
        if any(len(pair) != 2 for pair in self.stale):
            raise OptionError(
                f"GaussSeidel(stale={self.stale!r}): expected pairs of component names, source and target."
            )
        object.__setattr__(self, "stale", frozenset(self.stale))
        if self.most_levels is not None and self.most_levels < 1:
            raise OptionError(f"most_levels={self.most_levels}: expected at least 1.")
        given = self.inputs
        if self.mode != AtEnd() and given.adaptive:
            raise OptionError(
                f"GaussSeidel with the mode '{self.mode.name}': expected inputs by a Polynomial that is not adaptive."
            )
        if isinstance(self.mode, Subsequence) and given != HOLD:
            raise OptionError(
                "GaussSeidel with the mode 'sub': expected inputs=HOLD. Leave the polynomial out."
            )

    @property
    def can_go_back(self) -> bool:
        """True, except in the mode ``Subsequence``."""
        return self.mode.can_go_back

    @property
    def course(self) -> Polynomial:
        """The polynomial of the inputs."""
        return self.inputs

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        self.mode.emit(self._order(plan), self.inputs, plan, p)

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """The treatment of the inputs of each instance in this mode, by the capabilities of its FMU."""
        return tuple(self._treatments(plan, before, False)) if self.mode != AtEnd() else ()

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Instances whose FMU lacks a capability for the mode."""
        return (*self._treatments(plan, before, True), *self._never_interpolated(plan, before))

    @contextmanager
    def given_to_group(self, group: Plan, p: Emitter) -> Iterator[None]:
        """Sources of intentionally stale connections are treated as not yet stepped.

        Raises
        ------
        OptionError
            If a source feeds several instances of the group, and not all of these connections are stale.
        """
        stale, inside = self._stale(group), set(group.members)
        sources = sorted({k for k, i in stale if i in inside and k not in inside})
        for k in sources:
            fresh = [i for i in group.members if k in group.sources[i] and (k, i) not in stale]
            if fresh:
                source, other = (group.instances[i].name for i in (k, fresh[0]))
                raise OptionError(
                    f"GaussSeidel: connections from '{source}' to components that are solved together are stale, but not "
                    f"those to '{other}', which is one of them. Make all of these connections stale."
                )
        with p.reverted({k: p.keep_begin() for k in sources if p.is_ahead(k)}):
            yield

    def _treatments(self, plan: Plan, before: Collection[int], is_fallback: bool) -> Iterator[str]:
        found: dict[str, list[str]] = {}
        for i in dict.fromkeys(i for i, _ in self._fresh(plan, before, Group.CONTINUOUS)):
            treatment = self.mode.treatment_of(plan, i)
            if treatment.is_fallback == is_fallback:
                found.setdefault(treatment.what, []).append(f"'{plan.instances[i].name}'")
        for what, names in found.items():
            yield f"{listed(names)}: {what}"

    def _never_interpolated(self, plan: Plan, before: Collection[int]) -> Iterator[str]:
        """Continuous inputs of another type than Float64, for which there are no polynomials."""
        names = [
            f"'{plan.instances[i].name}.{route.link.input.name}'"
            for i, route in self._fresh(plan, before, Group.DISCRETE)
            if route.link.input.is_continuous and self.mode != AtEnd()
        ]
        if names:
            yield (
                f"{listed(names)}: held at the value at the end of the source's step, because only inputs of type Float64 "
                "are interpolated. So they lead by half a step on average"
            )

    def _fresh(
        self, plan: Plan, before: Collection[int], group: Group
    ) -> Iterator[tuple[int, Route]]:
        """Instances with their routes from sources that have stepped before them."""
        order = self._order(plan)
        group_of = {i: n for n, instances in enumerate(order.groups) for i in instances}
        stepped_in = group_of | dict.fromkeys(before, -1)
        for i in plan.members:
            older = {*order.later.get(i, ()), *order.stale.get(i, ())}
            for route in plan.routes.get((i, group), ()):
                source = route.link.source
                if stepped_in.get(source, len(order.groups)) < group_of[i] and source not in older:
                    yield i, route

    def _order(self, plan: Plan) -> Order:
        """The groups of instances that step at the same time, and their sources that are treated as not yet stepped."""
        sequence, stale = plan.trigger_sequence, self._stale(plan)
        arcs = [(k, i) for i in sequence for k in plan.sources[i]]
        if self.mode.interpolates:
            stale |= held_connections(plan, sequence, stale)
        if self.most_levels is not None:
            groups = self._bounded(plan, self.most_levels)
            sequence = tuple(i for group in groups for i in group)
        elif self.levels:
            groups = level_sets(sequence, arcs, stale)
        else:
            groups = tuple((i,) for i in sequence)
        position = {i: k for k, i in enumerate(sequence)}
        group_of = {i: n for n, group in enumerate(groups) for i in group}

        def is_read_too_soon(k: int, i: int) -> bool:
            if group_of[k] == group_of[i]:
                return position[k] < position[i]
            return group_of[k] < group_of[i] and position[k] > position[i]

        later = {
            i: tuple(
                k
                for k in sorted(plan.sources[i] & position.keys())
                if is_read_too_soon(k, i) and (k, i) not in stale
            )
            for i in sequence
        }
        old = {i: tuple(k for k in sorted(plan.sources[i]) if (k, i) in stale) for i in sequence}
        return Order(groups, _not_empty(later), _not_empty(old))

    def _bounded(self, plan: Plan, most: int) -> tuple[tuple[int, ...], ...]:
        """Levels of the instances, at most ``most``, independent of the sequence."""
        chooser = plan.sequence_chosen_by
        if chooser in GIVEN:
            raise OptionError(
                f"most_levels={most}: the levels are chosen automatically, but {chooser} has given a sequence. "
                "Leave the sequence out (--sequence automatic), or use levels without a limit."
            )
        names = [plan.instances[i].name for i in plan.members]
        models = [plan.instances[i].model for i in plan.members]
        number = {i: k for k, i in enumerate(plan.members)}
        inside = [k for k in plan.links if k.source in number and k.target in number]
        links = [replace(k, source=number[k.source], target=number[k.target]) for k in inside]
        graph = UnitGraph.of(units_of(names, models, links), FeedThrough())
        index = dict(zip(names, plan.members, strict=True))
        return tuple(
            tuple(index[graph.names[unit]] for unit in level)
            for level in bounded_levels(graph, most)
        )

    def _stale(self, plan: Plan) -> set[tuple[int, int]]:
        """Intentionally stale connections, by indices."""
        names, found = plan.instances.numbers, set()
        for source, target in sorted(self.stale):
            for name in (source, target):
                if name not in names:
                    raise OptionError(
                        f"GaussSeidel: a stale connection leads from '{source}' to '{target}', but there is no component "
                        f"'{name}'.{did_you_mean(name, names)}"
                    )
            if names[source] not in plan.sources[names[target]]:
                raise OptionError(
                    f"GaussSeidel: a stale connection leads from '{source}' to '{target}', but no output of '{source}' "
                    f"is connected to '{target}'."
                )
            found.add((names[source], names[target]))
        return found


# one step for each FMU: five, which the mode makes of one where outputs depend directly on held inputs, cost too much
HELD = GaussSeidel(mode=AlongLine(sub_steps=1, to_end=True))
"""Inputs are held, or interpolated where the source has stepped."""

LINES = replace(HELD, inputs=LINEAR)
"""They continue along lines instead of being held: the coupling of a run that names none."""


def undivided(algorithm: Algorithm, plan: Plan, name: str) -> GaussSeidel | None:
    """The algorithm without the two parts of steps, if it has this instance do them; otherwise None."""
    if not isinstance(algorithm, GaussSeidel) or not isinstance(algorithm.mode, AlongLine):
        return None
    instance = plan.instances.numbers.get(name)
    if instance is None or algorithm.mode.treatment_of(plan, instance) is not TO_ITS_END:
        return None
    return replace(algorithm, mode=replace(algorithm.mode, to_end=False))


def _not_empty(found: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {i: sources for i, sources in found.items() if sources}
