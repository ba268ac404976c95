"""Dependencies between variables, and the order of stepping that follows from them.

Nodes are pairs (instance index, variable name). An arc leads from an input to each output of the same instance that
depends on it directly, and from an output to each input that it feeds. Strongly connected components of more than one
node are algebraic loops.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeVar

from fmimaster.base.data import dataclass
from fmimaster.sequences.structure import strong_components
from fmimaster.system.model import Causality, DependencyKind, Model

if TYPE_CHECKING:
    from fmimaster.system.resolved import Link

Node = tuple[int, str]
"""An input or output: instance index and variable name."""

Arcs = Mapping[Node, Sequence[Node]]
"""Node → the nodes that depend on it directly."""


K = TypeVar("K")
V = TypeVar("V")


def collected(pairs: Iterable[tuple[K, V]]) -> Mapping[K, tuple[V, ...]]:
    """Each key with all of its values, in their order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


class GraphComponent(Protocol):
    """What is known of a component: before there is a plan, or in it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """In the system."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """Of its FMU."""

    @property
    @abstractmethod
    def start_values(self) -> Mapping[str, object]:
        """Variable → what the user or the system gives."""


@dataclass(frozen=True)
class DependencyGraph:
    """The graph of a system in one mode, and what is known of its variables."""

    arcs: Arcs
    certain: Arcs
    """Without arcs that are assumed because an FMU does not declare the dependencies of its outputs; the same object if
    all FMUs declare them."""
    names: tuple[str, ...]
    """Of the instances."""
    outputs: frozenset[Node]
    """Those nodes that are outputs; the others are inputs."""
    discrete: frozenset[Node] = frozenset()
    """Outputs that change at events only, including all that are not floating point numbers."""
    linear: frozenset[tuple[Node, Node]] = frozenset()
    """Arcs from inputs to outputs that are declared as linear, with factors that do not change between events."""
    started: frozenset[Node] = frozenset()
    """Inputs for which the user or the system has given a start value."""
    scaled: frozenset[Node] = frozenset()
    """Inputs and outputs for which the FMU declares a nominal value."""
    set_once: frozenset[Node] = frozenset()
    """Inputs that may be set only once at a superdense instant."""
    parameters: frozenset[Node] = frozenset()
    """Inputs that are parameters."""

    def name(self, node: Node) -> str:
        """``"instance.variable"``."""
        return f"{self.names[node[0]]}.{node[1]}"


def dependency_graph(
    components: Sequence[GraphComponent],
    links: Sequence[Link],
    *,
    initial: bool,
    parameter_links: Sequence[Link] = (),
) -> DependencyGraph:
    """The graph of a system in Initialization Mode or in Step Mode; in Step Mode parameters are constant."""
    models = [c.model for c in components]
    parameter_links = parameter_links if initial else ()
    links = (*links, *parameter_links)
    sources = {(k.source, k.output.name): k.output for k in links}
    targets = {(k.target, k.input.name): k.input for k in links}
    # No variable depends on other outputs. As nodes, they would let their instance be visited before its loop is reached,
    # and inputs of the loop would lose their start values.
    connected = {*sources, *targets}

    def arcs_of(*, assumed: bool) -> dict[Node, list[Node]]:
        found = dependency_arcs(models, links, initial=initial, assumed=assumed, among=connected)
        return _with_order_of_parameters(found, parameter_links)

    arcs = arcs_of(assumed=True)
    assumes = any(
        m.assumed_initial_dependencies if initial else m.assumed_dependencies for m in models
    )
    return DependencyGraph(
        arcs=arcs,
        certain=arcs_of(assumed=False) if assumes else arcs,
        names=tuple(c.name for c in components),
        outputs=frozenset(arcs.keys() - targets.keys()),
        discrete=frozenset(node for node, v in sources.items() if not v.is_continuous),
        linear=frozenset(_linear_arcs(models, initial)),
        started=frozenset(n for n in targets if n[1] in components[n[0]].start_values),
        scaled=frozenset(n for n, v in (*sources.items(), *targets.items()) if v.has_nominal),
        set_once=frozenset(n for n, v in targets.items() if not v.can_be_set_repeatedly),
        parameters=frozenset((k.target, k.input.name) for k in parameter_links),
    )


def _with_order_of_parameters(
    arcs: dict[Node, list[Node]], links: Sequence[Link]
) -> dict[Node, list[Node]]:
    """The arcs, with additional ones that make all parameters of an instance known together.

    A calculated parameter that cannot be read in Initialization Mode (FMI 2.0) comes after all else of its instance: it is
    read when the instance has left that mode.
    """
    of: dict[int, list[Node]] = {}
    for link in links:
        of.setdefault(link.target, []).append((link.target, link.input.name))
    for link in links:
        source = (link.source, link.output.name)
        arcs[source] = [*arcs[source], *(n for n in of[link.target] if n not in arcs[source])]
    for source in {(k.source, k.output.name) for k in links if not k.output.get_in_initialization}:
        for node in arcs:
            if node[0] == source[0] and node != source and source not in arcs[node]:
                arcs[node] = [*arcs[node], source]
    return arcs


def _linear_arcs(models: Sequence[Model], initial: bool) -> Iterator[tuple[Node, Node]]:
    for i, model in enumerate(models):
        kinds = model.initial_dependency_kinds if initial else model.dependency_kinds
        for output, of_inputs in kinds.items():
            for name, kind in of_inputs.items():
                if kind is not DependencyKind.DEPENDENT:
                    yield (i, name), (i, output)


def dependency_arcs(
    models: Sequence[Model],
    links: Iterable[Link],
    *,
    initial: bool,
    assumed: bool = True,
    among: Collection[Node] | None = None,
) -> dict[Node, list[Node]]:
    """Arcs between outputs and the connected inputs.

    Parameters
    ----------
    initial : bool
        Whether the dependencies of Initialization Mode count, else those of Step Mode.
    assumed : bool
        Whether outputs whose dependencies are not declared depend on all inputs.
    among
        Which outputs count; None for all, connected or not.
    """
    arcs: dict[Node, list[Node]] = {}
    fed: list[set[str]] = [set() for _ in models]
    for i, model in enumerate(models):
        for variable in model.with_causality(Causality.OUTPUT):
            if among is None or (i, variable.name) in among:
                arcs.setdefault((i, variable.name), [])
    for link in links:
        arcs.setdefault((link.source, link.output.name), []).append((link.target, link.input.name))
        arcs.setdefault((link.target, link.input.name), [])
        fed[link.target].add(link.input.name)
    for i, model in enumerate(models):
        if not fed[i]:
            continue
        declared = model.initial_dependencies if initial else model.dependencies
        undeclared = model.assumed_initial_dependencies if initial else model.assumed_dependencies
        for output, inputs in declared.items():
            if output in undeclared and not assumed:
                continue
            if (i, output) in arcs:
                for name in (
                    inputs & fed[i]
                ):  # an output may depend on thousands of unconnected inputs
                    arcs[i, name].append((i, output))
    return arcs


def components(arcs: Arcs) -> list[list[Node]]:
    """Strongly connected components; their members and they themselves in the order of the nodes in ``arcs``."""
    nodes = list(arcs)
    index = {node: k for k, node in enumerate(nodes)}
    successors = {k: [index[head] for head in arcs[node]] for k, node in enumerate(nodes)}
    return [[nodes[k] for k in part] for part in sorted(strong_components(successors))]


def is_loop(part: Sequence[Node], arcs: Arcs) -> bool:
    """Whether the nodes of a component depend on themselves."""
    return len(part) > 1 or part[0] in arcs[part[0]]


ALL_SET = ""
"""Instead of the name of a variable: a node that comes after all inputs of the instance and is not visited itself."""


@dataclass(slots=True)
class ReadStop:
    """Variables that are reached together: some of one instance, or those of a loop."""

    instances: tuple[int, ...]
    nodes: list[Node]
    is_loop: bool
    fed: set[Node] = field(default_factory=set)
    """Inputs of the instance that are connected to its own outputs: they are known only after this stop."""


def stops(arcs: Arcs, outputs: Collection[Node], position: Mapping[int, int]) -> Iterator[ReadStop]:
    """Strongly connected components in topological order.

    Parameters
    ----------
    outputs
        Those nodes that are outputs.
    position
        Instance → its place in the trigger sequence, which decides between what is ready.
    """
    parts = _Parts(arcs, position)
    stop: ReadStop | None = None
    for instances, nodes in parts:
        if is_loop(nodes, arcs):
            if stop is not None:
                yield stop
            yield ReadStop(instances, nodes, is_loop=True)
            stop = None
            parts.at = ()
            continue
        (node,) = nodes
        if stop is not None and (stop.instances != instances or node in stop.fed):
            yield stop
            stop = None
        stop = stop or ReadStop(instances, [], is_loop=False)
        stop.nodes.append(node)
        if node in outputs:
            stop.fed.update(head for head in arcs[node] if head[0] == node[0])
    if stop is not None:
        yield stop


class _Parts:
    """Components, each when all on which it depends have been taken; those of the same instances as the last one first."""

    def __init__(self, arcs: Arcs, position: Mapping[int, int]) -> None:
        self.parts = components(arcs)
        self.position = position
        self.instance_at = sorted(position, key=position.__getitem__)
        part_of = {node: k for k, part in enumerate(self.parts) for node in part}
        self.waits = [0] * len(self.parts)
        self.followers: list[set[int]] = [set() for _ in self.parts]
        for node, heads in arcs.items():
            for head in heads:
                a, b = part_of[node], part_of[head]
                if a != b and b not in self.followers[a]:
                    self.followers[a].add(b)
                    self.waits[b] += 1
        self.at: tuple[int, ...] = ()
        """Where the last one was: positions of its instances in the sequence."""
        self._ready: dict[tuple[int, ...], deque[int]] = {}
        """By the positions of their instances: the parts that are ready."""
        self._next_ones: list[tuple[int, ...]] = []
        """A heap of these keys; one that is not among them any more has been used up."""

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], list[Node]]]:
        """Instances and nodes of each."""
        for part in [part for part, count in enumerate(self.waits) if count == 0]:
            self._add(part)
        while self._ready:
            while self.at not in self._ready:
                self.at = heapq.heappop(self._next_ones)
            part = self._ready[self.at].popleft()
            if not self._ready[self.at]:
                del self._ready[self.at]
            else:
                heapq.heappush(self._next_ones, self.at)
            yield tuple(self.instance_at[k] for k in self.at), self.parts[part]
            self._release(part)

    def _add(self, part: int) -> None:
        if self.parts[part][0][1] == ALL_SET:
            self._release(part)
            return
        key = tuple(sorted({self.position[i] for i, _ in self.parts[part]}))
        if key not in self._ready:
            self._ready[key] = deque()
            heapq.heappush(self._next_ones, key)
        self._ready[key].append(part)

    def _release(self, part: int) -> None:
        for follower in sorted(self.followers[part]):
            self.waits[follower] -= 1
            if self.waits[follower] == 0:
                self._add(follower)
