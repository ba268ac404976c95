"""How times and memory grow with the size of a task, for one or two checkouts, as a table and a figure.

    python benchmarks/growth.py KEPT.csv NAME=CHECKOUT ... [--curve TEXT ...] [--plot FILE.png]

What KEPT.csv has already is not measured again: a measurement can be continued, or one curve of it repeated after its lines
were deleted. The checkouts take turns.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path

from goals import Conditions, Figure, measured

Kept = dict[tuple[str, str, int], float]
"""Checkout, curve and size → value."""

CLOCKS = (1, 3, 7, 8, 10, 15, 30, 60, 100)
"""With 8 clocks, the time of a tick was once 20 times that with 7."""


@dataclass(frozen=True)
class Curve:
    """One quantity over a size.

    Attributes
    ----------
    function : str
        Of sizes.py or hybrid.py, of the size.
    of : str
        What is counted.
    """

    name: str
    function: str
    unit: str
    of: str
    sizes: tuple[int, ...]


CURVES = (
    Curve("plan and load", "sizes.planning", "s", "instances", (1, 10, 100, 300, 1000, 2000, 4000)),
    Curve("run of one step", "sizes.connected", "s", "connections", (10, 100, 1000, 3000, 10_000)),
    Curve("prepare", "sizes.prepared", "s", "outputs", (10, 100, 1000, 10_000, 30_000, 100_000)),
    Curve("validate", "sizes.validated", "s", "outputs", (10, 100, 1000, 10_000, 30_000, 100_000)),
    Curve("info", "sizes.info_of_many", "s", "outputs", (10, 1000, 10_000, 100_000)),
    Curve(
        "whole run per row", "sizes.loop_per_row", "s", "rows", (1000, 10**4, 10**5, 10**6, 10**7)
    ),
    Curve("memory over the array", "sizes.memory", "x", "rows", (10**5, 10**6, 3 * 10**6, 10**7)),
    Curve("write CSV", "sizes.csv_written", "s", "rows", (1000, 10**4, 10**5, 10**6)),
    Curve("read CSV", "sizes.csv_read", "s", "rows", (1000, 10**4, 10**5, 10**6)),
    Curve("whole run of bounces", "hybrid.bounces", "s", "events", (300, 1000, 3000, 10_000)),
    Curve("tick of all clocks", "hybrid.tick", "us", "clocks", CLOCKS),
    Curve("tick of one clock", "hybrid.tick_in_turn", "us", "clocks", CLOCKS),
)
"""CPU times of whole tasks, by the rings of two FMUs with four outputs where rows are counted."""


def read(path: Path) -> Kept:
    """What was measured before."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {(r[0], r[1], int(r[2])): float(r[3]) for r in csv.reader(file)}


def measure(kept: Kept, curve: Curve, checkouts: dict[str, Path]) -> Iterator[None]:
    """Add what is missing of a curve, from small to large sizes; after each value, the caller may write it down."""
    for size in curve.sizes:
        for name, checkout in checkouts.items():
            key = (name, curve.name, size)
            if key not in kept:
                figure = Figure(curve.name, curve.unit, f"{curve.function}({size})")
                kept[key] = measured(checkout, figure, Conditions())
                yield


def write(path: Path, kept: Kept) -> None:
    """Keep all values."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            (*key, f"{v:.6g}") for key, v in kept.items()
        )


def lines(kept: Kept, checkouts: list[str]) -> Iterator[str]:
    """A table: the values at the smallest and the two largest sizes, and the exponent of the growth between these two."""
    yield "| curve | checkout | smallest | second largest | largest | exponent |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for curve in CURVES:
        for name in checkouts:
            points = _points(kept, curve, name)
            if len(points) > 2:
                (a, u), (b, v) = points[-2:]
                cells = " | ".join(
                    f"{size:,}: {value:.3g} {curve.unit}"
                    for size, value in (points[0], (a, u), (b, v))
                )
                yield f"| {curve.name}, by {curve.of} | {name} | {cells} | {log(v / u) / log(b / a):.2f} |"


def _points(kept: Kept, curve: Curve, checkout: str) -> list[tuple[int, float]]:
    keys = [(checkout, curve.name, size) for size in curve.sizes]
    return [(key[2], kept[key]) for key in keys if key in kept]


def plot(kept: Kept, checkouts: list[str], path: Path) -> None:
    """One panel for each curve that was measured, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    curves = [c for c in CURVES if any(_points(kept, c, name) for name in checkouts)]
    wide = min(len(curves), 4)
    high = -(-len(curves) // wide)
    figure, panels = plt.subplots(
        high, wide, figsize=(3.5 * wide, 3.1 * high), layout="constrained", squeeze=False
    )
    for panel in panels.flat[len(curves) :]:
        panel.remove()
    for curve, panel in zip(curves, panels.flat, strict=False):
        for name, style in zip(checkouts, ("C0o--", "C1o-"), strict=False):
            points = _points(kept, curve, name)
            if points:
                panel.plot(*zip(*points, strict=True), style, label=name)
        panel.set(xscale="log", title=curve.name, xlabel=curve.of, ylabel=curve.unit)
        if curve.unit == "x":
            panel.set_ylim(bottom=0)
            panel.axhline(1.25, color="0.6", linewidth=0.8)
        else:
            panel.set_yscale("log")
        panel.grid(alpha=0.3)
    panels.flat[0].legend()
    figure.savefig(path, dpi=80)


def main() -> None:
    """Measure what is missing, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kept", type=Path, metavar="KEPT.csv")
    parser.add_argument(
        "checkouts", nargs="*", metavar="NAME=FOLDER", help="such as old=../old new=."
    )
    parser.add_argument("--curve", action="append", help="only curves with this in their names")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    given = parser.parse_args()
    checkouts = {
        name: Path(folder).resolve()
        for name, _, folder in (c.partition("=") for c in given.checkouts)
    }
    kept = read(given.kept)
    for curve in CURVES:
        if not given.curve or any(text in curve.name for text in given.curve):
            for _ in measure(kept, curve, checkouts):
                write(given.kept, kept)
    names = list(dict.fromkeys(name for name, _, _ in kept))
    print(*lines(kept, names), sep="\n")
    if given.plot is not None:
        plot(kept, names, given.plot)


if __name__ == "__main__":
    main()
