"""What the step size costs, for the end of a run: the same with half of it, and the largest that is stable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmimaster.results.results import Results
from fmimaster.simulation import Simulation
from fmimaster.text import aligned

if TYPE_CHECKING:
    from fmimaster.accuracy.pair import Difference

MOST_LINES = 20
"""Outputs that are shown, those that differ most."""


def differences(simulation: Simulation, results: Results) -> list[str]:
    """How far the outputs of a run are from those of one with steps half as long: a line for each."""
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
    """The largest step size with which the coupling is stable, if an output of a run has grown without end."""
    if not results.statistics.diverging:
        return []
    from fmimaster.stability.advisor import largest_stable_step  # its modules are slow to import

    step = largest_stable_step(simulation)
    if step is None:
        return [
            "note: no largest stable step size was found: if outputs grow as much with half the step (--check-step), the "
            "model itself is unstable"
        ]
    stable = f"note: the coupling is stable with steps of at most {step:.6g} s"
    if step < float(simulation.prepare().schedule.rule.exact_size):
        return [stable]
    return [
        f"{stable} near the start, as those of the run are: the model itself is unstable, or the coupling is so later "
        "(fmimaster stability --at)"
    ]
