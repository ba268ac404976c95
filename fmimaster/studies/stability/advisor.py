"""Step sizes at which a coupled system is stable, computed from its FMUs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from math import inf

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FmimasterError, OptionError, SimulationError
from fmimaster.configure.settings import Settings
from fmimaster.fmu.load import Loader
from fmimaster.fmu.process_state import fmu_output_to_log
from fmimaster.prepare.preparation import prepare
from fmimaster.studies.stability.experiments import Experiments, OutOfTime
from fmimaster.studies.stability.linear_fmu import MOST_STEPS
from fmimaster.studies.stability.responses import Responses
from fmimaster.studies.stability.step_map import Spectrum, StepMap

log = logging.getLogger("fmimaster")

RANGE = 100.0
"""Range of the tried step sizes, relative to the step size of the run."""

_RATIO = 1.4
"""Ratio of a tried step size to the one before."""

_MOST_TRIED = 9
"""Steps with the smaller ratio that reach from one tried size to the next."""

_ONE = 1e-3
"""Largest distance from 1 of the spectral radius beside a limit."""

_FINE, _FINELY = 1.05, 3.0
"""Below the limit smaller steps are tried, with a smaller ratio: a range of unstable steps can be narrow."""

_MOST_COMPONENTS = 20
"""Largest number of components. The analysis of a larger system takes long, because its map has a column for each state
and output of all FMUs."""

_PRECISION = 1e-6
"""Relative distance of the largest stable step from one that is unstable."""


_RELIABLE = 0.1
"""Largest deviation from a linear FMU for which its linear model is used."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Step sizes between which a system becomes unstable.

    Attributes
    ----------
    stable : float or None
        Step size in s; all smaller tried ones are stable. None if no stable one was found.
    unstable : float or None
        The next larger tried step size in s. None if no unstable one was found.
    is_sure : bool
        Whether the spectral radius between them was confirmed to be 1. It is not if the linear models of the FMUs change
        between them, or if there is none.
    """

    stable: float | None
    unstable: float | None
    is_sure: bool = True

    @property
    def step(self) -> float | None:
        """The largest stable step in s; None if it was not found, or is not sure."""
        return self.stable if self.unstable is not None and self.is_sure else None


@dataclass(frozen=True, slots=True)
class FmuStability:
    """Results of the analysis of one FMU.

    Attributes
    ----------
    name : str
    states : int
        Number of states that are reachable from its inputs and observable in its outputs.
    deviation : float
        Relative difference of its responses to pulses of different sizes and in different steps; 0 if it is linear.
    """

    name: str
    states: int
    deviation: float


class Advisor:
    """Computes the communication step sizes at which a system is stable. A context manager.

    The FMUs are stepped alone with pulses at their inputs. Their responses give linear models, and the program of the
    run is executed on these models. The result is valid for the algorithm and the inputs of the settings, for small
    changes around one point of the run, and for communication steps of one size.

    Parameters
    ----------
    settings : Settings
    at : float, optional
        Time in s of the point. Default: the start time.
    longest : float, optional
        Longest tried step in s. Default: 100 times that of the settings, but not longer than the run.
    seconds : float, optional
        CPU time in s for all steps of FMUs; afterwards :class:`OutOfTime` is raised. Default: no limit.

    Attributes
    ----------
    name : str
        Of the system.
    algorithm : Algorithm
    size : float
        Communication step size of the settings in s; the largest one if it varies.
    start : float
        Time in s of the point.
    components : int
        Number of components.

    Raises
    ------
    InputError, ProgramError, SimulationError
        If the system cannot be simulated up to that point.
    OptionError
        If a step is not a linear map, for example with adaptive inputs.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        at: float | None = None,
        longest: float | None = None,
        seconds: float = inf,
    ) -> None:
        log.info("stability: the FMUs are stepped one by one, with pulses at their inputs")
        with Loader() as loader:
            self._prepared = prepared = prepare(settings, loader)
        self.algorithm = prepared.completed(settings).algorithm_used
        self.name, schedule = prepared.description.system.name, prepared.schedule
        self.size = size = float(schedule.rule.exact_size)
        whole = float(schedule.stop - schedule.start)
        if longest is not None and not longest > 0.0:
            raise OptionError(f"longest: {longest:g} s, expected a positive number.")
        self.longest = max(size, min(RANGE * size, whole)) if longest is None else longest
        start = float(schedule.start) if at is None else at
        needed = start + (MOST_STEPS + 1) * self.longest
        later = settings
        if needed > float(schedule.stop):  # FMUs may refuse to step beyond the stop time
            later = replace(settings, stop_time=needed)
        self._experiments = Experiments(later, at, seconds)
        self.start = self._experiments.start
        self.components = len(prepared.plan.instances)
        self._spectra: dict[float, Spectrum] = {}
        self._fmus: dict[float, tuple[FmuStability, ...]] = {}

    def __enter__(self) -> Advisor:
        return self

    def __exit__(self, *_: object) -> None:
        self._experiments.close()

    def spectrum(self, size: float) -> Spectrum:
        """The eigenvalues of a step of this size in s.

        Raises
        ------
        SimulationError
            If an FMU cannot do such steps, or no linear model fits it.
        """
        if size not in self._spectra:
            try:
                # measured anew for each size: pulses, rounding and outputs of other sizes say nothing about it
                responses = [Responses(self._experiments, i) for i in range(self.components)]
                step = StepMap(self._experiments, responses, self._prepared, size)
                self._spectra[size] = Spectrum.of(step.matrix(), size)
            except SimulationError:
                self._experiments.renew()  # an FMU that has failed cannot be stepped any more
                raise
            self._fmus[size] = tuple(
                FmuStability(fmu.responses.name, fmu.states, fmu.deviation)
                for fmu in step.models
                if fmu.responses.inputs.size
            )
        return self._spectra[size]

    def spectra(self) -> tuple[Spectrum, ...]:
        """The spectra computed so far, the smallest step first."""
        return tuple(self._spectra[size] for size in sorted(self._spectra))

    def fmus(self, size: float) -> tuple[FmuStability, ...]:
        """Results for the FMUs with inputs, for steps of this size in s."""
        self.spectrum(size)
        return self._fmus[size]

    def is_reliable(self, size: float) -> bool:
        """Whether linear models fit the FMUs for steps of this size in s."""
        return all(fmu.deviation <= _RELIABLE for fmu in self.fmus(size))

    def curve(self, limit: Limit, points: int = 60) -> tuple[Spectrum, ...]:
        """Spectra of steps around a limit, for a figure: from a tenth of it to three times it, the smallest first."""
        middle = limit.step or self.size
        for k in range(points + 1):
            with suppress(SimulationError):
                self.spectrum(middle / 10.0 * 30.0 ** (k / points))
        return tuple(s for s in self.spectra() if middle / 10.1 <= s.size <= 3.1 * middle)

    def limit(self) -> Limit:
        """Find the largest stable step. If the step of the run is stable, longer ones are tried, otherwise shorter
        ones, over the range of :data:`RANGE`.

        Raises
        ------
        SimulationError
            If the stability of the step of the run cannot be computed.
        """
        stable = self.spectrum(self.size).is_stable and self.is_reliable(self.size)
        last = self.size
        for size in self._tried(stable):
            now = self._is_stable(size)
            if now is None:  # nothing is known there
                continue
            if now != stable:
                found = self._lowest(*((last, size) if stable else (size, last)))
                return found if found.step is None else self._confirmed(found)
            last = size
        return Limit(last, None) if stable else Limit(None, last)

    def _is_stable(self, size: float) -> bool | None:
        """Whether a step of this size in s is stable; None if it cannot be known from linear models."""
        try:
            spectrum = self.spectrum(size)
        except SimulationError:
            return None
        if not self.is_reliable(size):
            return None
        return spectrum.is_stable

    def _lowest(self, stable: float, unstable: float) -> Limit:
        """The limit between two steps, or a lower limit if smaller steps are also unstable; each at least 5 % below the
        one before, and none below the range: there, rounding decides whether the radius is above 1."""
        while stable > self.size / RANGE**2:
            limit = self._between(stable, unstable)
            if limit.stable is None or not limit.is_sure:
                return limit
            middle = limit.stable / _FINELY
            tried = chain(
                _smaller(limit.stable, middle, _FINE),
                _smaller(middle, limit.stable / RANGE, _RATIO),
            )
            below = next((size for size in tried if self._is_stable(size) is False), None)
            if below is None:
                return limit
            smaller = _smaller(below, below / RANGE, _FINE)
            found = next((size for size in smaller if self._is_stable(size)), None)
            if found is None:
                return Limit(None, below)
            stable, unstable = found, below
        return Limit(None, unstable)

    def _confirmed(self, limit: Limit) -> Limit:
        """The limit, which is sure if the radius is 1 there and longer steps are unstable."""
        assert limit.stable is not None
        assert limit.unstable is not None
        ends = [self.spectrum(size).radius for size in (limit.stable, limit.unstable)]
        is_one = all(abs(radius - 1.0) < _ONE for radius in ends)
        return replace(limit, is_sure=is_one and self._is_stable(_FINE * limit.unstable) is False)

    def _tried(self, upwards: bool) -> Iterator[float]:
        size = self.size
        if upwards:
            while size < self.longest:
                size = min(_RATIO * size, self.longest)
                yield size
        else:
            while size > self.size / RANGE:
                size /= _RATIO
                yield size

    def _between(self, stable: float, unstable: float) -> Limit:
        """Narrow an interval down to the precision, first by where the radius should be 1."""
        from scipy.optimize import root_scalar  # slow to import

        def growth(size: float) -> float:
            return self.spectrum(size).growth

        if self._is_stable(unstable) is None:  # no linear model there: one from which it is known
            tried = (stable * _FINE**k for k in range(1, _MOST_TRIED))
            first = next((size for size in tried if not self._is_stable(size)), unstable)
            if self._is_stable(first) is None:
                return Limit(stable, first, is_sure=False)
            stable, unstable = first / _FINE, first
        try:
            guess: float = root_scalar(growth, bracket=(stable, unstable), rtol=_PRECISION).root
        except SimulationError:
            return Limit(stable, unstable, is_sure=False)
        near = _PRECISION / 2 * guess
        for size in (guess - near, guess + near):
            if stable < size < unstable:
                stable, unstable = (size, unstable) if self._is_stable(size) else (stable, size)
        while unstable - stable > _PRECISION * unstable:
            middle = (stable + unstable) / 2
            if self._is_stable(middle):
                stable = middle
            else:
                unstable = middle
        return Limit(stable, unstable)


def _smaller(size: float, least: float, ratio: float) -> Iterator[float]:
    """Sizes below the first, down to the least."""
    while (size := size / ratio) > least:
        yield size


def largest_stable_step(settings: Settings, seconds: float = inf) -> float | None:
    """The largest communication step in s at which a system is stable near its start; None if it is not sure.

    It is not sure if an FMU fails or is far from linear there, if no unstable step was found, if the time is over, or if
    there are more than 20 components, because the analysis would take long.

    Parameters
    ----------
    settings : Settings
    seconds : float, optional
        CPU time in s for the analysis.

    See Also
    --------
    Advisor : gives more results.
    """
    try:
        with fmu_output_to_log(), Advisor(settings, seconds=seconds) as advisor:
            return None if advisor.components > _MOST_COMPONENTS else advisor.limit().step
    except (FmimasterError, OutOfTime):
        return None
