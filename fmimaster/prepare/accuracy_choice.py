"""The choice of the controller and the inputs of a system for a given accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.errors import OptionError
from fmimaster.configure.settings import Settings
from fmimaster.inputs.polynomial import LINEAR, MIDPOINT
from fmimaster.prepare.choice import Choice
from fmimaster.steps.estimators.embedded_orders import EmbeddedOrders
from fmimaster.steps.estimators.power_residual import PowerResidual
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.system.model import Model, Variability
from fmimaster.system.resolved import ResolvedSystem

MOST_NAMES = 4
"""Components and bonds that are named in the reason."""


def choose(settings: Settings, system: ResolvedSystem) -> Choice:
    """The controller for an accuracy, and what no controller can measure: errors of the FMUs' own steps.

    Raises
    ------
    OptionError
        If a step-size rule is given as well.
    """
    own = {c.name: c.model.capabilities.fixed_internal_step_size for c in system.components}
    sentences = (
        f"'{name}' computes with fixed steps of its own of {size:g} s (fixedInternalStepSize), whose error the estimate "
        "does not contain"
        for name, size in own.items()
        if size
    )
    return replace(_chosen(settings, system), own_steps=tuple(sentences))


def _chosen(settings: Settings, system: ResolvedSystem) -> Choice:
    """The controller, by the capabilities of the FMUs and the power bonds of the system."""
    assert settings.accuracy is not None
    given = settings.step_size
    if isinstance(given, StepRule) and not isinstance(given, FixedStep):
        raise OptionError(
            f"accuracy chooses the step-size rule, but the rule {type(given).__name__} is also given. Leave one of "
            "them out."
        )
    models = {c.name: c.model for c in system.components}
    fixed = _fixed_because(system, models, isinstance(given, FixedStep))
    if fixed:
        return Choice(settings.accuracy, None, None, 0, False, f"fixed steps, {fixed}")
    algorithm, inputs = _inputs(settings, system)
    course = settings.algorithm_used.course if algorithm is None else algorithm.course
    degree = 0 if course.is_constant or _without_polynomials(system) else course.degree
    scaled = [b.name for b in system.power_bonds if b.scale is not None]
    if scaled and len(scaled) == len(system.power_bonds):
        bonds = _several("power bond", scaled)
        reason = f"ECCO, by the residual energy of the {bonds}; {inputs}; no step is undone"
        return Choice(settings.accuracy, algorithm, PowerResidual(), degree, False, reason)
    stiff = [name for name, m in models.items() if not m.capabilities.can_get_and_set_fmu_state]
    undoes = (
        f"no step is undone, because {_several('', stiff)} cannot restore its state"
        if stiff
        else "steps are undone where it is too large, which all FMUs allow"
    )
    because = _no_bonds(system)
    reason = f"PID, by the error of extrapolated inputs, {because}; {inputs}; {undoes}"
    return Choice(settings.accuracy, algorithm, EmbeddedOrders(), degree, not stiff, reason)


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


def _inputs(settings: Settings, system: ResolvedSystem) -> tuple[Jacobi | None, str]:
    """The algorithm, None if the user gave one; and its inputs in words."""
    if settings.algorithm is not None:
        return None, "inputs as given"
    components = [system.components[i] for i in _continuous_targets(system)]
    by_updates = [c.name for c in components if not c.model.capabilities.max_input_derivative_order]
    slow = [n for n in by_updates if n not in _without_polynomials(system)]
    if slow:
        return Jacobi(MIDPOINT), (
            f"inputs held at the middle of their line, because {_several('', slow)} {_take(slow)} polynomials in "
            "intermediate updates only, which the kernel does not support"
        )
    unable = _without_polynomials(system)
    if unable:
        mean = f"but at their mean in {_several('', unable)}, which {_take(unable)} no polynomials"
        return Jacobi(LINEAR), f"inputs linear over a step, {mean}"
    return Jacobi(LINEAR), "inputs linear over a step"


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
