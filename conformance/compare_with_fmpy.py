"""Run every Co-Simulation FMU of a folder with fmimaster and with fmpy, and compare all outputs at all points.

    python conformance/compare_with_fmpy.py FOLDER [--tolerance 1e-12]

Both use the same communication step size: the FMU's own suggestion, else a hundredth of its default span. Input files
beside the FMU named ``<model>_in.csv`` are given to both.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import fmpy
import numpy as np

import fmimaster

MOST_STEPS = 10_000
"""Longer default experiments are cut here: some FMUs suggest 1e8 s."""


def compare(path: Path, input_file: Path | None) -> tuple[int, float]:
    """Number of rows, and the largest difference relative to the range of the signal.

    Raises
    ------
    ValueError
        If the two have other times, or not the same number of rows.
    """
    description = fmpy.read_model_description(path, validate=False)
    inputs = {v.name for v in description.modelVariables if v.causality == "input"}
    if input_file is not None:
        input_file = _only(inputs, input_file)
    experiment = description.defaultExperiment
    start = float(experiment.startTime) if experiment and experiment.startTime else 0.0
    stop = float(experiment.stopTime) if experiment and experiment.stopTime else start + 1.0
    suggested = experiment.stepSize if experiment else None
    step = float(suggested or description.coSimulation.fixedInternalStepSize or (stop - start) / 100)
    stop = min(stop, start + MOST_STEPS * step)
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
    worst = float(np.max(np.abs(ours.time - theirs["time"])))
    for name in ours.names:
        if ours[name].dtype == object or name not in theirs.dtype.names:
            continue
        a, b = ours[name].astype(float), theirs[name].astype(float)
        scale = max(1.0, float(np.max(np.abs(b))))
        worst = max(worst, float(np.max(np.abs(a - b))) / scale)
    return len(ours), worst


def _only(names: set[str], input_file: Path) -> Path:
    """The input file without the columns that this FMU does not have."""
    chosen = fmimaster.Results.read_csv(input_file)
    target = Path(tempfile.mkdtemp()) / "input.csv"
    chosen.select([n for n in chosen.names if n in names]).write_csv(target)
    return target


def main() -> int:
    """Print a line per FMU; exit status 1 if one fails or differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float, default=1e-12)
    arguments = parser.parse_args()
    failed = 0
    for path in sorted(arguments.folder.rglob("*.fmu")):
        if fmpy.read_model_description(path, validate=False).coSimulation is None:
            print(f"left out   {path.name:24} no Co-Simulation")
            continue
        input_file = path.with_name(f"{path.stem}_in.csv")
        try:
            rows, difference = compare(path, input_file if input_file.is_file() else None)
            verdict = "equal" if difference <= arguments.tolerance else "DIFFERENT"
            print(f"{verdict:9}  {path.name:24} {rows:6} rows, largest difference {difference:.3g}")
            failed += difference > arguments.tolerance
        except (fmimaster.FmimasterError, ValueError) as error:
            print(f"FAILED     {path.name:24} {error}")
            failed += 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
