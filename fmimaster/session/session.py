"""One run: instances, loop, recorder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from fmimaster.base.collector import left_for_later
from fmimaster.base.errors import SimulationError
from fmimaster.base.files import given_path
from fmimaster.configure.settings import Settings
from fmimaster.fmu.load import Loader
from fmimaster.fmu.process_state import ProcessState
from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Instant
from fmimaster.prepare.prepared import Prepared, run_metadata
from fmimaster.prepare.structures import Structures
from fmimaster.program.signals import marks
from fmimaster.record.causes import Event, Steps
from fmimaster.results.facts_writer import FactsWriter
from fmimaster.results.results import Results
from fmimaster.results.row_writer import RowWriter
from fmimaster.run.choice import choose_executor
from fmimaster.run.executor import Executor, InitialTimes
from fmimaster.run.loop import Loop
from fmimaster.run.stepper import Stepper
from fmimaster.run.ways import OFTEN
from fmimaster.session.instances import (
    InstanceMaker,
    first_state,
    initialize,
    intermediate_outputs,
    intermediate_tables,
    terminate_others,
    words_for_fmus,
)
from fmimaster.session.keepers import FactKeeper, RowKeeper, recorder_of
from fmimaster.session.run_log import log_begin
from fmimaster.session.run_statistics import (
    EarlierStructures,
    end_metadata,
    methods,
    run_statistics,
    warnings_of_run,
    with_passed_events,
)
from fmimaster.session.work_thread import RunStopped, StartsAnew, StopRequest

if TYPE_CHECKING:
    from fmimaster.session.checkpoints import Checkpoints

log = logging.getLogger("fmimaster")


class Session:
    """One run: instances, executor, loop, results.

    All methods belong to the thread that calls FMUs, except those documented for any thread.

    Parameters
    ----------
    writer : RowWriter or None
        Writer for rows during the run.
    facts : FactsWriter or None
        Writer for events and steps during the run.
    stop_request : StopRequest
        Request by which another thread can end the run.
    process : ProcessState
        State of the process that is restored if an FMU changes it.
    checkpoints : Checkpoints or None
        Writes checkpoints, or continues from one.
    structures : Structures or None
        Of a system whose structure changes during the run.
    may_start_anew : bool
        Whether the run can be prepared again, if a measurement at the start shows that the plan is wrong.
    """

    def __init__(
        self,
        prepared: Prepared,
        loader: Loader,
        settings: Settings,
        writer: RowWriter | None = None,
        *,
        facts: FactsWriter | None = None,
        stop_request: StopRequest | None = None,
        process: ProcessState | None = None,
        checkpoints: Checkpoints | None = None,
        structures: Structures | None = None,
        may_start_anew: bool = False,
    ) -> None:
        self.may_start_anew = may_start_anew
        self.shown_at_start: object = None
        begun = perf_counter()
        self.prepared = prepared
        first = prepared if structures is None else structures.prepared[0]
        self._metadata = run_metadata(first, settings)
        self.plan, self.programs = prepared.plan, prepared.programs
        self.settings = settings
        self._methods: tuple[str, ...] | None = None
        self._checkpoints = checkpoints
        final = settings.final_fmu_state
        # FMUs may change the working directory
        self._final_states = None if final is None else given_path(final).absolute()
        schedule = prepared.schedule
        self.start, self.stop = schedule.instant(schedule.start), schedule.instant(schedule.stop)
        executor = choose_executor(self.plan, settings.used.backend)
        log_begin(prepared, settings, self._metadata, executor)
        self._earlier: list[Executor] = []
        """Of structures before the present one: instances have borrowed their arrays."""
        self.earlier = EarlierStructures()
        self._maker = InstanceMaker(
            loader,
            settings,
            executor,
            intermediate_outputs(prepared, settings),
            process or ProcessState(),
            stop_request or StopRequest(),
            checkpoints is not None,
            structures,
        )
        self.noted = self._maker.noted
        self.instances = self._maker.make(prepared)
        self.executor: Executor = self._make_executor(self.start.seconds)
        self.when_complete: Callable[[], None] = lambda: None
        """Called when all rows were recorded, before FMUs are terminated."""
        self.steps_over_changes: Callable[[Instant], Iterator[None]] | None = None
        """Steps as :meth:`Stepper.advance` does, of a system whose structure changes during the run."""
        columns = self.plan.recorded if structures is None else structures.columns
        self._recorder = recorder_of(columns, settings, prepared, writer)
        self.state = first_state(prepared, settings)
        self.stepper = self._make_stepper()
        self._begin_run(begun, writer, facts, structures)
        if checkpoints is not None:
            checkpoints.attach(self)

    def begin_anew(self) -> None:
        """Begin another run by the same instances, with its own rows, events and steps."""
        begun = perf_counter()
        # the parts of the loop have this object
        vars(self.state).update(vars(first_state(self.prepared, self.settings)))
        self.stepper.begin_anew()
        self._recorder.begin_anew()
        self._begin_run(begun)

    def _begin_run(
        self,
        begun: float,
        writer: RowWriter | None = None,
        facts: FactsWriter | None = None,
        structures: Structures | None = None,
    ) -> None:
        self._made, self.start_seconds = begun, 0.0
        """Wall time in s: when it began, and from the first instance to the first step."""
        self.is_complete = False
        """Whether all rows were recorded, and only the FMUs are still to be terminated and freed."""
        self.rows = RowKeeper(self.executor.rows, self._recorder)
        if structures is not None:
            self.rows.arrange = structures.arrange(self.prepared)
        self.rows.lend()
        self.facts = FactKeeper(self.state, facts, writer)
        for hook in self.programs.hooks:
            hook.begin_anew()
        for measured in self.programs.reactions:
            measured.begin_anew()
        self._seconds = 0.0
        """Wall time in s of the loop, without the time since ``_begun``."""
        self._begun: float | None = None

    def _make_executor(self, start: float) -> Executor:
        """The executor of the present plan; instances that are not initialized yet begin at ``start``, in s."""
        settings, programs = self.settings, self.programs
        with left_for_later():
            executor = self._maker.executor(
                self.plan,
                self.instances,
                InitialTimes(start, self.stop.seconds),
                n_threads=1 if settings.logs_calls else settings.threads,
                n_places=programs.n_places,
                n_buffers=programs.n_buffers,
                history=programs.history,
                hooks=programs.hooks,
            )
        for i, mark in marks(self.plan, executor.store).items():
            self.instances[i].mark_dropped = mark
        return executor

    def _make_stepper(self) -> Stepper:
        """The loop over time of the present plan."""
        schedule, settings = self.prepared.schedule, self.settings
        loop = Loop(
            self.plan,
            self.programs,
            self.executor,
            schedule.rule,
            schedule.base,
            self.state,
            settings.clock_used,
            settings.algorithm_used.choose if self.programs.chooses else None,
        )
        stepper = Stepper(loop)
        stepper.events.prepare()
        return stepper

    def run(self, lead: Callable[[Session], None] | None = None) -> Results:
        """From Instantiated to Terminated.

        Parameters
        ----------
        lead
            Advances the session after its initialization, and returns the end time of the run; default: the stop time.
        """
        try:
            with self._recorded():
                goes_on = self.initialize()
                if self._checkpoints is not None:
                    goes_on = self._checkpoints.begin(goes_on)
                    self._seconds = self._checkpoints.earlier_seconds
                self._put_back()
                self._maker.stop_request.heed()
                if lead is not None:
                    lead(self)
                elif goes_on:
                    self.advance(self.stop)
                if self._checkpoints is not None:
                    self._checkpoints.take()
            if self._final_states is not None:
                # few runs keep FMU states
                from fmimaster.session.fmu_states import remembered, write_states

                memory = remembered(self.plan, self.executor, self.state.calendar)
                write_states(self._final_states, self.prepared, self.instances, self.time, memory)
            self.when_complete()
            self.is_complete = True
            self._terminate()
        except (SimulationError, RunStopped, StartsAnew, KeyboardInterrupt) as error:
            terminate_others(self.instances, self.executor.registers.initialized, error)
            if isinstance(error, SimulationError):
                error.results = self.results()
            raise
        finally:
            self._put_back()
        return self.results()

    def initialize(self) -> bool:
        """Initialize all instances; returns whether the run continues, because an FMU can end it in Event Mode. StartsAnew
        is raised if dependencies are not as the plan has them, and the run can be prepared again."""
        held = self.rows.is_held
        # the first row is another one if the run starts anew
        self.rows.is_held = held or (self.may_start_anew and bool(self.programs.reactions))
        try:
            # those of a checkpoint follow otherwise
            return initialize(self, None if self._is_resumed else self.settings.initial_fmu_state)
        finally:
            self.rows.is_held = held

    def advance(self, until: Instant) -> None:
        """Simulate until an instant is reached, or an FMU ends the run."""
        if self.programs.pace is not None:
            self.programs.pace.begin_at(self.state.time.seconds)
        self._begun = perf_counter()
        self.start_seconds = self.start_seconds or self._begun - self._made
        try:
            for _ in (self.steps_over_changes or self.stepper.advance)(until):
                if self.executor.rows.room <= OFTEN or self.rows.error is not None:
                    self.rows.hand_on()
                self.facts.hand_on()
                if self._checkpoints is not None:
                    self._checkpoints.look(is_last=self._maker.stop_request.is_made)
                if self.state.asked:
                    self.state.asked = False
                    self._maker.stop_request.heed()
                    self._put_back()
        finally:
            self._seconds, self._begun = self.seconds, None

    def take_structure(self, prepared: Prepared, names: Collection[str]) -> None:
        """Go on with another structure: instances that exist in both stay as they are, others are made.

        Parameters
        ----------
        names
            Of the instances that exist and stay.
        """
        self.earlier.add(self.prepared, self.instances, self.executor, names)
        known = {
            planned.name: instance
            for planned, instance in zip(self.plan.instances, self.instances, strict=True)
            if planned.name in names
        }
        if prepared.programs.pace is not None and self.programs.pace is not None:
            prepared.programs.pace.go_on_from(self.programs.pace)
        self.prepared, self.plan, self.programs = prepared, prepared.plan, prepared.programs
        self._methods = None
        self.instances = self._maker.make(prepared, known)
        self._earlier.append(self.executor)
        self.executor = self._make_executor(self.state.time.seconds)
        self.stepper = self._make_stepper()

    def pause_at(self, until: Instant) -> None:
        """Simulate until an instant after which the run continues, or until an FMU ends the run."""
        self.state.pauses = until.seconds < self.stop.seconds
        self.advance(until)
        self._look_up()

    def give(self, instances: frozenset[int], set_values: Callable[[int], None]) -> None:
        """Set values of the user in instances; see :meth:`Stepper.give`."""
        self.stepper.give(instances, set_values)
        self._look_up()

    def _look_up(self) -> None:
        if self.rows.error is not None or self.executor.rows.room <= OFTEN:
            self.rows.hand_on()
        self.facts.hand_on()
        self._put_back()

    @property
    def has_other_states(self) -> bool:
        """Whether the FMUs have begun with states of a file, not with their start values."""
        return self._is_resumed or self.settings.initial_fmu_state is not None

    @property
    def _is_resumed(self) -> bool:
        return self._checkpoints is not None and self._checkpoints.is_resumed

    @property
    def has_ended(self) -> bool:
        """Whether the run has reached the stop time, or an FMU has ended it."""
        stop, size = self.stop.seconds, float(self.prepared.schedule.rule.exact_size)
        return self.stepper.has_ended or self.state.time.seconds >= stop - rounding(stop, size)

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Pass on the remaining rows, also after a failed call: a NaN in them explains the failure better."""
        try:
            yield
        except SimulationError as error:
            try:
                self._hand_on_last()
            except SimulationError as cause:
                if cause is not error:
                    raise cause from error
            raise
        except (RunStopped, KeyboardInterrupt):
            self._hand_on_last()
            raise
        self._hand_on_last()

    def _hand_on_last(self) -> None:
        """Pass on the last rows; this is part of the time of the loop."""
        begun = perf_counter()
        try:
            self.rows.hand_on()
        finally:
            self.rows.finish()
            self._seconds += perf_counter() - begun

    def _terminate(self) -> None:
        self.executor.run(self.programs.terminate, self.state.time.seconds, self.state.time.seconds)

    def _put_back(self) -> None:
        """Restore what FMUs have changed in the process."""
        self._maker.process.put_back(words_for_fmus(self.plan))

    # For any thread

    def ask(self) -> None:
        """Let the loop handle requests after the present step."""
        self.state.asked = True
        self.executor.ask()
        if self._maker.stop_request.is_made and self.programs.pace is not None:
            self.programs.pace.stop_waiting()

    @property
    def seconds(self) -> float:
        """Wall time in s of the loop so far."""
        begun = self._begun
        return self._seconds + (0.0 if begun is None else perf_counter() - begun)

    @property
    def time(self) -> float:
        """The time in s that the run has reached."""
        return max(self.state.time.seconds, min(self.executor.reached, self.stop.seconds))

    def results(self) -> Results:
        """All rows so far, with the statistics of the run."""
        statistics = run_statistics(self)
        return self.rows.recorder.results(
            statistics,
            self.facts.events,
            self.facts.steps(self.executor.reached),
            activations=self.state.activation_log.entries(self.prepared.schedule.base.resolution),
            intermediate=intermediate_tables(self.plan, self._maker.intermediate),
            metadata={**self._metadata, "end_time": self.time, **end_metadata(statistics)},
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """How it is simulated, in sentences."""
        if self._methods is None:
            self._methods = tuple(methods(self.prepared, self.settings))
        return self._methods

    def warnings(self) -> tuple[str, ...]:
        """What the run has shown so far: reasons for a loss of accuracy of its results."""
        return warnings_of_run(self)

    @property
    def accuracy_warnings(self) -> tuple[str, ...]:
        """Reasons for a loss of accuracy of the results so far."""
        prepared = with_passed_events(self, self.prepared.accuracy_warnings)
        found = (*self.earlier.accuracy_warnings, *prepared, *self.warnings())
        return tuple(dict.fromkeys(found))

    @property
    def new_facts(self) -> tuple[Sequence[Event], Sequence[Steps]]:
        """Events and steps that were not written during the run."""
        new_steps = self.facts.new_steps(self.executor.reached)
        return tuple(self.state.event_log.events), new_steps
