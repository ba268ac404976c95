"""The activations of time-based clocks in a run, as stretches of equal distances."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from fmimaster.instants.instant import Ticks
from fmimaster.record.causes import Activations

MOST_STRETCHES = 1000
"""So many stretches of a clock are kept one by one; of those behind them only their number of activations."""


class Stretch(NamedTuple):
    """Activations of one clock."""

    first: Ticks
    last: Ticks
    number: int
    interval: Ticks | None
    """0 if there is one activation; None if the distances differ."""


@dataclass
class ActivationLog:
    """Each activation of the time-based clocks. Its size does not depend on the length of a run."""

    stretches: dict[str, list[Stretch]] = field(default_factory=dict)
    """By the name of the clock, with its component."""

    def add(self, clock: str, time: Ticks) -> None:
        """One more activation of a clock."""
        self.add_many(clock, time, 0, 1)

    def add_many(self, clock: str, first: Ticks, interval: Ticks, count: int) -> None:
        """Some more, at equal distances."""
        if not count:
            return
        last = first + interval * (count - 1)
        known = self.stretches.setdefault(clock, [])
        if not known:
            known.append(Stretch(first, last, count, interval))
            return
        before = known[-1]
        distance = first - before.last
        is_same = count == 1 or distance == interval
        if before.interval is None:
            known[-1] = Stretch(before.first, last, before.number + count, None)
        elif is_same and (before.number == 1 or before.interval == distance):
            known[-1] = Stretch(before.first, last, before.number + count, distance)
        elif len(known) < MOST_STRETCHES:
            known.append(Stretch(first, last, count, interval))
        else:
            known[-1] = Stretch(before.first, last, before.number + count, None)

    def rescale(self, factor: Fraction) -> None:
        """Times are multiples of another resolution from now on; ``factor`` is its ratio to the one before."""
        for known in self.stretches.values():
            known[:] = [
                Stretch(
                    s.first * factor,
                    s.last * factor,
                    s.number,
                    None if s.interval is None else s.interval * factor,
                )
                for s in known
            ]

    def entries(self, resolution: int) -> tuple[Activations, ...]:
        """The stretches in s, by the name of the clock and then in their order; another thread may add some meanwhile."""
        return tuple(
            Activations(
                clock,
                Fraction(s.first) / resolution,
                Fraction(s.last) / resolution,
                s.number,
                None if s.interval is None else Fraction(s.interval) / resolution,
            )
            for clock, stretches in sorted(self.stretches.items())
            for s in list(stretches)
        )
