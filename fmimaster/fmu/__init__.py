"""FMUs of all kinds as instances, what a run does at faults, and solvers of Model Exchange."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.fmu.fault_policy import Drop as Drop
    from fmimaster.fmu.fault_policy import FaultPolicy as FaultPolicy
    from fmimaster.fmu.fault_policy import Restart as Restart
    from fmimaster.fmu.fault_policy import Stop as Stop
    from fmimaster.fmu.manifest_writer import add_manifest as add_manifest
    from fmimaster.fmu.model_exchange.cvode import Cvode as Cvode
    from fmimaster.fmu.model_exchange.cvode import Jacobian as Jacobian
    from fmimaster.fmu.model_exchange.one_step import DormandPrince as DormandPrince
    from fmimaster.fmu.model_exchange.one_step import Euler as Euler
else:
    __getattr__, __dir__ = public_names(__name__)
