"""Systems that are ready to be simulated, with what is worth looking at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fmimaster.algorithms import Jacobi
from fmimaster.errors import OptionError, did_you_mean
from fmimaster.reference_files import reference_path
from fmimaster.results.results import Results
from fmimaster.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HALF_HEIGHT = 0.55
"""Half the height of each block in m: the start value of ``dx``."""


def _draw_nothing(_figure: Figure, _results: Results) -> None:
    """The columns tell it all."""


def _draw_blocks(figure: Figure, results: Results) -> None:
    """The blocks as bands as high as they are, and the ceiling: so it is seen that they touch where they collide."""
    axes = figure.axes[0]
    for name, line in zip(("upper.x", "lower.x"), axes.lines, strict=False):
        bottom, top = results[name] - _HALF_HEIGHT, results[name] + _HALF_HEIGHT
        axes.fill_between(
            results.time, bottom, top, color=line.get_color(), alpha=0.25, linewidth=0.0
        )
    # its event indicator is the distance between the block and the ceiling
    ceiling = results["upper.ceiling.z[1]"] + results["upper.x"] + _HALF_HEIGHT
    axes.plot(results.time, ceiling, color="0.35", linewidth=1.5)
    axes.annotate(
        "ceiling",
        (results.time[-1], ceiling[-1]),
        (0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8.0,
    )


@dataclass(frozen=True)
class Demo:
    """A system, its settings, and what to draw."""

    name: str
    title: str
    text: str
    """What happens, in a sentence or two."""
    system: str
    """Name of a reference file."""
    settings: Mapping[str, Any]
    """For :class:`fmimaster.Simulation`."""
    columns: tuple[str, ...]
    """To be drawn, in this order."""
    draw: Callable[[Figure, Results], None] = field(default=_draw_nothing, repr=False)
    """Draws what is no column into the figure."""

    def simulation(self) -> Simulation:
        """The simulation to be run."""
        return Simulation(reference_path(self.system), **self.settings)


DEMOS: tuple[Demo, ...] = (
    Demo(
        name="two-mass",
        title="Two blocks on springs: an FMI 2.0 FMU coupled with an FMI 3.0 FMU",
        text=(
            "Two blocks hang below each other on springs. They collide with each other, and the upper one with the "
            "ceiling. Each is an FMU of its own that finds the instants of its collisions inside the steps."
        ),
        system="systems/two-mass-b3-mixed.ssp",
        settings={"algorithm": Jacobi(), "step_size": 0.01, "stop_time": 20},
        columns=("upper.x", "lower.x", "upper.v", "lower.v"),
        draw=_draw_blocks,
    ),
    Demo(
        name="dahlquist",
        title="Dahlquist's test equation x' = -k x + u, one FMI 3.0 FMU",
        text="A single FMU, the smallest one: x' = -k x + u with k = 1/s, u = 0 and x = 1 at the start.",
        system="fmi3/Dahlquist.fmu",
        settings={"step_size": "1/10", "stop_time": 10},
        columns=("x", "dx"),
    ),
)


def demo(name: str) -> Demo:
    """The demo of that name.

    Raises
    ------
    OptionError
        If there is none.
    """
    for one in DEMOS:
        if one.name == name:
            return one
    names = [one.name for one in DEMOS]
    raise OptionError(
        f"There is no demo '{name}'.{did_you_mean(name, names)} There are {', '.join(names)}."
    )
