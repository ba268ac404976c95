"""Algebraic loops with discrete variables: sweeps until no value changes, compared exactly.

Floating point numbers that an FMU declares as discrete are compared exactly, too. If only they do not converge, they are
unknowns of the solver of continuous loops: a tool may declare all of its variables as discrete.

The values assumed for the outputs at which the loop is cut are the *state* of a sweep. Their values after the sweep are the
next state. A loop is solved if a state is followed by itself. If it is followed by an earlier state, the loop oscillates
forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import LoopError
from fmimaster.base.text import listed
from fmimaster.loops.hook import LoopHooks
from fmimaster.loops.search import Reasons
from fmimaster.loops.solver import LoopSolver
from fmimaster.loops.unknowns import outputs_of
from fmimaster.plan.graph import Node
from fmimaster.plan.plan import Plan
from fmimaster.plan.visits import MAY_BE_NONE
from fmimaster.program.hook import FunctionHook, Hook
from fmimaster.program.store import ValueStore

MOST_SWEEPS = 100
"""Only a loop with many states can need more: n Booleans have 2**n states."""

MOST_OF_NUMBERS = 10
"""Sweeps after which the solver tries a loop that is cut at numbers only, before the sweeps continue."""

WITHOUT_DELAY = "discrete loop without delay"
"""The reason for a loop through which events pass, and that has no fixed point."""

GIVE_START_VALUES = "Give start values of the inputs in the loop from which it is solved. "

MOST_SHOWN = 6
"""Largest number of states of an oscillation in a message."""

State = tuple[NDArray[Any], ...]
"""The values of each output at which the loop is cut."""


class DiscreteLoop:
    """The hooks around the sweeps over one loop: ``begin`` before the REPEAT, ``sweep`` at the end of each sweep.

    No state of one execution influences the next one.

    Parameters
    ----------
    plan : Plan
    outputs : sequence of (instance, output)
        The outputs at which the loop is cut.
    variables : sequence of (instance, variable)
        All variables of the loop, for messages.
    assumed : bool
        Whether the loop exists only because an FMU does not declare the dependencies of its outputs. If there is in fact
        no loop, n outputs are correct after n sweeps.
    solver : LoopSolver
        Solver for outputs that are numbers.
    passes_events : bool
        Whether it consists of clocks and clocked variables: their values are events, and no solver tries numbers between
        them.

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
        solver: LoopSolver | None = None,
        passes_events: bool = False,
    ) -> None:
        self.outputs = outputs_of(plan, outputs)
        self.assumed = assumed
        self._passes_events = passes_events
        self.most_sweeps = max(MOST_SWEEPS, len(self.outputs) + 1 if assumed else 0)
        numbers = [o.node for o in self.outputs if o.type.is_float and not passes_events]
        self.numbers = (
            LoopHooks(plan, numbers, solver or LoopSolver(), variables=variables)
            if numbers
            else None
        )
        self.most = self.most_sweeps + 1 + (self.numbers.most if self.numbers else 0)
        self._is_searching = False
        self._failure: LoopError | None = None
        """Why the sweeps have ended; set while the solver searches and after it has failed."""
        self._was_searched = False
        self.variables = sorted(f"{plan.instances[i].name}.{name}" for i, name in variables)
        self._states: list[State] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._assumed: State = ()
        """State at the start of the present sweep."""
        self.begin: Hook = FunctionHook(f"start of {self.name}", self.start)
        self.sweep: Hook = _Sweep(self)

    @property
    def name(self) -> str:
        """The loop, for listings."""
        return f"the discrete loop of {listed([o.name for o in self.outputs], 3)}"

    def holding(self, outputs: Sequence[Node]) -> Hook:
        """A hook that restores the assumed values of these outputs after an instance was read within the sweep."""
        chosen = [k for k, o in enumerate(self.outputs) if o.node in outputs]
        return FunctionHook(f"what is assumed in {self.name}", partial(self.hold, chosen=chosen))

    def start(self, store: ValueStore) -> None:
        """Start with the state that is in the store."""
        self._states, self._known = [], {}
        self._is_searching, self._failure, self._was_searched = False, None, False
        self._add(store)

    def hold(self, store: ValueStore, chosen: Iterable[int]) -> None:
        """Restore the assumed values of some outputs."""
        for k in chosen:
            output = self.outputs[k]
            store.values[output.type][output.slot] = self._assumed[k]

    def swept(self, store: ValueStore) -> bool:
        """Record the state after the sweep; return whether another sweep is needed.

        Raises
        ------
        LoopError
            If the state repeats one before the last one, after ``MOST_SWEEPS``, or if numbers are no longer finite.
        """
        if self._is_searching:
            return self._searched(store)
        before = self._add(store)
        if before is None:
            if len(self._states) > self.most_sweeps:
                last = self._states[-MOST_SHOWN:]
                reason = WITHOUT_DELAY if self._passes_events else "discrete loop not solved"
                return self._give_up(store, self._error(store, reason, last), 1)
            if len(self._states) == MOST_OF_NUMBERS and self._has_numbers_only(0):
                self._search(store)
            return True
        period = len(self._states) - before
        if period == 1:
            if any(map(self._has_diverged, range(len(self.outputs)))):
                raise self._error(store, Reasons.DIVERGED, self._states[-MOST_SHOWN:])
            return False
        reason = f"discrete loop oscillates, period {period}"
        if self._passes_events:
            reason = f"{WITHOUT_DELAY}, its values repeat with period {period}"
        return self._give_up(store, self._error(store, reason, self._states[before:]), period)

    def _give_up(self, store: ValueStore, failure: LoopError, last: int) -> bool:
        """Raise the failure, unless only numbers differ in the last states: then the solver tries them."""
        if self._was_searched or not self._has_numbers_only(len(self._states) - 1 - last):
            raise failure
        self._failure = failure
        self._search(store)
        return True

    def _has_diverged(self, k: int) -> bool:
        """Whether an output has become NaN, or has grown over finite values until it was infinite.

        Infinite values of an FMU can be valid, for example the time of an event that never happens.
        """
        if not self.outputs[k].type.is_float:
            return False
        history = np.array([state[k] for state in self._states], np.float64)
        is_finite = np.isfinite(history)
        passed = [len(np.unique(h[f])) for h, f in zip(history.T, is_finite.T, strict=True)]
        has_grown = ~is_finite[-1] & (np.array(passed) > 1)
        has_vanished = np.isnan(history[-1]) & ~np.isnan(history[0])
        return bool((has_grown | has_vanished).any())

    def _has_numbers_only(self, first: int) -> bool:
        """Whether there are numbers, and the states from this one on differ in numbers only."""
        return self.numbers is not None and all(
            o.type.is_float or np.array_equal(state[k], self._states[-1][k])
            for state in self._states[max(first, 0) :]
            for k, o in enumerate(self.outputs)
        )

    def _search(self, store: ValueStore) -> None:
        """Start the solver for numbers, from the first or the last state: from the one that changes less."""
        assert self.numbers is not None
        changes = [self._change(0), self._change(len(self._states) - 2)]
        self._assumed = self._states[0 if changes[0] <= changes[1] else -1]
        self.hold(store, range(len(self.outputs)))
        self.numbers.start(store)
        self._assumed = self._state(store)
        self._is_searching = self._was_searched = True

    def _change(self, k: int) -> float:
        """Largest change of a number from one state to the next; infinite if one overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            changes = [
                np.abs(np.asarray(after - before, np.float64))
                for o, before, after in zip(
                    self.outputs, self._states[k], self._states[k + 1], strict=True
                )
                if o.type.is_float
            ]
        largest = float(np.concatenate(changes).max(initial=0.0))
        return largest if isfinite(largest) else inf

    def _searched(self, store: ValueStore) -> bool:
        """Pass a sweep to the solver; if it fails, continue the sweeps from their last state, or raise their failure."""
        assert self.numbers is not None
        others = [k for k, o in enumerate(self.outputs) if not o.type.is_float]
        found = self._state(store)
        try:
            again = self.numbers.swept(store)
        except LoopError:
            if self._failure is not None:
                raise self._failure from None
            self._is_searching, self._assumed = False, self._states[-1]
            self.hold(store, range(len(self.outputs)))
            return True
        if again:
            self.hold(store, others)
            self._assumed = self._state(store)
            return True
        self._is_searching = False
        if all(np.array_equal(found[k], self._assumed[k]) for k in others):
            self.start(store)
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def _add(self, store: ValueStore) -> int | None:
        """Record the present state; return its number if it occurred before."""
        state = self._assumed = self._state(store)
        key = tuple(
            tuple(values.tolist()) if values.dtype == object else values.tobytes()
            for values in state
        )
        before = self._known.setdefault(key, len(self._states))
        if before < len(self._states):
            return before
        self._states.append(state)
        return None

    def _state(self, store: ValueStore) -> State:
        return tuple(store.values[o.type][o.slot].copy() for o in self.outputs)

    def _error(self, store: ValueStore, reason: str, states: Sequence[State]) -> LoopError:
        sweeps, time = len(self._states), store.interval[1]
        shown = [self._shown(state) for state in states[:MOST_SHOWN]]
        more = ", then others" if len(states) > MOST_SHOWN else ""
        about = MAY_BE_NONE if self.assumed else ""
        advice = "" if self._passes_events else GIVE_START_VALUES
        return LoopError(
            f"The algebraic loop of {listed(self.variables)} was not solved at t = {time:.12g} s: {reason}. Method: sweeps "
            f"until no discrete value changes; {sweeps} sweeps. States: {'; '.join(shown)}{more}.{about} {advice}Break the "
            "loop by a component with a delay.",
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


class _Sweep(Hook):
    def __init__(self, loop: DiscreteLoop) -> None:
        self.loop = loop
        self.name = f"end of a sweep of {loop.name}"

    def __call__(self, store: ValueStore) -> bool:
        """Compare the state after the sweep with the earlier states."""
        return self.loop.swept(store)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the solver."""
        return self.loop.numbers.warnings if self.loop.numbers else ()

    def begin_anew(self) -> None:
        """No solution has shown anything."""
        if self.loop.numbers is not None:
            self.loop.numbers.sweep.begin_anew()
