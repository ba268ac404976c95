"""Start, stop and step of the run of an FMU alone: those of its reference, otherwise those that it suggests."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from fmimaster.base.errors import OptionError
from fmimaster.conformance.options_file import ReferenceOptions
from fmimaster.instants.instant import exact
from fmimaster.steps.schedule import DEFAULT_STEPS, round_to_125
from fmimaster.system.model import Capabilities, DefaultExperiment

MOST_STEPS = 10_000
"""A run without a reference ends after so many steps: some FMUs suggest a stop time of 1e8 s."""

_USUAL_SPAN = Fraction(1)
"""In s, for FMUs that suggest no stop time."""


@dataclass(frozen=True)
class Times:
    """The times of a run, in s, and notes about choices."""

    start: Fraction
    stop: Fraction
    step: Fraction
    notes: tuple[str, ...] = ()


def times_of(
    experiment: DefaultExperiment,
    capabilities: Capabilities,
    options: ReferenceOptions,
    covered: tuple[float, float] | None,
) -> Times:
    """Choose the times of a run.

    Parameters
    ----------
    options
        Of the reference; without values if there is no such file.
    covered
        The first and the last time of the reference, in s; None if there is none.

    Raises
    ------
    OptionError
        If the stop time is not after the start time.
    """
    notes = []
    first, last = covered or (experiment.start_time or 0.0, experiment.stop_time)
    start = exact(first if options.start_time is None else options.start_time)
    given = last if options.stop_time is None else options.stop_time
    by_fmu = options.stop_time is None and covered is None
    if given is None or (by_fmu and not exact(given) > start):
        given = None
        notes.append(
            f"the FMU suggests no stop time after the start: {float(_USUAL_SPAN):g} s after it is used"
        )
    stop = start + _USUAL_SPAN if given is None else exact(given)
    if not stop > start:
        raise OptionError(
            f"The stop time {float(stop):g} s is not after the start time {float(start):g} s."
        )
    step = _step(experiment, capabilities, options, stop - start)
    if covered is None and (stop - start) / step > MOST_STEPS:
        notes.append(
            f"the run ends after {MOST_STEPS} steps of {float(step):g} s, before the stop time {float(stop):g} s"
        )
        stop = start + MOST_STEPS * step
    if not capabilities.can_handle_variable_communication_step_size and (stop - start) % step:
        rounded = start + (floor if covered is None else ceil)((stop - start) / step) * step
        notes.append(
            f"the stop time is {float(rounded):g} s instead of {float(stop):g} s, because all steps must have the same size"
        )
        stop = rounded
    return Times(start, stop, step, tuple(notes))


def _step(
    experiment: DefaultExperiment,
    capabilities: Capabilities,
    options: ReferenceOptions,
    span: Fraction,
) -> Fraction:
    given = (
        options.step_size
        or options.output_interval
        or experiment.step_size
        or capabilities.fixed_internal_step_size
    )
    step = round_to_125(span / DEFAULT_STEPS) if given is None else exact(given)
    return min(step, span)
