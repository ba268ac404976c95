"""Where a figure is shown: by itself in a notebook, and in the windows of matplotlib's pyplot in a script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from io import BytesIO
from typing import Any

from matplotlib import get_backend
from matplotlib.figure import Figure, SubFigure

_DOTS_PER_INCH = 110
"""Resolution in a notebook: a figure is about as wide as the text."""


class ResultsFigure(Figure):
    """A figure that a notebook shows if it is the last expression of a cell, without ``%matplotlib``."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format="png", dpi=_DOTS_PER_INCH)
        return stream.getvalue()


def maker_of_figures(show: bool) -> Callable[..., Figure]:
    """What makes a figure for a caller: ``pyplot.figure`` if he uses pyplot, so that ``pyplot.show()`` shows it.

    A notebook that draws within its cells shows figures of pyplot by itself, and would show what is returned once more.
    There, and where pyplot is not imported, a figure belongs to its caller alone.
    """
    if show and not _in_notebook():
        import matplotlib.pyplot  # noqa: F401 (slow, and it keeps a list of figures)
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or "inline" in get_backend():
        return ResultsFigure
    return partial(pyplot.figure, FigureClass=ResultsFigure)


def show_figure(figure: Figure | SubFigure) -> None:
    """Show a figure now: below the cell in a notebook, in a window in a script, which waits until the window is closed."""
    if figure.canvas.manager is None:
        import_module("IPython.display").display(figure)
    else:
        from matplotlib import pyplot

        pyplot.show()


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None
