"""What a Parquet file takes in memory, by its pages: the footer of a file of a stranger can say anything.

Source: Apache Parquet, "File Format" and ``parquet.thrift``; Apache Thrift, "Compact protocol encoding".
"""

from __future__ import annotations

from typing import IO, Any

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
