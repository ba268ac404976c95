"""The verdict of each FMU of a conformance run, and the file that keeps them: JSON lines, written during the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, fields
from enum import Enum
from pathlib import Path
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import decoding, parsed_json, read_whole
from fmimaster.base.text import aligned, clipped, count, fitted, section
from fmimaster.cards.card import from_json
from fmimaster.conformance.curve import ComparedCurve
from fmimaster.conformance.measures import Measure
from fmimaster.system.declarations import Interface, attribute_name, to_json

VERDICTS_FILE = "verdicts.jsonl"
"""In the output folder of a run: a line for the run, then a line for each verdict."""

FORM = 1
"""Version of this file's form."""


class VerdictOutcome(Enum):
    """The verdict in one word, as the cross-check rules have it."""

    PASSED = "passed"
    """It ran to the stop time, and its results are within the limits around the reference, if there is one."""
    FAILED = "failed"
    """The run has started and failed, or its results deviate from the reference."""
    REJECTED = "rejected"
    """Nothing can be said about it: the FMU cannot be used here, or its reference cannot."""


class VerdictCause(Enum):
    """Why an FMU has not passed."""

    NONE = ""
    """It has passed."""
    DEVIATION = "deviation"
    """The results deviate from the reference."""
    ERROR = "error"
    """An FMI function returned an error, or an output became NaN or infinite."""
    CRASH = "crash"
    """A signal ended its process, such as SIGSEGV."""
    EXIT = "exit"
    """The FMU ended its process."""
    DEADLINE = "deadline"
    """It did not end in time."""
    MEMORY = "memory"
    """It needed more memory than was permitted."""
    DAMAGED = "damaged"
    """Its process sent something that is no answer: the FMU writes into descriptors that are not its own."""
    REFUSED = "refused"
    """Its file, its model description or its capabilities do not permit a run."""
    LIBRARY = "library"
    """It has no library for this platform, or the library cannot be loaded, or refuses to be instantiated."""
    REFERENCE = "reference"
    """The reference, its options or its input signals cannot be used."""
    RULES = "rules"
    """A file beside it says that it does not follow the cross-check rules."""
    INTERNAL = "internal"
    """A defect of fmimaster; the log has the traceback."""


@dataclass(frozen=True)
class Verdict:
    """The verdict of one FMU, by one of its interfaces.

    Attributes
    ----------
    name : str
        The path of the FMU in the folder of the run, with ``/``, without ``.fmu``. If the FMU is run by several
        interfaces, ``":ModelExchange"`` follows for that one.
    fmu : str
        The path of its file in the folder of the run.
    outcome : Outcome
    cause : VerdictCause
        Why it has not passed.
    reason : str
        The same in a sentence; empty if it has passed.
    notes : tuple of str
        Choices that the runner has made, such as an earlier stop time.
    model, exporter, exporter_version, fmi_version, platform : str
        The name of the model, the tool that has exported it, ``"2.0"`` or ``"3.0"``, and the folder of the library
        that was used, as ``"linux64"``. Empty if they are not known.
    interface : str
        ``"CoSimulation"``, ``"ModelExchange"``, ``"ScheduledExecution"``, or empty if the FMU cannot be read.
    sha256 : str
        Of the file.
    start_time, stop_time, step_size : float or None
        Of the run, in s; None if it has not started.
    rows : int
        How many rows the results have.
    seconds : float
        Time of the run itself, from the unpacked file to the freed instance, in s.
    overhead : float
        Time that its process took beyond that, in s.
    reference : str
        The path of its reference in the folder of the run; empty if there is none.
    measures : tuple of Measure
        One for each column of the reference.
    curves : tuple of Curve
        Results and reference with few points, for figures.
    results : str
        The folder with its results and its log, in the output folder of the run.
    """

    _: KW_ONLY
    name: str
    fmu: str
    outcome: VerdictOutcome
    cause: VerdictCause = VerdictCause.NONE
    reason: str = ""
    notes: tuple[str, ...] = ()
    model: str = ""
    exporter: str = ""
    exporter_version: str = ""
    fmi_version: str = ""
    interface: str = ""
    platform: str = ""
    sha256: str = ""
    start_time: float | None = None
    stop_time: float | None = None
    step_size: float | None = None
    rows: int = 0
    seconds: float = 0.0
    overhead: float = 0.0
    reference: str = ""
    measures: tuple[Measure, ...] = ()
    curves: tuple[ComparedCurve, ...] = ()
    results: str = ""

    @property
    def has_passed(self) -> bool:
        """Whether it has."""
        return self.outcome is VerdictOutcome.PASSED

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON values, with keys like ``"stopTime"``."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given["outcome"], given["cause"] = self.outcome.value, self.cause.value
        given["notes"] = list(self.notes)
        given["measures"] = [measure.to_json() for measure in self.measures]
        given["curves"] = to_json(self.curves)
        return {attribute_name(name): value for name, value in given.items()}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Verdict:
        """The verdict from such values.

        Raises
        ------
        KeyError, TypeError, ValueError
            If a value is missing or is none of its kind.
        """
        known = {f.name: given[attribute_name(f.name)] for f in fields(cls)}
        known["outcome"], known["cause"] = (
            VerdictOutcome(known["outcome"]),
            VerdictCause(known["cause"]),
        )
        known["notes"] = tuple(known["notes"])
        known["measures"] = tuple(map(Measure.from_json, known["measures"]))
        known["curves"] = from_json(tuple[ComparedCurve, ...], known["curves"])
        return cls(**known)


@dataclass(frozen=True)
class ConformanceRun:
    """A conformance run: what was run how, and all verdicts.

    Attributes
    ----------
    folder : str
        The absolute path of the folder with the FMUs.
    started : str
        Date and time of the start (ISO 8601, UTC).
    version : str
        Of fmimaster.
    platform : str
        Of the machine, in the words of FMI 3.0, such as ``"x86_64-linux"``.
    settings : name → JSON value
        The settings that decide about results.
    verdicts : tuple of Verdict
        Sorted by their names.
    """

    _: KW_ONLY
    folder: str
    started: str
    version: str
    platform: str
    settings: Mapping[str, Any]
    verdicts: tuple[Verdict, ...] = ()

    def count(self, outcome: VerdictOutcome) -> int:
        """How many FMUs have this outcome."""
        return sum(verdict.outcome is outcome for verdict in self.verdicts)

    @property
    def has_passed(self) -> bool:
        """Whether no FMU has failed; rejected ones do not count."""
        return not self.count(VerdictOutcome.FAILED)

    def head(self) -> str:
        """The first line of the file, without the line feed."""
        head = {
            "fmimasterConformance": FORM,
            "folder": self.folder,
            "started": self.started,
            "version": self.version,
            "platform": self.platform,
            "settings": dict(self.settings),
        }
        return json.dumps(head)

    @classmethod
    def read(cls, path: Path) -> ConformanceRun:
        """Read a run from its output folder, or from the file with its verdicts.

        A last line that is not complete is ignored: the run was ended while it was written.

        Raises
        ------
        FileError
            If there is no such file, or it is none of this kind.
        """
        file = path / VERDICTS_FILE if path.is_dir() else path
        if not file.exists():
            what = f"has no '{VERDICTS_FILE}'" if path.is_dir() else "does not exist"
            raise FileError(
                f"'{path}' {what}. Expected the output folder of 'fmimaster conformance'."
            )
        with decoding(file, "a file of verdicts"):
            text = read_whole(file).decode()
        lines = text.split("\n")[:-1]  # what follows the last line feed is not complete
        head = _parsed(file, 1, lines[0] if lines else "")
        if head.get("fmimasterConformance") != FORM:
            raise FileError(
                f"'{file}' is not a file of verdicts that this version can read. Expected a file written by "
                "'fmimaster conformance'."
            )
        found = {}
        for number, line in enumerate(lines[1:], 2):
            try:
                verdict = Verdict.from_json(_parsed(file, number, line))
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(
                    f"'{file}', line {number}: it is not a verdict ({error!r})."
                ) from error
            found[verdict.name] = verdict
        try:
            return cls(
                **{name: head[name] for name in _HEAD},
                verdicts=tuple(found[name] for name in sorted(found)),
            )
        except KeyError as error:
            raise FileError(f"'{file}', line 1: {error} is missing.") from error


_HEAD = ("folder", "started", "version", "platform", "settings")


def line_of(verdict: Verdict) -> str:
    """A line of the file, without the line feed."""
    return json.dumps(verdict.to_json())


def _parsed(file: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        values = parsed_json(line)
    except (ValueError, RecursionError) as error:
        raise FileError(f"'{file}', line {number}: it is not JSON ({error}).") from error
    if not isinstance(values, dict):
        raise FileError(f"'{file}', line {number}: expected a JSON object.")
    return values


# A run as text --------------------------------------------------------------------------------------------------------

MOST_REASON = 160
"""Letters of a reason in lines about a run; the whole one is in the report."""

_KINDS = {
    Interface.CO_SIMULATION.value: "CS",
    Interface.MODEL_EXCHANGE.value: "ME",
    Interface.SCHEDULED_EXECUTION.value: "SE",
}


def summary(run: ConformanceRun) -> Iterator[str]:
    """Lines about a run: its FMUs by exporter, those that have not passed, and all in one line."""
    yield from section("FMUs by exporter", aligned(_by_exporter(run.verdicts)))
    for outcome in (VerdictOutcome.FAILED, VerdictOutcome.REJECTED):
        lines = [
            f"  {v.name}: {clipped(v.reason, MOST_REASON)}"
            for v in run.verdicts
            if v.outcome is outcome
        ]
        yield from section(outcome.value.capitalize(), lines)
    yield ""
    yield from fitted(_in_one_line(run))


def _in_one_line(run: ConformanceRun) -> str:
    compared = sum(bool(v.measures) and v.has_passed for v in run.verdicts)
    passed = (
        f"{run.count(VerdictOutcome.PASSED)} passed ({compared} of them compared with a reference)"
    )
    others = [f"{run.count(o)} {o.value}" for o in (VerdictOutcome.FAILED, VerdictOutcome.REJECTED)]
    causes = Counter(v.cause.value for v in run.verdicts if v.cause is not VerdictCause.NONE)
    why = ", ".join(f"{number} {cause}" for cause, number in causes.most_common())
    return f"{count(len(run.verdicts), 'verdict')}: {', '.join([passed, *others])}" + (
        f"; causes: {why}" if why else ""
    )


def _by_exporter(verdicts: Iterable[Verdict]) -> list[tuple[str, ...]]:
    counts: dict[tuple[str, str], Counter[VerdictOutcome]] = {}
    for v in verdicts:
        kind = _KINDS.get(v.interface, "")
        key = (v.exporter or "not named", f"{v.fmi_version or 'unknown'} {kind}".rstrip())
        counts.setdefault(key, Counter())[v.outcome] += 1
    head = ("exporter", "FMI", "FMUs", *(o.value for o in VerdictOutcome))
    return [
        head,
        *(
            (*key, str(sum(c.values())), *(str(c[o] or "") for o in VerdictOutcome))
            for key, c in sorted(counts.items())
        ),
    ]
