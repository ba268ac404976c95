"""Error budget: the error of each connection in its unit, and its effect on the target component."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.front.simulation import Simulation
from fmimaster.plan.plan import Plan
from fmimaster.program.signals import can_be_measured, error_name
from fmimaster.results.results import Results
from fmimaster.studies.optimization.alone import Alone
from fmimaster.studies.optimization.runs import grid
from fmimaster.studies.optimization.trial import rms
from fmimaster.system.model import Variable
from fmimaster.system.resolved import Link

Array = NDArray[np.float64]

UNDECLARED = 1.0
"""The nominal value of a variable that declares none."""


@dataclass(frozen=True, slots=True)
class InputEffect:
    """Effect of the error of an input on an output of its component alone."""

    output: str
    """``"component.output"``."""
    unit: str
    rms: float
    """Root mean square over time, in that unit."""
    scale: float
    """The nominal value; the largest absolute value, if none is declared."""

    @property
    def share(self) -> float:
        """Of the scale; 0 if the output is 0 always."""
        return self.rms / self.scale if self.scale else 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """The error of one connection."""

    source: str
    """``"component.output"``."""
    target: str
    """``"component.input"``."""
    unit: str
    """Of the input."""
    rms: float
    """Root mean square over time of the error of the input."""
    largest: float
    """Largest root mean square over one step."""
    time: float
    """End of that step in s."""
    scale: float
    """The nominal value of the input; its largest absolute value, if none is declared."""
    effect: InputEffect | None = None
    """Effect on the output of the component with the largest share; None if it is not known."""

    @property
    def share(self) -> float:
        """Of the scale; 0 if the input is 0 always."""
        return self.rms / self.scale if self.scale else 0.0


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The errors of all connections that can be measured, those with the largest effect first.

    Attributes
    ----------
    connections : tuple of Share
    unmeasured : tuple of str
        Inputs without a measured error, because they or their sources are not Float64 scalars.
    notes : tuple of str
        Reasons for unknown effects.
    """

    connections: tuple[Share, ...]
    unmeasured: tuple[str, ...]
    notes: tuple[str, ...]


def error_budget(simulation: Simulation) -> ErrorBudget:
    """Simulate a system, and measure the error of each connection and its effect on the target component.

    The effect is measured by two runs of the component alone with the inputs of the system's run, one of them with the
    input held over each step; it is scaled by the error of the input in the run. It is the part of the error of an
    output that this input causes directly, without feedback through other components.

    Parameters
    ----------
    Source: fmimaster; docs/trigger-sequence.md ("propagated weights").
    """
    results = replace(
        simulation, extrapolation_errors=True, output_variables=(), output_interval=None
    ).run()
    prepared = simulation.prepare()
    plan = prepared.plan
    measured = [k for k in plan.links if can_be_measured(k)]
    found = {(k.target, k.input.name): _connection(plan, k, results) for k in measured}
    unmeasured = sorted(_end(plan, k.target, k.input) for k in plan.links if k not in measured)
    notes: list[str] = []
    if not prepared.schedule.rule.is_fixed:
        notes.append("Effects on outputs are measured with a fixed step only (--step-rule grid).")
    else:
        _add_effects(simulation, results, found, notes)
    ordered = sorted(found.values(), key=lambda c: (-_importance(c), c.target))
    return ErrorBudget(tuple(ordered), tuple(unmeasured), tuple(notes))


def _importance(c: Share) -> float:
    return c.share if c.effect is None else c.effect.share


def _end(plan: Plan, i: int, variable: Variable) -> str:
    return f"{plan.instances[i].name}.{variable.name}"


def _scale(variable: Variable, values: Array) -> float:
    """The nominal value if one is declared, otherwise the largest absolute value."""
    nominal = abs(variable.nominal or UNDECLARED)
    return nominal if nominal != UNDECLARED else float(np.max(np.abs(values), initial=0.0))


def _connection(plan: Plan, link: Link, results: Results) -> Share:
    target, source = _end(plan, link.target, link.input), _end(plan, link.source, link.output)
    errors = results[error_name(plan.instances[link.target].name, link.input.name)]
    lengths = np.diff(results.time, prepend=results.time[0])
    duration = float(lengths.sum())
    worst = int(np.argmax(errors))
    signal = link.transformation.factor * results[source] + link.transformation.offset
    return Share(
        source,
        target,
        link.input.unit.name if link.input.unit is not None else "",
        sqrt(float(errors**2 @ lengths) / duration) if duration else 0.0,
        float(errors[worst]),
        float(results.time[worst]),
        _scale(link.input, signal),
    )


def _add_effects(
    simulation: Simulation,
    results: Results,
    found: dict[tuple[int, str], Share],
    notes: list[str],
) -> None:
    """Measure the effect of each connection on the outputs of its component."""
    prepared = simulation.prepare()
    schedule, plan = prepared.schedule, prepared.plan
    times = grid(schedule.start, schedule.stop, schedule.rule.exact_size)
    rows = np.searchsorted(results.time, times, "right") - 1
    recorded = Results(time=times, columns={n: results[n][rows] for n in sorted(results.names)})
    for i in sorted({i for i, _ in found}, key=lambda i: plan.instances[i].name):
        name = plan.instances[i].name
        with tempfile.TemporaryDirectory(prefix="fmimaster-") as folder:
            try:
                component = Alone(simulation, prepared, i, recorded, Path(folder))
                for (target, input_), connection in found.items():
                    if target == i:
                        effect = _effect(component, input_, connection, plan, i)
                        found[target, input_] = replace(connection, effect=effect)
            except OptionError as error:
                notes.append(f"The effect of inputs of '{name}' is not known: {error}")


def _effect(
    component: Alone, input_: str, connection: Share, plan: Plan, i: int
) -> InputEffect | None:
    """The effect on the output with the largest effect of the input."""
    held = sqrt(float(np.mean(np.diff(component.recorded_input(input_)) ** 2)) / 3.0)
    if held == 0.0:
        return None
    part = connection.rms / held
    responses = part * rms(component.run(stale=input_) - component.fresh)
    effects = list(_effects(component, responses, plan, i))
    return max(effects, key=lambda e: (e.share, e.output), default=None)


def _effects(component: Alone, responses: Array, plan: Plan, i: int) -> Iterator[InputEffect]:
    values = component.recorded_outputs()
    for k, output in enumerate(component.outputs):
        variable = plan.instances[i].model.variable(output.removeprefix(f"{component.name}."))
        assert variable is not None
        unit = variable.unit.name if variable.unit is not None else ""
        yield InputEffect(output, unit, float(responses[k]), _scale(variable, values[:, k]))
