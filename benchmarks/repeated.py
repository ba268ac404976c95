"""A run of the quarter car that is repeated beside runs that are made anew and runs in C, and a fit by two of them.

    python benchmarks/repeated.py [--rounds 7] [--steps 4000 10]

CPU time of all threads of the process, both in turns, medians; each pair of runs must have the same bits. The loop is that
of the same repeated run, from its first step until its last row is handed on. The fit finds four parameters from two noisy
outputs by `scipy.optimize.least_squares`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ours import marked
from scipy.optimize import least_squares

from fmimaster import Results, Simulation, reference_path

USUAL = {"chassis.mc": 400.0, "wheel.kw": 150e3, "wheel.kc": 15e3, "wheel.dc": 1000.0}
FACTORS = [1.1, 0.9, 1.15, 0.85]
"""Of the parameters that are found."""
GOAL, GOAL_FIT = 1.5, 0.2
"""[ms] of a run beyond its loop, and [s] of the fit, on the machine on which the goals were set."""
RUNS = 20
"""Repeated runs of a round."""

Run = Callable[[Mapping[str, float]], Results]
Values = NDArray[np.float64]


def car(steps: int) -> Simulation:
    """The quarter car with so many steps of 1 ms."""
    path = reference_path("systems/quarter-car-a-fmi2.ssp")
    return Simulation(path, stop_time=f"{steps}/1000", step_size="1/1000", error_estimate=False)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time in s of the process, and what comes out."""
    begin = process_time()
    found = work()
    return process_time() - begin, found


def check_same(one: Results, other: Results) -> None:
    """Two runs must have the same bits."""
    assert one.names == other.names
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def print_runs(steps: int, rounds: int) -> None:
    """Print the times of runs of so many steps."""
    simulation, draw = car(steps), np.random.default_rng(1)
    anew, again, beyond = list[float](), list[float](), list[float]()
    with simulation.repeated(USUAL) as repeated, marked() as marks:
        repeated()
        repeated()  # preceded by a repetition of the first run
        for _ in range(rounds):
            factors = draw.uniform(0.8, 1.2, (RUNS, len(USUAL)))
            for row in factors:
                values = {
                    name: usual * f for (name, usual), f in zip(USUAL.items(), row, strict=True)
                }
                marks.clear()
                seconds, found = timed(lambda values=values: repeated(values))
                again.append(seconds)
                beyond.append(seconds - (marks[-1] - marks[0]))
            seconds, expected = timed(replace(simulation, start_values=values).run)
            check_same(found, expected)
            anew.append(seconds)
    print(
        f"{steps:5d} steps: anew {1e3 * median(anew):.1f} ms, repeated {1e3 * median(again):.2f} ms, of which beyond the "
        f"loop {1e3 * median(beyond):.2f} ms (least {1e3 * min(beyond):.2f})"
    )


def print_compiled(steps: int, rounds: int, n_runs: int) -> None:
    """Print the times of many runs in C beside the loop of runs that are repeated, in turns."""
    simulation, draw = car(steps), np.random.default_rng(2)
    loops, compiled_times = list[float](), list[float]()
    record = ["chassis.velocity", "wheel.force"]
    interval = None if n_runs <= RUNS else steps / 1000
    with (
        simulation.repeated(USUAL) as repeated,
        simulation.compiled(USUAL, record=record, output_interval=interval) as compiled,
        marked() as marks,
    ):
        repeated()
        repeated()
        for _ in range(rounds):
            factors = draw.uniform(0.8, 1.2, (n_runs, len(USUAL)))
            values = {n: u * f for (n, u), f in zip(USUAL.items(), factors.T, strict=True)}
            seconds, found = timed(lambda values=values: compiled(values))
            compiled_times.append(seconds / n_runs)
            for k in range(RUNS):
                marks.clear()
                expected = repeated({name: column[k] for name, column in values.items()})
                loops.append(marks[-1] - marks[0])
                rows = np.searchsorted(expected.time, found.time)
                assert all(found[n][k].tobytes() == expected[n][rows].tobytes() for n in record)
    print(
        f"{steps:5d} steps in C, {n_runs} runs at once: {1e3 * median(compiled_times):.4g} ms each "
        f"({n_runs * median(compiled_times):.3f} s for all), the loop of repeated ones {1e3 * median(loops):.2f} ms"
    )


def fitted(run: Run, measured: Mapping[str, Values]) -> Values:
    """The factors of the parameters, from measured outputs and how large their noise is."""

    def deviations(factors: Values) -> Values:
        results = run(dict(zip(USUAL, factors * [*USUAL.values()], strict=True)))
        return np.concatenate([(results[n] - m) / NOISE[n] for n, m in measured.items()])

    found: Values = least_squares(deviations, np.ones(4), diff_step=1e-4, x_scale="jac").x
    return found


NOISE = {"chassis.velocity": 1e-3, "wheel.force": 1.0}
"""Standard deviation of what is measured, in the units of the outputs."""


def print_fit(rounds: int) -> None:
    """Print the times of the fit."""
    simulation, draw = car(2000), np.random.default_rng(0)

    def anew(values: Mapping[str, float]) -> Results:
        return replace(simulation, start_values=values).run()

    truth = anew(dict(zip(USUAL, np.array(FACTORS) * [*USUAL.values()], strict=True)))
    measured = {n: truth[n] + draw.normal(0.0, size, truth.rows) for n, size in NOISE.items()}

    def again() -> Values:
        with simulation.repeated(USUAL) as run:
            return fitted(run, measured)

    times = list[tuple[float, float]]()
    for _ in range(rounds):
        (slow, expected), (quick, found) = timed(lambda: fitted(anew, measured)), timed(again)
        assert found.tobytes() == expected.tobytes()
        times.append((slow, quick))
    slow, quick = (median(pair[k] for pair in times) for k in range(2))
    error = np.abs(found / FACTORS - 1.0).max()
    print(
        f"fit of {len(USUAL)} parameters, 2000 steps: anew {slow:.2f} s, repeated {quick:.3f} s; same bits, at most "
        f"{100 * error:.2g} % from what was measured"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, nargs="+", default=[4000, 10])
    options: Any = parser.parse_args()
    for steps in options.steps:
        print_runs(steps, options.rounds)
    print_compiled(4000, options.rounds, RUNS)
    print_compiled(10, options.rounds, 10_000)
    print_fit(options.rounds)
    print(
        f"goals, on a machine 2.5 times as fast: {GOAL} ms beyond the loop, {GOAL_FIT} s for the fit; in C 1.1 times the "
        "loop, 0.3 s for 10 000 runs of 10 steps"
    )


if __name__ == "__main__":
    main()
