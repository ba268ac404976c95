"""The program from instantiated FMUs to a complete exchange of values at the start time, and the end of the run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fmimaster.algorithms.differences import emit_differences
from fmimaster.algorithms.event_update import emit_updates
from fmimaster.algorithms.fmu_settings import FmuSettings, can_be_set_in_initialization_mode
from fmimaster.algorithms.settling import Settling
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.system.states import State


def emit_start_values(
    plan: Plan, p: Emitter, instances: Collection[int], settings: FmuSettings
) -> None:
    """Write the way from Instantiated to Initialization Mode.

    Start values are set before Initialization Mode and again inside it, because some FMUs lose the first values.

    Parameters
    ----------
    settings
        Parameters that the run must set, besides the start values of the user.
    """
    chosen = settings.instances.intersection(instances)
    if chosen:
        p.call(settings)
    for i in instances:
        if plan.layout.segments(i, Group.STRUCTURAL):
            p.mode(i, State.CONFIGURATION_MODE)
            p.set(i, Group.STRUCTURAL)
            p.mode(i, State.INSTANTIATED)
        p.set(i, Group.START)
        if i in chosen:
            p.set(i, Group.SETTINGS)
    for i in instances:
        p.mode(i, State.INITIALIZATION_MODE)
        p.set(i, Group.INITIAL)
        if i in chosen and can_be_set_in_initialization_mode(plan, i):
            p.set(i, Group.SETTINGS)


def emit_clock_intervals(p: Emitter, instances: Collection[int]) -> None:
    """Write the intervals of the clocks of instances with Event Mode, in Initialization Mode."""
    for i in instances:
        p.set_intervals(i)
        p.get_intervals(i)


@dataclass(frozen=True, slots=True)
class Initialization:
    """Start values, Initialization Mode, a complete exchange along the dependencies, the first row."""

    settling: Settling = Settling()

    def emit(self, plan: Plan, p: Emitter, settings: FmuSettings) -> None:
        """Write the program from Instantiated to Step Mode.

        Parameters
        ----------
        settings
            Parameters that the run must set, besides the start values of the user.
        """
        instances = range(len(plan.instances))
        emit_start_values(plan, p, instances, settings)
        with p.at_an_event():
            left = self.settling.at_the_start(plan, p)
            others = [i for i in instances if i not in left]
            emit_differences(plan, p, others)
        modes = {i: None for i in instances if plan.instances[i].event_mode}
        emit_clock_intervals(p, modes)
        for i in others:
            p.mode(i, State.EVENT_MODE if i in modes else State.STEP_MODE)
        if modes:
            emit_updates(plan, p, modes, rows=False, settling=self.settling)
            for i in modes:
                p.mode(i, State.STEP_MODE)
        for i in instances:
            p.get(i)
        with p.at_an_event():
            p.measure()
        p.sample()
        p.remember()
