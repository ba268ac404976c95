"""The file with the verdicts of a run: it is written during the run, and a later run continues from it.

All other files are made from it at the end, so an interruption loses only the FMUs that were running. Limits, solver and
version decide about results and must be the same when a run is continued; deadline, memory and workers may differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType

from fmimaster.base.errors import FileError, FmimasterError, OptionError
from fmimaster.conformance.cases import FmuCase
from fmimaster.conformance.verdict import (
    VERDICTS_FILE,
    ConformanceRun,
    Verdict,
    VerdictOutcome,
    line_of,
)
from fmimaster.fmu.fingerprint import file_hash


class KeptVerdicts:
    """The verdicts so far, in memory and in the file. A context manager, which closes the file.

    Parameters
    ----------
    run : ConformanceRun
        With the verdicts that are kept.
    """

    def __init__(self, folder: Path, run: ConformanceRun) -> None:
        self._run = run
        self._found = {verdict.name: verdict for verdict in run.verdicts}
        file, new = folder / VERDICTS_FILE, folder / f"{VERDICTS_FILE}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = [run.head(), *map(line_of, run.verdicts)]
            new.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            os.replace(new, file)  # the older file is there until the new one is complete
            self._stream = file.open("a", encoding="utf-8")
        except OSError as error:
            raise FileError(f"'{file}' cannot be written: {error.strerror}.") from error

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict; it is in the file when this returns."""
        self._found[verdict.name] = verdict
        self._stream.write(f"{line_of(verdict)}\n")
        self._stream.flush()

    @property
    def run(self) -> ConformanceRun:
        """The run with the verdicts so far."""
        return replace(self._run, verdicts=tuple(self._found[name] for name in sorted(self._found)))

    def __enter__(self) -> KeptVerdicts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()


def gone_on(
    folder: Path, new: ConformanceRun, cases: Sequence[FmuCase], retry: bool
) -> ConformanceRun:
    """The run in an output folder, with those verdicts that still hold; the new run, if there is none.

    A verdict holds if its FMU is the same, and no file beside it is newer than the run.

    Parameters
    ----------
    retry : bool
        Whether only the verdicts of FMUs that have passed are kept.

    Raises
    ------
    FileError
        If the file with the verdicts cannot be read.
    OptionError
        If they belong to another folder, version of fmimaster, platform, or to other limits.
    """
    if not (folder / VERDICTS_FILE).exists():
        return new
    old = ConformanceRun.read(folder)
    _refuse_other(folder, old, new)
    by_name = {case.name: case for case in cases}
    kept = tuple(
        verdict
        for verdict in old.verdicts
        if verdict.name in by_name
        and not (retry and verdict.outcome is not VerdictOutcome.PASSED)
        and _holds(verdict, by_name[verdict.name], old.started)
    )
    return replace(new, started=old.started, verdicts=kept)


def _refuse_other(folder: Path, old: ConformanceRun, new: ConformanceRun) -> None:
    what = {
        "folder": (old.folder, new.folder),
        "version of fmimaster": (old.version, new.version),
        "platform": (old.platform, new.platform),
        **{f"setting '{k}'": (old.settings.get(k), v) for k, v in new.settings.items()},
    }
    differing = [
        f"{name}: {before}, now {now}" for name, (before, now) in what.items() if before != now
    ]
    if differing:
        raise OptionError(
            f"'{folder}' has the verdicts of another run ({'; '.join(differing)}). Choose another output folder, or "
            "run all FMUs again (--again)."
        )


def _holds(verdict: Verdict, case: FmuCase, started: str) -> bool:
    try:
        begun = datetime.fromisoformat(started).timestamp()
        beside = [f for f in (case.reference, case.options, case.inputs) if f is not None]
        is_carried = case.reference is None and verdict.reference.startswith(f"{case.fmu}/")
        return (
            (is_carried or verdict.reference == case.beside(case.reference))
            and verdict.results == case.results
            and all(file.stat().st_mtime <= begun for file in beside)
            and verdict.sha256 == file_hash(case.path)
        )
    except (OSError, ValueError, FmimasterError):
        return False


def names_of(verdicts: Iterable[Verdict]) -> frozenset[str]:
    """The names of verdicts."""
    return frozenset(verdict.name for verdict in verdicts)
