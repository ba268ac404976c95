"""Outputs that a run reads inside of the steps of its FMUs, and the tables of these values.

They are tables of their own: other components have no values at these times.
"""

from __future__ import annotations

from collections.abc import Mapping

from fmimaster.base.errors import OptionError
from fmimaster.configure.settings import Settings
from fmimaster.fmu.intermediate import IntermediateOutputs, readable_inside
from fmimaster.plan.plan import Plan
from fmimaster.plan.recorded import Recorded
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.table import Table
from fmimaster.system.declarations import Interface


def intermediate_outputs(prepared: Prepared, settings: Settings) -> dict[int, IntermediateOutputs]:
    """Instance → its outputs that are read inside of its steps.

    Raises
    ------
    OptionError
        If values are to be recorded and no FMU can give them, an FMU has a process of its own, or the run writes
        checkpoints.
    """
    clock, records = settings.used.event_clock, settings.record_intermediate_values
    requests = clock is not None and clock.requests
    plan, found = prepared.plan, dict[int, IntermediateOutputs]()
    if not (requests or records):
        return found
    from fmimaster.events.intermediate import inside_watch  # few runs need it

    for i, planned in enumerate(plan.instances):
        is_stepped = planned.model.interface is Interface.CO_SIMULATION
        watch = inside_watch(plan, i) if requests and planned.may_return_early else None
        recorded = readable_inside(planned.model, list(_columns(plan, i)) if records else [])
        if is_stepped and (recorded or watch is not None):
            watched, decide = watch or ((), None)
            found[i] = IntermediateOutputs(recorded, watched, decide)
    if records and not any(outputs.recorded for outputs in found.values()):
        raise OptionError(
            f"{_RECORD}: no recorded output can be read inside of a step. Expected a Co-Simulation FMU of FMI 3.0 with "
            'providesIntermediateUpdate="true", and recorded outputs with intermediateUpdate="true". Leave it out.'
        )
    _refuse_what_loses_values(prepared, settings, found)
    return found


_RECORD = "record_intermediate_values (--record-intermediate-values)"


def _refuse_what_loses_values(
    prepared: Prepared, settings: Settings, found: Mapping[int, IntermediateOutputs]
) -> None:
    if not found:
        return
    option = _RECORD if settings.record_intermediate_values else "The event clock Intermediate"
    if settings.checkpoint is not None:
        raise OptionError(
            f"{option}: a checkpoint does not contain intermediate values. Leave one of both out."
        )
    for i in found:
        name = prepared.plan.instances[i].name
        if name in prepared.isolated:
            raise OptionError(
                f"{option}: '{name}' has a process of its own, from which intermediate values are not transferred. Leave "
                "isolate, call_timeout, memory_limit and on_fault out."
            )


def intermediate_tables(plan: Plan, outputs: Mapping[int, IntermediateOutputs]) -> dict[str, Table]:
    """Name of a component → its values inside of its steps, with the names and units of the results."""
    found = {}
    for i, read in outputs.items():
        if not read.recorded:
            continue
        columns, (times, values) = _columns(plan, i), read.table()
        shown = [(columns[name], array) for name, array in values.items()]
        found[plan.instances[i].name] = Table(
            time=times,
            columns={c.name: c.converted(array) for c, array in shown},
            units={c.name: c.unit for c, _ in shown if c.unit},
        )
    return found


def _columns(plan: Plan, i: int) -> dict[str, Recorded]:
    """Name of a recorded variable of an instance → its column."""
    return {c.variable: c for c in plan.recorded if c.instance == i and not c.is_repeated}
