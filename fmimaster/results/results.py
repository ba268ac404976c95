"""The outcome of a run: a table that can be written, read, plotted, and converted for pandas."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fmimaster.errors import OptionError
from fmimaster.results.csv import read_csv, write_csv
from fmimaster.results.statistics import BondStatistics
from fmimaster.results.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True, init=False, eq=False, repr=False)
class Results(Table):
    """The outcome of a run: an immutable table. Parameters as of :class:`fmimaster.results.table.Table`."""

    @property
    def power_bonds(self) -> tuple[BondStatistics, ...]:
        """What the coupling did to the energy of each power bond, the worst one first."""
        return self.statistics.power_bonds

    def to_pandas(self) -> Any:
        """``pandas.DataFrame`` with time as its index; array columns are expanded."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise OptionError(
                "to_pandas() needs pandas, which is not installed."
                " Install it with 'pip install pandas'."
            ) from error
        return pandas.DataFrame(
            dict(self.expand().columns), index=pandas.Index(self.time, name="time")
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file by the rules of FMI, and events and causes of steps, if there are any, beside it.

        ``results.csv`` has them in ``results.events.json``; units and statistics are not written.
        """
        write_csv(self, path)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Results:
        """Read a CSV file by the rules of FMI, and events and steps from the file beside it."""
        table = read_csv(path)
        return Results(**{field.name: getattr(table, field.name) for field in fields(table)})

    def plot(
        self,
        names: str | Sequence[str] | None = None,
        *,
        communication_points: bool = False,
        title: str | None = None,
        reference: Table | None = None,
    ) -> Figure:
        """Figure of the columns over time, see :func:`fmimaster.results.plot.plot_results`."""
        from fmimaster.results.plot import plot_results  # late: matplotlib takes half a second

        return plot_results(
            self,
            names,
            communication_points=communication_points,
            title=title,
            reference=reference,
        )
