"""Check an FMU: bring it to its events, and say which requirements it breaks. Needs FMPy and NumPy.

    python check_fmu.py FMU [--experiment FILE] [--set NAME=VALUE ...] [--stop S] [--step S]

Prints a line for each requirement of the manifest (M) and of the behaviour of an FMU (F): ``pass``, ``FAIL`` with what is
wrong, or ``----`` with the reason why it was not checked. Exit status: 0 if nothing is broken and each event was reached,
1 if a requirement is broken, 2 if an event was not reached. ``index.md`` has the content of the experiment file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import check_manifest
from check_continuous import ContinuousChecks
from check_inputs import InputChecks
from check_triggers import TriggerChecks
from fmpy.fmi1 import FMICallException
from fmu_under_test import Fmu
from report import Report
from simulated import EndlessStops, Experiment


class Checker(TriggerChecks, ContinuousChecks, InputChecks):
    """All checks of the behaviour of one FMU."""


def check(fmu: Fmu, experiment: Experiment) -> Report:
    """All that can be checked of an FMU."""
    report = Report()
    check_manifest.check(fmu, report)
    if report.broken:
        return report
    checker = Checker(fmu, experiment, report)

    every = checker.names

    def guarded(requirement: str, what: Callable[[], Any]) -> Any:
        try:
            return what()
        except (FMICallException, EndlessStops) as error:
            report.fail(requirement, str(error))
            return None

    own = [e for e in fmu.events if e.trigger is None]
    reached = {e.name for e in own if guarded("F4", lambda e=e: checker.own(e))}
    if len(own) < len(fmu.events):
        guarded("F15", checker.find_events)
    reached |= set(checker.survey.found)
    if fmu.events:
        guarded("F1", checker.indicators)
        guarded("F20", checker.modes)
        guarded("F19", checker.jump)
    guarded("F13", checker.forecast)
    for found in checker.survey.found.values():
        guarded("F9", lambda found=found: checker.triggered(found))
    checker.names = every
    for event in fmu.events:
        guarded("F21", lambda event=event: checker.contact(event))
    for p in fmu.polynomials:
        guarded("F16", lambda p=p: checker.polynomial(p))
    for event in fmu.events:
        if event.name not in reached:
            report.not_reached(event.name, experiment.stop)
    return report


def main(arguments: list[str]) -> int:
    """Check one FMU, and print what is wrong."""
    parser = argparse.ArgumentParser(
        description="Check an FMU by the requirements of the layered standards."
    )
    parser.add_argument("fmu", type=Path)
    parser.add_argument(
        "--experiment", type=Path, help="JSON: stop, step, set, inputs, payload, jump; see index.md"
    )
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="start values")
    parser.add_argument("--stop", type=float, help="[s] how long it is simulated; default 3")
    parser.add_argument("--step", type=float, help="[s] step size; default 0.01")
    given = parser.parse_args(arguments)
    start = {name: float(value) for name, _, value in (text.partition("=") for text in given.set)}
    experiment = Experiment.read(given.experiment, set=start, stop=given.stop, step=given.step)
    fmu = Fmu(given.fmu)
    try:
        unknown = [n for n in experiment.names() if n not in fmu.variables]
        if unknown:
            parser.error(f"the FMU has no variable {', '.join(unknown)}")
        report = check(fmu, experiment)
    finally:
        fmu.close()
    print("\n".join(report.lines()))
    return report.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
