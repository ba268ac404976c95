"""What a power bond takes per step: measuring it, and recording its signals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from costs import Cost, medians

from fmimaster import Simulation, reference_path
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.prepare.preparation import prepare
from fmimaster.program.bond_powers import bond_measures
from fmimaster.program.emitter import Emitter
from fmimaster.run.executor import InitialTimes
from fmimaster.run.native.executor import NativeExecutor
from fmimaster.system.description import SystemDescription
from fmimaster.system.read import read_system

STEPS = 1000
"""In one program, so that calling it from Python does not count."""


def bond_recorded(repetitions: int, fmi: int) -> Cost:
    """Measuring a bond and recording its signals, beside the recording of outputs, per step."""
    measured = read_system(reference_path(f"systems/quarter-car-a-fmi{fmi}.ssp"))
    plain = replace(measured, system=replace(measured.system, power_bonds=()))
    loader = Loader()
    try:
        runs = [_taken(loader, description) for description in (plain, measured)]
        a, b = medians(repetitions, *runs)
    finally:
        loader.close()
    what = f"power bond, measured and recorded, per step, FMI {fmi}.0"
    remark = f"6 signals and the energy error; a row of both outputs takes {a / STEPS * 1e9:.0f} ns"
    return Cost(what, "us", 0.05, (b - a) / STEPS * 1e6, remark)


def _taken(loader: Loader, description: SystemDescription) -> Callable[[], float]:
    """Time in s of a program that measures all bonds of a system and records a row, again and again."""
    prepared = prepare(Simulation(description), loader)
    plan = prepared.plan
    p = Emitter(plan, measures=bond_measures(plan))
    for _ in range(STEPS):
        p.measure()
        p.sample()
    program = p.program("measured")
    executor = NativeExecutor(
        plan,
        [
            loader.instantiate(c, i.name, InstanceOptions())
            for c, i in zip(prepared.components, plan.instances, strict=True)
        ],
        InitialTimes(0.0, 1.0),
        hooks=p.hooks,
    )

    def taken() -> float:
        executor.rows.take()
        begin = time.process_time()
        executor.run(program, 0.0, 0.0)
        return time.process_time() - begin

    taken()
    return taken
