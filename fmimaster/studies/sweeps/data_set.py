"""The folder of a sweep: a Parquet data set with a row for each run, and one with the rows of the runs, if they are kept.

::

    FOLDER/_sweep.json             what the sweep is: compared when it is continued
    FOLDER/00000000-00000019.parquet        runs 0 to 19: parameters, status, error, warnings, scalars
    FOLDER/_rows/00000000-00000019.parquet  run, time, outputs

A file gets its name when it is complete, so a chunk is complete if its file is there. Names are in the order of runs, and
programs that read a data set leave out what begins with ``_``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import own_name, put_in_place, read_json, reason_of
from fmimaster.base.own_folder import lock_file
from fmimaster.base.text import in_short, listed
from fmimaster.results.columns import objects
from fmimaster.results.parquet import batch_of, opened, units_in, values_read, write_batches
from fmimaster.studies.sweeps.checked import DesignRuns
from fmimaster.studies.sweeps.design import MOST_RUNS
from fmimaster.studies.sweeps.work import ChunkResult

DESCRIPTION, _ROWS, _LOCK = "_sweep.json", "_rows", "_lock"
_FORMAT = "fmimaster sweep 1"
_NAME = re.compile(r"(\d{8})-(\d{8})\.parquet")
_PART = re.compile(r"_?\d{8}-\d{8}\.parquet\.[0-9a-f]{8}\.part")

RUN, STATUS, ERROR, WARNINGS = "run", "status", "error", "warnings"
OWN_COLUMNS = (RUN, STATUS, ERROR, WARNINGS)
"""Columns besides parameters and scalars."""
DONE, FAILED = "done", "failed"
"""What the status of a run can be."""


@dataclass(frozen=True)
class Description:
    """What a sweep is: two sweeps with equal descriptions have the same runs with the same results.

    Parameters
    ----------
    facts
        What → value, as of JSON.
    """

    facts: Mapping[str, Any]

    @staticmethod
    def read(folder: Path) -> Description:
        """The one in a folder.

        Raises
        ------
        FileError
            If it has none, or what is there is no such file.
        """
        file = folder / DESCRIPTION
        if not file.is_file():
            raise FileError(
                f"'{folder}' is not the data set of a sweep: it has no {DESCRIPTION}. Give another folder."
            )
        found = read_json(file)
        if not _is_description(found):
            raise FileError(
                f"'{file}' does not describe a sweep of this version of fmimaster ({_FORMAT}). Give another folder."
            )
        return Description(found)

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Description:
        """A new one, with values as they are after they were read."""
        return Description(json.loads(json.dumps({"format": _FORMAT, **facts})))

    def text(self) -> str:
        """As the file has it."""
        return json.dumps(self.facts, indent=1, ensure_ascii=False) + "\n"

    def differences(self, other: Description) -> list[str]:
        """What is another one there, in words."""
        ours, theirs = dict(_flat(self.facts)), dict(_flat(other.facts))
        return [
            f"{name} differs"
            if _is_hash(ours.get(name))
            else f"{name}: {in_short(theirs.get(name))}, now {in_short(ours.get(name))}"
            for name in {**theirs, **ours}
            if ours.get(name) != theirs.get(name)
        ]


def _is_description(found: Any) -> bool:
    """Whether it has what is read of it."""
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        return False
    design, runs = found.get("design"), found.get("runs")
    return (
        isinstance(runs, int)
        and isinstance(design, dict)
        and isinstance(design.get("parameters"), dict | list)
        and all(isinstance(name, str) for name in design["parameters"])
    )


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _flat(facts: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}: ")
        else:
            yield before + name, value


class DataSet:
    """The files of a sweep, while it runs.

    Parameters
    ----------
    folder : Path
    runs : DesignRuns
        All of them.
    """

    def __init__(self, folder: Path, runs: DesignRuns) -> None:
        self._folder, self._runs = folder, runs
        self.done = np.zeros(runs.number, bool)
        """Which runs are complete."""
        self.failed = 0
        """How many of them have an error."""
        self.names: tuple[str, ...] | None = None
        """The scalars; None as long as no run was complete."""
        self._waiting: list[ChunkResult] = []
        """Chunks without a complete run: their file needs the names of the scalars."""

    def take_up(self) -> None:
        """Find what is complete, and remove what is not."""
        for file, first, end in chunk_files(self._folder):
            columns, _ = read_columns(file)
            numbers = np.arange(first, end)
            if (
                end > self._runs.number
                or self.done[first:end].any()
                or not np.array_equal(columns[RUN], numbers)
            ):
                raise FileError(
                    f"'{file}' does not have the runs {first} to {end - 1} of this sweep, or another file has some of them "
                    "too. Remove it: the same call makes its runs again."
                )
            self.done[first:end] = True
            self.failed += int(np.count_nonzero(columns[STATUS] == FAILED))
            taken = {*OWN_COLUMNS, *self._runs.columns}
            self.names = tuple(name for name in columns if name not in taken)
        whole = {file.name for file, *_ in chunk_files(self._folder)}
        rows = self._folder / _ROWS
        for folder in (self._folder, rows):
            for file in [*folder.iterdir()] if folder.is_dir() else []:
                is_alone = folder == rows and _NAME.fullmatch(file.name) and file.name not in whole
                if is_alone or _PART.fullmatch(file.name):
                    file.unlink(missing_ok=True)

    def gaps(self) -> list[tuple[int, int]]:
        """The runs that are missing: first, and behind the last one."""
        edges = np.flatnonzero(np.diff(np.concatenate(([True], self.done, [True])).astype(np.int8)))
        return [*zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]

    def add(self, found: ChunkResult) -> None:
        """Write the results of a chunk. It is complete when this returns.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        if self.names is None and not found.names:
            self._waiting.append(found)
            return
        if self.names is None:
            self.names = found.names
            self.end()
        if found.names and found.names != self.names:
            ChunkResult.joined([found, ChunkResult(0, (), (), self.names, np.empty((0, 0)))])
        self._write(found)

    def end(self) -> None:
        """Write what waits for the names of the scalars; without a complete run, there are none."""
        for waiting in self._waiting:
            self._write(waiting)
        self._waiting.clear()

    def _write(self, found: ChunkResult) -> None:
        name = f"{found.first:08}-{found.end - 1:08}.parquet"
        for content in found.rows:
            (self._folder / _ROWS).mkdir(exist_ok=True)
            write_file(self._folder / _ROWS / name, partial(_write_whole, content=content))
        columns, units = self._columns(found), self._runs.units
        write_file(
            self._folder / name, lambda stream: write_batches(stream, [batch_of(columns, units)])
        )
        self.done[found.first : found.end] = True
        self.failed += sum(map(bool, found.errors))

    def _columns(self, found: ChunkResult) -> dict[str, NDArray[Any]]:
        names, runs = self.names or (), len(found.errors)
        numbers = found.scalars if found.names else np.full((runs, len(names)), np.nan)
        has_error = np.array([bool(text) for text in found.errors])
        given = {name: v[found.first : found.end] for name, v in self._runs.columns.items()}
        return {
            RUN: np.arange(found.first, found.end),
            **given,
            STATUS: np.where(has_error, FAILED, DONE).astype(object),
            ERROR: objects([text or None for text in found.errors]),
            WARNINGS: objects([text or None for text in found.warnings]),
            **{n: np.ma.MaskedArray(numbers[:, k], has_error) for k, n in enumerate(names)},
        }


def _write_whole(stream: BinaryIO, content: bytes) -> None:
    stream.write(content)


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file that gets its name when it is complete.

    Raises
    ------
    FileError
    """
    new = own_name(path).with_name(f"_{own_name(path).name}")
    try:
        with new.open("wb") as stream:
            write(stream)
        put_in_place(new, path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise FileError(f"'{path}' cannot be written: {reason_of(error)}.") from error
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def chunk_files(folder: Path) -> list[tuple[Path, int, int]]:
    """The files with runs, each with its first one and the one behind its last one, in their order."""
    found = []
    for file in sorted(folder.iterdir()):
        if name := _NAME.fullmatch(file.name):
            first, end = int(name[1]), int(name[2]) + 1
            if not first < end <= MOST_RUNS:
                raise FileError(f"'{file}' has an impossible name. Remove it.")
            found.append((file, first, end))
    return found


def read_columns(file: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The columns of a file with runs, and the units of those that have one.

    Raises
    ------
    FileError
    """
    with opened(file) as content:
        read = content.read()
        columns = {name: values_read(read[name]) for name in read.column_names}
    if missing := [name for name in OWN_COLUMNS if name not in columns]:
        raise FileError(
            f"'{file}' has no column {missing[0]}, so it is no file of a sweep. Remove it."
        )
    return columns, units_in(read.schema)


def rows_files(folder: Path) -> list[tuple[Path, int, int]]:
    """The files with rows, each with its first run and the one behind its last one."""
    every = ((folder / _ROWS / file.name, first, end) for file, first, end in chunk_files(folder))
    return [one for one in every if one[0].is_file()]


@contextmanager
def taken(folder: Path, description: Description) -> Iterator[None]:
    """The folder, with this description, and for this process only.

    Raises
    ------
    FileError
        If it cannot be written, has something else, or another process sweeps into it.
    OptionError
        If it is the data set of another sweep.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        has_more = any(file.name not in (DESCRIPTION, _LOCK) for file in folder.iterdir())
    except OSError as error:
        raise FileError(
            f"'{folder}' cannot be the folder of a sweep: {reason_of(error)}."
        ) from error
    if (folder / DESCRIPTION).exists():
        before = Description.read(folder)
        if differing := description.differences(before):
            raise OptionError(
                f"'{folder}' is the data set of another sweep ({listed(differing, 4)}). Choose another folder, or remove "
                "this one."
            )
    elif has_more:
        raise FileError(
            f"'{folder}' has other files, and is not the data set of a sweep. Give a new folder, or an empty one."
        )
    with ExitStack() as files:
        lock = folder / _LOCK
        try:
            stream = files.enter_context(lock.open("ab"))
            lock_file(stream.fileno(), wait=False)
        except BlockingIOError:
            raise FileError(
                f"Another process sweeps into '{folder}'. Wait for it, or give another folder."
            ) from None
        except OSError:
            pass  # a file system without locks
        text = description.text().encode()
        write_file(folder / DESCRIPTION, partial(_write_whole, content=text))
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
