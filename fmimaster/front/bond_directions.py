"""Directions of power bonds, checked by the responses of components to changes of an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.errors import FmimasterError, Interrupted
from fmimaster.configure.settings import Settings
from fmimaster.events.event_clock import NoEventClock
from fmimaster.plan.power_bonds import PortPlan
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.results import Results
from fmimaster.steps.step_rule import FixedStep
from fmimaster.system.description import SystemDescription

SHARE = Fraction(1, 10)
"""Steps of the check, as a fraction of those of the run: only the first response counts."""

STEPS = 3

MOST_BONDS = 3
"""Most bonds of a system that is checked: each needs four short runs."""

SYMMETRY = 0.5
"""Responses to a change up and to a change down are opposite up to this part, also those of nonlinear components. Other
differences are no responses to the change."""


def reversed_bonds(
    settings: Settings, prepared: Prepared, run: Callable[..., Results]
) -> Iterator[str]:
    """A warning for each bond whose ports both contradict their declared directions.

    A component without a source of energy takes power first: a mass gets a velocity in the direction of an additional
    force, and a damper gives a force against an additional velocity. So the response of the output to a change of the
    input has the sign of power that enters, at once or after a step. Components with sources, for example controllers, can
    respond otherwise. There is a warning only if both ports do. The connections of the bonds are cut for the check; the
    steps are short, and the FMUs are instantiated anew.

    Parameters
    ----------
    settings : Settings
        Completed.
    run
        Runs settings with changes, and writes nothing.

    Source: fmimaster (docs/power-bonds.md).
    """
    bonds = prepared.plan.power_bonds
    models = [planned.model for planned in prepared.plan.instances]
    varies = all(m.capabilities.can_handle_variable_communication_step_size for m in models)
    description = prepared.description
    is_simple = not description.system.systems and description.structure is None
    if not 0 < len(bonds) <= MOST_BONDS or not varies or not is_simple:
        return
    check = _Check(settings, prepared, run)
    for bond in bonds:
        first, second = bond.ports
        if check.contradicts(first) and check.contradicts(second):
            names = " and ".join(f"'{check.component(port)}'" for port in bond.ports)
            yield (
                f"power bond '{bond.name}': both ports contradict their directions (power). A change of the input of "
                f"{names} takes power out of the component, so power and energies have the wrong signs: a coupling that "
                "creates energy seems to destroy it. Swap the directions of both ports, unless both components have "
                "sources of energy"
            )


class _Check:
    """Short runs of the system without the connections of its bonds."""

    def __init__(self, settings: Settings, prepared: Prepared, run: Callable[..., Results]) -> None:
        self._run = run
        self._plan = prepared.plan
        schedule = prepared.schedule
        size = schedule.rule.exact_size * SHARE
        ports = [port for bond in self._plan.power_bonds for port in bond.ports]
        inputs = {(self.component(port), port.input) for port in ports}
        self._settings = replace(
            settings,
            system=_without(prepared.description, inputs),
            power_bonds=(),
            bond_tolerance=None,
            accuracy=None,
            algorithm=Jacobi(),
            inputs={},
            event_clock=NoEventClock(),
            step_size=FixedStep(size),
            start_time=schedule.start,
            stop_time=schedule.start + STEPS * size,
            output_variables=[f"{self.component(port)}.{port.output}" for port in ports],
        )
        self._none: Results | None = None

    def component(self, port: PortPlan) -> str:
        """Name of the component of a port."""
        return self._plan.instances[port.instance].name

    def contradicts(self, port: PortPlan) -> bool:
        """Whether a change of the input takes power out of the component that is said to enter it, or conversely."""
        variable = self._plan.instances[port.instance].model.variable(port.input)
        assert variable is not None
        name, size = f"{self.component(port)}.{port.input}", abs(variable.nominal) or 1.0
        start = variable.start[0] if variable.start else 0.0
        usual = float(self._settings.start_values.get(name, start))
        output = f"{self.component(port)}.{port.output}"
        try:
            more, less = (
                self._run(
                    self._settings, start_values={**self._settings.start_values, name: usual + d}
                )[output]
                for d in (size, -size)
            )
            if self._none is None:
                self._none = self._run(self._settings)
            up, down = more - self._none[output], less - self._none[output]
        except Interrupted:
            raise
        except FmimasterError:
            return False  # nothing is known
        responses = (up - down)[1:]  # the first row is that of the start
        is_response = (abs(up + down)[1:] <= SYMMETRY * abs(responses)).all()
        # weight * input * output is the power that leaves
        return bool(is_response and (port.weight * responses > 0.0).all())


def _without(description: SystemDescription, inputs: set[tuple[str, str]]) -> SystemDescription:
    """The system without its bonds and the connections to these inputs."""
    system = description.system
    left = tuple(c for c in system.connections if tuple(c.end) not in inputs)
    system = replace(system, connections=left, power_bonds=())
    return replace(description, system=system)
