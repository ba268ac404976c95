"""Contacts of bodies: which of them a run solves, and the inputs for their forces."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from fmimaster.base.errors import DescriptionError
from fmimaster.system.declarations import Contact, EventDeclaration
from fmimaster.system.model import Causality, DataType, Model

if TYPE_CHECKING:
    from fmimaster.system.resolved import ResolvedComponent, ResolvedSystem


def with_served_contacts(system: ResolvedSystem, fires: bool) -> ResolvedSystem:
    """The system with the contacts whose impulses and forces the run determines; FMUs treat all others as two bodies.

    An FMU takes them for all of its contacts or for none, so all members of a chain of contacts must have them.

    Raises
    ------
    DescriptionError
        If an input for an impulse or a force of such a contact is connected.
    """
    served = {i for i, c in enumerate(system.components) if fires and _takes_impulses(c)}
    lost = served
    while lost:
        lost = {
            m.component
            for e in system.shared_events
            if len(e.members) != 2
            or any(m.event.contact is None or m.component not in served for m in e.members)
            for m in e.members
            if m.component in served
        }
        served -= lost
    _check_inputs(system, served)

    def left(event: EventDeclaration, i: int) -> EventDeclaration:
        return replace(event, contact=None) if event.contact and i not in served else event

    components = tuple(
        replace(c, model=replace(c.model, events=tuple(left(e, i) for e in c.model.events)))
        if i not in served and any(e.contact for e in c.model.events)
        else c
        for i, c in enumerate(system.components)
    )
    shared = tuple(
        replace(
            e,
            members=tuple(replace(m, event=left(m.event, m.component)) for m in e.members),
        )
        for e in system.shared_events
    )
    return replace(system, components=components, shared_events=shared)


def _check_inputs(system: ResolvedSystem, served: Collection[int]) -> None:
    """Raise if something else feeds an input that the run sets for a contact."""
    for link in system.links:
        component = system.components[link.target]
        if link.target not in served:
            continue
        name, forces = link.input.name, force_inputs(component.model)
        contacts = [e.contact for e in component.model.events if e.contact is not None]
        if name in forces or any(name == c.impulse for c in contacts):
            law = next((c for c in contacts if c.parameter is not None), None)
            own = (
                ""
                if law is None
                else f", or set '{component.name}.{law.parameter}' to another value than {law.value}"
            )
            raise DescriptionError(
                f"'{component.name}.{name}' is connected, but the run determines impulses and forces at the contacts of "
                f"'{component.name}'. Leave the connection out{own}."
            )


def _takes_impulses(component: ResolvedComponent) -> bool:
    """Whether the contacts of a component can be solved: unless the user has chosen its own law for them."""
    contacts = [e.contact for e in component.model.events if e.contact is not None]
    given = component.start_values
    return bool(contacts) and all(
        k.parameter is None
        or k.parameter not in given
        or int(given[k.parameter].flat[0]) == k.value
        for k in contacts
    )


def force_inputs(model: Model) -> set[str]:
    """The inputs for the forces at the contacts of an FMU, with their coefficients."""
    forces = {e.contact.force for e in model.events if e.contact is not None}
    polynomials = (p for p in model.input_polynomials if p.input in forces)
    return forces.union(*(p.coefficients for p in polynomials))


def motion(model: Model, contact: Contact) -> tuple[str | None, str | None]:
    """Position and acceleration of a body, if an FMU publishes them: what its velocity is the derivative of, and the
    derivative of its velocity."""
    velocity = model.variable(contact.velocity)
    position = None if velocity is None else velocity.derivative_of
    rates = (
        v.name
        for v in model.with_causality(Causality.OUTPUT)
        if v.derivative_of == contact.velocity and v.type is DataType.FLOAT64
    )
    return position, next(rates, None)
