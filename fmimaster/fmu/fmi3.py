"""An FMI 3.0 Co-Simulation FMU as an instance."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from fmpy.fmi3 import (
    FMU3Model,
    FMU3ScheduledExecution,
    FMU3Slave,
    fmi3IntermediateUpdateCallback,
    fmi3LogMessageCallback,
)
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.call_log import DISCARD, SUCCESS, MessageLog
from fmimaster.fmu.instance import InstanceOptions, Signal, StepAnswer, Transfer, UpdateAnswer
from fmimaster.fmu.intermediate import InsideOfSteps, inputs_in_steps
from fmimaster.fmu.kernel_entry import Binding
from fmimaster.fmu.shared_library import Tolerant
from fmimaster.system.clocks import Intervals, Qualifier, exact
from fmimaster.system.model import DataType, Model

_POINTER_BOOL = ctypes.POINTER(ctypes.c_bool)
_POINTER_DOUBLE = ctypes.POINTER(ctypes.c_double)


class _Answers:
    """Outputs of ``DoStep``, in the order of its arguments."""

    def __init__(self) -> None:
        self.event, self.terminate, self.early = (ctypes.c_bool() for _ in range(3))
        self.reached = ctypes.c_double()
        every = self.event, self.terminate, self.early, self.reached
        self.pointers = tuple(ctypes.pointer(one) for one in every)


class _Fmi3Tolerant(Tolerant):
    """Common part of the classes of FMI 3.0.

    Attributes
    ----------
    resources : bytes or None
        Path of the folder with resources for instances. FMI 3.0, 2.3.1: null if the FMU has no such folder. FMUs of the
        FMI Toolbox need it although it is empty.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        resources = Path(self.unzipDirectory, "resources")
        self.resources = f"{resources}{os.sep}".encode() if resources.is_dir() else None


class FMU3Tolerant(_Fmi3Tolerant, FMU3Slave):  # type: ignore[misc]
    """fmpy's FMI 3.0 class."""


class FMU3ModelTolerant(_Fmi3Tolerant, FMU3Model):  # type: ignore[misc]
    """fmpy's FMI 3.0 class for Model Exchange."""


class FMU3ScheduledTolerant(_Fmi3Tolerant, FMU3ScheduledExecution):  # type: ignore[misc]
    """fmpy's FMI 3.0 class for Scheduled Execution."""


class Fmi3Instance(BinaryInstance):
    """One instance of an FMI 3.0 Co-Simulation FMU."""

    fmpy_class = FMU3Tolerant
    prefix = "fmi3"
    state = "FMUState"
    deserialize_function = "DeserializeFMUState"
    boolean = ctypes.c_bool

    def __init__(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        self._initialized = False
        inputs = inputs_in_steps(model) if options.polynomial_inputs else ()
        self.inside = InsideOfSteps(inputs, options.intermediate_outputs)
        super().__init__(fmu, model, name, messages, options)
        self.inside.bind(self.getter)

    def _instantiate(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        required, inside = self.inside.required, self.inside
        n = len(required)
        self._update_callback = options.update_callback if n else None
        # the callback is called twice or more in each step: FMUs get it only if it is needed
        if self._update_callback is not None:
            update = fmi3IntermediateUpdateCallback(self._update_callback.function)
            if inside.outputs is not None:
                self._update_callback.read(inside.read)
        elif n:
            update = fmi3IntermediateUpdateCallback(inside.update)
        else:
            update = fmi3IntermediateUpdateCallback()
        self.make(
            "InstantiateCoSimulation",
            (fmu, model, name, messages, options),
            (
                options.event_mode,
                options.early_return,
                (ctypes.c_uint32 * n)(*required) if n else None,
                n,
            ),
            None if self._update_callback is None else self._update_callback.environment,
            (update,),
        )

    def make(
        self,
        function: str,
        what: tuple[Any, Model, str, MessageLog, InstanceOptions],
        own: tuple[Any, ...] = (),
        environment: Any = None,
        callbacks: tuple[Any, ...] = (),
    ) -> None:
        """Instantiate the FMU by one of three functions.

        Parameters
        ----------
        what
            The arguments of :meth:`_instantiate`.
        own
            Arguments that only this function has.
        environment, callbacks
            The instance environment, and the callbacks besides that for messages; they live as long as the instance.
        """
        fmu, model, name, messages, options = what
        fmu.must_have(self.prefix + function)
        log_message = fmi3LogMessageCallback(
            lambda _environment, status, category, text: messages.add(status, category, text)
        )
        self._callbacks = log_message, *callbacks
        fmu.component = getattr(fmu, self.prefix + function)(
            name.encode(),
            model.instantiation_token.encode(),
            fmu.resources,
            False,
            options.logging_on,
            *own,
            environment,
            *self._callbacks,
        )
        if not fmu.component:
            raise ValueError(f"{self.prefix}{function} returned null")

    @property
    def binding(self) -> Binding:
        """How the kernel calls its functions, also in Intermediate Update Mode."""
        binding = super().binding
        return replace(
            binding,
            intermediate=self.inside.inputs,
            update_callback=self._update_callback,
            raise_failure=self.inside.raise_failure(binding.raise_failure),
        )

    def _accessor(
        self, verb: str, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Transfer:
        if kind is DataType.BINARY:
            return self._binary(verb, references, values)
        name = verb + kind.value
        if kind is DataType.STRING:
            return self.strings(name, references, values, ctypes.c_size_t(len(values)))
        array = (self.pointer(values),) if kind is DataType.CLOCK else self.sized(values)
        refs, n = self.references(references), ctypes.c_size_t(len(references))
        return self.transfer(name, refs, n, *array)

    def sized(self, values: NDArray[Any]) -> tuple[Any, ...]:
        """Address and length of an array."""
        return self.pointer(values), ctypes.c_size_t(len(values))

    def _binary(self, verb: str, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        refs, n, size = self.references(references), len(references), len(values)
        lengths = (ctypes.c_size_t * size)()
        pointers = (ctypes.c_void_p * size)()
        act = self.transfer(
            f"{verb}Binary", refs, ctypes.c_size_t(n), lengths, pointers, ctypes.c_size_t(size)
        )

        def read() -> None:
            act()
            for k, (pointer, length) in enumerate(zip(pointers, lengths, strict=True)):
                values[k] = ctypes.string_at(pointer, length) if length else b""

        def write() -> None:
            buffers = [ctypes.create_string_buffer(v, len(v)) for v in values]
            lengths[:] = [len(v) for v in values]
            pointers[:] = [ctypes.addressof(b) for b in buffers]
            act()

        return read if verb == "Get" else write

    def intervals(self, clocks: Sequence[int], answers: Intervals) -> Transfer:
        """A function that calls ``GetIntervalFraction`` for clocks that support fractions, ``GetIntervalDecimal`` for all
        others."""
        by_fraction = [k for k, clock in enumerate(clocks) if clock in self._with_fractions]
        by_decimal = [k for k, clock in enumerate(clocks) if clock not in self._with_fractions]
        chosen = {"GetIntervalFraction": by_fraction, "GetIntervalDecimal": by_decimal}
        acts = [self._get_intervals(f, clocks, its, answers) for f, its in chosen.items() if its]

        def act() -> None:
            answers.resolution[:] = 0
            for get in acts:
                get()

        return act

    def _get_intervals(
        self, name: str, clocks: Sequence[int], chosen: list[int], answers: Intervals
    ) -> Transfer:
        """A function that calls one of both functions for some of the clocks."""
        is_fraction = name == "GetIntervalFraction"
        all_of = (answers.counter, answers.resolution) if is_fraction else (answers.seconds,)
        pairs = [(whole, whole[chosen]) for whole in (*all_of, answers.qualifier)]
        references = self.references([clocks[k] for k in chosen])
        n = ctypes.c_size_t(len(chosen))
        get = self.transfer(name, references, n, *[self.pointer(part) for _, part in pairs])

        def act() -> None:
            get()
            for whole, part in pairs:
                whole[chosen] = part
            changed = answers.qualifier[chosen] == Qualifier.CHANGED
            if is_fraction and not answers.resolution[chosen][changed].all():
                self._refuse_resolution(name)

        return act

    def raise_failure(self, name: str, status: int, step: float) -> None:
        """Raise the error for a call that was made by the kernel; of one that succeeded, the answer is not valid."""
        if status in SUCCESS and name.startswith("GetInterval"):
            self._refuse_resolution(name)
        super().raise_failure(name, status, step)

    def _refuse_resolution(self, name: str) -> None:
        raise CallError(
            f"{self.prefix}{name} of '{self.name}' gave the resolution 0. Expected a whole number above 0; ask the FMU's "
            "vendor.",
            instance=self.name,
            function=self.prefix + name,
            status="not valid",
            time=self.clock(),
        )

    def shift(self, clock: int) -> Fraction:
        """``GetShiftFraction`` or ``GetShiftDecimal``."""
        one = ctypes.byref(ctypes.c_uint32(clock)), ctypes.c_size_t(1)
        if clock in self._with_fractions:
            counter, resolution = ctypes.c_uint64(), ctypes.c_uint64()
            self.call("GetShiftFraction", *one, ctypes.byref(counter), ctypes.byref(resolution))
            if not resolution.value:
                self._refuse_resolution("GetShiftFraction")
            return Fraction(counter.value, resolution.value)
        seconds = ctypes.c_double()
        self.call("GetShiftDecimal", *one, ctypes.byref(seconds))
        return exact(seconds.value)

    def set_interval(self, clock: int, interval: Fraction) -> None:
        """``SetIntervalFraction`` or ``SetIntervalDecimal``."""
        self._set_time("Interval", clock, interval)

    def set_shift(self, clock: int, shift: Fraction) -> None:
        """``SetShiftFraction`` or ``SetShiftDecimal``."""
        self._set_time("Shift", clock, shift)

    def _set_time(self, what: str, clock: int, seconds: Fraction) -> None:
        one = ctypes.byref(ctypes.c_uint32(clock)), ctypes.c_size_t(1)
        if clock in self._with_fractions and max(seconds.as_integer_ratio()) < 2**64:
            counter = ctypes.c_uint64(seconds.numerator)
            resolution = ctypes.c_uint64(seconds.denominator)
            self.call(f"Set{what}Fraction", *one, ctypes.byref(counter), ctypes.byref(resolution))
        else:
            self.call(f"Set{what}Decimal", *one, ctypes.byref(ctypes.c_double(float(seconds))))

    @cached_property
    def _with_fractions(self) -> frozenset[int]:
        """Clocks whose times are fractions in FMI calls."""
        clocks = (v for v in self.model.variables if v.clock is not None)
        return frozenset(v.value_reference for v in clocks if v.clock and v.clock.supports_fraction)

    def _polynomials(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that keeps the signal for Intermediate Update Mode, in which the FMU requests values; inputs without
        ``intermediateUpdate`` keep their value from the start of a step."""
        inside = self.inside
        if not set(references).intersection(inside.inputs):
            return lambda *_: None
        refresh = self.present_values(references, inside.inputs)

        def set_polynomials(_: float, signal: Signal) -> None:
            inside.refresh = lambda now: refresh(now, signal)

        return set_polynomials

    def enter_configuration_mode(self) -> None:
        """``EnterConfigurationMode``."""
        self.call("EnterConfigurationMode")

    def exit_configuration_mode(self) -> None:
        """``ExitConfigurationMode``."""
        self.call("ExitConfigurationMode")

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """``EnterInitializationMode``."""
        self.call("EnterInitializationMode", *self.experiment(start, stop, tolerance))

    def enter_event_mode(self) -> None:
        """``ExitInitializationMode`` if Event Mode is used, or ``EnterEventMode``."""
        self.call("EnterEventMode" if self._initialized else "ExitInitializationMode")
        self._initialized = True

    def enter_step_mode(self) -> None:
        """``ExitInitializationMode`` if Event Mode is not used, or ``EnterStepMode``."""
        self.call("EnterStepMode" if self._initialized else "ExitInitializationMode")
        self._initialized = True

    def reset(self) -> None:
        """``Reset``."""
        super().reset()
        self._initialized = False

    def update_discrete_states(self) -> UpdateAnswer:
        """``UpdateDiscreteStates``."""
        wants, terminate, nominals, states, defined = (ctypes.c_bool() for _ in range(5))
        time = ctypes.c_double()
        answers = (wants, terminate, nominals, states, defined, time)
        self.call("UpdateDiscreteStates", *[ctypes.byref(answer) for answer in answers])
        return UpdateAnswer(wants.value, terminate.value, time.value if defined.value else inf)

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Step from ``time`` by ``size``."""
        (step, said), inside = self._step, self.inside
        if inside.outputs is not None:
            inside.outputs.begin(time)
        # True where no state of an earlier time will be restored; see Fmi2Instance.do_step
        status = step(self.component, time, size, self.kept_from() >= time, *said.pointers)
        if inside.failure is not None:
            raise inside.failure
        if status == DISCARD:
            # its other results are undefined, and its time is unchanged
            return StepAnswer(time, discarded=True, messages=tuple(self.messages.last))
        if status not in SUCCESS:
            self.fail("DoStep", status, size)
        if not (said.terminate.value or said.early.value or said.event.value):
            return None
        answer = StepAnswer(
            said.reached.value,
            terminate=said.terminate.value,
            early=said.early.value,
            event=said.event.value,
            messages=tuple(self.messages.last),
        )
        # an FMU that does not write them in its next step has no such results
        said.terminate.value = said.early.value = said.event.value = False
        return answer

    @cached_property
    def _step(self) -> tuple[Callable[..., int], _Answers]:
        """``DoStep`` with its outputs; the kernel has its own."""
        types = ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_bool
        answers = (_POINTER_BOOL,) * 3 + (_POINTER_DOUBLE,)
        return self.function("DoStep", *types, *answers), _Answers()
