"""The facts that a CSV file cannot hold, in a JSON file beside it: events and causes of steps.

``results.csv`` has ``results.events.json`` beside it, if there is an event or a cause to report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from fmimaster.causes import Event, Steps, needs_explanation
from fmimaster.errors import FileError
from fmimaster.given_path import given_path
from fmimaster.results.facts_reader import EVENTS_2, events_in, steps_in
from fmimaster.results.facts_writer import FactsWriter, head_of

SUFFIX = ".events.json"
_Entry = TypeVar("_Entry", Event, Steps)


def facts_path(table: str | os.PathLike[str]) -> Path:
    """Where the facts of a table are."""
    path = given_path(table)
    if not path.name:
        raise FileError(f"'{table}' is a folder. Give the CSV file in it.")
    if path.name.endswith(SUFFIX):
        return path
    return path.with_name((path.stem if path.suffix.lower() == ".csv" else path.name) + SUFFIX)


def write_facts(
    table: str | os.PathLike[str], events: Sequence[Event], steps: Sequence[Steps]
) -> None:
    """Write the facts of a table beside it; those of an earlier table of that name do not stay."""
    if may_have_facts(table):
        finish_facts(FactsWriter(facts_path(table)), events, steps)


def finish_facts(writer: FactsWriter, events: Sequence[Event], steps: Sequence[Steps]) -> None:
    """Complete a file of facts, which the writer may have begun, by the last events and steps."""
    if writer.has_written or needs_explanation(events, steps):
        writer.finish(events, steps)
    else:
        writer.remove_older()


def may_have_facts(table: str | os.PathLike[str]) -> bool:
    """Whether facts can stand beside a table: it is a file, and no device such as /dev/stdout."""
    return Path(table).is_file() and Path(table).parent != Path("/dev")


class Facts:
    """The facts beside a table, read from their file each time they are gone through: they may be many.

    Raises
    ------
    FileError
        While they are gone through, if the file cannot be read, or is something else.
    """

    def __init__(self, table: str | os.PathLike[str]) -> None:
        self.path = facts_path(table)

    def events(self) -> Iterator[Event]:
        """The events, in their order; none if there is no file."""
        return self._read(events_in)

    def steps(self) -> Iterator[Steps]:
        """The steps, likewise."""
        return self._read(steps_in)

    def _read(self, entries: Callable[[Path], Iterator[_Entry]]) -> Iterator[_Entry]:
        path = self.path
        try:
            if not path.is_file():
                return
            if EVENTS_2 not in (head := head_of(path)):
                raise ValueError(f"it begins with {head[:40]!r}, not with the format '{EVENTS_2}'")
            yield from entries(path)
        except OSError as error:
            raise FileError(f"'{path}' cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, OverflowError, RecursionError, MemoryError) as error:
            why = (
                f"it lacks {error}"
                if isinstance(error, KeyError)
                else str(error) or "it is too large"
            )
            raise FileError(
                f"'{path}' does not hold the events and steps of a run ({why}). Simulate again, or move the file away."
            ) from error


def read_facts(table: str | os.PathLike[str]) -> tuple[tuple[Event, ...], tuple[Steps, ...]]:
    """Events and steps of a table; none if there is no file of facts beside it.

    Raises
    ------
    FileError
        If it cannot be read, or is something else.
    """
    read = Facts(table)
    return tuple(read.events()), tuple(read.steps())
