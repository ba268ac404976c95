"""The plan of a system: everything that can be known before an FMU is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.text import count
from fmimaster.plan.corrections import Correction, Means
from fmimaster.plan.events import PlanEvent, Trigger, reached_by_events
from fmimaster.plan.graph import collected
from fmimaster.plan.layout import Group, Layout, Route
from fmimaster.plan.links import ClockedVisit, Links
from fmimaster.plan.policy import Policy
from fmimaster.plan.power_bonds import BondPlan
from fmimaster.plan.step_groups import SteadyState
from fmimaster.plan.variables import Recorded
from fmimaster.plan.visits import AlgebraicLoop, Visits
from fmimaster.system.clocks import Structure
from fmimaster.system.model import DataType, Model, Source

NO_TOLERANCE: Literal["none"] = "none"
"""Tolerance of a run in which no tolerance is passed to FMUs."""


class ToleranceOrigin(Enum):
    """Origin of a tolerance; the first origin with a tolerance is used."""

    OPTION = "settings"
    SYSTEM = "system"
    FMU = "FMU"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A relative tolerance, or none, and where it comes from."""

    value: float | None = None
    """None: no tolerance is passed."""
    origin: ToleranceOrigin | None = None
    """None if there is no tolerance because neither the user nor the system nor the FMU gives one."""


def tolerance_of_run(
    given: float | Literal["none"] | None, described: float | None
) -> Tolerance | None:
    """The tolerance for all FMUs: that of the user, otherwise that of the system; None if each FMU gets its own."""
    if given is not None:
        return Tolerance(None if given == NO_TOLERANCE else float(given), ToleranceOrigin.OPTION)
    return None if described is None else Tolerance(described, ToleranceOrigin.SYSTEM)


def own_tolerance(model: Model) -> Tolerance:
    """The tolerance of an FMU's own default experiment."""
    own = model.default_experiment.tolerance
    return Tolerance() if own is None else Tolerance(own, ToleranceOrigin.FMU)


@dataclass(frozen=True)
class InstancePlan:
    """One instance: its model and its values at the start."""

    name: str
    source: Source
    model: Model
    start_values: Mapping[str, tuple[Any, ...]]
    """Variable name → values of all its elements; no array, so that plans can be compared."""
    event_mode: bool = False
    """Whether its Event Mode is used."""
    may_return_early: bool = False
    """Whether it may end a step early, at its own event."""
    policies: tuple[Policy, ...] = ()
    """Its policy at its own events: one for each variant of the algorithm, or a single one for all."""
    tolerance: Tolerance = Tolerance()
    """The tolerance that it gets when it enters Initialization Mode."""
    priority: int | None = None
    """Of a discrete-event unit: of those whose clocks are due, the one with the lowest priority ticks alone."""
    refreshed: bool = False
    """Whether its outputs are read again with new inputs in Event Mode, where no event of its own can happen."""

    @property
    def stays_ahead(self) -> bool:
        """Whether it remains where it is if it has stepped past an early return of another instance: it cannot go back.

        An instance that stops by a discarded step has not done this step, and must go back itself.
        """
        discards = self.may_return_early and not self.event_mode
        return not (self.model.capabilities.can_get_and_set_fmu_state or discards)

    @property
    def may_request_events(self) -> bool:
        """Whether a step of it may end with an event of its own in Event Mode: not where it has a policy not to."""
        announces = self.model.event_policy is None or Policy.ANNOUNCE in self.policies
        return self.event_mode and announces

    def policy(self, variant: int) -> Policy:
        """Its policy at its own events in one variant."""
        return self.policies[min(variant, len(self.policies) - 1)]


@dataclass(frozen=True, slots=True)
class StepOrder:
    """Information about the instances before there is a plan."""

    names: tuple[str, ...]
    """In the order of the system description."""
    trigger_sequence: tuple[int, ...]
    """Instance indices in the order in which they step."""
    chosen_by: str = ""
    """The origin of the sequence, in words."""


class Instances(tuple[InstancePlan, ...]):
    """The instances of a system. Plans for parts of it share them."""

    @cached_property
    def any_may_return_early(self) -> bool:
        """Whether one of them may end a step at an event."""
        return any(i.may_return_early for i in self)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Name → number."""
        return {planned.name: i for i, planned in enumerate(self)}


MOST_NAMES = 4
"""Instances that the repr of a plan names."""


@dataclass(frozen=True, repr=False)
class Plan:
    """One system, ready to be computed."""

    instances: Instances
    """In the order of the system description."""
    links: Links
    trigger_sequence: tuple[int, ...]
    """Indices of the instances in the order in which they are stepped; in the plan of a part of the system those of the
    part."""
    visits: Visits
    """Order of set-and-get in Initialization Mode; an instance may recur."""
    step_visits: Visits
    """Order of set-and-get in Event Mode, by the dependencies of Step Mode."""
    layout: Layout
    routes: Mapping[tuple[int, Group], tuple[Route, ...]]
    """What feeds each group of each instance, in the order of its slots."""
    recorded: tuple[Recorded, ...]
    rows: Mapping[DataType, tuple[int, ...]]
    """Elements of the value store that a row takes, by type: those of the recorded columns, and the clocks of recorded
    clocked variables."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Parts of the system that are not computed, although its FMUs require it."""
    events: tuple[PlanEvent, ...] = ()
    """Those that the run watches or fires."""
    triggers: tuple[Trigger, ...] = ()
    sequence_chosen_by: str = ""
    """The origin of the trigger sequence, in words."""
    clocked_visits: tuple[ClockedVisit, ...] = ()
    """Order in which clocks and clocked values go from instance to instance within an event iteration."""
    steady: tuple[SteadyState, ...] = ()
    """States whose start values are unknown, in the order of their names."""
    corrections: Mapping[int, Correction] = field(default_factory=dict)
    """Instance → correction of outputs that depend directly on its inputs, used if inputs are held at a mean."""
    parameter_links: Links = Links()
    """Calculated parameters that give other parameters their values at the start."""
    power_bonds: tuple[BondPlan, ...] = ()
    """Sorted by name."""
    step_groups: tuple[tuple[int, ...], ...] = ()
    """Instances that are solved together in Step Mode, because they share algebraic loops; in the order of a sweep."""

    settled: tuple[int, ...] = ()
    """Instances in algebraic loops that are solved at the end of each step, by setting inputs and reading outputs."""

    structure: Structure | None = None
    """Which parts of a system these are, if its structure changes during the run."""

    def __repr__(self) -> str:
        names = ", ".join(i.name for i in self.instances[:MOST_NAMES])
        more = ", ..." if len(self.instances) > MOST_NAMES else ""
        instances, links = (
            count(len(self.instances), "instance"),
            count(len(self.links), "connection"),
        )
        return f"<Plan of {instances} ({names}{more}), {links}>"

    def is_corrected_as_if_linear(self, instance: int) -> bool:
        """Whether outputs of an instance are corrected by partial derivatives that may be wrong later."""
        correction = self.corrections.get(instance)
        return correction is not None and correction.means is Means.ASSUMED

    def nominals(self) -> dict[DataType, NDArray[np.float64]]:
        """Nominal value of each output slot; inf for signals, whose changes are ignored."""
        layout = self.layout
        nominals = {
            kind: np.ones(size)
            for kind, size in layout.output_sizes.items()
            if size and kind.is_float
        }
        for (i, group, name), (kind, slot) in layout.slots.items():
            if group is Group.OUTPUTS and kind.is_float:
                variable = self.instances[i].model.variable(name)
                assert variable is not None
                nominals[kind][slot] = variable.nominal
        for _, k in layout.signals.values():
            nominals[DataType.FLOAT64][k] = np.inf
        return nominals

    @property
    def initial_loops(self) -> tuple[AlgebraicLoop, ...]:
        """Algebraic loops in Initialization Mode."""
        return self.visits.loops

    @property
    def step_loops(self) -> tuple[AlgebraicLoop, ...]:
        """Algebraic loops by the dependencies of Step Mode."""
        return self.step_visits.loops

    def exists_in_steps(self, loop: AlgebraicLoop) -> bool:
        """Whether a loop exists between events: none of its inputs is set in Event Mode only."""
        return not any(
            self.instances[i].event_mode and (i, Group.DISCRETE, name) in self.layout.slots
            for i, name in loop.variables
        )

    @property
    def can_go_back(self) -> bool:
        """Whether all instances can get and set their FMU state."""
        return all(i.model.capabilities.can_get_and_set_fmu_state for i in self.instances)

    @property
    def discrete_routes(self) -> tuple[Route, ...]:
        """Those from outputs that change at events only."""
        return tuple(
            route
            for (_, group), routes in self.routes.items()
            if group in (Group.CONTINUOUS, Group.DISCRETE)
            for route in routes
            if route.has_discrete_source
        )

    @property
    def step_order(self) -> StepOrder:
        """Names of all instances, and the trigger sequence."""
        names = tuple(i.name for i in self.instances)
        return StepOrder(names, self.trigger_sequence, self.sequence_chosen_by)

    @cached_property
    def members(self) -> tuple[int, ...]:
        """The instances of the trigger sequence, in the order of the system description."""
        return tuple(sorted(self.trigger_sequence))

    @property
    def sources(self) -> Mapping[int, frozenset[int]]:
        """Instance → the instances that feed it."""
        return self.links.sources

    @cached_property
    def reached_by_events(self) -> Mapping[int, tuple[int, ...]]:
        """Instance → the instances that an event in it concerns directly."""
        modes = [instance.event_mode for instance in self.instances]
        return reached_by_events(self.triggers, self.links, modes)

    @cached_property
    def _triggers(self) -> Mapping[int, tuple[int, ...]]:
        return collected((trigger.instance, k) for k, trigger in enumerate(self.triggers))

    def triggers_of(self, instance: int) -> tuple[int, ...]:
        """Indices of the triggers of an instance."""
        return self._triggers.get(instance, ())

    def has_inputs(self, instance: int) -> bool:
        """Whether anything feeds the instance."""
        return any((instance, g) in self.routes for g in (Group.CONTINUOUS, Group.DISCRETE))
