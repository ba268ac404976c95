"""One way to use a reference FMU of either FMI version, through fmpy alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import fmpy
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import (
    FMU2Slave,
    defaultCallbacks,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
)
from fmpy.fmi3 import FMU3Slave
from fmpy.logging import addLoggerProxy

MODELS = (
    "BouncingBall",
    "CradleBall",
    "Dahlquist",
    "Faulty",
    "Feedthrough",
    "FourUnitsS1",
    "FourUnitsS2",
    "FourUnitsS3",
    "FourUnitsS4",
    "HybridLinear",
    "LinearSystem",
    "LoopFunction",
    "LoopStart",
    "QuarterCarChassisA",
    "QuarterCarChassisB",
    "QuarterCarSeatedChassis",
    "QuarterCarWheelA",
    "QuarterCarWheelB",
    "RopeMass",
    "ThermostatController",
    "ThermostatRoom",
    "TwoMassLower",
    "TwoMassUpper",
)
VERSIONS = ("fmi2", "fmi3")

_LOGGERS: list[Any] = []
"""Loggers of FMI 2.0, which are never freed: fmpy's proxy hands the messages of all FMUs of a process to the last one."""


class Update(NamedTuple):
    """What fmi3UpdateDiscreteStates says."""

    again: bool
    terminate: bool
    nominals_changed: bool
    states_changed: bool
    next_time_defined: bool
    next_time: float


class Known(Enum):
    """fmi3IntervalQualifier."""

    NOT_YET = 0
    UNCHANGED = 1
    CHANGED = 2


class Interval(NamedTuple):
    """What an FMU says of the interval of a clock."""

    known: Known
    seconds: Fraction | None


class Instance:
    """An instance of a reference FMU, with its variables by name and its log.

    fmpy's proxy for the logger of FMI 2.0 calls the newest one for all instances; therefore the
    logs of all instances are in one dictionary, by instance name.
    """

    def __init__(
        self, archive: Path, folder: Path, version: str, logs: dict[str, list[str]], **options: Any
    ) -> None:
        description = fmpy.read_model_description(archive)
        self.variables = {v.name: v for v in description.modelVariables}
        self.version = version
        self.log = logs[folder.name] = []
        self.time = 0.0
        make = FMU2Slave if version == "fmi2" else FMU3Slave
        self.fmu = make(
            guid=description.guid,
            modelIdentifier=description.coSimulation.modelIdentifier,
            unzipDirectory=fmpy.extract(archive, folder),
            instanceName=folder.name,
        )
        if version == "fmi2":
            self._callbacks = fmi2CallbackFunctions.from_buffer_copy(defaultCallbacks)
            self._logger = fmi2CallbackLoggerTYPE(
                lambda _e, name, _s, _c, text: logs.setdefault(name.decode(), []).append(
                    text.decode()
                )
            )
            self._callbacks.logger = self._logger
            _LOGGERS.append(self._logger)
            addLoggerProxy(ctypes.byref(self._callbacks))
            self.fmu.instantiate(callbacks=self._callbacks, **options)
        else:
            self.fmu.instantiate(
                logMessage=lambda _e, _s, _c, text: self.log.append(text.decode()), **options
            )

    def _access(self, verb: str, name: str) -> Callable[..., Any]:
        type_ = self.variables[name].type
        if type_ == "Enumeration":
            type_ = "Integer" if self.version == "fmi2" else "Int64"
        access: Callable[..., Any] = getattr(self.fmu, verb + type_)
        return access

    def __getitem__(self, name: str) -> Any:
        variable = self.variables[name]
        get = self._access("get", name)
        if variable.shape:
            return get([variable.valueReference], nValues=variable.shape[0])
        [value] = get([variable.valueReference])
        is_encoded = variable.type == "String" and isinstance(value, bytes)  # fmpy, in FMI 2.0
        return value.decode() if is_encoded else value

    def __setitem__(self, name: str, value: Any) -> None:
        values = value if self.variables[name].shape else [value]
        self._access("set", name)([self.variables[name].valueReference], values)

    def initialize(self, stop: float | None = None, **values: Any) -> Instance:
        """Go to Step Mode at t = 0, with `values` set in Initialization Mode."""
        self.enter_initialization_mode(stop)
        for name, value in values.items():
            self[name] = value
        self.fmu.exitInitializationMode()
        return self

    def enter_initialization_mode(self, stop: float | None = None) -> None:
        if self.version == "fmi2":
            self.fmu.setupExperiment(startTime=0.0, stopTime=stop)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=0.0, stopTime=stop)

    def step(self, size: float) -> Any:
        """One step from where the instance stands; what fmpy's doStep returns."""
        result = self.fmu.doStep(self.time, size)
        self.time = result[3] if self.version == "fmi3" else self.time + size
        return result

    def discarded_step(self, size: float) -> float:
        """FMI 2.0: lastSuccessfulTime of a step that must be discarded."""
        with pytest.raises(FMICallException, match="discard"):
            self.fmu.doStep(self.time, size)
        last_successful_time = 2
        return float(self.fmu.getRealStatus(last_successful_time))

    def active(self, name: str) -> bool:
        """FMI 3.0: is this clock active?"""
        [value] = self.fmu.getClock([self.variables[name].valueReference])
        return bool(value)

    def activate(self, name: str, is_active: bool = True) -> None:
        self.fmu.setClock([self.variables[name].valueReference], [is_active])

    def _reference(self, name: str) -> ctypes.Array[ctypes.c_uint32]:
        return (ctypes.c_uint32 * 1)(self.variables[name].valueReference)

    def interval(self, name: str) -> Interval:
        """What fmi3GetIntervalFraction says of a clock; fmi3GetIntervalDecimal agrees if the interval is known."""
        counter, resolution = (ctypes.c_uint64 * 1)(), (ctypes.c_uint64 * 1)()
        qualifier = (ctypes.c_int * 1)()
        reference = self._reference(name)
        self.fmu.getIntervalFraction(reference, counter, resolution, qualifier)
        known = Known(qualifier[0])
        if known is Known.NOT_YET:
            return Interval(known, None)
        seconds = Fraction(counter[0], resolution[0])
        decimal = (ctypes.c_double * 1)()
        self.fmu.getIntervalDecimal(reference, decimal, qualifier)
        assert (decimal[0], qualifier[0]) == (float(seconds), Known.UNCHANGED.value)
        return Interval(known, seconds)

    def set_interval(self, name: str, seconds: Fraction) -> None:
        counter = (ctypes.c_uint64 * 1)(seconds.numerator)
        resolution = (ctypes.c_uint64 * 1)(seconds.denominator)
        self.fmu.setIntervalFraction(self._reference(name), counter, resolution)

    def shift(self, name: str) -> Fraction:
        counter, resolution = (ctypes.c_uint64 * 1)(), (ctypes.c_uint64 * 1)()
        self.fmu.getShiftFraction(self._reference(name), counter, resolution)
        return Fraction(counter[0], resolution[0])

    def update(self) -> Update:
        return Update(*self.fmu.updateDiscreteStates())

    def derivatives(self, unknowns: Sequence[str], knowns: Sequence[str]) -> list[list[float]]:
        """The Jacobian, by one directional derivative for each known."""
        references = [self.variables[name].valueReference for name in unknowns]
        columns = [
            self.fmu.getDirectionalDerivative(
                references, [self.variables[name].valueReference], [1.0]
            )
            for name in knowns
        ]
        return [list(row) for row in zip(*columns, strict=True)]


Instantiate = Callable[..., Instance]
"""``instantiate(model, version, **options of fmpy)``, as the fixture of this name does it."""
