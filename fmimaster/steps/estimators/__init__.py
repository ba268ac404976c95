"""Estimators of the error of a step: one number, where 1 is the tolerance. Each is imported at its first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmimaster.steps.estimators.embedded_orders import EmbeddedOrders
    from fmimaster.steps.estimators.estimator import Estimator, Measured
    from fmimaster.steps.estimators.power_residual import PowerResidual
    from fmimaster.steps.estimators.predictor_corrector import PredictorCorrector
    from fmimaster.steps.estimators.step_doubling import Doubling, EnergyDoubling, StepDoubling

_MODULES = {
    "Doubling": "step_doubling",
    "EmbeddedOrders": "embedded_orders",
    "EnergyDoubling": "step_doubling",
    "Estimator": "estimator",
    "Measured": "estimator",
    "PowerResidual": "power_residual",
    "PredictorCorrector": "predictor_corrector",
    "StepDoubling": "step_doubling",
}
"""Name → the module of this package that defines it: a run with fixed steps needs only ``estimator``."""


def __getattr__(name: str) -> Any:
    """An estimator, imported at its first use: imports take most of the time of a short run."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = [
    "Doubling",
    "EmbeddedOrders",
    "EnergyDoubling",
    "Estimator",
    "Measured",
    "PowerResidual",
    "PredictorCorrector",
    "StepDoubling",
]
