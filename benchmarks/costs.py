"""What goes on around the plain loop: decisions in Python, saved states, loading, memory."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from goals import goal
from ours import marked, measure, simulation, whole
from systems import ring

from fmimaster import Simulation, reference_path
from fmimaster.algorithms import Jacobi
from fmimaster.events.predictive import Predictive
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.instants.grid import Grid
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.run.executor import Backend
from fmimaster.steps import PredictorCorrector
from fmimaster.steps.estimator import Estimator
from fmimaster.steps.pid import PID
from fmimaster.steps.ramp import Ramp
from fmimaster.steps.step_rule import FixedStep

ROWS, OUTPUTS, INSTANCES = 1_000_000, 20, 100
STEP = Fraction(1, 50_000)


@dataclass(frozen=True)
class Cost:
    """One line of the table; the value is None where it cannot be measured yet, and the remark says why."""

    what: str
    unit: str
    goal: float
    value: float | None
    remark: str


@dataclass(frozen=True, slots=True)
class Asked(FixedStep):
    """The same steps, but the rule does not say that they follow a formula: it is asked for each."""

    def ahead(self, memory: Grid) -> None:
        """None: there is no formula."""
        del memory

    grid = ahead  # its name in older checkouts


@dataclass(frozen=True, slots=True)
class Measured(FixedStep):
    """The same steps with an error estimate that has no effect."""

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """The differences from a polynomial through the points before."""
        return (PredictorCorrector(),)


@dataclass(frozen=True, slots=True)
class Judged(Measured):
    """The same, but the rule must be asked after each step, with its error."""

    ahead = grid = Asked.ahead


@dataclass(frozen=True, slots=True)
class Halves(Jacobi):
    """Jacobi in two halves of the step."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        for begin in (0.0, 0.5):
            with p.over(begin, begin + 0.5):
                Jacobi.emit(self, plan, p)


@dataclass(frozen=True, slots=True)
class Again(Jacobi):
    """Jacobi: save all FMU states, step, restore all, and step again: as many steps as in halves."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(range(len(plan.instances)))
        Jacobi.emit(self, plan, p)
        p.restore(places)
        Jacobi.emit(self, plan, p)


def medians(repetitions: int, *runs: Callable[[], float]) -> list[float]:
    """Medians of what each returns, done in turns."""
    values: list[list[float]] = [[] for _ in runs]
    for _ in range(repetitions):
        for run, taken in zip(runs, values, strict=True):
            taken.append(run())
    return [statistics.median(v) for v in values]


def asked(repetitions: int, part: int, *, by_errors: bool) -> Cost:
    """A rule in Python that is asked for every step, over the loop without, per macro step."""
    system = ring(2, 2, steps=200_000 // part)
    silent, rule = (Measured, Judged) if by_errors else (FixedStep, Asked)
    a, b = medians(
        repetitions,
        lambda: whole(system, step_size=silent(system.step)),
        lambda: whole(system, step_size=rule(system.step)),
    )
    value = (b - a) / system.steps * 1e6
    what = "a rule in Python asked for every step, over the loop without"
    remark = "two coupled; CPU time; the rule is asked for some steps ahead"
    if by_errors:
        what = "a rule in Python that judges every step by its error, likewise"
        remark = "two coupled; CPU time; one call of the kernel for each step"
    figure = "rule judging every step" if by_errors else "rule asked for every step"
    return Cost(what, "us", goal(figure), value, remark)


def save_and_restore(repetitions: int, part: int, fmi: int) -> Cost:
    """Saving and restoring all FMU states before every step, as a multiple of the plain loop."""
    system = ring(fmi, 2, steps=300_000 // part)
    a, b = medians(
        repetitions,
        lambda: measure(system, Backend.NATIVE, algorithm=Halves(), rows=False).cpu,
        lambda: measure(system, Backend.NATIVE, algorithm=Again(), rows=False).cpu,
    )
    value = 1 + (b - a) / (a / 2)  # one saving and restoring, over one of the two steps
    remark = f"two coupled; CPU time; {(b - a) / system.steps / 2 * 1e9:.0f} ns per instance"
    what = f"save and restore around every step, FMI {fmi}.0"
    return Cost(what, "x", goal(f"save and restore, FMI {fmi}.0"), value, remark)


def chosen(repetitions: int, part: int, fmi: int) -> Cost:
    """The loop of a run that names no method over the plain one with the same steps: quarter car in split B."""
    steps = 200_000 // part

    def per_step(**named: Any) -> float:
        run = Simulation(
            reference_path(f"systems/quarter-car-b-fmi{fmi}.ssp"),
            stop_time=STEP * steps,
            step_size=STEP,
            error_estimate=False,  # the number is a run of its own
            backend=Backend.NATIVE,
            **named,
        )
        with marked() as marks:
            run.run()
        return (marks[-1] - marks[0]) / steps

    a, b = medians(repetitions, lambda: per_step(algorithm=Jacobi(), event_clock="none"), per_step)
    what = f"chosen methods instead of plain ones, FMI {fmi}.0"
    remark = f"2 FMUs of 0.4 us; CPU time; {a * 1e9:.0f} and {b * 1e9:.0f} ns per step"
    return Cost(what, "x", goal(f"chosen to plain methods, FMI {fmi}.0"), b / a, remark)


def controlled(repetitions: int, reject_above: float | None, most: float) -> Cost:
    """ECCO on the linear quarter car in split A, beside what its FMUs take, per communication step."""
    run = Simulation(
        reference_path("systems/quarter-car-a-fmi2.ssp"),
        step_size=replace(PID.ecco("0.01", smallest="0.0001"), reject_above=reject_above),
        backend=Backend.NATIVE,
    )

    def per_step() -> float:
        told = run.run().statistics
        assert told is not None
        return (told.seconds - sum(i.seconds for i in told.instances)) / told.steps

    (value,) = medians(repetitions, per_step)
    what = "ECCO" if reject_above is None else "ECCO with saved states, which rejects steps"
    remark = "quarter car, 2 FMUs, one power bond; beside the FMUs' time"
    return Cost(f"{what}, per step", "us", most, value * 1e6, remark)


def predicting(repetitions: int) -> Cost:
    """The predictive event clock on the two colliding masses, beside what their FMUs take, per communication step."""
    run = Simulation(
        reference_path("systems/two-mass-b3-fmi3.ssp"),
        algorithm=Jacobi(Polynomial(2, 2)),
        step_size=Ramp("1/1000"),
        event_clock=Predictive(),
        backend=Backend.NATIVE,
    )

    def per_step() -> float:
        told = run.run().statistics
        assert told is not None
        return (told.seconds - sum(i.seconds for i in told.instances)) / told.steps

    (value,) = medians(repetitions, per_step)
    what = "predictive event clock (PZ) on the two masses, beside the FMUs' own time"
    remark = "per coupling step of 1 ms; wall time; DoStep is measured in one step of 64"
    return Cost(what, "us", goal("PZ beside the FMUs"), value * 1e6, remark)


def loading(repetitions: int, fmi: int) -> Cost:
    """Everything but the steps: read, plan, load, instantiate, initialise, one step, end and free; per instance."""
    system = ring(fmi, INSTANCES, steps=1)

    def once() -> float:
        begin = time.perf_counter()
        simulation(system, Backend.NATIVE).run()
        return time.perf_counter() - begin

    (a,) = medians(repetitions, once)
    what = f"loading and initialising {INSTANCES} instances of one FMU, FMI {fmi}.0, each"
    remark = "with planning, one step, results and freeing"
    return Cost(what, "ms", 1.0, a / INSTANCES * 1e3, remark)


def memory() -> Cost:
    """Peak memory of a run over that of a short one, as a multiple of the recorded values."""
    what = f"memory of 1e6 rows of {OUTPUTS} outputs, over the array itself"
    if not RESET_PEAK.exists():
        return Cost(what, "x", 1.3, None, "only measured on Linux")
    value = in_a_process(f"peak({ROWS})") / (ROWS * OUTPUTS * 8)
    return Cost(what, "x", 1.3, value, "peak of the process over a run of 1000 rows")


def streaming(part: int) -> Cost:
    """How much more peak memory more rows need while they stream into a CSV file."""
    few = 100_000  # more than a block: until it is full, memory grows
    many = few + 800_000 // part
    what = "peak memory while rows stream into a file: growth over that of the array"
    if not RESET_PEAK.exists():
        return Cost(what, "x", 0.1, None, "only measured on Linux")
    a, b = (in_a_process(f"peak({n}, output_file=os.devnull)") for n in (few, many))
    value = max(b - a, 0) / ((many - few) * OUTPUTS * 8)
    remark = f"{few} rows {a / 1e6:.1f} MB, {many} rows {b / 1e6:.1f} MB of {OUTPUTS} outputs"
    return Cost(what, "x", 0.1, value, remark)


RESET_PEAK = Path("/proc/self/clear_refs")
"""Linux: "5" written to it counts the peak from here."""


def in_a_process(expression: str) -> int:
    """An integer that this module computes in a process of its own."""
    program = f"import os; from costs import peak; result = {expression}; print(); print(result)"
    folder = Path(__file__).parent
    output = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    return int(output.split()[-1])


def peak(steps: int, output_file: str | None = None) -> int:
    """How far a run of so many steps lifts the memory of this process at its peak, in bytes."""
    system = ring(2, OUTPUTS // 2, steps=1000)
    simulation(system, Backend.NATIVE).run()
    gc.collect()
    RESET_PEAK.write_text("5", encoding="utf-8")
    before = _status("VmHWM")
    results = simulation(system.of(steps), Backend.NATIVE).run(output_file=output_file)
    assert output_file or results.rows == steps + 1
    return _status("VmHWM") - before


def _status(entry: str) -> int:
    """An entry of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (x for x in lines if x.startswith(f"{entry}:"))
    return int(line.split()[1]) * 1024


def all_costs(repetitions: int, part: int) -> list[Cost]:
    """All lines."""
    return [
        *(asked(repetitions, part, by_errors=by_errors) for by_errors in (False, True)),
        predicting(repetitions),
        controlled(repetitions, None, 3.0),
        controlled(repetitions, 1.0, 6.0),
        *(save_and_restore(repetitions, part, fmi) for fmi in (2, 3)),
        *(chosen(repetitions, part, fmi) for fmi in (2, 3)),
        *(loading(repetitions, fmi) for fmi in (2, 3)),
        memory(),
        streaming(part),
    ]
