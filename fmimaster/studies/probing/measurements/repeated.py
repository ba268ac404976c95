"""Whether equal steps give equal results: after a restored state, after a reset, beside another instance."""

from __future__ import annotations

import time
from dataclasses import replace

from fmimaster.base.errors import CallError, FmimasterError, ModelError
from fmimaster.cards.measured import Repetition, ReplayedStep, Serialization, TwoInstances
from fmimaster.studies.probing.excitation import Use
from fmimaster.studies.probing.measurements.costs import STEPS, cost, memory_in_use
from fmimaster.studies.probing.subject import MeasuredUnit, Subject
from fmimaster.studies.probing.traces import StepTrace, compared

_BEFORE = 10
"""Steps before the state is saved: solvers inside FMUs have a history then."""
_AGAIN = 20
"""Steps that are repeated."""
_MORE_INSTANCES = 10
"""Most instances by which memory and time are measured."""
_TIME_FOR_INSTANCES = 1.0
"""Wall time in s for them."""


def replay(use: Use) -> ReplayedStep:
    """Save the state, step, restore it, step again."""
    with Subject(use) as subject:
        unit = subject.unit()
        unit.trace(_BEFORE)
        place, there = 0, unit.moment
        unit.save(place)
        first = unit.trace(_AGAIN)
        unit.instance.restore(place)
        unit.go_to(there)
        second = unit.trace(_AGAIN)
        save, restore = (
            cost(lambda: unit.save(1)),
            cost(lambda: unit.instance.restore(1)),
        )
        # outputs are compared after steps: not every FMU computes them again when its state is set
        return ReplayedStep(
            again=_compared(subject, _after_steps(first), _after_steps(second)),
            save_seconds=save,
            restore_seconds=restore,
        )


def serialization(use: Use) -> Serialization:
    """Take the state as bytes, step, and step another instance that starts from the bytes."""
    with Subject(use) as subject:
        unit = subject.unit()
        unit.trace(_BEFORE)
        there = unit.moment
        state = unit.instance.serialized()
        unit.instance.deserialize(state)
        equal = unit.instance.serialized() == state
        first = unit.trace(_AGAIN)
        unit.free()
        other = subject.unit("other")
        other.instance.deserialize(state)
        other.go_to(there)
        second = other.trace(_AGAIN)
        return Serialization(
            size=len(state),
            equal=equal,
            again=_compared(subject, _after_steps(first), _after_steps(second)),
        )


def reset(use: Use, alone: StepTrace) -> Repetition:
    """Step, reset, and do the steps of a new instance (``alone``)."""
    with Subject(use) as subject:
        unit = subject.unit()
        unit.trace(_BEFORE)
        unit.instance.reset()
        unit.initialize()
        return _compared(subject, alone, unit.trace(len(alone.values) - 1))


def again(use: Use, alone: StepTrace) -> Repetition:
    """The steps of a run in another process (``alone``)."""
    with Subject(use) as subject:
        return _compared(subject, alone, subject.unit().trace(STEPS))


def read_at_end(use: Use, alone: StepTrace) -> Repetition:
    """The steps of a run, with outputs read only at the end instead of after each step (``alone``)."""
    steps = len(alone.values) - 1
    with Subject(use) as subject:
        end = subject.unit().trace(steps, reads=False)
        # the first row is the same, so that the number of changed outputs is that of the run
        first, last = alone.values[:1], alone.values[-1:]
        found = _compared(
            subject, StepTrace.of([*first, *last]), StepTrace.of([*first, *end.values])
        )
        return replace(found, steps=steps)


def read_before(use: Use, alone: StepTrace) -> Repetition:
    """The steps of a run, with outputs read between inputs and step as well."""
    with Subject(use) as subject:
        return _compared(subject, alone, subject.unit().trace(len(alone.values) - 1, between=True))


def two_instances(use: Use, alone: StepTrace) -> TwoInstances:
    """Step two instances in turn, beside the steps of one (``alone``); then make some more."""
    with Subject(use) as subject:
        units = [subject.unit("first")]
        try:
            units.append(subject.unit("second"))
        except (CallError, ModelError) as error:
            return TwoInstances(refused=str(error))
        rows = [units[0].read()]
        begin, size = units[0].time, subject.times.size
        for k in range(len(alone.values) - 1):
            for unit in units:
                unit.vary()
                unit.step_to(begin + (k + 1) * size)
            rows.append(units[0].read())
        beside = _compared(subject, alone, StepTrace.of(rows))
        seconds, memory = _of_an_instance(subject)
    return TwoInstances(
        refused="", beside=beside, instantiate_seconds=seconds, memory_per_instance=memory
    )


def _of_an_instance(subject: Subject) -> tuple[float | None, int | None]:
    """Wall time in s to make another instance, and bytes of memory that it takes."""
    units: list[MeasuredUnit] = []
    before, began = memory_in_use(), time.perf_counter()
    try:
        while len(units) < _MORE_INSTANCES and time.perf_counter() < began + _TIME_FOR_INSTANCES:
            units.append(subject.unit(f"further {len(units) + 1}"))
    except FmimasterError:
        pass  # the FMU has a limit
    seconds, after = time.perf_counter() - began, memory_in_use()
    if not units:
        return None, None
    taken = None if before is None or after is None else max(after - before, 0) // len(units)
    return seconds / len(units), taken


def _compared(subject: Subject, one: StepTrace, other: StepTrace) -> Repetition:
    return compared(subject.names(), subject.nominal, one, other)


def _after_steps(trace: StepTrace) -> StepTrace:
    return StepTrace(trace.values[1:], trace.ended)
