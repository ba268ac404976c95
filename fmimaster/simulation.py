"""The front door: a system and how to simulate it, as one value that can be planned and run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import wraps
from numbers import Real
from pathlib import Path
from time import perf_counter
from typing import Any, ParamSpec, TextIO

import numpy as np

from fmimaster.algorithms import Algorithm, Jacobi, Programs, assemble
from fmimaster.algorithms.protocol import StepContext
from fmimaster.control.event_clock import Check, EventClock, Indicators, refuse_what_cannot_be_done
from fmimaster.control.schedule import Schedule, Time, make_schedule
from fmimaster.control.step_size import FixedStep, Ramp
from fmimaster.control.usual_step import usual_step
from fmimaster.errors import ConvergenceError, Interrupted, OptionError, SimulationError
from fmimaster.explanation import Explanation
from fmimaster.fmu.load import Loader
from fmimaster.input_file import attach_input_file
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import EventUse, Plan, Policy, make_plan
from fmimaster.program.instructions import Fit
from fmimaster.results.csv import CsvWriter
from fmimaster.results.facts import write_facts
from fmimaster.results.recorder import ColumnSource, Recorder
from fmimaster.results.results import InstanceStatistics, Results, Statistics
from fmimaster.run.choice import Backend, choose_executor
from fmimaster.run.executor import Executor, Experiment
from fmimaster.run.state import RunState, StepPrograms
from fmimaster.run.stepper import OFTEN, Stepper
from fmimaster.run.timeline import Timeline
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import Component, SystemDescription
from fmimaster.system.resolve import ResolvedSystem, resolve
from fmimaster.system.ssp import read_system

Progress = Callable[[float, float, float], None]
"""Called with start, present and stop time in s, some ten times a second."""


@dataclass(frozen=True)
class Simulation:
    """A system and how to simulate it.

    It is a value: it can be printed, compared, pickled, and run again and again.

    Parameters
    ----------
    system : SystemDescription, SystemBuilder or path
        A path to an FMU, an SSP archive, an SSD file, or a folder with one of them unpacked.
    algorithm : Algorithm
    start_time, stop_time : number or text, in s
        Where they are left out, the system's default experiment counts, then the FMUs'.
    step_size : FixedStep, Ramp, number or text, in s
        A text may be a fraction: ``"1/60"``. A number or text is a fixed step, or what an event clock is usually used with,
        see :func:`fmimaster.control.usual_step.usual_step`.
    event_clock : EventClock
        What says when a state event is near: LookAhead, Predictive, EarlyReturn, Locate. Without one, FMUs see to their
        events themselves.
    event_mode : bool
        Whether Event Mode of FMI 3.0 is used. If left out: where clocks are connected, or an event clock fires events.
    start_values : name → value
        ``"component.variable"``; for a single FMU the variable's name alone will do.
    input_file : path to a CSV file
        Its columns feed the open inputs of that name.
    output_variables : globs of names
        What to record; the outputs of all components if left out.
    output_interval : float, in s
        Record the first row at or after each multiple only, and the last one.
    tolerance : float
        What the FMUs are told; if left out, each FMU's own default.
    allow_lossy_conversions : bool
        Whether a connection may convert between types where a value can be lost.
    allow_nan : bool
        Whether outputs may be NaN.
    fmi_logging : bool
        Whether FMUs are asked to log all they can.
    backend : Backend
        The kernel in C or the interpreter in Python; they give the same bits.
    threads : int
        How many threads step instances at the same time, where the algorithm allows it and the executor is native; 0
        leaves it to a measurement. The results are the same.

    Examples
    --------
    >>> from fmimaster import Simulation, reference_path
    >>> simulation = Simulation(reference_path("fmi3/Dahlquist.fmu"), stop_time=1, step_size="1/10")
    >>> results = simulation.run()
    >>> round(float(results["x"][-1]), 6)
    0.367879
    """

    system: SystemDescription | SystemBuilder | str | os.PathLike[str]
    _: KW_ONLY
    algorithm: Algorithm = field(default_factory=Jacobi)
    start_time: Time | None = None
    stop_time: Time | None = None
    step_size: FixedStep | Ramp | Time | None = None
    event_clock: EventClock | None = None
    event_mode: bool | None = None
    start_values: Mapping[str, Any] = field(default_factory=dict)
    input_file: str | os.PathLike[str] | None = None
    output_variables: Sequence[str] = ()
    output_interval: float | None = None
    tolerance: float | None = None
    allow_lossy_conversions: bool = False
    allow_nan: bool = False
    fmi_logging: bool = False
    backend: Backend = Backend.FASTEST
    threads: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.system, SystemBuilder):
            object.__setattr__(self, "system", self.system.build())
        if not isinstance(self.system, SystemDescription | str | os.PathLike):
            raise OptionError(
                f"system: {self.system!r} is neither a path nor a system description. Give the path of an FMU or SSP, "
                "or what SystemBuilder.build() returns."
            )
        if isinstance(self.algorithm, type) or not hasattr(self.algorithm, "emit"):
            raise OptionError(
                f"algorithm: {self.algorithm!r} is not an algorithm. Give an object such as Jacobi() or GaussSeidel()."
            )
        if self.event_clock is not None and (
            isinstance(self.event_clock, type) or not hasattr(self.event_clock, "clip")
        ):
            raise OptionError(
                f"event_clock: {self.event_clock!r} is not an event clock. Give an object such as LookAhead() or "
                "Predictive()."
            )
        if not isinstance(self.backend, Backend):
            raise OptionError(f"backend: {self.backend!r}, expected one of {[*Backend]}.")
        if self.threads < 0:
            raise OptionError(f"threads: {self.threads}, expected 0 (automatic), 1 or more.")
        for name, value in (
            ("output_interval", self.output_interval),
            ("tolerance", self.tolerance),
        ):
            if value is not None and not (isinstance(value, Real) and value > 0):
                raise OptionError(f"{name}: {value!r}, expected a positive number.")
        if not isinstance(self.start_values, Mapping) or not all(
            isinstance(name, str) for name in self.start_values
        ):
            raise OptionError(
                f"start_values: {self.start_values!r}, expected a mapping of names to values."
            )
        if isinstance(self.output_variables, str) or not all(
            isinstance(glob, str) for glob in self.output_variables
        ):
            raise OptionError(
                f"output_variables: {self.output_variables!r}, expected a sequence of names or globs."
            )

    def prepare(self) -> Prepared:
        """Everything that is known before an FMU is instantiated: the plan, the programs, the times.

        Raises
        ------
        InputError, ProgramError
        """
        with Loader() as loader:
            return _prepare(self, loader)

    def run(
        self,
        progress: Progress | None = None,
        *,
        output_file: str | os.PathLike[str] | TextIO | None = None,
    ) -> Results:
        """Simulate.

        Parameters
        ----------
        progress
            Called now and then.
        output_file : path or text stream
            A CSV file to which the rows are written while the run goes on; they are not kept then, but the last block of
            them, so that a run of any length needs little memory. What is kept is each event, and each step that is not
            one of many alike: some hundred bytes for each.

        Raises
        ------
        InputError, ProgramError
            Before anything is simulated.
        SimulationError
            If the run cannot be ended; its ``results`` hold all rows until then.
        """
        with Loader(logging_on=self.fmi_logging) as loader:
            prepared = _prepare(self, loader)
            if output_file is None:
                return _Run(prepared, loader, self).run(progress or _silent)
            with CsvWriter(output_file) as writer:
                run = _Run(prepared, loader, self, writer)
                try:
                    return run.run(progress or _silent)
                finally:
                    if isinstance(output_file, str | os.PathLike):
                        told = run.explanation
                        write_facts(output_file, told.events, told.steps)


_P = ParamSpec("_P")


def _running(make: Callable[_P, Simulation]) -> Callable[_P, Results]:
    @wraps(make, updated=())  # help() and editors show the settings
    def simulate(*args: _P.args, **kwargs: _P.kwargs) -> Results:
        """Simulate a system: ``Simulation(system, ...).run()`` with the settings of :class:`Simulation`.

        Examples
        --------
        >>> from fmimaster import reference_path, simulate
        >>> results = simulate(reference_path("systems/two-mass-b1-mixed.ssp"), stop_time=0.1)
        >>> results.names[:3]
        ('upper.x', 'upper.v', 'upper.a')
        """
        return make(*args, **kwargs).run()

    return simulate


simulate = _running(Simulation)


@dataclass(frozen=True)
class Prepared:
    """A simulation before any FMU is instantiated."""

    description: SystemDescription
    plan: Plan
    programs: Programs
    schedule: Schedule
    components: tuple[Component, ...]
    """What each instance of the plan is made from."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided, where it was not said."""
        return (*self.plan.notes, *self.schedule.notes)


def _prepare(simulation: Simulation, loader: Loader) -> Prepared:
    system = simulation.system
    assert not isinstance(system, SystemBuilder)  # it was built when the simulation was made
    description = system if isinstance(system, SystemDescription) else read_system(Path(system))
    components = dict(description.components())
    models = {name: loader.model(component) for name, component in components.items()}
    resolved = resolve(
        description,
        models,
        overrides=simulation.start_values,
        allow_lossy_conversions=simulation.allow_lossy_conversions,
    )
    made_from = tuple(components.values())
    jumps: Sequence[float] = ()
    if simulation.input_file is not None:
        path, bare = Path(simulation.input_file), description.is_single_fmu
        resolved, table, jumps = attach_input_file(path, resolved, loader, bare_names=bare)
        made_from += (table,)
    plan, programs = _planned(simulation, resolved, description.is_single_fmu)
    schedule = make_schedule(
        models,
        description.experiment,
        start_time=simulation.start_time,
        stop_time=simulation.stop_time,
        step_size=simulation.step_size,
        usual_step=usual_step(simulation.event_clock),
        points=jumps,
    )
    return Prepared(description, plan, programs, schedule, made_from)


def _planned(
    simulation: Simulation, resolved: ResolvedSystem, bare_names: bool
) -> tuple[Plan, Programs]:
    """The plan and its programs. They are made twice if inputs are polynomials: the FMUs are told so by parameters."""
    clock = simulation.event_clock
    use = EventUse(
        watched=clock is not None,
        fires=clock is not None and clock.fires,
        policy=Policy.EXECUTE if clock is None else clock.policy,
        early_return=clock.policy is Policy.ANNOUNCE if clock is not None and clock.fires else None,
        event_mode=simulation.event_mode,
    )
    fitted: frozenset[int] = frozenset()
    _refuse_unfit(simulation.algorithm, clock)
    if clock is not None and hasattr(simulation.algorithm, "policies"):
        whole = make_plan(resolved, use=use)
        tuned = hasattr(simulation.algorithm, "alternatives")
        policies = simulation.algorithm.policies(whole)
        use = replace(use, policy=policies, early_return=True, tuned=tuned)
    while True:
        plan = make_plan(
            resolved,
            outputs=simulation.output_variables,
            bare_names=bare_names,
            use=use,
            fitted=fitted,
        )
        if clock is not None:
            _refuse_fixed_steps(plan, clock)
            refuse_what_cannot_be_done(plan, clock)
        if clock is not None and clock.fires:
            _refuse_without_event_mode(plan)
        programs = assemble(
            plan,
            simulation.algorithm,
            history=0 if clock is None else clock.history,
            undoes=clock is not None and clock.locates > 0,
        )
        found = _fitted(programs)
        if found == fitted or not any(plan.instances[i].model.input_polynomials for i in found):
            return plan, programs
        fitted = found


def _refuse_fixed_steps(plan: Plan, clock: EventClock) -> None:
    """Raise if an FMU cannot take the steps of different sizes that an event clock asks for."""
    for planned in plan.instances:
        if not planned.model.capabilities.can_handle_variable_communication_step_size:
            raise OptionError(
                f"The event clock {type(clock).__name__} asks for steps of different sizes, but '{planned.name}' cannot "
                "vary its step size (canHandleVariableCommunicationStepSize is false). Leave the event clock out."
            )


def _refuse_without_event_mode(plan: Plan) -> None:
    """Raise if an event is to be fired by a clock, which needs Event Mode, and the user has declined that."""
    for event in plan.events:
        for member in event.members:
            instance = plan.instances[member.instance]
            has_it = instance.model.capabilities.has_event_mode
            if member.trigger is not None and has_it and not instance.event_mode:
                raise OptionError(
                    f"event_mode is False (--no-event-mode), but the event '{event.name}' of '{instance.name}' can be "
                    "fired in Event Mode only. Leave it out, or use LookAhead (look-ahead), with which FMUs execute their "
                    "events themselves."
                )


def _refuse_unfit(algorithm: Algorithm, clock: EventClock | None) -> None:
    """Raise if an algorithm and an event clock do not go together."""
    name, needs_check = type(algorithm).__name__, hasattr(algorithm, "policies")
    if needs_check and not isinstance(clock, Check):
        raise OptionError(
            f"{name} lets an FMU stop at its events, and needs the event clock Check, which fires them. Give it: "
            "event_clock=Check() (--event-clock check)."
        )
    if isinstance(clock, Check) and not needs_check:
        raise OptionError(
            f"The event clock Check is for algorithms in which one FMU finds events for the others, not for {name}. Use "
            "Sequential() or AutomaticSequence() (--algorithm sequential), or the event clock Predictive()."
        )


def _fitted(programs: Programs, *, ever: bool = False) -> frozenset[int]:
    """Instances that are given polynomials: from the first step on, or ever."""
    ways = programs.ways if ever else programs.ways[:1]
    instructions = [i for way in ways for i in way.attempt.instructions]
    return frozenset(f.instance for f in instructions if isinstance(f, Fit))


def _asked(programs: Programs) -> Callable[[Indicators, float, int], int] | None:
    """What the loop asks before each step, if there are several ways."""
    choose = programs.choose
    if choose is None:
        return None
    return lambda indicators, size, way: choose(StepContext(indicators, size, way))


class _Run:
    """One run: instances, executor, loop, results."""

    def __init__(
        self,
        prepared: Prepared,
        loader: Loader,
        settings: Simulation,
        writer: CsvWriter | None = None,
    ) -> None:
        self.prepared = prepared
        self.plan = plan = prepared.plan
        self.programs = prepared.programs
        schedule = prepared.schedule
        self.start, self.stop = schedule.instant(schedule.start), schedule.instant(schedule.stop)
        tolerance = settings.tolerance
        if tolerance is None:
            tolerance = prepared.description.experiment.tolerance
        fitted = _fitted(self.programs, ever=True)
        instances = [
            loader.instantiate(
                component,
                planned.name,
                interpolated=i in fitted,
                event_mode=planned.event_mode,
                early_return=planned.event_mode and planned.may_return_early,
            )
            for i, (component, planned) in enumerate(
                zip(prepared.components, plan.instances, strict=True)
            )
        ]
        self.executor: Executor = choose_executor(plan, settings.backend)(
            plan,
            instances,
            Experiment(self.start.seconds, self.stop.seconds, tolerance),
            n_threads=settings.threads,
            n_places=self.programs.n_places,
            n_buffers=self.programs.n_buffers,
            history=self.programs.history,
            hooks=self.programs.hooks,
        )
        columns = _columns(plan)
        self.recorder = _recorder(columns, settings, schedule, writer)
        timeline = Timeline.of(schedule.instant(p) for p in schedule.points)
        self.state = RunState(self.start, timeline)
        self.stepper = Stepper(
            plan,
            StepPrograms(
                self.programs.ways,
                self.programs.commit,
                self.programs.restart,
                self.programs.renew,
                _asked(self.programs),
            ),
            self.executor,
            schedule.rule,
            self.state,
            settings.event_clock,
            self.programs.history,
        )
        self.stepper.event_handler.prepare()
        self.explanation = Explanation(
            plan, columns, self.executor.rows, self.state.event_log, self.state.step_log
        )
        self.seconds = 0.0

    def run(self, progress: Progress) -> Results:
        """From Instantiated to Terminated."""
        try:
            with self._recorded():
                if self._initialize():
                    self._loop(progress)
            self._terminate()
        except SimulationError as error:
            error.results = self.results()
            raise
        except KeyboardInterrupt:
            self._hand_on()
            rows = self.results()
            time = float(rows.time[-1]) if len(rows) else self.start.seconds
            interrupted = Interrupted(f"Interrupted at t = {time:.12g} s.", time=time)
            interrupted.results = rows
            raise interrupted from None
        return self.results()

    def _initialize(self) -> bool:
        """Bring all instances to the start; whether the run goes on, which an FMU can decline in Event Mode."""
        outcome = self.executor.run(
            self.programs.initialize, self.start.seconds, self.start.seconds
        )
        if outcome.stopped is not None:
            if not self.plan.initial_loops:
                raise self._restless(outcome.stopped.change)
            loops = "; ".join(
                ", ".join(f"{self.plan.instances[i].name}.{name}" for i, name in loop.variables)
                for loop in self.plan.initial_loops
            )
            raise ConvergenceError(
                f"The initial values of a loop do not come to rest: {loops}. After the last sweep of the fixed-point "
                f"iteration outputs still change by {outcome.stopped.change:.3g} (relative). Give better start values, "
                "or break the loop."
            )
        return not outcome.terminate

    def _restless(self, change: float) -> SimulationError:
        """The error for updates in Event Mode that do not end before the first step."""
        self.stepper.indicators.check_finite(self.start.seconds)
        nan = [
            f"'{self.plan.instances[i].name}.{name}' is NaN"
            for (i, group, name), (kind, slot) in self.plan.layout.slots.items()
            if group is Group.OUTPUTS
            and kind.is_float
            and np.isnan(self.executor.store.values[kind][slot]).any()
        ]
        why = (
            "; ".join(nan)
            or f"an FMU wants another update, or outputs still change by {change:.3g} (relative)"
        )
        return ConvergenceError(
            f"The event at the start, t = {self.start.seconds:.12g} s, does not come to an end: {why}. Look for a discrete "
            "loop without delay, and check start values."
        )

    def _loop(self, progress: Progress) -> None:
        begin = perf_counter()
        try:
            for _ in self.stepper.advance(self.stop):
                self.executor.rest()
                self.explanation.note()
                if self.executor.rows.room <= OFTEN:
                    self._hand_on()
                progress(self.start.seconds, self.state.time.seconds, self.stop.seconds)
        finally:
            self.executor.rest()
            self.seconds = perf_counter() - begin

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Hand on the rows that are left, also when a call failed: a NaN in them explains the failure better."""
        try:
            yield
        except SimulationError as error:
            try:
                self._hand_on()
            except SimulationError as cause:
                raise cause from error
            raise
        self._hand_on()
        self.recorder.finish()

    def _hand_on(self) -> None:
        self.explanation.before_handing_on()
        self.recorder.take(*self.executor.rows.take())

    def _terminate(self) -> None:
        self.executor.run(self.programs.terminate, self.state.time.seconds, self.state.time.seconds)

    def results(self) -> Results:
        """All rows so far, with what they have cost."""
        steps, attempts = self.state.steps, self.state.attempts
        statistics = Statistics(
            steps=steps,
            attempts=attempts,
            rejections=attempts - steps,
            seconds=self.seconds,
            rows=self.recorder.rows,
            instances=tuple(
                InstanceStatistics(planned.name, int(calls), seconds, int(restores), int(events))
                for planned, seconds, calls, restores, events in zip(
                    self.plan.instances, self.executor.seconds, *self.executor.calls, strict=True
                )
            ),
            warnings=tuple(
                late.text(name) for name, late in self.stepper.event_handler.late.items()
            ),
            notes=self.prepared.notes,
            events=len(self.explanation.events),
        )
        rows = self.recorder.results(statistics)
        told = self.explanation
        return replace(rows, events=tuple(told.events), steps=tuple(told.steps))


def _columns(plan: Plan) -> list[ColumnSource]:
    """Where the recorded variables lie in the blocks of rows, as the executor fills them."""
    columns, filled = [], dict.fromkeys((c.variable.type for c in plan.recorded), 0)
    for column in plan.recorded:
        variable = column.variable
        begin = filled[variable.type]
        filled[variable.type] = begin + variable.size
        slot = slice(begin, begin + variable.size)
        unit = variable.unit.name if variable.unit else ""
        columns.append(ColumnSource(column.name, variable.type, slot, variable.shape, unit))
    return columns


def _recorder(
    columns: Sequence[ColumnSource],
    settings: Simulation,
    schedule: Schedule,
    writer: CsvWriter | None,
) -> Recorder:
    return Recorder(
        columns,
        expected_rows=schedule.expected_rows(settings.output_interval),
        writer=writer,
        start=float(schedule.start),
        interval=settings.output_interval,
        allow_nan=settings.allow_nan,
    )


def _silent(_start: float, _now: float, _stop: float) -> None:
    """No progress."""
