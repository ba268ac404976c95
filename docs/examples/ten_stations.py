"""The ten stations of a value, by hand: what `simulate` does for a system of two FMUs, with one step instead of many.

Each station is a line or two, and prints what it has made. docs/architecture.md names the same stations.
"""

from pathlib import Path

from fmimaster import SystemBuilder, reference_path
from fmimaster.algorithms.assemble import assemble
from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.plan.make import make_plan
from fmimaster.program.listing import listing
from fmimaster.results.files import row_writer
from fmimaster.results.recorder import Recorder
from fmimaster.run.executor import InitialTimes
from fmimaster.run.reference.executor import ReferenceExecutor
from fmimaster.system.resolve import resolve

STEP = 0.125

# 1. Read: names as the user wrote them.
builder = SystemBuilder("pair")
builder.add("a", reference_path("fmi2/Dahlquist.fmu"), {"k": 1.0})
builder.add("b", reference_path("fmi3/Dahlquist.fmu"), {"k": 3.0})
builder.connect("b.x", "a.u", factor=2.0)
builder.connect("a.x", "b.u", factor=-1.0)
description = builder.build()
print("1 read       ", *description.system.connections)

with Loader() as loader:
    # 2. Resolve: links between variables of models, with units and types.
    components = dict(description.components())
    models = {name: loader.model(component) for name, component in components.items()}
    resolved = resolve(description, models)
    link = resolved.links[0]
    print("2 resolve    ", link.output.type.value, link.transformation)

    # 3. Plan: the order of stepping, and a place in the value store for each value.
    plan = make_plan(resolved)
    print("3 plan       ", [plan.instances[i].name for i in plan.trigger_sequence])

    # 4. Emit, 5. check: an algorithm writes programs; each is checked before an FMU is called.
    programs = assemble(plan, GaussSeidel())
    attempt = programs.variants[0].attempt
    print("4 emit       ", *listing(attempt, plan).splitlines(), sep="\n  ")
    print("5 check      ", len(attempt.instructions), "instructions are allowed by FMI")

    # 6. Instantiate: libraries are loaded, FMUs are called from here on.
    instances = [
        loader.instantiate(component, name, InstanceOptions())
        for name, component in components.items()
    ]
    print("6 instantiate", [type(instance).__name__ for instance in instances])

    # 7. Step: an executor runs programs on the value store.
    executor = ReferenceExecutor(
        plan, instances, InitialTimes(0.0, None), history=programs.history, hooks=programs.hooks
    )
    executor.run(programs.initialize, 0.0, 0.0)
    outcome = executor.run(attempt, 0.0, STEP)
    print("7 step       ", outcome)

    # 8. Sample: the accepted point becomes a row.
    executor.run(programs.commit, STEP, STEP)
    times, block = executor.rows.take()
    print("8 sample     ", times)

    # 9. Record: rows become results, with names and units.
    recorder = Recorder(plan.recorded)
    recorder.take(times, block)
    results = recorder.results()
    print("9 record     ", results.names, results["a.x"])
    executor.run(programs.terminate, STEP, STEP)

# 10. Write: a file of the format that its suffix names.
with row_writer("pair.csv") as writer:
    writer.write(results)
print("10 write     ", Path("pair.csv").read_text(encoding="utf-8").splitlines()[-1])
