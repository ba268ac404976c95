"""The errors that estimators have written into the value store, for the step-size rule."""

from __future__ import annotations

from math import isfinite
from typing import Any

from fmimaster.control.estimators.estimator import Measured
from fmimaster.control.step_rule import StepRule
from fmimaster.errors import NotANumberError
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType


class ErrorReader:
    """Reads the signals of the estimators of a rule."""

    def __init__(self, plan: Plan, store: ValueStore, rule: StepRule[Any]) -> None:
        signals = plan.layout.signals
        self._item = store.values[DataType.FLOAT64].item
        self._names = tuple(e.name for e in rule.estimators)
        self._places = [
            (signals[e.name][1], signals[e.worst][1], e.sources(plan)) for e in rule.estimators
        ]

    def read(self) -> tuple[Measured, ...]:
        """The errors as they are."""
        item = self._item
        return tuple(
            [Measured(item(k), sources[int(item(worst))]) for k, worst, sources in self._places]
        )

    def read_finite(self, time: float) -> tuple[Measured, ...]:
        """The errors of a step that is accepted, and has ended at this time in s.

        Raises
        ------
        NotANumberError
            If one of them is NaN or infinite: no step size follows from it.
        """
        found = self.read()
        for name, (error, where) in zip(self._names, found, strict=True):
            if not isfinite(error):
                of = f" of {where}" if where else ""
                raise NotANumberError(
                    f"The error estimate {name}{of} is {error} at t = {time:.12g} s: no step size follows from it. Check "
                    "the outputs of which it is made for NaN and for division by zero, and the FMUs that compute them."
                )
        return found
