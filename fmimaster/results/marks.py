"""Marks of events in a figure: lines, or ticks at the top if they are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fmimaster.record.causes import Event

GREY = "0.35"
"""Of what is not data."""
TICK_HEIGHT = 0.035
"""Height of a tick, as a part of the axes."""
TICKS_APART = 1 / 3000
"""Part of the time span below which two ticks cannot be distinguished, even in print."""
_FEW_EVENTS = 40
"""So many are marked by lines over the whole height; more, by ticks at the top, which hide nothing."""
_EVENT_STYLES: dict[bool, Any] = {
    True: {"color": "0.5", "linewidth": 0.7, "linestyle": "-"},
    False: {"color": "0.4", "linewidth": 0.8, "linestyle": (0, (1, 2))},
}
"""Shared or not → how an event is marked."""


def mark_events(axes: Axes, events: Sequence[Event]) -> None:
    """Draw a line at each event: solid if it is shared, dotted if it is private."""
    few = len(events) <= _FEW_EVENTS
    span = max((e.time for e in events), default=0.0) or 1.0
    for shared, style in _EVENT_STYLES.items():
        times = np.array([e.time for e in events if e.shared is shared])
        _, distinct = np.unique(np.round(times / (span * TICKS_APART)), return_index=True)
        lowest = 0.0 if few else 1.0 - (2 if shared else 1) * TICK_HEIGHT
        if len(times):
            axes.vlines(
                times[distinct],
                lowest,
                1.0,
                transform=axes.get_xaxis_transform(),
                color=style["color"],
                linewidth=style["linewidth"],
                linestyles=style["linestyle"] if few else "-",
                zorder=0.5,
            )


def event_key(events: Sequence[Event]) -> list[tuple[str, Line2D]]:
    """The legend for marks of events: label and line of each kind present."""
    few = len(events) <= _FEW_EVENTS
    kinds = {e.shared for e in events}
    words = {
        True: "shared events" if few else "shared events (long ticks at the top)",
        False: "private events" if few else "private events (short ticks at the top)",
    }
    tick: dict[str, Any] = {"linestyle": "", "marker": "|", "color": GREY}
    return [
        (words[shared], Line2D([], [], **(style if few else tick)))
        for shared, style in _EVENT_STYLES.items()
        if shared in kinds
    ]
