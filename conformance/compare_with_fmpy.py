"""Run every Co-Simulation FMU of a folder with fmimaster and with fmpy, and compare all outputs at all points.

    python conformance/compare_with_fmpy.py FOLDER [--tolerance 1e-12]

Both use the same communication step size: the FMU's own suggestion, else a hundredth of its default span; and once more
with the nearest power of two, since a decimal step gives times that can differ in the last bit from tool to tool. Input
files beside the FMU named ``<model>_in.csv`` are given to both.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

import fmpy
import numpy as np

import fmimaster

MOST_STEPS = 10_000
"""Longer default experiments are cut here: some FMUs suggest 1e8 s."""


def compare(path: Path, input_file: Path | None, *, binary_step: bool) -> tuple[int, float, bool]:
    """Number of rows, the largest difference relative to the range of the signal, and whether the times are equal.

    Parameters
    ----------
    binary_step : bool
        Whether the step size is rounded to a power of two: then both tools have the same doubles as times, whichever
        way they compute them.

    Raises
    ------
    ValueError
        If the two have not the same number of rows.
    """
    description = fmpy.read_model_description(path, validate=False)
    experiment = description.defaultExperiment
    start = float(experiment.startTime) if experiment and experiment.startTime else 0.0
    stop = float(experiment.stopTime) if experiment and experiment.stopTime else start + 1.0
    suggested = experiment.stepSize if experiment else None
    step = float(
        suggested or description.coSimulation.fixedInternalStepSize or (stop - start) / 100
    )
    if binary_step:
        start, step = float(round(start)), 2.0 ** round(math.log2(step))
    stop = min(stop, start + MOST_STEPS * step)
    if input_file is not None:
        input_file = _only(description, input_file)
    theirs = fmpy.simulate_fmu(
        str(path),
        fmi_type="CoSimulation",
        validate=False,
        start_time=start,
        stop_time=stop,
        output_interval=step,
        input=fmpy.read_csv(str(input_file)) if input_file else None,
        output=[v.name for v in description.modelVariables if v.causality == "output"],
        use_event_mode=False,
    )
    ours = fmimaster.simulate(
        path, start_time=start, stop_time=stop, step_size=step, input_file=input_file
    )
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} rows, fmpy has {len(theirs)}")
    worst = 0.0
    for name in ours.names:
        if ours[name].dtype != object and name in theirs.dtype.names:
            a, b = ours[name].astype(float), theirs[name].astype(float)
            scale = max(1.0, float(np.max(np.abs(b))))
            worst = max(worst, float(np.max(np.abs(a - b))) / scale)
    return len(ours), worst, np.array_equal(ours.time, theirs["time"])


def _only(description: fmpy.model_description.ModelDescription, input_file: Path) -> Path:
    """The input file without what this FMU does not have, and without 64-bit integers, which fmpy reads as floats."""
    names = {
        v.name
        for v in description.modelVariables
        if v.causality == "input" and v.type not in ("Int64", "UInt64")
    }
    table = fmimaster.Results.read_csv(input_file)
    target = Path(tempfile.mkdtemp()) / "input.csv"
    table.select([n for n in table.names if n in names]).write_csv(target)
    return target


def main() -> int:
    """Print a line per FMU and step size; exit status 1 if one fails, or differs in spite of equal times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-12)
    arguments = parser.parse_args()
    failed = 0
    for path in sorted(arguments.folder.rglob("*.fmu")):
        if fmpy.read_model_description(path, validate=False).coSimulation is None:
            print(f"left out   {path.name:20} no Co-Simulation")
            continue
        beside = path.with_name(f"{path.stem}_in.csv")
        input_file = beside if beside.is_file() else None
        for binary_step in (False, True):
            try:
                rows, difference, same = compare(path, input_file, binary_step=binary_step)
            except (fmimaster.FmimasterError, ValueError) as error:
                print(f"FAILED     {path.name:20} {error}")
                failed += 1
                continue
            equal = difference <= arguments.tolerance
            failed += same and not equal
            print(
                f"{'equal' if equal else 'DIFFERENT':9}  {path.name:20} {rows:6} rows, "
                f"{'same times' if same else 'times differ in the last bit'}, largest difference {difference:.3g}"
            )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
