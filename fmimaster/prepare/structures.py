"""The structures of a system whose parts exist in intervals only: what exists when, and the preparation of each one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import DescriptionError, FmimasterError, OptionError, did_you_mean
from fmimaster.base.text import listed
from fmimaster.configure.settings import Settings
from fmimaster.inputs.given_inputs import fitting_inputs
from fmimaster.plan.plan import Plan
from fmimaster.plan.variables import Recorded
from fmimaster.prepare.prepared import Prepared
from fmimaster.system.clocks import ALWAYS, Lifetime, Structure
from fmimaster.system.description import System, SystemDescription
from fmimaster.system.model import DataType

Exists = Callable[[Lifetime], bool]


def _lifetimes(description: SystemDescription) -> Iterator[Lifetime]:
    """Of all components and connections."""
    for _, system in description.system.nested():
        yield from (component.lifetime for component in system.components)
        yield from (connection.lifetime for connection in system.connections)


def times_of_changes(description: SystemDescription) -> tuple[Fraction, ...]:
    """Times in s at which the structure changes, in their order."""
    return tuple(sorted({t for life in _lifetimes(description) for t in life.times}))


def _events_of_changes(description: SystemDescription) -> frozenset[str]:
    """Names of the events at which the structure changes."""
    return frozenset(e for life in _lifetimes(description) for e in life.events)


def structure_note(description: SystemDescription) -> str:
    """What exists when, in one sentence."""
    parts = [(f"'{name}'", component.lifetime) for name, component in description.components()]
    for _, system in description.system.nested():
        parts += [(f"'{connection}'", connection.lifetime) for connection in system.connections]
    named = [f"{name} {life}" for name, life in parts if life != ALWAYS]
    return f"the structure of the system changes during the run: {listed(named)}"


def is_dynamic(description: SystemDescription) -> bool:
    """Whether the structure ever changes."""
    return any(life is not ALWAYS and life != ALWAYS for life in _lifetimes(description))


def structure_at(
    description: SystemDescription, time: Fraction, happened: frozenset[str] = frozenset()
) -> SystemDescription:
    """What exists at a time in s, after its changes and after the events that have happened: without lifetimes."""

    def exists(life: Lifetime) -> bool:
        return life.exists(time, happened)

    names = {name for name, c in description.components() if exists(c.lifetime)}
    return replace(
        description,
        system=_at(description.system, exists),
        sequence=tuple(name for name in description.sequence if name in names),
        structure=_structure_of(description, time, happened),
    )


def _structure_of(
    description: SystemDescription, time: Fraction, happened: frozenset[str]
) -> Structure:
    """Which parts exist at that time: equal for equal systems of :func:`structure_at`."""
    changing = [*_changing(description.system)]
    parts = [part for part, _ in changing]
    return Structure(
        frozenset(
            parts.index(part)
            for part, lives in changing
            if all(life.exists(time, happened) for life in lives)
        ),
        frozenset(n for n, c in description.components() if not c.lifetime.exists(time, happened)),
    )


def _changing(root: System) -> Iterator[tuple[object, list[Lifetime]]]:
    """The parts that do not always exist, without their lifetimes: with the lifetimes of each and of its ends."""
    for path, system in root.nested():
        of_components = {c.name: c.lifetime for c in system.components if c.lifetime != ALWAYS}
        for name, life in of_components.items():
            yield (path, name), [life]
        for c in system.connections:
            ends = {end.element for end in (c.start, c.end)} & of_components.keys()
            lives = [of_components[name] for name in ends]
            if lives or c.lifetime != ALWAYS:
                yield (path, replace(c, lifetime=ALWAYS)), [c.lifetime, *lives]


def _at(system: System, exists: Exists) -> System:
    kept = tuple(replace(c, lifetime=ALWAYS) for c in system.components if exists(c.lifetime))
    gone = {c.name for c in system.components} - {c.name for c in kept}

    def is_there(component: str) -> bool:
        return component not in gone

    return replace(
        system,
        components=kept,
        systems=tuple(_at(inner, exists) for inner in system.systems),
        connections=tuple(
            replace(c, lifetime=ALWAYS)
            for c in system.connections
            if exists(c.lifetime) and is_there(c.start.element) and is_there(c.end.element)
        ),
        parameters=tuple(p for p in system.parameters if is_there(p.name.partition(".")[0])),
        shared_events=tuple(
            e for e in system.shared_events if all(is_there(m[0]) for m in e.members)
        ),
    )


MOST_TOGETHER = 3
"""Events of changes of which all combinations are prepared to find the columns; of more of them each alone."""


def structures_in(
    description: SystemDescription, times: Iterable[Fraction]
) -> Iterator[tuple[Fraction, frozenset[str]]]:
    """Where each structure is first there: a time in s, and the events that have happened. Each once, the first one first.

    If more than 3 events change the structure, only those after one of them are included.

    Parameters
    ----------
    times
        The start, and the times of changes after it, in their order.
    """
    seen = set()
    for time in times:
        for happened in _combinations(_events_of_changes(description)):
            key = _structure_of(description, time, happened)
            if key not in seen:
                seen.add(key)
                yield time, happened


def _combinations(events: Collection[str]) -> list[frozenset[str]]:
    """Sets of events that may have happened."""
    sizes = range(len(events) + 1) if len(events) <= MOST_TOGETHER else range(2)
    return [
        frozenset(c) for c in chain.from_iterable(combinations(sorted(events), n) for n in sizes)
    ]


Make = Callable[[Settings], Prepared]

Block = Mapping[DataType, NDArray[Any]]
Arrange = Callable[
    [NDArray[np.float64], Block], tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]
]
"""Rows of one structure → rows with the columns of all."""


class Structures:
    """What a run needs to change its structure. Each structure is prepared once.

    Parameters
    ----------
    first : Prepared
        The structure at the start.
    make
        Prepares another structure, with these settings.
    """

    def __init__(self, settings: Settings, first: Prepared, make: Make) -> None:
        self._description = first.whole
        schedule = first.schedule
        # for an accuracy each structure has a choice of its own
        step_size = schedule.rule if first.choice is None else settings.step_size
        self._settings = replace(
            settings, start_time=schedule.start, stop_time=schedule.stop, step_size=step_size
        )
        self._make = make
        self.times = tuple(
            t for t in times_of_changes(self._description) if schedule.start < t < schedule.stop
        )
        """Times in s at which the structure changes."""
        self.events = _events_of_changes(self._description)
        """Names of the events at which it changes, when they occur first."""
        self._known = {first.description.structure: first}
        self._start = schedule.start
        self.columns, self._widths, self._flags = self._all_columns()

    def at(self, time: Fraction, happened: frozenset[str]) -> Prepared:
        """The structure at a time in s, after these events.

        Raises
        ------
        FmimasterError
            If it cannot be simulated.
        """
        description = structure_at(self._description, time, happened)
        key = description.structure
        if key not in self._known:
            # few systems change their structure
            from fmimaster.prepare.structure_settings import settings_of_structure

            settings = replace(self._settings, system=description)
            settings = settings_of_structure(settings, self._description, description)
            self._known[key] = self._make(settings)
        return self._known[key]

    def every(self) -> Iterator[tuple[str, Prepared | FmimasterError]]:
        """Each structure once, the first one first: when it begins, and the structure, or why it cannot be simulated.

        If more than 3 events change the structure, only those after one of them are included.
        """
        for time, happened in structures_in(self._description, (self._start, *self.times)):
            names = listed(f"'{event}'" for event in sorted(happened))
            begin = f"from {float(time):.12g} s" + (f" after {names}" if happened else "")
            try:
                yield begin, self.at(time, happened)
            except FmimasterError as error:
                yield begin, error

    @property
    def prepared(self) -> list[Prepared]:
        """The structures that were prepared so far, the first one first."""
        return list(self._known.values())

    @property
    def last(self) -> list[Prepared]:
        """Those in which the run can end, without those that cannot be simulated."""
        begin = self.times[-1] if self.times else self._start
        events = _combinations(self.events)
        keys = {structure_at(self._description, begin, e).structure for e in events}
        return [prepared for key, prepared in self._known.items() if key in keys]

    @property
    def n_places(self) -> int:
        """Most places for states of an FMU that one of the prepared structures needs."""
        return max(prepared.programs.n_places for prepared in self._known.values())

    @property
    def polynomial_inputs(self) -> frozenset[str]:
        """Names of the instances whose inputs are polynomials in one of the prepared structures."""
        return frozenset(
            prepared.plan.instances[i].name
            for prepared in self._known.values()
            for i in prepared.programs.polynomial_inputs
        )

    def _all_columns(
        self,
    ) -> tuple[tuple[Recorded, ...], dict[DataType, int], dict[str, tuple[int, ...]]]:
        """The columns of all structures: with their places in a row, and the flags of those that can be absent."""
        # an error is raised again when it is this structure's turn
        every = [structure for _, structure in self.every()]
        prepared = [s for s in every if isinstance(s, Prepared)]
        structures = [s.plan for s in prepared]
        found: dict[str, Recorded] = {}
        for plan in structures:
            for column in plan.recorded:
                found.setdefault(column.name, column)
        self._check_outputs(found)
        self._check_inputs(structures)
        # what fits none may belong to one that cannot be simulated
        if len(prepared) == len(every):
            self._check_signals(prepared)
            self._check_bonds(structures)
        always = set(found).intersection(*({c.name for c in p.recorded} for p in structures))
        widths: dict[DataType, int] = {}

        def place(kind: DataType, size: int) -> slice:
            first = widths.get(kind, 0)
            widths[kind] = first + size
            return slice(first, first + size)

        placed, flags = [], {}
        for name, column in found.items():
            where = place(column.type, column.column.stop - column.column.start)
            if column.present is not None or name not in always:
                n = 1 if column.present is None else len(column.present[1])
                of = place(DataType.CLOCK, n)
                flags[name] = tuple(range(of.start, of.stop))
                column = replace(column, present=(DataType.CLOCK, flags[name]))
            placed.append(replace(column, column=where))
        return tuple(placed), widths, flags

    def _check_outputs(self, columns: Collection[str]) -> None:
        """Refuse a choice of columns that fits none in any structure."""
        for glob in self._settings.output_variables:
            if not any(fnmatchcase(name, glob.replace("[", "[[]")) for name in columns):
                raise OptionError(
                    f"Output variable '{glob}' fits no variable in any structure of the system."
                    f"{did_you_mean(glob, columns)}"
                )

    def _check_inputs(self, structures: Iterable[Plan]) -> None:
        """Refuse a polynomial for inputs that are connected in no structure."""
        given = self._settings.used.inputs
        fitting = set().union(*(fitting_inputs(plan, given) for plan in structures))
        if unused := [f"'{glob}'" for glob in given if glob not in fitting]:
            raise OptionError(
                f"inputs: {listed(unused)} fits no connected continuous input in any structure of the system."
            )

    def _check_signals(self, structures: Iterable[Prepared]) -> None:
        """Refuse signals of the input that have no open input in any structure."""
        left_out = set.intersection(*(set(s.left_out) for s in structures))
        used = {
            connector.name
            for s in structures
            for table in s.components[len([*s.description.components()]) :]
            for connector in table.connectors
        }
        if not left_out or (self._settings.ignore_further_columns and used):
            return
        known = {
            f"{s.plan.instances[o.target].name}.{o.input.name}"
            for s in structures
            for o in s.open_inputs
        }
        unused = listed(f"'{name}'" for name in sorted(left_out))
        more = " ignore_further_columns (--ignore-further-columns) ignores such columns."
        raise OptionError(
            f"input: {unused} fits no open input in any structure of the system."
            f"{did_you_mean(min(left_out), known | used)}{more if used else ''}"
        )

    def _check_bonds(self, structures: Iterable[Plan]) -> None:
        """Refuse power bonds that exist in no structure."""
        found = {bond.name for plan in structures for bond in plan.power_bonds}
        for bond in (*self._description.power_bonds(), *self._settings.power_bonds):
            if bond.name not in found:
                raise DescriptionError(
                    f"{bond}: its ports are connected crosswise in no structure of the system. Correct a port or a "
                    "lifetime, or remove the bond."
                )

    def arrange(self, prepared: Prepared) -> Arrange:
        """Brings the rows of one structure into the columns of all."""
        own = {c.name: c for c in prepared.plan.recorded}
        pairs = [(own[c.name], c) for c in self.columns if c.name in own]
        flags, widths = self._flags, self._widths

        def arranged(
            times: NDArray[np.float64], block: Block
        ) -> tuple[NDArray[np.float64], dict[DataType, NDArray[Any]]]:
            rows = {
                kind: np.zeros((len(times), width), dtype=kind.dtype)
                for kind, width in widths.items()
            }
            for source, target in pairs:
                rows[target.type][:, target.column] = block[source.type][:, source.column]
                if target.name in flags:
                    present = rows[DataType.CLOCK][:, list(flags[target.name])]
                    if source.present is None:
                        present[:] = True
                    else:
                        present[:] = block[DataType.CLOCK][:, list(source.present[1])]
                    rows[DataType.CLOCK][:, list(flags[target.name])] = present
            return times, rows

        return arranged


def structures_of(settings: Settings, first: Prepared, make: Make) -> Structures | None:
    """The structures of a run; None if its structure never changes. The arguments are those of :class:`Structures`."""
    if not is_dynamic(first.whole):
        return None
    measured = first.measured
    if measured is not None:  # nothing is measured when the structure changes
        settings = replace(settings, loops=replace(measured, is_complete=True))
    return Structures(settings, first, make)
