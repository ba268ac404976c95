"""References: the file ``MODEL_ref.csv`` beside an FMU, or results that it carries (fmi-ls-ref)."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Collection
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

import numpy as np

from fmimaster.base.errors import FileError
from fmimaster.base.text import named
from fmimaster.conformance.cases import FmuCase
from fmimaster.fmu.layered_standards import carried_results
from fmimaster.results.results import Results
from fmimaster.results.table import Table
from fmimaster.system.archive import open_archive
from fmimaster.system.model import Source

_BOOLEANS = {"true": "1", "false": "0"}
_MOST_BYTES = 16 * 2**20
"""Of a reference that is read again; most have less than one."""
_ELEMENT = re.compile(r"\[[\d, ]+\]$")
"""At the end of the name of an element of an array."""


def read_reference(path: Path) -> tuple[Results, tuple[str, ...]]:
    """Read a reference, and notes about columns that are not compared.

    In addition to the CSV files of fmimaster, columns of ``true`` and ``false`` are read as Booleans, and cells such as
    ``1 2 3`` as the elements of an array, row by row, as fmusim writes them. Columns without numbers, such as text without
    quotes, are left out.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    try:
        return Results.read(path), ()
    except FileError as error:
        columns = _columns(path)
        kept = {name: cells for name, cells in columns.items() if any(map(_has_numbers, cells))}
        left_out = [name for name in columns if name not in kept]
        if not (left_out or any(_is_special(cells) for cells in kept.values())):
            raise
        try:
            reference = _read_again(path.name, kept)
        except (FileError, ValueError):  # ValueError: arrays of several sizes
            raise error from None  # it names the place in the original file
    if not left_out:
        return reference, ()
    return reference, (f"'{path.name}': columns without numbers, not compared: {named(left_out)}",)


def read_carried(
    case: FmuCase, variables: Collection[str]
) -> tuple[Results | None, str, tuple[str, ...]]:
    """Read the results that an FMU carries, if they can be compared.

    Parameters
    ----------
    variables
        Names of its variables.

    Returns
    -------
    The results or None, their file in the FMU, and notes about what is not compared. Errors in them are notes: nobody has
    asked for the comparison.
    """
    with open_archive(Source(case.path)) as archive, tempfile.TemporaryDirectory() as folder:
        names = carried_results(archive)
        if not names:
            return None, "", ()
        if case.inputs is not None:
            note = f"the FMU carries results, not compared, because '{case.inputs.name}' gives other inputs"
            return None, "", (note,)
        file = Path(folder, PurePosixPath(names[0]).name)
        try:
            file.write_bytes(archive.read(names[0]))
            results, notes = read_reference(file)
        except FileError as error:
            text = str(error).replace(str(file), file.name)
            return None, "", (f"the results that the FMU carries cannot be read: {text}",)
    if not results.rows or not any(of_array(name) in variables for name in results.names):
        note = f"the FMU carries results, '{names[0]}', but they have no values of its variables: not compared"
        return None, "", (note,)
    return results, names[0], notes


def shaped(reference: Table, results: Table) -> Table:
    """The reference with its arrays in the shapes that they have in the results, if both have as many elements."""
    columns = {
        name: np.reshape(values, (len(values), *results[name].shape[1:]))
        if name in results and values[:1].size == results[name][:1].size
        else values
        for name, values in reference.columns.items()
    }
    return replace(reference, columns=columns)


def of_array(name: str) -> str:
    """The name of the array of which this is an element; the name itself if it is none."""
    return _ELEMENT.sub("", name)


def _columns(path: Path) -> dict[str, list[list[str]]]:
    """Name → the words of each cell; none if the file is no table, or a large one: each cell takes some 100 bytes."""
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            names, *rows = list(filter(None, csv.reader(stream, skipinitialspace=True)))
        cells = [[cell.split() or [""] for cell in column] for column in zip(*rows, strict=True)]
        return dict(zip((name.strip() for name in names), cells, strict=True))
    except (OSError, ValueError, csv.Error):  # also a file without a row, or rows of other lengths
        return {}


def _has_numbers(words: list[str]) -> bool:
    """Whether a cell has numbers or Booleans only."""
    return all(word in _BOOLEANS or _is_number(word) for word in words)


def _are_booleans(cells: list[list[str]]) -> bool:
    return all(word in _BOOLEANS for words in cells for word in words)


def _is_special(cells: list[list[str]]) -> bool:
    """Whether the files of fmimaster have no such cells."""
    return len(cells[0]) > 1 or _are_booleans(cells)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _read_again(name: str, columns: dict[str, list[list[str]]]) -> Results:
    """The table of these columns: each element of an array is read as a column of its own."""
    sizes = {column: len(cells[0]) for column, cells in columns.items()}
    booleans = {column for column, cells in columns.items() if _are_booleans(cells)}
    heads = [f"{c}[{k + 1}]" if n > 1 else c for c, n in sizes.items() for k in range(n)]
    rows = [
        [
            _BOOLEANS[w] if c in booleans else w
            for c, words in zip(columns, row, strict=True)
            for w in words
        ]
        for row in zip(*columns.values(), strict=True)
    ]
    if any(len(words) != sizes[c] for c, cells in columns.items() for words in cells):
        raise ValueError("arrays of several sizes")
    with tempfile.TemporaryDirectory(prefix="fmimaster-") as folder:
        file = Path(folder, name)
        with file.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([heads, *rows])
        read = Results.read(file)
    elements = iter(read.columns.items())
    found = {}
    for column, n in list(sizes.items())[1:]:  # the first one is the time
        parts = list(islice(elements, n))
        values = np.stack([v for _, v in parts], axis=1) if n > 1 else parts[0][1]
        found[column if n > 1 else parts[0][0]] = (
            values.astype(bool) if column in booleans else values
        )
    return replace(read, columns=found)
