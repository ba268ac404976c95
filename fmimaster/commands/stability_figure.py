"""The spectral radius of a step against its size, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from fmimaster.studies.stability.advisor import Limit
from fmimaster.studies.stability.spectrum import Spectrum

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of Okabe and Ito (2008), which colour-blind readers can distinguish."""
_STYLES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_TEXT = 8.0
"""[pt]"""
_HIGHEST = 1.3
"""Largest radius that is shown."""


@dataclass(frozen=True, slots=True)
class RadiusCurve:
    """The radius of one kind of steps at several sizes."""

    name: str
    spectra: Sequence[Spectrum]
    limit: Limit


def stability_figure(
    curves: Sequence[RadiusCurve], of_run: float | None = None, title: str = ""
) -> Figure:
    """Draw curves of the radius, with the largest stable step of each.

    Parameters
    ----------
    of_run : float, optional
        Step size of the run in s; it is marked.
    """
    figure = Figure(figsize=(5.5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for k, curve in enumerate(curves):
        colour = _COLOURS[k % len(_COLOURS)]
        sizes = [1e3 * s.size for s in curve.spectra]
        label = curve.name
        if curve.limit.step is not None:
            step = 1e3 * curve.limit.step
            label += f": stable up to {step:.4g} ms"
            axes.plot([step], [1.0], "o", color=colour, markersize=4, zorder=4)
        axes.plot(
            sizes,
            [s.radius for s in curve.spectra],
            color=colour,
            linestyle=_STYLES[k % len(_STYLES)],
            linewidth=1.2,
            label=label,
        )
    axes.axhline(1.0, color="0.35", linewidth=0.8)
    if of_run is not None:
        axes.axvline(1e3 * of_run, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))
        axes.annotate(
            "step of the run",
            (1e3 * of_run, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=_TEXT - 1,
            color="0.35",
        )
    axes.set_xscale("log")
    least = min((s.radius for c in curves for s in c.spectra), default=0.0)
    axes.set_ylim(max(0.0, 1.0 - 1.2 * (1.0 - least)), _HIGHEST)
    axes.set_xlabel("communication step size in ms", fontsize=_TEXT)
    axes.set_ylabel("spectral radius of a step", fontsize=_TEXT)
    axes.tick_params(labelsize=_TEXT - 1)
    axes.set_title(title, fontsize=_TEXT + 1)
    axes.legend(fontsize=_TEXT - 1, frameon=False, loc="upper left")
    return figure
