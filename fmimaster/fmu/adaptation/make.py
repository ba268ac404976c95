"""An element → its instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fmimaster.fmu.adaptation.at_thresholds import LevelCrossingInstance, QuantizerInstance
from fmimaster.fmu.adaptation.at_ticks import (
    EventCounterInstance,
    MicrostepDelayInstance,
    SampleAndHoldInstance,
    UnitDelayInstance,
)
from fmimaster.fmu.instance import Instance
from fmimaster.system.adaptation import (
    Adaptation,
    EventCounter,
    LevelCrossing,
    Quantizer,
    SampleAndHold,
    UnitDelay,
)

_KINDS: Mapping[type[Adaptation], Callable[[str, Any], Instance]] = {
    SampleAndHold: SampleAndHoldInstance,
    EventCounter: EventCounterInstance,
    LevelCrossing: LevelCrossingInstance,
    Quantizer: QuantizerInstance,
}


def adaptation_instance(element: Adaptation, name: str) -> Instance:
    """An element as an instance of this name."""
    if isinstance(element, UnitDelay):
        return (MicrostepDelayInstance if element.microstep else UnitDelayInstance)(name, element)
    return _KINDS[type(element)](name, element)
