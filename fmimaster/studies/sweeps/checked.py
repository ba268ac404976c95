"""A sweep that fits its simulation: parameters and their values, scalars, and what identifies all of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, InputError, OptionError
from fmimaster.configure.settings import Settings
from fmimaster.fmu.load import Loader
from fmimaster.prepare.preparation import prepare
from fmimaster.prepare.prepared import Prepared
from fmimaster.session.repeated import places
from fmimaster.studies.sweeps.design import Design, Range
from fmimaster.system.model import DataType
from fmimaster.system.resolved import Varied
from fmimaster.system.varied import outside_in_words, values_in_a_run

log = logging.getLogger("fmimaster")

_MOST_TOLD = 5
"""Errors of one kind that a message has."""


@dataclass(frozen=True)
class DesignRuns:
    """The values of the parameters in all runs of a sweep.

    Parameters
    ----------
    columns : name → shape (n,)
        Numbers, Booleans, or texts as objects.
    units : name → unit
    """

    columns: Mapping[str, NDArray[Any]]
    units: Mapping[str, str]

    @property
    def number(self) -> int:
        """How many there are."""
        return len(next(iter(self.columns.values())))

    @property
    def digest(self) -> str:
        """A hash of all names and values."""
        text = sha256()
        for name, values in self.columns.items():
            is_text = values.dtype == object
            content = repr(values.tolist()).encode() if is_text else values.tobytes()
            text.update(f"{name} {values.dtype} {len(content)} ".encode() + content)
        return text.hexdigest()

    def values(self, first: int, end: int) -> list[tuple[Any, ...]]:
        """The values of some runs, in the order of the columns."""
        return [*zip(*(v[first:end].tolist() for v in self.columns.values()), strict=True)]


def prepared_for(settings: Settings, names: Sequence[str]) -> Prepared:
    """The simulation with the start values that vary; no FMU is instantiated.

    Raises
    ------
    InputError, ProgramError
        If it cannot be simulated so; with all parameters that cannot vary.
    """
    try:
        return _prepared(settings, names)
    except InputError as error:
        refused = _refused(settings, names)
        if len(refused) < 2:
            raise
        more = [f"and {len(refused) - _MOST_TOLD} more"] if len(refused) > _MOST_TOLD else []
        lines = "".join(f"\n- {text}" for text in (*refused[:_MOST_TOLD], *more))
        raise DescriptionError(
            f"{len(refused)} parameters of the sweep cannot vary:{lines}"
        ) from error


def _prepared(settings: Settings, names: Sequence[str]) -> Prepared:
    with Loader() as loader:
        prepared = prepare(settings, loader, varied=names)
    places(prepared)  # refuses what the run sets
    return prepared


def _refused(settings: Settings, names: Sequence[str]) -> list[str]:
    """Why each of those parameters cannot vary that cannot; none if the reason is another one."""
    try:
        _prepared(settings, ())
    except InputError:
        return []
    found = []
    for name in names:
        try:
            _prepared(settings, [name])
        except InputError as error:
            found.append(str(error))
    return found


def runs_of(design: Design, prepared: Prepared) -> DesignRuns:
    """The values in all runs, each checked.

    Raises
    ------
    OptionError, DescriptionError
        If a variable cannot have one of its values.
    """
    varied = prepared.varied
    whole = [name for name, every in varied.items() if every[0].variable.type.is_integer]
    for name, every in varied.items():
        _check_kind(design, name, every)
    columns, units = {}, {}
    for name, values in design.columns(whole).items():
        columns[name] = _column(name, values, varied[name])
        if unit := _unit(varied[name]):
            units[name] = unit
    return DesignRuns(columns, units)


def _unit(varied: Sequence[Varied]) -> str:
    """The unit of a start value; empty if it has none, or it is that of a connector."""
    found = {
        unit.name if (unit := v.parameter.unit or v.variable.unit) else ""
        for v in varied
        if v.parameter.transformation.is_identity
    }
    return found.pop() if len(found) == 1 else ""


def _check_kind(design: Design, name: str, varied: Sequence[Varied]) -> None:
    """Refuse ranges of what has no range."""
    one = design.ranges.get(name)
    variable = varied[0].variable
    if variable.type is DataType.BINARY:
        raise OptionError(
            f"'{name}' is a binary, which no sweep varies. Make a simulation for each value."
        )
    if not isinstance(one, Range):
        return
    if variable.enumeration:
        raise OptionError(
            f"'{name}' is an enumeration, which has no range {one}. Choose items: {name}={','.join(variable.enumeration)}."
        )
    if not (variable.type.is_float or variable.type.is_integer):
        both = "false,true" if variable.type is DataType.BOOLEAN else "TEXT,TEXT"
        raise OptionError(
            f"'{name}' is of type {variable.type.value}, which has no range {one}. Choose values: {name}={both}."
        )
    if variable.type.is_integer and one.ends != (one.low, one.high):
        raise OptionError(
            f"'{name}' has whole numbers only; its range {one} has other ends. Give whole numbers."
        )


def _column(name: str, values: Sequence[Any], varied: Sequence[Varied]) -> NDArray[Any]:
    kind = varied[0].variable.type
    if kind.is_float:
        return _floats(name, values, varied)
    known: dict[Any, Any] = {}
    for run, value in enumerate(values):
        if value not in known:
            found = [_checked(name, run, value, one)[0] for one in varied]
            known[value] = found[0]
    column = [known[value] for value in values]
    return np.array(column, kind.dtype)


def _floats(name: str, values: Sequence[Any], varied: Sequence[Varied]) -> NDArray[Any]:
    column = np.empty(len(values))
    for run, value in enumerate(values):
        try:
            column[run] = value
        except (TypeError, ValueError):
            raise OptionError(
                f"The design, run {run}: {value!r} is no number for '{name}'."
            ) from None
        if not isfinite(column[run]):
            raise OptionError(
                f"The design, run {run}: '{name}' is {column[run]}. Give a finite number."
            )
    for run in {int(np.argmin(column)), int(np.argmax(column))}:
        for one in varied:
            found = _checked(name, run, column[run].item(), one)
            if outside := outside_in_words(one, found):
                log.warning("%s", outside)
    return column


def _checked(name: str, run: int, value: Any, varied: Varied) -> NDArray[Any]:
    try:
        return values_in_a_run(varied, value)
    except DescriptionError as error:
        raise DescriptionError(f"The design, run {run}: {error}") from None
