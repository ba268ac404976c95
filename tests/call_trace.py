"""The FMI calls of a run with their arguments, as the libraries of the FMUs get them from Python or from the kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_double, c_int, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from fmimaster.fmu.binary import BinaryInstance

REFERENCES, COUNT, SIZE, VALUES, ORDERS, OUT, STATE, SAVED, TEXTS, LENGTHS, BINARIES = (
    "references",
    "count",
    "size",
    "values",
    "orders",
    "out",
    "state",
    "saved",
    "texts",
    "lengths",
    "binaries",
)
"""Roles of arguments: value references and their number, values and theirs, a pointer to an answer, an FMU state that is
set, a pointer to one that is saved or freed, pointers to texts, lengths of binaries and pointers to them."""

Signature = tuple[Any, ...]
"""After the component: a role, or the C type of a number."""

_ELEMENTS = {
    "Real": c_double,
    "Integer": c_int,
    "Float64": c_double,
    "Float32": ctypes.c_float,
    "Boolean": {"fmi2": c_int, "fmi3": c_bool},
    **{
        f"{sign}Int{bits}": getattr(ctypes, f"c_{sign.lower()}int{bits}")
        for sign in ("", "U")
        for bits in (8, 16, 32, 64)
    },
}
"""Name of a type → C type of its elements; text and binaries are listed as bytes."""

_SIGNATURES: dict[str, Signature] = {
    "fmi2SetupExperiment": (c_int, c_double, c_double, c_int, c_double),
    "fmi2DoStep": (c_double, c_double, c_int),
    "fmi2SetRealInputDerivatives": (REFERENCES, COUNT, ORDERS, VALUES),
    "fmi2GetRealStatus": (c_int, OUT),
    "fmi2GetBooleanStatus": (c_int, OUT),
    "fmi3EnterInitializationMode": (c_bool, c_double, c_double, c_bool, c_double),
    "fmi3DoStep": (c_double, c_double, c_bool, OUT, OUT, OUT, OUT),
    "fmi3UpdateDiscreteStates": (OUT,) * 6,
    "fmi3ActivateModelPartition": (c_uint32, c_double),
    **dict.fromkeys(("fmi2GetString", "fmi2SetString"), (REFERENCES, COUNT, TEXTS)),
    **dict.fromkeys(("fmi3GetString", "fmi3SetString"), (REFERENCES, COUNT, TEXTS, SIZE)),
    **dict.fromkeys(
        ("fmi3GetBinary", "fmi3SetBinary"), (REFERENCES, COUNT, LENGTHS, BINARIES, SIZE)
    ),
    "fmi3GetIntervalDecimal": (REFERENCES, COUNT, OUT, OUT),
    "fmi3GetIntervalFraction": (REFERENCES, COUNT, OUT, OUT, OUT),
    "fmi3GetClock": (REFERENCES, COUNT, VALUES),
    "fmi3SetClock": (REFERENCES, COUNT, VALUES),
    **{
        f"{prefix}{verb}FMU{word}": (STATE if verb == "Set" else SAVED,)
        for prefix, word in (("fmi2", "state"), ("fmi3", "State"))
        for verb in ("Get", "Set", "Free")
    },
    **{
        f"{prefix}{name}": ()
        for prefix in ("fmi2", "fmi3")
        for name in (
            "EnterInitializationMode",
            "ExitInitializationMode",
            "EnterConfigurationMode",
            "ExitConfigurationMode",
            "EnterEventMode",
            "EnterStepMode",
            "Terminate",
        )
        if prefix + name != "fmi3EnterInitializationMode"
    },
}


def _signature(name: str) -> Signature | None:
    if name in _SIGNATURES:
        return _SIGNATURES[name]
    kind = name[7:]
    if name[4:7] not in ("Get", "Set") or kind not in _ELEMENTS:
        return None
    sizes = () if name.startswith("fmi2") else (SIZE,)
    return (REFERENCES, COUNT, VALUES, *sizes)


def _element(name: str) -> Any:
    if name.endswith("Clock"):
        return c_bool
    kind = _ELEMENTS.get(name[7:], c_double)
    return kind[name[:4]] if isinstance(kind, dict) else kind


_TYPES = {
    REFERENCES: POINTER(c_uint32),
    COUNT: c_size_t,
    SIZE: c_size_t,
    VALUES: c_void_p,
    ORDERS: POINTER(c_int),
    OUT: c_void_p,
    STATE: c_void_p,
    SAVED: POINTER(c_void_p),
    TEXTS: POINTER(ctypes.c_char_p),
    LENGTHS: POINTER(c_size_t),
    BINARIES: POINTER(c_void_p),
}


@dataclass
class Trace:
    """Calls in their order: instance, function, arguments; of what is read, the values that came back."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    _kept: dict[tuple[int, str], Any] = field(default_factory=dict)
    _states: dict[tuple[str, int | None], int] = field(default_factory=dict)
    """Instance and address of a state → its number; another one may have the address when it has been freed."""
    _numbers: Iterator[int] = field(default_factory=count)

    def function(self, instance: BinaryInstance, name: str, address: int) -> Any:
        """A C function that notes its arguments and calls the one at this address; None if the function is not traced."""
        full = instance.prefix + name
        signature = _signature(full)
        if signature is None:
            return None
        key = id(instance), full
        if key not in self._kept:
            types: list[Any] = [_TYPES.get(role, role) for role in signature]
            prototype = ctypes.CFUNCTYPE(c_int, c_void_p, *types)
            real = prototype(address)
            self._kept[key] = prototype(self._noted(instance.name, full, signature, real)), instance
        return self._kept[key][0]

    def _noted(
        self, who: str, name: str, signature: Signature, real: Callable[..., int]
    ) -> Callable[..., int]:
        element = _element(name)
        is_get = name[4:7] == "Get"

        def call(component: int, *arguments: Any) -> int:
            if not is_get:
                self.calls.append((who, name, *self._plain(who, signature, arguments, element)))
            if name[4:11] == "FreeFMU":
                self._states.pop((who, arguments[0][0]), None)
            status = real(component, *arguments)
            if is_get:
                self.calls.append((who, name, *self._plain(who, signature, arguments, element)))
            return status

        return call

    def _plain(
        self, who: str, signature: Signature, arguments: tuple[Any, ...], element: Any
    ) -> Iterator[Any]:
        """Arguments as plain values; numbers of values come as bytes, so that each bit counts."""
        sizes: dict[Any, Any] = dict(zip(signature, arguments, strict=False))
        for role, argument in zip(signature, arguments, strict=True):
            if role in (REFERENCES, ORDERS):
                yield tuple(argument[: sizes[COUNT]])
            elif role == VALUES:
                n = sizes.get(SIZE, sizes[COUNT])
                yield ctypes.string_at(argument, n * ctypes.sizeof(element))
            elif role == TEXTS:
                yield tuple(argument[: sizes.get(SIZE, sizes[COUNT])])
            elif role == BINARIES:
                lengths = sizes[LENGTHS][: sizes[SIZE]]
                yield tuple(map(ctypes.string_at, argument[: sizes[SIZE]], lengths))
            elif role == STATE:
                yield self._number(who, argument)
            elif role == SAVED:
                yield self._number(who, argument[0])
            elif role not in (OUT, LENGTHS):
                yield argument

    def _number(self, who: str, address: int | None) -> int:
        if (who, address) not in self._states:
            self._states[who, address] = next(self._numbers)
        return self._states[who, address]


@contextmanager
def traced() -> Iterator[Trace]:
    """All FMI calls inside, for instances that are made inside too."""
    trace = Trace()
    function, address = BinaryInstance.function, BinaryInstance.address

    def traced_function(self: BinaryInstance, name: str, *types: Any) -> Any:
        found = address(self, name)
        return (found and trace.function(self, name, found)) or function(self, name, *types)

    def traced_address(self: BinaryInstance, name: str) -> int:
        found = address(self, name)
        traced_one = found and trace.function(self, name, found)
        return ctypes.cast(traced_one, c_void_p).value or 0 if traced_one else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BinaryInstance, "function", traced_function)
        patch.setattr(BinaryInstance, "address", traced_address)
        # addresses are shared by the instances of a library, but a trace belongs to one
        patch.setattr(BinaryInstance, "library", property(id))
        yield trace
