"""An FMI 2.0 Co-Simulation FMU as an instance, in the terms of FMI 3.0."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
from fmpy.fmi2 import (
    FMU2Model,
    FMU2Slave,
    addLoggerProxy,
    calloc,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
)
from fmpy.fmi2 import fmi2CallbackAllocateMemoryTYPE as AllocateType
from fmpy.fmi2 import fmi2CallbackFreeMemoryTYPE as FreeType
from fmpy.fmi2 import free as free_memory
from numpy.typing import NDArray

from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.call_log import DISCARD, ERROR, SUCCESS, MessageLog
from fmimaster.fmu.instance import InstanceOptions, Signal, StepAnswer, Transfer
from fmimaster.fmu.shared_library import Tolerant
from fmimaster.system.model import DataType, Model

_DO_STEP_STATUS, _PENDING_STATUS, _LAST_SUCCESSFUL_TIME, _TERMINATED = range(4)

_FUNCTION = {
    DataType.FLOAT64: "Real",
    DataType.INT32: "Integer",
    DataType.BOOLEAN: "Boolean",
    DataType.STRING: "String",
}


class _Fmi2Tolerant(Tolerant):
    """Common part of the classes of FMI 2.0.

    Attributes
    ----------
    kind : int
        What is instantiated: Model Exchange 0, Co-Simulation 1.
    resources : bytes
        URI of the folder with resources for instances.
    """

    kind: ClassVar[int]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.resources = Path(self.unzipDirectory, "resources").as_uri().encode()


class FMU2Tolerant(_Fmi2Tolerant, FMU2Slave):  # type: ignore[misc]
    """fmpy's FMI 2.0 class; fmpy derives the FMI version from the name of its class."""

    kind = 1


class FMU2ModelTolerant(_Fmi2Tolerant, FMU2Model):  # type: ignore[misc]
    """fmpy's FMI 2.0 class for Model Exchange."""

    kind = 0


class Fmi2Instance(BinaryInstance):
    """One instance of an FMI 2.0 Co-Simulation FMU."""

    fmpy_class = FMU2Tolerant
    prefix = "fmi2"
    state = "FMUstate"
    deserialize_function = "DeSerializeFMUstate"
    boolean = ctypes.c_int

    def _instantiate(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        fmu.must_have("fmi2Instantiate")
        self._callbacks = _callbacks(name, messages)
        fmu.component = fmu.fmi2Instantiate(
            name.encode(),
            fmu.kind,
            model.instantiation_token.encode(),
            fmu.resources,
            ctypes.byref(self._callbacks),
            False,
            options.logging_on,
        )
        if not fmu.component:
            raise ValueError("fmi2Instantiate returned null")

    def _accessor(
        self, verb: str, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Transfer:
        name = verb + _FUNCTION[kind]
        if kind is DataType.STRING:
            return self.strings(name, references, values)
        refs, n = self.references(references), ctypes.c_size_t(len(references))
        if kind is not DataType.BOOLEAN:
            return self.transfer(name, refs, n, self.pointer(values))
        # fmi2Boolean is an int, a Boolean in the value store is one byte
        buffer = np.zeros(len(values), dtype=np.int32)
        act = self.transfer(name, refs, n, self.pointer(buffer))

        def read() -> None:
            act()
            np.not_equal(buffer, 0, out=values)

        def write() -> None:
            buffer[:] = values
            act()

        return read if verb == "Get" else write

    def _polynomials(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets the time derivatives of these inputs."""
        highest = self.model.capabilities.max_input_derivative_order
        n = len(references)
        refs = self.references([r for _ in range(highest) for r in references])
        orders = (ctypes.c_int * (highest * n))(*[k + 1 for k in range(highest) for _ in range(n)])
        values = np.zeros((highest, n))
        act = self.transfer(
            "SetRealInputDerivatives",
            refs,
            ctypes.c_size_t(highest * n),
            orders,
            self.pointer(values),
        )

        def set_polynomials(time: float, signal: Signal) -> None:
            for k in range(highest):
                values[k] = signal(time, k + 1)
            act()

        return set_polynomials

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``SetupExperiment`` and ``EnterInitializationMode``, which are one call in FMI 3.0."""
        self.call("SetupExperiment", *self.experiment(start, stop, tolerance))
        self.call("EnterInitializationMode")

    def enter_step_mode(self) -> None:
        """``ExitInitializationMode``."""
        self.call("ExitInitializationMode")

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Step from ``time`` by ``size``; after Discard, the status of the FMU gives the time reached."""
        # True where no state of an earlier time will be restored. FMI allows False always, but some FMUs (the quarter
        # truck of libcosim) commit a step only with True, and would not advance.
        status = self._step(self.component, time, size, self.kept_from() >= time)
        if status in SUCCESS:
            return None
        if status != DISCARD:
            self.fail("DoStep", status, size)
        return self._discarded(time)

    @cached_property
    def _step(self) -> Callable[..., int]:
        """``DoStep``; the kernel has its own."""
        return self.function(
            "DoStep", ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_int
        )

    def _discarded(self, time: float) -> StepAnswer:
        """The answer for a discarded step from ``time``, from the status of the FMU."""
        reached = self._status_value("GetRealStatus", _LAST_SUCCESSFUL_TIME, ctypes.c_double(time))
        terminated = self._status_value("GetBooleanStatus", _TERMINATED, ctypes.c_int(0))
        return StepAnswer(
            reached, discarded=True, terminate=bool(terminated), messages=tuple(self.messages.last)
        )

    def _status_value(self, name: str, kind: int, default: Any) -> Any:
        """A value of the FMU's status; the default if the FMU cannot provide it.

        The standard defines Discard for this case, but some FMUs return Error, or their library lacks the function.
        """
        if not self.address(name):
            return default.value
        value = type(default)(default.value)
        status = self.function(name)(self.component, kind, ctypes.byref(value))
        if status not in (*SUCCESS, DISCARD, ERROR):
            self.fail(name, status)
        return value.value if status in SUCCESS else default.value


_LOGS: WeakValueDictionary[int | bytes, MessageLog] = WeakValueDictionary()
"""Instance environment → log, and instance name → log of the last instance of that name, for FMUs that do not pass their
environment on. fmpy formats the messages of all FMUs in one C function, so there can be only one receiver."""

_ENVIRONMENTS = count(1)
"""An instance environment is a number: two runs may have instances of the same name."""


def _receive(
    environment: int | None, instance: bytes | None, status: int, category: bytes, text: bytes
) -> None:
    messages = _LOGS.get(environment or 0) or _LOGS.get(instance or b"")
    if messages is not None:
        messages.add(status, category, text)


_LOGGER = fmi2CallbackLoggerTYPE(_receive)


@cache
def _lasting_callbacks() -> Any:
    """Shared parts of the callbacks of all FMI 2.0 instances; they exist as long as the process."""
    callbacks = fmi2CallbackFunctions()
    callbacks.allocateMemory = AllocateType(calloc)
    callbacks.freeMemory = FreeType(free_memory)
    return callbacks


def _callbacks(name: str, messages: MessageLog) -> Any:
    """The callbacks of an instance, with fmimaster as the receiver of messages.

    Other code that uses fmpy in this process may have set another receiver, which may not exist any more.
    """
    callbacks = fmi2CallbackFunctions.from_buffer_copy(_lasting_callbacks())
    callbacks.logger = _LOGGER
    addLoggerProxy(ctypes.byref(callbacks))  # formats printf arguments in C
    environment = next(_ENVIRONMENTS)
    callbacks.componentEnvironment = environment
    _LOGS[environment] = _LOGS[name.encode()] = messages
    return callbacks
