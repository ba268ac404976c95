"""What fmimaster must reach, one figure a line; and how one is measured, on any checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

PREAMBLE = """
import sys
from pathlib import Path
import fmimaster
assert Path(fmimaster.__file__).is_relative_to(sys.argv[1]), fmimaster.__file__
from fmimaster.run.choice import native_executor
assert native_executor() is not None, "the kernel is not built"
import costs, hybrid, sizes, systems, threads
truck, part = Path(sys.argv[2]), int(sys.argv[3])
"""
"""What the expression of a figure can use."""


@dataclass(frozen=True)
class Figure:
    """One number.

    Attributes
    ----------
    expression : str
        Over :data:`PREAMBLE`; ``part`` in it is 1, and 10 if it shall be quick.
    goal : float or None
        The largest value that is good, or the smallest where `more_is_better`.
    """

    name: str
    unit: str
    expression: str
    goal: float | None = None
    more_is_better: bool = False

    def reached(self, value: float) -> bool | None:
        """Whether a value is good; None without a goal."""
        if self.goal is None:
            return None
        return value >= self.goal if self.more_is_better else value <= self.goal

    def goal_text(self) -> str:
        """The goal for a table."""
        return "" if self.goal is None else f"{'>=' if self.more_is_better else '<='} {self.goal:g}"


RING_GOALS = {"tiny": (1.4, 1.3, 1.25), "Dahlquist": (1.25, 1.18, 1.2)}
"""Most times the C limit that rings of 2, 10 and 100 FMUs of a kind may take."""


@dataclass(frozen=True)
class Conditions:
    """How figures are measured."""

    truck: Path | None = None
    is_quick: bool = False

    def allow(self, figure: Figure) -> bool:
        """Whether the FMUs of a figure are there."""
        return self.truck is not None or "truck" not in figure.expression


def measured(checkout: Path, figure: Figure, conditions: Conditions) -> float:
    """The value of a figure, by a new process that has a checkout first on its path."""
    truck = (conditions.truck or Path()).resolve()
    done = subprocess.run(
        [
            *(sys.executable, "-c", f"{PREAMBLE}\nprint()\nprint({figure.expression})\n"),
            *(str(checkout), str(truck), "10" if conditions.is_quick else "1"),
        ],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{HERE}"},
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise SystemExit(f"{figure.name} on {checkout}:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def _rings() -> Iterator[Figure]:
    for name, goals in RING_GOALS.items():
        for place, n in enumerate((2, 10, 100)):
            for fmi in (2, 3):
                yield Figure(
                    f"{name} ring of {n}, FMI {fmi}.0, to the C limit",
                    "x",
                    f"sizes.over_the_limit(systems.sized_ring({fmi}, {place}, part, systems.{name.upper()}))",
                    goals[place],
                )


def _rings_in_new_memory() -> Iterator[Figure]:
    for place, n in enumerate((2, 10, 100)):
        system = f"systems.sized_ring(2, {place}, part, systems.TINY)"
        expression = f"sizes.over_the_limit({system}, new_memory=True)"
        yield Figure(f"tiny ring of {n} to a limit in new memory", "x", expression)


def _threads() -> Iterator[Figure]:
    two = "threads.two_threads(7, 100).value"
    yield Figure("two threads, DoStep 2 us", "x faster", two, 1.6, more_is_better=True)
    for steps, name in ((1, "10 ns"), (100, "2 us"), (5000, "100 us")):
        yield Figure(
            f"threads=0 to one thread, DoStep {name}",
            "x faster",
            f"threads.automatic(7, {steps}).value",
            0.97,
            more_is_better=True,
        )


FIGURES = (
    *_rings(),
    Figure(
        "quarter truck, 20 s, to the C limit",
        "x",
        "sizes.over_the_limit(systems.quarter_truck(truck, 20_000 // part), 5)",
        1.05,
    ),
    Figure("rule asked for every step", "us", "costs.asked(5, part, by_errors=False).value", 1.5),
    Figure("rule judging every step", "us", "costs.asked(5, part, by_errors=True).value", 1.0),
    Figure("PZ beside the FMUs", "us", "costs.predicting(9).value", 0.8),
    Figure("plan and load 1000 instances", "s", "sizes.planning(1000 // part)", 0.2),
    Figure("plan and load 4000 instances", "s", "sizes.planning(4000 // part)", 0.8),
    Figure("peak memory of 1e7 rows of 4", "x", "sizes.memory(10_000_000 // part)", 1.25),
    Figure("write 1e6 rows of 4 as CSV", "s", "sizes.csv_written(1_000_000 // part)", 0.5),
    Figure("read 1e6 rows of 4 from CSV", "s", "sizes.csv_read(1_000_000 // part)", 0.3),
    *_threads(),
    Figure("prepare 100 000 outputs", "s", "sizes.prepared(100_000 // part)", 2.5),
    Figure("validate 100 000 outputs", "s", "sizes.validated(100_000 // part)", 3.0),
    Figure("fmimaster --version", "s", "sizes.version()", 0.2),
    Figure("fmimaster info", "s", "sizes.info()", 0.35),
    Figure("fmimaster simulate, 1000 steps", "s", "sizes.simulate()", 0.4),
    *(
        Figure(
            f"chosen to plain methods, FMI {fmi}.0", "x", f"costs.chosen(9, part, {fmi}).value", 1.1
        )
        for fmi in (2, 3)
    ),
    Figure("save and restore, FMI 2.0", "x", "costs.save_and_restore(9, part, 2).value", 1.3),
    Figure("save and restore, FMI 3.0", "x", "costs.save_and_restore(9, part, 3).value", 1.3),
    # without a goal of their own
    *_rings_in_new_memory(),
    Figure("ECCO", "us", "costs.controlled(9, None, 3.0).value"),
    Figure("info of 100 000 outputs", "s", "sizes.info_of_many(100_000 // part)"),
    Figure("run of 1e7 rows of 4, per row", "s", "sizes.loop_per_row(10_000_000 // part)"),
)
"""CPU times in s, us per communication step, and ratios."""


def goal(name: str) -> float:
    """The goal of a figure."""
    return next(f.goal for f in FIGURES if f.name == name and f.goal is not None)
