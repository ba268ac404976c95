"""The outcome of a run: a table that can be written, read, plotted, and converted for pandas."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import unknown_attribute
from fmimaster.base.installation import check_matplotlib, optional
from fmimaster.results.columns import TOLERANCE, numbers
from fmimaster.results.files import read_table, write_table
from fmimaster.results.formats import FORMATS, lists_formats
from fmimaster.results.statistics import BondStatistics
from fmimaster.results.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmimaster.results.comparison import Comparison


_ELSEWHERE = {
    "to_dataframe": "to_pandas()",
    "to_df": "to_pandas()",
    "dataframe": "to_pandas()",
    "to_numpy": "to_structured()",
    "read_csv": "Results.read('results.csv')",
    "load": "Results.read('results.csv')",
    "shape": "rows and names",
    "data": "columns",
    **{name: f"write('results{row.suffix}')" for row in FORMATS.values() for name in row.known_as},
}
"""Names in other libraries → the name here."""


class NotComparableError(Exception):
    """The rows of two runs cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False, eq=False, repr=False)
class Results(Table):
    """The outcome of a run: an immutable table. Parameters as of :class:`fmimaster.results.table.Table`."""

    @property
    def power_bonds(self) -> tuple[BondStatistics, ...]:
        """What the coupling did to the energy of each power bond, the worst one first."""
        return self.statistics.power_bonds

    if not TYPE_CHECKING:  # for type checkers, an unknown attribute stays an error

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError that suggests the attribute that is probably meant."""
            is_column = not name.startswith("_") and name in self.columns
            hint = f" Columns are items: results['{name}']." if is_column else ""
            raise unknown_attribute(self, name, _ELSEWHERE, hint)

    def _repr_html_(self) -> str:
        from fmimaster.results.notebook import html_page  # only notebooks need it

        return html_page(self)

    def to_pandas(self) -> Any:
        """``pandas.DataFrame`` with time as its index; array columns are expanded.

        Returns
        -------
        pandas.DataFrame
            Absent values are NaN in floats, ``pandas.NA`` in integers and Booleans, which keep their types (``Int32``,
            ``boolean``), and None in texts and binaries: ``dropna()`` removes them all. Its ``attrs`` have ``"units"``,
            a dictionary from names to units, and ``"metadata"``.

        Raises
        ------
        OptionError
            If pandas is not installed: ``pip install "fmimaster[pandas]"``.
        """
        pandas = optional("pandas", "pandas", "to_pandas()")
        table = self.expand()
        columns = {name: _in_pandas(pandas, values) for name, values in table.columns.items()}
        frame = pandas.DataFrame(columns, index=pandas.Index(self.time, name="time"))
        frame.attrs.update(units=dict(table.units), metadata=dict(self.metadata))
        return frame

    def to_xarray(self) -> Any:
        """``xarray.Dataset`` with the dimension ``time``; arrays have a dimension per axis, ``"NAME_1"``, ``"NAME_2"``, ….

        Returns
        -------
        xarray.Dataset
            Each variable has its unit in ``attrs["units"]``, and the data set has the metadata in ``attrs``; lists and
            mappings are JSON text there, so that ``to_netcdf()`` can write them. Absent values are NaN: integers and
            Booleans with absent values become floats, and texts objects.

        Raises
        ------
        OptionError
            If xarray is not installed: ``pip install "fmimaster[xarray]"``.
        """
        xarray = optional("xarray", "xarray", "to_xarray()")
        variables = {
            name: (
                ("time", *(f"{name}_{k}" for k in range(1, values.ndim))),
                _in_xarray(values),
                {"units": self.units[name]} if name in self.units else {},
            )
            for name, values in self.columns.items()
        }
        coords = {"time": ("time", self.time, {"units": "s"})}
        about = {name: _in_netcdf(value) for name, value in self.metadata.items()}
        return xarray.Dataset(variables, coords, about)

    @lists_formats
    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the format of its suffix, with units, metadata, events and causes of steps.

        Parameters
        ----------
        path
            A file of one of these formats: :data:`fmimaster.results.formats.FORMATS`. All but CSV contain everything in one
            file.

        Raises
        ------
        OptionError
            If the suffix is unknown, or a library is missing: the message says how to install it.
        FileError
            If the file cannot be written.
        """
        write_table(self, path)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Results:
        """Read a file in the format of its suffix, with all that :meth:`write` has written except the statistics.

        Parameters
        ----------
        path
            A file with another suffix than those of :meth:`write` is read as CSV. Parquet, HDF5 and MAT files of other
            programs are read as well, if they have a column ``time`` and the same form.

        Returns
        -------
        Results
            With units, metadata, events and steps, if the file has them.

        Raises
        ------
        FileError
            If the file is missing or damaged.
        OptionError
            If a library is missing.
        """
        table = read_table(path)
        return Results(**{field.name: getattr(table, field.name) for field in fields(table)})

    def compare(
        self, reference: Table | str | os.PathLike[str], *, tolerance: float = TOLERANCE
    ) -> Comparison:
        """Compare with a reference: the deviation of each column with the same name, as numbers and as text.

        Parameters
        ----------
        reference
            Results, or a file that :meth:`read` reads. It is interpolated to the times of the results.
        tolerance
            Largest permitted root mean square of a deviation, relative to the range of the reference.

        Returns
        -------
        Comparison
            Its ``is_within`` is true if all columns are within the tolerance; ``print`` shows a table.

        Raises
        ------
        OptionError
            If there is no common column with numbers, no common time, or a unit differs.
        FileError
            If the file cannot be read.
        """
        from fmimaster.results.comparison import compare  # most runs have no reference

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
        """Plot columns over time: in a figure with one axes per unit and magnitude, or in an axes of the caller.

        A notebook shows the figure if it is the last expression of a cell. In a script, ``show=True`` opens a window. If
        ``matplotlib.pyplot`` is imported, the figure is one of its figures, for ``plt.show()`` and ``plt.savefig()``.

        Parameters
        ----------
        names
            Columns, or patterns as in :meth:`select`. Default: all that fit; a line below the figure states how many do
            not.
        ax : matplotlib.axes.Axes, optional
            Axes in which all columns are drawn, with its colours, a legend and labels.
        show : bool
            Show the figure now: below the cell of a notebook, or in a window, which must be closed before the script
            continues.
        communication_points : bool
            Whether ticks at the bottom mark the rows. Not with ``ax``, like the next two parameters.
        title
            Title above the figure.
        reference : Table, optional
            Its columns of the same names are drawn as broad pale lines below the others.

        Returns
        -------
        matplotlib.figure.Figure or matplotlib.axes.Axes
            The axes, if it is given.

        Raises
        ------
        OptionError
            If no column has such a name or contains numbers, the chosen columns do not fit in one figure, or matplotlib
            is not installed: ``pip install "fmimaster[plot]"``.
        """
        check_matplotlib("plot()")
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


def _in_pandas(pandas: Any, values: NDArray[Any]) -> Any:
    """A column with absent values as pandas represents them in its type."""
    if not np.ma.isMaskedArray(values):
        return values
    data, absent = np.ma.getdata(values), np.ma.getmaskarray(values)
    if data.dtype.kind in "iu":
        return pandas.arrays.IntegerArray(data.copy(), absent.copy())
    if data.dtype.kind == "b":
        return pandas.arrays.BooleanArray(data.copy(), absent.copy())
    data = data.copy()
    data[absent] = None if data.dtype == object else np.nan
    return data


def _in_xarray(values: NDArray[Any]) -> NDArray[Any]:
    """A column as xarray has it: NaN in the place of absent values."""
    if not np.ma.isMaskedArray(values):
        return values
    if values.dtype != object:
        return numbers(values)
    return np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values))


def _in_netcdf(value: object) -> str | int | float:
    """A value of the metadata as attributes of NetCDF can hold it."""
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return value if plain else json.dumps(value, ensure_ascii=False)  # type: ignore[return-value]
