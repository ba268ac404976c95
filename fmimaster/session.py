"""One run: instances, loop, recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter

import numpy as np

from fmimaster.causes import Event, Steps
from fmimaster.control.instant import Instant
from fmimaster.control.schedule import Schedule
from fmimaster.errors import ConvergenceError, Interrupted, SimulationError
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.preparation import Prepared
from fmimaster.results.csv import CsvWriter
from fmimaster.results.recorder import Recorder
from fmimaster.results.results import Results
from fmimaster.results.statistics import InstanceStatistics, Statistics
from fmimaster.run.choice import choose_executor
from fmimaster.run.executor import Executor, Experiment
from fmimaster.run.loop import Loop
from fmimaster.run.state import RunState
from fmimaster.run.stepper import OFTEN, Stepper
from fmimaster.run.timeline import Timeline
from fmimaster.settings import Settings

Progress = Callable[[float, float, float], None]
"""Called with start, present and stop time in s, some ten times a second."""


def silent(_start: float, _now: float, _stop: float) -> None:
    """No progress."""


class Session:
    """One run: instances, executor, loop, results."""

    def __init__(
        self,
        prepared: Prepared,
        loader: Loader,
        settings: Settings,
        writer: CsvWriter | None = None,
    ) -> None:
        self.prepared = prepared
        self.plan = plan = prepared.plan
        self.programs = prepared.programs
        schedule = prepared.schedule
        self.start, self.stop = schedule.instant(schedule.start), schedule.instant(schedule.stop)
        instances = [
            loader.instantiate(
                component,
                planned.name,
                InstanceOptions(
                    polynomial_inputs=i in self.programs.polynomial_inputs,
                    event_mode=planned.event_mode,
                    early_return=planned.event_mode and planned.may_return_early,
                ),
            )
            for i, (component, planned) in enumerate(
                zip(prepared.components, plan.instances, strict=True)
            )
        ]
        self.executor: Executor = choose_executor(plan, settings.backend)(
            plan,
            instances,
            Experiment(self.start.seconds, self.stop.seconds),
            n_threads=settings.threads,
            n_places=self.programs.n_places,
            n_buffers=self.programs.n_buffers,
            history=self.programs.history,
            hooks=self.programs.hooks,
        )
        self.recorder = _recorder(plan, settings, schedule, writer)
        rule, base = schedule.rule, schedule.base
        jumps = {schedule.instant(p): who for p, who in prepared.input_jumps.items()}
        timeline = Timeline.of((schedule.instant(p) for p in schedule.points), jumps)
        memory = rule.begin(base, base.ticks(schedule.start))
        self.state = RunState(self.start, timeline, memory)
        algorithm = settings.algorithm
        loop = Loop(
            plan,
            self.programs,
            self.executor,
            rule,
            base,
            self.state,
            settings.event_clock,
            algorithm.choose if len(self.programs.variants) > 1 else None,
        )
        self.stepper = Stepper(loop)
        self.stepper.events.prepare()
        self.seconds = 0.0

    def run(self, progress: Progress) -> Results:
        """From Instantiated to Terminated."""
        try:
            with self._recorded():
                if self.initialize():
                    self.advance(self.stop, progress)
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

    def initialize(self) -> bool:
        """Bring all instances to the start time; whether the run goes on, which an FMU can decline in Event Mode."""
        outcome = self.executor.run(
            self.programs.initialize, self.start.seconds, self.start.seconds
        )
        if outcome.stopped is not None:
            if not self.plan.initial_loops:
                raise self._endless_start(outcome.stopped.change)
            loops = "; ".join(
                ", ".join(f"{self.plan.instances[i].name}.{name}" for i, name in loop.variables)
                for loop in self.plan.initial_loops
            )
            raise ConvergenceError(
                f"The initial values of a loop do not converge: {loops}. After the last sweep of the fixed-point "
                f"iteration outputs still change by {outcome.stopped.change:.3g} (relative). Give better start values, "
                "or break the loop."
            )
        if outcome.terminate:
            return False
        self.stepper.begin()
        return True

    def _endless_start(self, change: float) -> SimulationError:
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
            or f"an FMU requests another update, or outputs still change by {change:.3g} (relative)"
        )
        return ConvergenceError(
            f"The event at the start, t = {self.start.seconds:.12g} s, does not end: {why}. Look for a discrete "
            "loop without delay, and check start values."
        )

    def advance(self, until: Instant, progress: Progress = silent) -> None:
        """Simulate until an instant is reached, or an FMU ends the run."""
        begin = perf_counter()
        try:
            for _ in self.stepper.advance(until):
                self.executor.rest()
                if self.executor.rows.room <= OFTEN:
                    self._hand_on()
                progress(self.start.seconds, self.state.time.seconds, self.stop.seconds)
        finally:
            self.executor.rest()
            self.seconds += perf_counter() - begin

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Pass on the remaining rows, also when a call failed: a NaN in them explains the failure better."""
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
        self.recorder.take(*self.executor.rows.take())

    def _terminate(self) -> None:
        self.executor.run(self.programs.terminate, self.state.time.seconds, self.state.time.seconds)

    def results(self) -> Results:
        """All rows so far, with the statistics of the run."""
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
            warnings=(
                *self.prepared.warnings,
                *(late.text(name) for name, late in self.state.event_log.late.items()),
            ),
            notes=self.prepared.notes,
            events=len(self.events),
        )
        rows = self.recorder.results(statistics)
        return replace(rows, events=self.events, steps=self.steps)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events so far."""
        return tuple(self.state.event_log.events)

    @property
    def steps(self) -> tuple[Steps, ...]:
        """The steps so far, with their causes."""
        return self.state.step_log.entries


def _recorder(
    plan: Plan,
    settings: Settings,
    schedule: Schedule,
    writer: CsvWriter | None,
) -> Recorder:
    return Recorder(
        plan.recorded,
        expected_rows=schedule.expected_rows(settings.output_interval),
        writer=writer,
        start=float(schedule.start),
        interval=settings.output_interval,
        allow_nan=settings.allow_nan,
    )
