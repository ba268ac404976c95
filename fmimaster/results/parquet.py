"""Results as Parquet files, for pandas, Polars, DuckDB and other tools of data analysis.

The first column is ``time``; arrays become a column per element, texts strings, binaries bytes, and absent values null.
Units are in the metadata of the fields (``unit``), and the facts of the run in those of the file (``fmimaster``; what is
very long continues in ``fmimaster.1``, ``fmimaster.2``, …).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FileError
from fmimaster.base.files import MOST_GROWTH, check_growth, decoding, open_file
from fmimaster.base.installation import optional
from fmimaster.results.columns import are_binaries, check_width, objects
from fmimaster.results.facts import Facts
from fmimaster.results.row_writer import BinaryWriter
from fmimaster.results.table import Table

_MOST_HEADER = 2**20
"""Bytes of a header of a page: with its statistics, the least and the largest value."""
_UNPACKED, _PACKED = 2, 3
"""Fields of a header: sizes in bytes."""
_DATA, _DATA_2, _VALUES = 5, 8, 1
"""Fields of a header that describe values, and in these their number."""


def unpacked_size(stream: IO[bytes], chunk: Any) -> int:
    """Bytes that the pages of a column of a row group take when they are unpacked.

    Parameters
    ----------
    chunk : pyarrow.parquet.ColumnChunkMetaData

    Raises
    ------
    ValueError, LookupError
        If the pages are not where they must be.
    """
    at = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0)
    end = at + chunk.total_compressed_size
    size = values = 0
    while at < end and values < chunk.num_values:
        stream.seek(at)
        header = _Compact(stream.read(min(_MOST_HEADER, end - at)))
        fields = header.fields()
        if fields[_PACKED] < 0 or fields[_UNPACKED] < 0:
            raise ValueError("a page of negative size")
        size += fields[_UNPACKED]
        described = fields.get(_DATA) or fields.get(_DATA_2) or {}
        values += described.get(_VALUES, 0)
        at += header.at + fields[_PACKED]
    return size


class _Compact:
    """Reads the compact protocol of Thrift."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0
        """Bytes that are read."""

    def fields(self, levels: int = 8) -> dict[int, Any]:
        """The numbers and structures of a structure, by their identifiers; of all else the length only."""
        if not levels:
            raise ValueError("too many levels")
        found, number = {}, 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            found[number] = self._value(head & 15, levels)
        return found

    def _value(self, kind: int, levels: int, *, is_item: bool = False) -> Any:
        if kind in (1, 2):  # a Boolean: its type is its value, but in a list
            return self._byte() if is_item else kind
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind in (9, 10):
            return self._list(levels)
        if kind == 12:
            return self.fields(levels - 1)
        raise ValueError(f"a field of the unknown type {kind}")

    def _list(self, levels: int) -> int:
        head = self._byte()
        n = head >> 4 if head >> 4 < 15 else self._varint()
        for _ in range(n):
            self._value(head & 15, levels - 1, is_item=True)
        return n

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _skip(self, n: int) -> int:
        self.at += n
        if self.at > len(self._content):
            raise ValueError("a field that does not end")
        return n

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("a number without end")

    def _integer(self) -> int:
        """A number whose sign is its last bit."""
        number = self._varint()
        return number >> 1 ^ -(number & 1)


_KEY = "fmimaster"
_MOST_LETTERS = 2**24
"""Letters of an entry of the metadata. Programs refuse a file with an entry of more than 100 MB; a letter has up to 4."""
_UNIT = b"unit"
_ROWS_AT_ONCE = 65_536
"""Rows of a row group: enough to be compressed and read well, and few enough for the memory."""


def _arrow(module: str = "pyarrow") -> Any:
    return optional(module, "parquet", "A .parquet file")


class ParquetWriter(BinaryWriter):
    """Writes a Parquet file in groups of rows."""

    def begin(self, file: BinaryIO, block: Table) -> None:
        self._schema = schema_of(block, {"time": "s", **block.units})
        self._writer = _arrow("pyarrow.parquet").ParquetWriter(file, self._schema)
        self._waiting: list[Any] = []

    def append(self, block: Table) -> None:
        arrow = _arrow()
        columns = [
            _written(arrow, values, field.type)
            for values, field in zip(block.values(), self._schema, strict=True)
        ]
        self._waiting.append(arrow.record_batch(columns, schema=self._schema))
        if sum(batch.num_rows for batch in self._waiting) >= _ROWS_AT_ONCE:
            self._hand_on()

    def end(self, document: bytes) -> None:
        self._hand_on()
        text = document.decode()
        pieces = (text[k : k + _MOST_LETTERS] for k in range(0, len(text), _MOST_LETTERS))
        self._writer.add_key_value_metadata(dict(zip(_keys(), pieces, strict=False)))
        self._writer.close()

    def _hand_on(self) -> None:
        self._writer.write_table(_arrow().Table.from_batches(self._waiting, self._schema))
        self._waiting.clear()


def schema_of(columns: Mapping[str, NDArray[Any]], units: Mapping[str, str]) -> Any:
    """The names, types and units of columns, for Arrow."""
    arrow = _arrow()
    return arrow.schema(
        [
            arrow.field(
                name,
                _type(arrow, values),
                metadata={_UNIT: units[name].encode()} if name in units else None,
            )
            for name, values in columns.items()
        ]
    )


def batch_of(columns: Mapping[str, NDArray[Any]], units: Mapping[str, str]) -> Any:
    """Columns as a part of a file, with a copy of their values."""
    arrow, schema = _arrow(), schema_of(columns, units)
    values = [_written(arrow, v, f.type) for v, f in zip(columns.values(), schema, strict=True)]
    return arrow.record_batch(values, schema=schema)


def write_batches(stream: BinaryIO, batches: Sequence[Any]) -> None:
    """Write a file of parts with the same columns."""
    with _arrow("pyarrow.parquet").ParquetWriter(stream, batches[0].schema) as writer:
        writer.write_table(_arrow().Table.from_batches(batches))


def _keys() -> Iterator[str]:
    """Names of the entries of the metadata that hold the facts, without end."""
    return (f"{_KEY}.{k}" if k else _KEY for k in count())


def _type(arrow: Any, values: NDArray[Any]) -> Any:
    """The type of Arrow for a column."""
    if values.dtype == object:
        return arrow.binary() if are_binaries(values) else arrow.string()
    return arrow.from_numpy_dtype(values.dtype)


def _written(arrow: Any, values: NDArray[Any], kind: Any) -> Any:
    """A column as an array of Arrow, with a copy of the values: the kernel uses its rows again."""
    if type(values) is np.ndarray and values.dtype.kind in "iuf":  # array() would import pandas
        buffer = arrow.py_buffer(values.tobytes())
        return arrow.Array.from_buffers(kind, len(values), [None, buffer])
    mask = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else None
    return arrow.array(np.ma.getdata(values).copy(), kind, mask=mask)


def read_parquet(path: Path) -> tuple[Table, Facts]:
    """A table from a Parquet file, of this or another program, and its facts.

    Raises
    ------
    FileError
        If the file cannot be read, has nested columns, or its first column is not ``time``.
    """
    with opened(path) as file:
        return _table(path, file.read(), file.metadata.metadata or {})


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A Parquet file of plausible size with columns that can be read, as ``pyarrow.parquet.ParquetFile``.

    Raises
    ------
    FileError
        If it is another file, also while it is read.
    """
    arrow, parquet = _arrow(), _arrow("pyarrow.parquet")
    with decoding(path, "a Parquet file", arrow.ArrowException), open_file(path) as stream:
        file = parquet.ParquetFile(stream)
        check_width(file.metadata.num_columns, path)
        for field in file.schema_arrow:  # before a value is read
            _check_kind(arrow, path, field)
        _check_size(path, file, stream)
        texts = [f.name for f in file.schema_arrow if _is_text(arrow, f.type)]
        yield parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)


def _check_size(path: Path, file: Any, stream: IO[bytes]) -> None:
    """Refuse a file that is implausibly large when it is read: long runs of equal values take nearly no room in it."""
    groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
    rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    check_growth(max(8 * rows * file.metadata.num_columns, 0), path)
    taken = 0
    beginnings: set[str] = set()
    for group in groups:
        for k in range(group.num_columns):
            chunk = group.column(k)
            taken += unpacked_size(stream, chunk)
            check_growth(taken, path)
            if "DELTA_BYTE_ARRAY" in chunk.encodings:
                beginnings.add(chunk.path_in_schema)
    for name in beginnings:  # each text can begin with a long part of the one before it
        for batch in file.iter_batches(MOST_GROWTH, columns=[name]):
            taken += batch.nbytes
            check_growth(taken, path)


def _check_kind(arrow: Any, path: Path, field: Any) -> None:
    """Refuse a column that does not have numbers, text or binaries."""
    types, kind = arrow.types, field.type
    is_number = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
    value = kind.value_type if types.is_dictionary(kind) else kind
    if not is_number and not _is_text(arrow, value):
        raise FileError(
            f"'{path}', column '{field.name}': expected numbers, text or binaries, not {kind}."
        )


def _is_text(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return any(
        is_kind(kind)
        for is_kind in (
            *(types.is_string, types.is_large_string),
            *(types.is_binary, types.is_large_binary),
        )
    )


def _table(path: Path, read: Any, facts: Mapping[bytes, bytes]) -> tuple[Table, Facts]:
    if "time" not in read.column_names:
        raise FileError(f"'{path}' has no column 'time'.")
    columns = {name: values_read(read[name]) for name in read.column_names}
    units = units_in(read.schema)
    units.pop("time", None)
    document = b"".join(
        facts[key] for key in takewhile(facts.__contains__, map(str.encode, _keys()))
    )
    time = columns.pop("time")
    return Table(time=time, columns=columns, units=units), Facts(path, document)


def units_in(schema: Any) -> dict[str, str]:
    """Name → unit of the columns that have one."""
    return {
        field.name: field.metadata[_UNIT].decode("utf-8", "replace")
        for field in schema
        if field.metadata and _UNIT in field.metadata
    }


def values_read(column: Any) -> NDArray[Any]:
    arrow = _arrow()
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):  # equal values are one object
        binary = types.is_binary(kind.value_type) or types.is_large_binary(kind.value_type)
        return objects(_values(column), b"" if binary else "")
    if not column.null_count:
        return np.asarray(column.to_numpy())
    values = column.fill_null(False if types.is_boolean(kind) else 0).to_numpy()
    return np.ma.MaskedArray(values, column.is_null().to_numpy())


def _values(column: Any) -> list[Any]:
    """Texts or binaries from a dictionary and numbers in it; None where there is none."""
    found: list[Any] = []
    for chunk in column.chunks:
        known = chunk.dictionary.to_pylist()
        found += [None if k is None else known[k] for k in chunk.indices.to_pylist()]
    return found
