"""What loading, stepping and freeing an FMU costs, and whether equal steps give equal results."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import median

from fmimaster.base.errors import CallError, FmimasterError, ModelError
from fmimaster.base.memory import open_files, taken
from fmimaster.cards.measured import (
    Leak,
    Loading,
    Repetition,
    ReplayedStep,
    Serialization,
    Stepping,
    TwoInstances,
)
from fmimaster.studies.probing.excitation import StepTrace, Use, VariedValues, moved
from fmimaster.studies.probing.subject import MeasuredUnit, Messages, Subject

STEPS = 100
"""Steps of a measured run."""
_CALLS = 200
"""Most calls whose time is measured."""
_TIME_FOR_CALLS = 0.2
"""Wall time in s for these calls."""
_WINDOWS = 3
"""How often the growth of the memory is measured, after a first time that does not count."""
_MOST_IN_A_WINDOW = 30
"""Most instances that are made and freed from one measurement to the next."""
_TIME_FOR_CYCLES = 3.0
"""Wall time in s for them."""
_STEPS_OF_A_CYCLE = 3


def loading(use: Use) -> Loading:
    """Measure the way to the first step."""
    began = time.perf_counter()
    with Subject(use) as subject:
        unit = subject.instantiated()
        made = time.perf_counter()
        unit.initialize()
        ready = time.perf_counter()
        subject.state.put_back("The FMU")
    return Loading(
        load_seconds=made - began,
        initialize_seconds=ready - made,
        changes=subject.state.changes,
    )


def stepping(use: Use) -> tuple[Stepping, StepTrace]:
    """Make a run, and measure calls.

    Returns
    -------
    The measurement, and the trace of the run from the start.
    """
    with Subject(use) as subject, Messages() as messages:
        unit = subject.unit()
        trace = unit.trace(STEPS)
        subject.state.put_back("The FMU")
        ticks = unit.ticks.count
        said = messages.texts
        floats = VariedValues(
            [v for v in subject.observed if v.type.is_float], unit.instance.getter
        )
        step_seconds = _step_seconds(unit, trace)
        get = cost(floats.read) if floats.size else None
        put = cost(unit.set_again) if unit.is_varied else None
    names = subject.names()
    return Stepping(
        steps=len(trace.values) - 1,
        step_size=subject.times.size,
        moved=moved(names, trace.values),
        observed=len(subject.observed),
        step_seconds=step_seconds,
        get_seconds=get,
        set_seconds=put,
        varied=unit.is_varied,
        ticks=ticks,
        ended=trace.ended,
        terminated=trace.terminated,
        changes=subject.state.changes,
        logged=len(said),
        first_logged=tuple(said[:5]),
    ), trace


def _step_seconds(unit: MeasuredUnit, trace: StepTrace) -> float | None:
    """The time of one step, also if no step succeeds after those of the trace."""
    size = unit.subject.times.size
    if trace.ended:
        return None
    try:
        return cost(lambda: unit.step(size))
    except CallError:
        return None


def cost(call: Callable[[], object]) -> float:
    """Median of the wall time of a call in s."""
    times: list[float] = []
    until = time.perf_counter() + _TIME_FOR_CALLS
    while len(times) < _CALLS and (not times or time.perf_counter() < until):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return median(times)


def leak(use: Use) -> Leak:
    """Load the FMU, make an instance, step it, free it, again and again.

    A leak grows all the time, whereas buffers of Python and of the C library grow at first. So the memory is measured
    several times, and the smallest growth counts.
    """
    began = time.perf_counter()
    _cycle(use)
    seconds = time.perf_counter() - began
    n = int(_TIME_FOR_CYCLES / (_WINDOWS + 1) / seconds)
    n = min(max(n, 1), _MOST_IN_A_WINDOW)
    found = []
    for _ in range(_WINDOWS + 1):
        for _ in range(n):
            _cycle(use)
        found.append(_resources())
    known = [resources for resources in found if resources is not None]
    growth = [
        ((after[0] - before[0]) / n, (after[1] - before[1]) / n)
        for before, after in pairwise(known)
    ]
    return Leak(
        cycles=n * _WINDOWS,
        bytes_per_cycle=max(min(g[0] for g in growth), 0.0) if growth else None,
        descriptors_per_cycle=max(min(g[1] for g in growth), 0.0) if growth else None,
    )


def _cycle(use: Use) -> None:
    with Subject(use) as subject:
        unit = subject.unit()
        unit.trace(_STEPS_OF_A_CYCLE)
        unit.free()


def _resources() -> tuple[int, int] | None:
    """Bytes of physical memory, and open descriptors; None if this system does not tell."""
    memory, files = _memory_in_use(), open_files()
    return None if memory is None or files is None else (memory, files)


def _memory_in_use() -> int | None:
    """Bytes of physical memory that this process uses; None where it is not known."""
    gc.collect()
    return taken(os.getpid()) or None


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
            again=subject.compared(_after_steps(first), _after_steps(second)),
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
            again=subject.compared(_after_steps(first), _after_steps(second)),
        )


def reset(use: Use, alone: StepTrace) -> Repetition:
    """Step, reset, and do the steps of a new instance (``alone``)."""
    with Subject(use) as subject:
        unit = subject.unit()
        unit.trace(_BEFORE)
        unit.instance.reset()
        unit.initialize()
        return subject.compared(alone, unit.trace(len(alone.values) - 1))


def again(use: Use, alone: StepTrace) -> Repetition:
    """The steps of a run in another process (``alone``)."""
    with Subject(use) as subject:
        return subject.compared(alone, subject.unit().trace(STEPS))


def read_at_end(use: Use, alone: StepTrace) -> Repetition:
    """The steps of a run, with outputs read only at the end instead of after each step (``alone``)."""
    steps = len(alone.values) - 1
    with Subject(use) as subject:
        end = subject.unit().trace(steps, reads=False)
        # the first row is the same, so that the number of changed outputs is that of the run
        first, last = alone.values[:1], alone.values[-1:]
        found = subject.compared(StepTrace.of([*first, *last]), StepTrace.of([*first, *end.values]))
        return replace(found, steps=steps)


def read_before(use: Use, alone: StepTrace) -> Repetition:
    """The steps of a run, with outputs read between inputs and step as well."""
    with Subject(use) as subject:
        return subject.compared(alone, subject.unit().trace(len(alone.values) - 1, between=True))


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
        beside = subject.compared(alone, StepTrace.of(rows))
        seconds, memory = _of_an_instance(subject)
    return TwoInstances(
        refused="", beside=beside, instantiate_seconds=seconds, memory_per_instance=memory
    )


def _of_an_instance(subject: Subject) -> tuple[float | None, int | None]:
    """Wall time in s to make another instance, and bytes of memory that it takes."""
    units: list[MeasuredUnit] = []
    before, began = _memory_in_use(), time.perf_counter()
    try:
        while len(units) < _MORE_INSTANCES and time.perf_counter() < began + _TIME_FOR_INSTANCES:
            units.append(subject.unit(f"further {len(units) + 1}"))
    except FmimasterError:
        pass  # the FMU has a limit
    seconds, after = time.perf_counter() - began, _memory_in_use()
    if not units:
        return None, None
    taken = None if before is None or after is None else max(after - before, 0) // len(units)
    return seconds / len(units), taken


def _after_steps(trace: StepTrace) -> StepTrace:
    return StepTrace(trace.values[1:], trace.ended)
