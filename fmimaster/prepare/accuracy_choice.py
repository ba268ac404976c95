"""What is chosen for a given accuracy: the controller, its tolerances and the inputs, as a value with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.gauss_seidel import HELD, LINES
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.configure.named import setting_text
from fmimaster.configure.settings import Settings
from fmimaster.steps.doubling_errors import PowerResidual
from fmimaster.steps.pid import PID
from fmimaster.steps.prediction_errors import EmbeddedOrders
from fmimaster.steps.schedule import Schedule
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.system.model import Model, Variability
from fmimaster.system.resolved import ResolvedSystem

BOND_TOLERANCE = 1e-2
"""Relative tolerance of power bonds in the first run, as a fraction of the accuracy: this run must be cheap, not
accurate."""

MORE = 10
"""Default ratio of the largest step to the usual step size; the controller finds suitable steps."""

LEAST_STEPS = 50
"""Default limit of the largest step, as a fraction of the run."""

REJECTED = 2.0
"""An error of extrapolation that is larger by this factor than tolerated undoes the step, where all FMUs can."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A step-size rule with its inputs, and the reason for it.

    Its steps can be shortened by a factor: the tolerances are reduced until the controller proposes steps shorter by
    that factor, if its error grows with the assumed power of the step size.
    """

    accuracy: float
    algorithm: Algorithm | None
    """None if another part of the settings decides."""
    estimator: PowerResidual | EmbeddedOrders | None
    """None for steps that no error controls."""
    degree: int
    """Degree of the extrapolation of inputs that all FMUs accept."""
    rejects: bool
    reason: str
    own_steps: tuple[str, ...] = ()
    """About FMUs that declare fixed steps of their own, as sentences."""
    rule: StepRule[Any] = FixedStep()
    """The step-size rule without an estimator: its size is replaced."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the events, which were chosen for the system."""
    notes: tuple[str, ...] = ()
    """What they are, and why."""

    def __str__(self) -> str:
        return f"accuracy {self.accuracy:g}: {self.reason}"

    def largest(self, schedule: Schedule) -> Fraction:
        """The largest step size of the first run in s, if the user gives none: more than the usual one if steps vary."""
        size = schedule.rule.exact_size
        if self.estimator is None:
            return size
        return max(size, min(MORE * size, (schedule.stop - schedule.start) / LEAST_STEPS))

    def changes(self, size: Fraction, factor: float = 1.0) -> dict[str, Any]:
        """The settings of a run with this choice, as far as they differ from those that the user gave.

        Parameters
        ----------
        size : Fraction
            Largest step size of the first run in s.
        factor : float, at most 1
            Ratio of the steps to those of the first run.
        """
        found = {**self.kept, "accuracy": None, "step_size": self._rule(size, factor)}
        if self.algorithm is not None:
            found["algorithm"] = self.algorithm
        if isinstance(self.estimator, PowerResidual):
            tolerance = BOND_TOLERANCE * self.accuracy * self._shrunk(self.estimator, factor)
            found["bond_tolerance"] = tolerance
        return found

    def _rule(self, size: Fraction, factor: float) -> StepRule[Any]:
        if self.estimator is None:
            # a few digits: sums of steps must reach the stop time exactly
            return replace(self.rule, size=size / max(1, round(1.0 / factor)))
        estimator: PowerResidual | EmbeddedOrders = self.estimator
        if isinstance(estimator, EmbeddedOrders):
            tolerance = self.accuracy * self._shrunk(estimator, factor)
            estimator = replace(estimator, tolerance=tolerance)
        return PID(
            f"{float(size) * factor:.6g}",
            estimators=(estimator,),
            reject_above=REJECTED if self.rejects else None,
        )

    def held(self) -> Choice | None:
        """The same without extrapolated inputs, for systems in which these grow without bound; None if they are given."""
        if self.algorithm != LINES:
            return None
        reason = f"{self.reason}; inputs are held, because outputs grow without bound with inputs linear over a step"
        return replace(self, algorithm=HELD, degree=0, reason=reason)

    def _shrunk(self, estimator: PowerResidual | EmbeddedOrders, factor: float) -> float:
        """Factor of a tolerance for steps that are shorter by a factor."""
        return float(factor ** estimator.order(self.degree))


MOST_NAMES = 4
"""Components and bonds that are named in the reason."""


def choose(
    settings: Settings,
    system: ResolvedSystem,
    rule: StepRule[Any],
    chosen: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> Choice:
    """The controller for an accuracy, and what no controller can measure: errors of the FMUs' own steps.

    Parameters
    ----------
    settings : Settings
        As given.
    rule : StepRule
        The rule of a run without an accuracy.
    chosen, notes
        Settings that were chosen for such a run, and the reasons. The event clock stays, and its algorithm with it.

    Raises
    ------
    OptionError
        If a step-size rule is given as well.
    """
    assert settings.accuracy is not None
    given = settings.step_size
    if isinstance(given, StepRule) and not given.is_fixed:
        raise OptionError(
            f"accuracy chooses the step-size rule, but the rule {type(given).__name__} is also given. Leave one of "
            "them out."
        )
    completed = replace(settings, **chosen)
    finds_events = completed.clock_used is not None or rule.watches_discrete_outputs
    of_events = {n: v for n, v in chosen.items() if finds_events or n != "algorithm"}
    of_events.pop("step_size", None)
    found = Choice(
        settings.accuracy,
        algorithm=None,
        estimator=None,
        degree=0,
        rejects=False,
        reason="",
        own_steps=tuple(_own_steps(system)),
        rule=rule,
        kept=of_events,
        notes=tuple(notes) if finds_events else (),
    )
    if finds_events:
        clock = completed.clock_used
        by = (
            setting_text(rule)
            if clock is None
            else f"{setting_text(rule)} with {setting_text(clock)}"
        )
        return replace(found, reason=f"steps by {by}, which finds the events, and is not changed")
    models = {c.name: c.model for c in system.components}
    algorithm, inputs = _inputs(settings, system)
    fixed = _fixed_because(system, models, isinstance(given, StepRule))
    if fixed and chosen.get("algorithm") != LINES:
        return replace(found, reason=f"fixed steps, {fixed}")
    if fixed:
        return replace(found, algorithm=LINES, reason=f"fixed steps, {fixed}; {inputs}")
    course = settings.algorithm_used.course if algorithm is None else algorithm.course
    degree = 0 if course.is_constant or _without_polynomials(system) else course.degree
    found = replace(found, algorithm=algorithm, degree=degree)
    scaled = [b.name for b in system.power_bonds if b.scale is not None]
    if scaled and len(scaled) == len(system.power_bonds):
        bonds = _several("power bond", scaled)
        reason = f"ECCO, by the residual energy of the {bonds}; {inputs}; no step is undone"
        return replace(found, estimator=PowerResidual(), reason=reason)
    stiff = [name for name, m in models.items() if not m.capabilities.can_get_and_set_fmu_state]
    undoes = (
        f"no step is undone, because {_several('', stiff)} cannot restore its state"
        if stiff
        else "steps are undone where it is too large, which all FMUs allow"
    )
    because = _no_bonds(system)
    reason = f"PID, by the error of extrapolated inputs, {because}; {inputs}; {undoes}"
    return replace(found, estimator=EmbeddedOrders(), rejects=not stiff, reason=reason)


def _own_steps(system: ResolvedSystem) -> Iterator[str]:
    """Errors of FMUs' own steps, which no controller measures."""
    for component in system.components:
        size = component.model.capabilities.fixed_internal_step_size
        if size:
            yield (
                f"'{component.name}' computes with fixed steps of its own of {size:g} s (fixedInternalStepSize), whose "
                "error the estimate does not contain"
            )


def _fixed_because(system: ResolvedSystem, models: dict[str, Model], is_given: bool) -> str:
    """The reason why no controller can be used; empty if one can."""
    unable = [
        name
        for name, m in models.items()
        if not m.capabilities.can_handle_variable_communication_step_size
    ]
    if unable:
        return f"because {_several('', unable)} cannot vary its step size"
    if is_given:
        return "as given"
    if not _continuous_targets(system):
        return "because no continuous output feeds another component"
    return ""


def _continuous_targets(system: ResolvedSystem) -> list[int]:
    """Indices of the components with inputs that are connected to continuous outputs."""
    fed = {n.target for n in system.links if n.output.variability is Variability.CONTINUOUS}
    return sorted(fed)


def _without_polynomials(system: ResolvedSystem) -> list[str]:
    """Names of the components that accept no polynomials of their inputs."""
    components = [system.components[i] for i in _continuous_targets(system)]
    return [c.name for c in components if not c.model.takes_polynomials]


def _inputs(settings: Settings, system: ResolvedSystem) -> tuple[Algorithm | None, str]:
    """The algorithm, None if the user gave one; and its inputs in words."""
    if settings.algorithm is not None:
        return None, "inputs as given"
    found = "Gauss-Seidel with inputs linear over a step"
    if unable := _without_polynomials(system):
        found += (
            f", but at their mean in {_several('', unable)}, which {_take(unable)} no polynomials"
        )
    return LINES, found


def _no_bonds(system: ResolvedSystem) -> str:
    without = [b.name for b in system.power_bonds if b.scale is None]
    if without:
        return f"because {_several('power bond', without)} has no energy scale"
    return "because there are no power bonds"


def _take(names: Sequence[str]) -> str:
    return "take" if len(names) > 1 else "takes"


def _several(what: str, names: Iterable[str]) -> str:
    """Names in alphabetical order, as words."""
    listed = sorted(names)
    shown = " and ".join(f"'{n}'" for n in listed[:MOST_NAMES])
    more = len(listed) - MOST_NAMES
    plural = "s" if what and len(listed) > 1 else ""
    return f"{what}{plural} {shown}".strip() + (f" and {more} more" if more > 0 else "")
