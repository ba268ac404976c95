"""What a run chooses by itself, on systems with exact solutions: what is chosen, its error, and what is said of it.

    python conformance/unasked.py [--system TEXT ...] [--kind KIND ...] [--size none 4 1 1/4]
                                  [--plain] [--failures] [--csv FILE]
    python conformance/unasked.py --read conformance/unasked.csv --markdown docs/unasked.md

Each system is run with its stop time and no other option (``--size none``), and with the step size only: four times the
right one, the right one, and a quarter of it. ``--plain`` runs the plain method instead: held inputs, no event clock.

The error is the RMS over time of the worst continuous output of the exact solution, relative to the largest value of
that output; of systems with events, to its range. A row next to an event may have either limit. Outcomes:

- right: the error is below 1 %, and each event was executed as often as it occurs
- close: an error of 1 to 5 % (with events: to 2 %)
- wrong: a larger error, or another number of events
- ended: the run has ended with an error, or was refused

``silent`` are wrong ones without a warning, ``false`` are right ones with one. The systems: ``unasked_systems.py``,
``unasked_hybrid.py``.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "fmus"))

from outcomes import Facts, attempt
from unasked_case import Case
from unasked_hybrid import hybrid_cases
from unasked_nets import Array
from unasked_systems import smooth_cases
from unasked_tables import CLOSE, CLOSE_AT_EVENTS, SIZES, Run, put_into, read, summary, write

from fmimaster import Results, Simulation, reference_path, simulate
from fmimaster.algorithms import Jacobi
from fmimaster.events import NoEventClock

RIGHT = 1e-2
"""Smaller errors are right."""
BESIDE = 0.1
"""Of a step: a row that is so near to an event may have either limit of what jumps there."""
JUMP = 10.0
"""A value that changes so many times more than before and after it jumps."""
PLAIN: Mapping[str, Any] = {
    "algorithm": Jacobi(),
    "event_clock": NoEventClock(),
    "error_estimate": False,
}
"""The plain method."""


# One run


def run(case: Case, size: str, settings: Mapping[str, Any], limit: float) -> Run:
    """One run, in a process of its own."""
    found = attempt(partial(_facts, case, size, settings), limit)
    ended = {"failed": "ended", "refused": "ended", "endless": "ended"}
    found["outcome"] = ended.get(found["outcome"], found["outcome"])
    return Run(
        system=case.name,
        kind=case.kind,
        fmi=case.fmi,
        size=size,
        hybrid=case.is_hybrid,
        plain=bool(settings),
        **found,
    )


def _facts(case: Case, size: str, settings: Mapping[str, Any]) -> Facts:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        asked: dict[str, Any] = {} if size == "none" else {"step_size": case.step * Fraction(size)}
        system, options = case.build(folder), case.options(folder)
        made = Simulation(system, stop_time=case.stop_time, **asked, **options, **settings)
        return score(case, made.run(), float(asked.get("step_size", case.step)))


def score(case: Case, results: Results, step: float) -> Facts:
    """Fields of a run that has reached its end; ``step`` in s is its step size, or the right one if it has chosen."""
    errors = errors_of(case, results, step)
    worst = max(errors, key=lambda name: errors[name])
    error = errors[worst]
    found = dict(case.counted(results))
    events = "" if case.due is None or found == dict(case.due) else _difference(found, case.due)
    limit = CLOSE_AT_EVENTS if case.is_hybrid else CLOSE
    outcome = "wrong" if error > limit or events else "right" if error < RIGHT else "close"
    texts = [events, *results.statistics.warnings]
    return {
        "outcome": outcome,
        "step": float(results.time[-1]) / max(results.statistics.steps, 1),
        "error": error,
        "worst": worst,
        "warned": bool(results.statistics.warnings),
        "estimate": estimate(results),
        "chosen": chosen(results),
        "text": " ".join(" | ".join(filter(None, texts)).split()),
    }


def errors_of(case: Case, results: Results, step: float) -> dict[str, float]:
    """Output → its error."""
    time = np.asarray(results.time, float)
    exact = case.exact(time, step)
    sides = [
        case.exact(np.clip(time + n * BESIDE * step, 0.0, time[-1]), step)
        for n in ((-2, -1, 1, 2) if case.is_hybrid else ())
    ]
    errors = {}
    for name, values in exact.items():
        found = np.nan_to_num(np.asarray(results[name], float), nan=1e60, posinf=1e60, neginf=-1e60)
        apart = np.minimum(np.abs(found - values), 1e60)
        if sides:
            before, left, right, after = (side[name] for side in sides)
            jumps = np.abs(right - left) > JUMP * (np.abs(left - before) + np.abs(after - right))
            nearest = np.minimum(np.abs(found - left), np.abs(found - right))
            apart = np.where(jumps, np.minimum(apart, nearest), apart)
        scale = float(np.ptp(values) if case.is_hybrid else np.abs(values).max())
        if scale > 0.0:
            errors[name] = rms(time, apart) / scale
    return errors


def rms(time: Array, values: Array) -> float:
    """Over time, by the trapezoidal rule."""
    squares = values**2
    return float(
        np.sqrt(np.sum((squares[1:] + squares[:-1]) / 2 * np.diff(time)) / (time[-1] - time[0]))
    )


def _difference(found: Mapping[str, int], due: Mapping[str, int]) -> str:
    names = sorted(n for n in {*found, *due} if found.get(n, 0) != due.get(n, 0))
    return "events: " + ", ".join(f"{n} {found.get(n, 0)} of {due.get(n, 0)}" for n in names)


WORDS = (
    (r", in the order .*|; steps (?!.*locate).*", ""),
    (r",?mode=lin:\w+=\w+(,\w+=\w+)*", ""),
    (r":inputs=linear", "(lines)"),
    (r":inputs=adaptive", "(adaptive)"),
    (r":inputs=2,2", "(quintic)"),
    (r":?; steps by .*|:$", ""),
)
"""Patterns in the description of a method, and what is written for them in tables."""


def chosen(results: Results) -> str:
    """Algorithm, event clock and loops in short."""
    text = results.statistics.methods[0]
    for pattern, short in WORDS:
        text = re.sub(pattern, short, text)
    clocks = [re.findall(r"events located by (\w+)", m) for m in results.statistics.methods]
    text += "".join(f", {clock}" for found in clocks for clock in found)
    solved = sum(loop.solutions > 1 for loop in results.statistics.loops)
    return text + ", loop solved" * bool(solved)


def estimate(results: Results) -> float | None:
    """The number of the run for its error, relative as the error is."""
    found = results.statistics.coupling_error
    return None if found is None else found.estimate


# All runs


def cases() -> list[Case]:
    """All systems."""
    return smooth_cases() + hybrid_cases()


def warm_up() -> None:
    """Import here what the process of each run would import again."""
    simulate(reference_path("fmi2/Dahlquist.fmu"), stop_time=1, step_size=1)


def runs_of(a: argparse.Namespace) -> Iterator[Run]:
    """All runs that shall be made."""
    warm_up()
    for case in cases():
        if a.kind and case.kind not in a.kind:
            continue
        if a.system and not any(re.search(text, case.name) for text in a.system):
            continue
        for size in a.size:
            yield run(case, size, PLAIN if a.plain else {}, a.limit)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--system", nargs="+", help="only systems whose name contains one of these patterns")
    add("--kind", nargs="+", help="only systems of these kinds")
    add("--size", nargs="+", choices=SIZES, default=SIZES, help="none, 4, 1, 1/4")
    add("--plain", "--baseline", action="store_true", help="the plain method, not the chosen one")
    add("--limit", type=float, default=30.0, help="CPU time of a run in s (30)")
    add("--failures", action="store_true", help="list only runs that are silent, false or ended")
    add("--csv", type=Path, help="write all runs into this file")
    add("--read", type=Path, nargs="+", help="runs of such files; nothing is run")
    add("--markdown", type=Path, help="write the tables into this page")
    a = parser.parse_args()
    runs = [one for path in a.read or () for one in read(path)]
    for one in runs_of(a) if not a.read else ():
        runs.append(one)
        if not a.failures or one.is_silent or one.is_false or one.outcome == "ended":
            print(one.line, flush=True)
    print("\n".join(["", *summary(runs)]))
    if a.csv:
        write(a.csv, runs)
    if a.markdown:
        put_into(a.markdown, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
