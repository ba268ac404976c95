"""Compares the derivatives of indicators that FMUs declare with how the indicators change.

A wrong derivative makes predictions of events wrong, without another sign. Both are known at communication points: over a
short smooth step the indicator must change by no less than its smallest and no more than its largest derivative.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from fmimaster.instants.grid import rounding
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.indicators import Indicators
from fmimaster.run.loop import Loop
from fmimaster.system.declarations import Indicator

ENOUGH = 20
"""So many smooth steps over which a derivative fits show that it is right."""

FIRST = 2 * ENOUGH
"""So many steps at the start of a run are made one by one for this."""

TOO_MANY = 5
"""It is wrong if it does not fit over so many smooth steps, and seldom fits: single ones can have an event inside."""

SELDOM = 4
"""... so many times more often than it fits."""

SMOOTH = 0.25
"""A step is smooth if the derivative changes in it by no more than this part of the fastest change."""

SHORTEST = 0.1
"""Of a usual step: values at the ends of shorter steps differ by the errors of extrapolated inputs."""

VISIBLE = 1e3
"""An indicator of a body at rest changes by the errors of extrapolated inputs: a change must be so many times larger."""

OWN, OF_INPUTS = 0.05, 0.2
"""Largest part of the fastest change by which a derivative may differ, for indicators of the own states of an FMU, and for
those that depend directly on inputs, which are extrapolated."""

_log = logging.getLogger("fmimaster")


class _Compared(NamedTuple):
    """A derivative that is compared."""

    name: str
    """Component, event and indicator."""
    z: int
    """Slots among the Float64 outputs: of the indicator, """
    dz: int
    """and of its derivative."""
    part: float
    """Part of the fastest change by which they may differ."""
    indicator: Indicator
    set: IndicatorSet


class DerivativeCheck:
    """Compares derivatives over steps that are made one by one, until it is clear whether they are right."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._all = _compared(loop)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing is compared yet."""
        self._open, self._waits = [*self._all], FIRST

    @property
    def waits(self) -> bool:
        """Whether the next step is made alone for a comparison: only at the start of a run, since this costs time."""
        return bool(self._open) and self._waits > 0

    def look(self) -> None:
        """Compare over the step that ends at the present time."""
        if not self._open:
            return
        self._waits -= 1
        loop, now = self._loop, self._loop.state.time.seconds
        indicators = loop.indicators
        previous = indicators.previous(now, rounding(now, indicators.step))
        if previous is None or loop.state.ahead or loop.state.outdated:
            return
        before, then = previous
        if not SHORTEST * indicators.step <= now - then <= 2 * indicators.step:
            return
        after, known = indicators.present(), loop.state.derivatives
        for compared in list(self._open):
            if (
                compared.set.event in indicators.held
            ):  # forces over the step, which a derivative cannot know, change it
                continue
            fits = _fits(compared, before, after, now - then, indicators)
            if fits is None:
                continue
            right, wrong = known.get(compared.name, (0, 0))
            right, wrong = right + fits, wrong + (not fits)
            known[compared.name] = right, wrong
            if wrong >= max(TOO_MANY, SELDOM * right):
                values = (after[compared.z] - before[compared.z]) / (now - then), after[compared.dz]
                self._warn(compared, *values, now)
            if right >= ENOUGH or wrong >= max(TOO_MANY, SELDOM * right):
                self._open.remove(compared)

    def _warn(self, compared: _Compared, measured: float, declared: float, time: float) -> None:
        text = (
            f"{compared.name} changes by {measured:.6g} per second near t = {time:.12g} s, but its derivative "
            f"'{compared.indicator.derivative}' is {declared:.6g}: predictions are wrong, and the event may be missed "
            "or late. Correct the derivative of the indicator in the manifest of the FMU, or leave it out"
        )
        _log.warning("%s", text)
        self._loop.state.warnings += (text,)


def _compared(loop: Loop) -> list[_Compared]:
    """The derivatives that can be compared and were not yet."""
    plan, found, errors = loop.plan, list[_Compared](), loop.programs.errors
    # with held inputs it is not known whether the derivative has the change of the inputs, nor with a line at which rate
    follow = loop.programs.polynomial_inputs - (errors.at_other_rates if errors else frozenset())
    for s in loop.indicators.sets:
        if s.internal_step:
            continue  # its outputs change at its own steps only
        model, component = plan.instances[s.instance].model, loop.names[s.instance]
        connected = {k.input.name for k in plan.links.into_instance.get(s.instance, ())}
        declared = s.declaration
        for (z, dz), indicator in zip(s.pairs, declared.indicators, strict=True):
            name = f"'{component}': the indicator '{indicator.name}' of the event '{declared.name}'"
            needs = connected & model.dependencies.get(indicator.name, frozenset())
            if dz >= 0 and (s.instance in follow or not needs):
                right, wrong = loop.state.derivatives.get(name, (0, 0))
                if right < ENOUGH and wrong < max(TOO_MANY, SELDOM * right):
                    part = OF_INPUTS if needs else OWN
                    found.append(_Compared(name, z, dz, part, indicator, s))
    return found


def _fits(
    compared: _Compared,
    before: list[float],
    after: list[float],
    length: float,
    indicators: Indicators,
) -> bool | None:
    """Whether the change of an indicator over a step fits its derivative; None if the step does not show that."""
    z, dz = compared.z, compared.dz
    measured = (after[z] - before[z]) / length
    low, high = min(before[dz], after[dz]), max(before[dz], after[dz])
    fastest = max(abs(measured), abs(low), abs(high))
    if not fastest * length > VISIBLE * indicators.scales.negligible(z, dz):  # NaN, too
        return None
    if high - low > SMOOTH * fastest:
        return None
    deviation = max(low - measured, measured - high, 0.0)
    return deviation <= (high - low) + compared.part * fastest
