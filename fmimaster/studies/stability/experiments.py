"""FMUs of a system that are repeatedly stepped alone from one point of a run, and their inputs in a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from time import monotonic, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError, SimulationError
from fmimaster.configure.settings import Settings
from fmimaster.fmu.instance import Instance
from fmimaster.fmu.load import Loader
from fmimaster.inputs.polynomial import Polynomials
from fmimaster.instants.instant import exact
from fmimaster.plan.layout import Group, Segment
from fmimaster.plan.plan import Plan
from fmimaster.prepare.preparation import prepare
from fmimaster.prepare.prepared import Prepared
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Fit, Move, Set
from fmimaster.program.instructions.outputs import Get
from fmimaster.program.instructions.steps import Mode, Restore, Save, Step, Update
from fmimaster.program.store import ValueStore
from fmimaster.session.session import Session
from fmimaster.system.model import DataType
from fmimaster.system.states import State

LONGER = 10.0
"""How much longer the wall time of an analysis may be than its CPU time."""


class OutOfTime(Exception):
    """The time that was given to an analysis is over."""


class Experiments:
    """The FMUs of a system at one point of a run, from which each can be stepped alone. A context manager.

    An FMU that can get and set its state is restored to that point before each experiment. For other FMUs, and for FMUs
    with steps of one size only, the run is repeated up to that point.

    Parameters
    ----------
    settings : Settings
    at : float, optional
        Time in s of the point; the start if left out.
    seconds : float
        CPU time in s after which a step raises :class:`OutOfTime`: a loaded machine does not change the result. It does so
        also after :data:`LONGER` times this wall time, for FMUs that wait.

    Attributes
    ----------
    prepared : Prepared
    start : float
        Time in s of the point.
    values : DataType → array
        All values at the point.
    executor : Executor

    Raises
    ------
    InputError, ProgramError, SimulationError
        If the system cannot be simulated up to that point.
    """

    def __init__(self, settings: Settings, at: float | None = None, seconds: float = inf) -> None:
        self._settings, self._at = settings, at
        self._until = process_time() + seconds
        self._at_last = monotonic() + LONGER * seconds
        self._loader = Loader(logging_on=settings.debug_logging)
        try:
            self.prepared = prepare(settings, self._loader)
            self._refuse_nonlinear()
            # an FMU with steps of one size only is instantiated again for each size
            self._states = [
                i.model.capabilities.can_get_and_set_fmu_state
                and i.model.capabilities.can_handle_variable_communication_step_size
                for i in self.prepared.plan.instances
            ]
            self._instances: Sequence[Instance] = ()
            self.renew()
        except BaseException:
            self._loader.close()
            raise

    def __enter__(self) -> Experiments:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free all FMUs."""
        self._loader.close()

    def renew(self) -> None:
        """Bring new instances to the point, and save their states: at first, and after one has failed."""
        plan, programs = self.prepared.plan, self.prepared.programs
        for instance in self._instances:
            instance.free()
        n = len(plan.instances)
        programs = replace(programs, n_places=programs.n_places + 2 * n)
        first = programs.n_places - 2 * n
        prepared = replace(self.prepared, programs=programs)
        session = Session(prepared, self._loader, self._settings)
        self._instances = session.instances
        goes_on, schedule = session.initialize(), prepared.schedule
        at = schedule.start if self._at is None else exact(self._at)
        if not schedule.start <= at <= schedule.stop:
            raise OptionError(
                f"at: {float(at):g} s is not between the start and the stop time of the run, {float(schedule.start):g} "
                f"and {float(schedule.stop):g} s."
            )
        if goes_on and at > schedule.start:
            session.advance(schedule.instant(at))
        self.start = session.time
        self.executor, self._used = session.executor, set[int]()
        groups = [(i, g) for i in range(n) for g in _input_groups(plan, i)]
        moves = [Move(i, group) for i, group in groups]
        # the kernel uses polynomials only after a FIT
        fits = [Fit(i, 0.0, 1, 0, ()) for i in range(n) if i in programs.polynomial_inputs]
        saves = tuple(Save(i, first + i) for i in range(n) if self._states[i])
        self.executor.run(Program("begin", (*moves, *fits, *saves)), self.start, self.start)
        self.values = {kind: array.copy() for kind, array in self.executor.store.values.items()}
        self._first = first
        self._programs = [self._programs_of(i) for i in range(n)]

    def _programs_of(self, i: int) -> tuple[Program, Program]:
        """A program that restores an instance to the point, and one that steps it alone."""
        plan = self.prepared.plan
        # an FMU may drop data from before the last saved state, so a state is saved before each step
        again = self._first + len(plan.instances) + i
        step = (
            *([Save(i, again)] if self._states[i] else []),
            *(Set(i, group) for group in _input_groups(plan, i)),
            Step(i, 1.0),
            *([Get(i, Group.OUTPUTS)] if plan.layout.segments(i, Group.OUTPUTS) else []),
        )
        return Program("back", (Restore(i, self._first + i),)), Program("step", step)

    def go_back(self, i: int) -> None:
        """Restore an instance to the point."""
        if self._states[i]:
            self.executor.run(self._programs[i][0], self.start, self.start)
        elif i in self._used:
            self.renew()
        self._used.add(i)

    def step(self, i: int, begin: float, end: float) -> None:
        """Step an instance with the inputs that are in the store.

        Raises
        ------
        SimulationError
            If the instance fails.
        OutOfTime
        """
        if process_time() > self._until or monotonic() > self._at_last:
            raise OutOfTime
        outcome = self.executor.run(self._programs[i][1], begin, end)
        if outcome.stopped is not None or outcome.terminate or outcome.end != end:
            name = self.prepared.plan.instances[i].name
            raise SimulationError(
                f"'{name}' does not step from t = {begin:.12g} to {end:.12g} s, so its response to its inputs is not "
                "known for this step size. Try smaller ones (--longest).",
                time=begin,
            )

    def change_at_once(self, i: int) -> None:
        """Pass the inputs in the store in Event Mode, and read the outputs there."""
        instructions = [
            Mode(i, State.EVENT_MODE),
            Set(i, Group.CONTINUOUS),
            Update(i),
            Get(i, Group.OUTPUTS),
            Mode(i, State.STEP_MODE),
        ]
        self.executor.run(Program("change", tuple(instructions)), self.start, self.start)

    def partials(
        self, i: int, unknowns: Sequence[int], knowns: Sequence[int], shape: tuple[int, int]
    ) -> NDArray[np.float64]:
        """Partial derivatives of outputs by inputs at the point, as the FMU computes them.

        Parameters
        ----------
        unknowns, knowns
            Value references.
        shape
            Numbers of their elements.
        """
        self.go_back(i)
        found, seed, column = np.zeros(shape), np.zeros(shape[1]), np.zeros(shape[0])
        derive = self._instances[i].directional_derivative(unknowns, knowns, seed, column)
        for k in range(shape[1]):
            seed[k] = 1.0
            derive()
            seed[k] = 0.0
            found[:, k] = column
        return found

    def _refuse_nonlinear(self) -> None:
        programs = self.prepared.programs
        if len(programs.variants) > 1:
            raise OptionError(
                "The steps of this run differ from each other, for example because components have their own step "
                "sizes, so one matrix does not describe its stability. Use an algorithm whose steps are all equal."
            )
        fits = [f for f in programs.attempt.instructions if isinstance(f, Fit)]
        if any(f.adaptive is True or (f.adaptive and any(f.adaptive)) for f in fits):
            raise OptionError(
                "The inputs are extrapolated by polynomials that adapt to measured errors, so a step is not a linear "
                "map. Use a fixed polynomial, such as hold or linear inputs."
            )


class InputSlots:
    """The Float64 inputs of one FMU that are set before each step.

    Their values in a step are a vector ``w``. First come the coefficients of continuous inputs, polynomials of the time
    since the start of the step in units of the step: power 0 of all inputs, then power 1, and so on. Then come the
    values of discrete inputs; some FMUs of FMI 2.0 declare all inputs as discrete.

    Attributes
    ----------
    continuous, discrete : slices of the Float64 values
    degree : int
        Degree of the polynomials passed to the FMU.
    """

    def __init__(self, prepared: Prepared, instance: int) -> None:
        plan = prepared.plan
        self._i = instance
        self._continuous = _segment(plan, instance, Group.CONTINUOUS)
        groups = _input_groups(plan, instance)
        self._discrete = (
            _segment(plan, instance, Group.DISCRETE) if Group.DISCRETE in groups else None
        )
        self.continuous, self.discrete = map(_slice, (self._continuous, self._discrete))
        self.degree = max(
            (
                f.rows - 1
                for f in prepared.programs.attempt.instructions
                if isinstance(f, Fit) and f.instance == instance and not f.is_constant
            ),
            default=0,
        )

    @property
    def n_continuous(self) -> int:
        """Elements of the continuous inputs."""
        return len(range(self.continuous.start, self.continuous.stop))

    @property
    def size(self) -> int:
        """Length of ``w``."""
        n_discrete = len(range(self.discrete.start, self.discrete.stop))
        return self.n_continuous * (self.degree + 1) + n_discrete

    @property
    def references(self) -> Mapping[Group, tuple[int, ...]]:
        """Group → value references of its inputs."""
        both = (Group.CONTINUOUS, self._continuous), (Group.DISCRETE, self._discrete)
        return {group: s.value_references for group, s in both if s is not None}

    def scale(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scale of each element of ``w``: the nominal value, or the present one if that is larger."""
        continuous, discrete = (
            np.maximum(list(_nominals(segment)), np.abs(values[slot]))
            for segment, slot in (
                (self._continuous, self.continuous),
                (self._discrete, self.discrete),
            )
        )
        return np.concatenate([np.tile(continuous, self.degree + 1), discrete])

    def put(
        self,
        store: ValueStore,
        present: NDArray[np.float64],
        change: NDArray[np.float64],
        time: float,
        size: float,
    ) -> None:
        """Set the inputs in the store to their present values and a change.

        Parameters
        ----------
        present
            All Float64 values.
        change
            A vector ``w`` that is added.
        time, size : float
            Start and size of the step in s.
        """
        n = self.n_continuous * (self.degree + 1)
        values = store.values.get(DataType.FLOAT64, np.zeros(0))
        coefficients = change[:n].reshape(self.degree + 1, self.n_continuous).copy()
        coefficients[0] += present[self.continuous]
        values[self.continuous] = coefficients[0]
        values[self.discrete] = present[self.discrete] + change[n:]
        store.courses.degree[self._i] = -1
        if self.degree > 0:
            powers = size ** np.arange(self.degree + 1)[:, np.newaxis]
            store.courses.put(self._i, Polynomials(coefficients / powers, time))


def _input_groups(plan: Plan, instance: int) -> list[Group]:
    """The groups of connected inputs that are set before each step.

    If Event Mode is used, discrete inputs are excluded, because they change at events only.
    """
    event_mode = plan.instances[instance].event_mode
    groups = (Group.CONTINUOUS,) if event_mode else (Group.CONTINUOUS, Group.DISCRETE)
    return [group for group in groups if (instance, group) in plan.routes]


def _segment(plan: Plan, instance: int, group: Group) -> Segment | None:
    segments = plan.layout.segments(instance, group)
    return next((s for s in segments if s.type is DataType.FLOAT64), None)


def _slice(segment: Segment | None) -> slice:
    return slice(0, 0) if segment is None else slice(segment.start, segment.stop)


def _nominals(segment: Segment | None) -> Iterator[Any]:
    for variable in () if segment is None else segment.variables:
        for _ in range(variable.size):
            yield abs(variable.nominal or 1.0)
