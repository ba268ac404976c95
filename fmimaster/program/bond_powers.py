"""Power and energy of power bonds: hooks that measure them after each step and write signals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.inputs.polynomial import MOST_COEFFICIENTS
from fmimaster.numerics.polynomials import horner
from fmimaster.numerics.step_sizes import add_part
from fmimaster.plan.plan import Plan
from fmimaster.plan.power_bonds import ENERGY_ERROR, WORST, BondPlan, BondSignal, BondSums, PortPlan
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore
from fmimaster.system.model import DataType

_Floats = NDArray[np.float64]

FIRST = 1e-9
"""An interval is the first of a communication step if it starts within this fraction of its length after the step's
start."""


def bond_measures(plan: Plan) -> tuple[Hook, ...]:
    """The hooks that measure the power bonds of a plan; empty if it has none."""
    if not plan.power_bonds:
        return ()
    signals = plan.layout.signals
    error, worst = (signals[n][1] if n in signals else -1 for n in (ENERGY_ERROR, WORST))
    bonds = Bonds(plan.power_bonds, error, worst)
    return (BondPowers(bonds, BondPowersAtInstant(bonds), BondPowersRefreshed(bonds)),)


@dataclass(frozen=True, slots=True, eq=False)
class Bonds:
    """The power bonds of a run, and the slots of their energy error.

    ``sqrt(mean((dE / (r * (E0 + abs(E)))) ** 2))`` over the bonds with a scale E0 and a tolerance r, where dE is the
    residual and E the transmitted energy of a communication step: the sums over its intervals, if it is divided.

    Parameters
    ----------
    bonds : of BondPlan
    error, worst : int
        Indices into the Float64 outputs: of the error, and of the bond that contributes most to it; -1 for none.

    Source: Sadjina et al. (2017), eq. (14).
    """

    bonds: tuple[BondPlan, ...]
    error: int
    worst: int

    def rate(self, outputs: _Floats) -> None:
        """Write the parts of all bonds and the error."""
        values = outputs.tolist()
        sums, worst, n = [0.0, -1.0], [0], 0
        for k, bond in enumerate(self.bonds):
            if bond.scale is None or bond.tolerance is None:
                continue
            at = bond.signals
            transmitted = abs(values[at + BondSignal.STEP_TRANSMITTED])
            residual = values[at + BondSignal.STEP_RESIDUAL]
            part = residual / (bond.tolerance * (bond.scale + transmitted))
            outputs[at + BondSignal.ERROR] = part
            add_part(part, abs(part), k, sums, worst)
            n += 1
        if n:
            outputs[self.error], outputs[self.worst] = sqrt(sums[0] / n), float(worst[0])

    def twin(self, name: str) -> Twin:
        """Their data for the C function of that name."""
        bonds, ports = self.bonds, [port for bond in self.bonds for port in bond.ports]

        def integers(values: Sequence[int]) -> NDArray[np.int64]:
            return np.array(values, np.int64)

        return Twin(
            name,
            numbers={"n": len(bonds), "error": self.error, "worst": self.worst},
            arrays={
                "signals": integers([b.signals for b in bonds]),
                "instances": integers([p.instance for p in ports]),
                "inputs": integers([p.input_slot for p in ports]),
                "columns": integers([p.column for p in ports]),
                "degrees": integers([_degree(p) for p in ports]),
                "outputs": integers([p.output_slot for p in ports]),
                "weights": np.array([p.weight for p in ports]),
                "transmitted": np.array([b.transmitted for b in bonds]),
                "scales": np.array([b.scale or 0.0 for b in bonds], np.float64),
                "tolerances": np.array(
                    [(b.tolerance or 0.0) if b.has_error else 0.0 for b in bonds], np.float64
                ),
            },
        )


class _Powers(NamedTuple):
    """Of one bond at one time: W, and s."""

    first: float
    second: float
    transmitted: float
    residual: float
    time: float


def _powers(bond: BondPlan, store: ValueStore, values: list[float]) -> _Powers:
    a, b = bond.ports
    y1, y2 = values[a.output_slot], values[b.output_slot]
    first = a.weight * _input(a, store, values) * y1
    second = b.weight * _input(b, store, values) * y2
    time = min(store.read.item(a.instance), store.read.item(b.instance))
    return _Powers(first, second, bond.transmitted * y1 * y2, -(first + second), time)


def _input(port: PortPlan, store: ValueStore, values: list[float]) -> float:
    """The input of the FMU at the end of the step: the held value, or the end value of its polynomial."""
    i, courses = port.instance, store.courses
    degree = courses.degree.item(i)
    if degree < 0 or port.column < 0:
        return values[port.input_slot]
    coefficients = courses.coefficients[i][:, port.column].tolist()
    distance = store.read.item(i) - courses.centre.item(i)
    return float(horner(coefficients, 1, min(degree, _degree(port)), distance))


def _degree(port: PortPlan) -> int:
    return MOST_COEFFICIENTS - 1 if port.degree is None else port.degree


@dataclass(frozen=True, slots=True, eq=False)
class _OfBonds(Hook):
    """Writes signals of all bonds, in the order of operations of the kernel's power.c."""

    of: Bonds

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        return self.of.twin(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class BondPowers(_OfBonds):
    """Powers of all bonds at the end of a step, and the energies of the step → signals.

    To be called after all outputs were read and before new inputs are set. The length of the step is the time since the
    last call, by the times at which outputs of both ends were read.

    Parameters
    ----------
    of : Bonds
    at_instant, refreshed : Hook
        For the start and events, and for outputs that are read again.

    Source: Sadjina et al. (2017), eq. (6), (7), (8), (10b).
    """

    at_instant: BondPowersAtInstant
    refreshed: BondPowersRefreshed
    name: ClassVar[str] = "power bonds"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Write the signals."""
        outputs = store.outputs[DataType.FLOAT64]
        values = store.values[DataType.FLOAT64].tolist()
        begin = store.interval[0]
        for bond in self.of.bonds:
            at, p = bond.signals, _powers(bond, store, values)
            length = p.time - values[at + BondSignal.TIME]
            residual, transmitted = p.residual * length, p.transmitted * length
            goes_on = values[at + BondSignal.TIME] - begin > FIRST * length
            _put(outputs, at, p, length)
            outputs[at + BondSignal.STEP_RESIDUAL] = residual + (
                values[at + BondSignal.STEP_RESIDUAL] if goes_on else 0.0
            )
            outputs[at + BondSignal.STEP_TRANSMITTED] = transmitted + (
                values[at + BondSignal.STEP_TRANSMITTED] if goes_on else 0.0
            )
            outputs[at + BondSignal.RESIDUAL_ENERGY] += residual
            outputs[at + BondSignal.TRANSMITTED_ENERGY] += transmitted
            outputs[at + BondSignal.ABSOLUTE_ENERGY] += abs(residual)
            if abs(p.residual) > values[at + BondSignal.LARGEST_RESIDUAL]:
                outputs[at + BondSignal.LARGEST_BEFORE] = values[at + BondSignal.LARGEST_RESIDUAL]
                outputs[at + BondSignal.LARGEST_BEFORE_AT] = values[at + BondSignal.LARGEST_AT]
                outputs[at + BondSignal.LARGEST_RESIDUAL] = abs(p.residual)
                outputs[at + BondSignal.LARGEST_AT] = p.time
        self.of.rate(outputs)
        return False


def exclude_last_step(
    bonds: Iterable[BondPlan], store: ValueStore, instances: Collection[int]
) -> None:
    """Exclude the last step of the bonds of these instances from their sums: values jumped inside it because of an
    event, so its residual is no error of the coupling.

    The main loop calls it after a step in which an FMU has executed an event, and after a step whose outputs at the
    start were from before an event.
    """
    signals = store.outputs[DataType.FLOAT64]
    for bond in bonds:
        if not any(port.instance in instances for port in bond.ports):
            continue
        of = signals[bond.signals : bond.signals + len(BondSignal)]
        residual = of[BondSignal.RESIDUAL_POWER] * of[BondSignal.LENGTH]
        of[BondSignal.RESIDUAL_ENERGY] -= residual
        of[BondSignal.ABSOLUTE_ENERGY] -= abs(residual)
        of[BondSignal.EVENT_ENERGY] += residual
        of[BondSignal.LENGTH] = 0.0  # it is excluded once
        if of[BondSignal.LARGEST_AT] == of[BondSignal.TIME]:
            of[BondSignal.LARGEST_RESIDUAL] = of[BondSignal.LARGEST_BEFORE]
            of[BondSignal.LARGEST_AT] = of[BondSignal.LARGEST_BEFORE_AT]


def signals_of(bond: BondPlan, store: ValueStore) -> list[float]:
    """The present signals of a bond, by :class:`BondSignal`."""
    values = store.outputs[DataType.FLOAT64][bond.signals : bond.signals + len(BondSignal)]
    return [float(value) for value in values]


def carry_sums(
    before: Plan,
    old: ValueStore,
    after: Plan,
    new: ValueStore,
    known: Mapping[str, BondSums],
    *,
    start: float,
    now: float,
) -> dict[str, BondSums]:
    """The sums of power bonds go from one structure of a system to the next one, at a time in s.

    Parameters
    ----------
    known
        Those of earlier changes.
    start
        Time in s at which the run began.

    Returns
    -------
    dict
        Those of all bonds so far, also of bonds that have ended.
    """
    sums = {**known}
    for bond in before.power_bonds:
        begin = known[bond.name].begin if bond.name in known else start
        sums[bond.name] = BondSums(begin, bond.scale, signals_of(bond, old))
    for bond in after.power_bonds:
        first = BondSums(now, bond.scale, [0.0] * len(BondSignal))
        earlier = sums.setdefault(bond.name, first)
        if earlier is not first:  # a bond that was not there for some time goes on
            at = bond.signals
            new.outputs[DataType.FLOAT64][at : at + len(BondSignal)] = earlier.signals
            begin = earlier.begin + (now - earlier.signals[BondSignal.TIME])
            sums[bond.name] = earlier._replace(begin=begin)
    source, target = (plan.layout.signals.get(ENERGY_ERROR) for plan in (before, after))
    if source is not None and target is not None:
        new.outputs[DataType.FLOAT64][target[1]] = old.outputs[DataType.FLOAT64][source[1]]
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class BondPowersAtInstant(_OfBonds):
    """Powers of all bonds at the start or at an event, where no time has passed → signals; energies stay as they are."""

    name: ClassVar[str] = "power bonds at an instant"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Write the signals."""
        values = store.values[DataType.FLOAT64].tolist()
        for bond in self.of.bonds:
            powers = _powers(bond, store, values)
            _put(store.outputs[DataType.FLOAT64], bond.signals, powers, 0.0)
        return False


@dataclass(frozen=True, slots=True, eq=False)
class BondPowersRefreshed(_OfBonds):
    """Transmitted power and energy of all bonds by outputs that were read again at the end of a step. The residual is
    still that of the inputs in the step."""

    name: ClassVar[str] = "power bonds with refreshed outputs"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Write the signals."""
        outputs = store.outputs[DataType.FLOAT64]
        values = outputs.tolist()
        for bond in self.of.bonds:
            at, (a, b) = bond.signals, bond.ports
            power = bond.transmitted * values[a.output_slot] * values[b.output_slot]
            change = (power - values[at + BondSignal.POWER]) * values[at + BondSignal.LENGTH]
            outputs[at + BondSignal.POWER] = power
            outputs[at + BondSignal.TRANSMITTED_ENERGY] += change
            outputs[at + BondSignal.STEP_TRANSMITTED] += change
        self.of.rate(outputs)
        return False


def _put(outputs: _Floats, at: int, p: _Powers, length: float) -> None:
    outputs[at + BondSignal.POWER_1] = p.first
    outputs[at + BondSignal.POWER_2] = p.second
    outputs[at + BondSignal.POWER] = p.transmitted
    outputs[at + BondSignal.RESIDUAL_POWER] = p.residual
    outputs[at + BondSignal.TIME] = p.time
    outputs[at + BondSignal.LENGTH] = length
