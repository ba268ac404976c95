"""A backend of matplotlib whose windows are files: 1.png, 2.png, ... in the folder $SHOWN_FIGURES."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg


class FigureManager(FigureManagerBase):
    """Shows all figures, and closes them."""

    @classmethod
    def pyplot_show(cls, **_: Any) -> None:
        """What pyplot.show() calls."""
        folder = Path(os.environ["SHOWN_FIGURES"])
        for manager in Gcf.get_all_fig_managers():
            manager.canvas.figure.savefig(folder / f"{len([*folder.iterdir()]) + 1}.png")
        Gcf.destroy_all()


class FigureCanvas(FigureCanvasAgg):
    """The canvas of such a window."""

    manager_class = FigureManager
