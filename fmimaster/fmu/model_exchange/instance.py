"""A Model Exchange FMU with an integrator, as an instance that steps like a Co-Simulation FMU."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from fmpy.fmi2 import fmi2EventInfo
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.call_log import MessageLog
from fmimaster.fmu.fmi2 import Fmi2Instance, FMU2ModelTolerant
from fmimaster.fmu.fmi3 import Fmi3Instance, FMU3ModelTolerant
from fmimaster.fmu.instance import (
    InstanceOptions,
    Signal,
    Transfer,
    UpdateAnswer,
)
from fmimaster.fmu.intermediate import inputs_in_steps
from fmimaster.fmu.kernel_entry import Binding, E, KernelEntries
from fmimaster.fmu.kernel_memory import ExchangeMode, MemoryPlace
from fmimaster.fmu.model_exchange.steps import ExchangeSteps
from fmimaster.system.model import Causality, DataType, Model


class ModelExchangeInstance(ExchangeSteps):
    """Common parts of both versions of FMI: how the kernel calls it, values, and going back."""

    @property
    def is_called_in_python(self) -> bool:
        """Whether the kernel calls its methods: also if its integrator has no twin there."""
        return super().is_called_in_python or not self.integrator.twin

    @property
    def binding(self) -> Binding:
        """How the kernel calls its functions; inputs between points are set by the kernel, if there is a callback."""
        callback = self._given_callback
        intermediate = inputs_in_steps(self.model) if callback else ()
        return replace(super().binding, intermediate=intermediate, update_callback=callback)

    def _functions_for(self, kernel: KernelEntries[E]) -> E:
        return kernel.of_model_exchange(self.binding, self)

    def when_prepared(self, act: Callable[[], None]) -> None:
        """Call a function when the memory has its size and there is an integration."""
        self._prepared = act
        if self.is_started:  # in an earlier structure of the system
            act()

    # Values

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets these variables; discrete inputs that have changed need Event Mode."""
        act = super().setter(kind, references, values)
        if kind is DataType.CLOCK:
            return act
        chosen = {*references}
        of = [v for v in self.model.variables if v.value_reference in chosen]
        if all(v.causality is Causality.INPUT and v.is_continuous for v in of):
            return act
        present = np.empty_like(values)
        # the FMU knows its values also where an earlier state was restored
        read = self.getter(kind, references, present)

        def set_discrete() -> None:
            if self.memory[MemoryPlace.MODE] == ExchangeMode.CONTINUOUS_TIME:
                read()
                if np.array_equal(present, values):
                    return
                self.enter_event_mode()
            act()

        return set_discrete

    def _polynomials(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that keeps the signal, whose values are set at each evaluation."""
        refresh = self.present_values(references, inputs_in_steps(self.model))

        def set_polynomials(_: float, signal: Signal) -> None:
            self.equations.set_inputs = lambda now: refresh(now, signal)

        return set_polynomials

    # Going back

    def save(self, place: int) -> None:
        """Save the FMU state, if it has one, and the memory.

        An integrator that remembers earlier steps begins anew where the last saved state was restored: then the first
        attempt of a step and its repetition are equal in every bit.
        """
        self._tell_events()
        if self._goes_back:
            self.memory[MemoryPlace.SIZE] = 0.0
        self._goes_back = False
        if not self.copies:
            super().save(place)
        self._memories[place] = self.memory.values.copy()

    def restore(self, place: int) -> None:
        """Go back to a saved state; without FMU state not behind an event."""
        self._goes_back = self.integrator.remembers
        saved = self._memories[place]
        if not self.copies:
            super().restore(place)
        elif saved[MemoryPlace.EVENTS] != self.memory[MemoryPlace.EVENTS]:
            raise self.behind_event(saved[MemoryPlace.TIME])
        self._take(saved)

    def _take(self, saved: NDArray[np.float64]) -> None:
        self.memory.values[:] = saved
        if self.copies and self.memory[MemoryPlace.MODE] == ExchangeMode.CONTINUOUS_TIME:
            self.equations.move(self.memory[MemoryPlace.TIME], self.memory.states)
            self.memory[MemoryPlace.UNTOLD] = float(self.completes)

    def behind_event(self, time: float) -> CallError:
        """The error if there was an event after the states were copied."""
        return CallError(
            f"'{self.name}' cannot go back to t = {time:.12g} s: it has executed an event since then. "
            "It cannot save its state (canGetAndSetFMUState is false), so only its continuous states can be "
            "restored. Use Event Mode for its events, or an algorithm that does not repeat steps.",
            instance=self.name,
            function=f"{self.prefix}Set{self.state}",
            status="missing",
            time=self.memory[MemoryPlace.TIME],
        )

    def serialized(self) -> bytes:
        """The FMU state and the memory as bytes.

        An integrator that remembers earlier steps begins anew here, as it does where the state is restored.
        """
        if self.integrator.remembers:
            self.memory[MemoryPlace.SIZE] = 0.0
        values = self.memory.values
        return struct.pack("<q", len(values)) + values.tobytes() + super().serialized()

    def deserialize(self, state: bytes) -> None:
        """Go to a serialized state."""
        (count,) = struct.unpack_from("<q", state)
        first = struct.calcsize("<q")
        end = first + count * self.memory.values.itemsize
        if count != len(self.memory.values):
            raise CallError(
                f"A serialized state of '{self.name}' has another number of states or event indicators. Expected a "
                "state of the same FMU with the same structural parameters.",
                instance=self.name,
                function=self.prefix + self.deserialize_function,
                status="other size",
            )
        super().deserialize(state[end:])
        self._take(np.frombuffer(state[first:end], np.float64))

    def terminate(self) -> None:
        """``Terminate``, after the last ``CompletedIntegratorStep``."""
        self._tell_completed()
        super().terminate()

    def reset(self) -> None:
        """``Reset``; another integration follows."""
        self._free_integration()
        super().reset()
        self._begin_anew()

    def free(self) -> None:
        """Free the integrator, saved states and the instance."""
        self._free_integration()
        super().free()

    def _free_integration(self) -> None:
        if self.is_started:
            self.integration.free()
            self.is_started = False


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
