"""Compares the runs of one FMU: a line of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import recorded_calls
from one_run import Outcome

SMALLEST = 1e-6
"""Differences of outputs that never exceed this are divided by it: below it there is often only rounding."""


@dataclass(frozen=True)
class Line:
    """A line of the table; a text is empty if there is no result."""

    fmu: str
    exporter: str = ""
    fmi: str = ""
    steps: int = 0
    native: str = ""
    reference: str = ""
    fmpy: str = ""
    same_bits: str = ""
    same_calls: str = ""
    difference: str = ""
    note: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether it ran, and both backends agree."""
        ran = self.native == self.reference == "ran"
        return ran and "no" not in (self.same_bits, self.same_calls)

    @property
    def text(self) -> str:
        """For the terminal."""
        verdict = "fine     " if self.is_fine else f"{self.native or 'unread':9}"
        calls = (
            f"{self.same_calls} calls" if self.same_calls.isdigit() else f"calls: {self.same_calls}"
        )
        facts = f"fmpy {self.fmpy}, difference {self.difference or '-'}, bits {self.same_bits or '-'}, {calls}"
        return f"{verdict} {self.fmu}: {facts}{'; ' + self.note if self.note else ''}"


def compare(
    line: Line, step: float, outcomes: Mapping[str, Outcome], calls: Sequence[list[str]]
) -> Line:
    """The line with the outcomes of the runs of "native", "reference" and "fmpy".

    Parameters
    ----------
    step : float
        Communication step size in s; times closer than a millionth of it are the same.
    calls : two lists
        Those of "native" and "reference".
    """
    native, reference, fmpy = (outcomes[program] for program in ("native", "reference", "fmpy"))
    notes = [line.note] * bool(line.note)
    if native.error:
        notes.append(f"native: {native.error}")
    if reference.error != native.error:
        notes.append(f"reference: {reference.error or 'no error'}")
    if fmpy.error:
        notes.append(f"fmpy: {fmpy.error}")
    same_calls = ""
    if any(calls):
        difference = recorded_calls.first_difference(*calls)
        same_calls = "no" if difference else str(len(calls[0]))
        notes += [difference] * bool(difference)
    difference, where = _difference(native.columns, fmpy.columns, 1e-6 * step)
    return replace(
        line,
        native=native.verdict,
        reference=reference.verdict,
        fmpy=fmpy.verdict,
        same_bits=_same_bits(native.columns, reference.columns),
        same_calls=same_calls,
        difference=difference,
        note="; ".join(notes + [where] * bool(where)),
    )


def _same_bits(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    if not one and not other:
        return ""
    same = one.keys() == other.keys() and all(
        one[n].dtype == other[n].dtype and one[n].tobytes() == other[n].tobytes() for n in one
    )
    return "yes" if same else "no"


def _difference(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], resolution: float
) -> tuple[str, str]:
    """The largest relative difference at times that both have, and the output that has it."""
    if not ours or not theirs:
        return "", ""
    # at an event fmpy has a second row of that time; the last one counts, as in fmimaster
    ours, theirs = ({n: c[_last_rows(t["time"])] for n, c in t.items()} for t in (ours, theirs))
    times = [np.rint(t["time"] / resolution) for t in (ours, theirs)]
    _, at, there = np.intersect1d(*times, return_indices=True)
    worst, where = 0.0, ""
    for name in ours.keys() & theirs.keys() - {"time"}:
        a, b = ours[name][at].astype(float), theirs[name][there].astype(float)
        with np.errstate(invalid="ignore", over="ignore"):
            scale = max(SMALLEST, float(np.nanmax(np.abs(b), initial=0.0)))
            differences = np.where(
                (a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b) / scale
            )
        largest = float(np.max(differences, initial=0.0))
        if not largest <= worst:  # NaN is larger than all
            differs = ~(differences <= 0).reshape(len(at), -1).all(axis=1)
            first = ours["time"][at][np.argmax(differs)]
            worst, where = largest, f"difference: '{name}', first at t = {first:.6g} s"
    missing = [n for n in theirs if n not in ours]
    notes = [where] if where else []
    if missing:
        notes.append(f"not recorded: {', '.join(missing[:3])}")
    if len(at) < max(len(ours["time"]), len(theirs["time"])):
        notes.append(
            f"rows: {len(ours['time'])}, fmpy {len(theirs['time'])}, {len(at)} at the same times"
        )
    compared = len(ours.keys() & theirs.keys()) > 1
    return (f"{worst:.2g}" if compared else ""), "; ".join(notes)


def _last_rows(times: Any) -> Any:
    return np.append(times[1:] != times[:-1], True)
