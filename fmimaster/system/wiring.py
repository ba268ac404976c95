"""Connections of nested systems, from the connector that gives a value to the one that takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fmimaster.errors import DescriptionError, did_you_mean
from fmimaster.system.description import Connection, Endpoint, System
from fmimaster.system.model import Causality, Model

SINKS = (Causality.INPUT, Causality.PARAMETER, Causality.STRUCTURAL_PARAMETER)
"""Causalities that take a value; all others give one."""


class Wiring:
    """All connections of a system and its nested systems, by the endpoint that they feed.

    Endpoints have full names here: ``"system.component"``, empty for the root system.
    """

    def __init__(self, root: System, models: Mapping[str, Model]) -> None:
        self.models = models
        self.notes: list[str] = []
        self._into: dict[Endpoint, Connection] = {}
        self._texts: dict[Endpoint, str] = {}
        """The connections as the user wrote them, for messages."""
        self._read(root, "")
        self._check_parameters()

    def into(self, component: str, variable: str) -> Connection:
        """The connection from the source of an input, over the connectors of systems on the way; from the input itself if
        nothing feeds it."""
        end = Endpoint(component, variable)
        way = Connection(end, end)
        passed = set()
        while way.start in self._into:
            if way.start in passed:
                raise DescriptionError(
                    f"{self._texts[end]}: the way to '{end}' runs in a circle over connectors of systems and "
                    "has no output at its start. Connect an output of a component."
                )
            passed.add(way.start)
            before = self._into[way.start]
            way = Connection(
                before.start,
                end,
                before.transformation.then(way.transformation),
                way.suppress_unit_conversion or before.suppress_unit_conversion,
            )
        return way

    def text(self, component: str, variable: str) -> str:
        """The connection that feeds an input, as the user wrote it, for messages."""
        return self._texts[Endpoint(component, variable)]

    def fed_by(self, connector: str) -> list[Connection]:
        """The connections from a connector of a system to the variables of components that it feeds.

        Parameters
        ----------
        connector
            Its full name, ``"system.connector"``; for the root system the connector's name alone.
        """
        element, _, name = connector.rpartition(".")
        ends = [end for end in self._into if end.element in self.models]
        ways = [self.into(end.element, end.connector) for end in ends]
        return [way for way in ways if way.start == Endpoint(element, name)]

    def _read(self, system: System, path: str) -> None:
        for connection in system.connections:
            self._add(system, path, connection)
        for nested in system.systems:
            self._read(nested, _join(path, nested.name))

    def _check_parameters(self) -> None:
        """Refuse outputs that feed parameters, also over connectors of systems."""
        for end in self._into:
            model = self.models.get(end.element)
            variable = None if model is None else model.variable(end.connector)
            if variable is None or variable.causality is Causality.INPUT:
                continue
            if self.into(end.element, end.connector).start.element in self.models:
                raise DescriptionError(
                    f"{self._texts[end]}: '{end}' is a parameter; it takes a start value, not an output. Set it "
                    "in the component's parameters."
                )

    def _add(self, system: System, path: str, connection: Connection) -> None:
        text = f"Connection '{connection}'"
        start_gives = self._gives(system, path, connection.start, text)
        end_gives = self._gives(system, path, connection.end, text)
        if start_gives is None and end_gives is None:
            raise DescriptionError(
                f"{text}: neither end says whether it is a source. Declare one connector's kind."
            )
        start_gives = not end_gives if start_gives is None else start_gives
        end_gives = not start_gives if end_gives is None else end_gives
        if start_gives == end_gives:
            what = "two outputs" if start_gives else "two inputs"
            raise DescriptionError(f"{text} connects {what}. Connect an output with an input.")
        source, target = connection.start, connection.end
        if end_gives:
            source, target = target, source
            self.notes.append(
                f"{text} is written from input to output; taken as '{source} -> {target}'."
            )
        fed = Endpoint(_join(path, target.element), target.connector)
        if fed in self._into:
            raise DescriptionError(
                f"{text}: '{target}' is already fed by {self._texts[fed]}. Remove one of the two: an input can "
                "have one source only."
            )
        start = Endpoint(_join(path, source.element), source.connector)
        self._into[fed] = replace(connection, start=start, end=fed)
        self._texts[fed] = text

    def _gives(self, system: System, path: str, end: Endpoint, text: str) -> bool | None:
        """Whether this end is the source of the value; None if its kind is not declared."""
        if not end.element:
            if not system.connectors:
                self.notes.append(
                    f"{text}: system '{system.name}' declares no connectors; '{end.connector}' is taken as one."
                )
            return _connector_gives(system, end, text, inside=True)
        nested = {s.name: s for s in system.systems}
        if end.element in nested:
            return _connector_gives(nested[end.element], end, text, inside=False)
        model = self.models.get(_join(path, end.element))
        if model is None:
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
        return variable.causality not in SINKS


def _connector_gives(system: System, end: Endpoint, text: str, *, inside: bool) -> bool | None:
    for connector in system.connectors:
        if connector.name == end.connector:
            if connector.kind is Causality.LOCAL:  # SSP 'inout'
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
