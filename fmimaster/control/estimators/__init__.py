"""Estimators: how large the error of a step is, as one number; 1 is the tolerance."""

from fmimaster.control.estimators.embedded_orders import EmbeddedOrders
from fmimaster.control.estimators.estimator import Estimator, Measured
from fmimaster.control.estimators.power_residual import PowerResidual
from fmimaster.control.estimators.predictor_corrector import PredictorCorrector
from fmimaster.control.estimators.step_doubling import Doubling, EnergyDoubling, StepDoubling

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
