"""Numbers that a sweep keeps of each run, by names: ``max(wheel.force)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import named
from fmimaster.plan.variables import Recorded
from fmimaster.results.columns import values_of
from fmimaster.results.results import Results
from fmimaster.results.table import matching
from fmimaster.system.model import DataType

Values: TypeAlias = NDArray[np.float64]
Scalars: TypeAlias = Callable[[Results], Mapping[str, float]]
"""A function of the results of a run: name → number."""

USUAL = ("last(*)", "min(*)", "max(*)")
MOST_OF_A_GLOB = 3000
"""Scalars by one set of names; each is a column of the data set."""


def _integral(time: Values, values: Values, *, is_held: bool) -> float:
    """Over the run: of lines between the rows, or of values that are held until the next row."""
    left, right = values[:-1], values[:-1] if is_held else values[1:]
    return float(np.sum(np.diff(time) * (0.5 * (left + right))))


def _mean(time: Values, values: Values, *, is_held: bool) -> float:
    span = float(time[-1] - time[0])
    return _integral(time, values, is_held=is_held) / span if span else float(values[-1])


def _rms(time: Values, values: Values, *, is_held: bool) -> float:
    return float(np.sqrt(_mean(time, values * values, is_held=is_held)))


_OF_VALUES: Mapping[str, Callable[[Values], float]] = {
    "first": lambda values: float(values[0]),
    "last": lambda values: float(values[-1]),
    "min": lambda values: float(np.min(values)),
    "max": lambda values: float(np.max(values)),
    "peak": lambda values: float(np.max(np.abs(values))),
}
"""What needs no times; ``peak`` is the largest absolute value."""

_OVER_TIME: Mapping[str, Callable[..., float]] = {
    "mean": _mean,
    "rms": _rms,
    "integral": _integral,
}
"""Over the time of the run, however long its steps are."""

REDUCTIONS = (*_OF_VALUES, *_OVER_TIME)


@dataclass(frozen=True)
class NamedScalars:
    """The scalars of these names, as a function of results.

    Parameters
    ----------
    chosen : (reduction, column) for each scalar
    """

    chosen: tuple[tuple[str, str], ...]

    def __call__(self, results: Results) -> Mapping[str, float]:
        table = results.expand()
        return {f"{how}({name})": _reduced(how, name, table) for how, name in self.chosen}


def _reduced(how: str, name: str, table: Results) -> float:
    column = table[name]
    if how in _OF_VALUES:
        values = values_of(column)
        return _OF_VALUES[how](values.astype(float)) if len(values) else np.nan
    return _OVER_TIME[how](table.time, column.astype(float), is_held=column.dtype.kind != "f")


def named_scalars(texts: Sequence[str], recorded: Sequence[Recorded]) -> NamedScalars:
    """The scalars of texts such as ``"max(wheel.force)"``; names of columns may be globs.

    Parameters
    ----------
    recorded
        The columns of the results.

    Raises
    ------
    OptionError
        If there is no such reduction or column, or the column has no numbers, or none that the reduction can use.
    """
    columns = {name: one for one in recorded for name in _elements(one)}
    chosen: dict[tuple[str, str], None] = {}
    for text in texts:
        parts = re.fullmatch(r"(?s)\s*(\w+)\s*\((.+)\)\s*", text)
        if parts is None or parts[1] not in REDUCTIONS:
            near = did_you_mean(parts[1], REDUCTIONS) if parts else ""
            raise OptionError(
                f"The scalar '{text}' is not known.{near} Expected REDUCTION(VARIABLE) with one of {', '.join(REDUCTIONS)}."
            )
        how, pattern = parts[1], parts[2].strip()
        found = matching(pattern, columns)
        fitting = [name for name in found if not _why_not(how, columns[name])]
        if not fitting:
            raise OptionError(
                f"The scalar '{text}': '{found[0]}' {_why_not(how, columns[found[0]])}"
            )
        chosen.update(dict.fromkeys((how, name) for name in fitting))
    if len(chosen) > MOST_OF_A_GLOB:
        raise OptionError(
            f"There would be {len(chosen):,} scalars of each run, more than {MOST_OF_A_GLOB:,}. Name those that matter: "
            "scalars=['max(component.output)'] (--scalar)."
        )
    return NamedScalars((*chosen,))


def _elements(one: Recorded) -> Iterator[str]:
    """Its names in an expanded table."""
    for k in np.ndindex(one.shape):
        yield f"{one.name}[{','.join(str(i + 1) for i in k)}]" if k else one.name


def _why_not(how: str, one: Recorded) -> str:
    """Why a column has no such scalar; empty if it has one."""
    if one.type in (DataType.STRING, DataType.BINARY):
        return "has no numbers."
    if how in _OVER_TIME and one.present is not None:
        return (
            f"has values at ticks of a clock only, so it has no {how}. Use {', '.join(_OF_VALUES)}."
        )
    return ""


def checked_scalars(found: Any) -> dict[str, float]:
    """What a function of a user has returned.

    Raises
    ------
    OptionError
        If it is no mapping of names to numbers.
    """
    try:
        return {_name(name): float(value) for name, value in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise OptionError(
            f"The function for the scalars returned {type(found).__name__} {found!r:.200}; expected a mapping of names to "
            "numbers."
        ) from None


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError
    return name


def refuse_taken(names: Sequence[str], taken: Sequence[str]) -> None:
    """Refuse scalars whose names other columns have."""
    if both := [name for name in names if name in taken]:
        raise OptionError(
            f"{named(both)}: a scalar has the name of another column of the data set. Rename it."
        )
