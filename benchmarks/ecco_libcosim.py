"""ECCO of fmimaster and of libcosim on libcosim's quarter truck, in turns: time per communication step.

python benchmarks/ecco_libcosim.py FOLDER PYTHON

FOLDER has Chassis.fmu and Wheel.fmu of libcosim's tests (tests/data/fmi2/quarter_truck). PYTHON is an interpreter of an
environment of its own with libcosimpy (0.0.6 has ECCO); nothing of it is needed elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

ROUNDS = 5
"""Of each tool, in turns; the fastest run counts."""
STEPS = 44000
"""Communication steps of libcosim; fmimaster simulates the same time."""
STEP = 1e-5
"""[s] The smallest step of both controllers, as in OspSystemStructure.xml."""
TOLERANCE = 6e-9
"""Of ours: with it the steps are as long as those of libcosim, whose error is scaled in another way."""

LIBCOSIM = """
import sys
from time import process_time
from libcosimpy.CosimAlgorithm import CosimAlgorithm, EccoParams
from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave

log_output_level(CosimLogLevel.FATAL)
folder, steps = sys.argv[1], int(sys.argv[2])
numbers = EccoParams(0.99, 1e-4, 1e-5, 0.01, 0.2, 1.5, 1e-6, 1e-6, 0.2, 0.15)
algorithm = CosimAlgorithm.create_ecco_algorithm(numbers)
run = CosimExecution.from_algorithm(algorithm)
fmus = [CosimLocalSlave(f"{folder}/{n}.fmu", n.lower()) for n in ("Chassis", "Wheel")]
c, w = [run.add_local_slave(fmu) for fmu in fmus]
C, W = [{v.name.decode(): v.reference for v in run.slave_variables(i)} for i in (c, w)]
for i, names, mass in ((c, C, 400.0), (w, W, 40.0)):
    run.real_initial_value(i, names["mass"], mass)
    run.real_initial_value(i, names["timeStep"], 1e-5)
    run.string_initial_value(i, names["solverType"], "Euler")
run.connect_real_variables(c, C["velocity"], w, W["in_vel"])
run.connect_real_variables(w, W["out_spring_damper_f"], c, C["force"])
algorithm.add_power_bond(c, C["velocity"], C["force"], w, W["out_spring_damper_f"], W["in_vel"])
observer = CosimObserver.create_last_value()  # without one, ECCO cannot read the inputs
run.add_observer(observer)
assert run.step(10)
begin = process_time()
assert run.step(steps)
print("RESULT", process_time() - begin, run.status().current_time * 1e-9)
"""


class Run(NamedTuple):
    """What a run took without loading and initialization, and how far it came."""

    seconds: float
    """CPU time of libcosim; wall time of fmimaster, which is not less."""
    reached: float
    """[s]"""
    steps: int
    own: float = 0.0
    """Wall time in s of the FMUs in a step, as far as it is known."""


def libcosim(folder: Path, python: str) -> Run:
    """A run, and ten steps before it."""
    done = subprocess.run(
        [python, "-c", LIBCOSIM, str(folder), str(STEPS)], capture_output=True, check=True
    )
    words = done.stdout.decode(errors="replace").partition("RESULT")[2].split()
    return Run(float(words[0]), float(words[1]), STEPS)


def fmimaster(folder: Path, stop: float) -> Run:
    """A run until then."""
    from fmimaster import Simulation, SystemBuilder
    from fmimaster.steps import PID
    from fmimaster.system import Port, PowerBond

    builder = SystemBuilder("truck")
    builder.add("chassis", folder / "Chassis.fmu")
    builder.add("wheel", folder / "Wheel.fmu")
    builder.connect("chassis.velocity", "wheel.in_vel")
    builder.connect("wheel.out_spring_damper_f", "chassis.force")
    ports = (
        Port("chassis", "force", "velocity", "out"),
        Port("wheel", "in_vel", "out_spring_damper_f", "in"),
    )
    start: dict[str, Any] = {"chassis.mass": 400.0, "wheel.mass": 40.0}
    for name in ("chassis", "wheel"):
        start |= {f"{name}.timeStep": 1e-5, f"{name}.solverType": "Euler"}
    bond = PowerBond("suspension", ports, scale=750.0, tolerance=TOLERANCE)
    results = Simulation(
        builder,
        power_bonds=[bond],
        start_values=start,
        step_size=PID.ecco(1e-2, STEP),
        stop_time=stop,
    ).run()
    told = results.statistics
    own = sum(one.seconds for one in told.instances) / told.steps
    return Run(told.seconds, stop, told.steps, own)


def main(folder: Path, python: str) -> None:
    """Measure in turns, and print the times of both and the ratio."""
    warnings.simplefilter("ignore")  # that the controllers stay at their smallest steps
    theirs: list[Run] = []
    ours: list[Run] = []
    for _ in range(ROUNDS):
        theirs.append(libcosim(folder, python))
        ours.append(fmimaster(folder, theirs[0].reached))
    (a, step_a), (b, step_b) = (
        (min(r.seconds for r in runs) / runs[0].steps, runs[0].reached / runs[0].steps)
        for runs in (ours, theirs)
    )
    own = min(run.own for run in ours)
    print(f"fmimaster: {a * 1e6:.2f} us per step of {step_a * 1e3:.4f} ms")
    print(
        f"libcosim:  {b * 1e6:.2f} us per step of {step_b * 1e3:.4f} ms, {b / a:.1f} times as long"
    )
    print(f"of it FMUs: {own * 1e6:.2f} us; without them {(b - own) / (a - own):.1f} times as long")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
