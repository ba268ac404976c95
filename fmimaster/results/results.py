"""The outcome of a run: a table that can be written, read, plotted, and converted for pandas."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from fmimaster.errors import OptionError
from fmimaster.results.comparison import TOLERANCE, Comparison, compare
from fmimaster.results.csv import read_csv, write_csv
from fmimaster.results.statistics import BondStatistics
from fmimaster.results.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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

    def compare(
        self, reference: Table | str | os.PathLike[str], *, tolerance: float = TOLERANCE
    ) -> Comparison:
        """Compare with a reference: how far columns of the same names are apart, as numbers and as text.

        Parameters
        ----------
        reference
            Results, or a file that :meth:`read` reads. It is interpolated to the times of the results.
        tolerance
            Largest permitted root mean square of a deviation, as a part of the range of the reference.

        Returns
        -------
        Comparison
            Its ``is_within`` says whether all columns are within the tolerance; ``print`` it for a table.

        Raises
        ------
        OptionError
            If there is no common column with numbers, no common time, or a unit differs.
        FileError
            If the file cannot be read.
        """
        other = reference if isinstance(reference, Table) else Results.read(reference)
        return compare(self, other, tolerance)

    @overload
    def plot(
        self,
        names: str | Sequence[str] | None = ...,
        *,
        ax: None = ...,
        show: bool = ...,
        communication_points: bool = ...,
        title: str | None = ...,
        reference: Table | None = ...,
    ) -> Figure: ...

    @overload
    def plot(
        self, names: str | Sequence[str] | None = ..., *, ax: Axes, show: bool = ...
    ) -> Axes: ...

    def plot(
        self,
        names: str | Sequence[str] | None = None,
        *,
        ax: Axes | None = None,
        show: bool = False,
        communication_points: bool = False,
        title: str | None = None,
        reference: Table | None = None,
    ) -> Figure | Axes:
        """Plot columns over time: a figure with an axes for each unit and magnitude, or lines in an axes of the caller.

        A notebook shows the figure if it is the last expression of a cell. In a script, ``show=True`` opens a window. If
        ``matplotlib.pyplot`` is imported, the figure is one of its figures, for ``plt.show()`` and ``plt.savefig()``.

        Parameters
        ----------
        names
            Columns, or patterns as in :meth:`select`. If not given, all that have room; a line below the figure says how
            many are left out.
        ax : matplotlib.axes.Axes, optional
            All columns are drawn here, with the colours of this axes, a legend and labels.
        show : bool
            Show the figure now: below the cell of a notebook, or in a window, which must be closed before the script goes
            on.
        communication_points : bool
            Whether ticks at the bottom mark the rows. Not with ``ax``, like the two that follow.
        title
            Above the figure.
        reference : Table, optional
            Its columns of the same names are drawn as broad pale lines below the others.

        Returns
        -------
        matplotlib.figure.Figure or matplotlib.axes.Axes
            The axes, if it is given.

        Raises
        ------
        OptionError
            If no column has such a name or holds numbers, or the chosen ones have no room in one figure.
        """
        # late: matplotlib takes half a second
        from fmimaster.results.notebook import maker_of_figures, show_figure
        from fmimaster.results.plot import plot_into, plot_results

        if ax is not None:
            plot_into(ax, self, names)
            if show:
                show_figure(ax.figure)
            return ax
        figure = plot_results(
            self,
            names,
            communication_points=communication_points,
            title=title,
            reference=reference,
            new_figure=maker_of_figures(show),
        )
        if show:
            show_figure(figure)
        return figure
