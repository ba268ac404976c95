"""Draw states.svg: the states of an instance and the calls between them, from the table that the checker uses.

python docs/figures/states.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from fmimaster.results.plot import save_figure
from fmimaster.system.states import FmiCall, State, after, call_between, calls_in

WIDTH, HEIGHT = 880, 480
"""In points of 1/100 inch, as all places below; the origin is the left upper corner."""
BOX = 230
"""Width of a state."""
LINE = 15
"""Height of a line of text."""
BLUE, GREY = "#0072B2", "#555555"

PLACES = {
    State.CONFIGURATION_MODE: (20, 20),
    State.INSTANTIATED: (20, 155),
    State.INITIALIZATION_MODE: (20, 290),
    State.EVENT_MODE: (540, 20),
    State.STEP_MODE: (540, 290),
    State.TERMINATED: (540, 415),
}
"""Left upper corner of each state."""

Point = tuple[float, float]

PATHS: dict[tuple[State, State], tuple[list[Point], Point]] = {
    (State.INSTANTIATED, State.CONFIGURATION_MODE): ([(45, 155), (45, 65)], (52, 114)),
    (State.CONFIGURATION_MODE, State.INSTANTIATED): ([(225, 65), (225, 155)], (232, 114)),
    (State.INSTANTIATED, State.INITIALIZATION_MODE): ([(135, 200), (135, 290)], (142, 249)),
    (State.INITIALIZATION_MODE, State.STEP_MODE): ([(250, 335), (540, 335)], (320, 326)),
    (State.INITIALIZATION_MODE, State.EVENT_MODE): ([(250, 305), (540, 95)], (425, 226)),
    (State.EVENT_MODE, State.STEP_MODE): ([(570, 140), (570, 290)], (577, 219)),
    (State.STEP_MODE, State.EVENT_MODE): ([(710, 290), (710, 140)], (717, 219)),
    (State.STEP_MODE, State.TERMINATED): ([(655, 365), (655, 415)], (662, 394)),
    (State.EVENT_MODE, State.TERMINATED): (
        [(770, 80), (850, 80), (850, 437), (770, 437)],
        (780, 428),
    ),
}
"""From state to state: the corners of the arrow, and the left end of its text."""

EVERYWHERE = {FmiCall.GET_FMU_STATE, FmiCall.SET_FMU_STATE}
"""Calls that are allowed in each state; they are written once."""


def stays(state: State) -> list[str]:
    """Calls that do not leave a state."""
    return [c.value for c in calls_in(state) if after(state, c) is state and c not in EVERYWHERE]


def draw_state(axes: Axes, state: State) -> None:
    """A box with the name of the state and the calls that do not leave it."""
    (x, y), calls = PLACES[state], stays(state)
    size = BOX, 30 + LINE * len(calls)
    style = "round,pad=0,rounding_size=6"
    axes.add_patch(
        FancyBboxPatch((x, y), *size, boxstyle=style, facecolor="#f4f6f8", edgecolor=BLUE)
    )
    axes.text(x + 10, y + 19, state.value, weight="bold", size=9)
    for k, call in enumerate(calls):
        axes.text(x + 10, y + 36 + LINE * k, call, size=7.5)


def draw_call(axes: Axes, state: State, following: State) -> None:
    """An arrow with the call that leads from one state to another."""
    call = call_between(state, following)
    if call is None:
        return
    corners, text = PATHS[state, following]
    xs, ys = zip(*corners, strict=True)
    axes.plot(xs[:-1], ys[:-1], color=GREY, linewidth=1)
    axes.annotate(
        "",
        corners[-1],
        corners[-2],
        arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkA": 0, "shrinkB": 0},
    )
    words = call.value.replace(", with", ",\nwith")
    axes.text(*text, words, size=8, color=GREY)


def main(folder: Path) -> None:
    """Draw."""
    figure = Figure((WIDTH / 100, HEIGHT / 100))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.axis("off")
    for state in State:
        for following in State:
            draw_call(axes, state, following)
    for state in State:
        draw_state(axes, state)
    everywhere = " and ".join(call.value for call in FmiCall if call in EVERYWHERE)
    axes.text(20, HEIGHT - 20, f"{everywhere} are allowed in each state.", size=8, color=GREY)
    save_figure(figure, folder / "states.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
