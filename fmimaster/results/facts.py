"""The facts of a table besides its rows: events, causes of steps, units and metadata of the run.

A CSV file cannot hold them: ``results.csv`` has ``results.csv.json`` beside it. Files of the other formats hold the same
document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from fmimaster.base.errors import FileError
from fmimaster.base.files import given_path
from fmimaster.record.causes import Activations, Event, Steps, needs_explanation
from fmimaster.results.facts_reader import (
    FORMAT,
    Document,
    activations_in,
    events_in,
    metadata_in,
    steps_in,
    units_in,
)
from fmimaster.results.facts_writer import FactsWriter, head_of
from fmimaster.results.table import Table

SUFFIX = ".json"
_Read = TypeVar("_Read")


def facts_path(table: str | os.PathLike[str]) -> Path:
    """Path of the file with the facts of a CSV file."""
    path = given_path(table)
    if not path.name:
        raise FileError(f"'{table}' is a folder. Give the CSV file in it.")
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def write_facts(writer: FactsWriter, table: Table) -> None:
    """Write the facts of a table, if it has any; those of an earlier table with that name are removed."""
    finish_facts(writer, table.events, table.steps, table)


def finish_facts(
    writer: FactsWriter, events: Sequence[Event], steps: Sequence[Steps], table: Table
) -> None:
    """Complete a document, which the writer may have begun, by the last events and steps, and by units and metadata."""
    has_facts = (
        table.units or table.metadata or table.activations or needs_explanation(events, steps)
    )
    if writer.has_written or has_facts:
        # formats without arrays have the units of the elements
        units = {**table.units, **table.expand().units}
        writer.finish(events, steps, table.activations, units, table.metadata)
    else:
        writer.remove_older()


def may_have_facts(table: str | os.PathLike[str]) -> bool:
    """Whether a file of facts can be beside a table: it is a file, not a device such as /dev/stdout."""
    return Path(table).is_file() and Path(table).parent != Path("/dev")


class Facts:
    """The facts of a table, read from their document in each iteration, because they may be many.

    Parameters
    ----------
    path : Path
        The file of the document, or the file that holds it.
    document : bytes, optional
        The document, if the file holds more than that; empty if the file has none.

    Raises
    ------
    FileError
        During an iteration, if the document cannot be read or is another file.
    """

    def __init__(self, path: Path, document: bytes | None = None) -> None:
        self.path = path
        self._document = document

    @property
    def exist(self) -> bool:
        """Whether there is a document."""
        return self.path.is_file() if self._document is None else bool(self._document)

    def events(self) -> Iterator[Event]:
        """The events, in their order; none if there is no document."""
        return self._read(events_in)

    def steps(self) -> Iterator[Steps]:
        """The steps, likewise."""
        return self._read(steps_in)

    def activations(self) -> Iterator[Activations]:
        """The activations of clocks, likewise."""
        return self._read(activations_in)

    def units(self) -> dict[str, str]:
        """Units of columns, of arrays also of their elements; none if there is no document."""
        return dict(self._read(lambda document: iter(units_in(document).items())))

    def metadata(self) -> dict[str, Any]:
        """The metadata of the run; empty if there is no document."""
        return dict(self._read(lambda document: iter(metadata_in(document).items())))

    def added_to(self, table: Table) -> dict[str, Any]:
        """Changes of a table that was read without them, as arguments for ``replace``."""
        units = {name: unit for name, unit in self.units().items() if name in table.columns}
        return {
            "events": tuple(self.events()),
            "steps": tuple(self.steps()),
            "activations": tuple(self.activations()),
            "units": {**table.units, **units},
            "metadata": self.metadata(),
        }

    def _read(self, entries: Callable[[Document], Iterator[_Read]]) -> Iterator[_Read]:
        path = self.path
        try:
            if not self.exist:
                return
            head = head_of(path) if self._document is None else FORMAT
            if FORMAT not in head:
                raise ValueError(f"it begins with {head[:40]!r}, not with the format '{FORMAT}'")
            yield from entries(path if self._document is None else self._document)
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
    """Events and steps of a CSV file; none if there is no file of facts beside it.

    Raises
    ------
    FileError
        If it cannot be read, or is another file.
    """
    read = Facts(facts_path(table))
    return tuple(read.events()), tuple(read.steps())
