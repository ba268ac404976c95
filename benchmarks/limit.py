"""Compiles and drives limit.c."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from systems import Measured, System


class _Instance(ctypes.Structure):
    _fields_ = [
        ("library", c_void_p),
        ("component", c_void_p),
        ("n_inputs", c_size_t),
        ("n_outputs", c_size_t),
        ("inputs", POINTER(c_uint32)),
        ("outputs", POINTER(c_uint32)),
        ("sources", POINTER(c_size_t)),
        ("values", POINTER(c_double)),
        ("column", c_size_t),
    ]


_DOUBLES = np.ctypeslib.ndpointer(np.float64, flags="C")

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "limit_load": (c_void_p, [c_char_p, c_int]),
    "limit_instantiate": (c_void_p, [c_void_p, c_char_p, c_char_p, c_char_p]),
    "limit_set_text": (c_int, [c_void_p, c_void_p, c_uint32, c_char_p]),
    "limit_set": (c_int, [POINTER(_Instance), c_uint32, c_double]),
    "limit_initialize": (
        c_int,
        [POINTER(_Instance), c_int, c_double, c_double, c_int, _DOUBLES],
    ),
    "limit_run": (
        c_int,
        [
            *(POINTER(_Instance), c_int, c_int64, c_int64, c_double, c_int64),
            *(_DOUBLES, _DOUBLES, c_size_t, _DOUBLES),
        ],
    ),
    "limit_free": (None, [POINTER(_Instance), c_int]),
    "limit_unload": (None, [c_void_p]),
}


@cache
def compiled() -> Any:
    """limit.c as a library, compiled with -O2."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "limit.so"
        source = Path(__file__).with_name("limit.c")
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared"]
        subprocess.run(["cc", *flags, "-o", target, source, "-ldl"], check=True)
        library = ctypes.CDLL(str(target))
    for name, (result, arguments) in _SIGNATURES.items():
        function = library[name]
        function.restype, function.argtypes = result, arguments
        setattr(library, name, function)
    return library


def run(system: System, *, new_memory: bool = False) -> Measured:
    """The hand-written loop in C.

    Its rows lie in memory that the process has already; or in such as the operating system hands out while they are
    written, as in a run of fmimaster.
    """
    c = compiled()
    libraries: dict[Path, Any] = {}
    columns = system.columns
    column = {key: n for n, key in enumerate(columns)}
    instances = (_Instance * len(system.components))()
    for i, component in enumerate(system.components):
        file = component.file
        if file.path not in libraries:
            libraries[file.path] = c.limit_load(str(file.library).encode(), system.fmi)
        library = libraries[file.path]
        folder = file.folder / "resources"
        resources = folder.as_uri() if system.fmi == 2 else f"{folder}/"
        entry = instances[i]
        entry.library = library
        entry.component = c.limit_instantiate(
            library, component.name.encode(), file.description.guid.encode(), resources.encode()
        )
        assert entry.component, f"'{component.name}' was not instantiated"
        wired = [(x, a, out) for a, out, b, x in system.connections if b == i]
        entry.n_inputs, entry.n_outputs = len(wired), len(file.outputs)
        entry.inputs = (c_uint32 * len(wired))(*(file.references[x] for x, _, _ in wired))
        entry.sources = (c_size_t * len(wired))(*(column[a, out] for _, a, out in wired))
        entry.values = (c_double * len(wired))()
        entry.outputs = (c_uint32 * len(file.outputs))(*(file.references[o] for o in file.outputs))
        entry.column = column[i, file.outputs[0]]
        for name, value in component.start_values.items():
            reference = file.references[name]
            if isinstance(value, str):
                c.limit_set_text(library, entry.component, reference, value.encode())
            else:
                c.limit_set(ctypes.byref(entry), reference, value)
    n, steps, width = len(instances), system.steps, len(columns)
    times, rows = np.empty(steps + 1), np.empty((steps + 1, width))
    if not new_memory:
        times[:], rows[:] = 0.0, 0.0
    seconds = np.zeros(2)
    status = c.limit_initialize(instances, n, 0.0, float(system.stop), system.passes, rows[0])
    numerator, denominator = system.step.as_integer_ratio()
    status |= c.limit_run(
        instances, n, 0, numerator, denominator, steps, times, rows, width, seconds
    )
    c.limit_free(instances, n)
    for library in libraries.values():
        c.limit_unload(library)
    assert status == 0, f"an FMI function returned a status that is not OK ({status})"
    return Measured(float(seconds[0]), float(seconds[1]), rows)
