"""Facts of verdicts in words, for the pages of conformance runs."""

from __future__ import annotations

from fmimaster.conformance.measures import Measure
from fmimaster.conformance.verdict import Verdict
from fmimaster.system.declarations import Interface


def words_of_interface(verdict: Verdict) -> str:
    """``"Co-Simulation"``."""
    return Interface(verdict.interface).words if verdict.interface else ""


def place_of(verdict: Verdict) -> str:
    """The folders of the FMU, without those that repeat its name."""
    parts = verdict.fmu.removesuffix(".fmu").split("/")
    while parts and parts[-1] == verdict.model:
        parts.pop()
    return "/".join(parts)


def brief_reason(verdict: Verdict, folder: str) -> str:
    """The reason without the path of the FMU's folder, which would fill the cell of a table.

    Parameters
    ----------
    folder
        The folder of the run.
    """
    place = verdict.fmu.rpartition("/")[0]
    brief = verdict.reason
    for path in (f"{folder}/{place}/", f"{folder}/", f"{place}/"):
        brief = brief.replace(path, "") if path != "/" else brief
    return brief


def worst_rms(verdict: Verdict) -> float | None:
    """The largest root mean square of a deviation, relative to the range; None without a reference."""
    return max((m.deviation.relative for m in verdict.measures), default=None)


def relative_largest(measure: Measure) -> float:
    """The largest deviation relative to the range of the reference."""
    return measure.deviation.largest / measure.deviation.range if measure.deviation.range else 0.0


def moment(started: str) -> str:
    """``"2026-11-22 21:30:12 UTC"``, from ISO 8601 text in UTC."""
    date, _, time = started.partition("T")
    return f"{date} {time[:8]} UTC"


def percent(part: float) -> str:
    """``"2.1 %"``."""
    return f"{100 * part:.2g} %" if part < 1.0 else f"{100 * part:.3g} %"


def seconds(time: float) -> str:
    """``"12 ms"``."""
    return f"{time * 1000:.3g} ms" if time < 1.0 else f"{time:.3g} s"
