"""Step sizes by error control: one PID formula, with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, isfinite

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.instants.instant import Goal, Instant, TimeBase, exact
from fmimaster.numerics.step_sizes import (
    by_errors,
    by_sizes,
    may_be_repeated,
    wanted_size,
    within,
)
from fmimaster.plan.plan import Plan
from fmimaster.program.store import ValueStore
from fmimaster.record.causes import RAMP, STEP_SIZE, Cause, Kind
from fmimaster.steps.doubling_errors import PowerResidual, StepDoubling
from fmimaster.steps.estimator import Estimator, Measured
from fmimaster.steps.pid_memory import MANY, Controlled, Numbers, PIDTwin, Stuck
from fmimaster.steps.prediction_errors import EmbeddedOrders, PredictorCorrector
from fmimaster.steps.step_rule import StepRule, Time

RANGE = 100
"""Default ratio of the smallest to the largest step size, as in the source of ECCO."""

AGAIN = 0.9
"""A rejected step is repeated with at most this fraction of its length."""

NOTHING: frozenset[int] = frozenset()
"""Events at the end of a step that the error has limited: none."""

_new = tuple.__new__
"""Creates a named tuple without a Python call, because each step creates one."""


@dataclass(frozen=True, slots=True)
class PID(StepRule[Controlled]):
    """Step sizes by measured errors.

    ``h_new = h clip(safety e1^(-k1/p) e2^(-k2/p) e3^(-k3/p) (h/h1)^a1 (h1/h2)^a2)``, with the errors e1 of the step just
    done, e2 and e3 of those before it, the proposed steps h, h1, h2, and the order p of the error. Each estimator makes its
    own proposal; the smallest proposal is used, and the name of its estimator is the cause of the end of the step.

    Parameters
    ----------
    size : float, int, str, Fraction or None
        Largest step size in s, as in :class:`StepRule`.
    estimators : Estimator, at least one
        The error estimators.
    smallest : as size
        Smallest step size in s. Default: a hundredth of the largest.
    first : as size
        First step at the start and after each event, in s. Default: the smallest.
    safety : float
    k1, k2, k3, a1, a2 : float
        Exponents of the formula.
    least, most : float
        Limits of the factor by which a step changes.
    reject_above : float or None
        A step with a larger error is rolled back and repeated with a smaller size, unless it already has the smallest
        size. All FMUs must then be able to restore their state. With None, no step is rolled back.
    degree : int
        Degree of the extrapolation of the inputs; :meth:`with_inputs` sets it to that of the algorithm.

    If the error is 0, the factor is ``most``. An earlier error that is 0 or unknown is replaced by 1.

    Source: Sadjina et al. (2017), eq. (15), with k1 = 0.7 and k2 = -0.4; Soderlind (2003), Digital filters in adaptive
    time-stepping, for the other exponents.
    """

    estimators: tuple[Estimator, ...] = ()
    smallest: Time | None = None
    first: Time | None = None
    safety: float = 0.8
    k1: float = 0.7
    k2: float = -0.4
    k3: float = 0.0
    a1: float = 0.0
    a2: float = 0.0
    least: float = 0.2
    most: float = 1.5
    reject_above: float | None = None
    degree: int = 0

    def __post_init__(self) -> None:
        StepRule.__post_init__(self)
        if not self.estimators:
            raise OptionError(
                "PID without estimators: give at least one, such as estimators=(PowerResidual(),)."
            )
        names = [e.name for e in self.estimators]
        if len({*names}) < len(names):
            raise OptionError(f"Estimators {', '.join(names)}: expected each at most once.")
        if self.size is not None:
            self._check_sizes()
        numbers = (self.k1, self.k2, self.k3, self.a1, self.a2)
        if not all(map(isfinite, numbers)) or not 0 < self.safety < inf:
            raise OptionError(f"{self}: expected finite exponents and a safety greater than 0.")
        if not 0 < self.least <= 1 <= self.most < inf:
            raise OptionError(f"{self}: expected 0 < least <= 1 <= most.")
        if self.reject_above is not None and not self.reject_above > 0:
            raise OptionError(f"{self}: expected reject_above > 0, such as 1, or None.")

    def _check_sizes(self) -> None:
        largest, smallest, first = self.exact_size, self.shortest, self._first
        if not 0 < smallest <= largest:
            raise OptionError(
                f"Smallest step size {float(smallest):g} s, largest step size {float(largest):g} s: expected "
                "0 < smallest <= largest. Give a smaller `smallest`, or increase the largest step size (--step-size)."
            )
        if not smallest <= first <= largest:
            raise OptionError(
                f"First step size {float(first):g} s: expected one between the smallest, {float(smallest):g} s, and the "
                f"largest, {float(largest):g} s."
            )

    @classmethod
    def ecco(cls, size: Time | None = None, smallest: Time | None = None) -> PID:
        """ECCO with its authors' settings: step sizes from the residual energy of power bonds; no step is rolled back.

        Parameters
        ----------
        size, smallest : number or text, in s
            Largest and smallest step size, like the parameters of the class.

        Returns
        -------
        PID
            Its other parameters can be changed by ``dataclasses.replace``.

        Source: Sadjina et al. (2017), eq. (14), (15) and Table 1, where the step is from 0.1 ms to 10 ms.
        """
        return cls(size, smallest=smallest, estimators=(PowerResidual(),))

    @classmethod
    def predictor_corrector(cls, size: Time | None = None, smallest: Time | None = None) -> PID:
        """Step sizes from the distance of outputs from a straight line through the last two values; used like :meth:`ecco`.

        Source: Busch (2012), as in Sadjina et al. (2017), eq. (16), (17).
        """
        return cls(size, smallest=smallest, estimators=(PredictorCorrector(),))

    @classmethod
    def embedded_orders(cls, size: Time | None = None, smallest: Time | None = None) -> PID:
        """Step sizes from the error of extrapolated inputs, measured at the end of each step; used like :meth:`ecco`."""
        return cls(size, smallest=smallest, estimators=(EmbeddedOrders(),))

    @classmethod
    def step_doubling(cls, size: Time | None = None, smallest: Time | None = None) -> PID:
        """Step sizes from the difference of outputs between a step and two half steps; used like :meth:`ecco`.

        Steps with too large an error are rolled back.

        Source: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.4.
        """
        return cls(size, smallest=smallest, estimators=(StepDoubling(),), reject_above=1.0)

    @property
    def rejects(self) -> bool:
        """Whether a step may be rolled back."""
        return self.reject_above is not None

    @property
    def control(self) -> tuple[str, str]:
        """The range of step sizes and the estimators."""
        by = " and ".join(e.name for e in self.estimators)
        above = (
            "" if self.reject_above is None else f"; a step above {self.reject_above:g} is undone"
        )
        return f"{float(self.shortest):g} s to {float(self.exact_size):g} s", f"by {by}{above}"

    def with_inputs(self, degree: int) -> PID:
        """This controller for inputs that are extrapolated by polynomials of that degree."""
        return replace(self, degree=degree)

    @property
    def shortest(self) -> Fraction:
        """The smallest step size."""
        return self.exact_size / RANGE if self.smallest is None else exact(self.smallest)

    @property
    def _first(self) -> Fraction:
        return self.shortest if self.first is None else exact(self.first)

    def begin(self, base: TimeBase, start: int) -> Controlled:
        """No errors are known."""
        del base, start
        sizes = float(self.shortest), float(self.exact_size), float(self._first)
        orders = [e.order(self.degree) for e in self.estimators]
        exponents = tuple((-self.k1 / p, -self.k2 / p, -self.k3 / p) for p in orders)
        limit = inf if self.reject_above is None else self.reject_above
        of_sizes = (self.a1, self.a2) if self.a1 or self.a2 else None
        numbers = (*sizes, self.safety, self.least, self.most, limit, exponents, of_sizes)
        return self._begun(Numbers(*numbers))

    def _begun(self, numbers: Numbers, stuck: Stuck | None = None) -> Controlled:
        first, unknown = numbers.first, ((1.0, 1.0),) * len(self.estimators)
        return Controlled(numbers, first, RAMP, unknown, first, first, stuck=stuck)

    def restart(self, memory: Controlled) -> Controlled:
        """As at the start."""
        return self._begun(memory.numbers, memory.stuck)

    def propose(self, now: Instant, memory: Controlled) -> Goal:
        """The end of the next step; the estimator with the smallest proposal is its cause."""
        return _new(Goal, (_new(Instant, (now[0] + memory[1], -inf)), memory[2], NOTHING))

    def decide(
        self, memory: Controlled, now: Instant, length: float, errors: Sequence[Measured]
    ) -> tuple[Controlled, float | None]:
        """The next proposal; a shorter length if the step is rejected."""
        numbers, h, cause, before, h1, h2, was_rejected, stuck = memory
        smallest, largest, _, safety, least, most, limit, exponents, of_sizes = numbers
        # this runs at each step: calls of min, max and zip would take half of the time
        factor, limiting, largest_error, known = inf, errors[0], 0.0, []
        k, is_odd = 0, [0]
        for x1, x2, x3 in exponents:
            measured, (e2, e3) = errors[k], before[k]
            e1, k = measured[0], k + 1
            if e1 > 0.0:
                own = by_errors(safety, e1, e2, e3, x1, x2, x3, is_odd)
                if own < factor:
                    factor, limiting = own, measured
                if e1 > largest_error:
                    largest_error = e1
                known.append((e1 if e1 < inf else 1.0, e2))
            else:
                known.append((1.0, e2))
        if of_sizes is not None:
            factor *= by_sizes(h, h1, h2, *of_sizes, is_odd)
        wanted = wanted_size(h, length, within(factor, least, most))
        size = within(wanted, smallest, largest)
        if may_be_repeated(largest_error, limit, length, smallest):
            size = max(min(size, AGAIN * length), smallest)
            return memory._replace(size=size, was_rejected=True), size
        if was_rejected:
            size = min(size, max(length, smallest))
        error, name = limiting
        if size >= largest:
            cause = STEP_SIZE
        elif cause.who != (name,):
            cause = Cause(Kind.CONTROLLED, (name,))
        if stuck is not None or (wanted < smallest and error > 1.0):
            stuck = _stuck(stuck, wanted < smallest and error > 1.0, now, name, error)
        return _new(Controlled, (numbers, size, cause, known, h, h1, False, stuck)), None

    def twin(self, memory: Controlled, plan: Plan, store: ValueStore) -> PIDTwin:
        """The same in C."""
        return PIDTwin(memory.numbers, self.estimators, plan, store)

    def warnings(self, memory: Controlled) -> tuple[str, ...]:
        """A warning if the smallest step was too large for the tolerance."""
        stuck = memory.stuck
        if stuck is None or stuck.steps < MANY:
            return ()
        return (
            f"{MANY} steps or more had the smallest step size, {memory.numbers.smallest:g} s, and errors that require "
            f"smaller ones: from t = {stuck.begin:.12g} s on, by {stuck.reason}, which was {stuck.error:.3g} (1 is the "
            "tolerance). Use a smaller `smallest`, a larger tolerance, or inputs of higher order",
        )


def _stuck(
    stuck: Stuck | None, is_stuck: bool, now: Instant, reason: str, error: float
) -> Stuck | None:
    """Since when the smallest step has been too large; the first place with :data:`MANY` such steps is kept."""
    if stuck is not None and stuck.steps >= MANY:
        return stuck
    if not is_stuck:
        return None
    return Stuck(
        now.seconds if stuck is None else stuck.begin,
        1 if stuck is None else stuck.steps + 1,
        reason,
        error,
    )
