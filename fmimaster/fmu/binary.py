"""Common parts of instances of FMI 2.0 and 3.0: values, polynomials, saved states, and the end."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError
from fmimaster.fmu.call_log import FATAL, SUCCESS, MessageLog
from fmimaster.fmu.calls import LibraryCalls
from fmimaster.fmu.instance import InstanceOptions, Signal, Transfer
from fmimaster.fmu.kernel_entry import Binding, E, KernelEntries
from fmimaster.system.model import DataType, Model


class BinaryInstance(LibraryCalls):
    """Base of the instances that are an FMU in this process."""

    state: ClassVar[str]
    """An FMU state in the names of functions; FMI 2.0 and 3.0 spell it differently."""
    deserialize_function: ClassVar[str]

    def __init__(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        super().__init__(fmu, model, name, messages, options)
        self._places: dict[int, ctypes.c_void_p] = {}
        self._lent_places: list[Callable[[], list[int]]] = []
        """Of each executor: addresses of FMU states that the kernel has saved; they are freed with the instance."""
        self._freed = False
        if not options.logging_on:
            self.ask_for_failures()

    @property
    def is_called_in_python(self) -> bool:
        """Whether the kernel calls its methods: if its calls are logged."""
        return self._call_log is not None

    @property
    def binding(self) -> Binding:
        """How the kernel calls its functions."""
        return Binding(
            self.prefix,
            self.library,
            self.component.value or 0,
            self.address,
            self._lent_places.append,
            self.raise_failure,
            lambda: tuple(self.messages.last),
        )

    def kernel_entry(self, kernel: KernelEntries[E]) -> E:
        """What the kernel calls it by: the functions of the FMU."""
        return kernel.in_python() if self.is_called_in_python else self._functions_for(kernel)

    def _functions_for(self, kernel: KernelEntries[E]) -> E:
        return kernel.of_fmu(self.binding)

    def raise_failure(self, name: str, status: int, step: float) -> None:
        """Raise the error for a call that was made by the kernel, also for a missing function.

        If the call succeeded, its answer is not valid.
        """
        if not self.address(name):
            raise self.lacks_function(name)
        if status in SUCCESS and name == f"Get{self.state}":
            raise self._has_no_state()
        self.fail(name, status, step if name == "DoStep" else None)

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these variables into ``values``."""
        return self._accessor("Get", kind, references, values)

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets these variables from ``values``."""
        return self._accessor("Set", kind, references, values)

    @abstractmethod
    def _accessor(
        self, verb: str, kind: DataType, references: Sequence[int], values: NDArray[Any]
    ) -> Transfer:
        """A function that reads or sets variables; ``verb`` is ``"Get"`` or ``"Set"``."""

    def directional_derivative(
        self,
        unknowns: Sequence[int],
        knowns: Sequence[int],
        seed: NDArray[np.float64],
        sensitivity: NDArray[np.float64],
    ) -> Transfer:
        """A function that calls ``GetDirectionalDerivative``."""
        return self.transfer(
            "GetDirectionalDerivative",
            self.references(unknowns),
            ctypes.c_size_t(len(unknowns)),
            self.references(knowns),
            ctypes.c_size_t(len(knowns)),
            *self.sized(seed),
            *self.sized(sensitivity),
        )

    def strings(
        self, name: str, references: Sequence[int], values: NDArray[Any], *extra: Any
    ) -> Transfer:
        """Transfer of String variables between the FMU and an array of ``str`` by a function."""
        pointers = (ctypes.c_char_p * len(values))()
        refs, n = self.references(references), ctypes.c_size_t(len(references))
        act = self.transfer(name, refs, n, pointers, *extra)

        def read() -> None:
            act()
            values[:] = [(p or b"").decode("utf-8", "replace") for p in pointers]

        def write() -> None:
            pointers[:] = [v.encode() for v in values]
            act()

        return read if name.startswith("Get") else write

    # Polynomials

    def polynomial_setter(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets inputs as polynomials, as coefficients where the FMU has them."""
        if self.model.input_polynomials:
            return self._coefficients(references)
        return self._polynomials(references)

    @abstractmethod
    def _polynomials(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """The same where the FMU has no coefficients."""

    def present_values(
        self, references: Sequence[int], taken: Sequence[int]
    ) -> Callable[[float, Signal], None]:
        """A function that sets those of these inputs that are taken to the values of a signal at a time in s."""
        chosen = [row for row, reference in enumerate(references) if reference in taken]
        values = np.zeros(len(chosen))
        write = self._accessor("Set", DataType.FLOAT64, [references[row] for row in chosen], values)

        def refresh(now: float, signal: Signal) -> None:
            values[:] = signal(now, 0)[chosen]
            write()

        return refresh

    def _coefficients(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
        """A function that sets the inputs for the coefficients of a polynomial; the highest powers are left out if
        there are too many."""
        row_of = {reference: row for row, reference in enumerate(references)}
        chosen = []
        for polynomial in self.model.input_polynomials:
            variable = self.model.variable(polynomial.input)
            targets = [self.model.variable(name) for name in polynomial.coefficients]
            assert variable is not None
            assert all(targets)
            if variable.value_reference in row_of:
                values = np.zeros(sum(t.size for t in targets if t))
                put = self.setter(
                    DataType.FLOAT64, [t.value_reference for t in targets if t], values
                )
                chosen.append((row_of[variable.value_reference], values, put))

        def set_polynomials(time: float, signal: Signal) -> None:
            for row, values, put in chosen:
                factorial = 1.0
                for k in range(len(values)):
                    factorial *= max(k, 1)
                    values[k] = signal(time, k)[row] / factorial
                put()

        return set_polynomials

    def experiment(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> tuple[Any, ...]:
        """Arguments that define tolerance, start and end of the run; times in s."""
        return (
            self.boolean(tolerance is not None),
            ctypes.c_double(tolerance or 0.0),
            ctypes.c_double(start),
            self.boolean(stop is not None),
            ctypes.c_double(stop or 0.0),
        )

    # The end

    def terminate(self) -> None:
        """``Terminate``; it is skipped if the library lacks it, or after Fatal."""
        if self.address("Terminate") and not self.fmu.condition.is_fatal:
            self.call("Terminate")

    can_reset = True

    def reset(self) -> None:
        """``Reset``."""
        self.call("Reset")

    # FMU states

    def save(self, place: int) -> None:
        """Save the FMU state in a place; it replaces the one saved there.

        FMI permits overwriting an old state. Some FMUs (those of fmiCpp) then make another state without returning its
        address, and the next call crashes. Therefore the old state is freed first.
        """
        state = self._places.setdefault(place, ctypes.c_void_p())
        free_state = f"Free{self.state}"
        if state and self.has(free_state):
            self.call(free_state, ctypes.byref(state))
            state.value = None
        self._get_state(state)

    def _get_state(self, state: ctypes.c_void_p) -> None:
        """Save the FMU state under a new address."""
        self.call(f"Get{self.state}", ctypes.byref(state))
        if not state:
            raise self._has_no_state()

    def _has_no_state(self) -> CallError:
        function = f"{self.prefix}Get{self.state}"
        said = self.said()
        return CallError(
            f"{function} of '{self.name}' succeeded, but gave no state. Ask the FMU's vendor, or use an algorithm and a "
            "step-size rule that do not go back."
            + (f" Messages of the FMU:{said}" if said else ""),
            instance=self.name,
            function=function,
            status="not valid",
            messages=tuple(self.messages.last),
            time=self.clock(),
        )

    def restore(self, place: int) -> None:
        """Restore the FMU state from a place."""
        self.call(f"Set{self.state}", self._places[place])

    def serialized(self) -> bytes:
        """The present FMU state as bytes."""
        state, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._get_state(state)
        try:
            self.call(f"Serialized{self.state}Size", state, ctypes.byref(size))
            content = (ctypes.c_char * size.value)()
            self.call(f"Serialize{self.state}", state, content, size)
            return content.raw
        finally:
            self.call(f"Free{self.state}", ctypes.byref(state))

    def deserialize(self, state: bytes) -> None:
        """Go to a serialized state."""
        restored = ctypes.c_void_p()
        content = (ctypes.c_char * len(state)).from_buffer_copy(state)
        length = ctypes.c_size_t(len(state))
        self.call(self.deserialize_function, content, length, ctypes.byref(restored))
        try:
            self.call(f"Set{self.state}", restored)
        finally:
            self.call(f"Free{self.state}", ctypes.byref(restored))

    def free(self) -> None:
        """Free saved states and the instance; a second call has no effect. Never raises.

        An FMU that has returned Fatal is not called, nor are functions that its library lacks; the returned status is
        ignored.
        """
        if self._freed:
            return
        self._freed = True
        lent = [ctypes.c_void_p(address) for places in self._lent_places for address in places()]
        saved = [self._places[place] for place in sorted(self._places)]
        free_state = f"Free{self.state}"
        if self.has(free_state):
            function = self.function(free_state)
            for state in filter(None, (*saved, *lent)):
                if self.fmu.condition.is_fatal:
                    return
                status = function(self.component, ctypes.byref(state))
                self.fmu.condition.is_fatal |= status == FATAL
        if self.has("FreeInstance") and not self.fmu.condition.is_fatal:
            function = self.function("FreeInstance")
            function(self.component)
