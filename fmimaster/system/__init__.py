"""A system: its components, connections and FMUs, read from files or built in Python."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.system.adaptation import Direction as Direction
    from fmimaster.system.adaptation import EventCounter as EventCounter
    from fmimaster.system.adaptation import LevelCrossing as LevelCrossing
    from fmimaster.system.adaptation import Quantizer as Quantizer
    from fmimaster.system.adaptation import SampleAndHold as SampleAndHold
    from fmimaster.system.adaptation import UnitDelay as UnitDelay
    from fmimaster.system.builder import SystemBuilder as SystemBuilder
    from fmimaster.system.clocks import ClockInterval as ClockInterval
    from fmimaster.system.clocks import Lifetime as Lifetime
    from fmimaster.system.description import ConstraintEnd as ConstraintEnd
    from fmimaster.system.description import Level as Level
    from fmimaster.system.description import Port as Port
    from fmimaster.system.description import PowerBond as PowerBond
    from fmimaster.system.model import Unit as Unit
    from fmimaster.system.python_component import PythonComponent as PythonComponent
    from fmimaster.system.read import read_system as read_system
else:
    __getattr__, __dir__ = public_names(__name__)
