"""Event methods on random systems with events of several kinds, against the exact solution.

    python conformance/event_kinds.py [--systems 6] [--kind table ...] [--method PZ ...] [--size 0.1 ...]
                                      [--version fmi3 ...] [--number 3 ...] [--seed 28] [--failures] [--show]
                                      [--save FOLDER] [--csv FILE]

prints a row per kind and method, with the number of runs of each outcome (``outcomes.py``). A run is right if every unit
has executed the right events, each within a quarter of a step, and the states at the end are right to 1 % of their
ranges.

``--failures`` lists runs that are not right, each with the options that repeat it; ``--show`` prints the events of each
run beside the exact ones, and ``--save`` keeps the FMUs. Events are counted by the units themselves, so the outcome does
not depend on what the importer says of them.

The systems: ``hybrid_kinds.py``, ``random_kinds.py``. The exact solution: ``exact_hybrid.py``. The FMUs:
``fmus/HybridLinear``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "fmus"))

import outcomes
from exact_hybrid import Execution
from hybrid_kinds import KINDS
from hybrid_writer import Variant, write_fmu
from outcomes import OUTCOMES, Facts, attempt, counts, judged, markdown, report
from random_kinds import SEED, SIZES, VERSIONS, Case, random_case

from fmimaster import Results, Simulation, SimulationError, SystemBuilder, reference_path
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.events import NoEventClock
from fmimaster.events.event_clock import EventClock
from fmimaster.steps import Locate
from fmimaster.system.description import SystemDescription

PLAIN, UNASKED, LOCATE = "plain", "unasked", "Locate"
METHODS: Mapping[str, tuple[Algorithm | None, EventClock | None]] = {
    PLAIN: (Jacobi(), NoEventClock()),
    UNASKED: (None, None),
    **outcomes.METHODS,
    LOCATE: (GaussSeidel(), None),
}
"""``plain`` has no event clock, and held inputs; ``unasked`` is a run with a step size and no other option. ``Locate`` is
for units without a manifest whose Boolean outputs are connected."""
PART = 0.25
"""Of a step: largest time difference of an event from the exact one."""
ERROR = 1e-2
"""Largest error of a state at the end, relative to its range."""


class Task(NamedTuple):
    """A run that shall be made."""

    method: str
    size: float
    kind: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Run(outcomes.Run):
    """One run of a system of some kind."""

    kind: str
    held: bool
    found: int = 0
    wrong: int = 0
    """Executions that are missing, too many, or at a wrong time."""
    late: float = 0.0
    """Largest time difference of an execution, relative to the step size."""
    error: float = 0.0
    """Largest error of a state at the end, relative to its range."""

    @property
    def options(self) -> str:
        return f"--kind '{self.kind}' {super().options}"

    @property
    def figures(self) -> str:
        inputs = "held" if self.held else "polynomial"
        counted = f"{self.found} of {self.events} events, {self.wrong} wrong"
        return f"{inputs}: {counted}, late {self.late:.1e} H, error {self.error:.1e}"


# Systems


def build(
    case: Case, folder: Path, variant: Variant, *, by_boolean: bool = False
) -> SystemDescription:
    """The description of the system; its FMUs are written into the folder."""
    system = SystemBuilder(case.kind)
    for k, (name, unit) in enumerate(case.system.units.items()):
        fmi = {"me2": "fmi2", "me3": "fmi3", "mixed": ("fmi2", "fmi3")[k % 2]}.get(
            case.version, case.version
        )
        template = reference_path(f"{fmi}/HybridLinear.fmu")
        is_exchange = case.version.startswith("me")
        its = replace(variant, polynomial=variant.polynomial and not is_exchange)
        path = write_fmu(folder / f"{name}.fmu", unit, template, its)
        system.add(name, path, interface="ModelExchange" if is_exchange else "CoSimulation")
    for target, source in case.system.connections.items():
        own, name = target.split(".")
        if name in case.system.units[own].input_names:
            output = case.system.booleans.get(source, source) if by_boolean else source
            system.connect(output, target)
    for name, members in case.system.shared.items() if variant.manifest else ():
        system.share_event(name, *(f"{unit}.{event}" for unit, event in members))
    return system.build(stop_time=case.stop_time)


def simulation(case: Case, task: Task, folder: Path, variant: Variant) -> Simulation:
    """The run, by public options."""
    algorithm, clock = METHODS[task.method]
    is_located = task.method == LOCATE
    own = replace(variant, polynomial=variant.polynomial and not case.is_held)
    if is_located:
        own = Variant(polynomial=False, manifest=False, trigger=False)
    description = build(case, folder, own, by_boolean=is_located)
    if algorithm is None:
        return Simulation(description, step_size=task.size)
    step = Locate(task.size) if is_located else task.size
    return Simulation(description, algorithm=algorithm, step_size=step, event_clock=clock)


# Scores


def executed(case: Case, results: Results) -> list[tuple[Execution, float]]:
    """The events that the units have counted, and the times in s at which others can see their effect first.

    An event of inputs that have jumped is executed at the start of a step; others see it at the end. Of several events of
    one name in a step, only the time of the last is known.
    """
    found = []
    for name, unit in case.system.units.items():
        for event in unit.events:
            counts, when = (
                np.asarray(results[f"{name}.{event.name}.{c}"]) for c in ("count", "when")
            )
            for row in np.flatnonzero(np.diff(counts, prepend=0)):
                more = int(counts[row] - (counts[row - 1] if row else 0))
                one = Execution(float(when[row]), name, event.name)
                found += [(one, float(results.time[row]))] * more
    return sorted(found)


def score(case: Case, size: float, results: Results) -> Facts:
    """Fields of a run."""
    found = executed(case, results)
    pairs = sorted(
        (min(abs(f.time - e.time), abs(seen - e.time)), i, k)
        for i, (f, seen) in enumerate(found)
        for k, e in enumerate(case.exact.events)
        if f[1:] == e[1:]
    )
    of_found, of_exact, late = set[int](), set[int](), 0.0
    for difference, i, k in pairs:
        if difference <= PART * size and i not in of_found and k not in of_exact:
            of_found.add(i)
            of_exact.add(k)
            late = max(late, difference / size)
    wrong = len(found) + len(case.exact.events) - len(of_found) - len(of_exact)
    errors = [0.0]
    for name, value in case.exact.final.items():
        unit, state = name.split(".")
        if state in case.system.units[unit].outputs and case.exact.ranges[name] > 0.0:
            errors.append(abs(float(results[name][-1]) - value) / case.exact.ranges[name])
    error = max(errors)
    numbers = {"found": len(found), "wrong": wrong, "late": late, "error": error}
    return judged(wrong == 0 and error <= ERROR, results) | numbers


def run(
    task: Task, *, seed: int, limit: float, variant: Variant, folder: Path | None, shows: bool
) -> Run:
    """One run, in a process of its own."""
    case = random_case(task.kind, task.number, seed)
    planned = Run(
        **task._asdict(),
        version=case.version,
        held=case.is_held,
        angle=case.exact.fastest * task.size,
        events=len(case.exact.events),
    )
    return replace(planned, **attempt(partial(_facts, case, task, variant, folder, shows), limit))


def _facts(case: Case, task: Task, variant: Variant, folder: Path | None, shows: bool) -> Facts:
    with tempfile.TemporaryDirectory() as temporary:
        try:
            results = simulation(case, task, folder or Path(temporary), variant).run()
        except SimulationError as error:
            if shows and error.results is not None:
                show(case, error.results)
            raise
    if shows:
        show(case, results)
    return score(case, task.size, results)


def show(case: Case, results: Results) -> None:
    """Print the events of a run and of the exact solution."""
    rows = [(e, "exact") for e in case.exact.events] + [
        (e, f"run, seen at {seen:.12g}") for e, seen in executed(case, results)
    ]
    for execution, what in sorted(rows):
        print(f"{execution.time:17.12f} {execution.unit}.{execution.event:12} {what}")
    for text in results.statistics.warnings:
        print(f"warning: {text}")
    print(results.statistics)


# Tables


def tasks(a: argparse.Namespace) -> Iterator[Task]:
    """All runs that shall be made."""
    for kind in a.kind:
        for number in a.number or range(a.systems):
            case = random_case(kind, number, a.seed)
            if case.version not in a.version:
                continue
            for method in a.method:
                if method != LOCATE or case.system.booleans:
                    yield from (
                        Task(method, size, kind, number) for size in case.sizes if size in a.size
                    )


HEADER = ("kind", "method", "runs", *OUTCOMES, "error", "CPU in s")


def table(runs: Sequence[Run]) -> list[str]:
    """A Markdown table: a row per kind and method, and one per method; medians in the last columns."""
    kinds = [kind for kind in KINDS if any(r.kind == kind for r in runs)]
    rows = [row for kind in kinds for row in _rows(kind, [r for r in runs if r.kind == kind])]
    return markdown(HEADER, [*rows, *(_rows("all", runs) if len(kinds) > 1 else [])])


def _rows(kind: str, runs: Sequence[Run]) -> Iterator[Sequence[str]]:
    for method in METHODS:
        some = [r for r in runs if r.method == method]
        if some:
            ended = [r.error for r in some if r.outcome in ("right", "warned", "silent")]
            error = f"{median(ended):.1e}" if ended else ""
            yield kind, method, *counts(some), error, f"{median(r.seconds for r in some):.2f}"


def main() -> int:
    """Print the table."""
    parser = outcomes.parser(
        __doc__, 6, SEED, METHODS, kind=tuple(KINDS), size=SIZES, version=VERSIONS
    )
    parser.add_argument("--without-states", action="store_true", help="FMUs without FMU states")
    parser.add_argument(
        "--without-triggers", action="store_true", help="FMUs execute events themselves"
    )
    parser.add_argument("--show", action="store_true", help="print the events of each run")
    parser.add_argument("--save", type=Path, help="write the FMUs of the last run into this folder")
    a = parser.parse_args()
    variant = Variant(states=not a.without_states, trigger=not a.without_triggers)
    if a.save:
        a.save.mkdir(parents=True, exist_ok=True)
    work: Callable[[Task], Run] = partial(
        run, seed=a.seed, limit=a.limit, variant=variant, folder=a.save, shows=a.show
    )
    runs = [work(task) for task in tasks(a)]
    report(runs, table(runs), a)
    return 0


if __name__ == "__main__":
    sys.exit(main())
