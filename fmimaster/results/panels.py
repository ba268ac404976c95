"""Groups columns into the axes of a figure: by unit, or else by quantity, and by magnitude."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.results.columns import numbers
from fmimaster.results.table import Table, matching

MOST_PANELS = 8
"""Most axes that fit on a page."""
MOST_LINES = 7
"""Columns in one panel: as many as there are colours."""
FLATTEST = 10.0
"""A column that varies spans at least one part in so many of its axes: a smaller variation is hard to see."""
_NOISE = 1e-9
"""A column whose values differ by less than this part of their magnitude counts as a constant."""

Range = tuple[float, float]
"""The smallest and the largest value."""


@dataclass(frozen=True, slots=True)
class Panel:
    """What one axes shows: columns that share the unit, or else the last part of the name."""

    names: tuple[str, ...]
    unit: str
    steps: bool
    """Whether values hold until the next row, as those of integers and Booleans."""
    clocks: bool = False
    """Whether it shows the ticks of clocks."""

    def label(self, most_letters: int) -> str:
        """Quantities and unit, as in ``"v in m/s"``; the unit alone if the quantities have more letters than that."""
        if self.clocks:
            return "clocks"
        quantities = ", ".join(dict.fromkeys(quantity(name) for name in self.names))
        if not self.unit or self.unit == "1":
            return quantities if len(quantities) <= most_letters else ""
        label = f"{quantities} in {self.unit}"
        return label if len(label) <= most_letters else self.unit[:most_letters]


def panels(
    tables: Sequence[Table], reference: Table | None, patterns: str | Sequence[str] | None
) -> tuple[list[Panel], int]:
    """The panels of a figure, and how many columns have no room in them.

    Without patterns, all columns that fit are drawn. If there are many, columns of one unit share a panel in spite of
    their magnitudes, and then also columns without unit in spite of their quantities.

    Parameters
    ----------
    tables, reference
        With array columns expanded.

    Raises
    ------
    OptionError
        If no column holds numbers, or a chosen one has no room.
    """
    columns = {n: values for table in reversed(tables) for n, values in table.columns.items()}
    known = dict.fromkeys(name for table in tables for name in table.names)
    chosen = [*known] if patterns is None else matching(patterns, known)
    drawn = [name for name in chosen if columns[name].dtype.kind != "O"]
    if not drawn:
        raise OptionError("There is nothing to plot: no chosen column contains numbers.")
    units = units_of([*tables, reference] if reference is not None else tables)
    known_clocks = {name for table in tables for name in clocks_of(table)}
    ticking = [name for name in drawn if name in known_clocks]
    drawn = [name for name in drawn if name not in known_clocks]
    below = [Panel(names=tuple(p), unit="", steps=True, clocks=True) for p in _parts(ticking)]
    ranges = {name: _range([t[name] for t in tables if name in t]) for name in drawn}
    by_quantity = _groups(drawn, columns, units, quantity)
    by_unit = _groups(drawn, columns, units, lambda name: "")
    found = _arranged(by_quantity, ranges) + below
    for groups, by in ((by_quantity, None), (by_unit, ranges), (by_unit, None)):
        if len(found) > MOST_PANELS:
            found = _arranged(groups, by) + below
    if len(found) > MOST_PANELS and patterns is not None:
        raise OptionError(
            f"{len(drawn) + len(ticking)} columns need {len(found)} axes; a figure has room for {MOST_PANELS}."
            " Choose fewer columns by name, or by a pattern such as 'engine.*'."
        )
    return found[:MOST_PANELS], sum(len(panel.names) for panel in found[MOST_PANELS:])


def units_of(tables: Iterable[Table]) -> Mapping[str, str]:
    """Units that any table gives; none may contradict another, since nothing is converted."""
    units: dict[str, str] = {}
    for table in tables:
        for name, unit in table.units.items():
            if units.setdefault(name, unit) != unit:
                raise OptionError(
                    f"Column '{name}' is in {units[name]} in one table and in {unit} in another;"
                    " expected one unit."
                )
    return units


def quantity(name: str) -> str:
    """Last part of a dotted name, without the index of an array element."""
    return name.rpartition(".")[2].partition("[")[0]


def clocks_of(table: Table) -> tuple[str, ...]:
    """Columns that are clocks, by the metadata of the run: true where they are active."""
    names = table.metadata.get("clocks", ())
    return tuple(name for name in table.names if name in names)


_Key = tuple[str, str, bool]
"""Unit, quantity of columns without a unit, and whether they are integers or Booleans."""


def _groups(
    names: Sequence[str],
    columns: Mapping[str, NDArray[Any]],
    units: Mapping[str, str],
    quantity: Callable[[str], str],
) -> dict[_Key, list[str]]:
    """Columns by unit, or else by quantity, as they come; floats apart from what moves in steps."""
    groups: dict[_Key, list[str]] = {}
    for name in names:
        unit, steps = units.get(name, ""), columns[name].dtype.kind != "f"
        groups.setdefault((unit, "" if unit else quantity(name), steps), []).append(name)
    return groups


def _arranged(
    groups: Mapping[_Key, Sequence[str]], ranges: Mapping[str, Range] | None
) -> list[Panel]:
    """A panel for each group and magnitude; for each group, without ranges."""
    return [
        Panel(names=tuple(part), unit=unit, steps=steps)
        for (unit, _, steps), names in groups.items()
        for alike in (_by_magnitude(names, ranges) if ranges and not steps else [names])
        for part in _parts(alike)
    ]


def _by_magnitude(names: Sequence[str], ranges: Mapping[str, Range]) -> list[list[str]]:
    """Groups of columns whose variations can all be seen on one axis, in the order of the names.

    Columns that vary come first, the widest one before all others, so that constants do not decide who is together.
    """
    found: list[_Group] = []
    for name in sorted(names, key=lambda n: -_span(ranges[n])):
        # with more groups than have room, another arrangement is drawn
        joined = (g for g in found[: MOST_PANELS + 1] if g.has_room_for(ranges[name]))
        group = next(joined, None)
        if group is None:
            found.append(group := _Group())
        group.add(name, ranges[name])
    order = {name: k for k, name in enumerate(names)}
    return sorted(
        (sorted(group.names, key=order.__getitem__) for group in found), key=lambda g: order[g[0]]
    )


class _Group:
    """Columns that share an axes, and what it must show."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._low, self._high, self._least_span = inf, -inf, inf

    def has_room_for(self, values: Range) -> bool:
        """Whether the variation of each column can be seen, also that of another one with this range."""
        low, high, least = self._with(values)
        return least == inf or high - low <= FLATTEST * least

    def add(self, name: str, values: Range) -> None:
        self.names.append(name)
        self._low, self._high, self._least_span = self._with(values)

    def _with(self, values: Range) -> tuple[float, float, float]:
        span = _span(values) or inf  # a constant needs no room
        return min(self._low, values[0]), max(self._high, values[1]), min(self._least_span, span)


def _span(values: Range) -> float:
    """How much a column varies; 0 for a constant."""
    low, high = values
    return high - low if high - low > _NOISE * max(abs(low), abs(high)) else 0.0


def _range(columns: Iterable[NDArray[Any]]) -> Range:
    """The range of a column in all tables; (0, 0) if it has no finite value."""
    values = np.concatenate([numbers(column) for column in columns])
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts of about the same length, none with more names than there are colours."""
    if not names:
        return
    number = -(-len(names) // MOST_LINES)
    length = -(-len(names) // number)
    for first in range(0, len(names), length):
        yield names[first : first + length]
