"""The emitter: algorithms write programs with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from fmimaster.inputs.polynomial import LINEAR, Polynomial
from fmimaster.plan.corrections import passes
from fmimaster.plan.layout import Group, Route
from fmimaster.plan.plan import Plan
from fmimaster.program.fits import (
    can_be_halved,
    fit_of,
    kinds_of,
    may_be_after_jumps,
    points_of_history,
    refuse_too_many_coefficients,
    sub_steps,
)
from fmimaster.program.hook import Hook, Hooks
from fmimaster.program.instructions.inputs import Fit, Move, Set
from fmimaster.program.instructions.outputs import (
    Correct,
    Derive,
    Get,
)
from fmimaster.program.instructions.steps import Align, Call, Mode, Parallel, Step, Tick, Update
from fmimaster.program.writer import Writer
from fmimaster.system.states import State

Since = tuple[int, ...]
"""Buffers with older outputs."""


class Emitter(Writer):
    """Writes the instructions of programs, numbers places and buffers, and tracks the present interval.

    Parameters
    ----------
    plan : Plan
    history : int
        Number of accepted points in the history.
    given : (instance, name of an input) → Polynomial
        Polynomials of the user for single inputs, instead of the polynomial of the algorithm.
    in_halves : bool
        Whether FMUs that hold their inputs do each step in two halves, each with a value of its own, if they can.

    Attributes
    ----------
    wanted_history : int
        Number of points of the history that the written polynomials need.
    polynomial_inputs : set of int
        Instances whose inputs are polynomials in any program so far.
    held : set of int
        Instances whose inputs are held at the mean of a polynomial in any program so far.
    corrected : set of int
        Instances whose outputs are corrected in any program so far.
    means : set of int
        Instances whose inputs are held at the mean of a polynomial in the present program, and that are to be corrected.
    hooks : Hooks
        The hooks called by CALL, by number.
    measures : sequence of Hook
        Hooks that are called at the end of each step, after all outputs were read and before new inputs are set.
    used : set of (instance, name of an input)
        Inputs for which a polynomial of the user is used.
    derivatives : instance → number
        Number of derivatives of its inputs that an instance also needs at an event and in Initialization Mode, because
        they are coefficients: without them it would assume slopes of 0.
    """

    def __init__(
        self,
        plan: Plan,
        history: int = 0,
        *,
        measures: Sequence[Hook] = (),
        given: Mapping[tuple[int, str], Polynomial] | None = None,
        in_halves: bool = False,
    ) -> None:
        super().__init__(plan, history)
        self.given = {} if given is None else given
        self.in_halves = in_halves
        self.used: set[tuple[int, str]] = set()
        self.wanted_history = 0
        self.polynomial_inputs: set[int] = set()
        self.held: set[int] = set()
        self.corrected: set[int] = set()
        self._at_an_event = False
        self.hooks = Hooks()
        self.measures = measures
        self.derivatives: Mapping[int, int] = {}

    def another(self, plan: Plan | None = None) -> Emitter:
        """An emitter for a program that is written during the run, with the same hooks, measures and inputs."""
        p = Emitter(
            plan or self.plan,
            self.history,
            measures=self.measures,
            given=self.given,
            in_halves=self.in_halves,
        )
        p.hooks, p.derivatives, p.corrected = self.hooks, self.derivatives, self.corrected
        return p

    def _start(self) -> None:
        super()._start()
        self.means: set[int] = set()

    # Inputs, steps, outputs

    def inputs(self, instance: int, polynomial: Polynomial, *, for_all: bool = False) -> None:
        """Set the inputs of the instance: continuous ones by the polynomial, or by its mean if the FMU accepts no
        polynomials; all others are held.

        If the polynomial has sub-steps, and the FMU can do them, all sub-steps except the last one are written as well.

        Parameters
        ----------
        for_all : bool
            Whether the polynomial is also used for connections with another polynomial of the user.
        """
        takes = self.plan.instances[instance].model.takes_polynomial_of

        def chosen(route: Route) -> Polynomial:
            kind = polynomial if for_all else self._given(route, polynomial)
            return kind.of(len(route.derivatives))

        kinds = kinds_of(self.plan, instance, chosen)
        is_halved = self.in_halves and can_be_halved(self.plan, instance, kinds)
        n = 2 if is_halved else sub_steps(self.plan, instance, kinds)

        def of(route: Route) -> Polynomial:
            kind = chosen(route)
            if kind.is_constant or takes(route.link.input):
                return kind
            return kind.mean_of(len(route.derivatives), in_halves=is_halved)

        for k in range(n):
            with self.over(k / n, (k + 1) / n) if n > 1 else nullcontext():
                self._give(instance, of, half=k + 1 if is_halved else 0)
                if k < n - 1:
                    self.step(instance)

    def _give(
        self, instance: int, of: Callable[[Route], Polynomial], since: Since = (), half: int = 0
    ) -> None:
        """Set the inputs of the instance: continuous ones by these polynomials, all others held."""
        if self._has(instance, Group.CONTINUOUS):
            kinds = kinds_of(self.plan, instance, of)
            held = all(kind.is_hold for kind in kinds)
            if held and not may_be_after_jumps(self.plan, instance, self.is_ahead):
                self.write(Move(instance, Group.CONTINUOUS))
            else:
                kinds = [k.constant(0.0) for k in kinds] if held else kinds
                self._fit(instance, kinds, since, half)
        self._discrete_inputs(instance)
        self.set_inputs(instance)

    def is_ahead(self, instance: int) -> bool:
        """Whether the outputs of an instance were, or may have been, read after the start of the present interval."""
        return self._trace.is_ahead(instance, self._intervals[-1].begin)

    def interpolate(
        self,
        instance: int,
        otherwise: Polynomial,
        since: Since,
        *,
        held: float | None = None,
        parts: int = 1,
    ) -> None:
        """Set the inputs of the instance: continuous ones whose source has stepped along the straight line to its
        newest output, continuous ones of other sources by a polynomial; all others are held.

        Parameters
        ----------
        otherwise : Polynomial
            For sources that have not stepped, unless the user has given another polynomial.
        since : buffers
            The line begins at the output in the first of them in which the source was read at another time.
        held : float, optional
            Continuous inputs are constant, at their values at this fraction of the interval; else they are polynomials.
        parts : int
            Number of parts of the instance's step; the present interval is one of them. A compensation for a whole step
            is divided among them.
        """

        def extrapolated(route: Route) -> Polynomial:
            kind = self._given(route, otherwise).of(len(route.derivatives))
            return replace(kind, compensation=kind.compensation / parts)

        routes = self.plan.routes.get((instance, Group.CONTINUOUS), ())
        older = [extrapolated(r) for r in routes if not self.is_ahead(r.link.source)]
        line = replace(LINEAR, history=any(kind.uses_history for kind in older))

        def of(route: Route) -> Polynomial:
            kind = line if self.is_ahead(route.link.source) else extrapolated(route)
            return kind if held is None else kind.constant(held)

        self._give(instance, of, since)

    def _given(self, route: Route, otherwise: Polynomial) -> Polynomial:
        """The polynomial of the user for a connection, otherwise ``otherwise``."""
        key = route.link.target, route.link.input.name
        self.used.add(key)
        return self.given.get(key, otherwise)

    def _discrete_inputs(self, instance: int) -> None:
        """Move discrete inputs, unless they change in Event Mode only."""
        if not self._has(instance, Group.DISCRETE) or self.plan.instances[instance].event_mode:
            return
        routes = self.plan.routes[instance, Group.DISCRETE] if self._until_jumps else ()
        with self.as_at_the_start(r.link.source for r in routes if r.left is not None):
            self.write(Move(instance, Group.DISCRETE))

    def _fit(self, instance: int, kinds: Sequence[Polynomial], since: Since, half: int = 0) -> None:
        """Write a FIT with a polynomial for each route to the instance."""
        interval = self._intervals[-1]
        for kind in kinds:
            refuse_too_many_coefficients(self.plan, instance, kind)
        buffers = since
        # the start of a later part of the step is not in the history yet
        sources = self.plan.sources[instance]
        is_ahead = interval.begin > 0.0 and any(self.is_ahead(j) for j in sources)
        wanted = self._wants_begin or is_ahead
        if any(k.points > 1 and (wanted or not k.history) for k in kinds) and not since:
            buffers = self.keep_begins(instance)
        fit = fit_of(instance, kinds, interval.begin, interval.end, buffers, half)
        self.wanted_history = max(self.wanted_history, points_of_history(kinds, buffers))
        if not fit.is_constant:
            self.polynomial_inputs.add(instance)
        elif any(kind.mean for kind in kinds):
            self.means.add(instance)
            self.held.add(instance)
        self.write(fit)

    def move(self, instance: int) -> None:
        """Inputs of the instance in the store ← connected outputs, held."""
        if self._has(instance, Group.CONTINUOUS):
            if instance in self.derivatives and self._at_an_event:
                self.write(
                    Fit(instance, self._intervals[-1].begin, 1, self.derivatives[instance], ())
                )
            else:
                self.write(Move(instance, Group.CONTINUOUS))
        if self._has(instance, Group.DISCRETE):
            self.write(Move(instance, Group.DISCRETE))

    def give_parameters(self, instance: int) -> None:
        """Connected calculated parameters → parameters of the instance, which is in Initialization Mode."""
        if self._has(instance, Group.PARAMETERS):
            self.write(Move(instance, Group.PARAMETERS))
            self.set(instance, Group.PARAMETERS)

    def move_triggers(self, instance: int) -> None:
        """Triggers that connected clocks make active, and their payload."""
        if self._has(instance, Group.TRIGGERS):
            self.write(Move(instance, Group.TRIGGERS))

    def held_inputs(self) -> set[int]:
        """Instances whose continuous inputs are constant over an interval of the present program."""
        return {
            i.instance
            for i in self._instructions
            if (isinstance(i, Move) and i.group is Group.CONTINUOUS)
            or (isinstance(i, Fit) and i.is_constant)
        }

    def set_inputs(self, instance: int) -> None:
        """Inputs in the store → FMU; discrete ones only in Event Mode, if that is used."""
        self.set(instance, Group.CONTINUOUS)
        if not self.plan.instances[instance].event_mode or self._at_an_event:
            self.set(instance, Group.DISCRETE)

    def set(self, instance: int, group: Group) -> None:
        """A group in the store → FMU; nothing if the instance has no such variables."""
        if self._has(instance, group):
            self.write(Set(instance, group))

    def step(self, instance: int) -> None:
        """``DoStep`` to the end of the interval."""
        self._saved.pop(instance, None)
        end = self._intervals[-1].end
        self.write(Step(instance, end))

    def step_all(self, instances: Iterable[int]) -> None:
        """``DoStep`` of all these instances to the end of the interval, in any order or at the same time.

        Those that may return early are first, one by one: the others then step no further. Of them, those that cannot go
        back are last.
        """
        planned, instances = self.plan.instances, list(instances)
        stopping = [i for i in instances if planned[i].may_return_early]
        others = [i for i in instances if not planned[i].may_return_early]
        for instance in sorted(stopping, key=lambda i: planned[i].stays_ahead):
            self.step(instance)
        if len(others) > 1:
            self.write(Parallel(len(others)))
        for instance in others:
            self.step(instance)

    def get(self, instance: int, group: Group = Group.OUTPUTS) -> None:
        """Outputs of the FMU → store, or the SOURCES among them; nothing if none is used."""
        if self._has(instance, group):
            self.write(Get(instance, group))

    def correct(self, instances: Iterable[int], *, at_left: bool = False) -> None:
        """Correct outputs of these instances that depend directly on held inputs, as far as it can be done."""
        for chosen in passes(self.plan.corrections, instances, self.plan.links):
            for instance in chosen:
                self.corrected.add(instance)
                self.write(Correct(instance, at_left))

    def correct_means(self) -> None:
        """Correct the instances whose inputs were held at means over the steps that have been written and measured."""
        before = len(self._instructions)
        self.correct(self.means)
        self.means = set()
        if len(self._instructions) > before:
            self.remeasure()

    def get_clocks(self, instance: int) -> None:
        """Output clocks of the FMU → store, and its input clocks are inactive there; nothing if nobody needs them."""
        if self._has(instance, Group.CLOCKS) or self._has(instance, Group.INPUT_CLOCKS):
            self.write(Get(instance, Group.CLOCKS))

    def get_clocked(self, instance: int) -> None:
        """Output clocks that have become active, and clocked outputs whose clock is active → store."""
        if self._has(instance, Group.CLOCKED) or self._has(instance, Group.CLOCKS):
            self.write(Get(instance, Group.CLOCKED))

    def get_intervals(self, instance: int) -> None:
        """Changed intervals of clocks → store; nothing if the FMU tells none."""
        if self._has(instance, Group.INTERVALS):
            self.write(Get(instance, Group.INTERVALS))

    def set_intervals(self, instance: int) -> None:
        """Intervals that the user decides → clocks of the FMU, shifts that the FMU decides → store; in Initialization
        Mode."""
        clocks = (v.clock for v in self.plan.instances[instance].model.variables if v.clock)
        if any(c.is_periodic and (c.is_given or c.interval is None) for c in clocks):
            self.write(Set(instance, Group.INTERVALS))

    def align(self, instance: int, place: int) -> None:
        """Roll the instance back if it is past an early return."""
        self.write(Align(instance, place))

    # Events

    def update(self, instance: int) -> None:
        """``UpdateDiscreteStates``."""
        self.write(Update(instance))

    def tick(self, trigger: int) -> None:
        """Make a trigger active."""
        self.write(Tick(trigger))

    def call(self, hook: Hook) -> None:
        """Call a hook on the value store."""
        self.write(Call(self.hooks.number(hook)))

    def measure(self) -> None:
        """Call the measures for the step that has been written, or for the instant of an event."""
        for hook in self.measures:
            chosen = hook.at_instant if self._at_an_event else hook
            if chosen is not None:
                self.call(chosen)

    def remeasure(self) -> None:
        """Call the measures again, after outputs were read again at the same time with new inputs."""
        for hook in self.measures:
            if hook.refreshed is not None:
                self.call(hook.refreshed)

    def derive(self, instance: int, hook: Hook) -> None:
        """Partial derivatives of the instance → hook, if it requests them."""
        if hook.partials(instance) is not None:
            self.write(Derive(instance, self.hooks.number(hook)))

    @contextmanager
    def at_an_event(self) -> Iterator[None]:
        """Context for Event Mode or Initialization Mode, in which discrete inputs can be set."""
        outer, self._at_an_event = self._at_an_event, True
        yield
        self._at_an_event = outer

    def mode(self, instance: int, state: State) -> None:
        """Bring the instance to a state."""
        self.write(Mode(instance, state))

    def exchange(self, instance: int, group: Group = Group.OUTPUTS) -> None:
        """Inputs from connected outputs, then outputs or the SOURCES among them, at one instant."""
        self.move(instance)
        self.set_inputs(instance)
        self.get(instance, group)

    def _has(self, instance: int, group: Group) -> bool:
        return group in self.plan.layout.groups[instance]
