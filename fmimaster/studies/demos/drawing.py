"""What the figures of all demos share: the size of text, plain axes, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fmimaster.results.plot import save_figure

TEXT = 8.0
"""Size of labels and legends in points."""


def plain(axes: Axes) -> None:
    """Axes with two lines and a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(linewidth=0.4, color="0.92")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=TEXT - 1)


def saved(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write figures by the names of their files; returns their paths."""
    paths = [folder / f"{name}.png" for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        save_figure(figure, path)
    return paths
