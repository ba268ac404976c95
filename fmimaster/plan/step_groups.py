"""What a solver finds: states that are steady at the start, and groups of instances in Step Mode.

Instances are in a group because they share an algebraic loop or a constraint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import listed
from fmimaster.plan.graph import components, dependency_arcs, is_loop
from fmimaster.system.model import DataType, Initial, Model
from fmimaster.system.resolved import Link, ResolvedComponent, ResolvedSystem

if TYPE_CHECKING:
    from fmimaster.plan.visits import AlgebraicLoop


@dataclass(frozen=True, slots=True)
class SteadyState:
    """A state whose start value is unknown."""

    instance: int
    state: str
    derivative: str
    """Name of its time derivative, which must be 0."""


def steady_states(
    components: Sequence[ResolvedComponent], names: Iterable[str]
) -> tuple[SteadyState, ...]:
    """The states of these names, ``"component.state"``, in the order of their names.

    Raises
    ------
    OptionError
        If a name is not that of a state whose start value can be set, or has no time derivative.
    """
    known = {
        f"{component.name}.{state}": SteadyState(i, state, derivative)
        for i, component in enumerate(components)
        for state, derivative in _derivatives(component.model).items()
    }
    found = []
    for name in sorted(set(names)):
        if name not in known:
            raise OptionError(
                f"steady_states: '{name}' is not a state with a time derivative (type Float64, attribute derivative)."
                f"{did_you_mean(name, known)} Give names of states: component.state."
            )
        steady = known[name]
        model = components[steady.instance].model
        variable = model.variable(steady.state)
        if variable is None or variable.initial is not Initial.EXACT:
            raise OptionError(
                f"steady_states: the start value of '{name}' cannot be set, because its FMU calculates it (initial is not "
                "exact). Leave it out, or set the variables from which it is calculated."
            )
        found.append(steady)
    return tuple(found)


def with_start_values(system: ResolvedSystem, steady: Iterable[SteadyState]) -> ResolvedSystem:
    """The system with a start value for each of these states: its own, otherwise that of the FMU, otherwise 0."""
    added: dict[int, dict[str, NDArray[Any]]] = {}
    for s in steady:
        variable = system.components[s.instance].model.variable(s.state)
        assert variable is not None
        start = np.zeros(variable.size)
        start[:] = 0.0 if variable.start is None else variable.start
        added.setdefault(s.instance, {})[s.state] = start
    components = tuple(
        replace(c, start_values={**added[i], **c.start_values}) if i in added else c
        for i, c in enumerate(system.components)
    )
    return replace(system, components=components)


def steady_notes(
    components: Sequence[ResolvedComponent], steady: Sequence[SteadyState]
) -> Iterator[str]:
    """Notes about the search at the start."""
    if steady:
        names = listed(f"'{components[s.instance].name}.{s.state}'" for s in steady)
        verb = "starts" if len(steady) == 1 else "start"
        yield f"{names} {verb} in a steady state: fmimaster searches the value at which the time derivative is 0"


def _derivatives(model: Model) -> dict[str, str]:
    """State of type Float64 → its time derivative."""
    return {
        v.derivative_of: v.name
        for v in model.variables
        if v.derivative_of is not None
        and v.type is DataType.FLOAT64
        and (state := model.variable(v.derivative_of)) is not None
        and state.type is DataType.FLOAT64
        and state.size == v.size
    }


class Loops(Enum):
    """The algebraic loops that are solved in Step Mode, by restoring FMUs and repeating the step.

    ``REAL`` solves loops of outputs whose dependencies are declared. ``ALL`` also solves loops that exist only because
    an FMU declares no dependencies. ``NONE`` solves no loop: an input in each loop is delayed by one step.
    """

    REAL = "real"
    ALL = "all"
    NONE = "none"


def step_groups(
    models: Sequence[Model], links: Iterable[Link], loops: Loops
) -> tuple[tuple[int, ...], ...]:
    """Groups of instances that share algebraic loops of Step Mode and can all get and set their FMU state.

    A loop is cut at an instance that cannot go back. Loops with a common instance are one group, because an instance
    steps as a whole.

    A constraint, and the instances that it compares or acts on, are a group in any case.

    Returns
    -------
    The indices of each group in rising order; the groups in the order of their first members.
    """
    found = constraints(models, links)
    return _merged([*found.values(), *_loops(models, links, loops)])


def constraints(models: Sequence[Model], links: Iterable[Link]) -> dict[int, set[int]]:
    """Each constraint → itself and the instances at its ends."""
    found = {i: {i} for i, model in enumerate(models) if model.residuals}
    for link in links:
        for i, other in ((link.source, link.target), (link.target, link.source)):
            if i in found:
                found[i].add(other)
    return found


def _loops(models: Sequence[Model], links: Iterable[Link], loops: Loops) -> list[set[int]]:
    """The members of each loop that is to be solved and can be."""
    if loops is Loops.NONE:
        return []
    links = tuple(links)
    passing = _passing(models, links)
    if not passing:
        return []
    arcs = dependency_arcs(models, links, initial=False, assumed=loops is Loops.ALL)
    inside = {
        node: [head for head in heads if head[0] in passing]
        for node, heads in arcs.items()
        if node[0] in passing
    }
    return [{i for i, _ in part} for part in components(inside) if is_loop(part, inside)]


def _passing(models: Sequence[Model], links: Sequence[Link]) -> set[int]:
    """The instances that can be in a loop and go back: a connected output depends directly on a connected input."""
    fed: list[set[str]] = [set() for _ in models]
    for k in links:
        fed[k.target].add(k.input.name)
    return {
        k.source
        for k in links
        if models[k.source].capabilities.can_get_and_set_fmu_state
        and not fed[k.source].isdisjoint(models[k.source].dependencies.get(k.output.name, ()))
    }


def settled(
    loops: Iterable[AlgebraicLoop],
    models: Sequence[Model],
    chosen: Loops,
    groups: Iterable[tuple[int, ...]],
    with_event_mode: Collection[int],
) -> tuple[int, ...]:
    """Instances in loops of which an FMU cannot go back, while all outputs follow their inputs without a step.

    Parameters
    ----------
    loops
        Those of Step Mode.
    groups
        What :func:`step_groups` returns: these loops are solved by repeating steps.
    with_event_mode
        Instances whose Event Mode is used: there, outputs can be read again without leave of a card.
    """
    if chosen is Loops.NONE:
        return ()
    kept = [set(group) for group in groups]
    found = set[int]()
    for loop in loops:
        inside = set(loop.instances)
        is_chosen = chosen is Loops.ALL or not loop.assumed
        if is_chosen and not any(inside <= group for group in kept) and _follow(loop, models):
            found |= inside if inside.isdisjoint(with_event_mode) else set()
    return tuple(sorted(found))


def _follow(loop: AlgebraicLoop, models: Sequence[Model]) -> bool:
    """Whether each output in a loop follows all inputs in the loop on which it depends."""
    inside = set(loop.variables)
    return all(
        (i, known) not in inside or known in models[i].followed.get(name, ())
        for i, name in loop.variables
        for known in models[i].dependencies.get(name, ())
    )


def in_order_of_sweeps(
    groups: Iterable[tuple[int, ...]],
    loops: Iterable[AlgebraicLoop],
    models: Sequence[Model],
    sequence: Sequence[int],
) -> tuple[tuple[int, ...], ...]:
    """The groups with their members in the order in which the sweeps over their loops read outputs.

    The outputs that an instance uses before their source has stepped are then those at which the loops are cut. Members
    without a loop come first, in the trigger sequence, and constraints last, because they compare the results of the
    others.
    """
    read = [i for loop in loops for visit in loop.sweep for i in visit.instances]
    last = {i: k for k, i in enumerate(read)}
    place = {i: k for k, i in enumerate(sequence)}

    def key(i: int) -> tuple[bool, int, int]:
        return bool(models[i].residuals), last.get(i, -1), place[i]

    return tuple(tuple(sorted(group, key=key)) for group in groups)


def _merged(sets: Iterable[set[int]]) -> tuple[tuple[int, ...], ...]:
    """Sets that have a member in common as one."""
    group_of: dict[int, set[int]] = {}
    for chosen in sets:
        group = chosen.union(*(group_of.get(i, ()) for i in chosen))
        group_of.update(dict.fromkeys(group, group))
    return tuple(sorted({tuple(sorted(group)) for group in group_of.values()}))
