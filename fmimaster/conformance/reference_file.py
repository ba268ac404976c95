"""The file ``MODEL_ref.csv`` beside an FMU: the results of the exporting tool."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fmimaster.errors import FileError
from fmimaster.results.results import Results
from fmimaster.text import named

_BOOLEANS = {"true": "1", "false": "0"}


def read_reference(path: Path) -> tuple[Results, tuple[str, ...]]:
    """Read a reference, and notes about columns that are not compared.

    In addition to the CSV files of fmimaster, columns of ``true`` and ``false`` are read as Booleans, as fmusim writes
    them. Columns without any number, such as arrays written as ``1 2 3`` and text without quotes, are left out.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    try:
        return Results.read(path), ()
    except FileError as error:
        columns = _columns(path)
        booleans = [name for name, cells in columns.items() if _BOOLEANS.keys() >= set(cells)]
        others = [name for name, cells in columns.items() if name not in booleans]
        left_out = [name for name in others if not any(map(_is_number, columns[name]))]
        if not booleans and not left_out:
            raise
        kept = {name: cells for name, cells in columns.items() if name not in left_out}
        kept.update({name: [_BOOLEANS[cell] for cell in kept[name]] for name in booleans})
        try:
            reference = _read_again(path.name, kept)
        except FileError:
            raise error from None  # it names the place in the original file
    values = {name: reference[name].astype(bool) for name in booleans}
    reference = replace(reference, columns={**reference.columns, **values})
    if not left_out:
        return reference, ()
    return reference, (f"'{path.name}': columns without numbers, not compared: {named(left_out)}",)


def _columns(path: Path) -> dict[str, Sequence[str]]:
    """Name → cells as text; none if the file is no table."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            names, *rows = list(filter(None, csv.reader(stream, skipinitialspace=True)))
        cells = zip(*rows, strict=True)
        return dict(zip((name.strip() for name in names), cells, strict=True))
    except (OSError, ValueError, csv.Error):  # also a file without a row, or rows of other lengths
        return {}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_again(name: str, columns: dict[str, Sequence[str]]) -> Results:
    with tempfile.TemporaryDirectory(prefix="fmimaster-") as folder:
        file = Path(folder, name)
        with file.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
        return Results.read(file)
