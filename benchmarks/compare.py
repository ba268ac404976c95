"""Two checkouts of fmimaster against each other, in one run: each figure of goals.py before and after.

    python benchmarks/compare.py OLD NEW [--rounds 9] [--quick] [--quarter-truck DIR] [FIGURE ...]

OLD and NEW are folders of checkouts whose kernel and reference FMUs are built. Each measurement is a process of its own
that has the checkout first on its path, and then the folder of this file: both are measured by the same code. The two take
turns, and every second round begins with the other one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from goals import FIGURES, Conditions, Figure, measured


def compared(
    old: Path, new: Path, figure: Figure, rounds: int, conditions: Conditions
) -> tuple[list[float], list[float]]:
    """The values of both checkouts, taken in turns."""
    values: dict[Path, list[float]] = {old: [], new: []}
    for k in range(rounds):
        for checkout in (old, new) if k % 2 == 0 else (new, old):
            values[checkout].append(measured(checkout, figure, conditions))
    return values[old], values[new]


def line(figure: Figure, old: Sequence[float], new: Sequence[float]) -> str:
    """A row of the table."""
    ratios = [b / a for a, b in zip(old, new, strict=True)]
    word = {None: "", True: "reached", False: "**missed**"}[figure.reached(median(new))]
    return (
        f"| {figure.name} | {median(old):.3g} {figure.unit} | {median(new):.3g} {figure.unit} | "
        f"{min(ratios):.3f} | {median(ratios):.3f} | {max(ratios):.3f} | {figure.goal_text()} | {word} |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="only those with this in them")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--quarter-truck", type=Path, metavar="DIR", help="Chassis.fmu, Wheel.fmu")
    given = parser.parse_intermixed_args()
    conditions = Conditions(given.quarter_truck, given.quick)
    print("| figure | old | new | least ratio | median ratio | largest ratio | goal | verdict |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for figure in FIGURES:
        if given.figures and not any(text in figure.name for text in given.figures):
            continue
        if conditions.allow(figure):
            old, new = given.old.resolve(), given.new.resolve()
            taken = compared(old, new, figure, given.rounds, conditions)
            print(line(figure, *taken), flush=True)


if __name__ == "__main__":
    main()
