"""Results in a notebook: a small table of the first and last rows with units, and figures; in a script, windows."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError
from fmimaster.base.installation import check_matplotlib
from fmimaster.base.text import count, in_a_line
from fmimaster.results.columns import as_text
from fmimaster.results.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_ENDS = 4
"""Rows that are shown at the start, and at the end."""
_MOST_COLUMNS = 8
"""Columns that are shown, with time; a line below names the number of the others."""
_LONGEST = 24
"""Letters of a text that are shown."""


def html_page(table: Table) -> str:
    """The table as HTML, with the figure of :func:`fmimaster.results.plot.plot_results` if there is anything to draw."""
    names = list(table)[:_MOST_COLUMNS]
    others = len(table) - len(names)
    rest = f"<p>{count(others, 'more column')}: {_text(_few(list(table)[len(names) :]))}</p>"
    return (
        f"<div style='overflow-x: auto'><p>{_text(_caption(table))}</p>"
        "<table cellpadding='4' style='border-collapse: collapse; text-align: right'><thead>"
        f"<tr>{_cells('th', names)}</tr><tr>{_cells('th', [_unit(table, n) for n in names])}</tr>"
        f"</thead><tbody>{''.join(_rows(table, names))}</tbody></table>"
        f"{rest if others else ''}{_figure(table)}</div>"
    )


def _caption(table: Table) -> str:
    span = f", {table.time[0]:g} s to {table.time[-1]:g} s" if table.rows else ""
    events = f", {count(len(table.events), 'event')}" if table.events else ""
    return f"{count(table.rows, 'row')}, {count(len(table.columns), 'column')}{span}{events}"


def _unit(table: Table, name: str) -> str:
    return "s" if name == "time" else table.units.get(name, "")


def _rows(table: Table, names: Sequence[str]) -> Iterator[str]:
    is_whole = table.rows <= 2 * _ENDS
    shown = range(table.rows) if is_whole else (*range(_ENDS), *range(-_ENDS, 0))
    for k, row in enumerate(shown):
        if k == _ENDS and not is_whole:
            yield f"<tr>{_cells('td', ['…' for _ in names])}</tr>"
        yield f"<tr>{_cells('td', [_shown(table[name], row) for name in names])}</tr>"


def _shown(values: NDArray[Any], row: int) -> str:
    """One value; of an array its shape; nothing if it is absent."""
    value = values[row]
    if np.ma.is_masked(value) and np.ma.getmaskarray(value).all():
        return ""
    if values.ndim > 1:
        return "array " + " × ".join(map(str, values.shape[1:]))
    text = f"{value:.6g}" if values.dtype.kind == "f" else as_text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_ENDS]) + (", …" if len(names) > _ENDS else "")


def _cells(kind: str, texts: Sequence[str]) -> str:
    return "".join(f"<{kind} align='right'>{_text(text)}</{kind}>" for text in texts)


def _text(text: str) -> str:
    return escape(in_a_line(text))


def _figure(table: Table) -> str:
    try:
        check_matplotlib("The figure")
        from fmimaster.results.plot import plot_results  # matplotlib takes half a second

        figure: Any = plot_results(table)
    except OptionError:  # matplotlib is not installed, or there are no numbers
        return ""
    picture = b64encode(figure._repr_png_()).decode()
    return f'<img alt="columns over time" src="data:image/png;base64,{picture}">'


def maker_of_figures(show: bool) -> Callable[..., Figure]:
    """What makes a figure for a caller: ``pyplot.figure`` if pyplot is imported, so that ``pyplot.show()`` shows it.

    A notebook with inline figures shows figures of pyplot automatically, and would show a returned figure twice. There,
    and if pyplot is not imported, a figure is not registered in pyplot.
    """
    if show and not _in_notebook():
        import matplotlib.pyplot  # noqa: F401 (slow, and it keeps a list of figures)
    from matplotlib import get_backend  # the table needs no matplotlib

    from fmimaster.results.plot import ResultsFigure

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
    from matplotlib import get_backend

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
