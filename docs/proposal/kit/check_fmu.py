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
from contextlib import suppress
from pathlib import Path
from typing import Any

import check_manifest
from check_continuous import ContinuousChecks
from check_inputs import InputChecks
from check_policies import PolicyChecks
from check_triggers import TriggerChecks
from driven import Found, Unusable
from fmpy.fmi1 import FMICallException
from fmu_under_test import EndlessStops, Event, Fmu, StepFails, StopsUntilTriggered
from report import Report
from simulated import Experiment


class Checker(TriggerChecks, PolicyChecks, ContinuousChecks, InputChecks):
    """All checks of the behaviour of one FMU."""

    def guarded(self, requirement: str, what: Callable[[], Any], at: str = "") -> Any:
        """A check that ends with its requirement broken if the FMU does not get on, with F17 if a call fails."""
        try:
            return what()
        except StopsUntilTriggered as error:
            self.report.skip(
                requirement, f"{error} until it is triggered, and has no policy ignore"
            )
        except EndlessStops as error:
            self.endless(error, at)
        except (FMICallException, StepFails) as error:
            self.report.fail("F17", str(error))
        return None

    def endless(self, error: EndlessStops, at: str) -> None:
        """Name what an FMU breaks that does not get on."""
        told = f"{at}: {error}" if at else str(error)
        if error.policy is not None and error.policy == self.fmu.policy_value("ignore"):
            self.report.fail("F15", f"{told} with the policy ignore")
        elif error.policy == self.fmu.policy_value("announce"):
            self.report.fail(
                "F5", f"{told} with the policy announce: it announces what is located already"
            )
        else:
            why = "it does not execute its event there, or the event is still on after that"
            self.report.fail("F2", f"{told} with the policy execute: {why}")

    def triggered(self, found: Found) -> None:
        """All checks of one event with a trigger."""
        at = f"event '{found.event.name}' at t = {found.time:.9g} s"
        shown = self.guarded("F9", lambda: self.executed(found, at), at)
        if shown:
            without, once = shown
            self.guarded("F9", lambda: self.triggers(found, without, once, at), at)
            self.guarded("F15", lambda: self.policies(found, without, once, at), at)
        self.compared = set(self.names)

    def missed(self, event: Event) -> str:
        """Why an event was not reached; empty if nothing is known."""
        if event.trigger and self.quiet is None:
            return "without a Policy the FMU executes it itself, and nobody can trigger it: it is not of the class triggers"
        if event.name in self.survey.off:
            step = self.survey.off[event.name]
            if "F9" in self.report.broken:
                return "an event before it is not executed as it should be, see F9"
            return f"its indicators are at or below 0 at t = {step.time:.6g} s, but '{event.active}' is false there"
        return ""


def check(fmu: Fmu, experiment: Experiment) -> Report:
    """All that can be checked of an FMU."""
    report = Report()
    check_manifest.check(fmu, report)
    if report.broken:
        return report
    checker = Checker(fmu, experiment, report)
    with suppress(Unusable):
        _behaviour(checker)
    return report


def _behaviour(checker: Checker) -> None:
    fmu, guarded, survey = checker.fmu, checker.guarded, checker.survey
    guarded("F13", checker.forecast)
    guarded("F17", checker.states)
    own = [e for e in fmu.events if e.trigger is None]
    reached = {e.name for e in own if guarded("F4", lambda e=e: checker.own(e))}
    if len(own) < len(fmu.events):
        guarded("F15", checker.find_events)
    reached |= set(survey.found)
    if fmu.events:
        guarded("F1", checker.indicators)
        guarded("M14", checker.dependencies)
        guarded("F20", checker.modes)
    for found in survey.found.values():
        checker.triggered(found)
    if fmu.events:
        jump = checker.experiment.jump
        guarded("F19", checker.jump, f"event '{jump['event']}' after 'jump'" if jump else "")
    for event in fmu.events:
        guarded("F21", lambda event=event: checker.contact(event))
    for p in fmu.polynomials:
        guarded("F16", lambda p=p: checker.polynomial(p))
    for event in fmu.events:
        if event.name not in reached:
            checker.report.not_reached(event.name, checker.experiment.stop, checker.missed(event))


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
    try:
        experiment = Experiment.read(given.experiment, set=start, stop=given.stop, step=given.step)
    except ValueError as error:
        parser.error(f"{given.experiment}: {error}")
    fmu = Fmu(given.fmu)
    try:
        if problems := experiment.problems(fmu):
            parser.error("; ".join(problems))
        report = check(fmu, experiment)
    finally:
        fmu.close()
    print(f"classes by the manifest: {', '.join(fmu.classes) or 'none'}")
    print("\n".join(report.lines()))
    return report.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
