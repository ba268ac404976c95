"""The unknowns of algebraic loops: places in the value store, start values, and what is kept from sweep to sweep."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.text import listed
from fmimaster.loops.search import DOUBLE, Vector
from fmimaster.plan.graph import Node
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType


@dataclass(frozen=True, slots=True, eq=False)
class Unknowns:
    """The unknowns of a loop as places in the value store, those of type Float64 first, each part in the order of names.

    They are outputs, not inputs: one output may feed several inputs in other units and types, and MOVE converts assumed
    values as it converts values that were read.

    Parameters
    ----------
    names : tuple of str
        ``"instance.output"``, with an index for an element of an array.
    slots : shape (n,), integers
        Among the values of their type.
    doubles : int
        How many of them have the type Float64; the others have Float32.
    nominal, start : shape (n,)
        Nominal values, and start values by those of the inputs that they feed.
    """

    names: tuple[str, ...]
    slots: NDArray[np.int64]
    doubles: int
    nominal: Vector
    start: Vector

    @property
    def size(self) -> int:
        """Number of elements."""
        return len(self.slots)

    def get(self, store: ValueStore) -> Vector:
        """Their values in the store."""
        found = np.empty(self.size)
        for kind, part in self._parts():
            if part.start < part.stop:
                found[part] = store.values[kind][self.slots[part]]
        return found

    def put(self, store: ValueStore, values: Vector) -> None:
        """Values → store."""
        for kind, part in self._parts():
            if part.start < part.stop:
                store.values[kind][self.slots[part]] = values[part]

    def _parts(self) -> tuple[tuple[DataType, slice], ...]:
        cut = self.doubles
        return (DataType.FLOAT64, slice(0, cut)), (DataType.FLOAT32, slice(cut, self.size))


def unknowns_of(
    plan: Plan,
    outputs: Iterable[Node],
    *,
    variables: Iterable[Node] | None = None,
    group: Group = Group.OUTPUTS,
) -> Unknowns:
    """The elements of these outputs, or of variables of another group.

    Parameters
    ----------
    outputs
        Of type Float64 or Float32; in any order.
    variables
        Variables of the loop: the inputs among them that the outputs feed give nominal and start values; all if left out.
    """
    inside = None if variables is None else set(variables)
    chosen = [
        (kind is not DataType.FLOAT64, f"{plan.instances[i].name}.{name}", (i, name), slot)
        for i, name in outputs
        for kind, slot in [plan.layout.slots[i, group, name]]
    ]
    names, slots, nominal, start = list[str](), list[int](), list[float](), list[float]()
    doubles = 0
    for is_single, name, node, slot in sorted(chosen, key=lambda c: c[:2]):
        size = slot.stop - slot.start
        names += [name] if size == 1 else [f"{name}[{k + 1}]" for k in range(size)]
        slots += range(slot.start, slot.stop)
        doubles += 0 if is_single else size
        starts = _start(plan, node, inside, size)
        start += starts
        nominal += _nominals(plan, node, inside, starts)
    return Unknowns(
        tuple(names),
        np.array(slots, np.int64),
        doubles,
        np.array(nominal),
        np.array(start),
    )


def precision(plan: Plan, variables: Iterable[Node], *, replayed: bool = False) -> float:
    """Relative error of the least precise of these variables: by the rounding of its type, or as it was measured.

    Parameters
    ----------
    replayed : bool
        Whether the values come from repeated steps, which some FMUs do not repeat exactly.
    """
    nodes = [(plan.instances[i].model, name) for i, name in variables]
    found = (model.variable(name) for model, name in nodes)
    is_single = any(v is not None and v.type is DataType.FLOAT32 for v in found)
    least = float(np.finfo(np.float32).eps) if is_single else DOUBLE
    noise = (model.replay_noise.get(name, 0.0) for model, name in nodes if replayed)
    return max(least, *noise, 0.0)


def _fed(
    plan: Plan, node: Node, inside: Collection[Node] | None
) -> list[tuple[str, float, float, Node]]:
    """Inputs that an output feeds: name, factor and offset of the connection, and the input; in the order of names."""
    return sorted(
        (f"{plan.instances[k.target].name}.{k.input.name}", k.transformation.factor,
         k.transformation.offset, (k.target, k.input.name))
        for k in plan.links.out_of.get(node, ())
        if k.transformation.factor
        and (inside is None or (k.target, k.input.name) in inside)
    )  # fmt: skip


def _start(plan: Plan, node: Node, inside: set[Node] | None, size: int) -> list[float]:
    """Start values of an output, by those of the first input that it feeds; one that the user has given comes first."""
    found: tuple[tuple[float, ...], float, float] | None = None
    for _, factor, offset, (i, name) in _fed(plan, node, inside):
        given = plan.instances[i].start_values.get(name)
        variable = plan.instances[i].model.variable(name)
        start = given or (variable.start if variable else None)
        if start is not None and (found is None or given):
            found = tuple(map(float, start)), factor, offset
            if given:
                break
    if found is None:
        return [0.0] * size
    values, factor, offset = found
    values = values if len(values) == size else (values[0],) * size
    return [(value - offset) / factor for value in values]


def _nominals(
    plan: Plan, node: Node, inside: set[Node] | None, starts: Sequence[float]
) -> list[float]:
    """Nominal values of the elements: that of an input that the output feeds, else its own, else by the start values."""
    for _, factor, _, (i, name) in _fed(plan, node, inside):
        variable = plan.instances[i].model.variable(name)
        if variable is not None and variable.has_nominal:
            return [abs(variable.nominal / factor)] * len(starts)
    output = plan.instances[node[0]].model.variable(node[1])
    if output is not None and output.has_nominal:
        return [abs(output.nominal)] * len(starts)
    return [max(1.0, abs(start)) for start in starts]


def constraints(
    plan: Plan, unknowns: Unknowns, residuals: Mapping[Node, Node], group: Group
) -> dict[int, int]:
    """Number of an unknown → slot of the output that must be 0."""
    slots, found = plan.layout.slots, dict[int, int]()
    for (i, unknown), (j, output) in residuals.items():
        at, zero = slots[i, group, unknown][1], slots[j, Group.OUTPUTS, output][1]
        first = unknowns.slots[: unknowns.doubles].tolist().index(at.start)
        found |= {first + k: zero.start + k for k in range(at.stop - at.start)}
    return found


class StartValues(Hook):
    """Outputs in the store ← the start values of the inputs that they feed, so that a loop is solved from there.

    Where they feed several inputs of the loop, a start value that the user has given comes first, then the order of names.
    """

    def __init__(self, plan: Plan, outputs: Sequence[Node], variables: Sequence[Node]) -> None:
        self.unknowns = unknowns_of(plan, outputs, variables=variables)
        self.name = f"start values of {listed(self.unknowns.names, 3)}"

    def __call__(self, store: ValueStore) -> bool:
        """Write the start values into the store."""
        self.unknowns.put(store, self.unknowns.start)
        return False


MOST_REMEMBERED = 16
"""Differences of sweeps for which the kernel has room."""


class At(IntEnum):
    """Numbers that the hooks and their twins count: indices into :attr:`LoopState.counts`."""

    SWEEPS = 0
    """Of the present solution."""
    KEPT = 1
    """Differences that the twin remembers."""
    STAGE = 2
    """0: Anderson acceleration in C; 1: it has given up; 2: the search continues in Python; 3: the start values are a
    solution, of which nothing else is known."""
    TOTAL = 3
    """Sweeps of all solutions."""
    SOLUTIONS = 4
    MOST = 5
    """Largest number of sweeps of a solution."""
    OVERFLOWED = 6
    """Whether a residual of the present solution has diverged."""


_OF_RUN = At.SOLUTIONS, At.TOTAL, At.MOST


@dataclass(frozen=True, eq=False)
class LoopState:
    """The arrays of a loop of n unknowns, with the names that they have in the kernel."""

    counts: NDArray[np.int64]
    """By :class:`At`."""
    sizes: Vector
    """Of residuals, the first and the smallest one; and the smallest slope of a residual."""
    relative: Vector
    """Relative tolerance of each unknown."""
    x: Vector
    """The values that are tried."""
    u0: Vector
    """Those with which the present solution began."""
    best_u: Vector
    best_residual: Vector
    work: Vector

    @classmethod
    def of(cls, n: int, depth: int, relative: float) -> LoopState:
        """That of a loop of n unknowns, with room for so many differences."""
        x, u0, best_u, best_residual = np.zeros((4, n))
        return cls(
            counts=np.zeros(len(At), np.int64),
            sizes=np.full(3, np.inf),
            relative=np.full(n, relative),
            x=x,
            u0=u0,
            best_u=best_u,
            best_residual=best_residual,
            work=np.zeros((5 + 3 * depth) * n),
        )

    def begin(self, values: Vector) -> None:
        """A new solution begins with these values."""
        self.u0[:] = self.x[:] = values
        self.counts[[At.SWEEPS, At.KEPT, At.STAGE, At.OVERFLOWED]] = 0

    def note_solution(self) -> None:
        """One more is found."""
        self.counts[At.SOLUTIONS] += 1
        self.counts[At.MOST] = max(self.counts[At.MOST], self.counts[At.SWEEPS])

    @property
    def of_run(self) -> tuple[int, int, int]:
        """Numbers of solutions and sweeps so far, and the largest number of sweeps of a solution."""
        solutions, sweeps, most = self.counts[[*_OF_RUN]].tolist()
        return solutions, sweeps, most

    def go_on(self, numbers: tuple[float, ...]) -> None:
        """Continue with such numbers of a run."""
        self.counts[[*_OF_RUN]] = numbers


@dataclass(frozen=True, slots=True)
class Output:
    """An output at which a loop is cut, as a place in the value store."""

    name: str
    node: Node
    type: DataType
    slot: slice


def outputs_of(plan: Plan, nodes: Iterable[Node]) -> tuple[Output, ...]:
    """The outputs among these variables, sorted by name."""
    found = []
    for i, name in nodes:
        place = plan.layout.place(i, name)
        if place is None:
            continue
        kind, slot = place
        found.append(Output(f"{plan.instances[i].name}.{name}", (i, name), kind, slot))
    return tuple(sorted(found, key=lambda output: output.name))


class GivenStartValues(Hook):
    """Outputs in the store ← the start values that the user or the system has given to inputs which they feed.

    If no such input has a start value, the output keeps the value that was read.
    """

    def __init__(self, plan: Plan, outputs: Sequence[Node], variables: Sequence[Node]) -> None:
        self.given = [
            (output, start)
            for output in outputs_of(plan, outputs)
            if (start := _given_start(plan, output, frozenset(variables))) is not None
        ]
        self.name = f"start values of {listed([o.name for o, _ in self.given], 3)}"

    def __call__(self, store: ValueStore) -> bool:
        """Write the start values into the store."""
        for output, start in self.given:
            store.values[output.type][output.slot] = start
        return False


def _given_start(plan: Plan, output: Output, variables: frozenset[Node]) -> NDArray[Any] | None:
    """The value of the output that gives the start value of the first input, by name, that has one."""
    for _, factor, offset, (i, name) in _fed(plan, output.node, variables):
        given, variable = (
            plan.instances[i].start_values.get(name),
            plan.instances[i].model.variable(name),
        )
        if given is not None and variable is not None:
            values = np.array(given, variable.type.dtype)
            if (factor, offset) != (1.0, 0.0):
                values = (values - offset) / factor
            if output.type.is_integer:
                values = np.rint(values)
            return values.astype(output.type.dtype)
    return None
