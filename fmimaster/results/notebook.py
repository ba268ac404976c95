"""Display of figures: automatically in a notebook, and in a window of matplotlib's pyplot in a script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from io import BytesIO
from typing import Any

from matplotlib import get_backend
from matplotlib.figure import Figure, SubFigure

from fmimaster.base.errors import OptionError

_DOTS_PER_INCH = 110
"""Resolution in a notebook: a figure is about as wide as the text."""


class ResultsFigure(Figure):
    """A figure that a notebook shows if it is the last expression of a cell, without ``%matplotlib``."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format="png", dpi=_DOTS_PER_INCH)
        return stream.getvalue()


def maker_of_figures(show: bool) -> Callable[..., Figure]:
    """What makes a figure for a caller: ``pyplot.figure`` if pyplot is imported, so that ``pyplot.show()`` shows it.

    A notebook with inline figures shows figures of pyplot automatically, and would show a returned figure twice. There,
    and if pyplot is not imported, a figure is not registered in pyplot.
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
        import_module("matplotlib.pyplot").show()


def check_window() -> None:
    """Refuse to show figures if matplotlib cannot open windows.

    Raises
    ------
    OptionError
        If its backend only writes files, for example on a machine without a screen.
    """
    import matplotlib.pyplot  # noqa: F401 (it chooses the backend)

    registry: Any = import_module("matplotlib.backends.registry")
    backend = get_backend()
    if backend.lower() in registry.backend_registry.list_builtin(
        registry.BackendFilter.NON_INTERACTIVE
    ):
        raise OptionError(
            f"There is no window for a figure: matplotlib uses its backend '{backend}', because there is no screen, no "
            "library for windows such as PyQt6 or Tk, or MPLBACKEND is set. Write the figure to a file."
        )


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None
