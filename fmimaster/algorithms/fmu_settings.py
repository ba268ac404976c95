"""Parameters of FMUs that depend on the variant of the algorithm: policy at events, and form of inputs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fmimaster.base.errors import OptionError
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import Policy, settings
from fmimaster.program.emitter import Emitter
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Program
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType, Initial
from fmimaster.system.states import State

_REASONS = {
    Policy.EXECUTE: "it executes its events itself",
    Policy.ANNOUNCE: "it stops at its events, and the importer fires them",
    Policy.IGNORE: "it steps over its events, and the importer fires them",
}
_POLYNOMIALS = "its inputs are polynomials"


@dataclass(frozen=True, slots=True)
class FmuSettings(Hook):
    """The values of the group SETTINGS of all instances in one variant; as a hook it writes them into the value store."""

    name: str
    values: tuple[tuple[DataType, slice, int], ...]
    instances: frozenset[int]
    """Instances whose values must change after the start."""
    notes: tuple[str, ...]

    def __call__(self, store: ValueStore) -> bool:
        """Write them."""
        for kind, slot, value in self.values:
            store.values[kind][slot] = value
        return False


def fmu_settings(plan: Plan, k: int, polynomial_inputs: Collection[int]) -> FmuSettings:
    """The settings of a variant.

    Parameters
    ----------
    k : int
        Number of the variant.
    polynomial_inputs
        Instances whose inputs are polynomials.

    Raises
    ------
    OptionError
        If a start value of the user contradicts them.
    """
    values, instances, notes = [], set(), []
    for i, planned in enumerate(plan.instances):
        policy, fitted = planned.policy(k), i in polynomial_inputs
        if len(planned.policies) > 1 or policy is not Policy.EXECUTE or fitted:
            wanted = settings(planned.model, policy, fitted)
        else:
            wanted = {}
        for segment in plan.layout.segments(i, Group.SETTINGS):
            for name, slot in segment.slots().items():
                value, given = wanted.get(name), planned.start_values.get(name)
                values.append((segment.type, slot, _value(plan, i, name, value)))
                if k > 0 or value is None:
                    continue
                text = f"{planned.name}.{name}"
                if given is None:
                    instances.add(i)
                    own = planned.model.event_policy
                    is_policy = own is not None and own.parameter == name
                    reason = _REASONS[policy] if is_policy else _POLYNOMIALS
                    notes.append(f"'{text}' is set to {value}: {reason}")
                elif int(given[0]) != value:
                    raise OptionError(
                        f"The start value {int(given[0])} of '{text}' contradicts the event clock or the algorithm, which "
                        f"needs {value}. Leave the start value out."
                    )
    return FmuSettings(f"settings {k}", tuple(values), frozenset(instances), tuple(notes))


def _value(plan: Plan, i: int, name: str, value: int | None) -> int:
    """The value that is set: the required one, otherwise that of the user, otherwise that of the FMU."""
    if value is not None:
        return value
    planned = plan.instances[i]
    variable = planned.model.variable(name)
    assert variable is not None
    return int((planned.start_values.get(name) or variable.start or (0,))[0])


def can_be_set_in_initialization_mode(plan: Plan, i: int) -> bool:
    """Whether the settings of an instance can be set inside Initialization Mode too."""
    segments = plan.layout.segments(i, Group.SETTINGS)
    return all(v.initial is Initial.EXACT for s in segments for v in s.variables)


def emit_settings(plan: Plan, p: Emitter, values: FmuSettings) -> Program:
    """The program that sets the settings of a variant in all FMUs during the run."""
    p.call(values)
    for i, planned in enumerate(plan.instances):
        if planned.event_mode:
            p.mode(i, State.EVENT_MODE)
        p.set(i, Group.SETTINGS)
        if planned.event_mode:  # outputs are read again, so they must belong to the present inputs
            with p.at_an_event():
                p.move(i)
                p.set_inputs(i)
            p.update(i)
            p.get(i)
            p.mode(i, State.STEP_MODE)
    return p.program("tell")
