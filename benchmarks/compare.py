"""Two checkouts of fmimaster against each other, in one run: each figure as a ratio, new over old.

    python benchmarks/compare.py OLD NEW [--rounds 9] [--quick] [--quarter-truck DIR] [FIGURE ...]

OLD and NEW are folders of checkouts whose kernel and reference FMUs are built. Each measurement is a process of its own
that has the checkout first on its path, and then the folder of this file: both are measured by the same code. The two take
turns, and every second round begins with the other one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent

PREAMBLE = """
import sys
from pathlib import Path
import fmimaster
assert Path(fmimaster.__file__).is_relative_to(sys.argv[1]), fmimaster.__file__
from fmimaster.run.choice import native_executor
assert native_executor() is not None, "the kernel is not built"
import costs, ours, systems
truck = Path(sys.argv[2])

def loop(system):
    ours.native(system.of(100))
    return min(ours.native(system).cpu for _ in range(5)) / system.steps * 1e6

def least(cost, n=5):  # the first one imports, and fills caches
    cost()
    return min(cost().value for _ in range(n))
"""


@dataclass(frozen=True)
class Figure:
    """What is measured: an expression over the benchmarks of a checkout, whose value is a time or a ratio of times.

    Parameters
    ----------
    expression
        ``{part}`` stands for 1, and for 10 if it shall be quick.
    """

    name: str
    unit: str
    expression: str


def rings() -> Iterator[Figure]:
    """The loop on both kinds of rings, in CPU time."""
    for kind in ("TINY", "DAHLQUIST"):
        for n, steps in ((2, 500_000), (10, 100_000), (100, 10_000)):
            for fmi in (2, 3):
                system = f"systems.ring({fmi}, {n}, steps={steps} // {{part}}, kind=systems.{kind})"
                yield Figure(f"{kind.lower()} ring of {n}, FMI {fmi}.0", "us", f"loop({system})")


FIGURES = (
    *rings(),
    Figure("quarter truck", "us", "loop(systems.quarter_truck(truck, 20_000 // {part}))"),
    Figure(
        "save and restore, FMI 2.0", "x", "least(lambda: costs.save_and_restore(9, {part}, 2), 1)"
    ),
    Figure(
        "save and restore, FMI 3.0", "x", "least(lambda: costs.save_and_restore(9, {part}, 3), 1)"
    ),
    Figure("rule asked at every step", "us", "least(lambda: costs.controller(1, {part}))"),
    Figure("predictive event clock", "us", "least(lambda: costs.predicting(1))"),
    Figure("loading 100 instances", "ms", "least(lambda: costs.loading(1, 3))"),
)
"""Times per communication step; for loading, per instance."""


def measured(checkout: Path, figure: Figure, part: int, truck: Path) -> float:
    """The value of a figure, by a new process on that checkout."""
    code = f"{PREAMBLE}\nprint()\nprint({figure.expression.format(part=part)!s})\n"
    done = subprocess.run(
        [sys.executable, "-c", code, str(checkout), str(truck)],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{HERE}"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{figure.name} on {checkout}:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def compared(
    old: Path, new: Path, figure: Figure, rounds: int, part: int, truck: Path
) -> tuple[list[float], list[float]]:
    """The values of both checkouts, taken in turns."""
    values: dict[Path, list[float]] = {old: [], new: []}
    for k in range(rounds):
        for checkout in (old, new) if k % 2 == 0 else (new, old):
            values[checkout].append(measured(checkout, figure, part, truck))
    return values[old], values[new]


def line(figure: Figure, old: Sequence[float], new: Sequence[float]) -> str:
    """A row of the table."""
    ratios = [b / a for a, b in zip(old, new, strict=True)]
    return (
        f"| {figure.name} | {median(old):.3f} {figure.unit} | {median(new):.3f} {figure.unit} | "
        f"{min(ratios):.3f} | **{median(ratios):.3f}** | {max(ratios):.3f} | {min(new) / min(old):.3f} |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="only those with this in them")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    parser.add_argument("--quarter-truck", type=Path, metavar="DIR", help="Chassis.fmu, Wheel.fmu")
    given = parser.parse_intermixed_args()
    old, new, truck = given.old.resolve(), given.new.resolve(), given.quarter_truck
    print("| figure | old | new | least ratio | median ratio | largest ratio | of the minima |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for figure in FIGURES:
        if given.figures and not any(text in figure.name for text in given.figures):
            continue
        if "truck" in figure.expression and truck is None:
            continue
        part, folder = 10 if given.quick else 1, (truck or Path()).resolve()
        print(line(figure, *compared(old, new, figure, given.rounds, part, folder)), flush=True)


if __name__ == "__main__":
    main()
