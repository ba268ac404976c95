"""Judge results of an importer by exact results. Needs NumPy only.

    python judge.py RESULTS

RESULTS is a folder with ``<case>-<version>.csv``, such as ``triggers-ball-fmi3.csv``, for those cases that were simulated:
a header line, the time in s in the first column, and a column for each variable, named as in the case. Prints a line for
each case, and for each class and version of FMI whether it is passed. Exit status: 0 if there are results and all pass.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
HERE = Path(__file__).resolve().parent

SAME_TIME = 1e-9
"""[s] rows of the exact results that are as near are superdense instants of one event."""

NEAR = 0.2
"""Steps: how far from an event the next communication point may be, in the classes indicators and look-ahead."""

FIRST_STEPS = 2
"""Steps: events before that need not be foreseen in these classes, because a forecast compares two communication points."""

LONG, MOSTLY = 0.75, 0.5
"""Steps of this part of the step size are long, and this part of the time is to be in long steps, but in the class none: an
importer that steps so often that it needs no indicators shows nothing."""


@dataclass(frozen=True)
class Exact:
    """Exact results: times, values and their time derivatives, one row for each superdense instant."""

    time: Array
    values: Array
    rates: Array

    @property
    def events(self) -> list[slice]:
        """Rows of each event: left limit first, right limit last."""
        found, k = [], 0
        while k < len(self.time):
            end = k + 1
            while end < len(self.time) and self.time[end] - self.time[k] <= SAME_TIME:
                end += 1
            if np.any(self.values[k:end] != self.values[k]):
                found.append(slice(k, end))
            k = end
        return found

    def at(self, t: float) -> Array:
        """Values between two rows, by the cubic through values and derivatives at both; no row lies over an event."""
        k = int(np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 2))
        h = self.time[k + 1] - self.time[k]
        if h <= 0.0:
            return np.asarray(self.values[k + 1])
        s = (t - self.time[k]) / h
        a, b = self.values[k], self.values[k + 1]
        p, q = self.rates[k] * h, self.rates[k + 1] * h
        return np.asarray(a + s * (p + s * (3 * (b - a) - 2 * p - q + s * (2 * (a - b) + p + q))))


def read(path: Path) -> tuple[Array, dict[str, Array]]:
    """Time and columns of a CSV file. Texts that are no numbers, such as those of a clock, become NaN.

    Raises
    ------
    ValueError
        If it has no rows, or rows of different length.
    """
    lines = path.read_text(encoding="utf-8-sig").splitlines() or [""]
    names = [name.strip().strip('"') for name in lines[0].split(",")]
    cells = [line.split(",") for line in lines[1:] if line.strip()]
    if not cells or any(len(row) != len(names) for row in cells):
        raise ValueError("it has no rows, or a row without a value for each column of the header")

    def number(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return float("nan")

    table = np.array([[number(cell) for cell in row] for row in cells])
    return table[:, 0], {name: table[:, k] for k, name in enumerate(names)}


def exact_of(case: dict[str, Any], folder: Path = HERE / "exact") -> tuple[list[str], Exact]:
    """Names of the variables that are judged, and their exact results up to the end of the case."""
    time, columns = read(folder / f"{case['motion']}.csv")
    names = case.get("values") or [n for n in columns if n != "time" and not n.startswith("der(")]
    kept = time <= case["stop"] + SAME_TIME
    scale = case.get("scale", 1.0)
    values = scale * np.column_stack([columns[name][kept] for name in names])
    rates = scale * np.column_stack([columns[f"der({name})"][kept] for name in names])
    return names, Exact(time[kept], values, rates)


def faults(case: dict[str, Any], path: Path, folder: Path = HERE / "exact") -> list[str]:
    """What is wrong with the results of a case; empty if nothing is.

    A row is right if it is the exact motion up to the tolerance, which is relative to the largest range of a variable; near
    an event it may be any of its limits.
    """
    names, exact = exact_of(case, folder)
    try:
        time, columns = read(path)
    except ValueError as error:
        return [str(error)]
    missing = [name for name in names if name not in columns]
    if missing:
        return [f"there is no column {', '.join(missing)}"]
    values = np.column_stack([columns[name] for name in names])
    events = exact.events
    if not (np.isfinite(values).all() and np.isfinite(time).all()):
        return ["a value or a time is no number"]
    if wrong := faults_of_times(case, time):
        return [wrong]

    scale = case["tolerance"] * np.max(np.ptp(exact.values, axis=0))
    slack = time_tolerance(case, exact, scale)
    found = []
    for t, row in zip(time, values, strict=True):
        candidates = [exact.at(t)]
        for event in events:
            if abs(t - exact.time[event.start]) <= slack:
                candidates += list(exact.values[event])
        errors = [np.max(np.abs(row - candidate) / scale) for candidate in candidates]
        if min(errors) > 1.0:
            worst = int(np.argmax(np.abs(row - candidates[int(np.argmin(errors))]) / scale))
            found.append(
                f"{names[worst]} is {row[worst]:.9g} at t = {t:.9g} s, expected "
                f"{candidates[int(np.argmin(errors))][worst]:.9g}"
            )
            break
    for event in events:
        at = exact.time[event.start]
        close = np.abs(time - at) <= slack
        if case["class"] in ("triggers", "shared", "contacts"):
            right = exact.values[event.stop - 1]
            if not any(np.max(np.abs(row - right) / scale) <= 1.0 for row in values[close]):
                found.append(f"there is no row with the right limits of the event at {at:.9g} s")
        elif case["class"] in ("indicators", "look-ahead") and at > FIRST_STEPS * case["step"]:
            distance = np.min(np.abs(time - at))
            if distance > NEAR * case["step"]:
                found.append(
                    f"no communication point is near the event at {at:.9g} s: {distance:.3g} s"
                )
    return found


def faults_of_times(case: dict[str, Any], time: Array) -> str:
    """What is wrong with the times of the rows; empty if nothing is."""
    for name, at, expected in (("starts", time[0], 0.0), ("ends", time[-1], case["stop"])):
        if abs(at - expected) > SAME_TIME * max(1.0, case["stop"]):
            return f"it {name} at {at} s, expected {expected} s"
    steps = np.diff(time)
    if np.any(steps < 0.0):
        k = int(np.argmax(steps < 0.0))
        return f"time goes back from {time[k]:.9g} s to {time[k + 1]:.9g} s"
    if np.max(steps) > case["step"] + SAME_TIME:
        k = int(np.argmax(steps))
        return f"there is no row between {time[k]:.9g} s and {time[k + 1]:.9g} s: the step size is {case['step']} s"
    in_long_steps = float(np.sum(steps[steps > LONG * case["step"]])) / case["stop"]
    if case["class"] != "none" and in_long_steps < MOSTLY:
        return (
            f"{in_long_steps:.0%} of the time is in steps longer than {LONG * case['step']:.3g} s, expected at least "
            f"{MOSTLY:.0%}: steps may be short around events only"
        )
    return ""


def time_tolerance(case: dict[str, Any], exact: Exact, scale: float) -> float:
    """[s] how early or late an event may be: the time in which the fastest variable changes by half its tolerance."""
    fastest = np.max(np.abs(exact.rates) / scale)
    return max(SAME_TIME, 0.5 / float(fastest))


def main(results: Path) -> int:
    """Judge all cases in a folder."""
    cases = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))["cases"]
    passed: dict[tuple[str, str], list[bool | None]] = {}
    for case in cases:
        for version in case["versions"]:
            path = results / f"{case['name']}-{version}.csv"
            outcome = passed.setdefault((case["class"], version), [])
            if not path.exists():
                outcome.append(None)
                continue
            wrong = faults(case, path)
            outcome.append(not wrong)
            print(
                f"{'FAIL' if wrong else 'pass'}  {case['name']}-{version}  {'; '.join(wrong)}".rstrip()
            )
    known = {f"{case['name']}-{version}.csv" for case in cases for version in case["versions"]}
    for path in sorted(results.glob("*.csv")):
        if path.name not in known:
            print(f"not judged  {path.name}  it is named as no case")
    print()
    for (name, version), outcomes in passed.items():
        verdict = "not judged"
        if any(outcome is False for outcome in outcomes):
            verdict = "failed"
        elif all(outcomes):
            verdict = "passed"
        elif any(outcomes):
            verdict = "incomplete"
        print(f"{verdict:10}  class {name}, {version}")
    judged = [
        outcome for outcomes in passed.values() for outcome in outcomes if outcome is not None
    ]
    return 0 if judged and all(judged) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
