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
from time import process_time
from typing import Any

ROUNDS = 5
"""Of each tool, in turns; the median counts."""
FEW, MANY = 4000, 44000
"""Communication steps of the two runs, of which the difference counts: loading and initialization do not."""
STEP = 1e-5
"""[s] The smallest step of both controllers, as in OspSystemStructure.xml; their tolerances allow hardly more."""

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
print("RESULT", process_time() - begin, run.status().current_time / (steps + 10) * 1e-9)
"""


def libcosim(folder: Path, python: str) -> tuple[float, float]:
    """CPU time per communication step in s, and the mean step in s."""
    seconds = []
    for steps in (FEW, MANY):
        done = subprocess.run(
            [python, "-c", LIBCOSIM, str(folder), str(steps)], capture_output=True, check=True
        )
        words = done.stdout.decode(errors="replace").partition("RESULT")[2].split()
        seconds.append(float(words[0]))
    return (seconds[1] - seconds[0]) / (MANY - FEW), float(words[1])


def fmimaster(folder: Path) -> tuple[float, float, float]:
    """The same; and the FMUs' own wall time per step in s."""
    from fmimaster import PID, Port, PowerBond, Simulation, SystemBuilder

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
    bond = PowerBond("suspension", ports, scale=750.0, tolerance=1e-15)
    found = []
    for steps in (FEW, MANY):
        begin = process_time()
        statistics = (
            Simulation(
                builder,
                power_bonds=[bond],
                start_values=start,
                step_size=PID.ecco(1e-2, STEP),
                stop_time=steps * STEP,
            )
            .run()
            .statistics
        )
        found.append((process_time() - begin, statistics))
    (before, few), (after, many) = found
    done = many.steps - few.steps
    own = sum(one.seconds for one in many.instances) / many.steps
    return (after - before) / done, MANY * STEP / many.steps, own


def main(folder: Path, python: str) -> None:
    """Measure in turns, and print the median of each and the ratio."""
    warnings.simplefilter("ignore")  # that the controllers stay at their smallest steps
    fmimaster(folder)  # imports, and the first loading
    theirs, ours = zip(
        *((libcosim(folder, python), fmimaster(folder)) for _ in range(ROUNDS)), strict=True
    )
    (a, step_a, _), (b, step_b) = sorted(ours)[ROUNDS // 2], sorted(theirs)[ROUNDS // 2]
    own = min(own for _, _, own in ours)
    print(f"fmimaster: {a * 1e6:.2f} us per step of {step_a * 1e3:.4f} ms")
    print(
        f"libcosim:  {b * 1e6:.2f} us per step of {step_b * 1e3:.4f} ms, {b / a:.1f} times as long"
    )
    print(f"of it FMUs: {own * 1e6:.2f} us; without them {(b - own) / (a - own):.1f} times as long")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
