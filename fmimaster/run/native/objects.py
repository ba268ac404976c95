"""Text and binaries in runs of the kernel: it knows the addresses of these objects; here they are copied and made.

The kernel takes an object at another address for another value, and asks here. So what it reads from an FMU does not
replace an equal object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.kernel._kernel import ffi, lib
from fmimaster.run.native.header import Context
from fmimaster.system.model import DataType

_ADDRESS_BYTES = int(ffi.sizeof("void *"))


class Objects:
    """Copies and compares objects for the kernel.

    Attributes
    ----------
    functions : fm_objects
    """

    def __init__(self, context: Context, sample: Callable[[], None]) -> None:
        self.context = context
        self.sample = sample
        self._arrays: list[tuple[int, NDArray[Any]]] = []
        self._handle = ffi.new_handle(self)
        functions = lib.fm_python_copy, lib.fm_python_differ, lib.fm_python_sample
        self.functions = ffi.new("fm_objects *", (*functions, self._handle))

    def lend(self, values: NDArray[Any]) -> Any:
        """The addresses in an array of objects, of which the kernel may have any part copied."""
        addresses = ffi.from_buffer("void *[]", values)
        self._arrays.append((_number(addresses), values))
        return addresses

    def part(self, address: Any, n: int) -> NDArray[Any]:
        """n elements of an array that was lent."""
        at = _number(address)
        begin, values = next(v for v in self._arrays if v[0] <= at < v[0] + v[1].nbytes)
        first = (at - begin) // _ADDRESS_BYTES
        return values[first : first + n]


def _number(address: Any) -> int:
    return int(ffi.cast("uintptr_t", address))


class Texts:
    """The call of an FMU's function that reads or sets text or binaries.

    Attributes
    ----------
    call : fm_texts
    """

    def __init__(
        self, context: Context, kind: DataType, is_get: bool, values: NDArray[Any]
    ) -> None:
        self.context = context
        self._values = values
        self._is_text = kind is DataType.STRING
        n = len(values)
        self._objects: list[Any] = [None] * n
        """Those whose bytes are known; they are kept, so that no other object has their address."""
        self._bytes: list[Any] = [None] * n
        self._known = ffi.new("fm_bytes[]", n)
        self._pointers = ffi.new("char *[]", n)
        self._sizes = ffi.NULL if self._is_text else ffi.new("size_t[]", n)
        self._handle = ffi.new_handle(self)
        renew = lib.fm_python_get_texts if is_get else lib.fm_python_set_texts
        arguments = self._pointers, self._sizes, self._known, renew, self._handle
        self.call = ffi.new("fm_texts *", arguments)

    def get(self) -> None:
        """What the FMU has returned → objects."""
        for k in range(len(self._values)):
            content = self._returned(k)
            value = content.decode("utf-8", "replace") if self._is_text else content
            if self._values[k] != value:
                self._values[k] = value
            self._know(k, content)

    def set(self) -> None:
        """Objects → what the FMU takes."""
        for k, value in enumerate(self._values):
            content = value.encode() + b"\0" if self._is_text else value
            self._know(k, content)
            self._pointers[k] = self._bytes[k]
            if not self._is_text:
                self._sizes[k] = len(content)

    def _returned(self, k: int) -> bytes:
        pointer = self._pointers[k]
        if self._is_text:
            return bytes(ffi.string(pointer)) if pointer else b""
        size = self._sizes[k]
        return bytes(ffi.buffer(pointer, size)) if size else b""

    def _know(self, k: int, content: bytes) -> None:
        """The object of an element, and its bytes."""
        self._objects[k] = self._values[k]
        self._bytes[k] = ffi.from_buffer("char[]", content)
        self._known[k] = ffi.cast("void *", id(self._values[k])), self._bytes[k], len(content)


def _guarded(context: Context, act: Callable[..., Any], *arguments: Any) -> int:
    """Status of a call by the kernel; an exception is raised again where the kernel was called."""
    try:
        differs = act(*arguments)
    except BaseException as error:  # Ctrl-C too
        context.raised = error
        return int(lib.FM_ERROR)
    return int(lib.FM_AGAIN if differs else lib.FM_OK)


def _escaped(_kind: Any, error: BaseException, traceback: Any) -> None:
    """Ctrl-C that arrives before the ``try`` of :func:`_guarded`."""
    ffi.from_handle(traceback.tb_frame.f_locals["self"]).context.raised = error


def _copy(objects: Objects, target: Any, source: Any, n: int) -> None:
    objects.part(target, n)[:] = objects.part(source, n)


def _differ(objects: Objects, one: Any, other: Any, n: int) -> bool:
    return not np.array_equal(objects.part(one, n), objects.part(other, n))


def _extern(name: str, act: Callable[..., Any]) -> None:
    def call(self: Any, *arguments: Any) -> int:
        called = ffi.from_handle(self)
        return _guarded(called.context, act, called, *arguments)

    ffi.def_extern(name, error=lib.FM_ERROR, onerror=_escaped)(call)


_extern("fm_python_copy", _copy)
_extern("fm_python_differ", _differ)
_extern("fm_python_sample", lambda objects: objects.sample())
_extern("fm_python_get_texts", Texts.get)
_extern("fm_python_set_texts", Texts.set)
