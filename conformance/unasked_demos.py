"""The method that a run chooses for the demo systems, beside every single choice of algorithm, inputs and event clock.

    python conformance/unasked_demos.py [--all]

The systems are those of ``fmimaster demo files``, and the pair of README.md. Each is run with its step size and no other
option, and with each method by name and the same step size. The error is the RMS over time of the worst continuous output,
relative to its largest value, measured against a run whose steps are 100 times shorter. ``--all`` prints the errors of all
methods, the smallest first.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Iterator, Mapping
from itertools import product
from math import inf, isfinite
from typing import Any

from fmimaster import FmimasterError, Results, Simulation, SystemBuilder, reference_path
from fmimaster.front.accuracy_pair import Pair

INPUTS = ("hold", "linear", "quadratic", "adaptive")
ALGORITHMS = (
    *(f"{name}:inputs={kind}" for name, kind in product(("Jacobi", "GaussSeidel"), INPUTS)),
    *(
        f"GaussSeidel:inputs={kind},mode={mode}"
        for mode, kind in product(("mid", "lin", "lin:sub_steps=1", "held"), INPUTS[:3])
    ),
    "GaussSeidel:mode=sub",
)
CLOCKS = ("none", "predictive", "early-return", "look-ahead", "locate")
"""Event clocks; ``locate`` is a step-size rule."""
SHORTER = 100
"""Times that the steps of the reference are shorter."""
LEAST = 1e-6
"""Errors below are equal: FMUs solve their equations, and clocks find events, not more exactly."""


def systems() -> Iterator[tuple[str, Any, float, float]]:
    """Name, system, step size in s, and stop time in s of each system."""
    for name, file, size, stop in (
        ("two-mass", "two-mass-b1-mixed", 0.01, 20.0),
        ("thermostat", "thermostat-fmi2", 0.1, 60.0),
        ("four-units", "four-units-fmi3", 1e-3, 0.15),
        ("quarter-car-a", "quarter-car-a-fmi3", 1e-3, 4.0),
        ("quarter-car-b", "quarter-car-b-fmi2", 1e-3, 4.0),
    ):
        yield name, reference_path(f"systems/{file}.ssp"), size, stop
    pair = SystemBuilder("pair")
    pair.add("a", reference_path("fmi2/Dahlquist.fmu"), {"k": 1.0})
    pair.add("b", reference_path("fmi3/Dahlquist.fmu"), {"k": 3.0})
    pair.connect("b.x", "a.u", factor=2.0)
    pair.connect("a.x", "b.u", factor=-1.0)
    yield "pair", pair.build(), 0.02, 2.0


def methods(has_events: bool) -> Iterator[Mapping[str, Any]]:
    """All single choices."""
    for clock, algorithm in product(CLOCKS if has_events else CLOCKS[:1], ALGORITHMS):
        if clock == "locate":
            yield {"algorithm": algorithm, "event_clock": "none", "step_size": "locate"}
        else:
            yield {"algorithm": algorithm, "event_clock": clock}


def run(system: Any, size: float, settings: Mapping[str, Any], stop: float) -> Results | None:
    """The results of a method; None if it is refused, or the run ends with an error."""
    rule = settings.get("step_size")
    given = {**settings, "step_size": f"{rule}:size={size!r}" if rule else size}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Simulation(system, **given, stop_time=stop, error_estimate=False).run()
    except FmimasterError:
        return None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="print the errors of all methods")
    is_long = parser.parse_args().all
    logging.disable(logging.CRITICAL)
    print("| system | step in s | chosen | error | best single choice | error | times |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, system, size, stop in systems():
        chosen = run(system, size, {}, stop)
        fine = run(system, size / SHORTER, {}, stop)
        assert chosen is not None
        assert fine is not None
        names, errors = judged(system, stop), {}
        for one in methods(chosen.statistics.events > 0):
            found = run(system, size, one, stop)
            words = " ".join(str(one.get(k, "")) for k in ("algorithm", "step_size", "event_clock"))
            errors[words] = inf if found is None else error(found, fine, names)
        ours, (best, least) = error(chosen, fine, names), min(errors.items(), key=lambda e: e[1])
        words = ", ".join(map(str, chosen.metadata["chosen"].values()))
        times = max(ours, LEAST) / max(least, LEAST)
        print(f"| {name} | {size:g} | {words} | {ours:.2e} | {best} | {least:.2e} | {times:.2g} |")
        if is_long:
            for words, value in sorted(errors.items(), key=lambda e: e[1]):
                print(f"    {value:.2e} {words}")


def judged(system: Any, stop: float) -> list[str]:
    """The continuous outputs and states, by which a run judges itself, too."""
    plan = Simulation(system, stop_time=stop).prepare().plan
    return [column.name for column in plan.recorded if column.is_judged]


def error(found: Results, fine: Results, names: list[str]) -> float:
    """The relative error of the worst of these outputs; infinite if it grows without bound."""
    value = Pair(found, fine, names).differences()[0].relative
    return value if isfinite(value) else inf


if __name__ == "__main__":
    main()
