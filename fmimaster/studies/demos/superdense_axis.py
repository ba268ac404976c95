"""An axis of superdense time: instants with several rows are made wide, so that each row has a place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from fmimaster.results.results import Results

_BAND, _NUMBER = "0.93", "0.4"
"""Greys of an instant that is made wide, and of the numbers of its rows."""
_TEXT = 7.0


@dataclass(frozen=True)
class SuperdenseAxis:
    """Where each row of a table is on the axis."""

    time: NDArray[np.float64]
    """In s."""
    index: NDArray[np.int32]
    begin: NDArray[np.float64]
    """Where the place of each row begins."""
    end: NDArray[np.float64]
    """Where it ends; equal to ``begin`` for a row that is alone at its time."""

    @classmethod
    def of(cls, results: Results, rows: NDArray[np.bool_], width: float) -> SuperdenseAxis:
        """Chosen rows; each of several at one time is ``width`` wide, as a part of the time that is shown."""
        time, index = results.time[rows], results.index[rows]
        follows = np.append(np.diff(time) == 0, False)
        is_wide = follows | np.insert(follows[:-1], 0, False)
        widths = np.where(is_wide, width * max(float(time[-1] - time[0]), 1e-9), 0.0)
        if time[-1] == time[0]:
            widths = np.ones(len(time))
        before = np.cumsum(widths) - widths
        return cls(time, index, time + before, time + before + widths)

    @property
    def middle(self) -> NDArray[np.float64]:
        """The middles of all places."""
        return (self.begin + self.end) / 2

    def prepare(self, axes: Axes) -> None:
        """Shade the wide instants, number their rows, and write the times below."""
        is_wide = self.end > self.begin
        for time in np.unique(self.time[is_wide]):
            rows = (self.time == time) & is_wide
            axes.axvspan(
                self.begin[rows][0], self.end[rows][-1], color=_BAND, linewidth=0, zorder=0
            )
            for x, n in zip(self.middle[rows], self.index[rows], strict=True):
                axes.text(
                    *(x, 1.01, str(n)),
                    transform=axes.get_xaxis_transform(),
                    ha="center",
                    fontsize=_TEXT - 1,
                    color=_NUMBER,
                )
        times = np.unique(np.concatenate([self.time[[0, -1]], self.time[is_wide]]))
        places = [float(np.mean(self.middle[self.time == time])) for time in times]
        axes.set_xticks(places, [f"{time:g}" for time in times], fontsize=_TEXT)
        axes.set_xlim(self.begin[0], self.end[-1])

    def held(self, axes: Axes, values: NDArray[np.float64], **style: object) -> None:
        """A signal that has a value at all times: level over each place, and a line to the next one."""
        x = np.column_stack([self.begin, self.end]).ravel()
        axes.plot(x, np.repeat(values, 2), **style)  # type: ignore[arg-type]

    def events(self, axes: Axes, values: NDArray[np.float64], colour: str, **style: object) -> None:
        """A signal that is absent in most rows: a marker where it is present."""
        present = ~np.ma.getmaskarray(values)
        x, y = self.middle[present], np.ma.getdata(values)[present]
        axes.vlines(x, 0.0, y, color=colour, linewidth=1.0)
        axes.plot(x, y, color=colour, linestyle="", **style)  # type: ignore[arg-type]
