"""What the reference interpreter costs, as ratios to fmpy's own calls measured in the same run.

    python benchmarks/reference_interpreter.py

A ring of ten small FMUs (Dahlquist), all outputs recorded, in turns with a plain loop over fmpy's methods; and loading a
hundred instances of one FMU. Medians of interleaved runs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable

import fmpy
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

import fmimaster
from fmimaster import SystemBuilder, reference_path
from fmimaster.system.description import SystemDescription

RING = 10
STEPS = 2000
REPETITIONS = 9
INSTANCES = 100


def ring(version: str, n: int = RING) -> SystemDescription:
    """A ring of n instances of one FMU."""
    builder = SystemBuilder("ring")
    for i in range(n):
        builder.add(f"d{i}", reference_path(f"{version}/Dahlquist.fmu"), {"k": 1.0})
    for i in range(n):
        builder.connect(f"d{i}.x", f"d{(i + 1) % n}.u", factor=1.0)
    return builder.build(start_time=0, stop_time=STEPS * 1e-3, step_size=1e-3)


def with_fmimaster(description: SystemDescription) -> float:
    """Wall time of the loop per instance and step, in s."""
    results = fmimaster.simulate(description)
    assert results.statistics is not None
    return results.statistics.seconds / (RING * STEPS)


def with_fmpy(version: str) -> Callable[[], float]:
    """The same by fmpy's methods: set, step, get, record."""
    path = reference_path(f"{version}/Dahlquist.fmu")
    description = fmpy.read_model_description(str(path))
    kind = FMU2Slave if version == "fmi2" else FMU3Slave
    folder = fmpy.extract(str(path), tempfile.mkdtemp())
    references = {v.name: v.valueReference for v in description.modelVariables}
    u, outputs = references["u"], [references["x"], references["dx"]]

    def run() -> float:
        fmus = []
        for i in range(RING):
            fmu = kind(
                guid=description.guid,
                modelIdentifier=description.coSimulation.modelIdentifier,
                unzipDirectory=str(folder),
                instanceName=f"d{i}",
            )
            fmu.instantiate()
            if version == "fmi2":
                fmu.setupExperiment(startTime=0.0)
                fmu.enterInitializationMode()
            else:
                fmu.enterInitializationMode(startTime=0.0)
            fmu.exitInitializationMode()
            fmus.append(fmu)
        get = [f.getReal if version == "fmi2" else f.getFloat64 for f in fmus]
        set_ = [f.setReal if version == "fmi2" else f.setFloat64 for f in fmus]
        values = [g(outputs) for g in get]
        rows = [values]
        begin = time.perf_counter()
        for k in range(STEPS):
            t = k * 1e-3
            for i in range(RING):
                set_[i]([u], [values[i - 1][0]])
            for fmu in fmus:
                fmu.doStep(t, 1e-3)
            values = [g(outputs) for g in get]
            rows.append(values)
        seconds = time.perf_counter() - begin
        for fmu in fmus:
            fmu.terminate()
            fmu.freeInstance()
        return seconds / (RING * STEPS)

    return run


def loading(version: str) -> float:
    """Wall time per instance to load and initialise a hundred instances of one FMU, in s."""
    builder = SystemBuilder("many")
    for i in range(INSTANCES):
        builder.add(f"d{i}", reference_path(f"{version}/Dahlquist.fmu"))
    description = builder.build(start_time=0, stop_time=1e-3, step_size=1e-3)
    begin = time.perf_counter()
    fmimaster.simulate(description)
    return (time.perf_counter() - begin) / INSTANCES


def main() -> None:
    """Print the table."""
    print("| FMI | fmimaster, per instance and step | fmpy's calls | ratio | load and run one step |")
    print("| --- | --- | --- | --- | --- |")
    for version in ("fmi2", "fmi3"):
        description, theirs = ring(version), with_fmpy(version)
        ours_s, theirs_s, load_s = [], [], []
        for _ in range(REPETITIONS):
            ours_s.append(with_fmimaster(description))
            theirs_s.append(theirs())
            load_s.append(loading(version))
        a, b, c = map(statistics.median, (ours_s, theirs_s, load_s))
        print(
            f"| {version[-1]}.0 | {a * 1e6:.2f} us | {b * 1e6:.2f} us | {b / a:.2f} | "
            f"{c * 1e3:.2f} ms per instance |"
        )


if __name__ == "__main__":
    main()
