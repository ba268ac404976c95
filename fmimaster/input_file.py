"""An input file: a table that becomes a component and feeds the open inputs of a system."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fmimaster.errors import FileError, OptionError, did_you_mean
from fmimaster.fmu.load import Loader
from fmimaster.results.csv import read_csv
from fmimaster.system.description import Component, Connector, Source
from fmimaster.system.model import Causality
from fmimaster.system.resolve import OpenInput, ResolvedComponent, ResolvedSystem, feed_open_inputs

_NAME = "input"
"""Name of the component."""


def attach_input_file(
    path: Path, system: ResolvedSystem, loader: Loader, *, bare_names: bool
) -> tuple[ResolvedSystem, Component, dict[float, frozenset[str]]]:
    """Let the columns of a CSV file feed the open inputs of their names.

    Parameters
    ----------
    bare_names : bool
        Whether the name of an input alone will do, as for a single FMU; else it is ``"component.input"``, or the name of
        a connector of the root system.

    Returns
    -------
    The system with the table as its last component, that component, and its jumps: time in s → columns.

    Raises
    ------
    FileError, OptionError
        If the file is no table, or a column is no open input.
    """
    known: dict[str, list[OpenInput]] = {}
    for open_input in system.open_inputs:
        component = system.components[open_input.target].name
        names = [f"{component}.{open_input.input.name}", open_input.connector]
        names += [open_input.input.name] if bare_names else []
        for name in filter(None, names):
            known.setdefault(name, []).append(open_input)
    table_rows = read_csv(path)
    columns = table_rows.names
    if not table_rows.rows:
        raise FileError(f"'{path}' has a header and no rows. Give at least one row of values.")
    for column in columns:
        values = table_rows[column]
        if np.ma.is_masked(values):
            at = table_rows.time[np.ma.getmaskarray(values)][0]
            raise FileError(f"'{path}': column '{column}' is empty at t = {at:g} s. Give a number.")
        if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
            at, value = table_rows.time[~finite][0], values[~finite][0]
            what = "NaN" if np.isnan(value) else "infinite"
            raise FileError(
                f"'{path}': column '{column}' is {what} at t = {at:g} s. Give a number."
            )
    for column in columns:
        if column not in known:
            raise OptionError(
                f"Column '{column}' of '{path}' is no open input of the system."
                f"{did_you_mean(column, known)} Open inputs: {', '.join(known) or 'none'}."
            )
    name = _NAME
    while name in {c.name for c in system.components}:
        name += "_"
    outputs = (Connector(c, Causality.OUTPUT, known[c][0].input.type) for c in columns)
    table = Component(name, Source(path.resolve()), tuple(outputs))
    resolved = ResolvedComponent(name, table.source, loader.model(table), {})
    fed = feed_open_inputs(system, resolved, {c: known[c] for c in columns})
    return fed, table, loader.table(table).jumps()
