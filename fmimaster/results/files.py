"""Files of results: the suffix of the path decides on the format, for writing, reading, and during a run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from io import BufferedIOBase, RawIOBase, StringIO
from pathlib import Path
from reprlib import repr as short
from typing import Any, Protocol, TextIO, runtime_checkable

from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import check_is_file, decoding, given_path, open_file
from fmimaster.base.installation import optional
from fmimaster.results.csv import CsvWriter, read_csv, write_csv
from fmimaster.results.facts import Facts, facts_path, is_document, may_have_facts
from fmimaster.results.facts_writer import FactsWriter, write_facts
from fmimaster.results.row_writer import RowWriter
from fmimaster.results.table import Table


@dataclass(frozen=True, slots=True)
class _Format:
    """A binary format; its module is imported where it is used."""

    module: str
    writer: str
    reader: str
    library: str
    extra: str
    """Of fmimaster, which installs the library."""


_BINARY = {
    ".parquet": _Format("parquet", "ParquetWriter", "read_parquet", "pyarrow.parquet", "parquet"),
    ".h5": _Format("hdf5", "Hdf5Writer", "read_hdf5", "h5py", "hdf5"),
    ".mat": _Format("mat", "MatWriter", "read_mat", "scipy.io", "all"),
}
SUFFIXES = (".csv", *_BINARY)
"""Of the files that can be written and read."""
_NO_NAME = re.compile(r'[%/\\:*?"<>|\x00-\x1f]')
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
    if suffix not in SUFFIXES and not _is_device(path):
        has = f"has the suffix '{suffix}'" if suffix else "has no suffix"
        raise OptionError(
            f"The results file '{path}' {has}, which decides on the format; expected {', '.join(SUFFIXES)}."
        )
    if (found := _binary(path)) is not None:
        optional(found.library, found.extra, f"A {suffix} file")
    facts = facts_path(path)
    if facts.is_file() and not is_document(facts):
        raise FileError(
            f"'{facts}' would be overwritten by units, settings and events of the run. Move it away."
        )


@runtime_checkable
class _Stream(Protocol):
    """Takes text; also objects that wrap a stream, such as temporary files."""

    def write(self, text: str, /) -> Any: ...


def _binary(path: str | os.PathLike[str]) -> _Format | None:
    """The binary format of a file; None for CSV."""
    return None if _is_device(path) else _BINARY.get(given_path(path).suffix.lower())


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Whether it is a device or pipe."""
    file = given_path(path)
    return file.exists() and not file.is_file() and not file.is_dir()


def _made(found: _Format, name: str) -> Callable[..., Any]:
    module = import_module(f"fmimaster.results.{found.module}")
    made: Callable[..., Any] = getattr(module, name)
    return made


def row_writer(target: str | os.PathLike[str] | TextIO) -> RowWriter:
    """A writer of rows to a file, in the format of its suffix, or as CSV to a text stream.

    Raises
    ------
    OptionError, FileError
        If the suffix is unknown, a library is missing, or the file cannot be written.
    """
    if not isinstance(target, str | os.PathLike):
        if not isinstance(target, _Stream) or isinstance(target, RawIOBase | BufferedIOBase):
            raise OptionError(
                f"A file for results is {short(target)}, expected a path or a text stream."
            )
        return CsvWriter(target)
    check_results_file(target)
    found = _binary(target)
    if found is None:
        return CsvWriter(target)
    writer: RowWriter = _made(found, found.writer)(target)
    return writer


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
        name = _NO_NAME.sub(lambda found: f"%{ord(found[0]):02X}", component)
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
    if _binary(path) is not None:
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
    return Facts(facts_path(path)) if _binary(path) is None else _read(path)[1]


def _read(path: str | os.PathLike[str]) -> tuple[Table, Facts]:
    found = _binary(path)
    file = given_path(path)
    if file.suffix.lower() in _SYSTEMS and file.exists():
        raise FileError(
            f"'{path}' is a system or an FMU, not results. Expected a file that a simulation has written: "
            f"{', '.join(SUFFIXES)}. Simulate it first: fmimaster simulate '{path}' --output-file results.csv."
        )
    if found is None:
        return read_csv(path), Facts(facts_path(path))
    optional(found.library, found.extra, f"A {file.suffix.lower()} file")
    check_is_file(file)
    with decoding(path, f"a {file.suffix.lower()} file with results"):
        try:
            table, facts = _made(found, found.reader)(file)
        except (OptionError, ValueError, TypeError, LookupError) as error:
            raise FileError(f"'{path}' holds no results that can be read: {error}") from error
    return table, facts
