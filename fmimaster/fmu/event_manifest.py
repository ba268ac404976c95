"""The layered standard ``fmi-ls-events``: events, their policy, and look-ahead of an FMU.

The manifest names variables of the model description, in FMI 2.0 and 3.0 alike. docs/proposal/ has its text and schema.
Up to version 0.2 it also had the input polynomials, which have a manifest of their own now; both are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fmimaster.base.data import dataclass
from fmimaster.base.errors import ModelError
from fmimaster.fmu.input_polynomials import INTEGER_PARAMETER, POLYNOMIAL, read_polynomials
from fmimaster.fmu.manifest import Manifest, ManifestReader, Role
from fmimaster.system.declarations import (
    Contact,
    EventDeclaration,
    EventPolicy,
    Indicator,
    InputPolynomial,
    Payload,
    Scope,
)
from fmimaster.system.model import Causality, DataType, Model, Variability
from fmimaster.system.xml import Element, children, text_of, value_of
from fmimaster.system.xml_form import (
    ANNOTATIONS,
    ANY,
    AT_LEAST_ONE,
    AT_MOST_ONE,
    BOOLEAN,
    INT,
    NAME,
    Form,
    between,
    one_of,
)

ENDING = ".fmi-ls-events"
"""Last part of the names of all manifests that are read."""
STANDARD = "org.fmimaster" + ENDING
VERSION = (0, 3)
"""Major and minor version that is written; all of this major version are read."""
_FIRST_WITH_RIGHT_LIMITS = (0, 2)
"""Before this version, a trigger alone permits reading right limits without a step."""


@dataclass(frozen=True, slots=True)
class EventManifest:
    """The content of the manifest of one FMU."""

    events: tuple[EventDeclaration, ...] = ()
    policy: EventPolicy | None = None
    look_ahead: str | None = None
    input_polynomials: tuple[InputPolynomial, ...] = ()


def extend(manifest: Manifest | None, model: Model) -> Model:
    """The model with the events of its manifest; without one, with a private event for each EventIndicator of FMI 3.0.

    Raises
    ------
    ModelError
        If it is invalid (the message lists all errors), or if it has an unknown version.
    """
    if manifest is None:
        events = tuple(_of_event_indicators(model)) if model.event_indicators else ()
        outputs = frozenset(_continuous_outputs(events))
        return replace(model, events=events, event_outputs=outputs) if events else model
    manifest.expect("fmi-ls-events", VERSION[0])
    reader = _Reader(manifest, model)
    content = reader.read()
    if reader.problems:
        raise ModelError(*reader.problems)
    return replace(
        model,
        events=content.events,
        event_policy=content.policy,
        look_ahead=content.look_ahead,
        event_outputs=frozenset(
            filter(None, (*_continuous_outputs(content.events), content.look_ahead))
        ),
        input_polynomials=content.input_polynomials,
        notes=(*model.notes, *reader.notes),
    )


def _continuous_outputs(events: Iterable[EventDeclaration]) -> Iterator[str]:
    """Outputs that only tell of events: indicators and their derivatives."""
    for event in events:
        for indicator in event.indicators:
            yield from filter(None, (indicator.name, indicator.derivative))


def _of_event_indicators(model: Model) -> Iterator[EventDeclaration]:
    """A private event for each ``<EventIndicator>``, which Co-Simulation FMUs may list too (FMI 3.0, 2.4.8)."""
    derivatives = {
        v.derivative_of: v.name
        for v in model.variables
        if v.derivative_of is not None and _INDICATOR.fits(v)
    }
    for name in dict.fromkeys(model.event_indicators):
        variable = model.variable(name)
        if variable is not None and _INDICATOR.fits(variable):
            yield EventDeclaration(name, Scope.PRIVATE, (Indicator(name, derivatives.get(name)),))


# Roles of variables -----------------------------------------------------------------------------------------------

_FLOAT64 = frozenset({DataType.FLOAT64})
_CLOCK = frozenset({DataType.CLOCK})
_COUNTERS = frozenset({DataType.INT32})
"""Integer in FMI 2.0."""
_INPUT, _OUTPUT = frozenset({Causality.INPUT}), frozenset({Causality.OUTPUT})
_ANY = frozenset(DataType)

_INDICATOR = Role(  # and its derivative
    "a continuous Float64 output, or such a local variable",
    _FLOAT64,
    _OUTPUT | {Causality.LOCAL},
    continuous=True,
)
_ACTIVE = Role(
    "a Boolean output, or such a local variable",
    frozenset({DataType.BOOLEAN}),
    _OUTPUT | {Causality.LOCAL},
)
_NEXT = Role("a Float64 output", _FLOAT64, _OUTPUT)
_QUANTITY = Role(
    "a Float64 output, parameter or local variable",
    _FLOAT64,
    _OUTPUT | {Causality.LOCAL, Causality.PARAMETER, Causality.CALCULATED_PARAMETER},
)
_FORCE = Role("a continuous Float64 input", _FLOAT64, _INPUT, continuous=True)
_PAYLOAD_OUTPUT = Role("an output", _ANY - _CLOCK, _OUTPUT, scalar=False)
_PAYLOAD_INPUT = Role("an input", _ANY - _CLOCK, _INPUT, scalar=False)


def _signal(model: Model, what: str, causality: frozenset[Causality]) -> Role:
    """The role of what announces or triggers events: an output or an input, in words."""
    if model.fmi_version.startswith("2"):
        return Role(f"an Integer {what} that counts the events", _COUNTERS, causality)
    words = f"an {what} Clock, or an Int32 {what} that counts"
    return Role(words, _CLOCK | _COUNTERS, causality)


_EXTENSION = {"Annotations": AT_MOST_ONE}
FORMS: Mapping[str, Form] = ANNOTATIONS | {
    "fmiLayeredStandardManifest": Form(
        inside={
            "Event": ANY,
            "Policy": AT_MOST_ONE,
            "LookAhead": AT_MOST_ONE,
            "InputPolynomial": ANY,
        }
        | _EXTENSION
    ),
    "Event": Form(
        {"name": NAME, "scope": one_of("private", "coupled", "shared")},
        {"announce": NAME, "trigger": NAME, "rightLimitsWithoutStep": BOOLEAN, "active": NAME},
        {"Indicator": AT_LEAST_ONE, "Payload": ANY, "Contact": AT_MOST_ONE} | _EXTENSION,
    ),
    "Contact": Form(
        {
            "velocity": NAME,
            "direction": one_of("1", "-1"),
            "inverseMass": NAME,
            "restitution": NAME,
            "impulse": NAME,
            "force": NAME,
        },
        {"parameter": NAME, "value": INT},
        _EXTENSION,
    ),
    "Indicator": Form(
        {"name": NAME}, {"derivative": NAME, "tolerance": between(0.0, 1.0)}, _EXTENSION
    ),
    "Payload": Form({"output": NAME, "input": NAME}, {"member": NAME}, _EXTENSION),
    "Policy": Form(
        {"parameter": NAME, "execute": INT, "announce": INT}, {"ignore": INT}, _EXTENSION
    ),
    "LookAhead": Form({"next": NAME}, {}, _EXTENSION),
    "InputPolynomial": POLYNOMIAL,
}
"""The form of each element by its name, as in docs/proposal/schema/fmi3LayeredStandardEventsManifest.xsd."""


# Reading --------------------------------------------------------------------------------------------------------------


class _Reader(ManifestReader):
    """Reads a manifest and collects all errors in it."""

    forms = FORMS
    known_version = VERSION

    def read(self) -> EventManifest:
        """Its content; not valid if there are problems."""
        found: dict[str, list[Element]] = {}
        for element in self.sound():
            found.setdefault(element.tag, []).append(element)
        events = [self._event(e) for e in found.get("Event", [])]
        policies = [self._policy(e) for e in found.get("Policy", [])]
        nexts = [self.variable(e, "next", _NEXT, "LookAhead") for e in found.get("LookAhead", [])]
        polynomials = read_polynomials(self, found.get("InputPolynomial", []))
        self._check_events(found.get("Event", []), events)
        return EventManifest(
            tuple(events),
            policies[0] if policies else None,
            nexts[0] if nexts else None,
            polynomials,
        )

    def _event(self, element: Element) -> EventDeclaration:
        what = f"event '{text_of(element, 'name')}'"
        scope = Scope(text_of(element, "scope"))
        payload = tuple(self._payload(p, what) for p in children(element, "Payload"))
        for name in ("Payload", "Contact"):
            if scope is not Scope.SHARED and next(children(element, name), None) is not None:
                self.wrong(
                    element,
                    f"{what} is {scope.value} and has a {name}, but there is no other member. Remove the {name}, or "
                    "make the event shared",
                )
        trigger = self.optional(element, "trigger", _signal(self.model, "input", _INPUT), what)
        self._check_clocks(element, payload, trigger, what)
        without_step = trigger is not None and self.manifest.version < _FIRST_WITH_RIGHT_LIMITS
        return EventDeclaration(
            name=text_of(element, "name"),
            scope=scope,
            indicators=tuple(self._indicator(i, what) for i in children(element, "Indicator")),
            announce=self.optional(
                element, "announce", _signal(self.model, "output", _OUTPUT), what
            ),
            trigger=trigger,
            payload=payload,
            right_limits_without_step=value_of(
                element, "rightLimitsWithoutStep", bool, without_step
            ),
            active=self.optional(element, "active", _ACTIVE, what),
            contact=self._contact(element, what) if scope is Scope.SHARED else None,
        )

    def _contact(self, event: Element, of_event: str) -> Contact | None:
        element = next(children(event, "Contact"), None)
        if element is None:
            return None
        what = f"Contact of {of_event}"
        indicators = list(children(event, "Indicator"))
        if len(indicators) != 2 or any(i.get("derivative") is None for i in indicators):
            self.wrong(
                element,
                f"{what}: the event must have two indicators with a derivative each: the gap, and its rate",
            )
        if event.get("trigger") is None:
            self.wrong(element, f"{what}: the event has no trigger. Impulses are set with it")
        value = value_of(element, "value", int, None)
        if (value is None) != (element.get("parameter") is None):
            self.wrong(element, f"{what} has one of parameter and value. Expected both, or none")
        return Contact(
            self.variable(element, "velocity", _NEXT, what),
            value_of(element, "direction", int, 1),
            self.variable(element, "inverseMass", _QUANTITY, what),
            self.variable(element, "restitution", _QUANTITY, what),
            self.variable(element, "impulse", _PAYLOAD_INPUT, what),
            self.variable(element, "force", _FORCE, what),
            self.optional(element, "parameter", INTEGER_PARAMETER, what),
            value,
        )

    def _check_clocks(
        self, element: Element, payload: Sequence[Payload], trigger: str | None, what: str
    ) -> None:
        """Refuse clocks that tick at intervals, and payloads that are continuous or belong to another clock."""
        for attribute in ("announce", "trigger"):
            clock = self.model.variable(element.get(attribute) or "")
            if clock is not None and clock.clock is not None and clock.clock.is_time_based:
                self.wrong(
                    element,
                    f"{what}: {attribute}='{clock.name}' ticks at intervals. Expected a triggered Clock",
                )
        for there, p in zip(children(element, "Payload"), payload, strict=True):
            given = self.model.variable(p.input)
            if given is None or self.model.fmi_version.startswith("2"):
                continue
            if given.variability is Variability.CONTINUOUS:
                wrong = "is continuous"
            elif given.clocks and trigger not in given.clocks:
                wrong = f"has the Clock {', '.join(given.clocks)}"
            else:
                continue
            self.wrong(
                there,
                f"Payload of {what}: input='{p.input}' {wrong}. Expected a discrete input, or one that the trigger clocks",
            )

    def _indicator(self, element: Element, event: str) -> Indicator:
        what = f"Indicator of {event}"
        return Indicator(
            self.variable(element, "name", _INDICATOR, what),
            self.optional(element, "derivative", _INDICATOR, what),
            value_of(element, "tolerance", float, None),
        )

    def _payload(self, element: Element, event: str) -> Payload:
        what = f"Payload of {event}"
        return Payload(
            self.variable(element, "output", _PAYLOAD_OUTPUT, what),
            self.variable(element, "input", _PAYLOAD_INPUT, what),
            element.get("member"),
        )

    def _policy(self, element: Element) -> EventPolicy:
        policy = EventPolicy(
            self.variable(element, "parameter", INTEGER_PARAMETER, "Policy"),
            value_of(element, "execute", int, 0),
            value_of(element, "announce", int, 0),
            value_of(element, "ignore", int, None),
        )
        values = [v for v in (policy.execute, policy.announce, policy.ignore) if v is not None]
        if len(set(values)) < len(values):
            self.wrong(
                element,
                "two values of the Policy are the same. Expected different values for execute, announce and ignore",
            )
        parameter = self.model.variable(policy.parameter)
        start = (
            parameter.start if parameter is not None and INTEGER_PARAMETER.fits(parameter) else ()
        )
        if start and str(start[0]) != str(policy.execute):
            self.wrong(
                element,
                f"'{policy.parameter}' starts at {start[0]}, but execute is {policy.execute}: importers that do not "
                "know the manifest would miss the events of the FMU. Expected the same value",
            )
        return policy

    def _check_events(self, elements: list[Element], events: list[EventDeclaration]) -> None:
        names: set[str] = set()
        triggers: dict[str, str] = {}
        for element, event in zip(elements, events, strict=True):
            if event.name in names:
                self.wrong(
                    element,
                    f"there is an event '{event.name}' already. Give each its own name",
                )
            names.add(event.name)
            if event.trigger in triggers:
                self.wrong(
                    element,
                    f"event '{event.name}' has the trigger '{event.trigger}', which is that of "
                    f"'{triggers[event.trigger]}'. Give each event its own trigger",
                )
            elif event.trigger is not None:
                triggers[event.trigger] = event.name
            inputs = [p.input for p in event.payload]
            for twice in dict.fromkeys(i for i in inputs if inputs.count(i) > 1):
                self.wrong(
                    element,
                    f"event '{event.name}' has several Payloads for the input '{twice}'. Give each its own input",
                )
