"""The data set of a sweep, read: its runs as columns, and the rows of single runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import ColumnError, FileError, OptionError
from fmimaster.base.files import check_exists, given_path
from fmimaster.base.installation import check_matplotlib, optional
from fmimaster.base.text import clipped, count
from fmimaster.results.parquet import opened, units_in, values_read
from fmimaster.results.results import Results
from fmimaster.studies.sweeps.data_set import (
    ERROR,
    FAILED,
    OWN_COLUMNS,
    RUN,
    STATUS,
    Description,
    chunk_files,
    read_columns,
    rows_files,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST_ERROR = 300
"""Letters of the error of a run in a message."""


class SweptRuns(Mapping[str, NDArray[Any]]):
    """The runs of a sweep as a table: a mapping from names to columns, with a value for each run.

    The columns are ``run``, the parameters, ``status`` (``"done"`` or ``"failed"``), ``error``, ``warnings``, and the
    scalars. In a run that failed, scalars are absent (masked). While a sweep is under way, it has the runs that are
    complete.

    Attributes
    ----------
    folder : Path
    parameters, scalars : tuple of str
        Names of columns.
    units : name → unit
    total : int
        Runs of the whole sweep.
    """

    def __init__(
        self,
        folder: Path,
        columns: Mapping[str, NDArray[Any]],
        units: Mapping[str, str],
        facts: Any,
    ) -> None:
        self.folder = folder
        self._columns = MappingProxyType(dict(columns))
        self.units: Mapping[str, str] = MappingProxyType(dict(units))
        names = [name for name in columns if name not in OWN_COLUMNS]
        given = set(facts["design"]["parameters"])
        self.parameters = tuple(name for name in names if name in given)
        self.scalars = tuple(name for name in names if name not in given)
        self.total = int(facts["runs"])

    @staticmethod
    def read(folder: str | os.PathLike[str]) -> SweptRuns:
        """The runs of a sweep in a folder that are complete.

        Raises
        ------
        FileError
            If it is no such folder, or a file in it is damaged.
        """
        place = given_path(folder)
        check_exists(place)
        description = Description.read(place)
        parts, units = list[Mapping[str, NDArray[Any]]](), dict[str, str]()
        for file, *_ in chunk_files(place):
            columns, more = read_columns(file)
            if parts and [*parts[0]] != [*columns]:
                raise FileError(
                    f"'{file}' has other columns than the files before it. Remove it: its runs are made again."
                )
            parts.append(columns)
            units |= more
        names = [*parts[0]] if parts else [*OWN_COLUMNS, *description.facts["design"]["parameters"]]
        joined = {name: _joined([part[name] for part in parts]) for name in names}
        return SweptRuns(place, joined, units, description.facts)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column, with a value for each run.

        Raises
        ------
        ColumnError
            If there is none of this name.
        """
        if name not in self._columns:
            raise ColumnError(name, self._columns)
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Number of columns. The number of runs is :attr:`runs`."""
        return len(self._columns)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {self.runs} of {count(self.total, 'run')}, {self.failed} failed, "
            f"{count(len(self.scalars), 'scalar')}>"
        )

    @property
    def runs(self) -> int:
        """How many runs are complete."""
        return len(self[RUN])

    @property
    def failed(self) -> int:
        """How many of them have an error."""
        return int(np.count_nonzero(self[STATUS] == FAILED))

    def failures_in_words(self) -> str:
        """How many runs failed, and the error of the first one; empty if none did."""
        failed = np.flatnonzero(self[STATUS] == FAILED)
        if not len(failed):
            return ""
        error = clipped(str(self[ERROR][failed[0]]), _LONGEST_ERROR)
        return f"{len(failed)} of {count(self.runs, 'run')} failed; the first one is run {self[RUN][failed[0]]}: {error}"

    def rows(self, run: int) -> Results:
        """The rows of a run, if the sweep has kept them.

        Raises
        ------
        OptionError
            If it has not.
        FileError
            If the file is damaged.
        """
        for _, found in self.rows_of([run]):
            return found
        raise OptionError(
            f"'{self.folder}' has no rows of run {run}. Keep them in the sweep: rows=True (--rows); a run that fails "
            "before its first row has none."
        )

    def rows_of(self, runs: Sequence[int]) -> Iterator[tuple[int, Results]]:
        """The rows of several runs, as far as there are any; each file is read once.

        Returns
        -------
        Iterator of (int, Results)
            In the order of runs.

        Raises
        ------
        FileError
            If a file is damaged.
        """
        compute = optional("pyarrow.compute", "parquet", "rows()")
        for file, first, end in rows_files(self.folder):
            chosen = [run for run in runs if first <= run < end]
            if not chosen:
                continue
            with opened(file) as content:
                whole = content.read()
                parts = [(run, whole.filter(compute.equal(whole[RUN], run))) for run in chosen]
                columns = [
                    {n: values_read(part[n]) for n in part.column_names if n != RUN}
                    for _, part in parts
                ]
            units = {name: unit for name, unit in units_in(whole.schema).items() if name != "time"}
            for run, found in zip(chosen, columns, strict=True):
                if "time" not in found:
                    raise FileError(f"'{file}' has no column time. Remove it.")
                if len(found["time"]):
                    yield run, Results(time=found.pop("time"), columns=found, units=units)

    def plot(self) -> Figure:
        """A figure: each scalar over each parameter, a dot for each run; below, outputs over time, if the rows are kept.

        Returns
        -------
        matplotlib.figure.Figure
            With the first scalars and parameters, as many as have room.

        Raises
        ------
        OptionError
            If there is nothing to draw, or matplotlib is not installed: ``pip install "fmimaster[plot]"``.
        """
        check_matplotlib("plot()")
        # matplotlib is slow to import
        from fmimaster.studies.sweeps.figure import sweep_figure

        return sweep_figure(self)

    def to_pandas(self) -> Any:
        """``pandas.DataFrame`` with the number of the run as its index.

        Raises
        ------
        OptionError
            If pandas is not installed: ``pip install "fmimaster[pandas]"``.
        """
        pandas = optional("pandas", "pandas", "to_pandas()")
        columns = {
            name: np.ma.filled(values, np.nan)
            if values.dtype.kind == "f"
            else np.ma.filled(values, None)
            if np.ma.isMaskedArray(values)
            else values
            for name, values in self.items()
            if name != RUN
        }
        frame = pandas.DataFrame(columns, index=pandas.Index(self[RUN], name=RUN))
        frame.attrs["units"] = dict(self.units)
        return frame


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """A column of all files, masked if values are absent."""
    values = np.concatenate([np.ma.getdata(part) for part in parts] or [np.empty(0)])
    mask = np.concatenate([np.ma.getmaskarray(part) for part in parts] or [np.empty(0, bool)])
    return np.ma.MaskedArray(values, mask) if mask.any() else values
