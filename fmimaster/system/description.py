"""Systems as components, connections and parameters, in the terms of SSP.

A description contains names of files, but no FMU and no open file. It can be printed, compared and pickled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.base.errors import DescriptionError
from fmimaster.base.text import count
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.system.adaptation import Adaptation
from fmimaster.system.clocks import ALWAYS, ClockInterval, Lifetime, Structure
from fmimaster.system.declarations import Experiment, Interface
from fmimaster.system.model import Causality, DataType, Source, Transformation, Unit
from fmimaster.system.python_component import PythonComponent

ADAPTATION_SOURCE = Source(Path("(semantic adaptation)"), is_file=False)
"""Of the elements of semantic adaptation."""


@dataclass(frozen=True, slots=True)
class Connector:
    """A variable of an element that can be connected. Attributes that are None are read from the FMU."""

    name: str
    kind: Causality
    type: DataType | None = None
    unit: Unit | None = None
    dimensions: tuple[int | None, ...] | None = None
    """Sizes; each None where it depends on another connector."""
    interval: ClockInterval | None = None
    """Of a clock, if it has one."""
    clocks: tuple[str, ...] = ()
    """Names of the clocks of a clocked variable."""


class Endpoint(NamedTuple):
    """One end of a connection: a connector of an element of the system, or of the system itself."""

    element: str
    """Name of a component or nested system; empty for the system that holds the connection."""
    connector: str

    def __str__(self) -> str:
        return f"{self.element}.{self.connector}" if self.element else self.connector


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection between two connectors; their causalities determine the source."""

    start: Endpoint
    end: Endpoint
    transformation: Transformation = Transformation()
    suppress_unit_conversion: bool = False
    lifetime: Lifetime = ALWAYS

    def __str__(self) -> str:
        return f"{self.start} -> {self.end}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A start value for a variable of a component.

    ``value`` is a number, a Boolean, a text (parsed by the type of the variable; several elements of an array are
    separated by blanks), or a tuple of them. ``where`` is its origin, for messages.
    """

    name: str
    """Name of the variable; in a system's list prefixed by the names of the elements that lead to it."""
    value: Any
    """Of a clock: its interval in s, or a :class:`ClockInterval`."""
    unit: Unit | None = None
    where: str = ""
    transformation: Transformation = Transformation()
    """Applied after the conversion from ``unit`` to the unit of the variable (SSP 2.0, MappingEntry)."""
    must_fit: bool = False
    """Whether it is an error if there is no such variable; otherwise the value is ignored, because a set may be larger
    than the system."""

    def renamed(self, name: str) -> Parameter:
        """The same for a variable of another name."""
        return replace(self, name=name)


START_TOLERANCE = 1e-6
"""Tolerance of constraints, in the unit of their first ends."""


class Level(Enum):
    """What a constraint makes equal at each communication point."""

    POSITION = "position"
    VELOCITY = "velocity"


@dataclass(frozen=True, slots=True)
class ConstraintEnd(TypedArguments):
    """One of the two ends of a constraint: outputs and an input of an element.

    The force acts on the first end, and its reaction, minus the force, on the second one.

    Parameters
    ----------
    element : str
        Name of a component or nested system.
    force : str
        Its input for the force.
    position, velocity : str
        Its outputs; empty if there is none.
    factor : float
        Factor of the force, or of the reaction, at this end.
    """

    element: str
    force: str
    position: str = ""
    velocity: str = ""
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Constraint:
    """Positions or velocities of two elements that must be equal; a force makes them so.

    ``tolerance`` is the largest difference at the start, in the unit of the first end.
    """

    ends: tuple[ConstraintEnd, ConstraintEnd]
    level: Level
    tolerance: float = START_TOLERANCE


@dataclass(frozen=True, slots=True)
class Component:
    """One simulation unit of a system."""

    name: str
    source: Source
    connectors: tuple[Connector, ...] = ()
    """Connectors of the description; empty if it leaves them to the FMU."""
    parameters: tuple[Parameter, ...] = ()
    interface: Interface | None = None
    """Interface by which the FMU is used; None: Co-Simulation if the FMU has it, else Model Exchange."""
    constraint: Constraint | None = None
    """The constraint, if the component is one."""
    python: PythonComponent | None = None
    """The object, if the component is written in Python."""
    adaptation: Adaptation | None = None
    """The element, if the component is one of semantic adaptation."""
    priority: int | None = None
    """Of a discrete-event unit: of all units whose clocks tick at one superdense instant, the one with the lowest number
    is first, and of equal ones that with the lowest name. None: the component ticks together with all others."""
    lifetime: Lifetime = ALWAYS

    @property
    def is_file(self) -> bool:
        """Whether its source is a file."""
        return self.source.is_file

    @property
    def is_table(self) -> bool:
        """Whether it is a table, and not an FMU or a component that is computed."""
        is_csv = (self.source.member or self.source.path.name).lower().endswith(".csv")
        is_computed = self.constraint or self.python or self.adaptation
        return is_csv or not (self.source.is_file or is_computed)


@dataclass(frozen=True, slots=True)
class SharedEvent:
    """An event that belongs to several components, and occurs in all of them at the same instant."""

    name: str
    members: tuple[tuple[str, str], ...]
    """Each a component and the name of its event. A component in a nested system is ``"system.component"``."""
    partners: tuple[tuple[str, str, str], ...] = ()
    """Each a component, a role that its manifest names, and the component that has this role for it."""


@dataclass(frozen=True, slots=True)
class Port(TypedArguments):
    """One end of a power bond: an input and an output of a component whose product is a power.

    Parameters
    ----------
    component, input, output : str
    power : "in" or "out"
        Whether ``input * output`` is the power that enters the component, or the power that leaves it.
    """

    component: str
    input: str
    output: str
    power: Literal["in", "out"]

    def __post_init__(self) -> None:
        if self.power not in ("in", "out"):
            raise DescriptionError(
                f"Port {self}: power={self.power!r}, expected 'in' if input * output is the power that enters the "
                "component, or 'out' if it leaves it."
            )

    def __str__(self) -> str:
        return f"'{self.component}' ({self.input}, {self.output})"

    @property
    def key(self) -> tuple[str, str, str]:
        """Component, input and output."""
        return self.component, self.input, self.output

    @property
    def sign(self) -> int:
        """By which ``input * output`` is multiplied to be the power that leaves the component."""
        return 1 if self.power == "out" else -1


@dataclass(frozen=True, slots=True)
class PowerBond(TypedArguments):
    """Two ports that are connected crosswise, so that power flows from the one component to the other.

    Parameters
    ----------
    name : str
        Unique among the bonds and the components of its system.
    ports : two of Port
    scale : float, optional
        Energy scale of the system in J, for ECCO.
    tolerance : float, optional
        Residual energy of a step, relative to the scale and the transmitted energy, for ECCO.
    where : str
        Where it is declared, for messages.

    Source: Sadjina et al. (2017), Energy conservation and power bonds in co-simulations, section 2.
    """

    name: str
    ports: tuple[Port, Port]
    scale: float | None = None
    tolerance: float | None = None
    where: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise DescriptionError("A power bond has an empty name. Give it a name.")
        if len(self.ports) != 2 or not all(isinstance(port, Port) for port in self.ports):
            raise DescriptionError(f"{self}: {self.ports!r}, expected two ports.")
        for what, value in (("scale", self.scale), ("tolerance", self.tolerance)):
            if value is None:
                continue
            if not isinstance(value, Real) or not 0 < value < inf:  # NaN, too
                raise DescriptionError(f"{self}: {what}={value!r}, expected a positive number.")

    def __str__(self) -> str:
        return f"Power bond '{self.name}'" + (f" ({self.where})" if self.where else "")


@dataclass(frozen=True, slots=True)
class System:
    """Elements and the connections between them. Systems nest."""

    name: str
    components: tuple[Component, ...] = ()
    systems: tuple[System, ...] = ()
    connectors: tuple[Connector, ...] = ()
    connections: tuple[Connection, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    """Parameters that take precedence over those of the elements inside."""
    shared_events: tuple[SharedEvent, ...] = ()
    power_bonds: tuple[PowerBond, ...] = ()

    def nested(self, prefix: str = "") -> Iterator[tuple[str, System]]:
        """This system and all inside of it, outer before inner, each with the prefix of names in it: ``"vehicle."``."""
        yield prefix, self
        for inner in self.systems:
            yield from inner.nested(f"{prefix}{inner.name}.")


@dataclass(frozen=True, slots=True, repr=False)
class SystemDescription:
    """One system, ready to be planned."""

    system: System
    experiment: Experiment = Experiment()
    source: Path | None = None
    """File it was read from."""
    notes: tuple[str, ...] = ()
    """Notes about what was ignored or read in another way than written: one sentence each."""

    warnings: tuple[str, ...] = ()
    """Violations of the schemas of SSP in its files: one sentence each, with file and line."""

    is_single_fmu: bool = False
    """Whether the system is a single FMU: then its variables are named without the component."""

    sequence: tuple[str, ...] = ()
    """Full names of the components in the order in which they are stepped; empty if the description leaves it open."""

    structure: Structure | None = None
    """Of a system whose structure changes: which of its parts these are. None if these are all parts."""

    def __repr__(self) -> str:
        components = count(sum(1 for _ in self.components()), "component")
        where = "" if self.source is None else f", from {str(self.source)!r}"
        return f"<SystemDescription {self.system.name!r}: {components}{where}>"

    def with_interface(self, interface: Interface) -> SystemDescription:
        """The same with this interface of its FMU.

        Raises
        ------
        DescriptionError
            If it is not a single FMU: then each component has its own interface.
        """
        if not self.is_single_fmu:
            raise DescriptionError(
                "interface (--interface) is for a single FMU. In a system each component has its own: give it by "
                "SystemBuilder.add(..., interface=...), or by the attribute 'implementation' in an SSD."
            )
        [component] = self.system.components
        system = replace(self.system, components=(replace(component, interface=interface),))
        return replace(self, system=system)

    def components(self) -> Iterator[tuple[str, Component]]:
        """All components with their full names (``"vehicle.engine"``; the root system's name is left out)."""
        for prefix, system in self.system.nested():
            yield from ((prefix + component.name, component) for component in system.components)

    def shared_events(self) -> Iterator[SharedEvent]:
        """All shared events, with the full names of events and components."""
        for prefix, system in self.system.nested():
            for shared in system.shared_events:
                members = tuple((prefix + c, event) for c, event in shared.members)
                partners = tuple(
                    (prefix + c, role, prefix + other) for c, role, other in shared.partners
                )
                yield SharedEvent(prefix + shared.name, members, partners)

    def power_bonds(self) -> Iterator[PowerBond]:
        """All power bonds, with the full names of bonds and components."""
        for prefix, system in self.system.nested():
            for bond in system.power_bonds:
                first, second = (replace(p, component=prefix + p.component) for p in bond.ports)
                yield replace(bond, name=prefix + bond.name, ports=(first, second))
