"""The values that FMUs are given before and in Initialization Mode."""

from __future__ import annotations

from collections.abc import Collection

from fmimaster.algorithms.fmu_settings import FmuSettings, can_be_set_in_initialization_mode
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
