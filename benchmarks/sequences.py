"""How good the trigger sequences of large systems are, and how long it takes to find them.

    python benchmarks/sequences.py

takes some ten seconds. The systems are those of the tests.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable
from pathlib import Path

from fmimaster.sequences.exact import best_by_subsets
from fmimaster.sequences.feedback import least_stale
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.methods import nearest_neighbour

DATA = Path(__file__).parents[1] / "tests" / "data"
REQUIRED = {"tree": 358.485, "modules": 135.585, "grid": 680.997, "sparse": 27.7}
"""Highest cost that is accepted."""
MOST_SECONDS, MOST_SECONDS_OF_SUBSETS = 15.0, 0.5


def large(name: str) -> UnitGraph:
    """A system of some thousand components."""
    rows = list(
        csv.DictReader((DATA / f"seq_graph_{name}.csv").read_text(encoding="utf-8").splitlines())
    )
    arcs = [(f"u{int(r['from']):04}", f"u{int(r['to']):04}", float(r["weight"])) for r in rows]
    return UnitGraph.made({unit for a, b, _ in arcs for unit in (a, b)}, arcs)


def small(size: int) -> tuple[UnitGraph, float]:
    """A system of so many components, and the least cost."""
    cases = json.loads((DATA / "seq_dp_instances.json").read_text(encoding="utf-8"))
    case = next(c for c in cases if c["n"] == size)
    names = [f"u{k:02}" for k in range(size)]
    arcs = [
        (a, b, w)
        for a, row in zip(names, case["D"], strict=True)
        for b, w in zip(names, row, strict=True)
    ]
    return UnitGraph.made(names, (arc for arc in arcs if arc[2])), case["optimum"]


def line(
    name: str,
    graph: UnitGraph,
    solve: Callable[[UnitGraph], tuple[int, ...]],
    most: float,
    seconds: float,
) -> None:
    """Measure one system, CPU time."""
    start = time.process_time()
    cost = graph.cost(solve(graph))
    took = time.process_time() - start
    quick = graph.cost(nearest_neighbour(graph))
    verdict = "ok" if cost <= most + 1e-9 and took <= seconds else "MISSED"
    print(
        f"{name:12} {graph.size:5} {len(graph.weights):6} {cost:10.3f} (at most {most:g}) {quick:10.3f} "
        f"{took:7.2f} s (at most {seconds:g}) {verdict}"
    )


def main() -> None:
    """Print the table: components, arcs, cost, that of the nearest neighbour, time."""
    graph, optimum = small(20)
    line(
        "20, subsets", graph, lambda g: best_by_subsets(g.matrix), optimum, MOST_SECONDS_OF_SUBSETS
    )
    for name, most in REQUIRED.items():
        line(name, large(name), least_stale, most, MOST_SECONDS)


if __name__ == "__main__":
    main()
