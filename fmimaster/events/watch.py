"""Data for the check of event indicators in the kernel: fmimaster/kernel/watch.c."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from fmimaster.events.event_clock import EventClock, Foresight
from fmimaster.numerics.polynomials import NEAREST
from fmimaster.program.hook import Twin
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.indicators import Indicators


def watch_data(clock: EventClock, indicators: Indicators) -> Twin | None:
    """Data that the kernel checks after each step instead of an event clock; None if the clock is always called.

    The kernel keeps the largest values up to date, as :meth:`Indicators.present` does.
    """
    watch = clock.watch(indicators.plan)
    if watch is None:
        return None
    sets, foresight = indicators.sets, watch.foresight or Foresight(0.0, 0.0, False)
    pairs = [pair for s in sets for pair in s.pairs]
    sources = [indicators.sources(z) for z, _ in pairs]

    def flags(of: Callable[[IndicatorSet], bool]) -> NDArray[np.uint8]:
        return np.array([of(s) for s in sets], np.uint8)

    by_fmus = indicators.predicted_by_fmus(foresight.in_fmu)
    ahead = [slot for i, slot in indicators.look_ahead if i in by_fmus]
    return Twin(
        "event clock",
        {
            "locates": int(watch.locates),
            "detects": int(watch.detects),
            "checks": int(not clock.fires),
            "predicts": int(watch.predicts),
            "foresees": int(watch.foresight is not None),
            "n": len(sets),
            "member": indicators.member,
            "distance": indicators.distance,
            "lacks_slopes": int(indicators.lacks_slopes),
            "step": indicators.step,
            "near": NEAREST,
            "forecast": foresight.forecast,
            "shortest": foresight.shortest,
            "n_ahead": len(ahead),
        },
        {
            "first": _firsts(len(s.pairs) for s in sets),
            "instances": np.array([s.instance for s in sets], np.int64),
            "is_located": flags(lambda s: not (s.is_inside or s.stops)),
            "is_inside": flags(lambda s: s.is_inside),
            "is_own": flags(lambda s: not s.is_triggered),
            "indicators": np.array([z for z, _ in pairs], np.int64),
            "slopes": np.array([dz for _, dz in pairs], np.int64),
            "tolerances": np.array([t for s in sets for t in s.tolerances]),
            "first_source": _firsts(map(len, sources)),
            "sources": np.array([k for found in sources for k, _ in found], np.int64),
            "factors": np.array([factor for found in sources for _, factor in found], np.float64),
            "ahead": np.array(ahead, np.int64),
            "is_foreseen": flags(lambda s: s.instance not in by_fmus),
            "largest": indicators.store.largest,
        },
    )


def _firsts(counts: Iterable[int]) -> NDArray[np.int64]:
    """Index of the first entry of each group in a joined list, and the end of the last group."""
    return np.cumsum([0, *counts], dtype=np.int64)
