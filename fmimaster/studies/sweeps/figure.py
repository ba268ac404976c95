"""The figure of a sweep: scalars over parameters, and outputs of many runs over time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError
from fmimaster.base.text import count
from fmimaster.results.columns import numbers
from fmimaster.results.drawing import COLOURS
from fmimaster.results.plot import TEXT, ResultsFigure, plain_axes, plain_label, wrapped
from fmimaster.results.results import Results
from fmimaster.studies.sweeps.data_set import FAILED, RUN, STATUS

_MOST_SCALARS, _MOST_PARAMETERS, _MOST_OUTPUTS = 4, 5, 3
_MOST_LINES = 100
"""Runs whose outputs are drawn."""
_WIDTH, _HEIGHT = 2.3, 1.9
"""Of an axes, in inches."""
_MAP = "viridis"
"""Its colours can be distinguished by colour-blind readers, and in print."""


class DrawnSweep(Protocol):
    """What is drawn of :class:`fmimaster.studies.sweeps.SweptRuns`."""

    parameters: tuple[str, ...]
    scalars: tuple[str, ...]
    units: Mapping[str, str]

    @property
    def runs(self) -> int: ...

    @property
    def failed(self) -> int: ...

    def __getitem__(self, name: str) -> NDArray[Any]: ...

    def rows_of(self, runs: Sequence[int]) -> Iterator[tuple[int, Results]]: ...


def sweep_figure(found: DrawnSweep) -> Figure:
    """The figure of a sweep; see :meth:`fmimaster.studies.sweeps.SweptRuns.plot`.

    Raises
    ------
    OptionError
        If there is nothing to draw.
    """
    scalars, parameters = found.scalars[:_MOST_SCALARS], found.parameters[:_MOST_PARAMETERS]
    lines = _lines(found)
    outputs = _outputs(lines, scalars)
    if not (scalars and parameters) and not outputs:
        raise OptionError("There is nothing to draw: no run of the sweep has scalars or rows.")
    across, down = max(len(parameters), 2), len(scalars) + len(outputs)
    figure = ResultsFigure(
        figsize=(1.0 + _WIDTH * across, 0.6 + _HEIGHT * down), layout="constrained"
    )
    grid = figure.add_gridspec(down, len(parameters))
    for i, scalar in enumerate(scalars):
        for k, parameter in enumerate(parameters):
            axes = figure.add_subplot(grid[i, k])
            _scatter(axes, found, parameter, scalar)
            _name(axes, "y", scalar if k == 0 else "")
            _name(axes, "x", _with_unit(parameter, found.units) if i == len(scalars) - 1 else "")
    courses = [figure.add_subplot(grid[len(scalars) + i, :]) for i in range(len(outputs))]
    for axes, output in zip(courses, outputs, strict=True):
        _name(axes, "y", _with_unit(output, lines[0][1].units))
        _fan(axes, found, parameters[0], lines, output)
    if courses:
        _name(courses[-1], "x", "time in s")
        _add_scale(figure, courses, found, parameters[0])
    figure.align_ylabels()
    _tell(figure, found)
    return figure


def _scatter(axes: Axes, found: DrawnSweep, parameter: str, scalar: str) -> None:
    """A dot for each run; below the axes a cross for each one that failed."""
    plain_axes(axes)
    places, values = _places(found[parameter]), numbers(found[scalar])
    axes.plot(places, values, "o", color=COLOURS[0], markersize=2.5, alpha=0.6, markeredgewidth=0.0)
    failed = found[STATUS] == FAILED
    if failed.any():
        at_bottom = np.zeros(np.count_nonzero(failed))
        axes.plot(
            places[failed],
            at_bottom,
            "x",
            color=COLOURS[1],
            markersize=3.5,
            transform=axes.get_xaxis_transform(),
            clip_on=False,
        )
    names = found[parameter]
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    if names.dtype.kind not in "iuf":
        texts = [*dict.fromkeys(map(str, names.tolist()))]
        axes.set_xticks(range(len(texts)), [plain_label(text) for text in texts])


def _places(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as they are; texts and Booleans side by side, in the order of runs."""
    if values.dtype.kind in "iuf":
        return numbers(values)
    order: dict[Any, int] = {}
    return np.array([order.setdefault(value, len(order)) for value in values.tolist()], float)


def _lines(found: DrawnSweep) -> list[tuple[int, Results]]:
    """The rows of some runs, evenly chosen."""
    if not found.runs:
        return []
    at = np.unique(np.linspace(0, found.runs - 1, min(found.runs, _MOST_LINES)).astype(int))
    return [(run, rows.expand()) for run, rows in found.rows_of(found[RUN][at].tolist())]


def _outputs(lines: Sequence[tuple[int, Results]], scalars: Sequence[str]) -> list[str]:
    """Columns of the rows that are drawn: those of the scalars, or the first ones."""
    if not lines:
        return []
    names = [name for name, values in lines[0][1].columns.items() if values.dtype.kind in "iuf"]
    of_scalars = [name for text in scalars for name in re.findall(r"^\w+\((.*)\)$", text)]
    chosen = [name for name in dict.fromkeys(of_scalars) if name in names] or names
    return chosen[:_MOST_OUTPUTS]


def _fan(
    axes: Axes, found: DrawnSweep, parameter: str, lines: Sequence[tuple[int, Results]], output: str
) -> None:
    """The course of an output in many runs, coloured by a parameter."""
    plain_axes(axes)
    axes.margins(x=0.0)
    colours = _scale(found, parameter)
    places = dict(zip(found[RUN].tolist(), _places(found[parameter]).tolist(), strict=True))
    for run, rows in lines:
        kind = "default" if rows[output].dtype.kind == "f" else "steps-post"
        axes.plot(
            rows.time,
            numbers(rows[output]),
            color=colours.to_rgba(places[run]),
            linewidth=0.6,
            alpha=0.7,
            drawstyle=kind,
        )


def _scale(found: DrawnSweep, parameter: str) -> ScalarMappable:
    places = _places(found[parameter])
    return ScalarMappable(Normalize(float(np.min(places)), float(np.max(places))), _MAP)


def _add_scale(figure: Figure, courses: Sequence[Axes], found: DrawnSweep, parameter: str) -> None:
    bar = figure.colorbar(_scale(found, parameter), ax=[*courses], pad=0.02, aspect=30)
    bar.set_label(plain_label(wrapped(_with_unit(parameter, found.units))), fontsize=TEXT)
    bar.ax.tick_params(labelsize=TEXT, width=0.6, length=3.0)
    bar.outline.set_visible(False)


def _with_unit(name: str, units: Any) -> str:
    return f"{name} in {units[name]}" if units.get(name) else name


def _name(axes: Axes, side: str, text: str) -> None:
    """Name an axis; without a text, its numbers are those of another axes."""
    axis = getattr(axes, f"{side}axis")
    axis.set_label_text(plain_label(wrapped(text)), fontsize=TEXT)
    axis.set_tick_params(**{"labelleft" if side == "y" else "labelbottom": bool(text)})


def _tell(figure: Figure, found: DrawnSweep) -> None:
    """How many runs there are, and what has no room."""
    parts = [count(found.runs, "run")]
    if found.failed:
        parts.append(f"{found.failed} failed (crosses)")
    left = {
        "scalar": len(found.scalars) - _MOST_SCALARS,
        "parameter": len(found.parameters) - _MOST_PARAMETERS,
    }
    parts += [f"{count(n, f'more {what}')} not drawn" for what, n in left.items() if n > 0]
    figure.suptitle(", ".join(parts), fontsize=TEXT, x=0.01, ha="left")
