"""Model Exchange FMUs of FMI 2.0 and of FMI 3.0: the calls that differ."""

from __future__ import annotations

import ctypes
from math import inf
from typing import Any

from fmpy.fmi2 import fmi2EventInfo

from fmimaster.fmu.call_log import MessageLog
from fmimaster.fmu.fmi2 import Fmi2Instance, FMU2ModelTolerant
from fmimaster.fmu.fmi3 import Fmi3Instance, FMU3ModelTolerant
from fmimaster.fmu.instance import InstanceOptions, UpdateAnswer
from fmimaster.fmu.model_exchange.instance import ModelExchangeInstance
from fmimaster.system.model import Model


class Fmi2ModelExchange(ModelExchangeInstance, Fmi2Instance):
    """An instance of a Model Exchange FMU of FMI 2.0."""

    fmpy_class = FMU2ModelTolerant
    update_function = "NewDiscreteStates"

    def _counts(self) -> tuple[int, int]:
        return self.model.n_states, self.model.n_event_indicators

    def _update(self) -> UpdateAnswer:
        info = fmi2EventInfo()
        self.call(self.update_function, ctypes.byref(info))
        return UpdateAnswer(
            bool(info.newDiscreteStatesNeeded),
            bool(info.terminateSimulation),
            float(info.nextEventTime) if info.nextEventTimeDefined else inf,
        )


class Fmi3ModelExchange(ModelExchangeInstance, Fmi3Instance):
    """An instance of a Model Exchange FMU of FMI 3.0."""

    fmpy_class = FMU3ModelTolerant
    update_function = "UpdateDiscreteStates"

    def _instantiate(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        self._update_callback = None  # there are no intermediate updates
        self.make("InstantiateModelExchange", (fmu, model, name, messages, options))

    def _counts(self) -> tuple[int, int]:
        counts = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("GetNumberOfContinuousStates", ctypes.byref(counts[0]))
        self.call("GetNumberOfEventIndicators", ctypes.byref(counts[1]))
        return counts[0].value, counts[1].value

    def _update(self) -> UpdateAnswer:
        return Fmi3Instance.update_discrete_states(self)
