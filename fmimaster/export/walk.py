"""Finds all addresses in the memory of a kernel, by the types of its header.

Each address is that of a place in another block, of a function of the kernel, or of a call of an FMU. An address that
belongs to nothing that is known is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from fmimaster.base.errors import OptionError
from fmimaster.export.memory import Memory, Place, number
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.run.native.header import OPERATIONS
from fmimaster.run.native.lending import TWINS

NO_CALL = 0xFFFF_FFFF
"""In place of the number of a function: the call does nothing."""


class BoundCall(NamedTuple):
    """A call of an FMU that has to be bound: to the number of its function."""

    place: Place
    instance: int
    which: int


class Unknown(OptionError):
    """Something that cannot be in an image."""


_MEMBERS: Mapping[int, str] = {
    **{op: kind.__name__.lower() for kind, op in OPERATIONS.items()},
    lib.FM_MOVE_SET: "move",
    lib.FM_STEP_LIMITED: "step",
    lib.FM_ALIGNED: "align",
    lib.FM_FUSED: "fused",
}
"""Operation → member of the union in fm_instruction that holds."""

_SET_WHERE_IT_RUNS = {
    "fm_kernel": {
        *("objects", "pool", "tuner", "columns", "sampled", "clocks", "looked"),
        *("present", "failure_function"),
    },
    "fm_fmu": {"component", "do_step", "names", "functions"},
    "fm_updates": {"read", "reader", "fail", "self"},
    "fm_passes": {"repeat"},
    "fused": {"calls"},
}
"""Struct → its fields with addresses that only exist where the image runs, or that are not needed there."""

_BLANK = ("fm_instance", "fm_fused", "fm_result")
"""Structs that are filled where the image runs."""


class Walk:
    """Finds all addresses in the memory that can be reached from the kernel.

    Parameters
    ----------
    components : address → number of an instance
        Of the FMUs.
    versions : sequence of int
        FMI version of each instance.
    """

    def __init__(
        self, memory: Memory, components: Mapping[int, int], versions: Sequence[int]
    ) -> None:
        self.memory = memory
        self._components, self._versions = components, versions
        self.addresses: list[Place] = []
        """All places of addresses, also of null."""
        self.relocations: list[tuple[Place, Place]] = []
        self.functions: list[tuple[Place, str]] = []
        """Places of addresses of functions of the kernel, by name."""
        self.calls: list[BoundCall] = []
        self.derivatives: list[BoundCall] = []
        self.numbers: dict[int, int] = {}
        """Block → its number in the image: in the order in which they are reached."""
        self._seen = set[tuple[int, str, int]]()
        self._special: Mapping[str, Callable[[int, str], None]] = {
            "fm_segment": self._segment,
            "fm_derivative": self._derivative,
            "fm_instruction": self._instruction,
            "fm_hook": self._hook,
            "fm_fmu": self._fmu,
        }

    def look_at(self, kind: str, address: int, path: str) -> Place:
        """Look at the structs that lie at an address, and at all that they point to; returns the place."""
        place = self.memory.place(address)
        if place is None:
            raise _unknown(path)
        self.reach(place)
        self._contents(ffi.typeof(kind), place, path)
        return place

    def reach(self, place: Place) -> None:
        """Have the block of a place in the image."""
        self.numbers.setdefault(place.block, len(self.numbers))

    def saved_states(self, fmu: Any) -> list[Place]:
        """Where the addresses of the states lie that an FMU saves."""
        first = self.memory.place(number(fmu.places))
        assert first is not None
        size = self.memory.bounds(first.block)[1]
        return [Place(first.block, offset) for offset in range(first.offset, size, 8)]

    def _contents(self, kind: Any, place: Place, path: str) -> None:
        """The structs of a kind in a block."""
        if kind.kind in ("primitive", "enum", "void"):
            return
        size = ffi.sizeof(kind)
        first = place.offset % size
        key = place.block, kind.cname, first
        if key in self._seen:
            return
        self._seen.add(key)
        begin, extent = self.memory.bounds(place.block)
        for offset in range(first, extent - size + 1, size):
            self._value(kind, begin + offset, path)

    def _value(self, kind: Any, address: int, path: str) -> None:
        """The addresses in a value of this type."""
        if kind.kind == "array":
            size = ffi.sizeof(kind.item)
            for k in range(kind.length):
                self._value(kind.item, address + k * size, path)
        elif kind.kind in ("struct", "union"):
            name = _name(kind)
            if name in _BLANK:
                self._blank(kind, address)
            elif name in self._special:
                self._special[name](address, path)
            else:
                self._fields(kind, name, address, path)
        elif kind.kind == "pointer":
            self._pointer(kind, address, path)
        elif kind.kind == "function":
            self._function(address, path)

    def _fields(
        self, kind: Any, name: str, address: int, path: str, but: Iterable[str] = ()
    ) -> None:
        left_out = {*_SET_WHERE_IT_RUNS.get(name, ()), *but}
        for field, of in kind.fields:
            at = address + of.offset
            if field in left_out:
                self._blank(of.type, at)
            else:
                self._value(of.type, at, f"{path}.{field}")

    def _blank(self, kind: Any, address: int) -> None:
        """Addresses that are null in the image."""
        if kind.kind == "array":
            for k in range(kind.length):
                self._blank(kind.item, address + k * ffi.sizeof(kind.item))
        elif kind.kind in ("struct", "union"):
            for _, of in kind.fields:
                self._blank(of.type, address + of.offset)
        elif kind.kind in ("pointer", "function"):
            self._address_at(address)

    def _address_at(self, address: int) -> Place:
        place = self.memory.place(address)
        assert place is not None
        self.addresses.append(place)
        return place

    def _pointer(self, kind: Any, address: int, path: str) -> None:
        """An address of data."""
        if kind.item.kind == "function":
            self._function(address, path)
            return
        here, value = self._address_at(address), _read(address)
        if not value:
            return
        target = self.memory.place(value)
        if target is None:
            raise _unknown(path)
        self.reach(target)
        self.relocations.append((here, target))
        self._contents(kind.item, target, path)

    def _function(self, address: int, path: str) -> None:
        here, value = self._address_at(address), _read(address)
        if not value:
            return
        if value not in functions():
            raise _unknown(path)
        self.functions.append((here, functions()[value].name))

    def _segment(self, address: int, path: str) -> None:
        """A call of an FMU that reads or sets variables."""
        call, kind = ffi.cast("fm_segment *", address), ffi.typeof("fm_segment")
        if not call.transfer:
            self._blank(kind, address)
            return
        instance = self._components.get(number(call.self))
        if instance is None:
            raise _unknown(f"{path}.self")
        which = call.which
        is_text = which in _TEXTS
        is_integer = which in _BOOLEANS and self._versions[instance] == 2
        own = {"transfer", "address", "self", "function", "texts", "intervals"}
        but = own if is_integer else {*own, "integers"}
        self._fields(kind, "fm_segment", address, path, but | ({"values"} if is_text else set()))
        place = self.memory.place(address)
        assert place is not None
        self.calls.append(BoundCall(place, instance, NO_CALL if is_text else which))

    def _derivative(self, address: int, path: str) -> None:
        """A directional derivative: of an FMU, or by a function of the kernel."""
        call, kind = ffi.cast("fm_derivative *", address), ffi.typeof("fm_derivative")
        instance = self._components.get(number(call.self))
        but = {"derive", "address", "self", "function"} if instance is not None else set[str]()
        self._fields(kind, "fm_derivative", address, path, but)
        place = self.memory.place(address)
        assert place is not None
        if instance is not None:
            self.derivatives.append(BoundCall(place, instance, lib.FM_GET_DIRECTIONAL_DERIVATIVE))

    def _instruction(self, address: int, path: str) -> None:
        entry = ffi.cast("fm_instruction *", address)
        if entry.op == lib.FM_MOVE_OBJECTS:
            raise Unknown("text or binaries go from one component to another")
        member = _MEMBERS.get(entry.op, "")
        for name, of in ffi.typeof("fm_instruction").fields:
            if name == member:
                self._fields(of.type, name, address + of.offset, f"{path}.{name}")

    def _hook(self, address: int, path: str) -> None:
        hook, kind = ffi.cast("fm_hook *", address), ffi.typeof("fm_hook")
        found = functions().get(number(hook.call)) if hook.call else None
        if hook.call and (found is None or not found.data):
            name = ffi.from_handle(hook.self)[1].name
            raise Unknown(f"'{name}', a part of the method, is in Python")
        self._fields(kind, "fm_hook", address, path, {"self"})
        if found is not None:
            here, data = self._address_at(address + kind.fields[1][1].offset), number(hook.self)
            self.relocations.append((here, self.look_at(found.data, data, f"{path}.{found.data}")))

    def _fmu(self, address: int, path: str) -> None:
        """An FMU, whose saved states are addresses too."""
        fmu, kind = ffi.cast("fm_fmu *", address), ffi.typeof("fm_fmu")
        if fmu.updates and fmu.updates.read:
            raise Unknown("outputs are read in Intermediate Update Mode")
        self._fields(kind, "fm_fmu", address, path)


def _name(kind: Any) -> str:
    return str(kind.cname).removeprefix("struct ")


def _read(address: int) -> int:
    return int(ffi.cast("uintptr_t *", address)[0])


def _unknown(path: str) -> Unknown:
    return Unknown(f"the kernel points to memory of the process that is not known ({path})")


_TEXTS = frozenset((lib.FM_GET_STRING, lib.FM_GET_BINARY, lib.FM_SET_STRING, lib.FM_SET_BINARY))
_BOOLEANS = (lib.FM_GET_BOOLEAN, lib.FM_SET_BOOLEAN)


class Function(NamedTuple):
    """A function of the kernel, and the struct that it takes; empty for none."""

    name: str
    data: str


@cache
def functions() -> Mapping[int, Function]:
    """Address → a function that an image can have; ``kernel/system.c`` has the same."""
    names = [n for n in dir(lib) if n.startswith("fm_") and callable(getattr(lib, n))]
    names_of = {number(ffi.addressof(lib, name)): name for name in names}
    data = {number(twin.call): twin.data for twin in TWINS.values()}
    data[number(ffi.addressof(lib, "fm_multiply_partials"))] = ""
    return {address: Function(names_of[address], kind) for address, kind in data.items()}
