"""Runs that are stored in a folder, to continue a search that was cancelled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from fmimaster.base.errors import FileError
from fmimaster.base.files import read_json
from fmimaster.results.results import Results
from fmimaster.studies.optimization.trial import SimulationTrial

_INDEX = "runs.json"
_FORM = 1
_CHUNK = 2**20


class KeptRuns:
    """A folder with a CSV file for each run, and an index with the trial of each file.

    Parameters
    ----------
    folder
        Created if it does not exist.
    facts
        Properties that all runs have in common; a folder of other runs is refused.

    Raises
    ------
    FileError
        If the folder belongs to other runs, or cannot be read or written.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self._folder = folder
        self._facts = json.loads(json.dumps(facts))
        self._files: dict[SimulationTrial, str] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self._index.exists():
                self._read()
            elif any(folder.iterdir()):
                raise FileError(
                    f"The folder '{folder}' contains other files. Choose a new or empty one."
                )
        except OSError as error:
            raise self._told(error) from error

    @property
    def _index(self) -> Path:
        return self._folder / _INDEX

    def _read(self) -> None:
        try:
            content = read_json(self._index)
            known, runs = content["facts"], content["runs"]
            trials = {
                run["file"]: SimulationTrial(
                    tuple(run["sequence"]),
                    frozenset((a, b) for a, b in run["stale"]),
                    bool(run["halved"]),
                )
                for run in runs
            }
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"'{self._index}' is not an index of kept runs: {error}. Choose another folder."
            ) from error
        if content.get("form") != _FORM or known != self._facts:
            other = [k for k in self._facts if known.get(k) != self._facts[k]]
            raise FileError(
                f"The runs in '{self._folder}' are those of another system, or have other settings "
                f"({', '.join(other) or 'form'}). Choose a new folder."
            )
        self._files = {
            trial: file for file, trial in trials.items() if (self._folder / file).is_file()
        }

    def get(self, trial: SimulationTrial) -> Results | None:
        """The rows of a trial, None if it is not kept."""
        file = self._files.get(trial)
        return None if file is None else Results.read(self._folder / file)

    def put(self, trial: SimulationTrial, results: Results) -> None:
        """Store the rows of a trial: first the rows, then the index, so an interruption leaves no wrong entry."""
        taken = set(self._files.values())  # a file may have been deleted
        file = next(f for k in count(1) if (f := f"run-{k:04}.csv") not in taken)
        results.write(self._folder / file)
        self._files[trial] = file
        content = {
            "form": _FORM,
            "facts": self._facts,
            "runs": [
                {
                    "file": name,
                    "sequence": t.sequence,
                    "stale": sorted(t.stale),
                    "halved": t.halved,
                }
                for t, name in self._files.items()
            ],
        }
        part = self._index.with_name(f"{_INDEX}.part")
        try:
            part.write_text(json.dumps(content, indent=1), encoding="utf-8")
            part.replace(self._index)
        except OSError as error:
            raise self._told(error) from error

    def _told(self, error: OSError) -> FileError:
        return FileError(
            f"Runs cannot be kept in '{self._folder}': {error.strerror or error}. Choose another folder."
        )


def digest(files: Iterable[Path]) -> str:
    """A number for the content of some files, and of all files in folders."""
    found = hashlib.sha256()
    for path in files:
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in inside:
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    found.update(chunk)
    return found.hexdigest()
