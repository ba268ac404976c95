"""fmpy's FMU classes, but missing functions of a library cause an error only when they are called."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fmpy.fmi2 import FMU2Model, FMU2Slave
from fmpy.fmi3 import FMU3Model, FMU3ScheduledExecution, FMU3Slave


@dataclass
class Condition:
    """State of one loaded library, shared by all its instances."""

    is_fatal: bool = False
    """Whether an instance has returned Fatal: then FMI forbids any further call, for all instances."""
    functions: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """Name and types of arguments → function, for functions that were used."""


class _Tolerant:
    """A mixin for fmpy's FMU classes: missing functions of the library are noted instead of refused."""

    dll: Any
    unzipDirectory: str  # noqa: N815 (fmpy's name)
    _functions: dict[str, Any]
    missing: tuple[str, ...] = ()
    has_none = False
    condition: Condition

    def _loadFunctions(self) -> None:  # noqa: N802 (fmpy's name)
        library = self.dll
        stand_in = _StandIn(library)
        self.dll = stand_in
        try:
            known = _SIGNATURES.get(type(self))
            if known is None:
                super()._loadFunctions()  # type: ignore[misc]
                known = {n: (f.argnames, f.argtypes, f.restype) for n, f in self._functions.items()}
                _SIGNATURES[type(self)] = known
            for name, signature in known.items():
                function = self._functions[name] = getattr(stand_in, name)
                function.argnames, function.argtypes, function.restype = signature
        finally:
            self.dll = library
        self.condition = Condition()
        self.missing = tuple(dict.fromkeys(stand_in.missing))
        self.has_none = self._functions.keys() <= set(self.missing)

    def must_have(self, name: str) -> None:
        """Raise ValueError if the library lacks a function."""
        if name in self.missing:
            raise ValueError(f"its library does not have {name}")


_SIGNATURES: dict[type, dict[str, tuple[Any, Any, Any]]] = {}
"""Class → function → names and types from fmpy, which inspects its own methods in some ms."""


class _StandIn:
    """Looks like a loaded library that has every function."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.missing: list[str] = []

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._library, name)
        except AttributeError:
            self.missing.append(name)
            return ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 3)


class FMU2Tolerant(_Tolerant, FMU2Slave):  # type: ignore[misc]
    """fmpy's FMI 2.0 class; fmpy derives the FMI version from the name of its class."""


class FMU2ModelTolerant(_Tolerant, FMU2Model):  # type: ignore[misc]
    """fmpy's FMI 2.0 class for Model Exchange."""


class _Fmi3Tolerant(_Tolerant):
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
