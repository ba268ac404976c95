"""Common parts of instances of FMI 2.0 and 3.0: calls into a shared library through ctypes, with buffers allocated
once.

fmpy loads the library and makes the instance; here it is called directly, because that takes a third of the time.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fmimaster.apart import shared_run
from fmimaster.base.errors import CallError
from fmimaster.base.visible import visible
from fmimaster.fmu.instance import Instance, Signal, Transfer
from fmimaster.fmu.kernel_entry import Binding, E, KernelEntries, KernelInterface
from fmimaster.fmu.status import DISCARD, ERROR, FATAL, OK, SUCCESS, objection, status_name, word_of
from fmimaster.system.model import DataType, Model

if TYPE_CHECKING:
    from fmimaster.fmu.call_log import CallLog

log = logging.getLogger("fmimaster")

MESSAGE = "%s [%s] %s"
"""Form of a message of an FMU in the log: name of the instance, status, text."""

_KEPT_MESSAGES = 20
_FAILURES = ("logStatusDiscard", "logStatusError", "logStatusFatal")
"""Categories of log messages, by the standards, with the reason why a call did not succeed."""


class MessageLog:
    """Receives the log messages of one instance: the last ones are kept for errors, and all are passed to the
    ``logging`` module."""

    def __init__(self, instance: str, is_complete: bool = False) -> None:
        self.instance = instance
        self.is_complete = is_complete
        """Whether all messages of the FMU were requested."""
        self.last: deque[str] = deque(maxlen=_KEPT_MESSAGES)
        self.call_log: CallLog | None = None
        """A further receiver: the log of FMI calls."""
        self.is_abandoned = False
        """Whether the run has abandoned the FMU. If it still sends messages, its thread is blocked."""

    def add(self, status: int, category: bytes | None, message: bytes | None) -> None:
        """Receive one message of the FMU."""
        if self.is_abandoned:
            threading.Event().wait()
        text = visible((message or b"").decode("utf-8", "replace").rstrip())
        self.last.append(text)
        if self.call_log is not None:
            self.call_log.add(self.instance, f"[{word_of(status)}] {text}")
        level = logging.INFO if status == OK else logging.WARNING
        log.log(level, MESSAGE, self.instance, word_of(status), text)


class BinaryInstance(Instance):
    """Base of the instances that are an FMU in this process.

    Parameters
    ----------
    fmu
        fmpy's object with a loaded library; instantiated by the subclass.
    prefix : str
        Of the names of FMI functions: ``"fmi2"`` or ``"fmi3"``.
    call_log : CallLog or None
        The log that receives each call.
    """

    interface: ClassVar[KernelInterface]
    fmpy_class: ClassVar[type]
    """Loads the library."""

    def __init__(
        self,
        fmu: Any,
        model: Model,
        name: str,
        prefix: str,
        messages: MessageLog,
        call_log: CallLog | None = None,
    ) -> None:
        super().__init__(name, model)
        self.fmu = fmu
        self.prefix = prefix
        self.messages = messages
        self._call_log = call_log
        self.component = ctypes.c_void_p(_address(fmu.component))
        self._places: dict[int, ctypes.c_void_p] = {}
        self._lent_places: list[Callable[[], list[int]]] = []
        """Of each executor: addresses of FMU states that the kernel has saved; they are freed with the instance."""
        self._keep_alive: list[Any] = []
        self._calling = ""
        self._freed = False

    @property
    def library(self) -> int:
        """Handle of the library in this process: one for all instances from one file."""
        return int(self.fmu.dll._handle)

    @property
    def is_called_in_python(self) -> bool:
        """Whether the kernel calls its methods: if its calls are logged."""
        return self._call_log is not None

    @property
    def binding(self) -> Binding:
        """How the kernel calls its functions."""
        return Binding(
            self.interface,
            self.library,
            self.component.value or 0,
            self.address,
            self._lent_places.append,
            self.raise_failure,
            lambda: tuple(self.messages.last),
        )

    @property
    def calling(self) -> str:
        """The function that is called in Python."""
        return self._calling

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
            raise self._lacks_function(name)
        if status in SUCCESS and name == self.state_function("Get"):
            raise self._has_no_state()
        self.fail(name, status, step if name == "DoStep" else None)

    # Calls

    def function(self, name: str, *types: Any) -> Callable[..., int]:
        """An FMI function by its name without prefix; raises CallError when called if the library lacks it."""
        known = self.fmu.condition.functions
        function = known.get(key := (name, *types))
        if function is None:
            try:
                function = self.fmu.dll[self.prefix + name]
            except AttributeError:
                return self._missing(name)
            function.argtypes = types or None
            function.restype = None if name == "FreeInstance" else ctypes.c_int
            known[key] = function
        function = shared_run.noted(function, f"{self.prefix}{name} of '{self.name}'")
        if self._call_log is None:
            return function
        standard = self.fmu._functions[self.prefix + name]
        signature = standard.argnames, standard.argtypes
        return self._call_log.logged(
            function, self.prefix + name, signature, self.name, lambda: self.clock()
        )

    def address(self, name: str) -> int:
        """Address of an FMI function by its name without prefix; 0 if the library lacks it."""
        try:
            return ctypes.cast(self.fmu.dll[self.prefix + name], ctypes.c_void_p).value or 0
        except AttributeError:
            return 0

    def has(self, name: str) -> bool:
        """Whether the library has an FMI function."""
        return self.prefix + name not in self.fmu.missing

    def _missing(self, name: str) -> Callable[..., int]:
        def call(*_: Any) -> int:
            raise self._lacks_function(name)

        return call

    def _lacks_function(self, name: str) -> CallError:
        full = self.prefix + name
        return CallError(
            f"'{self.name}' needs {full}, but the FMU's library does not have this function. "
            "Ask the FMU's vendor, or use an algorithm that does not need it.",
            instance=self.name,
            function=full,
            status="missing",
            time=self.clock(),
        )

    def call(self, name: str, *arguments: Any) -> None:
        """Call an FMI function that takes the instance and these arguments; raise unless it returns OK or Warning."""
        function = self.function(name)
        self._calling = name
        status = function(self.component, *arguments)
        self._calling = ""
        if status not in SUCCESS:
            self.fail(name, status)

    def ask_for_failures(self, true: Any) -> None:
        """Switch on the messages about discarded steps and failures, if the FMU has these categories; errors are
        ignored."""
        categories = [c.encode() for c in self.model.log_categories if c in _FAILURES]
        if not categories or not self.has("SetDebugLogging"):
            return
        array = (ctypes.c_char_p * len(categories))(*categories)
        count = ctypes.c_size_t(len(array))
        status = self.function("SetDebugLogging")(self.component, true, count, array)
        if status not in (*SUCCESS, DISCARD, ERROR):
            try:
                self.fail("SetDebugLogging", status)
            finally:
                self.free()  # no other object uses it yet

    def fail(self, name: str, status: int, step: float | None = None) -> None:
        """Raise the error for a call that did not succeed."""
        if status == FATAL:
            self.fmu.condition.is_fatal = True
        function, word = self.prefix + name, status_name(self.prefix, status)
        time = self.clock()
        where = "" if time is None else f" at t = {time:.12g} s"
        size = "" if step is None else f" (step {step:.6g} s)"
        said = "".join(f"\n  {self.name}: {m}" for m in list(self.messages.last)[-5:])
        advice = {
            DISCARD: "The step cannot be completed. Try a smaller step size.",
            FATAL: "The FMU cannot be used any more in this process.",
        }.get(status, "Check its inputs, parameters and step size.")
        raise CallError(
            f"{function} of '{self.name}' returned {word}{where}{size}{objection(self.prefix, name, status)}. "
            + (f"Messages of the FMU:{said}" if said else f"The FMU gave no message. {advice}"),
            instance=self.name,
            function=function,
            status=word,
            messages=tuple(self.messages.last),
            time=time,
        )

    def transfer(self, name: str, *arguments: Any) -> Transfer:
        """A function that calls an FMI function with fixed arguments."""
        function, component, fail = self.function(name), self.component, self.fail

        def act() -> None:
            self._calling = name
            status = function(component, *arguments)
            self._calling = ""
            if status not in SUCCESS:
                fail(name, status)

        return act

    def references(self, references: Sequence[int]) -> Any:
        """Value references as a C array that lives as long as the instance."""
        array = (ctypes.c_uint32 * len(references))(*references)
        self._keep_alive.append(array)
        return array

    def pointer(self, values: NDArray[Any]) -> ctypes.c_void_p:
        """Address of an array's first element; the array is kept alive."""
        assert values.flags.c_contiguous
        self._keep_alive.append(values)
        return ctypes.c_void_p(values.ctypes.data)

    # Strings, which are the same in both versions but for the function's arguments

    def strings(
        self,
        get: bool,
        function: Callable[..., int],
        name: str,
        references: Sequence[int],
        values: NDArray[Any],
        extra: tuple[Any, ...],
    ) -> Transfer:
        """Transfer of String variables between the FMU and an array of ``str``."""
        pointers = (ctypes.c_char_p * len(values))()
        refs, n = self.references(references), ctypes.c_size_t(len(references))

        def read() -> None:
            status = function(self.component, refs, n, pointers, *extra)
            if status not in SUCCESS:
                self.fail(name, status)
            values[:] = [(p or b"").decode("utf-8", "replace") for p in pointers]

        def write() -> None:
            pointers[:] = [v.encode() for v in values]
            status = function(self.component, refs, n, pointers, *extra)
            if status not in SUCCESS:
                self.fail(name, status)

        return read if get else write

    # Polynomials as coefficients

    def coefficients(self, references: Sequence[int]) -> Callable[[float, Signal], None]:
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

    # The end

    def terminate(self) -> None:
        """``Terminate``; it is skipped if the library lacks it, or after Fatal."""
        if self.address("Terminate") and not self.fmu.condition.is_fatal:
            self.call("Terminate")

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
        free_state = self.state_function("Free")
        if state and self.has(free_state):
            self.call(free_state, ctypes.byref(state))
            state.value = None
        self._get_state(state)

    def _get_state(self, state: ctypes.c_void_p) -> None:
        """Save the FMU state under a new address."""
        self.call(self.state_function("Get"), ctypes.byref(state))
        if not state:
            raise self._has_no_state()

    def _has_no_state(self) -> CallError:
        function = self.prefix + self.state_function("Get")
        said = "".join(f"\n  {self.name}: {m}" for m in list(self.messages.last)[-5:])
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
        self.call(self.state_function("Set"), self._places[place])

    def serialized(self) -> bytes:
        """The present FMU state as bytes."""
        state, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._get_state(state)
        try:
            self.call(self.serialization_functions[0], state, ctypes.byref(size))
            content = (ctypes.c_char * size.value)()
            self.call(self.serialization_functions[1], state, content, size)
            return content.raw
        finally:
            self.call(self.state_function("Free"), ctypes.byref(state))

    def deserialize(self, state: bytes) -> None:
        """Go to a serialized state."""
        restored = ctypes.c_void_p()
        content = (ctypes.c_char * len(state)).from_buffer_copy(state)
        length = ctypes.c_size_t(len(state))
        self.call(self.serialization_functions[2], content, length, ctypes.byref(restored))
        try:
            self.call(self.state_function("Set"), restored)
        finally:
            self.call(self.state_function("Free"), ctypes.byref(restored))

    serialization_functions: ClassVar[tuple[str, str, str]]
    """Names of the functions for the size of a serialized state, to serialize, and to deserialize."""

    @abstractmethod
    def state_function(self, verb: str) -> str:
        """Name of the function that gets, sets or frees a state; FMI 2.0 and 3.0 spell it differently."""

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
        free_state = self.state_function("Free")
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


def _address(component: Any) -> int:
    return component if isinstance(component, int) else int(component.value)
