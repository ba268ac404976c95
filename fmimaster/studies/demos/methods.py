"""Methods that simulate the collisions of the two masses, side by side: the benchmark of events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import pi

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.sequential import AutomaticSequence, Sequential
from fmimaster.algorithms.waveform import Waveform
from fmimaster.algorithms.wrapper import Aligned
from fmimaster.base.installation import reference_path
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.results.results import Results
from fmimaster.studies.demos.scoring import Found, Score, events_of, executions, score
from fmimaster.studies.demos.two_mass import TwoMassReference, Wall

QUINTIC = Polynomial(2, 2)
"""Through values and two derivatives at the last two communication points."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A version of the two masses."""

    stop_time: float
    """[s]"""
    ceiling: Wall = Wall()
    floor: Wall | None = None


BENCHMARKS = {
    "b1": Benchmark(7.0),
    # the paper does not give the motions of the walls; these reproduce its switching instants
    "b2": Benchmark(7.0, Wall(-0.554, 0.554, 4.255, pi / 2), Wall(-13.823, 1.024, 3.462, 2.9)),
    "b3": Benchmark(20.0),
}


@dataclass(frozen=True, slots=True)
class Method:
    """A line of the table."""

    words: str
    short: str
    """The name in papers and in docs/events.md."""
    benchmark: str
    size: float
    """Step size in s."""
    algorithm: Algorithm
    clock: EventClock | None
    paper: str = ""
    """The value in a paper: the error in m and, in brackets, the number of steps; or its figure."""
    prototype: str = ""
    """The result of our own earlier prototype without FMUs."""

    @property
    def name(self) -> str:
        """Its description and its short name."""
        return f"{self.words} ({self.short})"

    @property
    def is_drawn(self) -> bool:
        """Whether the paper has a figure of it."""
        return "Fig." in self.paper


_GRID = ("steps on a grid", "plain Jacobi")
_CHECKED = ("sequential, events checked", "I-V")
_DEJACO = (Sequential("upper"), Check())
_EARLY = ("early return, two sweeps", "E2")
_E2 = (Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2), EarlyReturn())

METHODS: tuple[Method, ...] = (
    Method(*_GRID, "b3", 0.01, Jacobi(), None, "0.07 (2000)"),
    Method(*_GRID, "b3", 0.08, Jacobi(), None, "3.65 (250)"),
    Method("look-ahead to events", "LookAhead", "b3", 0.08, Jacobi(), LookAhead(), "0.12 (282)"),
    Method(*_CHECKED, "b1", 0.1, *_DEJACO, "Fig. 4"),
    Method(*_CHECKED, "b1", 0.3, *_DEJACO, "Fig. 5"),
    Method(
        "automatic sequence, checked", "I-V", "b2", 0.05, AutomaticSequence(), Check(), "Fig. 6"
    ),
    Method(*_CHECKED, "b3", 0.1, *_DEJACO, prototype="0.34 (212)"),
    Method(
        "sequential, quintic inputs",
        "C5",
        "b3",
        0.1,
        Sequential("upper", QUINTIC, synchronised=True),
        Check(),
        prototype="3.9e-4 (212)",
    ),
    Method(
        "predicted zero crossings",
        "PZ",
        "b3",
        0.1,
        Jacobi(QUINTIC),
        Predictive(),
        prototype="6.8e-5 (256)",
    ),
    Method(*_EARLY, "b3", 0.2, *_E2, prototype="5.1e-5 (106)"),
    Method(*_EARLY, "b3", 0.08, *_E2, prototype="7.7e-8 (256)"),
)
"""All methods, one per line."""
SHOWN = METHODS[-3]
"""The one whose table is written."""


@dataclass(frozen=True, slots=True)
class MethodRun:
    """A method, its results and its score."""

    method: Method
    results: Results
    score: Score
    events: tuple[Found, ...]
    """Events logged by the FMUs."""


@cache
def exact_solution(benchmark: str) -> TwoMassReference:
    """The exact solution of a benchmark."""
    b = BENCHMARKS[benchmark]
    return TwoMassReference(b.stop_time, b.ceiling, b.floor)


def run_method(method: Method, version: str = "mixed") -> MethodRun:
    """Run a method on the FMUs of a version: ``"fmi2"``, ``"fmi3"`` or ``"mixed"``."""
    simulation = Simulation(
        reference_path(f"systems/two-mass-{method.benchmark}-{version}.ssp"),
        algorithm=method.algorithm,
        step_size=method.size,
        stop_time=BENCHMARKS[method.benchmark].stop_time,
        event_clock=method.clock,
        debug_logging=True,
    )
    with executions() as executed:
        results = simulation.run()
    scored = score(results, executed, exact_solution(method.benchmark))
    return MethodRun(method, results, scored, tuple(events_of(executed)))


def errors_table(runs: Iterable[MethodRun]) -> list[tuple[str, ...]]:
    """Errors of the methods, beside values of papers; the first two rows are the header."""
    return [
        ("method", "system", "H", "RMS", "max", "steps", "paper:", "earlier:"),
        ("", "", "in s", "in m", "in m", "", "RMS (steps)", "RMS (steps)"),
        *(
            (
                r.method.name,
                r.method.benchmark.upper(),
                f"{r.method.size:g}",
                f"{r.score.e_rms:.2g}",
                f"{r.score.e_max:.2g}",
                str(r.score.steps),
                r.method.paper,
                r.method.prototype,
            )
            for r in runs
        ),
    ]


def costs_table(runs: Iterable[MethodRun]) -> list[tuple[str, ...]]:
    """Costs and wrong events of the methods; the first two rows are the header."""
    return [
        ("method", "system", "H", "steps", "steps", "states", "missed", "false", "one-sided"),
        ("", "", "in s", "", "of FMUs", "restored", "events", "events", "events"),
        *(
            (
                r.method.name,
                r.method.benchmark.upper(),
                f"{r.method.size:g}",
                str(r.score.steps),
                str(r.score.do_steps),
                str(r.score.restores),
                str(r.score.missed),
                str(r.score.false),
                str(r.score.one_sided),
            )
            for r in runs
        ),
    ]
