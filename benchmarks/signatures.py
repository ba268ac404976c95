"""The signature method on random systems of eight and ten FMUs: how many random sequences are better than its choice.

    python benchmarks/signatures.py [--random N] [UNITS ...]

The systems are linear, strongly coupled, with feed-through and without algebraic loops, of LinearSystem.fmu in Euler steps.
The real error is that against the same Euler steps of the whole system. Steps 1 to 5 of the method only: nothing is
verified. A system takes some ten seconds.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "fmus"))
from linear_system import LinearSystem
from linear_writer import write_fmu

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.studies.optimization import SequenceSearch, Signature
from fmimaster.studies.optimization.trial import SimulationTrial, relative_error, rms

MICRO, PARTS, STEPS = 1e-3, 10, 300
"""Euler step in s, Euler steps in a step of the run, steps."""
EQUAL = 1e-9
"""Errors that agree so far are the same."""


def random_system(count: int, seed: int) -> tuple[list[LinearSystem], dict[tuple[int, int], int]]:
    """Units, and for each input (unit, number) the unit that feeds it: a ring, and eight to ten connections more."""
    random = np.random.default_rng(seed)
    links = [((k + 1) % count, k) for k in range(count)]
    others = [(i, k) for i in range(count) for k in range(count) if k not in (i, (i - 1) % count)]
    links += [others[n] for n in random.choice(len(others), count - 2, replace=False)]
    fed: dict[tuple[int, int], int] = {}
    for target, source in links:
        fed[target, sum(t == target for t, _ in fed)] = source
    units = []
    for i in range(count):
        inputs, rate = sum(t == i for t, _ in fed), random.uniform(1.0, 8.0)
        # feed-through along the names only: there is no loop
        direct = [random.random() < 0.4 and fed[i, n] < i for n in range(inputs)]
        units.append(
            LinearSystem(
                a=[[-rate, rate], [-rate, -rate]],
                b=random.normal(size=(2, inputs)) * rate / np.sqrt(inputs),
                c=random.normal(size=(1, 2)) / 2,
                d=[np.where(direct, random.uniform(-0.5, 0.5, inputs), 0.0)],
                e=random.normal(size=2) * 5,
                micro_step=MICRO,
            )
        )
    return units, fed


def exact(units: list[LinearSystem], fed: dict[tuple[int, int], int]) -> np.ndarray:
    """Outputs by Euler steps of the whole system, shape (STEPS + 1, units)."""
    x, rows = [np.zeros(2) for _ in units], []
    y = np.zeros(len(units))
    for n in range(STEPS * PARTS + 1):
        inputs = []
        for i, unit in enumerate(units):  # in the order of feed-through
            u = np.array([y[fed[i, k]] for k in range(unit.b.shape[1])])
            y[i] = (unit.c @ x[i] + unit.d @ u)[0]
        for i, unit in enumerate(units):
            inputs.append(np.array([y[fed[i, k]] for k in range(unit.b.shape[1])]))
        if n % PARTS == 0:
            rows.append(y.copy())
        x = [
            s + MICRO * (unit.a @ s + unit.b @ u + unit.e)
            for s, u, unit in zip(x, inputs, units, strict=True)
        ]
    return np.array(rows)


def line(count: int, seed: int, compared: int, template: Path, folder: Path) -> str:
    """What the method comes to on one system."""
    units, fed = random_system(count, seed)
    names = [f"S{k:02}" for k in range(count)]
    builder = SystemBuilder("random")
    for name, unit in zip(names, units, strict=True):
        builder.add(name, write_fmu(folder / f"{name}.fmu", unit, template))
    for (target, number), source in fed.items():
        builder.connect(f"{names[source]}.y1", f"{names[target]}.u{number + 1}")
    size = MICRO * PARTS
    simulation = Simulation(builder.build(stop_time=STEPS * size), step_size=size)
    search = SequenceSearch(simulation, Signature(verified=0))
    begin = time.perf_counter()
    chosen = search.run().candidates[0].sequence
    seconds = time.perf_counter() - begin
    real = exact(units, fed)

    def error(sequence: tuple[str, ...]) -> float:
        rows = search.runs(SimulationTrial(sequence))
        return np.inf if rows is None else relative_error(rows, real, rms(real))

    least, random = error(chosen), np.random.default_rng(seed)
    errors = np.array([error(tuple(random.permutation(names).tolist())) for _ in range(compared)])
    better = np.sum(errors < least * (1 - EQUAL))
    return (
        f"{count} units, {len(search.groups.arcs)} connections: error {least:.3g}; {better} of {compared} random sequences "
        f"are better, the median is {np.median(errors) / least:.3g} times as large; {seconds:.1f} s"
    )


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser()
    parser.add_argument("units", nargs="*", type=int, default=[8, 8, 10, 10])
    parser.add_argument("--random", type=int, default=250, help="sequences to compare with")
    arguments = parser.parse_args()
    logging.getLogger("fmimaster").setLevel(logging.ERROR)
    template = reference_path("fmi3/LinearSystem.fmu")
    for seed, count in enumerate(arguments.units):
        with tempfile.TemporaryDirectory() as folder:
            print(line(count, seed, arguments.random, template, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
