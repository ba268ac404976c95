"""An FMU file: unpacked once, loaded once, instantiated as often as needed."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from os import chdir
from pathlib import Path
from typing import Any

from fmimaster.apart import shared_run
from fmimaster.base.errors import ModelError
from fmimaster.base.own_folder import OwnFolder
from fmimaster.fmu import once
from fmimaster.fmu.binary import MessageLog
from fmimaster.fmu.description.model_description import parse_description, read_model
from fmimaster.fmu.description.power_ports import with_terminal_ports
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.layered_standards import read_layered_standards
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.fmu.platforms import FMI2, FMI3, SUFFIX
from fmimaster.fmu.preload import opened
from fmimaster.fmu.process_state import LOADING
from fmimaster.system.archive import open_archive
from fmimaster.system.description import Source
from fmimaster.system.model import Interface, Model
from fmimaster.system.xml import Element

log = logging.getLogger("fmimaster")

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

NOT_NEEDED = ("documentation/", "sources/")
"""Folders of an FMU that a simulation does not need; not unpacking them halves the time of loading a small FMU."""

_NO_MESSAGE = "The FMU gave no message; with debug_logging (--debug-logging) it may give one."

Kind = tuple[Callable[..., Any], Callable[..., Instance]]
"""fmpy's class, which loads the library; the class of instances."""


def _fmi2() -> Kind:
    from fmimaster.fmu.fmi2 import Fmi2Instance  # these import fmpy, which is slow to import
    from fmimaster.fmu.tolerant import FMU2Tolerant

    return FMU2Tolerant, Fmi2Instance


def _fmi3() -> Kind:
    from fmimaster.fmu.fmi3 import Fmi3Instance
    from fmimaster.fmu.tolerant import FMU3Tolerant

    return FMU3Tolerant, Fmi3Instance


def _fmi2_model_exchange() -> Kind:
    from fmimaster.fmu.model_exchange.versions import Fmi2ModelExchange
    from fmimaster.fmu.tolerant import FMU2ModelTolerant

    return FMU2ModelTolerant, Fmi2ModelExchange


def _fmi3_model_exchange() -> Kind:
    from fmimaster.fmu.model_exchange.versions import Fmi3ModelExchange
    from fmimaster.fmu.tolerant import FMU3ModelTolerant

    return FMU3ModelTolerant, Fmi3ModelExchange


def _fmi3_scheduled_execution() -> Kind:
    from fmimaster.fmu.scheduled import ScheduledInstance
    from fmimaster.fmu.tolerant import FMU3ScheduledTolerant

    return FMU3ScheduledTolerant, ScheduledInstance


_KINDS: Mapping[tuple[str, Interface], Callable[[], Kind]] = {
    ("2", Interface.CO_SIMULATION): _fmi2,
    ("3", Interface.CO_SIMULATION): _fmi3,
    ("2", Interface.MODEL_EXCHANGE): _fmi2_model_exchange,
    ("3", Interface.MODEL_EXCHANGE): _fmi3_model_exchange,
    ("3", Interface.SCHEDULED_EXECUTION): _fmi3_scheduled_execution,
}
"""Supported combinations of major version of FMI and interface. Imported when a library is loaded."""


class FmuFile:
    """An FMU on disk: its model, and its instances, which share one unpacked folder and one library.

    Parameters
    ----------
    interface : Interface, optional
        Interface by which the FMU is used. Default: the first that it has of Co-Simulation, Model Exchange and Scheduled
        Execution.
    whole : bool
        Whether parts that a simulation does not need are kept: folders such as the sources, and the parsed model
        description.

    Raises
    ------
    FileError, ModelError
        If it is no readable FMU, or cannot be used by this interface; see :mod:`fmimaster.system.archive`.
    """

    def _prepare(self, source: Source) -> None:
        self.source = source
        self.folder: Path
        self._unpacked: OwnFolder | None = None
        self._fmu: Any = None
        self._description: Element | None = None
        self._instances: list[Instance] = []
        self._logs: list[MessageLog] = []
        self.present = ""
        """The call by which the library is loaded or unloaded, or an instance freed, now, in words."""
        self._claimed: once.Identity = frozenset()
        """Identity of the FMU when it was claimed: its file may be replaced or deleted during a run."""

    def __init__(
        self,
        source: Source,
        *,
        interface: Interface | None = None,
        whole: bool = False,
    ) -> None:
        self._prepare(source)
        if source.path.is_dir() and not source.member:
            self.folder = source.path.resolve()
        else:
            self._unpacked = OwnFolder()
            self.folder = self._unpacked.path
        try:
            self._unpack(whole)
            root = parse_description(self.folder, str(source))
            self.model: Model = read_model(self.folder, str(source), interface, root=root)
            self._description = root if whole else None
            self._kind = _kind(self.model, str(source))
            unpacked = UnpackedFmu(self.folder, str(source))
            self.model = with_terminal_ports(unpacked, self.model)
            self.model = read_layered_standards(unpacked, self.model)
        except BaseException:
            self.close()
            raise

    @classmethod
    def unpacked(cls, source: Source, folder: Path, model: Model) -> FmuFile:
        """An FMU that another process has unpacked and read; the folder belongs to that process."""
        fmu = cls.__new__(cls)
        fmu._prepare(source)
        fmu.folder, fmu.model = folder, model
        fmu._kind = _kind(model, str(source))
        return fmu

    def _unpack(self, whole: bool) -> None:
        with open_archive(self.source) as archive:
            if "modelDescription.xml" not in archive:
                raise ModelError(
                    f"'{self.source}' has no modelDescription.xml, so it is not an FMU. Expected it at the top level "
                    "of the archive; it must not be packed with a folder around it."
                )
            if self._unpacked is not None:
                archive.unpack(self.folder, () if whole else NOT_NEEDED)

    def description(self) -> Element:
        """The parsed model description, for the caller to change.

        For a whole FMU, it is the one from which its model was read. It takes much memory, so it is not kept
        afterwards.
        """
        root, self._description = self._description, None
        return parse_description(self.folder, str(self.source)) if root is None else root

    def instantiate(self, name: str, options: InstanceOptions) -> Instance:
        """Make an instance.

        Raises
        ------
        ModelError
            If the library cannot be loaded on this machine, or the FMU refuses to be instantiated.
        """
        identity = once.identity(self.source, self.model)
        once.claim(identity, name, str(self.source))
        try:
            instance = self._instantiated(name, options)
        except BaseException:
            once.release(identity)
            raise
        self._claimed = identity
        self._instances.append(instance)
        return instance

    def _instantiated(self, name: str, options: InstanceOptions) -> Instance:
        fmu = copy(self._loaded())
        fmu.instanceName = name
        messages = MessageLog(name, options.logging_on)
        self._logs.append(messages)
        if (calls := options.call_log) is not None:
            messages.call_log = calls
            fmu.fmiCallLogger = partial(calls.add, name)  # by fmpy, for the instantiation
        try:
            make = shared_run.noted(self._kind()[1], f"the instantiation of '{name}'")
            instance: Instance = make(fmu, self.model, name, messages, options)
        except Exception as error:  # fmpy raises a bare Exception for a null pointer
            said = " ".join(m for m in messages.last if m)
            raise ModelError(
                f"'{self.source}' cannot be instantiated as '{name}': {str(error).rstrip('.')}. "
                + (f"Message of the FMU: {said}" if said else _NO_MESSAGE)
                + " A frequent reason is a missing licence, resource file or program."
            ) from error
        return instance

    def _loaded(self) -> Any:
        if self._fmu is None:
            library = find_library(self.folder, self.model, str(self.source))
            with LOADING:
                make, _ = self._kind()
                self.present = f"the loading of the library of '{self.source}'"
                load = shared_run.noted(_load, self.present)
                try:
                    self._fmu = load(make, self.model, self.folder, library, str(self.source))
                finally:
                    self.present = ""
            log.info("library of '%s': %s", self.source, library)
            missing = self._fmu.missing
            if self._fmu.has_none:
                raise ModelError(_without_functions(library, self.model, str(self.source)))
            if missing:
                log.warning(
                    "'%s' lacks %d functions of the FMI standard: %s. The FMU can be used as long as none of them is "
                    "needed.",
                    self.source,
                    len(missing),
                    ", ".join(missing),
                )
            for standard in self.model.layered_standards:
                if reason := standard.why_not_used:
                    name, what = standard.name, reason.removesuffix(".")
                    log.warning(
                        "'%s' runs without the layered standard %s: %s.", self.source, name, what
                    )
        return self._fmu

    def close(self) -> None:
        """Free all instances, unload the library, delete the unpacked files. Never raises, and always does all of
        it."""
        for instance in self._instances:
            self.present = call_in_words("FreeInstance", instance.name, self.model)
            self._try(instance.free, f"'{instance.name}' cannot be freed")
        for messages in self._logs:
            if messages.is_complete and not messages.last:
                log.info("'%s' has logged nothing: it has no debug messages.", messages.instance)
        self._logs.clear()
        once.release(self._claimed)
        self._claimed = frozenset()
        self._instances.clear()
        if self._fmu is not None:
            self.present = f"the unloading of the library of '{self.source}'"
            unload = shared_run.noted(self._fmu.freeLibrary, self.present)
            self._try(unload, f"The library of '{self.source}' cannot be unloaded")
            self._fmu = None
        self.present = ""
        self._remove_files()

    def _try(self, act: Callable[[], object], else_: str) -> None:
        try:
            act()
        except Exception as error:
            log.warning("%s: %s", else_, error)

    def abandon(self) -> None:
        """Delete the unpacked files and receive no more messages, although a call has not returned."""
        for messages in self._logs:
            messages.is_abandoned = True
        self._remove_files()

    def _remove_files(self) -> None:
        if self._unpacked is not None:
            self._unpacked.remove()


def call_in_words(function: str, name: str, model: Model) -> str:
    """A call of an instance: ``"fmi3DoStep of 'motor'"``."""
    prefix = f"fmi{model.fmi_version[:1]}" if function[:1].isupper() else ""
    return f"{prefix}{function} of '{name}'"


def _kind(model: Model, where: str) -> Callable[[], Kind]:
    kind = _KINDS.get((model.fmi_version[:1], model.interface))
    if kind is None:
        offered = " and ".join(i.value for i in model.interfaces)
        raise ModelError(
            f"'{where}' cannot be run by {model.interface.words} of FMI {model.fmi_version}, it offers {offered}. "
            "Expected Co-Simulation or Model Exchange, or Scheduled Execution of FMI 3.0."
        )
    return kind


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


def _without_functions(library: Path, model: Model, where: str) -> str:
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


def _load(make: Callable[..., Any], model: Model, folder: Path, library: Path, where: str) -> Any:
    working_directory = Path.cwd()
    try:
        with opened(library):
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
        chdir(working_directory)  # fmpy leaves another working directory if loading fails


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
