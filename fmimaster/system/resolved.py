"""A resolved system as values: components with their models, links, open inputs, shared events and power bonds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.system.clocks import Structure
from fmimaster.system.declarations import EventDeclaration
from fmimaster.system.description import Parameter
from fmimaster.system.model import Model, Source, Transformation, Variable


@dataclass(frozen=True, slots=True)
class Link:
    """One output that feeds one input, with the conversion of the value."""

    source: int
    """Index of the component with the output."""
    output: Variable
    target: int
    input: Variable
    transformation: Transformation = Transformation()
    """Product of all transformations and unit conversions of the connection."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResolvedComponent:
    """A component with its model and all start values that were given."""

    name: str
    source: Source
    model: Model
    start_values: Mapping[str, NDArray[Any]]
    """Variable name → values, shape (size,)."""
    is_input: bool = False
    """Whether it consists of the signals that the user gives as input."""
    priority: int | None = None
    """Of a discrete-event unit, see :class:`fmimaster.system.description.Component`."""


@dataclass(frozen=True, slots=True)
class Varied:
    """A variable that gets another start value in each run."""

    component: str
    variable: Variable
    parameter: Parameter
    """The way from the value of the user to it: unit and transformation."""
    usual: NDArray[Any]
    """Its start value in runs that give none, shape (size,)."""


@dataclass(frozen=True, slots=True)
class OpenInput:
    """An open input: no output feeds it."""

    target: int
    input: Variable
    connector: str
    """Connector of the root system that is connected to it; empty if there is none."""
    transformation: Transformation


@dataclass(frozen=True, slots=True)
class RootConnector:
    """A connector of the root system, and the variable of a component whose value it has."""

    name: str
    source: int
    output: Variable
    transformation: Transformation
    """From the value of the variable to that of the connector."""
    unit: str


@dataclass(frozen=True, slots=True)
class EventMember:
    """One member of a shared event."""

    component: int
    """Index of the component."""
    event: EventDeclaration


@dataclass(frozen=True, slots=True)
class ResolvedSharedEvent:
    """An event that occurs in several components at the same instant."""

    name: str
    members: tuple[EventMember, ...]
    payload: tuple[Link, ...] = ()
    """Outputs whose left limits are assigned to inputs before the members are triggered."""


@dataclass(frozen=True, slots=True)
class ResolvedPort:
    """One end of a power bond.

    ``weight * input * output`` is the power in W that leaves the component through it.
    """

    component: int
    input: Variable
    output: Variable
    weight: float


@dataclass(frozen=True, slots=True)
class ResolvedPowerBond:
    """Two ports that are connected crosswise, with weights that agree with the connections.

    ``transmitted * output_1 * output_2`` is the power in W from the first port to the second one.
    """

    name: str
    ports: tuple[ResolvedPort, ResolvedPort]
    transmitted: float
    scale: float | None
    tolerance: float | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedSystem:
    """A flat system: components, links, and the inputs that no output feeds."""

    components: tuple[ResolvedComponent, ...]
    links: tuple[Link, ...]
    open_inputs: tuple[OpenInput, ...]
    notes: tuple[str, ...]
    shared_events: tuple[ResolvedSharedEvent, ...] = ()
    parameter_links: tuple[Link, ...] = ()
    """Connections from calculated parameters to parameters, used at the start."""
    power_bonds: tuple[ResolvedPowerBond, ...] = ()
    """Sorted by name."""
    warnings: tuple[str, ...] = ()
    """Probable mistakes in the description."""
    root_connectors: tuple[RootConnector, ...] = ()
    """Root connectors with known values: outputs, and inputs with signals."""
    structure: Structure | None = None
    """See :class:`fmimaster.system.description.SystemDescription`."""
    varied: Mapping[str, tuple[Varied, ...]] = MappingProxyType({})
    """Name of a start value that changes from run to run → the variables that it sets."""

    def with_bond_tolerance(self, tolerance: float | None) -> ResolvedSystem:
        """The system with this relative tolerance for all power bonds that have an energy scale; None keeps their
        tolerances."""
        if tolerance is None:
            return self
        bonds = (
            bond if bond.scale is None else replace(bond, tolerance=tolerance)
            for bond in self.power_bonds
        )
        return replace(self, power_bonds=tuple(bonds))
