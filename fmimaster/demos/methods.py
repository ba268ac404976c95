"""Ways to bring the two masses through their collisions, side by side: the benchmark of events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import pi

from fmimaster.algorithms import Algorithm, Aligned, AutomaticSequence, Jacobi, Sequential, Waveform
from fmimaster.control.event_clock import Check, EarlyReturn, EventClock
from fmimaster.control.look_ahead import LookAhead
from fmimaster.control.predictive import Predictive
from fmimaster.demos.scoring import Found, Score, events_of, executions, score
from fmimaster.demos.two_mass import TwoMassReference, Wall
from fmimaster.program.polynomial import Polynomial
from fmimaster.reference_files import reference_path
from fmimaster.results.results import Results
from fmimaster.simulation import Simulation

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
    # own motions of the walls: the paper does not give them; with these its switching instants come out
    "b2": Benchmark(7.0, Wall(-0.554, 0.554, 4.255, pi / 2), Wall(-13.823, 1.024, 3.462, 2.9)),
    "b3": Benchmark(20.0),
}


@dataclass(frozen=True, slots=True)
class Method:
    """A line of the table."""

    name: str
    benchmark: str
    size: float
    """Step size in s."""
    algorithm: Algorithm
    clock: EventClock | None
    paper: str
    """What a paper says of it; of methods that are ours, what a prototype without FMUs has reached."""
    figure: str = ""
    """Which figure of a paper shows it."""


_DEJACO = (Sequential("upper"), Check())
_E2 = Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2)

METHODS: tuple[Method, ...] = (
    Method("plain Jacobi", "b3", 0.01, Jacobi(), None, "Tischer: 0.07, 2000 steps"),
    Method("plain Jacobi", "b3", 0.08, Jacobi(), None, "Tischer: 3.65, 250 steps"),
    Method("LookAhead", "b3", 0.08, Jacobi(), LookAhead(), "Tischer: 0.12, 282 steps"),
    Method("Dejaco I-V", "b1", 0.1, *_DEJACO, "Dejaco Fig. 4: trends identical", "Fig. 4"),
    Method("Dejaco I-V", "b1", 0.3, *_DEJACO, "Dejaco Fig. 5: totally wrong", "Fig. 5"),
    Method(
        "Dejaco I-V, automatic sequence",
        "b2",
        0.05,
        AutomaticSequence(),
        Check(),
        "Dejaco Fig. 6: sequence switched at 2.4, 3.55 and 4.75 s",
        "Fig. 6",
    ),
    Method("Dejaco I-V", "b3", 0.1, *_DEJACO, "own prototype: 0.34, 212 steps"),
    Method(
        "C5: I-V, quintic, synchronised",
        "b3",
        0.1,
        Sequential("upper", QUINTIC, synchronised=True),
        Check(),
        "own prototype: 3.9e-4, 212 steps",
    ),
    Method(
        "PZ: predictive",
        "b3",
        0.1,
        Jacobi(QUINTIC),
        Predictive(),
        "own prototype: 6.8e-5, 256 steps",
    ),
    Method("E2: early return", "b3", 0.2, _E2, EarlyReturn(), "own prototype: 5.1e-5, 106 steps"),
    Method("E2: early return", "b3", 0.08, _E2, EarlyReturn(), "own prototype: 7.7e-8, 256 steps"),
)
"""A method is one line here."""
SHOWN = METHODS[-3]
"""The one whose table is written."""


@dataclass(frozen=True, slots=True)
class MethodRun:
    """A method, and what it came to."""

    method: Method
    results: Results
    score: Score
    events: tuple[Found, ...]
    """As the FMUs have logged them."""


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


HEADER = (
    "method",
    "system",
    "H in s",
    "e_rms in m",
    "e_max in m",
    "steps",
    "doSteps",
    "restores",
    "missed/false/one-sided",
    "paper",
)


def table(runs: Iterable[MethodRun]) -> list[tuple[str, ...]]:
    """The rows of the table, with the header."""
    return [HEADER, *map(_row, runs)]


def _row(run: MethodRun) -> tuple[str, ...]:
    m, s = run.method, run.score
    return (
        m.name,
        m.benchmark.upper(),
        f"{m.size:g}",
        f"{s.e_rms:.2g}",
        f"{s.e_max:.2g}",
        str(s.steps),
        str(s.do_steps),
        str(s.restores),
        f"{s.missed}/{s.false}/{s.one_sided}",
        m.paper,
    )
