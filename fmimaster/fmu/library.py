"""An FMU file: unpacked once, loaded once, instantiated as often as needed; or once in a process, if it allows no more."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from fmimaster.apart import shared_run
from fmimaster.base.data import dataclass
from fmimaster.base.errors import ModelError
from fmimaster.base.own_folder import OwnFolder
from fmimaster.base.public_names import at_place
from fmimaster.fmu.call_log import MessageLog
from fmimaster.fmu.description.model_description import parse_description, read_model
from fmimaster.fmu.description.terminals import with_terminal_ports
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.layered_standards import read_layered_standards
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.fmu.process_state import LOADING
from fmimaster.fmu.shared_library import find_library, load, without_functions
from fmimaster.system.archive import open_archive
from fmimaster.system.declarations import Interface
from fmimaster.system.model import Model, Source
from fmimaster.system.xml import Element

# FMUs that allow one instance per process -----------------------------------------------------------------------------

Identity = frozenset[tuple[object, ...]]
"""The identity of an FMU: its file, independent of the path, and its instantiation token. Two FMUs that share one of
them are the same."""

_USED: dict[tuple[object, ...], tuple[int, str]] = {}
"""For all simulations in this process: part of an identity → process and full name of the instance. A forked process
has a copy, in which the entries of its parent are ignored."""

_LOCK = threading.Lock()


def identity(source: Source, model: Model) -> Identity:
    """The identity of an FMU that allows one instance per process; empty for all others."""
    if not model.capabilities.can_be_instantiated_only_once_per_process:
        return frozenset()
    file = source.path.stat()
    parts: set[tuple[object, ...]] = {(file.st_dev, file.st_ino, source.member)}
    if model.instantiation_token:
        parts.add((model.model_identifier, model.instantiation_token))
    return frozenset(parts)


def used_twice(users: Iterable[tuple[str, Identity]]) -> list[list[str]]:
    """Groups of two or more instances, by name, of one FMU that allows only one."""
    known = [(name, its) for name, its in users if its]
    groups: list[tuple[Identity, list[int]]] = []
    for k, (_, its) in enumerate(known):
        same = [group for group in groups if not its.isdisjoint(group[0])]
        numbers = sorted([k, *(n for _, others in same for n in others)])
        groups = [group for group in groups if group not in same]
        groups.append((its.union(*(parts for parts, _ in same)), numbers))
    found = sorted(numbers for _, numbers in groups if len(numbers) > 1)
    return [[known[k][0] for k in numbers] for numbers in found]


def _claim(parts: Identity, name: str, where: str) -> None:
    """Note that an FMU is in use, until :func:`release`.

    Raises
    ------
    ModelError
        If it is in use already, by this simulation or another one of this process.
    """
    with _LOCK:
        for part in parts:
            process, first = _USED.get(part, (0, ""))
            if process == os.getpid():
                raise _second_instance(first, name, where)
        _USED.update(dict.fromkeys(parts, (os.getpid(), name)))


def release(parts: Identity) -> None:
    """The FMU is not in use any more."""
    with _LOCK:
        for part in parts:
            _USED.pop(part, None)


def refuse_second_instances(users: Iterable[tuple[str, Source, Model]]) -> None:
    """Raise ModelError if a system has several instances, by name, of an FMU that allows one."""
    sources = {name: (source, model) for name, source, model in users}
    for names in used_twice((n, identity(*its)) for n, its in sources.items()):
        raise _second_instance(names[0], names[1], str(sources[names[1]][0]))


def _second_instance(first: str, second: str, where: str) -> ModelError:
    return ModelError(
        f"'{second}' would be the second instance of '{where}' in this process, but the FMU allows one only "
        f"(canBeInstantiatedOnlyOncePerProcess); the first is '{first}'. Use it for one component only, and run "
        "simulations at the same time in separate processes."
    )


# FMU files ------------------------------------------------------------------------------------------------------------

log = logging.getLogger("fmimaster")

NOT_NEEDED = ("documentation/", "sources/")
"""Folders of an FMU that a simulation does not need; not unpacking them halves the time of loading a small FMU."""

_DESCRIPTION = "modelDescription.xml"

_NO_MESSAGE = "The FMU gave no message; with debug_logging (--debug-logging) it may give one."

_KINDS: Mapping[tuple[str, Interface], str] = {
    ("2", Interface.CO_SIMULATION): "fmu.fmi2:Fmi2Instance",
    ("3", Interface.CO_SIMULATION): "fmu.fmi3:Fmi3Instance",
    ("2", Interface.MODEL_EXCHANGE): "fmu.model_exchange.instance:Fmi2ModelExchange",
    ("3", Interface.MODEL_EXCHANGE): "fmu.model_exchange.instance:Fmi3ModelExchange",
    ("3", Interface.SCHEDULED_EXECUTION): "fmu.scheduled:ScheduledInstance",
}
"""Major version of FMI and interface → place of the class. It is imported when a library is loaded: it imports fmpy, which
is slow."""


def _read(fmu: UnpackedFmu, interface: Interface | None, root: Element | None = None) -> Model:
    """The model of an unpacked FMU; see :func:`read_model`."""
    model = read_model(fmu.folder, fmu.where, interface, root=root)
    return read_layered_standards(fmu, with_terminal_ports(fmu, model))


@dataclass(frozen=True, slots=True)
class _Content:
    """What an FMU contains that its model is read from."""

    where: str
    interface: Interface | None
    checksums: frozenset[tuple[str, int, int]]
    unpacked: UnpackedFmu = field(compare=False)


_LARGEST_KNOWN = 2**20
"""Size in bytes of the largest model description whose model is kept for the next run."""


@lru_cache(maxsize=64)
def _known(content: _Content) -> Model:
    """The model of an FMU that many runs of this process use: it is read once."""
    return _read(content.unpacked, content.interface)


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
        self._claimed: Identity = frozenset()
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
            checksums = self._unpack(whole)
            unpacked = UnpackedFmu(self.folder, str(source))
            if whole:
                self._description = parse_description(self.folder, str(source))
            self.model: Model = (
                _read(unpacked, interface, self._description)
                if whole or checksums is None or self._is_large()
                else _known(_Content(str(source), interface, checksums, unpacked))
            )
            self._kind = _kind(self.model, str(source))
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

    def _is_large(self) -> bool:
        return (self.folder / _DESCRIPTION).stat().st_size > _LARGEST_KNOWN

    def _unpack(self, whole: bool) -> frozenset[tuple[str, int, int]] | None:
        """Unpack the files, if they are in an archive; its checksums."""
        with open_archive(self.source) as archive:
            if _DESCRIPTION not in archive:
                raise ModelError(
                    f"'{self.source}' has no modelDescription.xml, so it is not an FMU. Expected it at the top level "
                    "of the archive; it must not be packed with a folder around it."
                )
            if self._unpacked is not None:
                archive.unpack(self.folder, () if whole else NOT_NEEDED)
            return archive.checksums()

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
        parts = identity(self.source, self.model)
        _claim(parts, name, str(self.source))
        try:
            instance = self._instantiated(name, options)
        except BaseException:
            release(parts)
            raise
        self._claimed = parts
        self._instances.append(instance)
        return instance

    def _instantiated(self, name: str, options: InstanceOptions) -> Instance:
        fmu = copy(self._loaded())
        messages = MessageLog(name, options.logging_on)
        self._logs.append(messages)
        if (calls := options.call_log) is not None:
            messages.call_log = calls
            fmu.fmiCallLogger = partial(calls.add, name)  # by fmpy, for the instantiation
        try:
            make = shared_run.noted(self._class, f"the instantiation of '{name}'")
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
            library = find_library(self.folder, self.model, self.source)
            with LOADING:
                self._class = at_place(self._kind)
                self.present = f"the loading of the library of '{self.source}'"
                noted = shared_run.noted(load, self.present)
                try:
                    self._fmu = noted(
                        self._class.fmpy_class, self.model, self.folder, library, str(self.source)
                    )
                finally:
                    self.present = ""
            log.info("library of '%s': %s", self.source, library)
            missing = self._fmu.missing
            if self._fmu.has_none:
                raise ModelError(without_functions(library, self.model, str(self.source)))
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

    def free_instances(self) -> None:
        """Free all instances; others can be made. Never raises."""
        for instance in self._instances:
            self.present = call_in_words("FreeInstance", instance.name, self.model)
            self._try(instance.free, f"'{instance.name}' cannot be freed")
        self.present = ""
        self._instances.clear()
        release(self._claimed)
        self._claimed = frozenset()

    def close(self) -> None:
        """Free all instances, unload the library, delete the unpacked files. Never raises, and always does all of
        it."""
        self.free_instances()
        for messages in self._logs:
            if messages.is_complete and not messages.last:
                log.info("'%s' has logged nothing: it has no debug messages.", messages.instance)
        self._logs.clear()
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
    prefix = model.function_prefix if function[:1].isupper() else ""
    return f"{prefix}{function} of '{name}'"


def _kind(model: Model, where: str) -> str:
    kind = _KINDS.get((model.fmi_version[:1], model.interface))
    if kind is None:
        offered = " and ".join(i.value for i in model.interfaces)
        raise ModelError(
            f"'{where}' cannot be run by {model.interface.words} of FMI {model.fmi_version}, it offers {offered}. "
            "Expected Co-Simulation or Model Exchange, or Scheduled Execution of FMI 3.0."
        )
    return kind
