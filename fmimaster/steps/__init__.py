"""Step-size rules, and estimators of the error of a step."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.steps.doubling_errors import EnergyDoubling as EnergyDoubling
    from fmimaster.steps.doubling_errors import PowerResidual as PowerResidual
    from fmimaster.steps.doubling_errors import StepDoubling as StepDoubling
    from fmimaster.steps.halved import Halved as Halved
    from fmimaster.steps.locate import Locate as Locate
    from fmimaster.steps.multi_rate import MultiRate as MultiRate
    from fmimaster.steps.pid import PID as PID
    from fmimaster.steps.prediction_errors import EmbeddedOrders as EmbeddedOrders
    from fmimaster.steps.prediction_errors import PredictorCorrector as PredictorCorrector
    from fmimaster.steps.ramp import FreeStep as FreeStep
    from fmimaster.steps.ramp import Ramp as Ramp
    from fmimaster.steps.step_rule import FixedStep as FixedStep
    from fmimaster.steps.step_rule import StepRule as StepRule
else:
    __getattr__, __dir__ = public_names(__name__)
