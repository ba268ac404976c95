"""Runs of a sweep that are given as a table."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np

from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import check_fits, decoding, given_path, lines_of, open_file
from fmimaster.base.text import count
from fmimaster.studies.sweeps.design import MOST_RUNS, Columns, Design, check_runs

_GROWTH = 30
"""Bytes in memory for one in the file: a text takes 50 or more, and has two characters in the file, or more."""


class DesignTable(Design):
    """Runs that are given, for example by another program for the design of experiments.

    Parameters
    ----------
    columns : name → values
        A mapping, a structured array, or a ``pandas.DataFrame``: the values of the parameters, one for each run.
    """

    def __init__(self, columns: Any) -> None:
        names = getattr(getattr(columns, "dtype", None), "names", None) or [*columns]
        self._columns = {str(name): _listed(columns[name]) for name in names}
        if not self._columns:
            raise OptionError(
                "The design is empty: it has no column. Give a column for each parameter."
            )
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len({*lengths.values()}) > 1:
            raise OptionError(
                f"The columns of the design have different lengths ({lengths}). Give a value for each run."
            )
        check_runs(next(iter(lengths.values())))

    @staticmethod
    def read(path: str | os.PathLike[str]) -> DesignTable:
        """The table in a CSV file: a line with names, then a line for each run.

        Raises
        ------
        FileError, OptionError
            If the file cannot be read, or has no runs.
        """
        return DesignTable(_read_csv(given_path(path)))

    @property
    def names(self) -> Sequence[str]:
        return [*self._columns]

    def columns(self, whole: Iterable[str]) -> Columns:
        return self._columns

    def facts(self) -> dict[str, Any]:
        return {"method": "DesignTable", "parameters": self.names}


def _listed(values: Any) -> list[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise OptionError(
            f"A column of the design has the shape {array.shape}, expected one value for each run."
        )
    return array.tolist() if array.dtype != object else [*values]


def _read_csv(path: Path) -> dict[str, list[str]]:
    with decoding(path, "a table in CSV", csv.Error), open_file(path) as stream:
        check_fits(_GROWTH * path.stat().st_size, path)
        text = TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        rows = csv.reader(lines_of(text, path), strict=True, skipinitialspace=True)
        head = [name.strip() for name in next(rows, [])]
        if len({*head}) < len(head) or not all(head):
            raise FileError(
                f"'{path}': the first line has an empty or repeated name. Name each parameter once."
            )
        found: dict[str, list[str]] = {name: [] for name in head}
        for number, row in enumerate(rows, 1):
            if not row:
                continue
            if len(row) != len(head):
                raise FileError(
                    f"'{path}', run {number}: {count(len(row), 'value')}, expected {len(head)}."
                )
            if number > MOST_RUNS:
                check_runs(number)
            for name, cell in zip(head, row, strict=True):
                found[name].append(cell.strip())
    return found
