"""The shared library of an FMU: found for the platform of this process, and loaded, also if it lacks functions."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING, Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, ModelError
from fmimaster.system.archive import open_archive
from fmimaster.system.model import Model, Source

if TYPE_CHECKING:
    from fmimaster.fmu.library_file import MissingDll, NeededDlls

log = logging.getLogger("fmimaster")

_SYSTEMS = {
    "win32": ("win", "windows", ".dll"),
    "linux": ("linux", "linux", ".so"),
    "darwin": ("darwin", "darwin", ".dylib"),
}
"""System → its name in FMI 2.0 and in FMI 3.0, and the suffix of shared libraries."""

_ARM = {"aarch64", "arm64"}

_old_name, _name, SUFFIX = _SYSTEMS.get(sys.platform, (sys.platform, sys.platform, ".so"))
_LIBRARIES = "DLLs" if sys.platform == "win32" else "shared libraries"
_is_64 = sys.maxsize > 2**32

FMI2 = f"{_old_name}{64 if _is_64 else 32}"
"""For example ``linux64``. Source: FMI 2.0.4, section 2.3."""

FMI3 = f"{'aarch64' if machine().lower() in _ARM else 'x86_64' if _is_64 else 'x86'}-{_name}"
"""For example ``x86_64-linux``. Source: FMI 3.0, section 2.5.1.4.1."""

_WORDS = {"linux": "Linux", "win": "Windows", "windows": "Windows", "darwin": "macOS"}
"""Systems in names of platforms → their names in messages."""

_LONGEST_PATH = 32_767
"""Characters of a path of Windows."""
_DEBUG_DLL = r"(?i)((msvc[pr]|vcruntime|vcomp|concrt|mfc)\d+(_\d)?|ucrtbase)d\.dll"
_VISUAL_C_DLL = r"(?i)(msvc[pr]|vcruntime|vcomp|concrt|mfc)\d+\w*\.dll"


def find_library(folder: Path, model: Model, source: Source) -> Path:
    """The shared library for this platform in an unpacked FMU.

    FMI 2.0.4 allows the platform names of FMI 3.0 besides its own. A library with another name than the model
    identifier is used if it is the only one.

    Raises
    ------
    ModelError
        If there is no library (the message names the available platforms), or if it is a link that leads out of the
        FMU.
    """
    where = str(source)
    binaries = folder / "binaries"
    platforms = [FMI3]
    if model.fmi_version.startswith("2"):
        # the name of FMI 2.0 does not tell the processor: it is x86-64 nearly always
        platforms = [FMI3, FMI2] if machine().lower() in _ARM else [FMI2, FMI3]
    expected = model.model_identifier + SUFFIX
    for platform in platforms:
        libraries = sorted(p for p in (binaries / platform).glob(f"*{SUFFIX}") if p.is_file())
        named = [p for p in libraries if os.path.normcase(p.name) == os.path.normcase(expected)]
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
        f"{_instead(there, model, source)}"
    )


def _instead(there: Sequence[str], model: Model, source: Source) -> str:
    """What can be done with an FMU that has binaries for these platforms only."""
    parts = [re.fullmatch(r"(\w+)-(\w+)|([a-z]+)(32|64)", name) for name in there]
    systems = {_WORDS.get(p[2] or p[3], p[2] or p[3]) for p in parts if p}
    ours = _WORDS.get(_name, _name)
    text = ""
    if _is_64 and {f"{_old_name}32", f"x86-{_name}"} & set(there):
        text = f" A library of 32 bit cannot be loaded by Python of 64 bit; export the FMU for {ours} of 64 bit."
    elif systems and ours not in systems:
        text = f" It is for {' and '.join(sorted(systems))}; export it for {ours} too."
    lists = "modelDescription.xml", "sources/buildDescription.xml"
    with suppress(FileError), open_archive(source) as archive:
        if any(b"<SourceFile" in archive.read(name) for name in lists if name in archive):
            text += f" It has C sources; build a binary from them: {compiled(model)}."
    return text


def compiled(model: Model) -> str:
    """The command of fmpy that builds a binary from the C sources of an FMU. Without the definitions, functions can get a
    prefix (FMI 3.0, section 2.5.1.4.1); a shared library must not have it. Headers of FMI 2.0 know only the second one."""
    prefix = f"FMI{model.fmi_version[0]}"
    flags = f"-D{prefix}_OVERRIDE_FUNCTION_PREFIX -D{prefix}_FUNCTION_PREFIX="
    if sys.platform == "win32":
        return f'set "CFLAGS={flags}" && fmpy compile FILE.fmu'
    return f'CFLAGS="{flags}" fmpy compile FILE.fmu'


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
        with _opened(library, where):
            return make(
                guid=model.instantiation_token,
                modelIdentifier=library.stem,
                unzipDirectory=str(folder),
                libraryPath=str(library),
            )
    except Exception as error:  # fmpy wraps the loader's OSError in a bare Exception
        raise ModelError(
            f"The library of '{where}' cannot be loaded on this machine: {_reason(error, library)}."
            f"{_wrong_machine(library)} Expected a library for {FMI3} whose own {_LIBRARIES} are installed; install what "
            "is missing, or export the FMU for this platform."
        ) from error
    finally:
        os.chdir(working_directory)  # fmpy leaves another working directory if loading fails


def _reason(error: Exception, library: Path) -> str:
    """Why a library cannot be loaded; Windows does not say which DLL is missing."""
    if sys.platform == "win32" and (missing := _needed(library).missing):
        return "; ".join(map(_missing_in_words, missing))
    words = str(error).partition(str(library) + ". ")[2] or str(error)
    return words.partition(" Try using the full path")[0].rstrip(".")


def _missing_in_words(dll: MissingDll) -> str:
    text = f"'{dll.needed_by}' needs '{dll.name}', which is neither beside it nor in a folder of Windows or of PATH"
    if re.fullmatch(_DEBUG_DLL, dll.name):
        return f"{text} (only Visual Studio has it: export the FMU as release, not for debugging)"
    if re.fullmatch(_VISUAL_C_DLL, dll.name):
        return f"{text} (it belongs to the Microsoft Visual C++ Redistributable)"
    return text


def _needed(library: Path) -> NeededDlls:
    """The DLLs that a library needs besides those of Windows and Python."""
    from fmimaster.fmu.library_file import all_needed_dlls  # other systems do not need it

    system = Path(os.environ["SYSTEMROOT"], "System32")
    return all_needed_dlls(library, [Path(sys.base_prefix), system])


def _warn_of_another_dll(beside: Iterable[Path], where: str) -> None:
    """Warn if Windows uses a DLL of another FMU or of Python: a process has one of each name. Runtimes of Visual C++ are
    made for that."""
    for dll in beside:
        loaded = None if re.fullmatch(_VISUAL_C_DLL, dll.name) else _loaded(dll.name)
        if loaded is not None and loaded != dll and loaded.read_bytes() != dll.read_bytes():
            log.warning(
                "'%s' has its own '%s', but Windows uses another file of this name that is loaded already, '%s'. If they "
                "differ in what they do, run the FMU in a process of its own: isolate (--isolate).",
                *(where, dll.name, loaded),
            )


def _folders_of_path(missing: Iterable[MissingDll]) -> Iterator[Path]:
    """Folders of PATH in which DLLs are; Python does not look there, but programs of vendors count on it."""
    folders = [Path(f) for f in os.get_exec_path() if os.path.isabs(f)]
    for dll in missing:
        found = next((folder for folder in folders if (folder / dll.name).is_file()), None)
        if found is not None:
            log.info("'%s' needs '%s', which is in '%s'.", dll.needed_by, dll.name, found)
            yield found


def _loaded(name: str) -> Path | None:
    """The file of a DLL that this process has loaded."""
    if sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32")
        kernel.GetModuleHandleW.restype = ctypes.c_void_p
        kernel.GetModuleFileNameW.argtypes = ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint
        path = ctypes.create_unicode_buffer(_LONGEST_PATH)
        handle = kernel.GetModuleHandleW(ctypes.c_wchar_p(name))
        if handle and kernel.GetModuleFileNameW(handle, path, _LONGEST_PATH):
            return Path(path.value)
    return None


def _wrong_machine(library: Path) -> str:
    """A sentence if a library is for another system or processor than this Python; the loader only reports "no such
    file" or "no valid application"."""
    from fmimaster.fmu.library_file import machine_code  # after an error only

    its, ours = machine_code(library), machine_code(Path(sys.executable))
    if ours is None or its == ours:
        return ""
    if its is None:
        return f" The file is no library for {ours.system}, this machine needs {ours.processor}."
    of = f" of {its.system}" if its.system != ours.system else ""
    return f" The file is for {its.processor}{of}, this machine needs {ours.processor}."


@contextmanager
def _opened(library: Path, where: str) -> Iterator[None]:
    """Keep a library open: a second call to open it gets the same one at once.

    Python holds its lock while it opens a library: if that takes forever, no other thread can handle Ctrl-C.
    It is opened in its own folder, as fmpy does. If it cannot be opened, the next call to open it reports the reason.
    Windows looks for the DLLs that it needs in its own folder, those of the system and that of Python, never in the working
    directory; those that are in PATH only are found as well.
    """
    if sys.platform == "win32":
        needed = _needed(library)
        _warn_of_another_dll(needed.beside, where)
        with ExitStack() as added:
            for folder in _folders_of_path(needed.missing):
                added.enter_context(os.add_dll_directory(str(folder)))
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
