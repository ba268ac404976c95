"""Statistics of the power bonds of a run so far, from the signals of the hooks."""

from __future__ import annotations

from fmimaster.plan.plan import Plan
from fmimaster.plan.power_bonds import BondPlan, BondSignal
from fmimaster.program.store import ValueStore
from fmimaster.results.statistics import BondStatistics
from fmimaster.system.model import DataType


def bond_statistics(plan: Plan, store: ValueStore, start: float) -> tuple[BondStatistics, ...]:
    """Statistics of all bonds since the start in s, sorted by error, the largest first, then by name."""
    found = [_statistics(bond, store, start) for bond in plan.power_bonds]
    return tuple(sorted(found, key=lambda bond: (-bond.mean_error, bond.name)))


def _statistics(bond: BondPlan, store: ValueStore, start: float) -> BondStatistics:
    outputs = store.outputs[DataType.FLOAT64]

    def value(signal: BondSignal) -> float:
        return float(outputs[bond.signals + signal])

    length = value(BondSignal.TIME) - start
    return BondStatistics(
        bond.name,
        value(BondSignal.ABSOLUTE_ENERGY) / length / 2 if length > 0.0 else 0.0,
        value(BondSignal.RESIDUAL_ENERGY),
        value(BondSignal.TRANSMITTED_ENERGY),
        value(BondSignal.LARGEST_RESIDUAL),
        value(BondSignal.LARGEST_AT),
        value(BondSignal.EVENT_ENERGY),
        bond.scale,
    )
