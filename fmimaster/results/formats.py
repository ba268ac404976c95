"""The formats of files of results: a row for each. Dispatch, help texts, docstrings and messages come from the rows.

A help page lists the formats, so nothing is imported here: what writes and reads a format is named by its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

_Described = TypeVar("_Described", bound=Callable[..., Any])


class Format(NamedTuple):
    """A format of files."""

    suffix: str
    """Of its files."""
    writer: str
    """Place of the class that writes rows, ``"module:name"`` below this folder: a
    :class:`fmimaster.results.row_writer.RowWriter`, made from a path."""
    reader: str
    """Place of the function that reads a file: from its path to a table, and if the file holds the facts, also to these."""
    words: str
    """What it is, for docstrings."""
    library: str = ""
    """The module that it needs; empty if it needs none."""
    extra: str = ""
    """Of fmimaster, which installs the library."""
    known_as: tuple[str, ...] = ()
    """What methods that write it are called in other libraries."""


CSV = Format(
    ".csv",
    "csv:CsvWriter",
    "csv:read_csv",
    "by the rules of FMI, with units, metadata, events and steps in a second file ``NAME.csv.json``",
    known_as=("to_csv", "write_csv", "save"),
)
"""The only format of text: streams and devices take it, and files with any other suffix are read as it."""

FORMATS = {
    row.suffix: row
    for row in (
        CSV,
        Format(
            ".parquet",
            "parquet:ParquetWriter",
            "parquet:read_parquet",
            "for tools of data analysis",
            "pyarrow.parquet",
            "parquet",
            ("to_parquet",),
        ),
        Format(
            ".h5",
            "hdf5:Hdf5Writer",
            "hdf5:read_hdf5",
            "HDF5, in which arrays keep their shapes",
            "h5py",
            "hdf5",
            ("to_hdf",),
        ),
        Format(
            ".mat",
            "mat:MatWriter",
            "mat:read_mat",
            "in the form of Dymola and OpenModelica",
            "scipy.io",
            "all",
            ("to_mat",),
        ),
    )
}
"""Suffix → format."""

*_FIRST, _LAST = FORMATS
SUFFIXES = f"{', '.join(_FIRST)} or {_LAST}"
"""All suffixes in a sentence."""


def lists_formats(described: _Described) -> _Described:
    """For a function whose docstring refers to ``FORMATS``: help() shows the formats there."""
    rows = "; ".join(f"``{row.suffix}``, {row.words}" for row in FORMATS.values())
    described.__doc__ = (described.__doc__ or "").replace(_AS_IN_FORMATS, rows)
    return described


_AS_IN_FORMATS = ":data:`fmimaster.results.formats.FORMATS`"
