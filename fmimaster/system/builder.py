"""Building a system description in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fmimaster.base.errors import DescriptionError
from fmimaster.base.files import given_path
from fmimaster.base.text import count
from fmimaster.base.typed_arguments import expect, typed
from fmimaster.system.adaptation import Adaptation
from fmimaster.system.clocks import ALWAYS, Lifetime, check_priority
from fmimaster.system.component_names import NamedComponents
from fmimaster.system.constraints import constraint_component, usual_level
from fmimaster.system.declarations import Experiment, Interface
from fmimaster.system.description import (
    ADAPTATION_SOURCE,
    START_TOLERANCE,
    Component,
    Connection,
    Constraint,
    ConstraintEnd,
    Level,
    Parameter,
    Port,
    PowerBond,
    SharedEvent,
    System,
    SystemDescription,
)
from fmimaster.system.model import Source, Transformation
from fmimaster.system.python_component import PythonComponent

_IN_PYTHON = Source(Path("(Python)"), is_file=False)


class SystemBuilder:
    """Builds a system of components and connections, one call for each.

    Variables are named ``"component.variable"``. The system is compared with the FMUs when it is planned: whether
    variables exist, and which end of a connection is the input.

    Examples
    --------
    >>> system = SystemBuilder("drive")
    >>> motor = system.add("motor", "motor.fmu", {"inertia": 0.02})
    >>> load = system.add("load", "load.fmu")
    >>> system.connect("motor.w", "load.w")
    >>> system.connect("load.torque", "motor.torque", factor=-1.0)
    >>> description = system.build(stop_time=10.0, step_size=1e-3)
    >>> [name for name, _ in description.components()]
    ['motor', 'load']
    """

    def __init__(self, name: str = "system") -> None:
        self.name = name
        self._components = NamedComponents()
        self._sources: dict[str | Path, Source] = {}
        """Path as given → the source: thousands of components may have the same."""
        self._start_values: dict[str, dict[str, Parameter]] = {}
        """Component → variable → its start value."""
        self._connections: list[Connection] = []
        self._shared_events: dict[str, SharedEvent] = {}
        self._power_bonds: dict[str, PowerBond] = {}

    def __repr__(self) -> str:
        components = count(len(self._components), "component")
        connections = count(len(self._connections), "connection")
        return f"<SystemBuilder {self.name!r}: {components}, {connections}>"

    def add(
        self,
        name: str,
        source: str | os.PathLike[str] | PythonComponent | Adaptation,
        start_values: Mapping[str, Any] | None = None,
        *,
        interface: Interface | str | None = None,
        priority: int | None = None,
        lifetime: Lifetime | None = None,
    ) -> str:
        """Add a component.

        Parameters
        ----------
        name
            Its name, unique in the system. It may contain dots, unless it could then be read as a variable of another
            component.
        source
            An FMU or the folder of an unpacked one, which is opened when the system is planned; a component that is
            written in Python; or an element of semantic adaptation, such as :class:`SampleAndHold`.
        start_values
            Variable name → value, see :meth:`set`.
        interface
            Interface by which the FMU is used: ``"CoSimulation"``, ``"ModelExchange"`` or
            ``"ScheduledExecution"``. Default: the first of these that the FMU has.
        priority
            Of a discrete-event unit: of all units whose clocks tick at one superdense instant, the one with the lowest
            number ticks first, alone, and of equal ones that with the lowest name. Default: the component is no such
            unit, and ticks together with all others.
        lifetime
            When it exists. Default: always.

        Returns
        -------
        The name.
        """
        expect(name, str, "add", "name")
        expect(start_values, Mapping | None, "add", "start_values")
        self._components.check_new(name)
        check_priority(priority, f"Component '{name}'")
        kind = self._kind(name, source, interface)
        self._components.take(
            Component(name, **kind, priority=priority, lifetime=lifetime or ALWAYS)
        )
        for variable, value in (start_values or {}).items():
            self.set(f"{name}.{variable}", value)
        return name

    @typed
    def connect(
        self,
        source: str,
        target: str,
        *,
        factor: float = 1.0,
        offset: float = 0.0,
        suppress_unit_conversion: bool = False,
        lifetime: Lifetime | None = None,
    ) -> None:
        """Connect an output with an input: ``target = factor * source + offset``.

        Parameters
        ----------
        source, target
            ``"component.variable"``.
        factor, offset : float
            Applied after the conversion of units.
        suppress_unit_conversion : bool
            Whether the value is passed without conversion, even if the units differ.
        lifetime
            When it exists. Default: always. In between, an input without a connection has its start value.

        Raises
        ------
        DescriptionError
            If there is no component of that name.
        """
        text = f"Connection '{source} -> {target}'"
        connection = Connection(
            self._components.endpoint(source, text),
            self._components.endpoint(target, text),
            Transformation(factor, offset),
            suppress_unit_conversion,
            lifetime or ALWAYS,
        )
        self._connections.append(connection)

    @typed
    def set(self, name: str, value: Any) -> None:
        """Give a variable its start value.

        A later call for the same variable replaces it.

        Parameters
        ----------
        name
            ``"component.variable"``.
        value
            A number, a Boolean, a text, or, for an array, a sequence of them; in the unit of the variable. For a clock,
            the interval in s at which it ticks, or a :class:`ClockInterval`.

        Raises
        ------
        DescriptionError
            If there is no component of that name.
        """
        where = f"Start value of '{name}'"
        end = self._components.endpoint(name, where)
        given = self._start_values.setdefault(end.element, {})
        given.pop(end.connector, None)
        given[end.connector] = Parameter(end.connector, value, where=where, must_fit=True)

    @typed
    def constrain(
        self,
        name: str,
        first: ConstraintEnd,
        second: ConstraintEnd,
        *,
        level: Level | None = None,
        tolerance: float = START_TOLERANCE,
    ) -> None:
        """Make positions or velocities of two components equal, by a force that acts on both of them.

        The force is constant over each step and makes them equal at its end. It is the output ``force`` of a
        component with the name of the constraint, whose outputs ``gap`` and ``der(gap)`` are the differences of positions
        and of velocities. All components at the ends must be able to get and set their state.

        Parameters
        ----------
        name
            Name of the constraint and of its component.
        first, second : ConstraintEnd
            The ends. Positions and velocities may both be given; then both must agree at the start.
        level : Level
            The variables that are made equal: by default velocities if they are given, otherwise positions.
        tolerance : float
            Largest difference of positions and velocities at the start.

        Examples
        --------
        >>> system = SystemBuilder("two carts")
        >>> for name in "front", "rear":
        ...     cart = system.add(name, "cart.fmu")
        >>> system.constrain(
        ...     "coupling",
        ...     ConstraintEnd("front", force="F", position="x", velocity="v"),
        ...     ConstraintEnd("rear", force="F", position="x", velocity="v"),
        ... )

        Source: Gomes et al. (2017), Co-simulation: state of the art, section 4.3.3 (there: boundary condition coordinator).
        """
        self._components.check_new(name)
        for end in (first, second):
            self._components.check_known(end.element, f"Constraint '{name}'")
        chosen = usual_level(first, second) if level is None else level
        constraint = Constraint((first, second), chosen, tolerance)
        component, connections = constraint_component(name, constraint)
        self._components.take(component)
        self._connections += connections

    @typed
    def share_event(
        self, name: str, *members: str, partners: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """Declare a shared event: events of several components that occur at the same instant.

        Parameters
        ----------
        name
            Its name in the system.
        members
            ``"component.event"`` for each member; the FMUs declare which events they have.
        partners
            Component → role → component: the member that has a role named in the manifest of the first component. A
            role that is not bound is the name of a component.

        Examples
        --------
        >>> system = SystemBuilder("two masses")
        >>> upper = system.add("upper", "upper.fmu")
        >>> lower = system.add("lower", "lower.fmu")
        >>> system.share_event("collision", "upper.collision", "lower.collision")
        """
        if name in self._shared_events:
            raise DescriptionError(
                f"There is a shared event '{name}' already. Choose another name."
            )
        ends = [self._components.endpoint(m, f"Shared event '{name}'", "event") for m in members]
        self._shared_events[name] = SharedEvent(
            name,
            tuple((end.element, end.connector) for end in ends),
            tuple(
                (component, role, other)
                for component, roles in (partners or {}).items()
                for role, other in roles.items()
            ),
        )

    @typed
    def power_bond(
        self,
        name: str,
        first: Port,
        second: Port,
        *,
        scale: float | None = None,
        tolerance: float | None = None,
    ) -> None:
        """Declare a power bond between two ports that are connected crosswise: the energy error of the coupling is
        recorded.

        Parameters
        ----------
        name
            The signals of the bond are named ``"name.power"``, ``"name.residual_energy"`` and so on.
        first, second
            The ports. ``power`` is positive from the first one to the second one.
        scale, tolerance
            Energy in J and relative tolerance for step-size control by ECCO.

        Examples
        --------
        >>> system = SystemBuilder("quarter car")
        >>> chassis = system.add("chassis", "chassis.fmu")
        >>> wheel = system.add("wheel", "wheel.fmu")
        >>> system.connect("chassis.velocity", "wheel.velocity")
        >>> system.connect("wheel.force", "chassis.force", factor=-1.0)
        >>> system.power_bond(
        ...     "suspension",
        ...     Port("chassis", "force", "velocity", "in"),
        ...     Port("wheel", "velocity", "force", "in"),
        ...     scale=750.0,
        ...     tolerance=2.8e-6,
        ... )
        """
        if name in self._power_bonds:
            raise DescriptionError(f"There is a power bond '{name}' already. Choose another name.")
        where = "declared in Python"
        self._power_bonds[name] = PowerBond(name, (first, second), scale, tolerance, where)

    @typed
    def build(
        self,
        *,
        start_time: float | None = None,
        stop_time: float | None = None,
        step_size: float | None = None,
        tolerance: float | None = None,
    ) -> SystemDescription:
        """The system as described so far.

        Parameters
        ----------
        start_time, stop_time, step_size : float, in s
            Used if a simulation gives none; None leaves the choice to the FMUs.
        tolerance : float
            Relative tolerance passed to the FMUs, likewise.

        Returns
        -------
        SystemDescription
            A description that later calls do not change.

        Raises
        ------
        DescriptionError
            If there is no component.
        """
        if not len(self._components):
            raise DescriptionError(f"System '{self.name}' has no components. Add one.")
        return SystemDescription(
            System(
                self.name,
                components=tuple(self._with_start_values(c) for c in self._components),
                connections=tuple(self._connections),
                shared_events=tuple(self._shared_events.values()),
                power_bonds=tuple(self._power_bonds.values()),
            ),
            Experiment(start_time, stop_time, tolerance, step_size),
        )

    def _with_start_values(self, component: Component) -> Component:
        given = self._start_values.get(component.name)
        return replace(component, parameters=tuple(given.values())) if given else component

    def _kind(
        self,
        name: str,
        source: str | os.PathLike[str] | PythonComponent | Adaptation,
        interface: Interface | str | None,
    ) -> dict[str, Any]:
        """The fields of a component that say which of the kinds it is that a system can have."""
        if isinstance(source, PythonComponent):
            source.model()  # errors in the declaration are found here
            return {"source": _IN_PYTHON, "python": source}
        if isinstance(source, Adaptation):
            return {"source": ADAPTATION_SOURCE, "adaptation": source}
        if isinstance(source, type) and issubclass(source, PythonComponent):
            raise DescriptionError(
                f"Component '{name}' is the class {source.__name__}. Expected an object: {source.__name__}()."
            )
        if callable(source):
            raise DescriptionError(
                f"Component '{name}' is a function. Expected the path of an FMU, or a component in Python: "
                "PythonComponent(inputs={...}, outputs={...}, step=function)."
            )
        chosen = None if interface is None else Interface.named(interface)
        if not isinstance(source, str | Path):
            return {"source": Source(given_path(source)), "interface": chosen}
        if source not in self._sources:
            self._sources[source] = Source(given_path(source))
        return {"source": self._sources[source], "interface": chosen}
