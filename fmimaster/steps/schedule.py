"""Start, stop and step of a run: exact numbers, and the origin of each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from math import ceil, floor, gcd, inf, lcm, log10, ulp
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.instants.grid import nearest
from fmimaster.instants.instant import LARGEST, Instant, TimeBase, exact
from fmimaster.steps.step_rule import FixedStep, StepRule, Time
from fmimaster.system.declarations import Experiment
from fmimaster.system.model import Model

MANY_STEPS = 10_000_000
"""Number of steps above which there is a note: some FMUs suggest a stop time of 1e8 s."""

log = logging.getLogger("fmimaster")

DEFAULT_STEPS = 500
"""Approximate number of steps if no step size is given."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of a run, in s."""

    start: Fraction
    stop: Fraction
    rule: StepRule[Any]
    """With a size."""
    points: tuple[Fraction, ...]
    """Communication points besides those of the rule; for steps of different sizes also points of the grid."""
    notes: tuple[str, ...]
    """The origin of times that the user did not give."""
    intervals: tuple[Fraction, ...] = ()
    """Intervals and shifts of clocks, which are integers in the same base."""
    is_chosen: bool = False
    """Whether the step size is neither given nor suggested."""
    is_suggested: bool = False
    """Whether it is the default of an FMU, which can do other steps, and does not know to what it is connected."""
    base: TimeBase = field(init=False)
    """Resolution in which all of them are integers."""

    def __post_init__(self) -> None:
        times = (self.start, self.stop, *self.rule.sizes, *self.points, *self.intervals)
        object.__setattr__(self, "base", TimeBase.of(times))

    def expected_rows(self, output_interval: float | None) -> int:
        """How many rows a run without events has, at least one for each interval that is recorded."""
        interval = max(self.rule.exact_size, exact(output_interval or 0))
        return ceil((self.stop - self.start) / interval) + len(self.points) + 1

    def instant(self, time: Fraction) -> Instant:
        """One of these times as an instant."""
        return self.base.instant(self.base.ticks(time))

    def time_of(self, instant: Instant) -> Fraction:
        """The exact time of an instant."""
        if instant.ticks == -inf:
            return exact(instant.seconds)
        return Fraction(instant.ticks) / self.base.resolution

    def met(self, seconds: float) -> Fraction:
        """The communication point of a jump: its own time, or the next grid point if steps cannot vary."""
        time = nearest(exact(seconds), self.start, self.rule.exact_size)
        steps = (time - self.start) / self.rule.exact_size
        return time if self.points else self.start + ceil(steps) * self.rule.exact_size

    def on_grid(self, seconds: float) -> float:
        """The grid point that equals a given time up to rounding; if there is none, the time itself."""
        return float(nearest(exact(seconds), self.start, self.rule.exact_size))


def make_schedule(
    models: Mapping[str, Model],
    described: Experiment,
    *,
    start_time: Time | None = None,
    stop_time: Time | None = None,
    step_size: StepRule[Any] | Time | None = None,
    usual_rule: Callable[[Time | None], StepRule[Any]] = FixedStep,
    points: Iterable[float] = (),
    needs_stop_time: bool = True,
) -> Schedule:
    """Determine the times of a run: first from the user, then from the system description, then from the FMUs.

    Parameters
    ----------
    models
        Full component name → model.
    usual_rule
        The rule for a step size that is only a number.
    points
        Times in s at which a communication point is required. Times outside of the run are ignored, and all of them if
        an FMU cannot vary its step size.
    needs_stop_time : bool
        Whether it is an error if no stop time is given. If not, one after 500 steps is assumed, and a note says so.

    Raises
    ------
    OptionError
        If no stop time is given and one is needed, or the times contradict each other or the FMUs.
    """
    notes: list[str] = []
    starts = start_time, described.start_time, _said(models, "start_time"), 0.0
    first = exact(next(start for start in starts if start is not None))
    given = _stop(models, described, stop_time, float(first), notes)
    if given is None and needs_stop_time:
        raise OptionError(
            "No stop time is given, and neither the system nor an FMU gives one after the start time. Give one: "
            "stop_time (--stop-time)."
        )
    stop = first + 1 if given is None else exact(given)
    if float(stop) <= float(first):
        raise OptionError(
            f"The stop time {float(stop):g} s is not after the start time {float(first):g} s. Give a later stop time."
        )
    if stop - first > LARGEST:
        raise OptionError(
            f"From the start time {float(first):g} s to the stop time {float(stop):g} s there are more seconds than "
            "a double can hold. Give times that are closer together."
        )
    rule = step_size if isinstance(step_size, StepRule) else usual_rule(step_size)
    intervals = tuple(_intervals(models.values()))
    is_chosen = is_suggested = False

    def usual() -> Time:
        nonlocal is_chosen, is_suggested
        if described.step_size is not None and exact(described.step_size) < stop - first:
            return described.step_size
        size = _suggested(models, stop - first, notes)
        is_chosen, is_suggested = size is None, size is not None and not _of_fixed(models)
        return _usual_size(stop - first, intervals, notes) if size is None else size

    rule = rule.completed(models, usual)
    step = rule.exact_size
    if given is None:
        stop = first + DEFAULT_STEPS * _common_multiple(rule.sizes)
        notes.append(
            f"no stop time is given: this is the plan of a run until {float(stop):g} s; a run needs stop_time "
            "(--stop-time)"
        )
    _refuse_short(rule.shortest, first, stop)
    for size in rule.sizes:
        stop = nearest(stop, first, size)
    _refuse_unfit(rule, first, stop, [n for n, m in models.items() if not _varies(m)])
    if (stop - first) / step > MANY_STEPS:
        many = float((stop - first) / step)
        notes.append(f"{many:.3g} steps will be done: check stop time and step size")
        log.warning("%.3g steps will be done: check stop time and step size.", many)
    notes += _internal_steps(models, rule)
    near = (nearest(exact(p), first, step) for p in points)
    inside = {p for p in near if first < p < stop and (rule.varies or (p - first) % step)}
    if inside and (cause := _why_no_points(models, rule)):
        notes.append(
            f"{len(inside)} jumps of the input take effect at the next communication point only, because {cause}"
        )
        inside = set()
    return Schedule(
        first,
        stop,
        rule,
        tuple(sorted(inside)),
        tuple(notes),
        intervals,
        is_chosen=is_chosen,
        is_suggested=is_suggested,
    )


def _intervals(models: Iterable[Model]) -> Iterator[Fraction]:
    """Intervals and shifts of the clocks of some FMUs, as far as they are declared."""
    for model in models:
        for variable in model.variables:
            if variable.clock is not None:
                yield variable.clock.shift
                if variable.clock.interval is not None:
                    yield variable.clock.interval


def _why_no_points(models: Mapping[str, Model], rule: StepRule[Any]) -> str:
    """Why no communication point can be inserted into the grid; empty if it can."""
    if len(rule.sizes) > 1:
        return "the components have step sizes of their own"
    fixed = next((n for n, m in models.items() if not _varies(m)), None)
    return "" if fixed is None else f"'{fixed}' cannot vary its step size"


def _internal_steps(models: Mapping[str, Model], rule: StepRule[Any]) -> Iterator[str]:
    """FMUs whose internal steps do not end at the communication points."""
    for name, model in models.items():
        own = model.capabilities.fixed_internal_step_size
        if not own:
            continue
        step, size = rule.size_of(name), exact(own)
        if rule.varies or nearest(step, Fraction(0), size) % size:
            what = "steps of different sizes" if rule.varies else f"the step size {float(step):g} s"
            are = "are not multiples" if rule.varies else "is not a multiple"
            remedy = f". A step size of its own avoids that: MultiRate (--component-step-size {name} {own:g})"
            yield (
                f"{what} {are} of the fixed internal step size {own:g} s of '{name}' (fixedInternalStepSize): its values "
                f"can belong to another time, by up to one internal step{'' if rule.varies else remedy}"
            )


def _refuse_short(step: Fraction, first: Fraction, stop: Fraction) -> None:
    """Refuse a step size below the resolution of doubles."""
    if float(step) < 4 * max(ulp(float(first)), ulp(float(stop))):
        raise OptionError(
            f"The step size {float(step):g} s is too small: near t = {float(stop):g} s FMUs cannot tell two "
            "such times apart. Give a larger step size."
        )


def _refuse_unfit(
    rule: StepRule[Any], first: Fraction, stop: Fraction, fixed: Sequence[str]
) -> None:
    """Refuse steps that do not fit the span, or FMUs whose step size is fixed."""
    step = max(rule.sizes)
    if fixed and (rule.varies or rule.rejects):
        raise OptionError(
            f"Steps of different sizes are requested, but '{fixed[0]}' cannot vary its step size "
            "(canHandleVariableCommunicationStepSize is false). Use a fixed step."
        )
    if step > stop - first:
        raise OptionError(
            f"The step size {float(step):g} s is larger than the whole span of {float(stop - first):g} s. "
            "Give a smaller step size or a later stop time."
        )
    for name in fixed:
        size = rule.size_of(name)
        if (stop - first) % size:
            raise OptionError(
                f"The span of {float(stop - first):g} s is not a multiple of the step size {float(size):g} s, but "
                f"'{name}' cannot take a shorter last step (canHandleVariableCommunicationStepSize is false). Choose a "
                "step size that divides the span."
            )


def _common_multiple(sizes: Iterable[Fraction]) -> Fraction:
    """The smallest span in s that is a multiple of all step sizes."""
    sizes = list(sizes)
    return Fraction(lcm(*(s.numerator for s in sizes)), gcd(*(s.denominator for s in sizes)))


def _said(models: Mapping[str, Model], what: str) -> float | None:
    """The common value of all FMUs that have one."""
    said = {getattr(m.default_experiment, what) for m in models.values()} - {None}
    return said.pop() if len(said) == 1 else None


def _stop(
    models: Mapping[str, Model],
    described: Experiment,
    given: Time | None,
    start: float,
    notes: list[str],
) -> Time | None:
    """The stop time of the user, the system or an FMU; None if there is none."""
    if given is not None:
        return given
    if described.stop_time is not None:
        return described.stop_time
    said = {n: m.default_experiment.stop_time for n, m in models.items()}
    stops = {n: t for n, t in said.items() if t is not None and t > start}
    if not stops:
        return None
    name = min(stops, key=stops.__getitem__)
    least, most = stops[name], max(stops.values())
    others = (
        "" if least == most else f", the smallest that an FMU suggests; the largest is {most:g} s"
    )
    notes.append(f"stop time {least:g} s from the default experiment of '{name}'{others}")
    return least


def _suggested(models: Mapping[str, Model], span: Fraction, notes: list[str]) -> Time | None:
    """The smallest step size that an FMU suggests; None without one that is shorter than the run."""
    said = {
        n: m.default_experiment.step_size or m.capabilities.fixed_internal_step_size
        for n, m in models.items()
    }
    sizes = {n: s for n, s in said.items() if s}
    if not sizes:
        return None
    fixed = {n: s for n, s in _of_fixed(models).items() if exact(s) < span}
    if fixed and (shorter := min(sizes.values())) < min(fixed.values()):
        name = min(fixed, key=fixed.__getitem__)
        notes.append(
            f"step size {fixed[name]:g} s from '{name}', which may not do other steps "
            f"(canHandleVariableCommunicationStepSize is false); another FMU suggests {shorter:g} s: sub-steps "
            "(--sub-steps) do not need shorter communication steps"
        )
        return fixed[name]
    name = min(sizes, key=sizes.__getitem__)
    if exact(sizes[name]) >= span:
        notes.append(
            f"'{name}' suggests the step size {sizes[name]:g} s, which is the whole run: it is not used"
        )
        return None
    notes.append(f"step size {sizes[name]:g} s from '{name}', the smallest that an FMU suggests")
    return sizes[name]


def _usual_size(span: Fraction, intervals: Sequence[Fraction], notes: list[str]) -> Fraction:
    """For :data:`DEFAULT_STEPS` steps, but no step that is longer than the interval of a clock."""
    step = round_to_125(min(span / DEFAULT_STEPS, *(i for i in intervals if i > 0), span))
    notes.append(f"step size {float(step):g} s, because none is given: {ceil(span / step)} steps")
    return step


def round_to_125(value: Fraction) -> Fraction:
    """The largest of 1, 2, 5 times a power of ten that is not above the value, for steps that end at round times."""
    power = Fraction(10) ** floor(log10(value.numerator) - log10(value.denominator))
    # a half and ten: the logarithm of a number just below or above a power of ten may be rounded to it
    return max(power * k for k in (Fraction(1, 2), 1, 2, 5, 10) if power * k <= value)


def _of_fixed(models: Mapping[str, Model]) -> dict[str, float]:
    """Names of FMUs that suggest a step size, and may not do other steps."""
    said = {n: m.default_experiment.step_size for n, m in models.items() if not _varies(m)}
    return {n: s for n, s in said.items() if s}


def _varies(model: Model) -> bool:
    return model.capabilities.can_handle_variable_communication_step_size
