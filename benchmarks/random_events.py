"""Event methods on random systems of two masses, against the exact solution.

    python benchmarks/random_events.py [--systems 200] [--method PZ ...] [--size 0.1 ...] [--version fmi3 ...]
                                       [--number 17 ...] [--seed 9] [--processes 2] [--failures] [--beyond] [--csv FILE]

prints a row per method and step size, and how many runs are clean by the angle in rad by which the fastest mode turns in a
step. A run is *clean* if it has no missed, false or one-sided event and no exception.
An event counts as found within one step size of the exact one, and as one event of both FMUs within a tenth of it.
``--failures`` lists the runs that are not clean, each with the options that repeat it. ``--held`` takes FMUs that hold
their inputs: copies of the reference FMUs whose manifest has no input polynomial, with ``inputOrder`` 0. ``--beyond``
takes the step sizes that are too long for a system, with more than 0.7 rad in each step: nothing is expected of these runs
but that they say so.

The systems: ``conformance/random_two_mass.py``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

from fmimaster import FmimasterError, Simulation, reference_path
from fmimaster.algorithms import Algorithm, Aligned, Jacobi, Sequential, Waveform
from fmimaster.events import Check, EarlyReturn, LookAhead, Predictive
from fmimaster.events.event_clock import EventClock
from fmimaster.inputs import ADAPTIVE, Polynomial
from fmimaster.studies.demos.scoring import executions, score

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

from random_two_mass import (
    SEED,
    SIZES,
    VERSIONS,
    RandomSystem,
    held_systems,
    random_system,
)

QUINTIC = Polynomial(2, 2)
METHODS: dict[str, tuple[Algorithm, EventClock | None]] = {
    "none": (Jacobi(), None),
    "LookAhead": (Jacobi(), LookAhead()),
    "LookAhead in FMU": (Jacobi(), LookAhead(in_fmu=True)),
    "Check": (Sequential("upper"), Check()),
    "C5": (Sequential("upper", QUINTIC, synchronised=True), Check()),
    "PZ held": (Jacobi(), Predictive()),
    "PZ (1, 2)": (Jacobi(Polynomial(1, 2)), Predictive()),
    "PZ": (Jacobi(QUINTIC), Predictive()),
    "PZ adaptive": (Jacobi(ADAPTIVE), Predictive()),
    "E1": (Aligned(Jacobi(QUINTIC)), EarlyReturn()),
    "E2": (Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2), EarlyReturn()),
}
"""Names as in docs/events.md."""
MOST_LISTED = 60
"""Runs that ``--failures`` lists."""


@dataclass(frozen=True)
class Run:
    """One run, and what it came to. Times in s, errors in m."""

    method: str
    size: float
    number: int
    version: str
    events: int
    """Of the exact solution."""
    angle: float
    """[rad] By which the fastest mode turns in one step."""
    missed: int = 0
    false: int = 0
    one_sided: int = 0
    warned: int = 0
    """Number of warnings."""
    e_rms: float = 0.0
    relative: float = 0.0
    """``e_rms`` relative to the distance between the masses at rest."""
    steps: int = 0
    do_steps: int = 0
    restores: int = 0
    seconds: float = 0.0
    exception: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether all events are right."""
        return not (self.missed or self.false or self.one_sided or self.exception)

    @property
    def text(self) -> str:
        """For the list of failures."""
        repeat = f"--number {self.number} --size {self.size:g} --method '{self.method}'"
        counts = f"missed {self.missed}, false {self.false}, one-sided {self.one_sided}"
        what = self.exception or f"{counts}, warnings {self.warned}, e_rms {self.e_rms:.1e} m"
        return f"{repeat}: {self.version}, {self.angle:.2f} rad, {self.events} events: {what}"


def run(task: tuple[str, float, int], seed: int, systems: Path | None) -> Run:
    """One run."""
    method, size, number = task
    system = random_system(number, seed)
    empty = Run(
        method, size, number, system.version, len(system.exact.events), system.fastest * size
    )
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return _scored(empty, system, _simulation(empty, system, systems), begin)
        except FmimasterError as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        except Exception:
            text = f"DEFECT: {traceback.format_exc().strip().splitlines()[-1]}"
    seconds = time.perf_counter() - begin
    return Run(**{**asdict(empty), "exception": text, "seconds": seconds, "warned": len(caught)})


def _simulation(of: Run, system: RandomSystem, systems: Path | None) -> Simulation:
    algorithm, clock = METHODS[of.method]
    name = f"two-mass-b3-{system.version}.ssp"
    held = {} if systems is None else {"upper.inputOrder": 0, "lower.inputOrder": 0}
    return Simulation(
        reference_path(f"systems/{name}") if systems is None else systems / name,
        algorithm=algorithm,
        step_size=of.size,
        stop_time=system.stop_time,
        event_clock=clock,
        start_values={**system.start_values, **held},
        debug_logging=True,
    )


def _scored(empty: Run, system: RandomSystem, simulation: Simulation, begin: float) -> Run:
    with executions() as executed:
        results = simulation.run()
    seconds = time.perf_counter() - begin
    s = score(results, executed, system.exact, together=0.1 * empty.size, matching=empty.size)
    x1, _, x2, _ = system.blocks.rest()
    return Run(
        **{
            **asdict(empty),
            "missed": s.missed,
            "false": s.false,
            "one_sided": s.one_sided,
            "warned": len(results.statistics.warnings),
            "e_rms": s.e_rms,
            "relative": s.e_rms / (x1 - x2),
            "steps": s.steps,
            "do_steps": s.do_steps,
            "restores": s.restores,
            "seconds": seconds,
        }
    )


def tasks(
    methods: Sequence[str],
    sizes: Sequence[float],
    versions: Sequence[str],
    numbers: Sequence[int],
    seed: int,
    beyond: bool,
) -> Iterator[tuple[str, float, int]]:
    """All runs that shall be made."""
    for number in numbers:
        system = random_system(number, seed)
        if system.version in versions:
            chosen = [size for size in sizes if (size not in system.sizes) is beyond]
            for method in methods:
                yield from ((method, size, number) for size in chosen)


HEADER = (
    "method",
    "H in s",
    "runs",
    "clean",
    "missed",
    "false",
    "one-sided",
    "exceptions",
    "warned",
    "wrong without warning",
    "clean, but warned",
    "e_rms / gap",
    "DoStep calls",
)


def table(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: per method a row for each step size and one for all; medians in the last two columns."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    for method in METHODS:
        of_method = [r for r in runs if r.method == method]
        sizes = [size for size in SIZES if any(r.size == size for r in of_method)]
        for size in sizes:
            lines.append(_row(method, f"{size:g}", [r for r in of_method if r.size == size]))
        if len(sizes) > 1:
            short = [r for r in of_method if r.size <= 0.1]
            lines.append(_row(method, "<= 0.1", short))
            lines.append(_row(method, "all", of_method))
    return lines


def _row(method: str, size: str, runs: Sequence[Run]) -> str:
    clean = sum(r.is_clean for r in runs)
    ended = [r for r in runs if not r.exception]
    cells = (
        method,
        size,
        str(len(runs)),
        f"{clean} ({100 * clean / len(runs):.1f} %)",
        str(sum(r.missed > 0 for r in runs)),
        str(sum(r.false > 0 for r in runs)),
        str(sum(r.one_sided > 0 for r in runs)),
        str(len(runs) - len(ended)),
        str(sum(r.warned > 0 for r in runs)),
        str(sum(not r.is_clean and not r.warned for r in ended)),
        str(sum(r.is_clean and r.warned > 0 for r in runs)),
        f"{median(r.relative for r in ended):.1e}" if ended else "",
        f"{median(r.do_steps for r in ended):.0f}" if ended else "",
    )
    return "| " + " | ".join(cells) + " |"


ANGLES = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 10.5)
"""[rad] Bounds of the classes of the second table."""


def by_angle(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: clean runs in per cent, by the angle of a step, and the number of runs of each method."""
    classes = [
        (low, high) for low, high in pairwise(ANGLES) if any(low < r.angle <= high for r in runs)
    ]
    header = ("method", *(f"{low:g} to {high:g} rad" for low, high in classes))
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    count: list[str] = []
    for method in METHODS:
        of_method = [r for r in runs if r.method == method]
        if of_method:
            inside = [[r for r in of_method if low < r.angle <= high] for low, high in classes]
            count = [str(len(some)) for some in inside]
            clean = [
                f"{100 * sum(r.is_clean for r in some) / len(some):.1f} %" if some else ""
                for some in inside
            ]
            lines.append("| " + " | ".join((method, *clean)) + " |")
    lines.append("| runs of a method | " + " | ".join(count) + " |")
    return lines


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=200, help="number of systems (200)")
    parser.add_argument("--number", type=int, nargs="+", help="only these systems")
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--size", type=float, nargs="+", default=SIZES, help="step sizes in s")
    parser.add_argument("--version", nargs="+", choices=VERSIONS, default=VERSIONS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--held", action="store_true", help="FMUs that hold their inputs")
    parser.add_argument("--beyond", action="store_true", help="steps that are too long")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--failures", action="store_true", help="list runs that are not clean")
    parser.add_argument("--csv", type=Path, help="write all runs into this file")
    a = parser.parse_args()
    numbers = a.number or range(a.systems)
    with tempfile.TemporaryDirectory() as folder:
        work = partial(run, seed=a.seed, systems=held_systems(Path(folder)) if a.held else None)
        todo = tasks(a.method, a.size, a.version, numbers, a.seed, a.beyond)
        if a.processes == 1:
            runs = list(map(work, todo))
        else:
            with ProcessPoolExecutor(a.processes) as pool:
                runs = list(pool.map(work, todo, chunksize=8))
    print("\n".join([*table(runs), "", *by_angle(runs)]))
    if a.csv:
        with a.csv.open("w", newline="") as file:
            rows = csv.DictWriter(file, [f.name for f in fields(Run)])
            rows.writeheader()
            rows.writerows(map(asdict, runs))
    failed = [r for r in runs if not r.is_clean]
    if a.failures:
        print("\n" + "\n".join(r.text for r in failed[:MOST_LISTED]))
        if len(failed) > MOST_LISTED:
            print(f"... and {len(failed) - MOST_LISTED} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
