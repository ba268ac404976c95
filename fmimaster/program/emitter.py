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
    fit_of,
    kinds_of,
    points_of_history,
    refuse_too_many_coefficients,
    sub_steps,
)
from fmimaster.program.hook import Hook, Hooks
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.control import Call, Mode, Repeat, Tick, Until, Update
from fmimaster.program.instructions.inputs import Fit, Move, Set
from fmimaster.program.instructions.outputs import (
    Correct,
    Derive,
    Forget,
    Get,
    Keep,
    Recall,
    Remember,
    Revert,
    Sample,
)
from fmimaster.program.instructions.steps import Align, Parallel, Restore, Save, Step
from fmimaster.program.trace import Interval, Trace
from fmimaster.system.states import State

Since = tuple[int, ...]
"""Buffers with older outputs."""


class Emitter:
    """Writes the instructions of programs, numbers places and buffers, and tracks the present interval.

    Parameters
    ----------
    plan : Plan
    history : int
        Number of accepted points in the history.
    given : (instance, name of an input) → Polynomial
        Polynomials of the user for single inputs, instead of the polynomial of the algorithm.

    Attributes
    ----------
    wanted_history : int
        Number of points of the history that the written polynomials need.
    begin_buffer : int or None
        Buffer of the outputs at the start of the interval of the last program, if it keeps them.
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
    between : list of int
        Buffers of outputs inside the interval that an accepted attempt leaves to the history, the earliest first.
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
        hooks: Hooks | None = None,
        derivatives: Mapping[int, int] | None = None,
        measures: Sequence[Hook] = (),
        given: Mapping[tuple[int, str], Polynomial] | None = None,
    ) -> None:
        self.plan = plan
        self.given = {} if given is None else given
        self.used: set[tuple[int, str]] = set()
        self.history = history
        self.wanted_history = 0
        self.n_places = 0
        self.n_buffers = 0
        self.polynomial_inputs: set[int] = set()
        self.held: set[int] = set()
        self.corrected: set[int] = set()
        self.begin_buffer: int | None = None
        self._at_an_event = False
        self.hooks = Hooks() if hooks is None else hooks
        self.measures = measures
        self.derivatives = {} if derivatives is None else derivatives
        self.between: list[int] = []
        self._start()

    def _start(self) -> None:
        """Start a program, over the whole interval."""
        self._instructions: list[Instruction | None] = []
        self._trace = Trace()
        self._intervals: list[Interval] = []
        self._saved: dict[int, int] = {}
        self._wants_begin = False
        self.means: set[int] = set()
        self._n_between = 0
        self._enter(0.0, 1.0)

    def program(self, name: str) -> Program:
        """The program with all instructions since the last call."""
        written = tuple(i for i in self._instructions if i is not None)
        self.begin_buffer = self._trace.kept.get(self._intervals[0].outputs.number)
        self._start()
        return Program(name, written)

    # The interval

    @contextmanager
    def over(self, begin: float, end: float) -> Iterator[None]:
        """Use a part of the interval inside this context: fractions of the present one. Contexts can be nested."""
        outer = self._intervals[-1]
        length = outer.end - outer.begin
        self._enter(outer.begin + begin * length, outer.begin + end * length)
        yield
        self._intervals.pop()

    @property
    def end(self) -> float:
        """End of the present interval, as a fraction of the whole one."""
        return self._intervals[-1].end

    def _enter(self, begin: float, end: float) -> None:
        line = len(self._instructions)
        self._instructions.append(None)  # the place of a KEEP, if a polynomial needs it
        self._intervals.append(Interval(begin, end, line, self._trace.outputs()))

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

        def of(route: Route) -> Polynomial:
            kind = chosen(route)
            if kind.is_constant or takes(route.link.input):
                return kind
            return kind.mean_of(len(route.derivatives))

        n = sub_steps(self.plan, instance, kinds_of(self.plan, instance, chosen))
        for k in range(n - 1):
            with self.over(k / n, (k + 1) / n):
                self._give(instance, of)
                self.step(instance)
        with self.over((n - 1) / n, 1.0) if n > 1 else nullcontext():
            self._give(instance, of)

    def _give(self, instance: int, of: Callable[[Route], Polynomial], since: Since = ()) -> None:
        """Set the inputs of the instance: continuous ones by these polynomials, all others held."""
        if self._has(instance, Group.CONTINUOUS):
            kinds = kinds_of(self.plan, instance, of)
            if all(kind.is_hold for kind in kinds):
                self._write(Move(instance, Group.CONTINUOUS))
            else:
                self._fit(instance, kinds, since)
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
            Continuous inputs are constant, at their values at this fraction of the present interval; otherwise the FMU
            gets the polynomials.
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
        if self._has(instance, Group.DISCRETE) and not self.plan.instances[instance].event_mode:
            self._write(Move(instance, Group.DISCRETE))

    def _fit(self, instance: int, kinds: Sequence[Polynomial], since: Since) -> None:
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
        fit = fit_of(instance, kinds, interval.begin, interval.end, buffers)
        self.wanted_history = max(self.wanted_history, points_of_history(kinds, buffers))
        if not fit.is_constant:
            self.polynomial_inputs.add(instance)
        elif any(kind.mean for kind in kinds):
            self.means.add(instance)
            self.held.add(instance)
        self._write(fit)

    def move(self, instance: int) -> None:
        """Inputs of the instance in the store ← connected outputs, held."""
        if self._has(instance, Group.CONTINUOUS):
            if instance in self.derivatives and self._at_an_event:
                self._write(
                    Fit(instance, self._intervals[-1].begin, 1, self.derivatives[instance], ())
                )
            else:
                self._write(Move(instance, Group.CONTINUOUS))
        if self._has(instance, Group.DISCRETE):
            self._write(Move(instance, Group.DISCRETE))

    def give_parameters(self, instance: int) -> None:
        """Connected calculated parameters → parameters of the instance, which is in Initialization Mode."""
        if self._has(instance, Group.PARAMETERS):
            self._write(Move(instance, Group.PARAMETERS))
            self.set(instance, Group.PARAMETERS)

    def move_triggers(self, instance: int) -> None:
        """Triggers that connected clocks make active, and their payload."""
        if self._has(instance, Group.TRIGGERS):
            self._write(Move(instance, Group.TRIGGERS))

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
            self._write(Set(instance, group))

    def step(self, instance: int) -> None:
        """``DoStep`` to the end of the interval."""
        self._saved.pop(instance, None)
        end = self._intervals[-1].end
        self._write(Step(instance, end))

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
            self._write(Parallel(len(others)))
        for instance in others:
            self.step(instance)

    def get(self, instance: int, group: Group = Group.OUTPUTS) -> None:
        """Outputs of the FMU → store, or the SOURCES among them; nothing if none is used."""
        if self._has(instance, group):
            self._write(Get(instance, group))

    def correct(self, instances: Iterable[int]) -> None:
        """Correct outputs of these instances that depend directly on held inputs, as far as it can be done."""
        for chosen in passes(self.plan.corrections, instances, self.plan.links):
            for instance in chosen:
                self.corrected.add(instance)
                self._write(Correct(instance))

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
            self._write(Get(instance, Group.CLOCKS))

    def get_clocked(self, instance: int) -> None:
        """Output clocks that have become active, and clocked outputs whose clock is active → store."""
        if self._has(instance, Group.CLOCKED) or self._has(instance, Group.CLOCKS):
            self._write(Get(instance, Group.CLOCKED))

    def get_intervals(self, instance: int) -> None:
        """Changed intervals of clocks → store; nothing if the FMU tells none."""
        if self._has(instance, Group.INTERVALS):
            self._write(Get(instance, Group.INTERVALS))

    def set_intervals(self, instance: int) -> None:
        """Intervals that the user decides → clocks of the FMU, shifts that the FMU decides → store; in Initialization
        Mode."""
        clocks = (v.clock for v in self.plan.instances[instance].model.variables if v.clock)
        if any(c.is_periodic and (c.is_given or c.interval is None) for c in clocks):
            self._write(Set(instance, Group.INTERVALS))

    def align(self, instance: int, place: int) -> None:
        """Roll the instance back if it is past an early return."""
        self._write(Align(instance, place))

    # Events

    def update(self, instance: int) -> None:
        """``UpdateDiscreteStates``."""
        self._write(Update(instance))

    def tick(self, trigger: int) -> None:
        """Make a trigger active."""
        self._write(Tick(trigger))

    def call(self, hook: Hook) -> None:
        """Call a hook on the value store."""
        self._write(Call(self.hooks.number(hook)))

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
            self._write(Derive(instance, self.hooks.number(hook)))

    @contextmanager
    def at_an_event(self) -> Iterator[None]:
        """Context for Event Mode or Initialization Mode, in which discrete inputs can be set."""
        outer, self._at_an_event = self._at_an_event, True
        yield
        self._at_an_event = outer

    # Going back

    def save(self, instances: Iterable[int]) -> dict[int, int]:
        """Save the FMU states of these instances; returns instance → place, for :meth:`restore`."""
        instances = list(instances)
        for instance in instances:
            if instance not in self._saved:  # or it has not moved since
                self._write(Save(instance, self.n_places))
                self._saved[instance] = self.n_places
                self.n_places += 1
        return {instance: self._saved[instance] for instance in instances}

    def restore(self, places: dict[int, int]) -> None:
        """Restore FMU states that :meth:`save` has saved."""
        for instance, place in places.items():
            self._write(Restore(instance, place))
            self._saved[instance] = place

    def keep(self) -> int:
        """Keep all outputs in a buffer, whose number is returned; outputs that are kept already are not kept again."""
        outputs = self._trace.outputs()
        if outputs.number not in self._trace.kept:
            self._write(Keep(self.n_buffers))
            self.n_buffers += 1
        return self._trace.kept[outputs.number]

    def recall(self, buffer: int) -> None:
        """All outputs ← buffer."""
        self._write(Recall(buffer))

    @contextmanager
    def through_begin(self) -> Iterator[None]:
        """Context in which all polynomials also go through the outputs at the start of the interval."""
        outer, self._wants_begin = self._wants_begin, True
        yield
        self._wants_begin = outer

    @contextmanager
    def reverted(self, instances: Mapping[int, int]) -> Iterator[None]:
        """Context in which the outputs of these instances are those of a buffer: instance → buffer."""
        now = self.keep() if instances else 0
        for instance, buffer in instances.items():
            self.revert(instance, buffer)
        yield
        for instance in instances:
            self.revert(instance, now)

    def revert(self, instance: int, buffer: int) -> None:
        """Outputs of one instance, and when they were read ← buffer."""
        self._write(Revert(instance, buffer))

    def new_buffer(self) -> int:
        """Number of a buffer for :meth:`keep_in`."""
        self.n_buffers += 1
        return self.n_buffers - 1

    def keep_in(self, buffer: int) -> None:
        """Keep all outputs in a buffer, in place of what was kept there before."""
        self._write(Keep(buffer))

    def keep_between(self) -> None:
        """Keep all outputs as a point of the history between the start of the step and its end, once it is accepted.

        All variants of an algorithm that keep such points must keep equally many.
        """
        if self._n_between == len(self.between):
            self.between.append(self.new_buffer())
        self.keep_in(self.between[self._n_between])
        self._n_between += 1

    def keep_begin(self) -> int:
        """Keep the outputs at the start of the present interval, also if steps were written since; returns the
        buffer."""
        return self._begin(self._intervals[-1])

    def _begin(self, interval: Interval) -> int:
        """Buffer of the outputs at the start of an interval."""
        kept = self._trace.kept
        if interval.outputs.number not in kept:
            self._instructions[interval.line] = Keep(self.n_buffers)
            self._trace.hold(self.n_buffers, interval.outputs)
            self.n_buffers += 1
        return kept[interval.outputs.number]

    def keep_begins(self, instance: int) -> tuple[int, ...]:
        """Keep the outputs at the start of the present interval, and of those around it; returns the buffers.

        The start of an interval further out gives a polynomial a point before the present one, which would make it
        extrapolate. It is taken only if a source is ahead already, so that it must be interpolated.
        """
        sources = self.plan.sources[instance]
        buffers: dict[int, None] = {}
        for interval in reversed(self._intervals):
            buffers[self._begin(interval)] = None
            if not interval.outputs.are_ahead(sources, interval.begin):
                break
        return tuple(buffers)

    # History and results

    def remember(self, buffer: int | None = None) -> None:
        """The outputs, or those of a buffer, become the newest point of the history; nothing if there is none."""
        if self.history:
            self._write(Remember(buffer))

    def forget(self) -> None:
        """Remove all points before this instant from the history."""
        if self.history:
            self._write(Forget())

    def sample(self) -> None:
        """Record a row."""
        self._write(Sample())

    # Iterating

    @contextmanager
    def repeat(
        self, *, least: int, most: int, tolerance: float, bounded: bool = False
    ) -> Iterator[None]:
        """Repeat the instructions written inside until the outputs have converged; see UNTIL."""
        self._write(Repeat(least, most, bounded))
        self._saved = {}  # the next pass starts with other states
        yield
        self._write(Until(tolerance))

    def mode(self, instance: int, state: State) -> None:
        """Bring the instance to a state."""
        self._write(Mode(instance, state))

    def exchange(self, instance: int, group: Group = Group.OUTPUTS) -> None:
        """Inputs from connected outputs, then outputs or the SOURCES among them, at one instant."""
        self.move(instance)
        self.set_inputs(instance)
        self.get(instance, group)

    def _write(self, instruction: Instruction) -> None:
        self._instructions.append(instruction)
        instruction.effect(self._trace)

    def _has(self, instance: int, group: Group) -> bool:
        return group in self.plan.layout.groups[instance]
