"""What components with step sizes of their own take at a communication point, over the time of their FMUs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from costs import Cost, medians

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.prepare.preparation import prepare
from fmimaster.prepare.prepared import Prepared
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Set
from fmimaster.program.instructions.outputs import Get
from fmimaster.program.instructions.steps import Step
from fmimaster.run.executor import InitialTimes
from fmimaster.run.native.executor import NativeExecutor
from fmimaster.steps import MultiRate

RATES = {"A": "1/100", "B": "1/40", "C": "1/30"}
PERIODS = 700
"""Of 1/10 s, with 14 points each."""


def three_rates(repetitions: int, fmi: int) -> Cost:
    """A point of three rates, beside the calls of FMUs that are made there, per point."""
    builder = SystemBuilder("ring")
    for name in RATES:
        builder.add(name, reference_path(f"fmi{fmi}/Dahlquist.fmu"))
    for source, target in ("CA", "AB", "BC"):
        builder.connect(f"{source}.x", f"{target}.u", factor=1e-3)
    loader = Loader()
    try:
        rule = MultiRate(components=RATES)
        settings = Simulation(
            builder.build(), step_size=rule, stop_time=1, output_variables=("*.x",)
        )
        prepared = prepare(settings, loader)
        a, b = medians(repetitions, _taken(loader, prepared, False), _taken(loader, prepared, True))
    finally:
        loader.close()
    points = 14 * PERIODS
    what = f"three rates, per communication point, FMI {fmi}.0"
    remark = (
        f"rows and inputs; the calls of the FMUs alone take {a / points * 1e9:.0f} ns per point"
    )
    return Cost(what, "us", 0.3, (b - a) / points * 1e6, remark)


def _taken(loader: Loader, prepared: Prepared, is_whole: bool) -> Callable[[], float]:
    """Time in s of many periods: of all that is done in them, or of the calls of FMUs alone."""
    plan, programs = prepared.plan, prepared.programs
    assert programs.pattern is not None
    attempts = tuple(programs.variants[k].attempt for k in programs.pattern.intervals)
    commit = programs.commit
    if not is_whole:
        attempts = tuple(map(_calls_alone, attempts))
        commit = Emitter(plan).program("commit")
    executor = NativeExecutor(
        plan,
        [
            loader.instantiate(c, i.name, InstanceOptions())
            for c, i in zip(prepared.components, plan.instances, strict=True)
        ],
        InitialTimes(0.0),
        hooks=programs.hooks,
    )
    executor.run(programs.initialize, 0.0, 0.0)
    rule = prepared.schedule.rule
    grid = rule.begin(prepared.schedule.base, 0)
    at = 0

    def taken() -> float:
        nonlocal at
        times = [grid.point(at + k).seconds for k in range(14 * PERIODS + 1)]
        at += 14 * PERIODS
        done, begin = 0, time.process_time()
        while done < len(times) - 1:
            executor.rows.take()
            more = executor.repeat(_from(attempts, done), commit, times[done:]).done
            if is_whole:
                executor.run(commit, times[done + more + 1], times[done + more + 1])
            done += more + 1
        return time.process_time() - begin

    taken()
    return taken


def _from(attempts: tuple[Program, ...], done: int) -> tuple[Program, ...]:
    k = done % len(attempts)
    return attempts[k:] + attempts[:k]


def _calls_alone(attempt: Program) -> Program:
    kept = tuple(i for i in attempt.instructions if isinstance(i, Set | Step | Get))
    return replace(attempt, instructions=kept)
