"""Connections of nested systems, from the source of a value to its target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.description import Connection, Connector, Endpoint, System
from fmimaster.system.model import Causality, Model
from fmimaster.system.notes import Notes

SINKS = (Causality.INPUT, Causality.PARAMETER, Causality.STRUCTURAL_PARAMETER)
"""Causalities of targets; all others are sources."""


@dataclass(frozen=True, slots=True)
class Way:
    """The connections from the source of a value to its target, through connectors of systems."""

    start: Endpoint
    end: Endpoint
    connections: tuple[Connection, ...] = ()
    """Connections in the direction of the value; empty if the variable has no source."""


class Wiring:
    """All connections of a system and its nested systems, by the endpoint that they feed.

    Endpoints have full names here: ``"system.component"``, empty for the root system.
    """

    def __init__(
        self, root: System, models: Mapping[str, Model], notes: Notes, warnings: Notes
    ) -> None:
        self.models = models
        self.connectors: dict[Endpoint, Connector] = {}
        """Connectors that systems declare."""
        self._notes = notes
        self._warnings = warnings
        self._into: dict[Endpoint, Connection] = {}
        self._from: dict[Endpoint, list[Connection]] = {}
        self._texts: dict[Endpoint, str] = {}
        """The connections as the user wrote them, for messages."""
        systems = [(prefix.removesuffix("."), system) for prefix, system in root.nested()]
        for path, system in systems:
            self.connectors |= {Endpoint(path, c.name): c for c in system.connectors}
        for path, system in systems:
            for connection in system.connections:
                self._add(system, path, connection)
        self._check_parameters()

    @property
    def fed(self) -> Collection[Endpoint]:
        """All endpoints that have an incoming connection."""
        return self._into.keys()

    def feeding(self, end: Endpoint) -> Connection | None:
        """The incoming connection of an endpoint; None if there is none."""
        return self._into.get(end)

    def fed_directly(self, start: Endpoint) -> Sequence[Connection]:
        """The connections that begin at an endpoint."""
        return self._from.get(start, ())

    def into(self, end: Endpoint) -> Way:
        """The connections from the source to an endpoint; if it has no source, it is its own source."""
        start, connections = end, []
        passed = {end}
        while start in self._into:
            connections.append(self._into[start])
            start = self._into[start].start
            if start in passed:
                raise DescriptionError(
                    f"{self._texts[end]}: the way to '{end}' is a circle of connectors of systems without an output. "
                    "Connect an output of a component."
                )
            passed.add(start)
        return Way(start, end, tuple(reversed(connections)))

    def text(self, end: Endpoint) -> str:
        """The connection that feeds an endpoint, as the user wrote it, for messages."""
        return self._texts[end]

    def fed_by(self, connector: str) -> list[Way]:
        """The connections from an input connector of a system to the variables of components that it feeds.

        Parameters
        ----------
        connector
            Its full name, ``"system.connector"``; for the root system the connector's name alone.
        """
        starts = (e for e in self._named.get(connector, ()) if self._may_take(e))
        return [way for start in starts for way in self._onwards(start)]

    def _may_take(self, end: Endpoint) -> bool:
        connector = self.connectors.get(end)
        return connector is None or connector.kind in (*SINKS, Causality.LOCAL)

    @cached_property
    def _named(self) -> dict[str, list[Endpoint]]:
        """Connectors of systems by their full names; several can have the same full name, because names may contain
        dots."""
        found: dict[str, list[Endpoint]] = {}
        for end in dict.fromkeys((*self.connectors, *self._from, *self._into)):
            if end.element not in self.models:
                found.setdefault(str(end), []).append(end)
        return found

    def _onwards(self, start: Endpoint) -> list[Way]:
        ways: list[Way] = []
        open_ways = [Way(start, start)]
        while open_ways:
            way = open_ways.pop(0)
            for connection in self.fed_directly(way.end):
                if connection.end == start:  # a circle, which is refused
                    continue
                longer = Way(start, connection.end, (*way.connections, connection))
                (ways if connection.end.element in self.models else open_ways).append(longer)
        return ways

    def _check_parameters(self) -> None:
        """Refuse outputs that feed parameters, also through connectors of systems; calculated parameters may feed
        them."""
        for end in self._into:
            model = self.models.get(end.element)
            variable = None if model is None else model.variable(end.connector)
            if variable is None or variable.causality is Causality.INPUT:
                continue
            start = self.into(end).start
            source = self.models.get(start.element)
            output = None if source is None else source.variable(start.connector)
            is_known = output is not None and output.causality is Causality.CALCULATED_PARAMETER
            if source is not None and not (is_known and variable.causality is Causality.PARAMETER):
                raise DescriptionError(
                    f"{self._texts[end]}: '{end}' is a parameter; it can have a start value or a calculated parameter "
                    "of another component as its source, not an output. Set it in the component's parameters."
                )

    def _add(self, system: System, path: str, connection: Connection) -> None:
        text = f"Connection '{connection}'"
        start_gives = self._gives(system, path, connection.start, text)
        end_gives = self._gives(system, path, connection.end, text)
        if start_gives is None and end_gives is None:
            raise DescriptionError(
                f"{text}: neither end is declared as a source. Declare one connector's kind."
            )
        start_gives = not end_gives if start_gives is None else start_gives
        end_gives = not start_gives if end_gives is None else end_gives
        if start_gives == end_gives:
            what = "two outputs" if start_gives else "two inputs"
            raise DescriptionError(f"{text} connects {what}. Connect an output with an input.")
        source, target = connection.start, connection.end
        if end_gives:
            source, target = target, source
            self._warnings.add(
                "connections are written from an input to an output, and are read in the direction of the value",
                f"'{connection}'",
            )
        fed = Endpoint(_join(path, target.element), target.connector)
        if fed in self._into:
            raise DescriptionError(
                f"{text}: '{target}' is already fed by {self._texts[fed]}. Remove one of the two: an input can "
                "have one source only."
            )
        start = Endpoint(_join(path, source.element), source.connector)
        full = connection
        if (start, fed) != (connection.start, connection.end):
            full = replace(connection, start=start, end=fed)
        self._into[fed] = full
        self._from.setdefault(start, []).append(full)
        self._texts[fed] = text

    def _gives(self, system: System, path: str, end: Endpoint, text: str) -> bool | None:
        """Whether this end is the source of the value; None if its kind is not declared."""
        if not end.element:
            if not system.connectors:
                self._notes.add(
                    f"system '{system.name}' declares no connectors; they follow from its connections",
                    f"'{end.connector}'",
                )
            return self._connector_gives(system, Endpoint(path, end.connector), text, inside=True)
        full = Endpoint(_join(path, end.element), end.connector)
        model = self.models.get(full.element)
        if model is None:
            for nested in system.systems:
                if nested.name == end.element:
                    return self._connector_gives(nested, full, text, inside=False)
            known = [c.name for c in system.components] + [s.name for s in system.systems]
            raise DescriptionError(
                f"{text}: there is no component '{end.element}'.{did_you_mean(end.element, known)}"
            )
        variable = model.variable(end.connector)
        if variable is None:
            known = [v.name for v in model.with_causality(Causality.INPUT, Causality.OUTPUT)]
            raise DescriptionError(
                f"{text}: component '{end.element}' has no variable '{end.connector}'."
                f"{did_you_mean(end.connector, known) or _listing(known)}"
            )
        if variable.causality is Causality.INPUT and variable.clock is not None:
            # a time-based input clock can make triggered ones active (FMI 3.0, 2.2.8.3)
            return None if variable.clock.is_time_based else False
        return variable.causality not in SINKS

    def _connector_gives(
        self, system: System, end: Endpoint, text: str, *, inside: bool
    ) -> bool | None:
        connector = self.connectors.get(end)
        if connector is not None:
            if connector.kind is Causality.LOCAL:  # SSP 'inout' and 'unspecified'
                return None
            return (connector.kind in SINKS) == inside
        if not system.connectors:
            return None
        raise DescriptionError(
            f"{text}: system '{system.name}' has no connector '{end.connector}'."
            f"{did_you_mean(end.connector, [c.name for c in system.connectors])}"
        )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f" It has {shown}." if names else " It has no inputs and no outputs."
