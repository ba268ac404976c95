"""The choice of a trigger sequence: by a method, by the user, or by the system description."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.sequences.feedback import least_stale
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.structure import strong_components
from fmimaster.sequences.weights import Count, FeedThrough, Units, Weights


class SequenceMethod(TypedArguments, ABC):
    """Chooses the order in which units step."""

    @abstractmethod
    def choose(self, units: Units) -> tuple[str, ...]:
        """All units by name, in the order in which they step."""


@dataclass(frozen=True, slots=True)
class LeastStale(SequenceMethod):
    """The sequence whose stale inputs weigh least; of several the first one by names.

    Parameters
    ----------
    weights : Weights
        FeedThrough, Count, GivenWeights.

    Source: Holzinger and Benedikt (2019), equation 8. How it is found: docs/trigger-sequence.md.
    """

    weights: Weights = field(default_factory=FeedThrough)

    def choose(self, units: Units) -> tuple[str, ...]:
        """Exact for small systems and for many large ones."""
        return chosen_together(UnitGraph.of(units, self.weights), units.together, least_stale)


@dataclass(frozen=True, slots=True)
class NearestNeighbour(SequenceMethod):
    """Step next the unit whose inputs from units that have not stepped yet weigh least: quick, and not the best.

    Source: Holzinger and Benedikt (2019), section 2.3.
    """

    weights: Weights = field(default_factory=FeedThrough)

    def choose(self, units: Units) -> tuple[str, ...]:
        """By the weights; of several units the first one by name."""
        return chosen_together(UnitGraph.of(units, self.weights), units.together, nearest_neighbour)


def nearest_neighbour(graph: UnitGraph) -> tuple[int, ...]:
    """Step next the unit whose connections from units that have not stepped yet weigh least; of several the first by name.

    Source: Holzinger and Benedikt (2019), section 2.3.
    """
    left = [0.0] * graph.size
    for (_, b), w in graph.weights.items():
        left[b] += w
    ready = [(w, k) for k, w in enumerate(left)]
    heapq.heapify(ready)
    done = [False] * graph.size
    order: list[int] = []
    while ready:
        w, a = heapq.heappop(ready)
        if done[a] or w != left[a]:  # it has been put in again with less
            continue
        done[a] = True
        order.append(a)
        for b in graph.successors[a]:
            if not done[b]:
                left[b] -= graph.weights[a, b]
                heapq.heappush(ready, (left[b], b))
    return tuple(order)


@dataclass(frozen=True, slots=True)
class Upstream(SequenceMethod):
    """A unit comes after those that feed it; within a ring those come last that pass values on directly.

    Their outputs are new only if their inputs are new. Where several orders remain, the order is that of the system
    description: this is the only method whose sequence depends on it. It uses neither weights nor groups of units that
    are solved together.
    """

    def choose(self, units: Units) -> tuple[str, ...]:
        """Along the connections."""
        rings = _rings(units)
        ring_of = {name: k for k, ring in enumerate(rings) for name in ring}
        passes_on = {c.target for c in units.connections if c.direct}
        place = {name: k for k, name in enumerate(units.names)}
        waits = [0] * len(rings)
        fed: list[list[int]] = [[] for _ in rings]
        for c in units.connections:
            a, b = ring_of[c.source], ring_of[c.target]
            if a != b:
                waits[b] += 1
                fed[a].append(b)
        first = [min(place[name] for name in ring) for ring in rings]
        ready = [(first[k], k) for k, count in enumerate(waits) if count == 0]
        heapq.heapify(ready)
        order: list[str] = []
        while ready:
            _, k = heapq.heappop(ready)
            order += sorted(rings[k], key=lambda name: (name in passes_on, place[name]))
            for follower in fed[k]:
                waits[follower] -= 1
                if waits[follower] == 0:
                    heapq.heappush(ready, (first[follower], follower))
        return tuple(order)


def _rings(units: Units) -> list[list[str]]:
    """Units that feed each other in a ring, and single units."""
    graph = UnitGraph.of(units, Count())
    parts = strong_components(dict(enumerate(graph.successors)))
    return [[graph.names[k] for k in part] for part in parts]


Chooser = Callable[[UnitGraph], tuple[int, ...]]
"""A graph → its units in the order in which they step."""


def chosen_together(
    graph: UnitGraph, together: Iterable[Sequence[str]], choose: Chooser
) -> tuple[str, ...]:
    """The sequence of a graph in which the units of each group follow each other directly.

    A group takes part under the name of its first unit by name; its own units are put in order by the same choice.
    """
    groups = [sorted(group) for group in together if len(group) > 1]
    if not groups:
        return graph.named(choose(graph))
    head = {name: group[0] for group in groups for name in group}
    stands_for = [head.get(name, name) for name in graph.names]
    outer = UnitGraph.made(
        dict.fromkeys(stands_for),
        ((stands_for[a], stands_for[b], w) for (a, b), w in graph.weights.items()),
    )
    inside = {
        head: part.named(choose(part)) for head, part in _parts(graph, groups, stands_for).items()
    }
    return tuple(name for unit in outer.named(choose(outer)) for name in inside.get(unit, (unit,)))


def _parts(
    graph: UnitGraph, groups: Iterable[Sequence[str]], stands_for: Sequence[str]
) -> dict[str, UnitGraph]:
    """The graph of each group, by its first unit."""
    weights: dict[str, list[tuple[str, str, float]]] = {group[0]: [] for group in groups}
    for (a, b), w in graph.weights.items():
        if stands_for[a] == stands_for[b] and stands_for[a] in weights:
            weights[stands_for[a]].append((graph.names[a], graph.names[b], w))
    return {group[0]: UnitGraph.made(group, weights[group[0]]) for group in groups}


AUTOMATIC = "automatic"
"""Name of the default method."""

QUICK = "nearest-neighbour"
"""Name of the method for large systems whose results do not depend on the sequence."""

METHODS: Mapping[str, SequenceMethod] = {
    AUTOMATIC: LeastStale(),
    "count": LeastStale(Count()),
    QUICK: NearestNeighbour(),
    "upstream": Upstream(),
}
"""Name → method, for settings and the command line."""


SequenceSetting: TypeAlias = SequenceMethod | Sequence[str] | str
"""A method, names of all components, or the name of a method."""

THE_SYSTEM, THE_USER = "the system", "the user"
AT_ANY_RATE = 50
"""Up to this number of units the best sequence is searched even if it has no influence, because the page of the plan shows
its benefit. The search takes a moment; for a thousand units with many connections, it takes ten seconds."""

GIVEN = (THE_SYSTEM, THE_USER)
"""Origins of a given sequence, in words; any other sequence was chosen by a method."""

_METHODS = f"a method ({', '.join(METHODS)})"


def check_sequence(setting: SequenceSetting | None) -> None:
    """Refuse a setting that names neither a method nor components.

    Raises
    ------
    OptionError
    """
    if setting is None or isinstance(setting, SequenceMethod):
        return
    if isinstance(setting, str):
        if setting not in METHODS:
            raise OptionError(
                f"sequence: there is no method '{setting}'.{did_you_mean(setting, METHODS)} Give {_METHODS}, or the names "
                "of all components in the order in which they are to step."
            )
    elif not isinstance(setting, Sequence) or not all(isinstance(name, str) for name in setting):
        raise OptionError(
            f"sequence: {setting!r}, expected {_METHODS}, an object such as LeastStale(), or a list of the names of all "
            "components."
        )


def choose_sequence(
    units: Units,
    setting: SequenceSetting | None = None,
    described: Sequence[str] = (),
    unnamed: Collection[str] = (),
    *,
    matters: bool = True,
) -> tuple[tuple[str, ...], str]:
    """The sequence of a run.

    Parameters
    ----------
    setting
        The setting of the user; None if there is none.
    described
        The sequence in the system description; empty if there is none.
    unnamed
        Units that users do not name, for example the table of an input file. They step first.
    matters
        Whether the results depend on the sequence.

    Returns
    -------
    The names of all units in the order in which they step, and who chose it, in words.

    Raises
    ------
    OptionError
        If names are missing, repeated or unknown.
    """
    if setting is None and described:
        try:
            return _named(described, "Sequence of the system", units, unnamed), THE_SYSTEM
        except OptionError as error:
            raise OptionError(
                f"{error} Correct it in the system description, or give another one (--sequence)."
            ) from None
    if setting is None:
        setting = AUTOMATIC if matters or len(units.names) <= AT_ANY_RATE else QUICK
    if isinstance(setting, str):
        return METHODS[setting].choose(units), f"method {setting}"
    if isinstance(setting, SequenceMethod):
        return setting.choose(units), repr(setting)
    return _named(setting, "sequence", units, unnamed), THE_USER


def _named(
    names: Sequence[str], where: str, units: Units, unnamed: Collection[str]
) -> tuple[str, ...]:
    known = dict.fromkeys(name for name in units.names if name not in unnamed)
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known) or f" There {_listed(tuple(known), is_last=False)}."
            raise OptionError(
                f"{where}: there is no component '{name}'.{meant} Name each of the components once."
            )
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise OptionError(
            f"{where}: {_listed(repeated)} named more than once. Each component steps once: name it once."
        )
    given = set(names)
    missing = [name for name in known if name not in given]
    if missing:
        raise OptionError(f"{where}: {_listed(missing)} missing. Name each of the components once.")
    return (*(name for name in units.names if name in unnamed), *names)


def _listed(names: Sequence[str], *, is_last: bool = True) -> str:
    """The first names and the number of further names, with the verb after or before them."""
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{shown}{more} {verb}" if is_last else f"{verb} {shown}{more}"


_SHOWN = 5
"""Largest number of names that a message lists."""
