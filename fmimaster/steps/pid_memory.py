"""What a PID controller of step sizes remembers from step to step: as a value, and in the arrays of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fmimaster.plan.plan import Plan
from fmimaster.program.hook import RuleTwin, Twin
from fmimaster.program.store import ValueStore
from fmimaster.record.causes import RAMP, STEP_SIZE, Cause, Kind
from fmimaster.steps.estimator import Estimator
from fmimaster.system.model import DataType

MANY = 100
"""Number of steps of the smallest size with too large an error that gives a warning."""

_NAMELESS = 2
"""In the codes for the kernel, causes without a name come before those with a name."""

_IN_C = "smallest", "largest", "safety", "least", "most", "reject_above"
"""Numbers that the kernel uses unchanged."""


class Stuck(NamedTuple):
    """Steps of the smallest size, one after the other, with errors above the tolerance."""

    begin: float
    """[s] Of the first of them."""
    steps: int
    """Their number, up to :data:`MANY`."""
    reason: str
    """The estimator that required a smaller step last."""
    error: float


class Numbers(NamedTuple):
    """Numbers that do not change during a run."""

    smallest: float
    """[s]"""
    largest: float
    """[s]"""
    first: float
    """[s]"""
    safety: float
    least: float
    most: float
    reject_above: float
    exponents: tuple[tuple[float, float, float], ...]
    """For each estimator: exponents of its last three errors."""
    of_sizes: tuple[float, float] | None
    """Exponents of the last quotients of step sizes; None if both are 0."""


class Controlled(NamedTuple):
    """Memory of a controller."""

    numbers: Numbers
    size: float
    """[s] The step it proposes."""
    cause: Cause
    errors: Sequence[tuple[float, float]]
    """Per estimator: the error of the last step, and of the one before."""
    before: float
    """[s] The proposal before it."""
    long_before: float
    """[s] The one before that."""
    was_rejected: bool = False
    """Whether the present step was tried and rejected before."""
    stuck: Stuck | None = None


class PIDTwin(RuleTwin[Controlled]):
    """A PID controller in C: fmimaster/kernel/controller.c. Steps that may be rejected are left to Python.

    Parameters
    ----------
    numbers : Numbers
    estimators : Estimator, at least one
    plan : Plan
    store : ValueStore
        Where the estimators write their errors.
    """

    def __init__(
        self, numbers: Numbers, estimators: Sequence[Estimator], plan: Plan, store: ValueStore
    ) -> None:
        signals, n = plan.layout.signals, len(estimators)
        names = [e.names(plan) for e in estimators]
        first_codes = np.cumsum([_NAMELESS, *map(len, names)])[:n]
        controlled = (Cause(Kind.CONTROLLED, (name,)) for found in names for name in found)
        self.causes = (STEP_SIZE, RAMP, *controlled)
        self._numbers = numbers
        self._codes_of_causes = {cause: code for code, cause in enumerate(self.causes)}
        self._sizes, self._known, self._codes = np.zeros(5), np.ones(2 * n), np.zeros(3, np.int64)
        a1, a2 = numbers.of_sizes or (0.0, 0.0)
        self.data = Twin(
            "pid",
            {
                **{name: getattr(numbers, name) for name in _IN_C},
                "n": n,
                "many": MANY,
                "largest_code": 0,
                "a1": a1,
                "a2": a2,
            },
            {
                "exponents": np.array(numbers.exponents),
                "values": store.values[DataType.FLOAT64],
                "errors": np.array([signals[e.name][1] for e in estimators], np.int64),
                "worst": np.array([signals[e.worst][1] for e in estimators], np.int64),
                "first_codes": first_codes.astype(np.int64),
                "sizes": self._sizes,
                "known": self._known,
                "codes": self._codes,
            },
        )

    def put(self, memory: Controlled) -> None:
        """The controller continues from this memory, which must not be that of a rejected step."""
        _, size, cause, errors, before, long_before, was_rejected, stuck = memory
        assert not was_rejected, "a repeated step is decided on in Python"
        code = self._codes_of_causes[cause]
        if stuck is None:
            self._sizes[:] = size, before, long_before, 0.0, 0.0
            self._codes[:] = code, 0, 0
        else:
            reason = self._codes_of_causes[Cause(Kind.CONTROLLED, (stuck.reason,))]
            self._sizes[:] = size, before, long_before, stuck.begin, stuck.error
            self._codes[:] = code, stuck.steps, reason
        self._known[:] = [e for known in errors for e in known]

    def take(self) -> Controlled:
        """The memory after the steps that were done."""
        size, before, long_before, begin, error = self._sizes.tolist()
        code, steps, reason = self._codes.tolist()
        known = self._known.tolist()
        errors = list(zip(known[::2], known[1::2], strict=True))
        stuck = Stuck(begin, steps, self.causes[reason].who[0], error) if steps else None
        cause = self.causes[code]
        return Controlled(self._numbers, size, cause, errors, before, long_before, False, stuck)
