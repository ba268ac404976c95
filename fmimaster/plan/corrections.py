"""Outputs that belong to inputs held over a step, and their correction for the present inputs.

An FMU whose inputs are held computes its outputs at the end of a step with these inputs. Outputs that depend directly on
them, for example the distance to another body or an acceleration, do not belong to the inputs at that time. An event
that is found by such outputs is late by a part of the step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from fmimaster.base.data import dataclass
from fmimaster.base.text import listed
from fmimaster.plan.layout import Group, Layout, with_derivatives
from fmimaster.system.model import DataType, DependencyKind, Model, Variable
from fmimaster.system.resolved import Link

if TYPE_CHECKING:
    from fmimaster.plan.events import PlanEvent
    from fmimaster.plan.links import Links

MOST_PASSES = 3
"""Number of correction passes, if outputs depend on each other in a loop."""


class Means(Enum):
    """The way in which the partial derivatives of outputs are obtained."""

    DIRECTIONAL_DERIVATIVES = "by its directional derivatives"
    DIFFERENCES = "by differences in Initialization Mode"
    ASSUMED = "by differences in Initialization Mode, as if the dependence were linear"
    """For event clocks only, and while outputs agree with it: see :mod:`fmimaster.algorithms.assumed_partials`."""


@dataclass(frozen=True, slots=True)
class Correction:
    """The outputs of one instance that depend directly on its continuous inputs, and are used."""

    means: Means | None
    """None if the partial derivatives cannot be obtained."""
    outputs: tuple[Variable, ...]
    slots: tuple[slice, ...]
    """Of the outputs, among the Float64 values."""
    depends: tuple[frozenset[str], ...]
    """For each output, the connected inputs that it depends on."""
    inputs: tuple[Variable, ...]
    """All connected continuous inputs."""
    is_linear: bool = False
    """Whether the FMU declares that the dependence is linear between events."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of elements of outputs and inputs."""
        return sum(v.size for v in self.outputs), sum(v.size for v in self.inputs)

    @property
    def is_sure(self) -> bool:
        """Whether the outputs can be corrected by partial derivatives that are known to be valid in the whole run."""
        return self.means not in (None, Means.ASSUMED)

    @property
    def is_measured(self) -> bool:
        """Whether the partial derivatives are differences in Initialization Mode."""
        return self.means in (Means.DIFFERENCES, Means.ASSUMED)


def find_corrections(
    models: Sequence[Model],
    links: Sequence[Link],
    events: Sequence[PlanEvent],
    layout: Layout,
    further: Sequence[Collection[str]] = (),
    *,
    assumes_linear: bool = False,
) -> dict[int, Correction]:
    """Instance → its correction; instances without such outputs are missing.

    Parameters
    ----------
    further
        Per instance, names of outputs that are corrected besides those that feed others or indicate events.
    assumes_linear
        Whether dependencies that the FMU does not declare as linear are taken for linear, as long as outputs agree.
    """
    found = dict[int, Correction]()
    if not any(model.direct_inputs for model in models):
        return found
    read = _read(models, links, events)
    for model, names, also in zip(models, read, further, strict=False):
        in_steps = not model.capabilities.has_event_mode  # where discrete outputs change
        names |= {
            v.name for v in model.variables if v.name in also and (in_steps or v.is_continuous)
        }
    for i, model in enumerate(models):
        segments = layout.segments(i, Group.CONTINUOUS)
        inputs = segments[0].variables if segments else ()
        fed = {v.name for v in inputs}
        if fed.isdisjoint(model.direct_inputs):
            continue
        used = with_derivatives(read[i], model.variables)
        outputs = tuple(
            v
            for s in layout.segments(i, Group.OUTPUTS)
            if s.type is DataType.FLOAT64
            for v in s.variables
            if v.name in used and model.dependencies.get(v.name, frozenset()) & fed
        )
        if outputs:
            depends = tuple(model.dependencies[v.name] & fed for v in outputs)
            slots = tuple(layout.slots[i, Group.OUTPUTS, v.name][1] for v in outputs)
            is_readable = all(
                v.get_in_initialization
                for s in layout.segments(i, Group.OUTPUTS)
                for v in s.variables
            )
            is_linear = _is_linear(model, outputs, depends)
            means = _means(model, is_readable, is_linear, assumes_linear)
            found[i] = Correction(means, outputs, slots, depends, inputs, is_linear)
    return found


def passes(
    corrections: Mapping[int, Correction], instances: Iterable[int], links: Links
) -> tuple[tuple[int, ...], ...]:
    """The instances to be corrected in each pass: first all, then those with outputs that depend directly on what the pass
    before has corrected."""
    chosen = {i: c for i in instances if (c := corrections.get(i)) and c.means is not None}
    changed = {(i, v.name) for i, c in chosen.items() for v in c.outputs}
    found: list[tuple[int, ...]] = []
    while changed and len(found) < MOST_PASSES:
        found.append(tuple(sorted({i for i, _ in changed})))
        fed = {(k.target, k.input.name) for node in changed for k in links.out_of.get(node, ())}
        changed = {
            (i, v.name)
            for i, c in chosen.items()
            for v, inputs in zip(c.outputs, c.depends, strict=True)
            if any((i, u) in fed for u in inputs)
        }
    return tuple(found)


_CANNOT_CORRECT = (
    "The FMU provides no directional derivatives and does not declare that the dependence is linear (dependenciesKind)",
    "",
)
_CANNOT_WAIT = (
    "The FMU stops at its events by these inputs",
    "the event clock Predictive, which corrects indicators for them, or ",
)
"""The reason why an event may be late, and a remedy."""


def late_indicators(
    names: Sequence[str],
    corrections: Mapping[int, Correction],
    events: Sequence[PlanEvent],
    held: Collection[int],
    stopping: Collection[int],
    late: float,
) -> Iterator[str]:
    """Warnings: indicators of events that depend directly on held inputs, and cannot be corrected, or not in time.

    Parameters
    ----------
    names
        Of the instances.
    held
        Instances whose inputs are held at a mean.
    stopping
        Instances that find their events themselves, and stop there.
    late : float
        Half of the step size in s.
    """
    for event in events:
        for i, declaration in ((m.instance, m.declaration) for m in event.members):
            correction = corrections.get(i)
            if i not in held or correction is None:
                continue
            if correction.means is not None and i not in stopping:
                continue
            outputs = {v.name for v in correction.outputs}
            wrong = [f"'{names[i]}.{z.name}'" for z in declaration.indicators if z.name in outputs]
            if not wrong:
                continue
            why, instead = _CANNOT_CORRECT if correction.means is None else _CANNOT_WAIT
            yield (
                f"{listed(wrong)} of the event '{event.name}' depend{'s' * (len(wrong) == 1)} directly on inputs that "
                f"are held over a step. {why}, so the event may be found up to {late:g} s early or late if the inputs "
                f"move. Use {instead}a smaller step size"
            )


def _read(
    models: Sequence[Model], links: Iterable[Link], events: Iterable[PlanEvent]
) -> list[set[str]]:
    """Of each instance, outputs that feed others or indicate events."""
    read: list[set[str]] = [set() for _ in models]
    for link in links:
        read[link.source].add(link.output.name)
    for event in events:
        for m in event.members:
            for indicator in m.declaration.indicators:
                read[m.instance] |= {indicator.name, indicator.derivative or indicator.name}
    return read


_LINEAR = (DependencyKind.CONSTANT, DependencyKind.FIXED, DependencyKind.TUNABLE)
"""Kinds of dependencies with a constant factor in a run, because tunable parameters are not changed."""


def _means(model: Model, is_readable: bool, is_linear: bool, assumes_linear: bool) -> Means | None:
    """The source of partial derivatives; they can be measured if outputs can be read at the start."""
    if model.capabilities.provides_directional_derivatives:
        return Means.DIRECTIONAL_DERIVATIVES
    if not is_readable:
        return None
    if is_linear:
        return Means.DIFFERENCES
    return Means.ASSUMED if assumes_linear else None


def _is_linear(
    model: Model, outputs: Sequence[Variable], depends: Sequence[frozenset[str]]
) -> bool:
    """Whether each of these outputs depends on those inputs with a factor that is the same for the whole run."""
    kinds = (
        model.dependency_kinds.get(output.name, {}).get(name)
        for output, inputs in zip(outputs, depends, strict=True)
        for name in inputs
    )
    return all(kind in _LINEAR for kind in kinds)
