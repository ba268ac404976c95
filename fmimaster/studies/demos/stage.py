"""What all demos share: where they are shown, the files that they write, and the form of their figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fmimaster.base.data import dataclass
from fmimaster.results.files import write_table
from fmimaster.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from fmimaster.front.simulation import Simulation

TEXT = 8.0
"""Size of labels and legends in points."""


@dataclass(frozen=True)
class Stage:
    """Where a demo is shown."""

    folder: Path
    """For the files."""
    version: str
    """The version of the FMUs; empty if the demo has only one."""
    simulate: Callable[[Simulation, Callable[[Results], list[str]]], object]
    """Simulates, with progress; the second argument writes the rows and returns lines about them."""
    print: Callable[[Sequence[tuple[str, ...]]], None]
    """Shows a table."""
    tell: Callable[[Sequence[str]], None]
    """Prints lines, for example the paths of files."""


def write_files(
    stage: Stage, name: str, results: Results, which: str, figures: Mapping[str, Figure]
) -> list[str]:
    """Write the table and the figures of a demo.

    Parameters
    ----------
    name
        Of the demo: the name of the table.
    which
        Whose rows the table has, with a blank before it; may be empty.
    figures : name of the file → figure

    Returns
    -------
    A line about each file.
    """
    file = stage.folder / f"{name}.csv"
    write_table(results, file)
    told = [f"{results.rows} rows{which} written to {file}"]
    for picture, figure in figures.items():
        from fmimaster.results.plot import save_figure  # matplotlib is slow to import

        path = stage.folder / f"{picture}.png"
        save_figure(figure, path)
        told.append(f"figure written to {path}")
    return told


def plain(axes: Axes) -> None:
    """Axes with two lines and a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(linewidth=0.4, color="0.92")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=TEXT - 1)


def legend(
    figure: Figure,
    key: Sequence[tuple[str, Line2D]],
    columns: int = 3,
    loc: Literal["outside lower center", "outside upper center"] = "outside lower center",
) -> None:
    """A legend of labels and lines, outside of the axes."""
    figure.legend(
        [line for _, line in key],
        [label for label, _ in key],
        loc=loc,
        ncols=min(columns, len(key)),
        fontsize=TEXT,
        frameon=False,
    )
