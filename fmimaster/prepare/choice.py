"""What a run uses for settings that are not given: the method that the FMUs allow, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fmimaster.algorithms.gauss_seidel import HELD, LINES
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.configure.settings import Settings
from fmimaster.inputs.polynomial import ADAPTIVE, LINEAR
from fmimaster.prepare.prepared import ALONE, NOTHING, ChosenSettings
from fmimaster.steps.step_rule import StepRule, Time
from fmimaster.system.declarations import Scope
from fmimaster.system.resolved import ResolvedSystem

if TYPE_CHECKING:
    from fmimaster.prepare.event_choice import FittingRow

COUPLING = "coupling: Gauss-Seidel with inputs on lines, because components are connected (plain: --algorithm Jacobi)"
"""Inputs follow lines: interpolated where the source has stepped, else extrapolated. With the right steps, 93 of 94 systems
without events have an error below 1 %, and 42 with held inputs of Jacobi (docs/unasked.md). The loop over FMUs that take
less than a microsecond for a step needs 1.2 (FMI 2.0) to 1.5 times (FMI 3.0) as long."""

HELD_BETWEEN_DISCRETE = (
    "coupling: Gauss-Seidel with held inputs, because components are connected by discrete outputs (plain: --algorithm "
    "Jacobi)"
)

NO_HISTORY = (
    "inputs that are extrapolated are held in the first step: the file of FMU states has no values of earlier steps, so "
    "results differ a little from those of one run"
)

TOGETHER = ChosenSettings(
    {"algorithm": Jacobi()},
    (
        "coupling: Jacobi with held inputs, because FMUs execute their events themselves, and an event that they share "
        "must have the same values in all of them",
    ),
)
"""Two masses that collide, steps of 10 ms: right to 0.08 m after 20 s; with lines by Gauss-Seidel the collisions have other
velocities in one mass than in the other, and with smaller steps nothing becomes better (error 3 m)."""


EXTRAPOLATED = ChosenSettings(
    {"algorithm": Jacobi(LINEAR)},
    (
        "coupling: Jacobi with inputs on lines, because inputs are given for some connections, and Gauss-Seidel would "
        "interpolate those whose source has stepped",
    ),
    plainer=({"algorithm": Jacobi()},),
)


def choose(settings: Settings, system: ResolvedSystem) -> ChosenSettings:
    """Choose what the settings leave open.

    Parameters
    ----------
    settings : Settings
        As given. What is given there is never changed.
    system : ResolvedSystem
        With its loops, as far as they are known.
    """
    rows = _rows(settings, system)
    if not rows:
        return _coupling(settings, system)
    first = rows[0]
    coupling = _coupling(replace(settings, **first.settings), system)
    return replace(
        coupling,
        settings={**first.settings, **coupling.settings},
        notes=(str(first), *coupling.notes),
        instead=tuple(row.settings for row in rows[1:]),
    )


def _rows(settings: Settings, system: ResolvedSystem) -> Sequence[FittingRow]:
    """How events are treated, the best way first; empty if the settings say it, or there are none."""
    models = [c.model for c in system.components if not c.is_input]
    has_any = any(m.events or m.capabilities.has_event_mode for m in models)
    if settings.event_clock is None and (
        has_any or any(not k.output.is_continuous for k in system.links)
    ):
        from fmimaster.prepare.event_choice import choose_events  # few systems need it

        return choose_events(settings, system)
    return ()


def _coupling(settings: Settings, system: ResolvedSystem) -> ChosenSettings:
    """The algorithm with its inputs."""
    if settings.algorithm is not None:
        return NOTHING
    clock = settings.clock_used
    if clock is not None and clock.fires:
        return ChosenSettings({"algorithm": Jacobi(ADAPTIVE)})
    if clock is not None or _shares_events(system):
        return TOGETHER
    if not _uses_lines(settings.step_size, system):
        return ALONE
    if settings.inputs:
        return EXTRAPOLATED
    has_lines = any(k.output.is_continuous for k in system.links)
    note = COUPLING if has_lines else HELD_BETWEEN_DISCRETE
    return ChosenSettings(
        {"algorithm": LINES},
        (note,) if settings.initial_fmu_state is None else (note, NO_HISTORY),
        plainer=({"algorithm": HELD}, {"algorithm": Jacobi()}),
    )


def _shares_events(system: ResolvedSystem) -> bool:
    """Whether an event occurs in several components, by the description of the system or by what an FMU says."""
    models = (component.model for component in system.components)
    return bool(system.shared_events) or any(
        event.scope is Scope.SHARED for model in models for event in model.events
    )


def _uses_lines(step_size: StepRule[Any] | Time | None, system: ResolvedSystem) -> bool:
    """Whether components are connected, and step together, and nothing is estimated from held inputs."""
    if isinstance(step_size, StepRule) and (step_size.estimators or step_size.holds_inputs):
        return False
    return any(not system.components[k.source].is_input for k in system.links)
