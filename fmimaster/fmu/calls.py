"""Calls into the shared library of an FMU through ctypes, with buffers allocated once.

fmpy loads the library and makes the instance; here it is called directly, because that takes a third of the time.
"""

from __future__ import annotations

import ctypes
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isclose
from typing import Any, ClassVar

from numpy.typing import NDArray

from fmimaster.apart import shared_run
from fmimaster.base.errors import CallError
from fmimaster.fmu.call_log import (
    DISCARD,
    ERROR,
    FATAL,
    SUCCESS,
    MessageLog,
    objection,
    status_name,
)
from fmimaster.fmu.instance import Instance, InstanceOptions, Transfer
from fmimaster.system.model import Model

_FAILURES = ("logStatusDiscard", "logStatusError", "logStatusFatal")
"""Categories of log messages, by the standards, with the reason why a call did not succeed."""


@lru_cache(maxsize=64)
def _failures_among(categories: tuple[str, ...]) -> Any:
    """Those of these categories, as an array in C: ctypes makes a type for each new one, which takes 15 us."""
    found = [c.encode() for c in categories if c in _FAILURES]
    return (ctypes.c_char_p * len(found))(*found)


class LibraryCalls(Instance):
    """The calls of an instance in this process.

    Parameters
    ----------
    fmu
        fmpy's object with a loaded library, which is instantiated here.
    """

    prefix: ClassVar[str]
    """Of the names of FMI functions: ``"fmi2"`` or ``"fmi3"``."""
    boolean: ClassVar[type[Any]]
    """C type of a Boolean."""
    fmpy_class: ClassVar[type]
    """Loads the library."""

    def __init__(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        self._instantiate(fmu, model, name, messages, options)
        super().__init__(name, model)
        self.fmu = fmu
        self.messages = messages
        self._call_log = options.call_log
        self.component = ctypes.c_void_p(_address(fmu.component))
        self._keep_alive: list[Any] = []
        self._calling = ""

    @abstractmethod
    def _instantiate(
        self, fmu: Any, model: Model, name: str, messages: MessageLog, options: InstanceOptions
    ) -> None:
        """Make the component of ``fmu``."""

    @property
    def library(self) -> int:
        """Handle of the library in this process: one for all instances from one file."""
        return int(self.fmu.dll._handle)

    @property
    def calling(self) -> str:
        """The function that is called in Python."""
        return self._calling

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
        if sys.platform == "win32":
            function = self._told_if_it_crashes(function, name)
        function = shared_run.noted(function, f"{self.prefix}{name} of '{self.name}'")
        if self._call_log is None:
            return function
        standard = self.fmu._functions[self.prefix + name]
        signature = standard.argnames, standard.argtypes
        return self._call_log.logged(
            function, self.prefix + name, signature, self.name, lambda: self.clock()
        )

    def _told_if_it_crashes(self, function: Callable[..., int], name: str) -> Callable[..., int]:
        """A function after whose crash ctypes goes on, as it does on Windows."""

        def call(*arguments: Any) -> int:
            try:
                return function(*arguments)
            except OSError as error:
                from fmimaster.apart.exit import crash_of  # other systems do not need it

                crash = crash_of(error)
                if crash is None:
                    raise
                self.fmu.condition.is_fatal = True
                raise CallError(
                    f"{self.prefix}{name} of '{self.name}' has crashed: {crash.signal}. Ask the FMU's vendor. In a process "
                    "of its own it can be restarted or dropped: isolate and on_fault (--isolate, --on-fault).",
                    instance=self.name,
                    function=self.prefix + name,
                    status="crashed",
                    time=self.clock(),
                ) from error

        return call

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
            raise self.lacks_function(name)

        return call

    def lacks_function(self, name: str) -> CallError:
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
        self.transfer(name, *arguments)()

    def ask_for_failures(self) -> None:
        """Switch on the messages about discarded steps and failures, if the FMU has these categories; errors are
        ignored."""
        categories = _failures_among(self.model.log_categories)
        if not categories or not self.has("SetDebugLogging"):
            return
        count = ctypes.c_size_t(len(categories))
        status = self.function("SetDebugLogging")(
            self.component, self.boolean(1), count, categories
        )
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
        said = self.said()
        advice = {
            DISCARD: "The step cannot be completed. Try a smaller step size.",
            FATAL: "The FMU cannot be used any more in this process.",
        }.get(status, "Check its inputs, parameters and step size.")
        fixed = "" if step is None else self._other_step(step)
        raise CallError(
            f"{function} of '{self.name}' returned {word}{where}{size}{objection(self.prefix, name, status)}. {fixed}"
            + (f"Messages of the FMU:{said}" if said else f"The FMU gave no message. {advice}"),
            instance=self.name,
            function=function,
            status=word,
            messages=tuple(self.messages.last),
            time=time,
        )

    def _other_step(self, step: float) -> str:
        """A remedy, if an FMU that may need equal steps suggests others; empty if not."""
        suggested = self.model.default_experiment.step_size
        can_vary = self.model.capabilities.can_handle_variable_communication_step_size
        if can_vary or suggested is None or isclose(step, suggested):
            return ""
        return (
            f"It suggests steps of {suggested:g} s, and may not do others (canHandleVariableCommunicationStepSize is "
            f"false): step_size (--step-size {suggested:g}), or for this component alone MultiRate "
            f"(--component-step-size {self.name}={suggested:g}). "
        )

    def said(self) -> str:
        """The last messages of the FMU, a line each."""
        return "".join(f"\n  {self.name}: {m}" for m in list(self.messages.last)[-5:])

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

    def sized(self, values: NDArray[Any]) -> tuple[Any, ...]:
        """An array as arguments: FMI 2.0 has its address only, FMI 3.0 its length too."""
        return (self.pointer(values),)


def _address(component: Any) -> int:
    return component if isinstance(component, int) else int(component.value)
