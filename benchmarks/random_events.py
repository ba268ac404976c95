"""Event methods on random systems of two masses, against the exact solution.

    python benchmarks/random_events.py [--systems 200] [--method PZ ...] [--size 0.1 ...] [--version fmi3 ...]
                                       [--number 17 ...] [--seed 9] [--processes 2] [--failures] [--beyond] [--csv FILE]

prints a row per method and step size, with the number of runs of each outcome (``conformance/outcomes.py``), and how many
runs are right by the angle in rad by which the fastest mode turns in a step. A run is right if it has no missed, false or
one-sided event. An event counts as found within one step size of the exact one, and as one event of both FMUs within a
tenth of it. ``--failures`` lists the runs that are not right, each with the options that repeat it.

``--held`` takes FMUs that hold their inputs: copies of the reference FMUs whose manifest has no input polynomial, with
``inputOrder`` 0. ``--beyond`` takes the step sizes that are too long for a system, with more than 0.7 rad in each step:
nothing is expected of these runs but that they say so.

The systems: ``conformance/random_two_mass.py``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

from fmimaster import Simulation, reference_path
from fmimaster.algorithms import Algorithm, Jacobi, Sequential
from fmimaster.events import Check, LookAhead, Predictive
from fmimaster.events.event_clock import EventClock
from fmimaster.inputs import Polynomial
from fmimaster.studies.demos.scoring import executions, score

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import outcomes
from outcomes import OUTCOMES, QUINTIC, Facts, attempt, counts, judged, markdown, report
from random_two_mass import (
    SEED,
    SIZES,
    VERSIONS,
    RandomSystem,
    held_systems,
    random_system,
)

METHODS: Mapping[str, tuple[Algorithm, EventClock | None]] = {
    "none": (Jacobi(), None),
    "LookAhead in FMU": (Jacobi(), LookAhead(in_fmu=True)),
    "Check": (Sequential("upper"), Check()),
    "C5": (Sequential("upper", QUINTIC, synchronised=True), Check()),
    "PZ (1, 2)": (Jacobi(Polynomial(1, 2)), Predictive()),
    **outcomes.METHODS,
}


@dataclass(frozen=True, kw_only=True)
class Run(outcomes.Run):
    """One run of two masses. Errors in m."""

    missed: int = 0
    false: int = 0
    one_sided: int = 0
    e_rms: float = 0.0
    relative: float = 0.0
    """``e_rms`` relative to the distance between the masses at rest."""
    steps: int = 0
    do_steps: int = 0
    restores: int = 0

    @property
    def is_right(self) -> bool:
        """Whether all events are right."""
        return self.outcome == "right"

    @property
    def has_ended(self) -> bool:
        """Whether it has reached its end."""
        return self.outcome in ("right", "warned", "silent")

    @property
    def figures(self) -> str:
        wrong = f"missed {self.missed}, false {self.false}, one-sided {self.one_sided}"
        return f"{self.events} events: {wrong}, e_rms {self.e_rms:.1e} m"


def run(task: tuple[str, float, int], seed: int, limit: float, systems: Path | None) -> Run:
    """One run, in a process of its own."""
    method, size, number = task
    system = random_system(number, seed)
    planned = Run(
        method=method,
        size=size,
        number=number,
        version=system.version,
        events=len(system.exact.events),
        angle=system.fastest * size,
    )
    return replace(planned, **attempt(partial(_facts, planned, system, systems), limit))


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


def _facts(of: Run, system: RandomSystem, systems: Path | None) -> Facts:
    simulation = _simulation(of, system, systems)
    with executions() as executed:
        results = simulation.run()
    s = score(results, executed, system.exact, together=0.1 * of.size, matching=of.size)
    x1, _, x2, _ = system.blocks.rest()
    return judged(not (s.missed or s.false or s.one_sided), results) | {
        "missed": s.missed,
        "false": s.false,
        "one_sided": s.one_sided,
        "e_rms": s.e_rms,
        "relative": s.e_rms / (x1 - x2),
        "steps": s.steps,
        "do_steps": s.do_steps,
        "restores": s.restores,
    }


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
    *("method", "H in s", "runs", *OUTCOMES, "missed", "false", "one-sided"),
    *("right, but warned", "e_rms / gap", "DoStep calls"),
)


def table(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: per method a row for each step size and one for all; medians in the last two columns."""
    rows = []
    for method in METHODS:
        of_method = [r for r in runs if r.method == method]
        sizes = [size for size in SIZES if any(r.size == size for r in of_method)]
        for size in sizes:
            rows.append(_row(method, f"{size:g}", [r for r in of_method if r.size == size]))
        if len(sizes) > 1:
            rows.append(_row(method, "<= 0.1", [r for r in of_method if r.size <= 0.1]))
            rows.append(_row(method, "all", of_method))
    return markdown(HEADER, rows)


def _row(method: str, size: str, runs: Sequence[Run]) -> Sequence[str]:
    ended = [r for r in runs if r.has_ended]
    return (
        *(method, size, *counts(runs)),
        str(sum(r.missed > 0 for r in runs)),
        str(sum(r.false > 0 for r in runs)),
        str(sum(r.one_sided > 0 for r in runs)),
        str(sum(r.is_right and r.warnings > 0 for r in runs)),
        f"{median(r.relative for r in ended):.1e}" if ended else "",
        f"{median(r.do_steps for r in ended):.0f}" if ended else "",
    )


ANGLES = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 10.5)
"""[rad] Bounds of the classes of the second table."""


def by_angle(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: right runs in per cent, by the angle of a step, and the number of runs of each method."""
    classes = [
        (low, high) for low, high in pairwise(ANGLES) if any(low < r.angle <= high for r in runs)
    ]
    rows: list[Sequence[str]] = []
    count: list[str] = []
    for method in METHODS:
        of_method = [r for r in runs if r.method == method]
        if of_method:
            inside = [[r for r in of_method if low < r.angle <= high] for low, high in classes]
            count = [str(len(some)) for some in inside]
            right = [
                f"{100 * sum(r.is_right for r in some) / len(some):.1f} %" if some else ""
                for some in inside
            ]
            rows.append((method, *right))
    header = ("method", *(f"{low:g} to {high:g} rad" for low, high in classes))
    return markdown(header, [*rows, ("runs of a method", *count)])


def main() -> int:
    """Print the table."""
    parser = outcomes.parser(__doc__, 200, SEED, METHODS, size=SIZES, version=VERSIONS)
    parser.add_argument("--held", action="store_true", help="FMUs that hold their inputs")
    parser.add_argument("--beyond", action="store_true", help="steps that are too long")
    parser.add_argument("--processes", type=int, default=1)
    a = parser.parse_args()
    numbers = a.number or range(a.systems)
    with tempfile.TemporaryDirectory() as folder:
        systems = held_systems(Path(folder)) if a.held else None
        work = partial(run, seed=a.seed, limit=a.limit, systems=systems)
        todo = tasks(a.method, a.size, a.version, numbers, a.seed, a.beyond)
        if a.processes == 1:
            runs = list(map(work, todo))
        else:
            with ProcessPoolExecutor(a.processes) as pool:
                runs = list(pool.map(work, todo, chunksize=8))
    report(runs, [*table(runs), "", *by_angle(runs)], a)
    return 0


if __name__ == "__main__":
    sys.exit(main())
