"""Checks of the step size after a run: a second run with half of it, and the largest stable step size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmimaster.results.results import Results
from fmimaster.simulation import Simulation
from fmimaster.text import aligned

if TYPE_CHECKING:
    from fmimaster.accuracy.pair import Difference

MOST_LINES = 20
"""Outputs that are shown: those that differ most."""


def differences(simulation: Simulation, results: Results) -> list[str]:
    """Differences of the outputs from a run with steps half as long, one line each."""
    found = simulation.check_step(coarse=results).differences()
    rows: list[tuple[str, ...]] = [
        ("output", "unit", "largest difference", "at", "of its largest value")
    ]
    rows += [_row(difference) for difference in found[:MOST_LINES]]
    more = len(found) - MOST_LINES
    lines = ["with steps half as long:", *aligned(rows)]
    return [*lines, f"  and {more} more outputs that differ less"] if more > 0 else lines


def _row(d: Difference) -> tuple[str, ...]:
    share = d.largest / d.scale if d.scale else 0.0
    return d.name, d.unit, f"{d.largest:.3g}", f"{d.time:.6g} s", f"{share:.2%}"


def largest_stable_step(simulation: Simulation, results: Results) -> list[str]:
    """The largest stable step size of the coupling, if an output of a run has grown without bound."""
    if not results.statistics.diverging:
        return []
    from fmimaster.stability.advisor import largest_stable_step  # its modules are slow to import

    step = largest_stable_step(simulation)
    if step is None:
        return [
            "note: no largest stable step size was found. If outputs grow as much with half the step size "
            "(--check-step), the model itself is unstable"
        ]
    stable = f"note: the coupling is stable with steps of at most {step:.6g} s"
    if step < float(simulation.prepare().schedule.rule.exact_size):
        return [stable]
    return [
        f"{stable} near the start, and the steps of the run are not longer: the model itself is unstable, or the "
        "coupling becomes unstable later (fmimaster stability --at)"
    ]
