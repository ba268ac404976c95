"""Errors of a step by the energy of power bonds, and by the difference between one step and two half steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.text import listed
from fmimaster.numerics.step_sizes import add_part
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.plan.power_bonds import BondPlan, BondSignal
from fmimaster.program.hook import Hook, Twin
from fmimaster.program.store import ValueStore
from fmimaster.steps.estimator import Estimator
from fmimaster.steps.prediction_errors import OfOutputs, judged_outputs
from fmimaster.system.model import DataType


class OfBonds(Estimator):
    """Base of the estimators that compute the error of a step from power bonds."""

    __slots__ = ()

    def order(self, degree: int) -> int:
        """Two more than the degree of extrapolation: one for the power, and one more for the energy of a step."""
        return degree + 2

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """The bonds without scale or tolerance."""
        names = [f"'{bond.name}'" for bond in plan.power_bonds if not bond.has_error]
        if not names:
            return ()
        return (
            f"the step-size controller ignores power bonds without scale or tolerance: {listed(names)}",
        )

    def refuse(self, plan: Plan) -> None:
        """Raise if there are no bonds with scale and tolerance.

        Raises
        ------
        OptionError
            If the system has no power bond.
        """
        if not plan.power_bonds:
            raise OptionError(
                "The step-size controller judges steps by the residual energy of power bonds, and the system has none. "
                "Declare one: power_bonds=[PowerBond(...)] or SystemBuilder.power_bond in Python, or an annotation in the "
                "SSP, see docs/power-bonds.md. Or use EmbeddedOrders (embedded-orders), which needs no power bonds."
            )
        if not any(bond.has_error for bond in plan.power_bonds):
            raise OptionError(
                f"Power bond '{plan.power_bonds[0].name}' has no energy scale or no tolerance, which the controller needs. "
                "Give both: scale in J, the energy that is typically stored or transmitted, and the relative tolerance."
            )


@dataclass(frozen=True, slots=True)
class PowerResidual(OfBonds):
    """Residual energy of all power bonds over a step, relative to their tolerances and energy scales.

    ``sqrt(mean((dE / (r (E0 + |E|))) ** 2))`` over the bonds, with the residual energy dE and the transmitted energy E of
    the step. The hook of the bonds writes it.

    Source: Sadjina et al. (2017), Energy conservation and power bonds in co-simulations, eq. (14).
    """

    name: ClassVar[str] = "energy_error"

    def signals(self) -> tuple[Signal, ...]:
        """No signals: the hook of the bonds writes them."""
        return ()

    def sources(self, plan: Plan) -> tuple[str, ...]:
        """The bonds."""
        return tuple(bond.name for bond in plan.power_bonds)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedChange(Hook):
    """Root mean square of the weighted change of outputs since a KEEP → a slot; the output with the largest change →
    another slot.

    ``sqrt(mean(((y - kept) / (absolute * nominal + relative * abs(y))) ** 2)) / divisor``

    Parameters
    ----------
    buffer : int
        Of the KEEP.
    slots : shape (n,), integers
        The outputs, as indices into those of type Float64; at least one.
    nominals : shape (n,)
        Their nominal values.
    target, worst : int
        Indices into the Float64 outputs: of the result, and of the number of the output that has changed most.
    absolute, relative : float
        Tolerances; a change of this size gives the result 1.
    divisor : float
        ``2 ** p - 1`` converts the difference between one step and its two halves, of order p, to the error of the
        halves.

    Source: the norm of Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, II.4, eq. (4.11).
    """

    buffer: int
    slots: NDArray[np.int64]
    nominals: NDArray[np.float64]
    target: int
    worst: int
    absolute: float
    relative: float
    divisor: float = 1.0
    name: ClassVar[str] = "weighted change of outputs"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Write the result."""
        outputs = store.outputs[DataType.FLOAT64]
        now, then = outputs.tolist(), store.buffers[self.buffer][0][DataType.FLOAT64].tolist()
        sums, worst = [0.0, 0.0], [0]
        for i, (k, nominal) in enumerate(
            zip(self.slots.tolist(), self.nominals.tolist(), strict=True)
        ):
            part = (now[k] - then[k]) / (self.absolute * nominal + self.relative * abs(now[k]))
            add_part(part, part * part, i, sums, worst)
        outputs[self.target] = sqrt(sums[0] / len(self.slots)) / self.divisor
        outputs[self.worst] = float(worst[0])
        return False

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        return Twin(
            "weighted change",
            numbers={
                "n": len(self.slots),
                "buffer": self.buffer,
                "target": self.target,
                "worst": self.worst,
                "absolute": self.absolute,
                "relative": self.relative,
                "divisor": self.divisor,
            },
            arrays={"slots": self.slots, "nominals": self.nominals},
        )


class Doubling(Estimator):
    """Base of the estimators for which each step is done as a whole, undone, and done in two halves, which are kept.

    The algorithm is wrapped in ``Richardson``. All FMUs must be able to get and set their state. Each FMU does three steps
    for two halves.
    """

    __slots__ = ()

    def comparison(self, degree: int) -> Callable[[Plan, int], Hook]:
        """The hook that compares, by the plan and the buffer of the whole step."""
        return partial(self.difference, degree)

    @abstractmethod
    def difference(self, degree: int, plan: Plan, whole: int) -> Hook:
        """The hook that writes the signals, after the second half.

        Parameters
        ----------
        degree
            Of the extrapolation of inputs.
        whole
            Buffer of outputs and signals at the end of the whole step.
        """


@dataclass(frozen=True, slots=True)
class StepDoubling(OfOutputs, Doubling):
    """Difference of outputs after the halves and after the whole step, as an estimate of the error of the halves.

    ``sqrt(mean(((y - whole) / (absolute nominal + relative |y|)) ** 2)) / (2 ** p - 1)`` over the outputs of the power
    bonds; if there are none, over all continuous outputs that feed others. p is one more than the degree of extrapolation.

    Parameters
    ----------
    absolute : float
        In multiples of the nominal values of the outputs.
    relative : float

    Source: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.4, eqs. (4.4) and (4.11);
    Gomes et al. (2017), Co-simulation: state of the art, section 4.3.4.
    """

    absolute: float = 1e-3
    relative: float = 1e-3
    name: ClassVar[str] = "doubling_error"

    def __post_init__(self) -> None:
        if not (self.absolute > 0 and self.relative >= 0):
            raise OptionError(f"{self}: expected absolute > 0 and relative >= 0.")

    def order(self, degree: int) -> int:
        """Two more than the degree of extrapolation: the order of states.

        For outputs that depend directly on inputs it is one less, unless they are refreshed. The controller is slower then.
        """
        return degree + 2

    def difference(self, degree: int, plan: Plan, whole: int) -> WeightedChange:
        """The hook that writes the signals."""
        judged, signals = judged_outputs(plan), plan.layout.signals
        return WeightedChange(
            whole,
            np.array([o.slot for o in judged], np.int64),
            np.array([o.nominal for o in judged]),
            signals[self.name][1],
            signals[self.worst][1],
            self.absolute,
            self.relative,
            2.0 ** (degree + 1) - 1.0,
        )


@dataclass(frozen=True, slots=True)
class EnergyDoubling(OfBonds, Doubling):
    """Difference of the power of bonds after the halves and after the whole step, as an energy.

    ``sqrt(mean((|P - whole| h / (r (E0 + |P h|))) ** 2))`` over the bonds with a scale E0 and a tolerance r, where P is the
    power from the first component to the second one and h the length of the whole step.

    Source: fmimaster, with the norm of Sadjina et al. (2017), eq. (14).
    """

    name: ClassVar[str] = "energy_doubling_error"

    def sources(self, plan: Plan) -> tuple[str, ...]:
        """The bonds with scale and tolerance."""
        return tuple(bond.name for bond in plan.power_bonds if bond.has_error)

    def difference(self, degree: int, plan: Plan, whole: int) -> EnergyDifference:
        """The hook that writes the signals."""
        del degree
        signals = plan.layout.signals
        bonds = tuple(bond for bond in plan.power_bonds if bond.has_error)
        return EnergyDifference(whole, bonds, signals[self.name][1], signals[self.worst][1])


@dataclass(frozen=True, slots=True, eq=False)
class EnergyDifference(Hook):
    """Difference between the power of bonds and that in a buffer, as an energy over the step → two signals.

    Parameters
    ----------
    buffer : int
    bonds : of BondPlan, each with a scale and a tolerance
    error, worst : int
        Indices into the Float64 outputs: of the error, and of the number of the bond with the largest part.
    """

    buffer: int
    bonds: tuple[BondPlan, ...]
    error: int
    worst: int
    name: ClassVar[str] = "difference of energies"  # type: ignore[misc]

    def __call__(self, store: ValueStore) -> bool:
        """Write both signals."""
        now = store.outputs[DataType.FLOAT64]
        then = store.buffers[self.buffer][0][DataType.FLOAT64]
        sums, worst = [0.0, 0.0], [0]
        for k, bond in enumerate(self.bonds):
            slot = bond.signals + BondSignal.POWER
            length = store.read.item(bond.ports[0].instance) - store.interval[0]
            energy, change = now.item(slot) * length, (now.item(slot) - then.item(slot)) * length
            part = abs(change) / ((bond.tolerance or 0.0) * ((bond.scale or 0.0) + abs(energy)))
            add_part(part, part, k, sums, worst)
        now[self.error] = sqrt(sums[0] / len(self.bonds))
        now[self.worst] = float(worst[0])
        return False

    def twin(self, store: ValueStore) -> Twin:
        """The same in C."""
        del store
        bonds = self.bonds
        return Twin(
            "difference of energies",
            numbers={
                "n": len(bonds),
                "buffer": self.buffer,
                "error": self.error,
                "worst": self.worst,
            },
            arrays={
                "powers": np.array([b.signals + BondSignal.POWER for b in bonds], np.int64),
                "instances": np.array([b.ports[0].instance for b in bonds], np.int64),
                "scales": np.array([b.scale for b in bonds], np.float64),
                "tolerances": np.array([b.tolerance for b in bonds], np.float64),
            },
        )
