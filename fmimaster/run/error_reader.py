"""The errors that estimators have written into the value store, for the step-size rule."""

from __future__ import annotations

from math import inf
from typing import Any

from fmimaster.base.errors import NotANumberError
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.steps.estimators.estimator import Measured
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.model import DataType

_new = tuple.__new__
"""Makes a named tuple without a call of Python: errors are read after each step."""


class ErrorReader:
    """Reads the signals of the estimators of a rule."""

    def __init__(self, plan: Plan, store: ValueStore, rule: StepRule[Any]) -> None:
        signals, floats = plan.layout.signals, DataType.FLOAT64
        self._values = memoryview(store.values[floats].data if rule.estimators else b"")
        self._places = [
            (signals[e.name][1], signals[e.worst][1], dict(enumerate(e.names(plan))))
            for e in rule.estimators
        ]
        """Per estimator: places of the error and of the index of what contributed most, and names by that index."""

    def read(self) -> list[Measured]:
        """The errors as they are."""
        values, found = self._values, []
        for error, worst, names in self._places:
            found.append(_new(Measured, (values[error], names[values[worst]])))
        return found

    def read_finite(self, time: float) -> list[Measured]:
        """The errors of a step that is accepted, and has ended at this time in s.

        Raises
        ------
        NotANumberError
            If one of them is NaN or infinite: no step size follows from it.
        """
        values, found = self._values, []
        for place, worst, names in self._places:
            error, name = values[place], names[values[worst]]
            if not error < inf:  # NaN, too
                raise NotANumberError(
                    f"The error estimate {name} is {error} at t = {time:.12g} s: no step size follows from it. Check the "
                    "outputs of which it is made for NaN and for division by zero, and the FMUs that compute them."
                )
            found.append(_new(Measured, (error, name)))
        return found
