"""The errors of Gauss-Seidel on four units, in all modes and sequences: the tables of docs/trigger-sequence.md.

    python benchmarks/modes.py [fmi2|fmi3]

Errors are RMS at the communication points, relative to the RMS of the monolithic solution: "S1" is the mean of the two
outputs of S1, "all" that of all six. It takes some ten seconds.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from fmimaster import Simulation, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.algorithms.gauss_seidel import MODES
from fmimaster.studies.demos.four_units import ORDERS, PUBLISHED, objective, relative_errors

DIGITS = 7
"""Errors that agree so far are the same: rotations of a sequence differ by rounding only in some modes."""
SHOWN = ("lin", "held", "sub", "mid", "end")


def errors(simulation: Simulation) -> tuple[float, float]:
    """Of S1 and of all outputs."""
    found = relative_errors(simulation.run())
    return (found["S1.y11"] + found["S1.y12"]) / 2, sum(found.values()) / len(found)


def correlation(one: list[float], other: list[float]) -> float:
    """Spearman's: of the ranks, where equal ones share their mean rank."""

    def ranks(values: list[float]) -> np.ndarray:
        rounded = np.round(values, DIGITS)
        return np.array([np.mean(np.nonzero(np.sort(rounded) == v)[0]) for v in rounded])

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def main(version: str) -> None:
    system = Simulation(reference_path(f"systems/four-units-{version}.ssp"))
    found = {
        name: {
            order: errors(replace(system, algorithm=GaussSeidel(mode=MODES[name]), sequence=order))
            for order in ORDERS
        }
        for name in SHOWN
    }
    print(
        "| Sequence | Stale | direct | " + " | ".join(f"`{n}` S1" for n in SHOWN) + " | `lin` all |"
    )
    print("| --- |" + " --- |" * (3 + len(SHOWN)))
    for order in ORDERS:
        cost = objective(order)
        cells = [" ".join(order), f"{cost.count:g}", f"{cost.feed_through:g}"]
        cells += [f"{found[name][order][0]:.5f}" for name in SHOWN]
        print("| " + " | ".join([*cells, f"{found['lin'][order][1]:.5f}"]) + " |")
    print(f"\nJacobi: S1 {errors(replace(system, algorithm=Jacobi()))[0]:.5f}\n")
    print(
        "| Mode | Best for S1 | Rank of the optimum: S1, all | Correlation with the cost: S1, all |"
    )
    print("| --- | --- | --- | --- |")
    for name in SHOWN:
        cells = []
        for k in range(2):
            values = [found[name][order][k] for order in ORDERS]
            own = found[name][PUBLISHED][k]
            rank = 1 + sum(round(v, DIGITS) < round(own, DIGITS) for v in values)
            costs = [objective(order).feed_through for order in ORDERS]
            cells.append((rank, correlation(costs, values)))
        rounded = {order: round(found[name][order][0], DIGITS) for order in ORDERS}
        best = ", ".join(" ".join(o) for o in ORDERS if rounded[o] == min(rounded.values()))
        ranks, correlations = zip(*cells, strict=True)
        print(
            f"| `{name}` | {best} | {ranks[0]}, {ranks[1]} | "
            f"{correlations[0]:.2f}, {correlations[1]:.2f} |"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "fmi2")
