"""A summary of test runs, of reports in JUnit's form that pytest writes: by folder, failures, reasons of skips."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

LOST = "has ended Python, or hung"
"""The message of a test for which there is no report."""


@dataclass(frozen=True)
class Outcome:
    """How a test ended."""

    test: str
    """Module and name, such as tests.unit.test_table.test_rows."""
    kind: str
    message: str = ""
    seconds: float = 0.0

    @property
    def folder(self) -> str:
        """The first two parts of the module's path."""
        return "/".join(re.split(r"[./]", self.test)[:2])


def show(outcomes: list[Outcome]) -> int:
    """Print the summary; 1 if a test failed or none ran."""
    print("\n".join(summary(outcomes)), flush=True)
    kinds = Counter(o.kind for o in outcomes)
    return int(kinds[FAILED] > 0 or not kinds[PASSED])


def read(report: Path) -> list[Outcome]:
    """Each test once. A test can stand there twice, when it failed and its fixtures failed too."""
    found: dict[str, Outcome] = {}
    for case in ET.parse(report).iter("testcase"):
        outcome = _outcome(case)
        before = found.get(outcome.test)
        if before is None or outcome.kind == FAILED:
            found[outcome.test] = outcome
    return list(found.values())


def _outcome(case: ET.Element) -> Outcome:
    test = ".".join(filter(None, (case.get("classname"), case.get("name"))))
    seconds = float(case.get("time", 0))
    for child in case:
        if child.tag in ("failure", "error"):
            return Outcome(test, FAILED, _message(child), seconds)
        if child.tag == "skipped":
            return Outcome(test, SKIPPED, child.get("message", ""), seconds)
    return Outcome(test, PASSED, "", seconds)


def _message(child: ET.Element) -> str:
    """The first line of what pytest tells of a failure."""
    return (child.get("message") or child.text or "").strip().split("\n")[0][:160]


def summary(outcomes: list[Outcome]) -> list[str]:
    """Lines of text: failures, reasons of skips, counts by folder, and all in a line."""
    failed = [o for o in outcomes if o.kind == FAILED]
    lines = ["", "Failed:", *(f"  {o.test}: {o.message}" for o in failed)] if failed else []
    reasons = Counter(o.message for o in outcomes if o.kind == SKIPPED)
    if reasons:
        lines += ["", "Skipped:", *(f"{n:6}  {reason}" for reason, n in reasons.most_common())]
    width = max((len(o.folder) for o in outcomes), default=0)
    lines += ["", f"{'':{width}}  passed  failed  skipped  seconds"]
    for folder in sorted({o.folder for o in outcomes}):
        there = [o for o in outcomes if o.folder == folder]
        counts = [sum(o.kind == kind for o in there) for kind in (PASSED, FAILED, SKIPPED)]
        seconds = sum(o.seconds for o in there)
        lines.append("{:{}}  {:6}  {:6}  {:7}  {:7.0f}".format(folder, width, *counts, seconds))
    of_all = Counter(o.kind for o in outcomes)
    kinds = (PASSED, FAILED, SKIPPED)
    return [*lines, "", ", ".join(f"{of_all[kind]} {kind}" for kind in kinds)]
