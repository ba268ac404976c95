"""Connections of nested systems, as arcs from the connector that gives a value to the one that takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fmimaster.errors import DescriptionError, did_you_mean
from fmimaster.system.description import Connection, Endpoint, System, Transformation
from fmimaster.system.model import Causality, Model

SINKS = (Causality.INPUT, Causality.PARAMETER, Causality.STRUCTURAL_PARAMETER)
"""Causalities that take a value; all others give one."""

Vertex = tuple[str, str]
"""Full name of an element (empty for the root system) and name of a connector."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a value comes from, what happens to it on the way, and the connection in words."""

    source: Vertex
    transformation: Transformation
    suppress_unit_conversion: bool
    text: str


class Wiring:
    """All connections of a system and its nested systems, by the vertex that they feed."""

    def __init__(self, root: System, models: Mapping[str, Model]) -> None:
        self.models = models
        self.notes: list[str] = []
        self._into: dict[Vertex, Edge] = {}
        self._read(root, "")
        self._check_parameters()

    def into(self, component: str, variable: str) -> Edge:
        """What feeds an input, over the connectors of systems on the way; the input itself if there is none."""
        way = Edge((component, variable), Transformation(), False, "")
        passed = set()
        while way.source in self._into:
            if way.source in passed:
                raise DescriptionError(
                    f"{way.text}: the way to '{component}.{variable}' runs in a circle over connectors of systems and "
                    "has no output at its begin. Connect an output of a component."
                )
            passed.add(way.source)
            edge = self._into[way.source]
            way = Edge(
                edge.source,
                edge.transformation.then(way.transformation),
                way.suppress_unit_conversion or edge.suppress_unit_conversion,
                way.text or edge.text,
            )
        return way

    def fed_by(self, connector: str) -> list[tuple[Vertex, Transformation]]:
        """Variables of components that a connector of a system feeds, and what happens to a value on the way.

        Parameters
        ----------
        connector
            Its full name, ``"system.connector"``; for the root system the connector's name alone.
        """
        element, _, name = connector.rpartition(".")
        ways = [(vertex, self.into(*vertex)) for vertex in self._into if vertex[0] in self.models]
        return [
            (vertex, way.transformation) for vertex, way in ways if way.source == (element, name)
        ]

    def _read(self, system: System, path: str) -> None:
        for connection in system.connections:
            self._add(system, path, connection)
        for nested in system.systems:
            self._read(nested, _join(path, nested.name))

    def _check_parameters(self) -> None:
        """Refuse outputs that feed parameters, also over connectors of systems."""
        for element, connector in self._into:
            variable = self.models[element].variable(connector) if element in self.models else None
            if variable is None or variable.causality is Causality.INPUT:
                continue
            way = self.into(element, connector)
            if way.source[0] in self.models:
                raise DescriptionError(
                    f"{way.text}: '{element}.{connector}' is a parameter; it takes a start value, not an output. Set it "
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
        fed = (_join(path, target.element), target.connector)
        if fed in self._into:
            raise DescriptionError(
                f"{text}: '{target}' is already fed by {self._into[fed].text}. Remove one of the two: an input can "
                "have one source only."
            )
        self._into[fed] = Edge(
            (_join(path, source.element), source.connector),
            connection.transformation,
            connection.suppress_unit_conversion,
            text,
        )

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
