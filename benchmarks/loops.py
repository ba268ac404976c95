"""What the solver of an algebraic loop takes per sweep, beside the calls of the FMUs."""

from __future__ import annotations

import time
from math import inf

from costs import Cost, medians

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.loops.hook import LoopHooks
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.layout import Group
from fmimaster.plan.visits import AlgebraicLoop
from fmimaster.prepare.preparation import prepare
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions.base import Program
from fmimaster.run.executor import InitialTimes
from fmimaster.run.native.executor import NativeExecutor
from fmimaster.system.states import State

SOLUTIONS = 1000
"""In one program, so that calling it from Python does not count."""


def anderson_in_c(repetitions: int, fmi: int) -> Cost:
    """y = cos y by two FMUs in Initialization Mode: sweeps with the solver, over as many without, per sweep."""
    builder = SystemBuilder("cosine")
    file = reference_path(f"fmi{fmi}/LoopFunction.fmu")
    builder.add("a", file, {"function": 1})
    builder.add("b", file)
    builder.connect("a.y", "b.u")
    builder.connect("b.y", "a.u")
    loader = Loader()
    try:
        prepared = prepare(Simulation(builder.build(), stop_time=1, step_size=1), loader)
        plan, p = prepared.plan, Emitter(prepared.plan)
        (loop,) = plan.initial_loops
        hooks = LoopHooks(plan, loop.torn, LoopSolver(), variables=loop.variables)
        begin = _begin(p)
        solved = _solved(p, loop, hooks)
        executor = NativeExecutor(
            plan,
            [
                loader.instantiate(c, i.name, InstanceOptions())
                for c, i in zip(prepared.components, plan.instances, strict=True)
            ],
            InitialTimes(0.0, 1.0),
            n_buffers=1,
            hooks=p.hooks,
        )
        executor.run(begin, 0.0, 0.0)
        executor.run(solved, 0.0, 0.0)
        sweeps = int(hooks.sweep.solutions.most)  # type: ignore[union-attr]
        plain = _plain(p, loop, sweeps)

        def taken(program: Program) -> float:
            begin = time.process_time()
            executor.run(program, 0.0, 0.0)
            return time.process_time() - begin

        a, b = medians(repetitions, lambda: taken(plain), lambda: taken(solved))
    finally:
        loader.close()
    what = f"Anderson acceleration, per sweep beside the FMUs, FMI {fmi}.0"
    remark = f"y = cos y: {sweeps} sweeps over two FMUs, {a / SOLUTIONS / sweeps * 1e9:.0f} ns each without it"
    return Cost(what, "us", 0.3, (b - a) / SOLUTIONS / sweeps * 1e6, remark)


def _begin(p: Emitter) -> Program:
    for i in range(len(p.plan.instances)):
        p.set(i, Group.START)
        p.mode(i, State.INITIALIZATION_MODE)
        p.get(i, Group.SOURCES)
    p.keep()
    return p.program("begin")


def _sweep(p: Emitter, loop: AlgebraicLoop) -> None:
    for visit in loop.sweep:
        (i,) = visit.instances
        if visit.sets:
            p.move(i)
            p.set_inputs(i)
        if visit.gets:
            p.get(i, Group.SOURCES)


def _solved(p: Emitter, loop: AlgebraicLoop, hooks: LoopHooks) -> Program:
    for _ in range(SOLUTIONS):
        p.recall(0)
        p.call(hooks.begin)
        with p.repeat(least=1, most=hooks.most, tolerance=inf):
            _sweep(p, loop)
            p.call(hooks.sweep)
    return p.program("solved")


def _plain(p: Emitter, loop: AlgebraicLoop, sweeps: int) -> Program:
    for _ in range(SOLUTIONS):
        p.recall(0)
        for _ in range(sweeps):
            _sweep(p, loop)
    return p.program("plain")
