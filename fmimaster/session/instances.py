"""The instances of a run: where they are, what is read inside of their steps, how they are initialized and terminated."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart import shared_run
from fmimaster.apart.shared_run import Called
from fmimaster.base.data import dataclass
from fmimaster.base.errors import CallError, ConvergenceError, OptionError, SimulationError
from fmimaster.base.files import decoding, given_path
from fmimaster.configure.settings import Settings
from fmimaster.fmu.fault_policy import Stop
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.intermediate import IntermediateOutputs, readable_inside
from fmimaster.fmu.load import Loader
from fmimaster.fmu.process_state import ProcessState
from fmimaster.instants.calendar import Calendar
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.variables import Recorded
from fmimaster.prepare.prepared import Prepared
from fmimaster.prepare.structures import Structures
from fmimaster.results.table import Table
from fmimaster.run.choice import ExecutorType
from fmimaster.run.failures import check_indicators_are_finite
from fmimaster.run.loop import RunState, Timeline
from fmimaster.run.planned_events import last_row
from fmimaster.session.work_thread import StartsAnew, StopRequest
from fmimaster.system.clocks import exact
from fmimaster.system.declarations import Interface

if TYPE_CHECKING:
    from fmimaster.fmu.journaled import Journaled
    from fmimaster.session.run_statistics import SessionParts

log = logging.getLogger("fmimaster")


@dataclass(frozen=True)
class InstanceMaker:
    """Makes the instances of a run, of one structure of the system after the other.

    Parameters
    ----------
    intermediate
        Instance → its outputs that are read inside of its steps.
    process : ProcessState
        Changes of the process by the loading of an FMU are undone.
    """

    loader: Loader
    settings: Settings
    executor: ExecutorType
    intermediate: Mapping[int, IntermediateOutputs]
    process: ProcessState
    stop_request: StopRequest
    has_checkpoints: bool = False
    structures: Structures | None = None
    noted: dict[int, Journaled] = field(default_factory=dict)
    """Number → those of the instances whose calls are noted, since a checkpoint cannot have their states."""

    def make(
        self, prepared: Prepared, known: Mapping[str, Instance] = MappingProxyType({})
    ) -> list[Instance]:
        """All instances, with those that are known by name."""
        _name_instances(prepared)
        instances, on_fault = list[Instance](), self.settings.used.on_fault
        for i, planned in enumerate(prepared.plan.instances):
            if planned.name in known:
                instances.append(known[planned.name])
                continue
            noted = self._notes_calls(prepared, i)
            make = partial(self.instance, prepared, i, self._options(prepared, i, noted))
            around = on_fault.around if planned.name in prepared.isolated else Stop().around
            try:
                instance = around(make)
                if noted:
                    from fmimaster.fmu.journaled import Journaled  # only checkpoints need it

                    instance = self.noted[i] = Journaled(instance, serializes=False)
                instances.append(instance)
            finally:
                self.process.put_back(f"'{planned.name}'")
            self.stop_request.heed()
        return instances

    def _notes_calls(self, prepared: Prepared, i: int) -> bool:
        """Whether the calls of an instance are noted for checkpoints, because its state, or the memory of its solver,
        cannot be written."""
        planned = prepared.plan.instances[i]
        solver = prepared.solvers.get(planned.name)
        remembers = solver is not None and solver.remembers
        can_be_written = planned.model.capabilities.can_serialize_fmu_state and not remembers
        # calls cannot be repeated over changes of the structure
        return self.has_checkpoints and self.structures is None and not can_be_written

    def _options(self, prepared: Prepared, i: int, noted: bool) -> InstanceOptions:
        planned, structures = prepared.plan.instances[i], self.structures
        polynomials = frozenset() if structures is None else structures.polynomial_inputs
        follows = i in prepared.programs.polynomial_inputs or planned.name in polynomials
        return InstanceOptions(
            polynomial_inputs=follows,
            event_mode=planned.event_mode,
            early_return=planned.event_mode and planned.may_return_early,
            update_callback=self.executor.update_callback()
            if (follows or i in self.intermediate) and not noted
            else None,
            partition_callbacks=self.executor.partition_callbacks()
            if planned.model.interface is Interface.SCHEDULED_EXECUTION
            else None,
            intermediate_outputs=self.intermediate.get(i),
            solver=prepared.solvers.get(planned.name),
        )

    def instance(self, prepared: Prepared, i: int, options: InstanceOptions) -> Instance:
        """The instance number i; asked again if its process is lost and started anew."""
        planned, component, loader = prepared.plan.instances[i], prepared.components[i], self.loader
        if planned.name not in prepared.isolated:
            return loader.instantiate(component, planned.name, options)
        from fmimaster.run.isolated.instance import IsolatedInstance  # few runs need it
        from fmimaster.run.isolated.loss import Limits

        segments = prepared.plan.layout.segments(i, Group.CONTINUOUS)
        file, options = loader.file(component.source, component.interface), loader.options(options)
        places = max(prepared.programs.n_places, self.structures.n_places if self.structures else 0)
        instance = IsolatedInstance(
            planned,
            [variable for segment in segments for variable in segment.variables],
            file,
            options,
            n_places=places + 1,  # one for the replay of a journal
            limits=Limits(self.settings.call_timeout, self.settings.memory_limit),
            addresses=prepared.isolated[planned.name].addresses,
        )
        loader.own(instance)
        with loader.instantiating(planned.name):
            instance.load()
        return instance


def _name_instances(prepared: Prepared) -> None:
    """To the process that waits for the process of this run."""
    if shared_run.current is not None:
        shared_run.current.call(
            [
                Called(p.name, p.model.function_prefix, p.name in prepared.isolated)
                for p in prepared.plan.instances
            ]
        )


def words_for_fmus(plan: Plan) -> str:
    """Who has changed the process: the origin of a change is known only for a whole run."""
    names = [instance.name for instance in plan.instances]
    return f"'{names[0]}'" if len(names) == 1 else "An FMU"


_RECORD = "record_intermediate_values (--record-intermediate-values)"


def intermediate_outputs(prepared: Prepared, settings: Settings) -> dict[int, IntermediateOutputs]:
    """Instance → its outputs that are read inside of its steps.

    Raises
    ------
    OptionError
        If values are to be recorded and no FMU can give them, an FMU has a process of its own, or the run writes
        checkpoints.
    """
    clock, records = settings.clock_used, settings.record_intermediate_values
    requests = clock is not None and clock.requests
    plan, found = prepared.plan, dict[int, IntermediateOutputs]()
    if not (requests or records):
        return found
    from fmimaster.events.intermediate import inside_watch  # few runs need it

    for i, planned in enumerate(plan.instances):
        is_stepped = planned.model.interface is Interface.CO_SIMULATION
        watch = inside_watch(plan, i) if requests and planned.may_return_early else None
        recorded = readable_inside(planned.model, list(_columns(plan, i)) if records else [])
        if is_stepped and (recorded or watch is not None):
            watched, decide = watch or ((), None)
            found[i] = IntermediateOutputs(recorded, watched, decide)
    if records and not any(outputs.recorded for outputs in found.values()):
        raise OptionError(
            f"{_RECORD}: no recorded output can be read inside of a step. Expected a Co-Simulation FMU of FMI 3.0 with "
            'providesIntermediateUpdate="true", and recorded outputs with intermediateUpdate="true". Leave it out.'
        )
    _refuse_what_loses_values(prepared, settings, found)
    return found


def _refuse_what_loses_values(
    prepared: Prepared, settings: Settings, found: Mapping[int, IntermediateOutputs]
) -> None:
    if not found:
        return
    option = _RECORD if settings.record_intermediate_values else "The event clock Intermediate"
    if settings.checkpoint is not None:
        raise OptionError(
            f"{option}: a checkpoint does not contain intermediate values. Leave one of both out."
        )
    for i in found:
        name = prepared.plan.instances[i].name
        if name in prepared.isolated:
            raise OptionError(
                f"{option}: '{name}' has a process of its own, from which intermediate values are not transferred. Leave "
                "isolate, call_timeout, memory_limit and on_fault out."
            )


def intermediate_tables(plan: Plan, outputs: Mapping[int, IntermediateOutputs]) -> dict[str, Table]:
    """Name of a component → its values inside of its steps, with the names and units of the results."""
    found = {}
    for i, read in outputs.items():
        if not read.recorded:
            continue
        columns, (times, values) = _columns(plan, i), read.table()
        shown = [(columns[name], array) for name, array in values.items()]
        found[plan.instances[i].name] = Table(
            time=times,
            columns={c.name: c.converted(array) for c, array in shown},
            units={c.name: c.unit for c, _ in shown if c.unit},
        )
    return found


def _columns(plan: Plan, i: int) -> dict[str, Recorded]:
    """Name of a recorded variable of an instance → its column."""
    return {c.variable: c for c in plan.recorded if c.instance == i and not c.is_repeated}


def first_state(prepared: Prepared, settings: Settings) -> RunState:
    """The state at the start of a run."""
    schedule, base = prepared.schedule, prepared.schedule.base
    memory = schedule.rule.begin(base, base.ticks(schedule.start))
    merged = exact(settings.event_merge_tolerance) * base.resolution
    calendar = Calendar(base.resolution, merged)
    start = schedule.instant(schedule.start)
    return RunState(start, timeline_of(prepared), memory, calendar)


def timeline_of(prepared: Prepared) -> Timeline:
    """The points in time that a preparation requires."""
    schedule = prepared.schedule
    jumps = {schedule.instant(p): who for p, who in prepared.input_jumps.items()}
    return Timeline.of((schedule.instant(p) for p in schedule.points), jumps)


def initialize(session: SessionParts, states: str | os.PathLike[str] | None) -> bool:
    """Initialize all instances, and continue from a file of FMU states if there is one; returns whether the run continues,
    because an FMU can end it in Event Mode."""
    start = session.start.seconds
    try:
        outcome = session.executor.run(session.programs.initialize, start, start)
    except SimulationError as error:
        if session.may_start_anew:
            from fmimaster.session.first_measurements import refuse_failed  # few runs need it

            refuse_failed(session, error)
        raise
    if outcome.stopped is not None:
        raise _endless_start(session, outcome.stopped.change)
    if outcome.terminate:
        end = last_row(session.plan, session.executor.registers.initialized)
        session.executor.run(end, session.start.seconds, session.start.seconds)
        session.stepper.has_ended = True
        return False
    if session.may_start_anew and session.programs.reactions:
        from fmimaster.session.first_measurements import settle_loops  # few runs need it

        settle_loops(session)
    if states is not None:
        _take_states(session, states)
    goes_on = not session.stepper.begin()
    if goes_on and session.programs.replay.twice:
        from fmimaster.session.first_measurements import measure_replay  # few runs need it

        measure_replay(session)
    return goes_on


def _take_states(session: SessionParts, path: str | os.PathLike[str]) -> None:
    """Continue from FMU states of a file; the row of the initialization is replaced."""
    # few runs begin with FMU states
    from fmimaster.session.fmu_states import has_calendar, read_states, recall

    states, memory = read_states(given_path(path), session.prepared)
    for instance, state in zip(session.instances, states, strict=True):
        if state:
            instance.deserialize(state)
    session.executor.rows.take()
    start, calendar = session.start.seconds, session.state.calendar
    session.executor.run(session.programs.resume, start, start)
    if memory:
        with decoding(path, "a file of FMU states"):
            recall(memory, session.plan, session.executor, calendar, start)
    elif memory is None and has_calendar(session.plan):
        session.state.warnings += (
            f"'{path}' does not say when clocks tick: their first ticks are counted from {start:g} s",
        )


def _endless_start(session: SessionParts, change: float) -> SimulationError:
    """The error for updates in Event Mode that do not end before the first step."""
    check_indicators_are_finite(session.stepper.indicators, session.start.seconds)
    nan = [
        f"'{session.plan.instances[i].name}.{name}' is NaN"
        for (i, group, name), (kind, slot) in session.plan.layout.slots.items()
        if group is Group.OUTPUTS
        and kind.is_float
        and np.isnan(session.executor.store.values[kind][slot]).any()
    ]
    why = (
        "; ".join(nan)
        or f"an FMU requests another update, or outputs still change by {change:.3g} (relative)"
    )
    return ConvergenceError(
        f"The event at the start, t = {session.start.seconds:.12g} s, does not end: {why}. Look for a discrete "
        "loop without delay, and check start values."
    )


def terminate_others(
    instances: Sequence[Instance], initialized: NDArray[np.uint8], error: BaseException
) -> None:
    """Terminate all instances but the one whose call has failed: FMI allows it no further call that computes. The files of
    the others are complete then. Never raises a SimulationError.

    Parameters
    ----------
    initialized : shape (n_instances,)
        Which instances are in Step Mode or in Event Mode, where FMI allows ``Terminate``.
    """
    cause = error.__cause__ if isinstance(error, StartsAnew) else error
    failed = cause.instance if isinstance(cause, CallError) else None
    for instance, is_initialized in zip(instances, initialized, strict=True):
        if not is_initialized or instance.name == failed:
            continue
        try:
            instance.terminate()
        except SimulationError as later:
            log.warning("%s", str(later))
