"""Checks of the step size after a run: a second run with half of it, and the largest stable step size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fmimaster.base.text import aligned
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results

if TYPE_CHECKING:
    from fmimaster.front.accuracy_pair import Difference

MOST_LINES = 20
"""Outputs that are shown: those that differ most."""

LEAST_SECONDS = 2.0
"""CPU time in s that the search for the largest stable step may take after a short run."""


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


def largest_stable_step(simulation: Simulation, results: Results) -> Iterator[str]:
    """The largest stable step size of the coupling, if an output of a run has grown without bound.

    The search takes no longer than the run, or :data:`LEAST_SECONDS`. Ctrl-C ends it; the results are written already.
    """
    statistics = results.statistics
    if not statistics.diverging:
        return
    from fmimaster.studies.stability.advisor import (
        largest_stable_step,  # its modules are slow to import
    )

    seconds = max(LEAST_SECONDS, statistics.seconds + statistics.start_seconds)
    yield f"note: looking for the largest stable step size, for at most {seconds:.3g} s (Ctrl-C ends it)"
    try:
        step = largest_stable_step(simulation, seconds)
    except KeyboardInterrupt:
        yield "note: the search was ended; 'fmimaster stability' repeats it"
        return
    if step is None:
        yield (
            "note: no largest stable step size was found for sure. If outputs grow as much with half the step size "
            "(--check-step), the model itself is unstable"
        )
        return
    stable = f"note: the coupling is stable with steps of at most {step:.6g} s"
    if step < float(simulation.prepare().schedule.rule.exact_size):
        yield stable
        return
    yield (
        f"{stable} near the start, and the steps of the run are not longer: the model itself is unstable, or the "
        "coupling becomes unstable later (fmimaster stability --at)"
    )
