"""CVODE of fmimaster beside ``fmpy.simulate_fmu``, which uses the same libraries: CPU time of whole runs of one FMU.

    python benchmarks/cvode.py FMU.fmu [--stop-time 20] [--step-size 0.01] [--rounds 15] [--start-value mu=1000]

Both runs have the same tolerance and the same communication points, are made alternately in one process, and include
loading. The ratio is that of the medians; the goal is at most 1.2. Runs of one step show how much of it is loading.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import fmpy
import numpy as np

import fmimaster

TOLERANCE = 1e-6
"""Relative tolerance of both."""
GOAL = 1.2


def seconds(act: Callable[[], Any]) -> float:
    """CPU time of a call in s."""
    begin = process_time()
    act()
    return process_time() - begin


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("fmu")
    parser.add_argument("--stop-time", type=float, default=20.0)
    parser.add_argument("--step-size", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--start-value", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    logging.getLogger("fmimaster").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    starts = {k: float(v) for k, _, v in (text.partition("=") for text in given.start_value)}
    system = fmimaster.SystemBuilder("one")
    system.add("model", given.fmu, starts, interface="ModelExchange")

    def ours(stop: float) -> Any:
        return fmimaster.simulate(
            system.build(),
            solver="cvode",
            tolerance=TOLERANCE,
            stop_time=stop,
            step_size=given.step_size,
        )

    def theirs(stop: float) -> Any:
        return fmpy.simulate_fmu(
            given.fmu,
            fmi_type="ModelExchange",
            stop_time=stop,
            output_interval=given.step_size,
            relative_tolerance=TOLERANCE,
            start_values=starts,
            record_events=False,
        )

    stop, one_step = given.stop_time, given.step_size
    results, reference = ours(stop), theirs(stop)
    name = reference.dtype.names[1]
    apart = np.max(np.abs(results[f"model.{name}"][-1] - reference[name][-1]))
    rounds = [
        [seconds(partial(run, end)) for end in (stop, one_step) for run in (ours, theirs)]
        for _ in range(given.rounds)
    ]
    our_run, their_run, our_start, their_start = (
        1e3 * median(column) for column in zip(*rounds, strict=True)
    )
    print(
        f"{given.fmu}: fmimaster {our_run:.1f} ms (one step: {our_start:.1f}), fmpy {their_run:.1f} ms "
        f"({their_start:.1f}); ratio {our_run / their_run:.2f} (goal {GOAL}), without the run of one step "
        f"{(our_run - our_start) / (their_run - their_start):.2f}; {name} at the end differs by {apart:.1e}"
    )


if __name__ == "__main__":
    main()
