"""Outputs that a run reads inside of the steps of its FMUs, and the tables of these values."""

from __future__ import annotations

from collections.abc import Mapping

from fmimaster.errors import OptionError
from fmimaster.fmu.intermediate import IntermediateOutputs, readable_inside
from fmimaster.plan.plan import Plan
from fmimaster.plan.recorded import Recorded
from fmimaster.preparation import Prepared
from fmimaster.results.table import Table
from fmimaster.settings import Settings
from fmimaster.system.model import Interface


def intermediate_outputs(prepared: Prepared, settings: Settings) -> dict[int, IntermediateOutputs]:
    """Instance → its outputs that are read inside of its steps.

    Raises
    ------
    OptionError
        If values are to be recorded and no FMU can give them, an FMU has a process of its own, or the run writes
        checkpoints.
    """
    if not settings.record_intermediate_values:
        return {}
    option = "record_intermediate_values (--record-intermediate-values)"
    if settings.checkpoint is not None:
        raise OptionError(
            f"{option}: a checkpoint does not contain intermediate values. Leave one of both out."
        )
    plan, found = prepared.plan, dict[int, IntermediateOutputs]()
    for i, planned in enumerate(plan.instances):
        if planned.model.interface is not Interface.CO_SIMULATION:
            continue
        columns = _columns(plan, i)
        if variables := readable_inside(planned.model, list(columns)):
            found[i] = IntermediateOutputs(variables)
            if planned.name in prepared.isolated:
                raise OptionError(
                    f"{option}: '{planned.name}' has a process of its own, from which intermediate values are not "
                    "transferred. Leave isolate, call_timeout, memory_limit and on_fault out."
                )
    if not found:
        raise OptionError(
            f"{option}: no recorded output can be read inside of a step. Expected a Co-Simulation FMU of FMI 3.0 with "
            'providesIntermediateUpdate="true", and recorded outputs with intermediateUpdate="true". Leave it out.'
        )
    return found


def intermediate_tables(plan: Plan, outputs: Mapping[int, IntermediateOutputs]) -> dict[str, Table]:
    """Name of a component → its values inside of its steps, with the names and units of the results."""
    found = {}
    for i, read in outputs.items():
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
