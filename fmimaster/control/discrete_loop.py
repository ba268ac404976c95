"""Algebraic loops with discrete variables: swept until nothing changes, which is found by comparing exactly.

What was assumed for the outputs at which the loop is cut is the *state* of a sweep, what they are after it is the next one.
A loop is solved if a state is followed by itself. If it is followed by an earlier one the loop oscillates for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.errors import LoopError
from fmimaster.plan.graph import Node
from fmimaster.plan.layout import Group
from fmimaster.plan.loops import MAY_BE_NONE
from fmimaster.plan.plan import Plan
from fmimaster.program.hook import Hook
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType
from fmimaster.system.notes import listed

MOST_SWEEPS = 100
"""A loop that takes more can only be one with many states: of n Booleans there are 2**n."""

MOST_SHOWN = 6
"""States of an oscillation in a message."""

State = tuple[NDArray[Any], ...]
"""The values of each output at which the loop is cut."""


@dataclass(frozen=True, slots=True)
class _Output:
    """An output at which a loop is cut, as a place in the value store."""

    name: str
    node: Node
    type: DataType
    slot: slice


def _outputs(plan: Plan, nodes: Iterable[Node]) -> tuple[_Output, ...]:
    """Those of these variables that are outputs, by name."""
    found = []
    for i, name in nodes:
        place = plan.layout.slots.get((i, Group.OUTPUTS, name))
        if place is None:
            continue
        kind, slot = place
        found.append(_Output(f"{plan.instances[i].name}.{name}", (i, name), kind, slot))
    return tuple(sorted(found, key=lambda output: output.name))


class DiscreteLoop:
    """The hooks around the sweeps over one loop; ``begin`` in front of the REPEAT, ``sweep`` at the end of each sweep.

    Nothing of what they remember matters between two executions of a program.

    Parameters
    ----------
    plan : Plan
    outputs : sequence of (instance, output)
        At which the loop is cut.
    variables : sequence of (instance, variable)
        All variables of the loop, for messages.
    assumed : bool
        Whether the loop exists only because an FMU does not declare on what its outputs depend. If there is none, the
        outputs are right after as many sweeps as there are of them.

    Attributes
    ----------
    most_sweeps : int
    most : int
        For the REPEAT.
    """

    def __init__(
        self,
        plan: Plan,
        outputs: Sequence[Node],
        variables: Sequence[Node],
        *,
        assumed: bool = False,
    ) -> None:
        self.outputs = _outputs(plan, outputs)
        self.assumed = assumed
        self.most_sweeps = max(MOST_SWEEPS, len(self.outputs) + 1 if assumed else 0)
        self.most = self.most_sweeps + 1
        self.variables = sorted(f"{plan.instances[i].name}.{name}" for i, name in variables)
        self._states: list[State] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self.begin: Hook = _Begin(self)
        self.sweep: Hook = _Sweep(self)

    @property
    def name(self) -> str:
        """The loop, for listings."""
        return f"the discrete loop of {listed([o.name for o in self.outputs], 3)}"

    def holding(self, outputs: Sequence[Node]) -> Hook:
        """A hook that puts back what was assumed for these outputs, after an instance was read in passing."""
        return _Holding(self, [k for k, o in enumerate(self.outputs) if o.node in outputs])

    def start(self, store: ValueStore) -> None:
        """Begin with the state that is in the store."""
        self._states, self._known = [], {}
        self._add(store)

    def hold(self, store: ValueStore, chosen: Iterable[int]) -> None:
        """Put back what was assumed."""
        for k in chosen:
            output = self.outputs[k]
            store.values[output.type][output.slot] = self._states[-1][k]

    def swept(self, store: ValueStore) -> bool:
        """Note the state that the sweep gave; whether another sweep is needed.

        Raises
        ------
        LoopError
            If it was there before, but is not the last one, or after ``MOST_SWEEPS``.
        """
        before = self._add(store)
        if before is None:
            if len(self._states) > self.most_sweeps:
                raise self._error(store, "discrete loop not solved", self._states[-MOST_SHOWN:])
            return True
        period = len(self._states) - before
        if period == 1:
            return False
        raise self._error(
            store, f"discrete loop oscillates, period {period}", self._states[before:]
        )

    def _add(self, store: ValueStore) -> int | None:
        """Note the present state; its number if it was there before."""
        state = tuple(store.values[o.type][o.slot].copy() for o in self.outputs)
        key = tuple(
            tuple(values.tolist()) if values.dtype == object else values.tobytes()
            for values in state
        )
        before = self._known.setdefault(key, len(self._states))
        if before < len(self._states):
            return before
        self._states.append(state)
        return None

    def _error(self, store: ValueStore, reason: str, states: Sequence[State]) -> LoopError:
        sweeps, time = len(self._states), store.interval[1]
        shown = [self._shown(state) for state in states[:MOST_SHOWN]]
        more = ", then others" if len(states) > MOST_SHOWN else ""
        about = MAY_BE_NONE if self.assumed else ""
        return LoopError(
            f"The algebraic loop of {listed(self.variables)} was not solved at t = {time:.12g} s: {reason}. Method: sweeps "
            f"until no discrete value changes; {sweeps} sweeps. States: {'; '.join(shown)}{more}.{about} Give start values "
            "of the inputs in the loop from which it is solved, or break the loop by a component with a delay.",
            loop=tuple(self.variables),
            reason=reason,
            method="sweeps until no discrete value changes",
            sweeps=sweeps,
            values={o.name: _plain(v) for o, v in zip(self.outputs, self._states[-1], strict=True)},
            residuals={},
            time=time,
        )

    def _shown(self, state: State) -> str:
        pairs = zip(self.outputs, state, strict=True)
        return ", ".join(f"{o.name} = {_text(_plain(values))}" for o, values in pairs)


def _plain(values: NDArray[Any]) -> Any:
    return values.item() if values.size == 1 else values.tolist()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


class GivenStartValues(Hook):
    """Outputs in the store ← the start values that the user or the system has given to inputs which they feed.

    An output of which no such input has one stays as it was read.
    """

    def __init__(self, plan: Plan, outputs: Sequence[Node], variables: Sequence[Node]) -> None:
        self.given = [
            (output, start)
            for output in _outputs(plan, outputs)
            if (start := _start(plan, output, frozenset(variables))) is not None
        ]
        self.name = f"start values of {listed([o.name for o, _ in self.given], 3)}"

    def __call__(self, store: ValueStore) -> bool:
        """Put them into the store."""
        for output, start in self.given:
            store.values[output.type][output.slot] = start
        return False


def _start(plan: Plan, output: _Output, variables: frozenset[Node]) -> NDArray[Any] | None:
    """The start value of the first input, by name, that has one; as the output would have to be for it."""
    fed = sorted(
        (f"{plan.instances[k.target].name}.{k.input.name}", k.target, k.input.name)
        for k in plan.links
        if (k.source, k.output.name) == output.node and (k.target, k.input.name) in variables
    )
    for _, i, name in fed:
        given = plan.instances[i].start_values.get(name)
        if given is not None:
            (link,) = (k for k in plan.links if (k.target, k.input.name) == (i, name))
            values = np.array(given, link.input.type.dtype)
            if not link.transformation.is_identity:
                values = (values - link.transformation.offset) / link.transformation.factor
            if output.type.is_integer:
                values = np.rint(values)
            return values.astype(output.type.dtype)
    return None


class _Begin(Hook):
    def __init__(self, loop: DiscreteLoop) -> None:
        self.loop = loop
        self.name = f"start of {loop.name}"

    def __call__(self, store: ValueStore) -> bool:
        """A new solution begins."""
        self.loop.start(store)
        return False


class _Sweep(Hook):
    def __init__(self, loop: DiscreteLoop) -> None:
        self.loop = loop
        self.name = f"end of a sweep of {loop.name}"

    def __call__(self, store: ValueStore) -> bool:
        """Compare what the sweep gave."""
        return self.loop.swept(store)


class _Holding(Hook):
    def __init__(self, loop: DiscreteLoop, chosen: Sequence[int]) -> None:
        self.loop, self.chosen = loop, chosen
        self.name = f"what is assumed in {loop.name}"

    def __call__(self, store: ValueStore) -> bool:
        """Put it back."""
        self.loop.hold(store, self.chosen)
        return False
