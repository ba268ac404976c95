"""Files of results: the suffix of the path decides on the format, for writing, reading, and during a run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from io import BufferedIOBase, RawIOBase, StringIO
from pathlib import Path
from reprlib import repr as short
from typing import Any, TextIO

from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import check_is_file, decoding, given_path, open_file
from fmimaster.base.installation import optional
from fmimaster.results.csv import CsvWriter, write_csv
from fmimaster.results.facts import Facts, facts_path, is_document, may_have_facts
from fmimaster.results.facts_writer import FactsWriter, replace_metadata, write_facts
from fmimaster.results.formats import CSV, FORMATS, Format
from fmimaster.results.row_writer import RowWriter
from fmimaster.results.table import Table

_NO_NAME = r'[%/\\:*?"<>|\x00-\x1f]'
"""Letters that names of components can have, and those of files cannot; and that which stands for them."""
_SYSTEMS = (".fmu", ".ssp", ".ssd", ".xml")
"""Of files that are simulated."""


def check_results_file(path: str | os.PathLike[str]) -> None:
    """Refuse an output file with an unknown suffix, a missing library, or no place for its facts.

    A pipe or device, such as ``/dev/stdout``, takes CSV.

    Raises
    ------
    OptionError, FileError
    """
    suffix = given_path(path).suffix.lower()
    if suffix not in FORMATS and not _is_device(path):
        has = f"has the suffix '{suffix}'" if suffix else "has no suffix"
        raise OptionError(
            f"The results file '{path}' {has}, which decides on the format; expected {', '.join(FORMATS)}."
        )
    _check_library(_format(path))
    facts = facts_path(path)
    if facts.is_file() and not is_document(facts):
        raise FileError(
            f"'{facts}' would be overwritten by units, settings and events of the run. Move it away."
        )


def _takes_text(target: Any) -> bool:
    """Whether it is a text stream, or wraps one, as temporary files do."""
    try:
        return callable(target.write) and not isinstance(target, RawIOBase | BufferedIOBase)
    except AttributeError:
        return False


def _format(path: str | os.PathLike[str]) -> Format:
    """The format of a file."""
    return CSV if _is_device(path) else FORMATS.get(given_path(path).suffix.lower(), CSV)


def _check_library(found: Format) -> None:
    if found.library:
        optional(found.library, found.extra, f"A {found.suffix} file")


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Whether it is a device or pipe."""
    file = given_path(path)
    return file.exists() and not file.is_file() and not file.is_dir()


def _at(place: str) -> Any:
    """The writer or reader of a format, whose module is imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"fmimaster.results.{module}"), name)


def row_writer(target: str | os.PathLike[str] | TextIO) -> RowWriter:
    """A writer of rows to a file, in the format of its suffix, or as CSV to a text stream.

    Raises
    ------
    OptionError, FileError
        If the suffix is unknown, a library is missing, or the file cannot be written.
    """
    if not isinstance(target, str | os.PathLike):
        if not _takes_text(target):
            raise OptionError(
                f"A file for results is {short(target)}, expected a path or a text stream."
            )
        return CsvWriter(target)
    check_results_file(target)
    return _at(_format(target).writer)(target)  # type: ignore[no-any-return]


def facts_writer(target: str | os.PathLike[str] | TextIO, writer: RowWriter) -> FactsWriter | None:
    """A writer of the facts of a table, into the file or beside it; None for a stream or device."""
    if not isinstance(target, str | os.PathLike) or not (writer.embed or may_have_facts(target)):
        return None
    return FactsWriter(facts_path(target), writer.embed)


def write_table(table: Table, target: str | os.PathLike[str] | TextIO) -> None:
    """Write a whole table with its facts, with the same bytes as block by block; and its intermediate values.

    Raises
    ------
    OptionError, FileError
    """
    with row_writer(target) as writer:
        writer.write(table)
        if (facts := facts_writer(target, writer)) is not None:
            write_facts(facts, table)
    write_intermediate(table, target)


def write_metadata(path: Path, metadata: Mapping[str, Any]) -> None:
    """Replace the metadata of a complete file of results.

    Raises
    ------
    OptionError, FileError, OSError
        The file stays as it is.
    """
    if _format(path) is not CSV:
        write_table(replace(read_table(path), metadata=metadata), path)
    elif may_have_facts(path) and facts_path(path).is_file():
        replace_metadata(facts_path(path), metadata)


def write_intermediate(table: Table, target: str | os.PathLike[str] | TextIO) -> None:
    """Write the values inside of steps into files of the same format beside ``target``, one for each component:
    ``NAME.intermediate.COMPONENT.SUFFIX``, with ``%2F`` for ``/``. Streams and devices take none.

    Raises
    ------
    OptionError, FileError
    """
    if not isinstance(target, str | os.PathLike) or _is_device(target):
        return
    file = given_path(target)
    for component, values in table.intermediate.items():
        name = re.sub(_NO_NAME, lambda found: f"%{ord(found[0]):02X}", component)
        write_table(values, file.with_name(f"{file.stem}.intermediate.{name}{file.suffix}"))


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table with its facts, in the format of the suffix; with any other suffix as CSV.

    Raises
    ------
    OptionError, FileError
        If a library is missing, or the file cannot be read.
    """
    table, facts = _read(path)
    return replace(table, **facts.added_to(table))


def begins_with(path: Path, rows: Table) -> bool:
    """Whether a file of results has the columns of these rows and begins with them, as far as it has rows; an empty file
    does.

    Raises
    ------
    OptionError, FileError
        As :func:`read_table`.
    """
    if _format(path) is not CSV:
        found = read_table(path).expand()
        n = min(found.rows, rows.rows)
        return found.names == rows.expand().names and bool((found.time[:n] == rows.time[:n]).all())
    text = StringIO(newline="")
    write_csv(rows, text)
    expected = text.getvalue().encode()
    with open_file(path) as stream:
        begin = stream.read(len(expected))
    return expected.startswith(begin)


def facts_of(path: str | os.PathLike[str]) -> Facts:
    """The facts of a file of results, or in a document of facts (``.json``).

    Raises
    ------
    OptionError, FileError
    """
    return Facts(facts_path(path)) if _format(path) is CSV else _read(path)[1]


def _read(path: str | os.PathLike[str]) -> tuple[Table, Facts]:
    found, file = _format(path), given_path(path)
    if file.suffix.lower() in _SYSTEMS and file.exists():
        raise FileError(
            f"'{path}' is a system or an FMU, not results. Expected a file that a simulation has written: "
            f"{', '.join(FORMATS)}. Simulate it first: fmimaster simulate '{path}' --output-file results.csv."
        )
    read = _at(found.reader)
    if found is CSV:
        return read(path), Facts(facts_path(path))
    _check_library(found)
    check_is_file(file)
    with decoding(path, f"a {found.suffix} file with results"):
        try:
            table, facts = read(file)
        except (OptionError, ValueError, TypeError, LookupError) as error:
            raise FileError(f"'{path}' holds no results that can be read: {error}") from error
    return table, facts
