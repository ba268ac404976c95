"""The energy that power bonds create or lose in a step, as the error of the step: the indicator of ECCO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fmimaster.base.errors import OptionError
from fmimaster.plan.layout import Signal
from fmimaster.plan.plan import Plan
from fmimaster.steps.estimators.estimator import Estimator
from fmimaster.system.notes import listed


@dataclass(frozen=True, slots=True)
class PowerResidual(Estimator):
    """Residual energy of all power bonds over a step, relative to their tolerances and energy scales.

    ``sqrt(mean((dE / (r (E0 + |E|))) ** 2))`` over the bonds, with the residual energy dE and the transmitted energy E of
    the step. The hook of the bonds writes it.

    Source: Sadjina et al. (2017), Energy conservation and power bonds in co-simulations, eq. (14).
    """

    name: ClassVar[str] = "energy_error"

    def order(self, degree: int) -> int:
        """Two more than the degree of extrapolation: one for the power, and one more for the energy of a step."""
        return degree + 2

    def signals(self) -> tuple[Signal, ...]:
        """No signals: the hook of the bonds writes them."""
        return ()

    def sources(self, plan: Plan) -> tuple[str, ...]:
        """The bonds."""
        return tuple(bond.name for bond in plan.power_bonds)

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
