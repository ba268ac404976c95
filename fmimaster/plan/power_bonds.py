"""Power bonds in the value store: slots of inputs and outputs of the ports, and the signals of each bond."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import Group, Layout, Signal
from fmimaster.system.model import Model
from fmimaster.system.resolved import ResolvedPort, ResolvedPowerBond

ENERGY_ERROR = "energy_error"
"""Name of the signal with the energy error of all bonds that have a scale and a tolerance."""
WORST = f"{ENERGY_ERROR}.worst"
"""Name of the signal with the index of the bond that contributes most to it; not recorded."""


class BondSignal(IntEnum):
    """The signals of a bond; the number is the place behind :attr:`BondPlan.signals`."""

    POWER_1 = 0
    """Power in W that leaves the first component, by its own input and output."""
    POWER_2 = 1
    POWER = 2
    """Power in W from the first component to the second one, by both outputs."""
    RESIDUAL_POWER = 3
    """In W; positive if the coupling creates energy."""
    RESIDUAL_ENERGY = 4
    """Sum so far in J."""
    TRANSMITTED_ENERGY = 5
    """Sum so far in J, from the first component to the second one."""
    ABSOLUTE_ENERGY = 6
    """Sum so far of absolute values of the residual energies of all steps in J."""
    LARGEST_RESIDUAL = 7
    """Largest absolute residual power at the end of a step so far in W."""
    LARGEST_AT = 8
    """When it was found, in s."""
    TIME = 9
    """Of the last step in s."""
    LENGTH = 10
    """Of the last step in s."""
    ERROR = 11
    """Contribution of the bond to the energy error: residual energy of the communication step, divided by the tolerated
    energy."""
    EVENT_ENERGY = 12
    """Residual energy in J of steps with an event, whose energies are wrong; it is not in the sums."""
    LARGEST_BEFORE = 13
    """Largest residual before the present step, and its time: restored if the present step is not counted."""
    LARGEST_BEFORE_AT = 14
    STEP_RESIDUAL = 15
    """Residual energy in J of the communication step so far: the sum over its intervals, if components do sub-steps."""
    STEP_TRANSMITTED = 16


_RECORDED = {
    BondSignal.POWER_1: "W",
    BondSignal.POWER_2: "W",
    BondSignal.POWER: "W",
    BondSignal.RESIDUAL_POWER: "W",
    BondSignal.RESIDUAL_ENERGY: "J",
    BondSignal.TRANSMITTED_ENERGY: "J",
}
"""Recorded signals with their units; all others are the memory of the hooks."""


@dataclass(frozen=True, slots=True)
class PortPlan:
    """One end of a bond: ``weight * input * output`` is the power in W that leaves the instance."""

    instance: int
    input: str
    output: str
    input_slot: int
    """Index of the input, which holds the held value, in the Float64 values."""
    column: int
    """Of the input among the continuous inputs of the instance, in the polynomials of ``ValueStore.courses``; -1 if it is
    declared discrete, so that it is always held."""
    degree: int | None
    """Highest used order of a polynomial for the instance: :attr:`Model.highest_order`."""
    output_slot: int
    weight: float


@dataclass(frozen=True, slots=True)
class BondPlan:
    """A power bond, ready to be measured."""

    name: str
    ports: tuple[PortPlan, PortPlan]
    transmitted: float
    """Factor from the product of both outputs to the power in W from the first port to the second one."""
    signals: int
    """Index of the first of its signals in the Float64 outputs; :class:`BondSignal` counts from it."""
    scale: float | None = None
    """In J."""
    tolerance: float | None = None

    @property
    def has_error(self) -> bool:
        """Whether it contributes to the energy error."""
        return self.scale is not None and self.tolerance is not None


class BondSums(NamedTuple):
    """What a power bond had summed up when the structure of the system changed."""

    begin: float
    """Time in s from which it is counted: later, by the time in which it did not exist."""
    scale: float | None
    signals: Sequence[float]
    """By :class:`BondSignal`."""


def bond_signals(bonds: Iterable[ResolvedPowerBond]) -> tuple[Signal, ...]:
    """Signals of bonds, and the energy error if any has a scale and a tolerance."""
    found, has_error = list[Signal](), False
    for bond in bonds:
        found += [
            Signal(f"{bond.name}.{s.name.lower()}", _RECORDED.get(s, ""), s in _RECORDED)
            for s in BondSignal
        ]
        has_error |= bond.scale is not None and bond.tolerance is not None
    if has_error:
        found += [Signal(ENERGY_ERROR), Signal(WORST, is_recorded=False)]
    return tuple(found)


def place_bonds(
    bonds: Sequence[ResolvedPowerBond], models: Sequence[Model], layout: Layout
) -> tuple[BondPlan, ...]:
    """The bonds with their places in the value store."""
    return tuple(
        BondPlan(
            bond.name,
            (
                _place(bond.ports[0], models, layout),
                _place(bond.ports[1], models, layout),
            ),
            bond.transmitted,
            layout.signals[f"{bond.name}.{BondSignal(0).name.lower()}"][1],
            bond.scale,
            bond.tolerance,
        )
        for bond in bonds
    )


def _place(port: ResolvedPort, models: Sequence[Model], layout: Layout) -> PortPlan:
    i, u, y = port.component, port.input.name, port.output.name
    is_held = (i, Group.CONTINUOUS, u) not in layout.slots
    into = layout.slots[i, Group.DISCRETE if is_held else Group.CONTINUOUS, u][1].start
    out = layout.slots[i, Group.OUTPUTS, y][1].start
    column = -1 if is_held else into - layout.segments(i, Group.CONTINUOUS)[0].start
    return PortPlan(i, u, y, into, column, models[i].highest_order, out, port.weight)
