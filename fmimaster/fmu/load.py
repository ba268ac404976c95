"""Components → models and instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fmimaster.base.errors import FileError
from fmimaster.base.own_folder import remove_folders_of_the_dead
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.library import FmuFile, call_in_words
from fmimaster.system.constraints import constraint_model
from fmimaster.system.declarations import Interface
from fmimaster.system.description import Component, Connector
from fmimaster.system.model import Model, Source

if TYPE_CHECKING:
    from fmimaster.fmu.call_log import CallLog
    from fmimaster.fmu.computed import SignalTable

_TableKey = tuple[str, Source, tuple[Connector, ...]]


def _table_key(component: Component) -> _TableKey:
    """The key of a table; without start values, which may be lists and belong to FMUs."""
    return component.name, component.source, component.connectors


class Loader:
    """Loads each distinct file once, and owns all loaded files. A context manager.

    Parameters
    ----------
    logging_on : bool
        Whether FMUs log all their messages; otherwise only errors.
    logs_calls : bool
        Whether each FMI call is logged.
    call_log_file : path, optional
        File for the log of FMI calls; default: the log of fmimaster.
    whole : bool
        Whether FMUs are unpacked with the folders that a simulation does not need, and their parsed descriptions kept.
    """

    def __init__(
        self,
        *,
        logging_on: bool = False,
        logs_calls: bool = False,
        call_log_file: Path | None = None,
        whole: bool = False,
    ) -> None:
        remove_folders_of_the_dead()
        self._logging_on = logging_on
        self._logs_calls = logs_calls
        # FMUs may change the working directory
        self._call_log_file = call_log_file and call_log_file.absolute()
        self._call_log: CallLog | None = None
        self._whole = whole
        self._fmus: dict[tuple[Source, Interface | None], FmuFile] = {}
        self._tables: dict[_TableKey, SignalTable] = {}
        self._owned: list[Instance] = []
        """Instances that are not freed with their file."""
        self._present = ""

    def model(self, component: Component) -> Model:
        """The model of a component.

        Raises
        ------
        FileError, ModelError
            If its source is neither an FMU nor a table, or cannot be used.
        """
        if component.constraint is not None:
            return constraint_model(component.constraint)
        if component.python is not None:
            return component.python.model()
        if component.adaptation is not None:
            return component.adaptation.model()
        if self._is_table(component):
            return self.table(component).model
        return self.file(component.source, component.interface).model

    def is_fmu(self, component: Component) -> bool:
        """Whether a component is an FMU, not a table, or a component that is computed by fmimaster or in Python."""
        others = (component.constraint, component.python, component.adaptation)
        return all(other is None for other in others) and not self._is_table(component)

    def table(self, component: Component) -> SignalTable:
        """The table of a component whose source is one."""
        key = _table_key(component)
        if key not in self._tables:
            # few systems have tables
            from fmimaster.fmu.computed import SignalTable
            from fmimaster.results.csv import read_csv

            types = {c.name: c.type for c in component.connectors if c.type is not None}
            if component.source.member:
                raise FileError(
                    f"'{component.source}': a table must be a separate file, not a member of an archive."
                )
            rows = read_csv(component.source.path, [n for n, t in types.items() if t.is_integer])
            empty = next((n for n, v in rows.columns.items() if np.ma.is_masked(v)), None)
            if empty is not None:
                raise FileError(
                    f"'{component.source}': column '{empty}' has an empty cell. Give a number in each row."
                )
            self._tables[key] = SignalTable(component.name, rows.time, rows.columns, types)
        return self._tables[key]

    def use_table(self, component: Component, table: SignalTable) -> None:
        """Use this table for a component; its source is not read."""
        self._tables[_table_key(component)] = table

    def move_rows(self, component: Component, points: Mapping[float, float]) -> None:
        """Use the table of a component with its rows at other times: see :meth:`Table.moved`."""
        self._tables[_table_key(component)] = self.table(component).moved(points)

    def instantiate(self, component: Component, name: str, options: InstanceOptions) -> Instance:
        """A new instance of a component, by this full name: see :meth:`FmuFile.instantiate`."""
        with self.instantiating(name):
            return self._instantiated(component, name, options)

    @contextmanager
    def instantiating(self, name: str) -> Iterator[None]:
        """The present call is the instantiation of this instance."""
        self._present = f"the instantiation of '{name}'"
        try:
            yield
        finally:
            self._present = ""

    @property
    def present(self) -> str:
        """The call by which instances are made or freed now, in words, for a thread that asks; empty for none."""
        of_files = (fmu.present for fmu in list(self._fmus.values()) if fmu.present)
        return next(of_files, self._present)

    def _instantiated(self, component: Component, name: str, options: InstanceOptions) -> Instance:
        if component.constraint is not None:
            model = self.model(component)
            from fmimaster.fmu.computed import ConstraintInstance  # few systems need it

            return ConstraintInstance(name, model, component.constraint.tolerance)
        if component.python is not None:
            from fmimaster.fmu.python_instance import PythonInstance  # few systems need it

            return self.own(PythonInstance(component.python, name))
        if component.adaptation is not None:
            from fmimaster.fmu.adaptation_elements import adaptation_instance  # few systems need it

            return adaptation_instance(component.adaptation, name)
        if self._is_table(component):
            from fmimaster.fmu.computed import TableInstance  # few systems need it

            return TableInstance(self.table(component), name)
        fmu = self.file(component.source, component.interface)
        return fmu.instantiate(name, self.options(options))

    def own(self, instance: Instance) -> Instance:
        """Free an instance at the end, before the files are removed; returns it."""
        self._owned.append(instance)
        return instance

    def options(self, options: InstanceOptions) -> InstanceOptions:
        """The same options, with the logs of this run."""
        if self._logs_calls:
            if self._call_log is None:
                self._call_log = self._new_call_log()
            # an FMU that is called in Python gets callbacks in Python
            options = replace(options, call_log=self._call_log, update_callback=None)
        return replace(options, logging_on=True) if self._logging_on else options

    def _new_call_log(self) -> CallLog:
        # few runs log calls
        from fmimaster.base.files import refuse_to_overwrite
        from fmimaster.fmu.call_log import CallLog

        if self._call_log_file:
            refuse_to_overwrite(self._call_log_file, [source.path for source, _ in self._fmus])
        return CallLog(self._call_log_file)

    def file(self, source: Source, interface: Interface | None = None) -> FmuFile:
        """The FMU file at a source, unpacked, for use by this interface, or by its default one."""
        usual = source, Interface.CO_SIMULATION
        if interface is None and usual in self._fmus:
            return self._fmus[usual]
        if (source, interface) not in self._fmus:
            suffix = (source.member or source.path.name).rpartition(".")[2].lower()
            if suffix != "fmu" and not (source.path.is_dir() and not source.member):
                raise FileError(f"'{source}' is neither an FMU (.fmu) nor a table (.csv).")
            fmu = FmuFile(source, interface=interface, whole=self._whole)
            self._fmus[source, interface] = fmu
            if interface is None:
                self._fmus.setdefault((source, fmu.model.interface), fmu)
        return self._fmus[source, interface]

    def _is_table(self, component: Component) -> bool:
        source = component.source
        is_csv = (source.member or source.path.name).lower().endswith(".csv")
        return is_csv or (bool(self._tables) and _table_key(component) in self._tables)

    def free_instances(self) -> None:
        """Free all instances; the files stay loaded, and others can be made. Never raises."""
        self._free_owned()
        for fmu in {id(fmu): fmu for fmu in self._fmus.values()}.values():
            fmu.free_instances()

    def _free_owned(self) -> None:
        for instance in self._owned:
            self._present = call_in_words("FreeInstance", instance.name, instance.model)
            instance.free()
        self._owned.clear()
        self._present = ""

    def close(self) -> None:
        """Free all instances, unload all libraries, delete the unpacked files. Never raises."""
        self._free_owned()
        # a file that is used by its default interface is known by two keys
        for fmu in {id(fmu): fmu for fmu in self._fmus.values()}.values():
            fmu.close()
        self._fmus.clear()
        if self._call_log is not None:
            self._call_log.close()

    def abandon(self) -> None:
        """Delete the unpacked files, although an FMU is still being called and cannot be freed."""
        for instance in self._owned:
            instance.abandon()
        for fmu in list(self._fmus.values()):
            fmu.abandon()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
