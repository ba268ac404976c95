"""The step size of a run that is given none: shorter from run to run, until the error of the coupling is small."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from fmimaster.configure.settings import Settings
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.statistics import LEAST_SHOWN, share_in_words
from fmimaster.steps.schedule import Schedule, round_to_125
from fmimaster.steps.step_rule import StepRule

if TYPE_CHECKING:
    from fmimaster.front.single_run import Ran

AIM = 0.003
"""Coupling error from which on chosen steps are short enough; and those that an FMU suggests:"""

SUGGESTED_AIM = 0.01

MOST_ROUNDS = 6
"""Number of step sizes that are tried."""

SHORTEST, LONGEST = 1 / 8, 1 / 2
"""Limits of the factor by which steps become shorter from one to the next; the first one also after growth."""

MOST_STEPS = 2_000_000
"""Steps of all components up to which shorter ones are tried. It is not a time, so that the same system gives the same bits
on each machine."""

HARDLY = 0.7
"""Ratio of two errors from which on shorter steps hardly help."""


class ChosenSteps:
    """The choice of the step size, if neither the user nor the system gives one.

    Parameters
    ----------
    schedule
        Of the first run.
    most_seconds
        CPU time in s of a run from which on no shorter steps are tried.
    """

    def __init__(self, schedule: Schedule, most_seconds: float) -> None:
        self._is_suggested, self.most_seconds = schedule.is_suggested, most_seconds
        self._errors: list[float] = []
        """With the step sizes that were tried."""

    def keeps_suggested(self, settings: Settings) -> bool:
        """Whether these settings have the step size of an FMU."""
        return settings.step_size is None and self._is_suggested

    def longer(self, settings: Settings, rule: StepRule[Any]) -> StepRule[Any] | None:
        """The rule of a second run with steps twice as long: it is cheaper. None with the steps of an FMU."""
        return None if self.keeps_suggested(settings) else replace(rule, size=2 * rule.exact_size)

    def judged(
        self, settings: Settings, ran: Ran, error: float, order: float
    ) -> tuple[Settings | None, tuple[str, ...]]:
        """The settings of the next run, if the coupling error of this one is too large; and a note about its steps."""
        self._errors.append(error)
        words = f"steps of {float(ran.prepared.schedule.rule.exact_size):g} s"
        share = share_in_words(max(error, LEAST_SHOWN))
        if self.keeps_suggested(settings) and error <= SUGGESTED_AIM:
            return None, ()
        if error <= AIM:
            chosen = "chosen so that the coupling error is"
            return None, (f"{words}, {chosen} {share} (--step-size sets them)",)
        note = (
            f"{words}, although the coupling error is {share}: shorter ones hardly help, or are too many (--step-size sets "
            "them)"
        )
        return self.shorter(settings, ran, (AIM / error) ** (1.0 / order)), (note,)

    def shorter(self, settings: Settings, ran: Ran, factor: float = SHORTEST) -> Settings | None:
        """The settings with a shorter step size; None if there is no use in shorter steps."""
        errors, schedule = self._errors, ran.prepared.schedule
        hardly_helps = len(errors) > 2 and min(errors[-2:]) > HARDLY * errors[-3]
        if len(errors) >= MOST_ROUNDS or hardly_helps or ran.seconds > self.most_seconds:
            return None
        by = Fraction(min(max(factor, SHORTEST), LONGEST))
        size = round_to_125(schedule.rule.exact_size * by)
        steps = ceil((schedule.stop - schedule.start) / size) * len(ran.prepared.plan.instances)
        return replace(settings, step_size=size) if steps <= MOST_STEPS else None


def steps_to_choose(settings: Settings, prepared: Prepared) -> list[str]:
    """A note, if a run may take shorter steps than those that are planned."""
    schedule = prepared.schedule
    is_open = schedule.is_chosen or schedule.is_suggested
    if not is_open or settings.step_size is not None or settings.error_estimate is False:
        return []
    most = SUGGESTED_AIM if schedule.is_suggested else AIM
    words = f"a run takes shorter steps, if the coupling error is above {100.0 * most:g} % (--step-size sets them)"
    return [words] if prepared.couples else []
