"""The shared library of an FMU: found for the platform of this process, and loaded, also if it lacks functions."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from platform import machine
from typing import Any

from fmimaster.base.errors import ModelError
from fmimaster.system.model import Model

log = logging.getLogger("fmimaster")

_SYSTEMS = {
    "win32": ("win", "windows", ".dll"),
    "linux": ("linux", "linux", ".so"),
    "darwin": ("darwin", "darwin", ".dylib"),
}
"""System → its name in FMI 2.0 and in FMI 3.0, and the suffix of shared libraries."""

_ARM = {"aarch64", "arm64"}

_old_name, _name, SUFFIX = _SYSTEMS.get(sys.platform, (sys.platform, sys.platform, ".so"))
_is_64 = sys.maxsize > 2**32

FMI2 = f"{_old_name}{64 if _is_64 else 32}"
"""For example ``linux64``. Source: FMI 2.0.4, section 2.3."""

FMI3 = f"{'aarch64' if machine().lower() in _ARM else 'x86_64' if _is_64 else 'x86'}-{_name}"
"""For example ``x86_64-linux``. Source: FMI 3.0, section 2.5.1.4.1."""

_MACHINES = {
    3: "x86",
    8: "MIPS",
    21: "PowerPC 64",
    40: "ARM",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
}
"""Processors by their number in the header of an ELF file (e_machine)."""


def find_library(folder: Path, model: Model, where: str) -> Path:
    """The shared library for this platform in an unpacked FMU.

    FMI 2.0.4 allows the platform names of FMI 3.0 besides its own. A library with another name than the model
    identifier is used if it is the only one.

    Raises
    ------
    ModelError
        If there is no library (the message names the available platforms), or if it is a link that leads out of the
        FMU.
    """
    binaries = folder / "binaries"
    platforms = [FMI2, FMI3] if model.fmi_version.startswith("2") else [FMI3]
    expected = model.model_identifier + SUFFIX
    for platform in platforms:
        libraries = sorted(p for p in (binaries / platform).glob(f"*{SUFFIX}") if p.is_file())
        named = [p for p in libraries if p.name == expected]
        if named or len(libraries) == 1:
            [library] = named or libraries
            if not named:
                log.warning("'%s': '%s' expected, '%s' used.", where, expected, library.name)
            _refuse_outside(folder, library, where)
            return library
    there = sorted({p.relative_to(binaries).parts[0] for p in binaries.rglob("*") if p.is_file()})
    told = [f"{name} without '{expected}'" if name in platforms else name for name in there]
    has = f"it has {', '.join(told)}" if told else "it has no binary"
    raise ModelError(
        f"'{where}' has no binary for this platform, expected {' or '.join(platforms)}; {has}."
    )


def compiled(model: Model) -> str:
    """The command of fmpy that builds a binary from the C sources of an FMU. Without the definitions, functions can get a
    prefix (FMI 3.0, section 2.5.1.4.1); a shared library must not have it. Headers of FMI 2.0 know only the second one."""
    prefix = f"FMI{model.fmi_version[0]}"
    return f'CFLAGS="-D{prefix}_OVERRIDE_FUNCTION_PREFIX -D{prefix}_FUNCTION_PREFIX=" fmpy compile FILE.fmu'


def without_functions(library: Path, model: Model, where: str) -> str:
    """The error for a library without a function of its FMI version; it names the prefix that they have instead."""
    version = model.fmi_version
    known = f"fmi{version[0]}Instantiate"
    text = f"The library of '{where}' has none of the functions of FMI {version}, for example {known}. "
    found = re.search(rb"([A-Za-z_]\w{0,200})%b\w*\0" % known.encode(), library.read_bytes())
    if found is None:
        return f"{text}Ask the FMU's vendor."
    return (
        f"{text}Their names begin with '{found[1].decode()}', as for static linking. Compile the sources again, without a "
        f"prefix: {compiled(model)}."
    )


def _refuse_outside(folder: Path, library: Path, where: str) -> None:
    """Raise if a library of an unpacked FMU is a link to code that does not belong to the FMU."""
    real = library.resolve()
    if not real.is_relative_to(folder.resolve()):
        raise ModelError(
            f"The library of '{where}' is a link to '{real}', outside of the FMU. Expected the library itself; copy it "
            "into the FMU."
        )


def load(make: Callable[..., Any], model: Model, folder: Path, library: Path, where: str) -> Any:
    working_directory = Path.cwd()
    try:
        with _opened(library):
            return make(
                guid=model.instantiation_token,
                modelIdentifier=library.stem,
                unzipDirectory=str(folder),
                libraryPath=str(library),
            )
    except Exception as error:  # fmpy wraps the loader's OSError in a bare Exception
        words = str(error).partition(str(library) + ". ")[2] or str(error)
        raise ModelError(
            f"The library of '{where}' cannot be loaded on this machine: {words}.{_wrong_machine(library)} Expected a "
            f"library for {FMI3} whose own shared libraries are installed; install what is missing, or "
            "export the FMU for this platform."
        ) from error
    finally:
        os.chdir(working_directory)  # fmpy leaves another working directory if loading fails


def _wrong_machine(library: Path) -> str:
    """A sentence if an ELF library is for another processor than this Python; the loader only reports "no such
    file"."""
    its, ours = _machine(library), _machine(Path(sys.executable))
    if not ours or its == ours:
        return ""
    return f" The file is {f'for {its}' if its else 'no ELF library'}, this machine needs {ours}."


def _machine(file: Path) -> str:
    """The processor that an ELF file is for; empty if it is no ELF file."""
    with file.open("rb") as stream:
        head = stream.read(20)
    if head[:4] != b"\x7fELF":
        return ""
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    return _MACHINES.get(number, f"processor {number} of the ELF standard")


@contextmanager
def _opened(library: Path) -> Iterator[None]:
    """Keep a library open: a second call to open it gets the same one at once.

    Python holds its lock while it opens a library: if that takes forever, no other thread can handle Ctrl-C.
    It is opened in its own folder, as fmpy does. If it cannot be opened, the next call to open it reports the reason.
    """
    if sys.platform == "win32":
        yield
        return
    c = ctypes.CDLL(None)
    dlopen = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)(("dlopen", c))
    dlclose = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(("dlclose", c))
    before = Path.cwd()
    os.chdir(library.parent)
    handle = dlopen(os.fsencode(library), os.RTLD_NOW)
    os.chdir(before)
    try:
        yield
    finally:
        if handle:
            dlclose(handle)


@dataclass
class Condition:
    """State of one loaded library, shared by all its instances."""

    is_fatal: bool = False
    """Whether an instance has returned Fatal: then FMI forbids any further call, for all instances."""
    functions: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """Name and types of arguments → function, for functions that were used."""


class Tolerant:
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
